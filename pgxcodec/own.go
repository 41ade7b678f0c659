package pgxcodec

import (
	"bytes"
	"database/sql"
	"encoding"
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/sqltypes"
)

// RegisterOwn teaches a connection's type map an ID type of the caller's: a
// struct that embeds one of package idtype, and nothing else.
//
//	type OrderID struct{ idtype.Snowflake }
//
// Such types keep apart the IDs of different tables, and have all methods of
// the type that they embed. Unregistered, they go through Value and Scan, which
// takes several times as long, and their slices can't be arguments in the modes
// exec and simple_protocol. Registered, they can be what the types of package
// idtype can, and so can [sqltypes.Text] of them.
//
// RegisterOwn is also [Register]. It is for each connection, as AfterConnect
// is. The error says what T lacks.
func RegisterOwn[T interface {
	sqltypes.ID
	encoding.BinaryAppender
}](m *pgtype.Map) error {
	var zero T
	var check error
	var add func(r *registry, elsewhere string)
	switch column := zero.GormDataType(); column {
	case "bigint":
		check, add = checkOwn[T, bigintText[T]](), addBigint[T]
	case "uuid":
		check, add = checkOwn[T, uuidText[T]](), addUUID[T]
	default:
		check = fmt.Errorf("its column type is %q", column)
	}
	if check != nil {
		return fmt.Errorf("pgxcodec: expected a struct that embeds an ID type of idtype and leaves its methods alone, got %T: %w", zero, check)
	}
	r := registryOf(m)
	add(r, fmt.Sprintf("sqltypes.Text[%T] for text columns", zero))
	register(m, r)
	return nil
}

// checkOwn compares what the codec would write for the zero ID to what the
// type's own methods do, and reads it back.
func checkOwn[T plainID, W wire[T]]() error {
	var zero, back T
	if _, ok := any(&back).(interface {
		sql.Scanner
		encoding.TextUnmarshaler
		encoding.BinaryUnmarshaler
	}); !ok {
		return fmt.Errorf("*%T lacks Scan, UnmarshalText or UnmarshalBinary", zero)
	}
	v, err := zero.Value()
	if err != nil {
		return err
	}
	var w W
	b, err := w.put(nil, zero)
	if err != nil {
		return err
	}
	if want := fmt.Append(nil, v); !bytes.Equal(b, want) {
		return fmt.Errorf("its zero ID is stored as %q by its method Value, and is %q in text or binary", want, b)
	}
	if err := w.get(b, &back); err != nil {
		return err
	}
	if back != zero {
		return fmt.Errorf("its zero ID, read back, is %v", back)
	}
	return nil
}
