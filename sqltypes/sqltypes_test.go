package sqltypes_test

import (
	"database/sql"
	"database/sql/driver"
	"encoding"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/internal/reflecttest"
	"github.com/sortkey/sortkey/sqltypes"
)

// An orderID is a caller's own ID type.
type orderID struct{ idtype.Snowflake }

var (
	snowflake = idtype.Snowflake(132271570944274432)
	order     = orderID{snowflake}
	uid60     = idtype.Must(idtype.ParseUID60("xinaS8QBh"))
	spread64  = idtype.Must(idtype.ParseSpread64("cb54ecf2840a0015"))
	sno       = idtype.Must(idtype.ParseSno("brpk4q72xwf2m63l"))
	snoRaw, _ = sno.MarshalBinary()
)

// A value is of a type of this package.
type value interface {
	IsZero() bool
	fmt.Stringer
	encoding.TextAppender
	encoding.TextMarshaler
	json.Marshaler
	driver.Valuer
	GormDataType() string
}

// A target is a pointer to a value.
type target interface {
	sql.Scanner
	json.Unmarshaler
	encoding.TextUnmarshaler
	UnmarshalParam(string) error
	Bind(string) error
}

var (
	ptr   = reflecttest.Ptr
	elem  = reflecttest.Elem
	newOf = reflecttest.NewOf
)

// A scan is a test case: Scan(src) returns the value want, or an error that wraps
// the sentinel want.
type scan struct{ src, want any }

// testType tests all methods of type V with the value v, and Scan with scans.
func testType[V sqltypes.ID](t *testing.T, v V, text, jsonText string, sqlValue driver.Value, gorm string, scans []scan) {
	t.Helper()
	testMethods(t, v, text, jsonText, sqlValue, gorm, append(scans, scan{embedder[V]{v}, v}, scan{&embedder[V]{v}, v}, scan{sql.Null[V]{V: v, Valid: true}, v},
		scan{failing[V]{}, os.ErrDeadlineExceeded}, scan{&failing[V]{}, os.ErrDeadlineExceeded}))
}

// testMethods is testType without a type parameter: the compiler makes a generic function once
// per type.
func testMethods(t *testing.T, v value, text, jsonText string, sqlValue driver.Value, gorm string, scans []scan) {
	t.Helper()
	zero := elem(newOf(v)).(value)
	if v.IsZero() || !zero.IsZero() {
		t.Errorf("%T: IsZero is wrong", v)
	}
	if got, err := v.Value(); err != nil || !reflect.DeepEqual(got, sqlValue) {
		t.Errorf("%T: Value = %#v, %v, want %#v", v, got, err, sqlValue)
	}
	if got := v.GormDataType(); got != gorm {
		t.Errorf("%T: GormDataType = %q, want %q", v, got, gorm)
	}
	if got := v.String(); got != text {
		t.Errorf("%T: String = %q, want %q", v, got, text)
	}
	if got, err := v.MarshalText(); err != nil || string(got) != text {
		t.Errorf("%T: MarshalText = %q, %v, want %q", v, got, err, text)
	}
	if got, err := v.AppendText([]byte("x")); err != nil || string(got) != "x"+text {
		t.Errorf("%T: AppendText = %q, %v, want %q", v, got, err, "x"+text)
	}
	if got, err := json.Marshal(v); err != nil || string(got) != jsonText {
		t.Errorf("%T: JSON = %s, %v, want %s", v, got, err, jsonText)
	}
	if got, err := json.Marshal(zero); err != nil || string(got) != "null" {
		t.Errorf("%T: JSON of zero = %s, %v, want null", v, got, err)
	}
	if got, want := v.(interface{ JSONSchemaAlias() any }).JSONSchemaAlias(), reflect.ValueOf(v).FieldByName("ID").Interface(); got != want {
		t.Errorf("%T: JSONSchemaAlias = %v, want the ID %v", v, got, want)
	}
	// JSON uses the text of a map key.
	if got, err := json.Marshal(reflecttest.MapOf(v, 1)); err != nil || string(got) != `{"`+text+`":1}` {
		t.Errorf("%T: JSON of a map = %s, %v", v, got, err)
	}

	back := newOf(v)
	if err := json.Unmarshal([]byte(jsonText), back); err != nil || elem(back) != v {
		t.Errorf("%T: UnmarshalJSON(%s) = %v, %v", v, jsonText, elem(back), err)
	}
	if err := json.Unmarshal([]byte("null"), back); err != nil || elem(back) != zero {
		t.Errorf("%T: UnmarshalJSON(null) = %v, %v", v, elem(back), err)
	}
	// JSON that Postgres makes of the column.
	columnJSON := []any{sqlValue}
	switch sqlValue := sqlValue.(type) {
	case []byte:
		columnJSON = []any{`\x` + hex.EncodeToString(sqlValue)}
	case string:
		if gorm == "text" {
			columnJSON = append(columnJSON, sqlValue+"  ") // a char(n)
		}
	}
	for _, value := range columnJSON {
		src, _ := json.Marshal(value)
		back := newOf(v)
		if err := json.Unmarshal(src, back); err != nil || elem(back) != v {
			t.Errorf("%T: UnmarshalJSON(%s) = %v, %v", v, src, elem(back), err)
		}
	}
	u := ptr(v).(target)
	for _, bad := range []string{`"!"`, `"\\x00"`, `"\\x4e6f2160a0ff9a0a103"`, `"\\x4e6f2160a0ff9a0a1033zz"`, `"4e6f2160a0ff9a0a1033"`, `{}`, `1.5`, `"`, `true`, `[]`} {
		if err := u.UnmarshalJSON([]byte(bad)); err == nil || elem(u) != v {
			t.Errorf("%T: UnmarshalJSON(%s) = %v, %v, want an error and no change", v, bad, elem(u), err)
		}
	}
	for name, unmarshal := range map[string]func(target, string) error{
		"UnmarshalText":  func(u target, s string) error { return u.UnmarshalText([]byte(s)) },
		"UnmarshalParam": target.UnmarshalParam,
		"Bind":           target.Bind,
	} {
		u := newOf(v).(target)
		if err := unmarshal(u, text); err != nil || elem(u) != v {
			t.Errorf("%T: %s(%q) = %v, %v", v, name, text, elem(u), err)
		}
		for _, bad := range []string{text + " ", " " + text, text + "\n", strings.Repeat("z", 40), "-"} {
			if err := unmarshal(u, bad); err == nil || elem(u) != v {
				t.Errorf("%T: %s(%q) = %v, %v, want an error and no change", v, name, bad, elem(u), err)
			}
		}
	}

	// ent's CreateBulk calls id.Scan(&id) once the rows are committed.
	same := ptr(v).(target)
	if err := same.Scan(same); err != nil || elem(same) != v {
		t.Errorf("%T: id.Scan(&id) = %v, %v", v, elem(same), err)
	}
	scans = append(scans, scan{sqlValue, v}, scan{v, v}, scan{ptr(v), v},
		scan{endless{}, idtype.ErrSyntax}, scan{sql.NullString{String: text, Valid: true}, idtype.ErrSyntax}, scan{1.5, idtype.ErrSyntax}, scan{true, idtype.ErrSyntax})
	for _, s := range scans {
		// A successful scan must change the destination, a failed one must not.
		before := v
		if s.want == v {
			before = zero
		}
		dst := ptr(before).(target)
		err := dst.Scan(s.src)
		switch want := s.want.(type) {
		case error:
			if !errors.Is(err, want) || elem(dst) != before {
				t.Errorf("%T: Scan(%#v) = %v, %v, want no change and %v", v, s.src, elem(dst), err, want)
			}
		default:
			if err != nil || elem(dst) != want {
				t.Errorf("%T: Scan(%#v) = %v, %v, want %v", v, s.src, elem(dst), err, want)
			}
		}
	}
}

// An embedder is a caller's type that holds an ID and returns the ID's Value.
type embedder[V sqltypes.ID] struct{ id V }

func (e embedder[V]) Value() (driver.Value, error) { return e.id.Value() }

// A failing holds an ID, but its Value fails.
type failing[V any] struct{ ID V }

func (failing[V]) Value() (driver.Value, error) { return nil, os.ErrDeadlineExceeded }

// An endless is a driver.Valuer whose Value returns itself.
type endless struct{}

func (e endless) Value() (driver.Value, error) { return e, nil }

// Scan treats nil pointers as NULL. It rejects an ID of another format or column
// type, even if the text or number of that ID is valid for the destination.
func TestScanValuers(t *testing.T) {
	digits := idtype.Must(idtype.ParseUID60("1234567890"))
	for _, tt := range []struct {
		dst  sql.Scanner
		srcs []any
		want error
	}{
		{new(sqltypes.Text[idtype.Snowflake]), []any{(*sqltypes.Text[idtype.Snowflake])(nil), sqltypes.Optional[sqltypes.Text[idtype.Snowflake]]{}, (*failing[int])(nil), sql.Null[sqltypes.Text[idtype.Snowflake]]{}}, idtype.ErrNull},
		{new(sqltypes.SnoBytes), []any{(*sqltypes.SnoBytes)(nil), sqltypes.Optional[sqltypes.SnoBytes]{}, (*failing[int])(nil)}, idtype.ErrNull},
		{new(sqltypes.Text[idtype.Snowflake]), []any{
			sqltypes.TextOf(digits), sqltypes.OptionalOf(sqltypes.TextOf(digits)), struct{ sqltypes.Text[idtype.UID60] }{sqltypes.TextOf(digits)},
			sql.Null[sqltypes.Text[idtype.UID60]]{V: sqltypes.TextOf(digits), Valid: true}, sql.Null[*sqltypes.Text[idtype.UID60]]{V: new(sqltypes.TextOf(digits)), Valid: true}, sql.Null[any]{V: sqltypes.TextOf(digits), Valid: true},
			embedder[sqltypes.Text[idtype.UID60]]{sqltypes.TextOf(digits)}, sqltypes.TextOf(idtype.SnowflakeSI(8193)), snowflake, &snowflake, sqltypes.OptionalOf(snowflake), digits,
		}, idtype.ErrSyntax},
		{new(sqltypes.Text[idtype.UID60]), []any{
			sql.Null[sqltypes.Text[idtype.Snowflake]]{V: sqltypes.TextOf(idtype.Snowflake(1234567890)), Valid: true}, sql.Null[*sqltypes.Text[idtype.Snowflake]]{V: new(sqltypes.TextOf(idtype.Snowflake(1234567890))), Valid: true},
		}, idtype.ErrSyntax},
		{new(sqltypes.Optional[idtype.UID60]), []any{sqltypes.TextOf(digits), sqltypes.OptionalOf(sqltypes.TextOf(digits))}, idtype.ErrSyntax}, // the text would parse as the decimal of another ID
		{new(sqltypes.Optional[idtype.Snowflake]), []any{sqltypes.TextOf(snowflake), sqltypes.Optional[idtype.UID60]{}, sql.NullInt64{}}, idtype.ErrSyntax},
		{new(sqltypes.Text[idtype.Snowflake]), []any{struct {
			*sqltypes.Text[idtype.Snowflake]
		}{}, &struct {
			*sqltypes.Text[idtype.Snowflake]
		}{}}, idtype.ErrNull},
		{new(sqltypes.SnoBytes), []any{struct{ *sqltypes.SnoBytes }{}}, idtype.ErrNull},
		{new(sqltypes.Text[idtype.Sno]), []any{sqltypes.TextOf(idtype.Must(idtype.ParseSpread64("2222222222220222"))), sno, &sno, sqltypes.OptionalOf(sno), sqltypes.SnoBytesOf(sno)}, idtype.ErrSyntax},
		{new(sqltypes.SnoBytes), []any{sno, &sno, sqltypes.TextOf(sno), sqltypes.OptionalOf(sno)}, idtype.ErrSyntax},
		{new(sqltypes.Optional[idtype.Snowflake]), []any{digits, &digits, sqltypes.OptionalOf(digits), idtype.SnowflakeSI(8193), sqltypes.TextOf(idtype.SnowflakeSI(8193))}, idtype.ErrSyntax},
		{new(sqltypes.Optional[idtype.Snowflake]), []any{idtype.Snowflake(-1), sqltypes.OptionalOf(idtype.Snowflake(-1))}, idtype.ErrRange},
		{new(sqltypes.Optional[idtype.Sno]), []any{snowflake, sqltypes.OptionalOf(snowflake)}, idtype.ErrSyntax},
		{new(sqltypes.Optional[sqltypes.Text[idtype.Snowflake]]), []any{sqltypes.TextOf(digits), sqltypes.OptionalOf(sqltypes.TextOf(digits)), snowflake}, idtype.ErrSyntax},
	} {
		for _, src := range tt.srcs {
			if err := tt.dst.Scan(src); !errors.Is(err, tt.want) || !tt.dst.(interface{ IsZero() bool }).IsZero() {
				t.Errorf("%T: Scan(%T) = %v, %v, want no change and %v", tt.dst, src, tt.dst, err, tt.want)
			}
		}
	}
	for _, src := range []any{(*sqltypes.Optional[idtype.Snowflake])(nil), (*idtype.Snowflake)(nil), sqltypes.Optional[idtype.Snowflake]{}, idtype.Snowflake(0), sql.Null[idtype.Snowflake]{}} {
		v := sqltypes.OptionalOf(snowflake)
		if err := v.Scan(src); err != nil || !v.IsZero() {
			t.Errorf("Scan(%T) = %v, %v, want no ID", src, v, err)
		}
	}
	// An ID of the same format.
	v, text := sqltypes.Optional[idtype.Snowflake]{}, sqltypes.Text[idtype.Snowflake]{}
	for _, src := range []any{snowflake, &snowflake, order, &order, sqltypes.OptionalOf(order), sql.Null[any]{V: order, Valid: true}} {
		if err := v.Scan(src); err != nil || v.ID != snowflake {
			t.Errorf("Scan(%T) = %v, %v", src, v, err)
		}
		v = sqltypes.Optional[idtype.Snowflake]{}
	}
	for _, src := range []any{sqltypes.OptionalOf(sqltypes.TextOf(snowflake)), struct {
		sqltypes.Text[idtype.Snowflake]
	}{sqltypes.TextOf(snowflake)},
		sqltypes.TextOf(order), sql.Null[*sqltypes.Text[idtype.Snowflake]]{V: new(sqltypes.TextOf(snowflake)), Valid: true}} {
		if err := text.Scan(src); err != nil || text.ID != snowflake {
			t.Errorf("Scan(%T) = %v, %v", src, text, err)
		}
		text = sqltypes.Text[idtype.Snowflake]{}
	}
}

func TestText(t *testing.T) {
	number := sqltypes.TextOf(snowflake)
	testType(t, number, "132271570944274432", `"132271570944274432"`, "132271570944274432", "text", []scan{
		{[]byte("132271570944274432"), number},
		{"132271570944274432  ", number},
		{"0", sqltypes.Text[idtype.Snowflake]{}},
		{int64(132271570944274432), idtype.ErrSyntax},
		{"-1", idtype.ErrSyntax},
		{"9223372036854775808", idtype.ErrRange},
		{"", idtype.ErrSyntax},
		{"  ", idtype.ErrSyntax},
		{nil, idtype.ErrNull},
		{[]byte(nil), idtype.ErrNull},
	})
	testType(t, sqltypes.TextOf(idtype.SnowflakeSI(8193)), "8193", `8193`, "8193", "text", []scan{
		{"9007199254740992", idtype.ErrRange},
		{nil, idtype.ErrNull},
	})
	short := sqltypes.TextOf(uid60) // 9 characters: char(10) pads it
	testType(t, short, "xinaS8QBh", `"xinaS8QBh"`, "xinaS8QBh", "text", []scan{
		{"xinaS8QBh ", short},
		{[]byte("xinaS8QBh "), short},
		{"xiAnaS8QBh", short},
		{" xinaS8QBh", idtype.ErrSyntax},
		{"xinaS8QBh\t", idtype.ErrSyntax},
		{[]byte("xinaS8QBh\t"), idtype.ErrSyntax},
		{"xinaS8QBh\x00", idtype.ErrSyntax},
		{"xinaS 8QBh", idtype.ErrSyntax},
		{nil, idtype.ErrNull},
	})
	testType(t, sqltypes.TextOf(spread64), "cb54ecf2840a0015", `"cb54ecf2840a0015"`, "cb54ecf2840a0015", "text", []scan{
		{"CB54ECF2840A0015", idtype.ErrSyntax},
		{"cb54ecf2840afc15", idtype.ErrRange},
		{"-1", idtype.ErrSyntax},
		{nil, idtype.ErrNull},
	})
	text := sqltypes.TextOf(sno)
	testType(t, text, "brpk4q72xwf2m63l", `"brpk4q72xwf2m63l"`, "brpk4q72xwf2m63l", "text", []scan{
		{[]byte("brpk4q72xwf2m63l"), text},
		{"brpk4q72xwf2m63l    ", text},
		{"2222222222222222", sqltypes.Text[idtype.Sno]{}},
		{"6272706b-3471-3732-7877-66326d36336c", idtype.ErrSyntax}, // a UUID is not the ID's text
		{"BRPK4Q72XWF2M63L", idtype.ErrSyntax},
		{snoRaw, idtype.ErrSyntax},
		{nil, idtype.ErrNull},
		{[]byte(nil), idtype.ErrNull},
	})
	own := sqltypes.TextOf(order)
	testType(t, own, "132271570944274432", `"132271570944274432"`, "132271570944274432", "text", []scan{
		{"132271570944274432 ", own},
		{"x", idtype.ErrSyntax},
		{nil, idtype.ErrNull},
	})
}

func TestSnoBytes(t *testing.T) {
	v := sqltypes.SnoBytesOf(sno)
	testType(t, v, "brpk4q72xwf2m63l", `"brpk4q72xwf2m63l"`, snoRaw, "bytea", []scan{
		{make([]byte, 10), sqltypes.SnoBytes{}},
		{snoRaw[:9], idtype.ErrSyntax},
		{append(snoRaw[:10:10], 0), idtype.ErrSyntax},
		{[]byte{}, idtype.ErrSyntax},
		{[]byte("brpk4q72xwf2m63l"), idtype.ErrSyntax}, // 16 bytes
		{string(snoRaw), idtype.ErrSyntax},
		{"brpk4q72xwf2m63l", idtype.ErrSyntax},
		{nil, idtype.ErrNull},
		{[]byte(nil), idtype.ErrNull},
	})
}

func TestOptional(t *testing.T) {
	number := sqltypes.OptionalOf(snowflake)
	testType(t, number, "132271570944274432", `"132271570944274432"`, int64(132271570944274432), "bigint", []scan{
		{"132271570944274432", number},
		{int64(0), sqltypes.Optional[idtype.Snowflake]{}},
		{nil, sqltypes.Optional[idtype.Snowflake]{}},
		{[]byte(nil), sqltypes.Optional[idtype.Snowflake]{}},
		{int64(-1), idtype.ErrRange},
		{"", idtype.ErrSyntax},
	})
	uuid := sqltypes.OptionalOf(sno)
	testType(t, uuid, "brpk4q72xwf2m63l", `"brpk4q72xwf2m63l"`, "6272706b-3471-3732-7877-66326d36336c", "uuid", []scan{
		{snoRaw, uuid},
		{nil, sqltypes.Optional[idtype.Sno]{}},
		{"c0ffee00-0000-4000-8000-000000000000", idtype.ErrNotSno},
	})
	text := sqltypes.OptionalOf(sqltypes.TextOf(sno))
	testType(t, text, "brpk4q72xwf2m63l", `"brpk4q72xwf2m63l"`, "brpk4q72xwf2m63l", "text", []scan{
		{[]byte("brpk4q72xwf2m63l "), text},
		{nil, sqltypes.Optional[sqltypes.Text[idtype.Sno]]{}},
	})
	bytes := sqltypes.OptionalOf(sqltypes.SnoBytesOf(sno))
	testType(t, bytes, "brpk4q72xwf2m63l", `"brpk4q72xwf2m63l"`, snoRaw, "bytea", []scan{
		{nil, sqltypes.Optional[sqltypes.SnoBytes]{}},
	})
	own := sqltypes.OptionalOf(order)
	testType(t, own, "132271570944274432", `"132271570944274432"`, int64(132271570944274432), "bigint", []scan{
		{nil, sqltypes.Optional[orderID]{}},
		{int64(-1), idtype.ErrRange},
	})
}

func TestOptionalZero(t *testing.T) {
	var none sqltypes.Optional[idtype.Sno]
	if v, err := none.Value(); v != nil || err != nil {
		t.Errorf("Value = %v, %v, want NULL", v, err)
	}
	if s := none.String(); s != "" {
		t.Errorf("String = %q, want none", s)
	}
	if b, err := none.MarshalText(); err != nil || b == nil || len(b) != 0 {
		t.Errorf("MarshalText = %#v, %v, want empty", b, err)
	}
	id := sqltypes.OptionalOf(sno)
	if err := id.UnmarshalText(nil); err != nil || id != none {
		t.Errorf("UnmarshalText = %v, %v, want none", id, err)
	}
	id = sqltypes.OptionalOf(sno)
	if err := id.UnmarshalParam(""); err != nil || id != none {
		t.Errorf("UnmarshalParam = %v, %v, want none", id, err)
	}
	id = sqltypes.OptionalOf(sno)
	if err := id.Bind(""); err != nil || id != none {
		t.Errorf("Bind = %v, %v, want none", id, err)
	}
	// omitzero calls IsZero.
	b, err := json.Marshal(struct {
		Parent sqltypes.Optional[idtype.Sno] `json:"parent,omitzero"`
	}{})
	if err != nil || string(b) != "{}" {
		t.Errorf("JSON = %s, %v", b, err)
	}
}

// Error messages name the value and the remedy.
func TestMessages(t *testing.T) {
	for _, c := range []struct {
		dst  sql.Scanner
		src  any
		want string
	}{
		{new(sqltypes.Text[idtype.Snowflake]), nil, ": want the text of an idtype.Snowflake; scan a nullable column into "},
		{new(sqltypes.SnoBytes), nil, "sqltypes: scan NULL into sqltypes.SnoBytes: want the 10 bytes of an idtype.Sno; scan a nullable column into *sqltypes.SnoBytes, sql.Null[sqltypes.SnoBytes] or sqltypes.Optional[sqltypes.SnoBytes]: "},
		{new(sqltypes.SnoBytes), int64(1), "sqltypes: scan a column value of type int64 into sqltypes.SnoBytes: want the 10 bytes of an idtype.Sno; "},
	} {
		if err := c.dst.Scan(c.src); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%T: Scan(%v): %v, want %q", c.dst, c.src, err, c.want)
		}
	}
}

// Value fails for a number outside the format's range, which Scan would reject.
func TestValueOutOfRange(t *testing.T) {
	for _, v := range []driver.Valuer{
		sqltypes.TextOf(idtype.Snowflake(-1)), sqltypes.TextOf(idtype.SnowflakeSI(1 << 53)), sqltypes.TextOf(idtype.UID60(-1)),
		sqltypes.TextOf(idtype.Spread64(0x0400)), sqltypes.OptionalOf(idtype.Snowflake(-1)), sqltypes.OptionalOf(sqltypes.TextOf(idtype.Snowflake(-1))),
	} {
		if got, err := v.Value(); got != nil || !errors.Is(err, idtype.ErrRange) {
			t.Errorf("%T: %v, %v, want ErrRange", v, got, err)
		}
	}
}

// A bareID implements ID, without the pointer methods. Its zero value marshals to
// JSON 0 instead of null.
type bareID struct{ n int }

func (id bareID) IsZero() bool                     { return id.n == 0 }
func (bareID) String() string                      { return "" }
func (bareID) AppendText(b []byte) ([]byte, error) { return b, nil }
func (bareID) MarshalText() ([]byte, error)        { return nil, nil }
func (bareID) MarshalJSON() ([]byte, error)        { return []byte("0"), nil }
func (bareID) Value() (driver.Value, error)        { return nil, nil }
func (bareID) GormDataType() string                { return "" }

// A textID lacks Scan. A scannedID has Scan and no other pointer method. Both change
// their receiver when they fail.
type (
	textID    struct{ bareID }
	scannedID struct{ bareID }
)

func (id *textID) UnmarshalText([]byte) error { id.n++; return errors.New("no") }
func (id *textID) UnmarshalJSON([]byte) error { id.n++; return errors.New("no") }
func (id *scannedID) Scan(any) error          { id.n++; return errors.New("no") }

// If a method of a type outside idtype fails, the receiver is restored. If the
// type lacks a method, the error names it.
func TestForeignTypes(t *testing.T) {
	text, optional := sqltypes.TextOf(textID{bareID{1}}), sqltypes.OptionalOf(textID{bareID{1}})
	scannedText, scanned := sqltypes.TextOf(scannedID{bareID{1}}), sqltypes.OptionalOf(scannedID{bareID{1}})
	for _, c := range []struct {
		err  error
		want string
	}{
		{text.UnmarshalText([]byte("1")), "no"},
		{optional.UnmarshalJSON([]byte("1")), "no"},
		{optional.Scan("1"), "sqltypes: use sqltypes_test.textID as an ID: *sqltypes_test.textID has no method Scan; declare it"},
		{scannedText.Scan("1"), "has no method UnmarshalText; "},
		{scanned.UnmarshalJSON([]byte("1")), "has no method UnmarshalJSON; "},
		{scanned.Scan("1"), "no"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("error %v, want %q", c.err, c.want)
		}
	}
	if text.ID.n != 1 || optional.ID.n != 1 || scannedText.ID.n != 1 || scanned.ID.n != 1 {
		t.Errorf("failed calls changed their receivers: %v, %v, %v, %v", text, optional, scannedText, scanned)
	}
	if b, err := json.Marshal(sqltypes.Optional[textID]{}); err != nil || string(b) != "null" {
		t.Errorf("JSON = %s, %v", b, err)
	}
	if err := optional.UnmarshalJSON([]byte("null")); err != nil || !optional.IsZero() {
		t.Errorf("null: %v, %v", optional, err)
	}
}

// A scanned value is written back as it was read, except for alternative spellings
// that the documentation of the type names.
func FuzzScan(f *testing.F) {
	f.Add("xinaS8QBh ", false)             // padded by char(10)
	f.Add("xiAnaS8QBh", true)              // the format's padded form
	f.Add("brpk4q72xwf2m63l", true)        //
	f.Add("cb54ecf2840a0015", false)       //
	f.Add("132271570944274432", true)      //
	f.Add(string(snoRaw), true)            // 10 bytes
	f.Add("9007199254740992", false)       // past SnowflakeSI
	f.Add("brpk4q72xwf2m63l\u00a0", false) // a no-break space
	f.Add("2222222222222222", false)       // the zero ID, which an Optional stores as NULL
	f.Fuzz(func(t *testing.T, s string, asBytes bool) {
		var src any = s
		if asBytes {
			src = []byte(s)
		}
		for _, zero := range []any{sqltypes.Text[idtype.Snowflake]{}, sqltypes.Text[idtype.SnowflakeSI]{}, sqltypes.Text[idtype.UID60]{}, sqltypes.Text[idtype.Spread64]{}, sqltypes.Text[idtype.Sno]{}, sqltypes.Optional[sqltypes.Text[idtype.Sno]]{}, sqltypes.SnoBytes{}} {
			fuzzScan(t, zero, src, s)
		}
	})
}

func fuzzScan(t *testing.T, zero, src any, s string) {
	t.Helper()
	target := newOf(zero).(target)
	err := target.Scan(src)
	dst := elem(target).(value)
	if err != nil {
		if dst != zero {
			t.Fatalf("%T: Scan(%q) failed, but changed its receiver", dst, s)
		}
		return
	}
	got, err := dst.Value()
	if err != nil {
		t.Fatalf("%T: scanned from %q, but Value failed: %v", dst, s, err)
	}
	want := strings.TrimRight(s, " ")
	switch dst.(type) {
	case sqltypes.Optional[sqltypes.Text[idtype.Sno]]:
		if dst.IsZero() && got == nil {
			return
		}
	case sqltypes.SnoBytes:
		want, got = s, string(got.([]byte))
	case sqltypes.Text[idtype.UID60]:
		if len(want) == 10 && want[2] == 'A' { // the form padded to 10
			return
		}
	}
	if got != want {
		t.Fatalf("%T: scanned from %q, Value = %q", dst, s, got)
	}
}
