package guide

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/pgxcodec"
	"github.com/sortkey/sortkey/sqltypes"
)

// Connect returns a pool that encodes and scans IDs, their pointers and slices,
// and InvoiceID.
func Connect(ctx context.Context, url string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if err := pgxcodec.AfterConnect(ctx, conn); err != nil {
			return err
		}
		return pgxcodec.RegisterOwn[InvoiceID](conn.TypeMap())
	}
	return pgxpool.NewWithConfig(ctx, config)
}

// An InvoiceID identifies an invoice. The compiler rejects the ID of an order in
// its place.
type InvoiceID struct{ idtype.Snowflake }

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

// ToColumns converts the texts to values for a WHERE clause.
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

// An Export stores IDs in columns of other types.
type Export struct {
	Subject sqltypes.SnoText     `gorm:"primaryKey"` // text, here sortkey.sno_as_text
	Raw     sqltypes.SnoBytes    // bytea, 10 bytes
	Parent  sqltypes.OptionalSno // uuid, NULL for the zero ID
}
