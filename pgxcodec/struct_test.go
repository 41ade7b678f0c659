package pgxcodec_test

import (
	"bytes"
	"database/sql"
	"database/sql/driver"
	"errors"
	"reflect"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/pgxcodec"
	"github.com/sortkey/sortkey/sqltypes"
)

// Structs that embed an ID and store it differently, or that can't be read back.
type (
	textColumnID  struct{ idtype.Snowflake }
	prefixedID    struct{ idtype.Sno }
	oddID         struct{ idtype.Sno }
	neverID       struct{ idtype.Sno }
	panickingID   struct{ idtype.Sno }
	negativeID    struct{ idtype.Snowflake }
	stringID      struct{ idtype.Snowflake }
	unscannableID struct{ idtype.Snowflake }
	unreadID      struct{ idtype.Snowflake }
	changedID     struct{ idtype.Snowflake }
	definedID     idtype.Snowflake
	uuidTextID    struct{ idtype.Sno }
	cachedID      struct {
		idtype.Sno
		text func() string
	}
)

var errNever = errors.New("never")

func (textColumnID) GormDataType() string          { return "text" }
func (id prefixedID) Value() (driver.Value, error) { return "c_" + id.String(), nil }
func (id oddID) Value() (driver.Value, error) {
	if id.IsZero() {
		return id.Sno.Value()
	}
	return "c_" + id.String(), nil
}
func (uuidTextID) GormDataType() string            { return "text" }
func (id cachedID) Value() (driver.Value, error)   { return id.text(), nil }
func (neverID) Value() (driver.Value, error)       { return nil, errNever }
func (panickingID) Value() (driver.Value, error)   { panic(errNever) }
func (id negativeID) Value() (driver.Value, error) { return -int64(id.Snowflake), nil }
func (id stringID) Value() (driver.Value, error)   { return id.Snowflake.String(), nil }
func (*unscannableID) Scan(int)                    {}
func (*unreadID) Scan(any) error                   { return errNever }
func (id *changedID) Scan(any) error               { id.Snowflake = 1; return nil }

// These treat only some IDs differently.
type (
	nullID   struct{ idtype.Snowflake }
	cappedID struct{ idtype.Snowflake }
	lowID    struct{ idtype.Snowflake }
	oldID    struct{ idtype.Snowflake }
)

func (id *nullID) Scan(src any) error {
	if src == nil {
		*id = nullID{}
		return nil
	}
	return id.Snowflake.Scan(src)
}

func (id cappedID) Value() (driver.Value, error) {
	if id.Snowflake > 1000 {
		return nil, errNever
	}
	return id.Snowflake.Value()
}
func (id lowID) IsZero() bool { return id.Snowflake <= 7 }
func (id *oldID) UnmarshalText(b []byte) error {
	return id.Snowflake.UnmarshalText(bytes.TrimPrefix(b, []byte("old_")))
}

func (id definedID) Value() (driver.Value, error) { return idtype.Snowflake(id).Value() }

// pgx calls the methods of structs that store the ID differently, for one ID or all.
func TestStructsWithOwnMethods(t *testing.T) {
	m, plain := newMap(), pgtype.NewMap()
	for _, c := range []struct {
		oid           uint32
		value, stored any
	}{
		{pgtype.Int8OID, textColumnID{7}, 7}, {pgtype.UUIDOID, prefixedID{sno}, sno}, {pgtype.UUIDOID, oddID{sno}, sno}, {pgtype.UUIDOID, oddID{}, sno},
		{pgtype.UUIDOID, neverID{sno}, sno}, {pgtype.UUIDOID, panickingID{sno}, sno}, {pgtype.Int8OID, negativeID{7}, 7},
		{pgtype.Int8OID, stringID{7}, 7}, {pgtype.Int8OID, unscannableID{7}, 7}, {pgtype.Int8OID, unreadID{7}, 7},
		{pgtype.Int8OID, changedID{7}, 7}, {pgtype.Int8OID, definedID(7), 7},
		{pgtype.Int8OID, nullID{7}, 7}, {pgtype.Int8OID, cappedID{7}, 7}, {pgtype.Int8OID, cappedID{1001}, 7}, {pgtype.Int8OID, sqltypes.OptionalOf(cappedID{1001}), 7},
		{pgtype.Int8OID, sqltypes.OptionalOf(lowID{7}), 7}, {pgtype.Int8OID, sqltypes.OptionalOf(lowID{8}), 7},
		{pgtype.TextOID, sqltypes.TextOf(oldID{7}), "7"}, {pgtype.TextOID, sqltypes.TextOf(oldID{7}), "old_7"},
		{pgtype.Int8ArrayOID, orderID{7}, []int64{7}}, {pgtype.TextArrayOID, customerID{sno}, []string{"x"}}, {pgtype.JSONOID, changedID{7}, "7"}, {pgtype.JSONBOID, orderID{7}, "7"},
	} {
		for _, format := range []int16{binaryFormat, textFormat} {
			got, err := try(func() ([]byte, error) { return m.Encode(c.oid, format, c.value, nil) })
			want, wantErr := try(func() ([]byte, error) { return plain.Encode(c.oid, format, c.value, nil) })
			if !bytes.Equal(got, want) || (err == nil) != (wantErr == nil) {
				t.Errorf("%T, format %d: %q, %v, want %q, %v", c.value, format, got, err, want, wantErr)
			}
			for _, src := range [][]byte{nil, encode(t, m, c.oid, format, c.stored)} {
				back, same := newOf(c.value), newOf(c.value)
				if _, scans := back.(sql.Scanner); src == nil && !scans {
					continue // pgx tries all of its types, in random order
				}
				err := m.Scan(c.oid, format, src, back)
				wantErr := plain.Scan(c.oid, format, src, same)
				if !reflect.DeepEqual(back, same) || (err == nil) != (wantErr == nil) {
					t.Errorf("%T from %q, format %d: %v, %v, want %v, %v", c.value, src, format, elem(back), err, elem(same), wantErr)
				}
			}
		}
	}
}

// Structs that pgx stores as the embedded ID.
type (
	deepID    struct{ orderID }
	machineID struct{ idtype.SnowflakeSI }
	pageID    struct{ idtype.UID60 }
	typedID   struct{ idtype.SnowflakeOf[shop] }
	parcelID  struct{ idtype.UUID }
	// pgx doesn't use these methods.
	longID  struct{ idtype.Snowflake }
	shortID struct{ idtype.Sno }
)

func (longID) AppendBinary(b []byte) ([]byte, error) { return append(b, make([]byte, 9)...), nil }
func (shortID) AppendText(b []byte) ([]byte, error)  { return append(b, "short"...), nil }

func TestStructs(t *testing.T) {
	m := newMap()
	for _, c := range []struct {
		oid         uint32
		value, same any
	}{
		{pgtype.Int8OID, orderID{snowflake}, snowflake}, {pgtype.Int8OID, deepID{orderID{snowflake}}, snowflake}, {pgtype.Int8OID, machineID{snowflakeSI}, snowflakeSI},
		{pgtype.Int8OID, pageID{uid60}, uid60}, {pgtype.Int8OID, typedID{7}, idtype.Snowflake(7)}, {pgtype.Int8OID, longID{snowflake}, snowflake}, {pgtype.UUIDOID, shortID{sno}, sno},
		{pgtype.UUIDOID, parcelID{uuid7}, uuid7}, {pgtype.UUIDOID, sqltypes.OptionalOf(customerID{sno}), sno}, {pgtype.UUIDOID, sql.Null[customerID]{V: customerID{sno}, Valid: true}, sno},
		{pgtype.Int8ArrayOID, []typedID{{7}}, []idtype.Snowflake{7}}, {pgtype.UUIDArrayOID, []customerID{{sno}}, []idtype.Sno{sno}},
		{pgtype.UUIDArrayOID, sqltypes.Array[customerID]{{sno}}, []idtype.Sno{sno}}, {pgtype.TextOID, sqltypes.TextOf(typedID{7}), sqltypes.TextOf(idtype.Snowflake(7))},
		{pgtype.TextOID, struct{ sqltypes.Text[idtype.Sno] }{sqltypes.TextOf(sno)}, sqltypes.TextOf(sno)},
	} {
		for _, format := range []int16{binaryFormat, textFormat} {
			want := encode(t, m, c.oid, format, c.same)
			if got := encode(t, m, c.oid, format, c.value); !bytes.Equal(got, want) {
				t.Errorf("%T as OID %d, format %d: %q, want %q", c.value, c.oid, format, got, want)
			}
			back := newOf(c.value)
			if err := m.Scan(c.oid, format, want, back); err != nil || !reflect.DeepEqual(elem(back), c.value) {
				t.Errorf("%T from OID %d, format %d: %v, %v", c.value, c.oid, format, elem(back), err)
			}
		}
	}
	// Text calls the method of the struct.
	if got := encode(t, m, pgtype.TextOID, binaryFormat, sqltypes.TextOf(shortID{sno})); string(got) != "short" {
		t.Errorf("the text of a struct with its own text: %q", got)
	}
	// A column of another type stores the struct's Value.
	for _, c := range []struct {
		value any
		want  string
	}{
		{customerID{sno}, sno.UUID().String()}, {prefixedID{sno}, "c_" + sno.String()}, {&prefixedID{sno}, "c_" + sno.String()}, {oddID{sno}, "c_" + sno.String()},
		{uuidTextID{sno}, sno.UUID().String()}, {stringID{snowflake}, snowflake.String()},
		{cachedID{sno, func() string { return "cached" }}, "cached"},
	} {
		if got := encode(t, m, pgtype.TextOID, textFormat, c.value); string(got) != c.want {
			t.Errorf("%T as text: %q, want %q", c.value, got, c.want)
		}
	}
	if b, err := m.Encode(pgtype.TextOID, textFormat, neverID{sno}, nil); !errors.Is(err, errNever) {
		t.Errorf("a struct whose Value fails, as text: %q, %v", b, err)
	}
}

// ID types with methods of pgx's interfaces, such as pgtype.TextValuer.
type (
	prefixID  struct{ idtype.Snowflake }
	packedID  struct{ idtype.Sno }
	pointedID struct{ idtype.Sno }
	numericID struct{ idtype.Sno }
	wideID    struct{ idtype.Snowflake }
	partsID   struct{ idtype.Sno }
)

func (id prefixID) TextValue() (pgtype.Text, error) {
	return pgtype.Text{String: "ord_" + id.String(), Valid: true}, nil
}
func (id packedID) BytesValue() ([]byte, error) { return id.Sno[:], nil }
func (id *pointedID) TextValue() (pgtype.Text, error) {
	return pgtype.Text{String: "p_" + id.String(), Valid: true}, nil
}
func (id numericID) Int64Value() (pgtype.Int8, error) {
	return pgtype.Int8{Int64: int64(id.Sno[9]), Valid: true}, nil
}
func (id wideID) UUIDValue() (pgtype.UUID, error) {
	return pgtype.UUID{Bytes: [16]byte{15: byte(id.Snowflake)}, Valid: true}, nil
}
func (partsID) Dimensions() []pgtype.ArrayDimension {
	return []pgtype.ArrayDimension{{Length: 2, LowerBound: 1}}
}
func (id partsID) Index(i int) any { return id.String()[i*8:][:8] }
func (partsID) IndexType() any     { return "" }

// If a struct that embeds an ID has pgx's method for another column type, pgx stores it
// there by that method.
func TestStructsWithPgxMethods(t *testing.T) {
	plain, m := pgtype.NewMap(), newMap()
	pgxcodec.Register(m)
	prefix, packed, pointed := prefixID{snowflake}, packedID{sno}, pointedID{sno}
	toPrefix, toPointed := &prefix, &pointed
	for oid, values := range map[uint32][]any{
		pgtype.TextOID:       {prefix, toPrefix, &toPrefix, toPointed, &toPointed, (*prefixID)(nil), (**prefixID)(nil)},
		pgtype.VarcharOID:    {prefix, toPrefix, toPointed},
		pgtype.BPCharOID:     {prefix, toPrefix, toPointed},
		pgtype.ByteaOID:      {packed, &packed},
		pgtype.Int8OID:       {numericID{sno}},
		pgtype.UUIDOID:       {wideID{7}},
		pgtype.TextArrayOID:  {[]prefixID{prefix}, []*prefixID{toPrefix, nil}, []*pointedID{toPointed}, partsID{sno}, &partsID{sno}},
		pgtype.ByteaArrayOID: {[]packedID{packed}},
	} {
		for _, value := range values {
			for _, format := range []int16{binaryFormat, textFormat} {
				if got, want := encode(t, m, oid, format, value), encode(t, plain, oid, format, value); !bytes.Equal(got, want) {
					t.Errorf("%T into OID %d, format %d: %q, want %q", value, oid, format, got, want)
				}
			}
		}
	}
}

// Encoding fails for a number outside the format's range, alone or in a slice.
func TestEncodeOutOfRange(t *testing.T) {
	m := newMap()
	refused := func(oid, array uint32, value, slice any) {
		t.Helper()
		for _, format := range []int16{binaryFormat, textFormat} {
			for oid, value := range map[uint32]any{oid: value, array: slice} {
				b, err := m.Encode(oid, format, value, nil)
				if !errors.Is(err, idtype.ErrRange) {
					t.Errorf("%T %v as OID %d, format %d: %q, %v, want an error", value, value, oid, format, b, err)
				}
			}
		}
		// As an argument of unknown type.
		for _, value := range []any{value, slice} {
			if b, err := m.Encode(0, textFormat, value, nil); !errors.Is(err, idtype.ErrRange) {
				t.Errorf("%T %v: %q, %v, want an error", value, value, b, err)
			}
		}
	}
	texts := func(value, slice any) { refused(pgtype.TextOID, pgtype.TextArrayOID, value, slice) }
	bigints := func(value, slice any) { refused(pgtype.Int8OID, pgtype.Int8ArrayOID, value, slice) }
	bigints(idtype.Snowflake(-1), []idtype.Snowflake{1, -1})
	one, bad := idtype.Snowflake(1), idtype.Snowflake(-1)
	bigints(&bad, []*idtype.Snowflake{&one, &bad})
	bigints(idtype.SnowflakeSI(1<<53), []idtype.SnowflakeSI{1, 1 << 53})
	bigints(idtype.UID60(1<<60), []idtype.UID60{1, 1 << 60})
	bigints(sqltypes.OptionalOf(idtype.Snowflake(-1)), []sqltypes.Optional[idtype.Snowflake]{{ID: -1}})
	texts(sqltypes.TextOf(idtype.Snowflake(-1)), []sqltypes.Text[idtype.Snowflake]{{ID: -1}})
	texts(sqltypes.TextOf(idtype.SnowflakeSI(-1)), []sqltypes.Text[idtype.SnowflakeSI]{{ID: -1}})
	texts(sqltypes.TextOf(idtype.UID60(-1)), []sqltypes.Text[idtype.UID60]{{ID: -1}})
	texts(sqltypes.TextOf(idtype.Spread64(0x0400)), []sqltypes.Text[idtype.Spread64]{{ID: 0x0400}})

	// A Spread64 with reserved bits can be read from bigint and written back.
	for _, format := range []int16{binaryFormat, textFormat} {
		var id idtype.Spread64
		var own visitID
		src := encode(t, m, pgtype.Int8OID, format, int64(0x0400))
		if err := m.Scan(pgtype.Int8OID, format, src, &id); err != nil || id != 0x0400 {
			t.Errorf("format %d: %v, %v", format, id, err)
		}
		if err := m.Scan(pgtype.Int8OID, format, src, &own); err != nil || own.Spread64 != 0x0400 {
			t.Errorf("format %d: %v, %v", format, own, err)
		}
		for _, value := range []any{id, &id, sqltypes.OptionalOf(id), own} {
			if got := encode(t, m, pgtype.Int8OID, format, value); !bytes.Equal(got, src) {
				t.Errorf("%T, format %d: %q, want %q", value, format, got, src)
			}
		}
	}
}
