package pgxcodec_test

import (
	"bytes"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/pgxcodec"
	"github.com/sortkey/sortkey/sqltypes"
)

// Types that embed an ID and change its behaviour or layout.
type (
	textColumnID  struct{ idtype.Snowflake }
	prefixedID    struct{ idtype.Sno }
	shortID       struct{ idtype.Sno }
	noID          struct{ idtype.Sno }
	negativeID    struct{ idtype.Snowflake }
	unscannableID struct{ idtype.Snowflake }
	pointerID     struct{ *idtype.Snowflake }
	definedID     idtype.Snowflake
	tenantID      struct {
		idtype.Snowflake
		Tenant int
	}
	deepID struct{ orderID }

	neverID     struct{ idtype.Sno }
	unparsedID  struct{ idtype.Snowflake }
	undecodedID struct{ idtype.Snowflake }
	unreadID    struct{ idtype.Snowflake }
	changedID   struct{ idtype.Snowflake }
	stringID    struct{ idtype.Snowflake }
	longID      struct{ idtype.Snowflake }
	brokenID    struct{ idtype.Snowflake }
	machineID   struct{ idtype.SnowflakeSI }
	pageID      struct{ idtype.UID60 }
	oddID       struct{ idtype.Sno }
	uuidTextID  struct{ idtype.Sno }
	cachedID    struct {
		idtype.Sno
		text func() string
	}
)

var errNever = errors.New("never")

func (id cachedID) Value() (driver.Value, error)       { return id.text(), nil }
func (neverID) Value() (driver.Value, error)           { return nil, errNever }
func (*unparsedID) UnmarshalText()                     {}
func (*undecodedID) UnmarshalBinary()                  {}
func (*unreadID) Scan(any) error                       { return errNever }
func (id *changedID) Scan(any) error                   { id.Snowflake = 1; return nil }
func (id stringID) Value() (driver.Value, error)       { return id.Snowflake.String(), nil }
func (stringID) AppendBinary(b []byte) ([]byte, error) { return append(b, make([]byte, 9)...), nil }
func (longID) AppendBinary(b []byte) ([]byte, error)   { return append(b, make([]byte, 9)...), nil }
func (brokenID) AppendBinary(b []byte) ([]byte, error) {
	return append(b, make([]byte, 8)...), errNever
}
func (id oddID) Value() (driver.Value, error) {
	if id.IsZero() {
		return id.Sno.Value()
	}
	return "c_" + id.String(), nil
}

func (textColumnID) GormDataType() string                { return "text" }
func (uuidTextID) GormDataType() string                  { return "text" }
func (id prefixedID) Value() (driver.Value, error)       { return "c_" + id.String(), nil }
func (shortID) AppendText(b []byte) ([]byte, error)      { return append(b, "short"...), nil }
func (noID) Value() (driver.Value, error)                { return nil, fmt.Errorf("never stored") }
func (id negativeID) Value() (driver.Value, error)       { return -int64(id.Snowflake), nil }
func (*unscannableID) Scan(int)                          {}
func (id definedID) IsZero() bool                        { return id == 0 }
func (id definedID) String() string                      { return idtype.Snowflake(id).String() }
func (id definedID) AppendText(b []byte) ([]byte, error) { return idtype.Snowflake(id).AppendText(b) }
func (id definedID) MarshalText() ([]byte, error)        { return idtype.Snowflake(id).MarshalText() }
func (id definedID) MarshalJSON() ([]byte, error)        { return idtype.Snowflake(id).MarshalJSON() }
func (id definedID) AppendBinary(b []byte) ([]byte, error) {
	return idtype.Snowflake(id).AppendBinary(b)
}
func (id definedID) Value() (driver.Value, error) { return idtype.Snowflake(id).Value() }
func (definedID) GormDataType() string            { return "bigint" }

func TestRegisterOwnRejects(t *testing.T) {
	for want, register := range map[string]func(*pgtype.Map) error{
		`register pgxcodec_test.textColumnID: its column type is "text", want bigint or uuid`: pgxcodec.RegisterOwn[textColumnID],
		`register pgxcodec_test.prefixedID: its Value method stores "c_`:                      pgxcodec.RegisterOwn[prefixedID],
		`register pgxcodec_test.shortID: encode pgxcodec_test.shortID: want 16 bytes of text`: pgxcodec.RegisterOwn[shortID],
		`register pgxcodec_test.noID: never stored`:                                           pgxcodec.RegisterOwn[noID],
		`register pgxcodec_test.negativeID: its Value method stores "-7"`:                     pgxcodec.RegisterOwn[negativeID],
		`*pgxcodec_test.unscannableID lacks the method Scan, UnmarshalText`:                   pgxcodec.RegisterOwn[unscannableID],
		`register pgxcodec_test.pointerID: *idtype.Snowflake is not a struct`:                 pgxcodec.RegisterOwn[pointerID],
		`register *pgxcodec_test.orderID: *pgxcodec_test.orderID is not a struct`:             pgxcodec.RegisterOwn[*orderID],
		`register pgxcodec_test.tenantID: pgxcodec_test.tenantID is not a struct`:             pgxcodec.RegisterOwn[tenantID],
		`register pgxcodec_test.definedID: pgxcodec_test.definedID is not a struct`:           pgxcodec.RegisterOwn[definedID],
		"*pgxcodec_test.unparsedID lacks the method Scan, UnmarshalText or UnmarshalBinary":   pgxcodec.RegisterOwn[unparsedID],
		"*pgxcodec_test.undecodedID lacks the method Scan, UnmarshalText or UnmarshalBinary":  pgxcodec.RegisterOwn[undecodedID],
		"register pgxcodec_test.neverID: never":                                               pgxcodec.RegisterOwn[neverID],
		"register pgxcodec_test.unreadID: never":                                              pgxcodec.RegisterOwn[unreadID],
		`an ID written as "0" is read back as 1`:                                              pgxcodec.RegisterOwn[changedID],
		"encode pgxcodec_test.stringID: want an int64 from its Value method, got string":      pgxcodec.RegisterOwn[stringID],
		`its Value method stores "c_` + "2222222222222229":                                    pgxcodec.RegisterOwn[oddID],
	} {
		m := pgtype.NewMap()
		if err := register(m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
		typ, _ := m.TypeForName("int8")
		if _, ok := typ.Codec.(pgtype.Int8Codec); !ok {
			t.Errorf("%s: the map has %T", want, typ.Codec)
		}
	}
}

// RegisterOwn accepts all embedded types, and wrong AppendBinary methods, for which the
// codec uses Value.
func TestRegisterOwnAccepts(t *testing.T) {
	m := pgtype.NewMap()
	err := errors.Join(pgxcodec.RegisterOwn[machineID](m), pgxcodec.RegisterOwn[pageID](m), pgxcodec.RegisterOwn[longID](m), pgxcodec.RegisterOwn[brokenID](m))
	if err != nil {
		t.Fatal(err)
	}
	want := encode(t, m, pgtype.Int8OID, binaryFormat, snowflake)
	for _, value := range []any{longID{snowflake}, brokenID{snowflake}} {
		if got := encode(t, m, pgtype.Int8OID, binaryFormat, value); !bytes.Equal(got, want) {
			t.Errorf("%T: %q, want %q", value, got, want)
		}
	}
}

// Own types stay registered when other types are registered or codecs are replaced.
// Domains that were registered earlier accept them.
func TestOwnTypesStay(t *testing.T) {
	s := &server{t: t, rows: domainRows, version: "18.0"}
	conn, err := s.connect(pgxcodec.AfterConnect)
	if err != nil {
		t.Fatal(err)
	}
	m := conn.TypeMap()
	check := func() {
		t.Helper()
		for _, c := range []struct {
			oid         uint32
			value, same any
		}{
			{pgtype.Int8OID, orderID{snowflake}, snowflake},
			{16401, orderID{snowflake}, snowflake},
			{16402, []orderID{{snowflake}}, []idtype.Snowflake{snowflake}},
			{pgtype.UUIDOID, &customerID{sno}, sno},
			{pgtype.Int8OID, deepID{orderID{snowflake}}, snowflake},
			{16405, sqltypes.TextOf(customerID{sno}), sqltypes.TextOf(sno)},
		} {
			viaCodec(t, c.value, m.PlanEncode(c.oid, binaryFormat, c.value))
			if got, want := encode(t, m, c.oid, binaryFormat, c.value), encode(t, m, c.oid, binaryFormat, c.same); !bytes.Equal(got, want) {
				t.Errorf("%T as OID %d: %q, want %q", c.value, c.oid, got, want)
			}
		}
	}
	for _, register := range []func(*pgtype.Map) error{pgxcodec.RegisterOwn[orderID], pgxcodec.RegisterOwn[customerID], pgxcodec.RegisterOwn[orderID], pgxcodec.RegisterOwn[idtype.Sno], pgxcodec.RegisterOwn[deepID]} {
		if err := register(m); err != nil {
			t.Fatal(err)
		}
	}
	check()
	registerGoogle(m)
	pgxcodec.Register(m)
	check()

	// Other connections don't have the type.
	other := pgtype.NewMap()
	pgxcodec.Register(other)
	if plan := fmt.Sprintf("%T", other.PlanEncode(pgtype.Int8OID, binaryFormat, orderID{})); strings.HasPrefix(plan, "pgxcodec.") {
		t.Errorf("an unregistered type's plan is %s", plan)
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
// there by that method. Other column types reject it.
func TestOwnTypesWithPgxMethods(t *testing.T) {
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
	for _, c := range []struct {
		oid   uint32
		value any
	}{
		{pgtype.ByteaOID, prefix}, {pgtype.UUIDOID, prefix}, {pgtype.TextOID, packed}, {pgtype.Int8OID, packed},
		{pgtype.TextOID, pointed}, {pgtype.ByteaOID, toPointed}, {pgtype.ByteaArrayOID, prefix}, {pgtype.TextArrayOID, prefix},
	} {
		if b, err := m.Encode(c.oid, binaryFormat, c.value, nil); err == nil || !strings.Contains(err.Error(), "pgxcodec: encode ") {
			t.Errorf("%T into OID %d: %q, %v, want an error", c.value, c.oid, b, err)
		}
	}
}

// A copied map shares the registered types. RegisterOwn sets the defaults on each.
func TestCopiedMap(t *testing.T) {
	m := pgtype.NewMap()
	pgxcodec.Register(m)
	other := m.Copy()
	for _, m := range []*pgtype.Map{m, other} {
		if err := pgxcodec.RegisterOwn[orderID](m); err != nil {
			t.Fatal(err)
		}
		if got := encode(t, m, 0, textFormat, []orderID{{7}}); string(got) != "{7}" {
			t.Errorf("an array without an OID: %q", got)
		}
	}
}

// A type loaded on one connection can be registered on others. Their maps then read a
// registry to which the first connection adds types concurrently.
func TestSharedTypes(t *testing.T) {
	a, b := pgtype.NewMap(), pgtype.NewMap()
	pgxcodec.Register(a)
	pgxcodec.Register(b)
	bigint, _ := a.TypeForName("int8")
	shared := &pgtype.Type{Name: "shared", OID: 99999, Codec: bigint.Codec}
	a.RegisterType(shared)
	b.RegisterType(shared)
	done := make(chan error)
	go func() { done <- pgxcodec.RegisterOwn[orderID](a) }()
	for range 100 {
		var n int32
		if err := b.Scan(99999, textFormat, []byte("7"), &n); err != nil || n != 7 {
			t.Errorf("%d, %v", n, err)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
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
	}
	texts := func(value, slice any) { refused(pgtype.TextOID, pgtype.TextArrayOID, value, slice) }
	bigints := func(value, slice any) { refused(pgtype.Int8OID, pgtype.Int8ArrayOID, value, slice) }
	bigints(idtype.Snowflake(-1), []idtype.Snowflake{1, -1})
	one, bad := idtype.Snowflake(1), idtype.Snowflake(-1)
	bigints(&bad, []*idtype.Snowflake{&one, &bad})
	bigints(idtype.SnowflakeSI(1<<53), []idtype.SnowflakeSI{1, 1 << 53})
	bigints(idtype.UID60(1<<60), []idtype.UID60{1, 1 << 60})
	bigints(orderID{-1}, []orderID{{-1}})
	bigints(sqltypes.OptionalOf(idtype.Snowflake(-1)), []sqltypes.Optional[idtype.Snowflake]{{ID: -1}})
	texts(sqltypes.TextOf(idtype.Snowflake(-1)), []sqltypes.SnowflakeText{{ID: -1}})
	texts(sqltypes.TextOf(idtype.SnowflakeSI(-1)), []sqltypes.SnowflakeSIText{{ID: -1}})
	texts(sqltypes.TextOf(idtype.UID60(-1)), []sqltypes.UID60Text{{ID: -1}})
	texts(sqltypes.TextOf(idtype.Spread64(0x0400)), []sqltypes.Spread64Text{{ID: 0x0400}})

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

// An ID type of the caller's own keeps the IDs of a table apart from others.
func ExampleRegisterOwn() {
	type OrderID struct{ idtype.Snowflake }

	m := pgtype.NewMap() // of a connection: conn.TypeMap(), in AfterConnect
	if err := pgxcodec.RegisterOwn[OrderID](m); err != nil {
		fmt.Println(err)
	}
	b, _ := m.Encode(pgtype.Int8ArrayOID, pgtype.TextFormatCode, []OrderID{{132271570944274432}}, nil)
	fmt.Printf("%s\n", b)
	// Output: {132271570944274432}
}
