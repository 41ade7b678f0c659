package sqltypes_test

import (
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/sqltypes"
)

// testArray tests an Array of ids, whose Value is literal. More are other literals of it.
func testArray[T sqltypes.ID](t *testing.T, gorm, literal, jsonText string, ids []T, more ...string) {
	t.Helper()
	testArrayMethods(t, gorm, literal, jsonText, sqltypes.ArrayOf(ids), sqltypes.Array[T]{ids[0]}, more)
}

// testArrayMethods gets the Array, and another one to scan into.
func testArrayMethods(t *testing.T, gorm, literal, jsonText string, a interface {
	driver.Valuer
	GormDataType() string
}, other any, more []string) {
	t.Helper()
	if got := a.GormDataType(); got != gorm {
		t.Errorf("%T: GormDataType = %q, want %q", a, got, gorm)
	}
	if got, err := a.Value(); err != nil || got != literal {
		t.Errorf("%T: Value = %#v, %v, want %q", a, got, err, literal)
	}
	for _, src := range append(more, literal) {
		for _, src := range []any{src, []byte(src)} {
			got := ptr(other).(sql.Scanner)
			if err := got.Scan(src); err != nil || !reflect.DeepEqual(elem(got), a) {
				t.Errorf("%T: Scan(%q) = %v, %v, want %v", a, src, elem(got), err, a)
			}
		}
	}
	if got, err := json.Marshal(a); err != nil || string(got) != jsonText {
		t.Errorf("%T: JSON = %s, %v, want %s", a, got, err, jsonText)
	}
	back := newOf(a)
	if err := json.Unmarshal([]byte(jsonText), back); err != nil || !reflect.DeepEqual(elem(back), a) {
		t.Errorf("%T: from JSON: %v, %v, want %v", a, elem(back), err, a)
	}
}

func TestArray(t *testing.T) {
	testArray(t, "bigint[]", "{132271570944274432,7}", `["132271570944274432","7"]`, []idtype.Snowflake{snowflake, 7},
		`{"132271570944274432",7}`, "[0:1]={132271570944274432,7}", "[-3:-2]={132271570944274432,7}")
	testArray(t, "bigint[]", "{7}", "[7]", []idtype.SnowflakeSI{7})
	// The texts of these could be numbers of other IDs.
	testArray(t, "bigint[]", "{1234567890}", `["`+idtype.UID60(1234567890).String()+`"]`, []idtype.UID60{1234567890})
	testArray(t, "bigint[]", "{-3795148059624996843}", `["cb54ecf2840a0015"]`, []idtype.Spread64{spread64})
	testArray(t, "uuid[]", "{"+sno.UUID().String()+"}", `["brpk4q72xwf2m63l"]`, []idtype.Sno{sno})
	testArray(t, "uuid[]", "{017f22e2-79b0-7cc3-98c4-dc0c0c07398f}", `["017f22e2-79b0-7cc3-98c4-dc0c0c07398f"]`, []idtype.UUID{idtype.Must(idtype.ParseUUID("017f22e2-79b0-7cc3-98c4-dc0c0c07398f"))})
	testArray(t, "bigint[]", "{7}", `["shop_7"]`, []idtype.SnowflakeOf[shop]{7})
	testArray(t, "bigint[]", "{7}", `["shop_7"]`, []shopID{{7}})
	testArray(t, "uuid[]", "{"+sno.WithMeta('c').UUID().String()+"}", `["cus_`+sno.WithMeta('c').String()+`"]`, []idtype.SnoOf[customer]{idtype.SnoOf[customer](sno.WithMeta('c'))})
	testArray(t, "text[]", `{xinaS8QBh,"NULL"}`, `["xinaS8QBh","NULL"]`, []sqltypes.Text[idtype.UID60]{sqltypes.TextOf(uid60), sqltypes.TextOf(idtype.Must(idtype.ParseUID60("NULL")))})
	testArray(t, "bytea[]", `{"\\x09876543210fedcba987"}`, `["`+idtype.Sno{9, 0x87, 0x65, 0x43, 0x21, 0xf, 0xed, 0xcb, 0xa9, 0x87}.String()+`"]`,
		[]sqltypes.SnoBytes{sqltypes.SnoBytesOf(idtype.Sno{9, 0x87, 0x65, 0x43, 0x21, 0xf, 0xed, 0xcb, 0xa9, 0x87})})
	testArray(t, "bigint[]", "{7,NULL}", `["7",null]`, []sqltypes.Optional[idtype.Snowflake]{sqltypes.OptionalOf[idtype.Snowflake](7), {}}, "{7,null}")
	testArray(t, "text[]", `{"","a b","\"\\",nUll2,"nUll"}`, `["","a b","\"\\","nUll2","nUll"]`, []anyText{"", "a b", `"\`, "nUll2", "nUll"}, `{"","a\ b","\"\\","n\Ull2","nUll"}`)
}

// NULL and an empty array are different values.
// The memory for a scan is proportional to the number of elements.
func TestLongArray(t *testing.T) {
	for _, n := range []int{1000, 1_000_000} {
		text := make([]byte, 0, 20*n)
		for i := range n {
			text = strconv.AppendInt(append(text, ','), 1<<60+int64(i), 10)
		}
		text[0] = '{'
		text = append(text, '}')
		var ids sqltypes.Array[idtype.Snowflake]
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := ids.Scan(string(text)); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if perID := (after.TotalAlloc - before.TotalAlloc) / uint64(n); perID > 150 {
			t.Errorf("%d IDs: %d bytes allocated per ID, want at most 150", n, perID)
		}
		if len(ids) != n || ids[n-1] != idtype.Snowflake(1<<60)+idtype.Snowflake(n-1) {
			t.Errorf("%d IDs: got %d", n, len(ids))
		}
	}
}

func TestArrayZero(t *testing.T) {
	var null sqltypes.Array[idtype.Sno]
	if v, err := null.Value(); v != nil || err != nil {
		t.Errorf("Value = %v, %v, want NULL", v, err)
	}
	if v, err := (sqltypes.Array[idtype.Sno]{}).Value(); v != "{}" || err != nil {
		t.Errorf("Value = %v, %v, want {}", v, err)
	}
	for _, src := range []any{"{}", []byte("{}")} {
		a := sqltypes.Array[idtype.Sno]{sno}
		if err := a.Scan(src); err != nil || a == nil || len(a) > 0 {
			t.Errorf("Scan(%q) = %#v, %v", src, a, err)
		}
	}
	for _, src := range []any{nil, []byte(nil)} {
		a := sqltypes.Array[idtype.Sno]{sno}
		if err := a.Scan(src); err != nil || a != nil {
			t.Errorf("Scan(%#v) = %#v, %v", src, a, err)
		}
	}
}

func TestArrayErrors(t *testing.T) {
	for _, c := range []struct {
		src  any
		is   error
		want string
	}{
		{"", idtype.ErrSyntax, `sqltypes: scan "" into sqltypes.Array[idtype.Snowflake]: want the literal of a Postgres array of one dimension, such as {1,2}, got no brace; `},
		{"7", idtype.ErrSyntax, "got no brace"},
		{"{", idtype.ErrSyntax, "got an empty element"},
		{"{7", idtype.ErrSyntax, `got "" after element 0`},
		{"{7,}", idtype.ErrSyntax, "got an empty element"},
		{"{,7}", idtype.ErrSyntax, "got an empty element"},
		{"{7}}", idtype.ErrSyntax, `got "}}" after element 0`},
		{"{7} ", idtype.ErrSyntax, `got "} " after element 0`},
		{"{ 7}", idtype.ErrSyntax, "got an empty element"},
		{`{7"8"}`, idtype.ErrSyntax, `got "\"8\"}" after element 0`},
		{`{"8"7}`, idtype.ErrSyntax, `got "7}" after element 0`},
		{`{"8}`, idtype.ErrSyntax, "got a quote without an end"},
		{`{"8\`, idtype.ErrSyntax, "got a quote without an end"},
		{`{8\7}`, idtype.ErrSyntax, `got "\\7}" after element 0`},
		{"{{7}}", idtype.ErrSyntax, "got an array in an array"},
		{"[1:1][1:1]={{7}}", idtype.ErrSyntax, "got no brace"},
		{"[1:1]={{7}}", idtype.ErrSyntax, "got an array in an array"},
		{"[1]={7}", idtype.ErrSyntax, "got no brace"},
		{"[1:1]={}", idtype.ErrSyntax, "got an empty element"},
		{"[2:4]={7,8}", idtype.ErrSyntax, "got 2 elements"},
		{"[x:4]={7,8}", idtype.ErrSyntax, "got no brace"},
		{"{7,NULL}", idtype.ErrNull, "sqltypes: element 1 of sqltypes.Array[idtype.Snowflake]: want an ID, got NULL; use an Array of sqltypes.Optional: "},
		{"{+7}", idtype.ErrSyntax, `element 0 of sqltypes.Array[idtype.Snowflake]: want a bigint, got "+7"; `},
		{"{007}", idtype.ErrSyntax, "want a bigint"},
		{"{a}", idtype.ErrSyntax, "want a bigint"},
		{"{-7}", idtype.ErrRange, "element 0 of sqltypes.Array[idtype.Snowflake]: idtype: "},
		{"\x00\x00\x00\x01", idtype.ErrSyntax, "pgxcodec.Register"},
		{int64(7), idtype.ErrSyntax, "sqltypes: scan a column value of type int64 into sqltypes.Array[idtype.Snowflake]: want the literal"},
		{[]idtype.Snowflake{7}, idtype.ErrSyntax, "scan a column value of type []idtype.Snowflake"},
	} {
		a := sqltypes.Array[idtype.Snowflake]{7}
		if err := a.Scan(c.src); !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) || len(a) != 1 || a[0] != 7 {
			t.Errorf("Scan(%q) = %v, %v, want %q and no change", c.src, a, err, c.want)
		}
	}
	for _, src := range []string{`{09}`, `{"\\x0"}`, `{"\\x09"}`, `{"\\xzz"}`} {
		if err := new(sqltypes.Array[sqltypes.SnoBytes]).Scan(src); !errors.Is(err, idtype.ErrSyntax) {
			t.Errorf("Scan(%s): %v", src, err)
		}
	}
	for want, a := range map[string]interface{ Scan(any) error }{
		"*sqltypes_test.textID has no method Scan": &sqltypes.Array[textID]{},
		"no": &sqltypes.Array[scannedID]{},
	} {
		if err := a.Scan("{1}"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%T: %v, want %q", a, err, want)
		}
	}
	if v, err := (sqltypes.Array[idtype.Snowflake]{7, -1}).Value(); v != nil || !errors.Is(err, idtype.ErrRange) || !strings.HasPrefix(err.Error(), "sqltypes: element 1 of sqltypes.Array[idtype.Snowflake]: ") {
		t.Errorf("Value = %v, %v", v, err)
	}
	if v, err := (sqltypes.Array[floatID]{{}}).Value(); v != nil || err == nil || !strings.Contains(err.Error(), "got float64") {
		t.Errorf("Value = %v, %v", v, err)
	}
}

type floatID struct{ bareID }

func (floatID) Value() (driver.Value, error) { return 1.5, nil }

// An anyText is an ID of any text.
type anyText string

func (id anyText) IsZero() bool                        { return id == "" }
func (id anyText) String() string                      { return string(id) }
func (id anyText) AppendText(b []byte) ([]byte, error) { return append(b, id...), nil }
func (id anyText) MarshalText() ([]byte, error)        { return []byte(id), nil }
func (id anyText) MarshalJSON() ([]byte, error)        { return json.Marshal(string(id)) }
func (id anyText) Value() (driver.Value, error)        { return string(id), nil }
func (anyText) GormDataType() string                   { return "text" }

func (id *anyText) Scan(src any) error {
	text, ok := src.(string)
	if !ok {
		return idtype.ErrNull
	}
	*id = anyText(text)
	return nil
}

// Value returns a literal of the IDs that Scan reads. FuzzWire of pgxcodec compares Scan with
// pgx.
func FuzzArray(f *testing.F) {
	f.Add("{7,NULL}")
	f.Add(`{"NULL","\\x09",""}`)
	f.Add("[0:1]={132271570944274432,7}")
	f.Add("{" + sno.UUID().String() + "}")
	f.Add("{{7}}")
	f.Add("[1:-5]={7}") // bounds that no server writes
	f.Fuzz(func(t *testing.T, literal string) {
		for _, null := range []driver.Valuer{sqltypes.Array[idtype.Snowflake](nil), sqltypes.Array[idtype.SnoOf[customer]](nil), sqltypes.Array[sqltypes.Optional[idtype.Snowflake]](nil),
			sqltypes.Array[sqltypes.SnoBytes](nil), sqltypes.Array[sqltypes.Optional[sqltypes.Text[idtype.UID60]]](nil), sqltypes.Array[anyText](nil)} {
			fuzzArray(t, null, literal)
		}
		// As an element.
		v, err := sqltypes.Array[anyText]{anyText(literal)}.Value()
		if err != nil {
			t.Fatal(err)
		}
		var back sqltypes.Array[anyText]
		if err := back.Scan(v); err != nil || len(back) != 1 || back[0] != anyText(literal) {
			t.Fatalf("the element %q: Value %q, scanned as %q, %v", literal, v, back, err)
		}
	})
}

func fuzzArray(t *testing.T, null driver.Valuer, literal string) {
	t.Helper()
	target, back := newOf(null).(sql.Scanner), newOf(null).(sql.Scanner)
	err := target.Scan(literal)
	a := elem(target).(driver.Valuer)
	if err != nil {
		if !reflect.ValueOf(a).IsNil() {
			t.Fatalf("%T: Scan(%q) failed, but changed its receiver", a, literal)
		}
		return
	}
	v, err := a.Value()
	if err != nil {
		t.Fatalf("%T: scanned from %q, but Value failed: %v", a, literal, err)
	}
	if err := back.Scan(v); err != nil || !reflect.DeepEqual(elem(back), a) {
		t.Fatalf("%T: scanned from %q as %v, and from its Value %q as %v, %v", a, literal, a, v, elem(back), err)
	}
}
