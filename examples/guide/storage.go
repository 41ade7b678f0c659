package guide

import (
	"errors"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/sqltypes"
)

// FromColumns reads what psql shows of a bigint and of a uuid column, and gives
// the texts that logs and JSON have. Scan takes the text of a Sno as well.
func FromColumns(number, uuid string) (visit, customer string, err error) {
	var v idtype.Spread64
	var c idtype.Sno
	if err := errors.Join(v.Scan(number), c.Scan(uuid)); err != nil {
		return "", "", err
	}
	return v.String(), c.String(), nil
}

// ToColumns is the way back: from the texts to what a WHERE needs.
func ToColumns(visit, customer string) (number int64, uuid string, err error) {
	v, err := idtype.ParseSpread64(visit)
	if err != nil {
		return 0, "", err
	}
	c, err := idtype.ParseSno(customer)
	if err != nil {
		return 0, "", err
	}
	return v.Int64(), c.UUID().String(), nil
}

// An Export has IDs in columns that aren't their own.
type Export struct {
	Subject sqltypes.SnoText     `gorm:"primaryKey"` // text, here sortkey.sno_as_text
	Raw     sqltypes.SnoBytes    // bytea, 10 bytes
	Parent  sqltypes.OptionalSno // uuid, NULL for the zero ID
}
