package guide

import (
	"errors"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/sqltypes"
)

// An OrderID is the key of an Order, with a name for libraries that generate code.
type OrderID = idtype.SnowflakeOf[Order]

// FromColumns converts a bigint and a uuid, as psql shows them, to the texts in
// logs and JSON. Scan also accepts the text of a Sno.
func FromColumns(number, uuid string) (visit, customer string, err error) {
	var v idtype.Spread64
	var c idtype.Sno
	if err := errors.Join(v.Scan(number), c.Scan(uuid)); err != nil {
		return "", "", err
	}
	return v.String(), c.String(), nil
}

// An Export stores IDs in columns of other types.
type Export struct {
	Subject sqltypes.Text[idtype.Sno]     `gorm:"primaryKey"` // text, here sortkey.sno_as_text
	Raw     sqltypes.SnoBytes             // bytea, 10 bytes
	Parent  sqltypes.Optional[idtype.Sno] // uuid, NULL for the zero ID
	Orders  sqltypes.Array[OrderID]       // bigint[]
}
