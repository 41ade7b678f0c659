package pgxcodec_test

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/internal/race"
	"github.com/sortkey/sortkey/internal/typename"
	"github.com/sortkey/sortkey/sqltypes"
)

type (
	twoFields struct {
		idtype.Snowflake
		Name string
	}
	behind struct{ *idtype.Sno }
)

// shapes returns values of the types that hold an ID or another value.
func (f family) shapes() []any {
	v, p := f.v, ptr(f.v)
	ids, two, pointers := f.slice(v), f.slice(v, v), sliceOf(p)
	null, none := f.null(), zero(f.in("Null"))
	list, slices := f.in("List"), f.in("Slices")
	values := []any{
		v, p, ptr(p), f.none(), null, none, ptr(null),
		two, f.slice(), zero(reflect.TypeOf(ids)), ptr(ids), sliceOf(p, nil), sliceOf(ptr(ids)), fill(list, v, v), ptr(fill(list, v, v)), fill(f.in("Pointers"), p), sliceOf(null, none), []any{v, p, nil}, []any{ids}, &[]any{v},
		sliceOf(two, two), ptr(sliceOf(ids)), sliceOf(ids, f.slice()), sliceOf(pointers, fill(reflect.TypeOf(pointers), nil)), sliceOf(sliceOf(null)), sliceOf(fill(list, v), fill(list, v)), fill(slices, ids), fill(f.in("Matrix"), ids, ids), [][]any{{v}}, sliceOf(sliceOf(ids), sliceOf(ids)),
		arrayOf(v, v), arrayOf(arrayOf(v), arrayOf(v)), ptr(arrayOf(v)), sliceOf(arrayOf(v)), arrayOf(ids),
		mapOf("a", v), mapOf(v, "a"), mapOf(v, ids), sliceOf(mapOf("a", v)), map[string]any{"a": v},
		fill(f.in("Document"), v, ids), ptr(fill(f.in("Document"), v)), sliceOf(fill(f.in("Document"), v)), zero(f.in("Hidden")),
		fill(reflect.StructOf([]reflect.StructField{{Name: "ID", Type: f.typ}}), v),
	}
	if flat := f.in("Flat"); flat != nil {
		span := fill(f.in("Range"), v, v, pgtype.Inclusive, pgtype.Inclusive, true)
		values = append(values, fill(f.in("NullPointer"), p, true), fill(f.in("NullSlice"), ids, true), fill(flat, v), fill(f.in("FlatPointers"), p), fill(f.in("FlatSlices"), ids),
			fill(f.in("Array"), two, []pgtype.ArrayDimension{{Length: 2, LowerBound: 1}, {Length: 1, LowerBound: 1}}, true), zero(f.in("Array")),
			span, sliceOf(span), fill(f.in("Multirange"), span))
	}
	if f.in("Optional") == nil {
		return values
	}
	// The shapes that only an ID has.
	optional, empty := f.optional(), zero(f.in("Optional"))
	array := fill(f.in("IDs"), v)
	values = append(values, optional, ptr(optional), empty, sliceOf(optional, empty), sliceOf(sliceOf(optional)), fill(f.in("Optionals"), optional), fill(f.in("OptionalDocument"), optional),
		fill(f.in("IDs"), v, v), ptr(array), zero(f.in("IDs")), fill(f.in("OptionalIDs"), optional, empty), sliceOf(array))
	if null := f.in("NullOptional"); null != nil {
		values = append(values, fill(null, optional, true), fill(null, empty, true))
	}
	return values
}

// A differentialValue is the shapes of one type.
type differentialValue struct {
	home string // the type's column
	family
	values []any
}

var differentialValues = []differentialValue{
	{family: more(familyOf(int64(7)), pgxHolders[int64]{})}, {family: more(familyOf("7"), pgxHolders[string]{})}, {family: more(familyOf(sno.UUID()), pgxHolders[uuid.UUID]{})},
	{family: familyOf(pgtype.UUID{Bytes: sno.UUID(), Valid: true})}, {family: familyOf(pgtype.Int8{Int64: 7, Valid: true})}, {family: familyOf([10]byte(sno))},
	{family: familyOf(time.Unix(1e9, 0).UTC())}, {home: "uuid", family: more(familyOf(prefixedID{sno}), pgxHolders[prefixedID]{})}, {family: familyOf(behind{&sno})},
	{home: "bigint", family: more(idFamily(snowflake), pgxIDHolders[idtype.Snowflake]{})}, {home: "bigint", family: more(idFamily(idtype.Snowflake(7)), pgxIDHolders[idtype.Snowflake]{})},
	{home: "bigint", family: idFamily(snowflakeSI)}, {home: "bigint", family: idFamily(uid60)}, {home: "bigint", family: more(idFamily(spread64), pgxIDHolders[idtype.Spread64]{})},
	{home: "bigint", family: more(idFamily(idtype.SnowflakeOf[shop](7)), pgxIDHolders[idtype.SnowflakeOf[shop]]{})},
	{home: "bigint", family: idFamily(idtype.UID60Of[shop](uid60))}, {home: "bigint", family: idFamily(idtype.UID60Of[visitor](uid60))},
	{home: "bigint", family: more(idFamily(orderID{7}), pgxIDHolders[orderID]{})}, {home: "bigint", family: idFamily(typedID{7})}, {family: familyOf(twoFields{7, "x"})},
	{home: "uuid", family: more(idFamily(sno), pgxIDHolders[idtype.Sno]{})}, {home: "uuid", family: more(idFamily(idtype.SnoOf[customer](taggedSno)), pgxIDHolders[idtype.SnoOf[customer]]{})},
	{home: "uuid", family: idFamily(idtype.SnoOf[visitor](sno))}, {home: "uuid", family: idFamily(customerID{sno})},
	{home: "uuid", family: idFamily(uuid7)}, {home: "uuid", family: idFamily(idtype.UUIDOf[shop](uuid7))},
	{home: "text", family: idFamily(sqltypes.TextOf(uuid7))}, {home: "text", family: more(idFamily(sqltypes.TextOf(idtype.Snowflake(7))), pgxIDHolders[sqltypes.Text[idtype.Snowflake]]{})}, {home: "text", family: idFamily(sqltypes.TextOf(sno))},
	{home: "text", family: idFamily(sqltypes.TextOf(idtype.UID60Of[shop](uid60)))},
	{home: "bytea", family: more(idFamily(sqltypes.SnoBytesOf(sno)), pgxIDHolders[sqltypes.SnoBytes]{})},
}

// more adds the fields of a struct to a family.
func more(f family, types any) family {
	f.types = append(f.types, reflect.TypeOf(types))
	return f
}

func init() {
	for i, v := range differentialValues {
		differentialValues[i].values = v.shapes()
	}
}

// A columnType is a column type, or the type 0 of a parameter that pgx knows nothing about.
type columnType struct {
	name   string
	oid    uint32
	home   string // of the IDs that the column, its elements or its bounds hold
	array  bool
	values []any // to scan
}

var (
	jsonValues = []any{`7`, `"7"`, `"` + sno.String() + `"`, `"` + taggedSno.UUID().String() + `"`, `"shop_7"`, `null`, `[7]`, `["` + sno.String() + `", null]`, `[[7]]`, `{"a": 7}`,
		`{"id": 7, "list": [7]}`, `7.5`, `"` + uid60.String() + `"`}
	span = pgtype.Range[int64]{Lower: 7, Upper: 9, LowerType: pgtype.Inclusive, UpperType: pgtype.Exclusive, Valid: true}

	columnTypes = []columnType{
		{"unknown", 0, "", false, []any{"7"}},
		{"int2", pgtype.Int2OID, "", false, []any{7}},
		{"int4", pgtype.Int4OID, "", false, []any{7}},
		{"int8", pgtype.Int8OID, "bigint", false, []any{7, -7, int64(snowflake)}},
		{"numeric", pgtype.NumericOID, "", false, []any{7, 7.5}},
		{"float8", pgtype.Float8OID, "", false, []any{7, 7.5}},
		{"bool", pgtype.BoolOID, "", false, []any{true}},
		{"text", pgtype.TextOID, "text", false, []any{"7", sno.String(), sno.UUID().String(), "shop_7", "cus_" + taggedSno.String(), uid60.String(), "7 ", ""}},
		{"varchar", pgtype.VarcharOID, "text", false, []any{"7", sno.String(), sno.UUID().String()}},
		{"bpchar", pgtype.BPCharOID, "text", false, []any{"7 ", sno.String()}},
		{"name", pgtype.NameOID, "text", false, []any{"7", sno.String()}},
		{"char", pgtype.QCharOID, "", false, []any{"7"}},
		{"bytea", pgtype.ByteaOID, "bytea", false, []any{sno[:], []byte(sno.String()), []byte("7")}},
		{"uuid", pgtype.UUIDOID, "uuid", false, []any{sno.UUID(), taggedSno.UUID(), uuid.UUID{0xc0}}},
		{"json", pgtype.JSONOID, "", false, jsonValues},
		{"jsonb", pgtype.JSONBOID, "", false, jsonValues},
		{"xml", pgtype.XMLOID, "", false, []any{"7"}},
		{"date", pgtype.DateOID, "", false, []any{time.Unix(1e9, 0)}},
		{"timestamptz", pgtype.TimestamptzOID, "", false, []any{time.Unix(1e9, 0)}},
		{"interval", pgtype.IntervalOID, "", false, []any{time.Hour}},
		{"inet", pgtype.InetOID, "", false, []any{"10.0.0.1"}},
		{"varbit", pgtype.VarbitOID, "", false, []any{"101"}},
		{"oid", pgtype.OIDOID, "", false, []any{7}},
		{"xid8", pgtype.XID8OID, "", false, []any{7}},
		{"jsonpath", pgtype.JSONPathOID, "", false, []any{"$"}},
		{"tsvector", pgtype.TSVectorOID, "", false, []any{"a"}},
		{"int8range", pgtype.Int8rangeOID, "bigint", false, []any{span}},
		{"int8multirange", pgtype.Int8multirangeOID, "bigint", false, []any{pgtype.Multirange[pgtype.Range[int64]]{span}}},
		{"int4range", pgtype.Int4rangeOID, "", false, []any{pgtype.Range[int32]{Lower: 7, Upper: 9, LowerType: pgtype.Inclusive, UpperType: pgtype.Exclusive, Valid: true}}},
		{"int2[]", pgtype.Int2ArrayOID, "", true, []any{[]int16{7}}},
		{"int4[]", pgtype.Int4ArrayOID, "", true, []any{[]int32{7}, [][]int32{{7}, {8}}}},
		{"int8[]", pgtype.Int8ArrayOID, "bigint", true, []any{[]int64{7}, [][]int64{{7}, {8}}, []*int64{nil}, []int64{}, [][][]int64{{{7}}}}},
		{"numeric[]", pgtype.NumericArrayOID, "", true, []any{[]int64{7}}},
		{"bool[]", pgtype.BoolArrayOID, "", true, []any{[]bool{true}}},
		{"text[]", pgtype.TextArrayOID, "text", true, []any{[]string{"7"}, []string{sno.String()}, [][]string{{"7"}}, []string{sno.UUID().String()}}},
		{"varchar[]", pgtype.VarcharArrayOID, "text", true, []any{[]string{"7"}}},
		{"bpchar[]", pgtype.BPCharArrayOID, "text", true, []any{[]string{"7 "}}},
		{"bytea[]", pgtype.ByteaArrayOID, "bytea", true, []any{[][]byte{sno[:]}}},
		{"uuid[]", pgtype.UUIDArrayOID, "uuid", true, []any{[]uuid.UUID{sno.UUID()}, [][]uuid.UUID{{sno.UUID()}, {sno.UUID()}}}},
		{"json[]", pgtype.JSONArrayOID, "", true, []any{[]string{`7`}, []string{`"` + sno.String() + `"`}, []string{`["shop_7"]`}}},
		{"jsonb[]", pgtype.JSONBArrayOID, "", true, []any{[]string{`7`}, []string{`"` + sno.String() + `"`}, []string{`["shop_7"]`}}},
	}
)

// A difference is a case in which the codec's outcome isn't pgx's.
type difference struct {
	column     columnType
	home       string // of the value's or target's type
	value      any    // or a pointer to the target
	encodes    bool
	format     int16  // of src
	src        []byte // to scan
	got, want  []byte // to encode
	err, plain error
}

func (d difference) String() string {
	name := typename.OfValue(d.value)
	if d.encodes {
		return fmt.Sprintf("encode %s as %s: got %q, %v; pgx: %q, %v", name, d.column.name, d.got, d.err, d.want, d.plain)
	}
	return fmt.Sprintf("scan %q of %s, format %d, into %s: got %v; pgx: %v", d.src, d.column.name, d.format, name, d.err, d.plain)
}

// several reports whether a value holds several IDs.
func (d difference) several() bool {
	name := strings.TrimLeft(typename.OfValue(d.value), "*")
	return strings.HasPrefix(name, "[") || strings.HasPrefix(name, "pgxcodec_test.") && strings.HasSuffix(name, "]") ||
		strings.HasPrefix(name, "pgtype.") || d.isArray()
}

func (d difference) isArray() bool {
	return strings.HasPrefix(strings.TrimLeft(typename.OfValue(d.value), "*"), "sqltypes.Array[")
}

// isNested reports whether a value is a slice of slices, or a pointer to one.
func (d difference) isNested() bool {
	t := reflect.TypeOf(d.value)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Slice
}

func (d difference) refuses() bool { return d.err != nil && d.plain == nil }
func (d difference) adds() bool    { return d.err == nil && d.plain != nil }
func (d difference) isJSON() bool {
	return strings.HasPrefix(d.column.name, "json") && d.column.oid != pgtype.JSONPathOID
}

type allowance struct {
	why string
	is  func(difference) bool
}

// allowed are the differences between pgx with the codec and without it.
var allowed = []allowance{
	{"An ID that belongs in a column of another type in the table of doc.go. pgx would store another value, such as the UUID of a Sno in a text column, or the server fails. A SnowflakeText in a bigint column is the exception. NULL fits every column.",
		func(d difference) bool {
			return d.encodes && d.refuses() && d.home != "" && d.column.home != "" && d.column.home != d.home && d.want != nil && !d.isArray()
		}},
	{"One ID in place of an array of IDs. pgx would send its text, which is no array.",
		func(d difference) bool {
			return d.encodes && d.refuses() && d.home != "" && d.column.home == d.home && d.column.array && d.want != nil && !d.several()
		}},
	{"One SnoBytes in place of any array. pgx would store ten numbers.",
		func(d difference) bool {
			return d.encodes && d.refuses() && d.home == "bytea" && d.column.array && d.want != nil && !d.several()
		}},
	{"IDs in a parameter of unknown type. pgx knows no arrays of them.",
		func(d difference) bool {
			return d.encodes && d.adds() && d.home != "" && d.column.oid == 0 && d.several()
		}},
	{"An empty slice. pgx sends one dimension of length 0, which the server stores like none.",
		func(d difference) bool {
			return d.encodes && d.err == nil && d.plain == nil && d.column.array && bytes.Equal(d.got[4:], d.want[4:12]) && len(d.want) == 20
		}},
	{"A sqltypes.Array from the binary format.",
		func(d difference) bool {
			return !d.encodes && d.adds() && d.column.array && d.isArray() && d.format == binaryFormat
		}},
	{"A pointer to a slice of slices of IDs. pgx scans none.",
		func(d difference) bool {
			return !d.encodes && d.adds() && d.column.array && d.home != "" && d.isNested()
		}},
	{"An array of one dimension in a slice of slices of IDs. pgx takes a NULL for an inner slice.",
		func(d difference) bool {
			return !d.encodes && d.refuses() && d.column.array && d.home != "" && d.isNested() && strings.Contains(d.err.Error(), "dimensions, got")
		}},
	{"The JSON of an Array. pgx stores the literal of an array.",
		func(d difference) bool {
			return d.encodes && !d.refuses() && d.isJSON() && strings.HasPrefix(strings.TrimLeft(typename.OfValue(d.value), "*[]"), "sqltypes.Array[")
		}},
	{"IDs from their JSON. pgx passes the JSON text to Scan.",
		func(d difference) bool { return !d.encodes && d.adds() && d.isJSON() && d.home != "" }},
	{"JSON that isn't an ID's. As bytes, pgx takes any of ten bytes for a Sno, and as text, null for a UID60 and {} for an empty Array.",
		func(d difference) bool {
			return !d.encodes && !d.adds() && d.isJSON() && (d.isArray() || d.home == "uuid" || d.home == "bytea" || string(bytes.Trim(d.src, "\x01 \t\r\n")) == "null")
		}},
}

// The codec never refuses what pgx can do without it, and stores and reads the same values,
// except for the differences in allowed.
func TestDifferential(t *testing.T) {
	short := testing.Short() || race.Enabled // the race detector takes ten times as long, and nothing runs concurrently
	seen := make([]atomic.Bool, len(allowed))
	t.Run("columns", func(t *testing.T) {
		for _, c := range columnTypes {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				check := func(d difference) {
					ok := false
					for i, a := range allowed {
						if a.is(d) {
							ok = true
							seen[i].Store(true)
						}
					}
					if !ok {
						t.Error(d)
					}
				}
				sources := wires(t, c)
				for _, v := range differentialValues {
					if short && v.in("Flat") == nil {
						continue
					}
					encodeDifferences(c, v.home, v.values, check)
					scanDifferences(c, v.home, v.values, sources, check)
				}
			})
		}
	})
	for i, a := range allowed {
		if !seen[i].Load() {
			t.Errorf("no such difference: %s", a.why)
		}
	}
}

// try calls f and returns a panic as an error, because pgx panics for some nil pointers.
func try[T any](f func() (T, error)) (v T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return f()
}

// argument encodes an argument as pgx does in the extended protocol: in the type's
// format, or else in the other one.
func argument(m *pgtype.Map, oid uint32, value any) (format int16, b []byte, err error) {
	format = m.FormatCodeForOID(oid)
	if _, ok := value.(string); ok || oid == 0 {
		format = textFormat
	}
	b, err = try(func() ([]byte, error) { return m.Encode(oid, format, value, []byte{}) })
	if err == nil || oid == 0 {
		return format, b, err
	}
	if b, err := try(func() ([]byte, error) { return m.Encode(oid, 1-format, value, []byte{}) }); err == nil {
		return 1 - format, b, nil
	}
	return format, nil, err
}

func encodeDifferences(c columnType, home string, values []any, check func(difference)) {
	ours, plain := newMap(), pgtype.NewMap()
	for _, value := range values {
		d := difference{column: c, home: home, value: value, encodes: true}
		same := func(ours, plain *pgtype.Map) bool {
			var got, want int16
			got, d.got, d.err = argument(ours, c.oid, value)
			want, d.want, d.plain = argument(plain, c.oid, value)
			return d.err != nil && d.plain != nil || d.err == nil && d.plain == nil && got == want && bytes.Equal(d.got, d.want) && (d.got == nil) == (d.want == nil)
		}
		// A map remembers plans, and what it encoded before can decide between two.
		if !same(ours, plain) && !same(newMap(), pgtype.NewMap()) {
			check(d)
		}
	}
}

// A source is a column's value as the server sends it.
type source struct {
	format int16
	bytes  []byte
}

// wires returns NULL and the values of a column, in the formats that pgx reads.
func wires(t testing.TB, c columnType) []source {
	list := []source{{textFormat, nil}}
	if c.oid != 0 {
		list = append(list, source{binaryFormat, nil})
	}
	for _, v := range c.values {
		for _, format := range []int16{textFormat, binaryFormat} {
			b, err := pgtype.NewMap().Encode(c.oid, format, v, []byte{})
			if err == nil && (c.oid != 0 || format == textFormat) {
				list = append(list, source{format, b})
			} else if format == textFormat {
				t.Fatalf("%v as %s: %v", v, c.name, err)
			}
		}
	}
	return list
}

func scanDifferences(c columnType, home string, values []any, sources []source, check func(difference)) {
	ours, plain := newMap(), pgtype.NewMap()
	targets := map[reflect.Type]bool{reflect.TypeFor[any](): true} // as Rows.Values does
	for _, v := range values {
		targets[reflect.TypeOf(v)] = true
	}
	for _, src := range sources {
		for target := range targets {
			if d, same := scanDifference(ours, plain, c, home, target, src); !same {
				check(d)
			}
		}
	}
}

// scanDifference scans a source into two targets, with the codec and without it.
func scanDifference(ours, plain *pgtype.Map, c columnType, home string, target reflect.Type, src source) (d difference, same bool) {
	got, want := reflect.New(target), reflect.New(target)
	if src.bytes == nil && fmt.Sprintf("%T", plain.PlanScan(c.oid, src.format, want.Interface())) == "*pgtype.scanPlanFail" {
		return d, true // pgx tries all of its types, in random order
	}
	scan := func(m *pgtype.Map, dst reflect.Value) error {
		_, err := try(func() (any, error) { return nil, m.Scan(c.oid, src.format, src.bytes, dst.Interface()) })
		return err
	}
	err, plainErr := scan(ours, got), scan(plain, want)
	same = (err == nil) == (plainErr == nil) && (err != nil || reflect.DeepEqual(got.Interface(), want.Interface()))
	return difference{column: c, home: home, value: got.Interface(), format: src.format, src: src.bytes, err: err, plain: plainErr}, same
}
