package idtype

import (
	"bytes"
	"cmp"
	"database/sql"
	"database/sql/driver"
	"encoding"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sortkey/sortkey/internal/reflecttest"
)

// anyID has the methods of every ID type, and receiver the methods of a pointer to one. The
// conformance suite is written for them, so that the compiler makes it once, not once per type.
type anyID interface {
	fmt.Stringer
	encoding.TextAppender
	encoding.TextMarshaler
	encoding.BinaryAppender
	encoding.BinaryMarshaler
	json.Marshaler
	driver.Valuer
	IsZero() bool
	GormDataType() string
}

type receiver interface {
	encoding.TextUnmarshaler
	UnmarshalParam(string) error
	Bind(string) error
	encoding.BinaryUnmarshaler
	json.Unmarshaler
	sql.Scanner
}

// value is an ID type, and pointer a pointer to one.
type value[T any] interface {
	comparable
	anyID
	Compare(T) int
}

type pointer[T any] interface {
	*T
	receiver
}

// receive returns a pointer to a variable that holds id.
func receive(id anyID) receiver { return reflecttest.Ptr(id).(receiver) }

// received returns the ID in a variable.
func received(p receiver) anyID { return reflecttest.Elem(p).(anyID) }

// A format describes an ID type for the conformance suite.
type format struct {
	name   string
	file   string // the name of the vectors, if not name
	prefix string // of the text
	meta   *byte  // of all IDs, if not nil
	column string // GormDataType
	// parts checks Compose and Parts against a vector.
	parts func(t *testing.T, v vector, id anyID)
	// random returns an ID with a random time and random parts.
	random func(*rand.Rand) anyID
	// orderKey returns bytes that sort as the column does.
	orderKey   func(anyID) []byte
	textOrders bool // the text sorts as the column does
	byteOrders bool // the bytes sort as the column does

	badText  []bad
	badJSON  []bad // in addition to badText in quotes
	goodJSON map[string]string
	badScan  []badSource
	goodScan []goodSource
	badBytes []string // hex, of the right length

	// noIDs are values of the Go type that are not IDs. Value rejects them too, unless
	// scansNoIDs.
	noIDs      []anyID
	scansNoIDs bool

	typedFormat // set by formatOf
}

// A typedFormat is the part of a format that depends on its Go type.
type typedFormat struct {
	zero    anyID
	parse   func(string) (anyID, error)
	compare func(a, b anyID) int
	null    func() (null sql.Scanner, valid *bool) // an sql.Null
	holders func(anyID) holders
	// calls returns calls of functions that allocate nothing.
	calls func(id anyID) map[string]func() error
}

// formatOf completes a format.
func formatOf[T value[T], P pointer[T]](f format, parse func(string) (T, error)) format {
	var zero T
	f.typedFormat = typedFormat{
		zero:    zero,
		parse:   func(s string) (anyID, error) { return parse(s) },
		compare: func(a, b anyID) int { return a.(T).Compare(b.(T)) },
		null:    func() (sql.Scanner, *bool) { n := new(sql.Null[T]); return n, &n.Valid },
		holders: func(id anyID) holders { return holdersOf(id.(T)) },
		calls: func(boxed anyID) map[string]func() error {
			id, dst, buf := boxed.(T), P(new(T)), make([]byte, 0, 64)
			text, val, bin := id.String(), Must(id.Value()), Must(id.AppendBinary(nil))
			raw := []byte(text)
			return map[string]func() error{
				"Parse":           func() error { _, err := parse(text); return err },
				"AppendText":      func() error { _, err := id.AppendText(buf); return err },
				"AppendBinary":    func() error { _, err := id.AppendBinary(buf); return err },
				"UnmarshalText":   func() error { return dst.UnmarshalText(raw) },
				"UnmarshalBinary": func() error { return dst.UnmarshalBinary(bin) },
				"Scan":            func() error { return dst.Scan(val) },
				"Compare":         func() error { id.Compare(id); return nil },
			}
		},
	}
	return f
}

type bad struct {
	in  string
	err error
	pos int
}

type badSource struct {
	src any
	err error
}

type goodSource struct {
	src  any
	text string // of the scanned ID
}

// A vector is an ID in all its forms; see testdata/vectors.json.
type vector struct {
	Note   string
	Layout struct {
		Epoch, BaseClock                         time.Time
		DatacenterBits, WorkerBits, SequenceBits int
		MachineBits, IndexBits                   int
	}
	Parts struct {
		Datacenter, Worker, Machine, Index, Random, Generator, Cluster, Sequence int
		TickTock                                                                 bool
		Meta                                                                     byte
		Partition                                                                uint16
	}
	Time                            time.Time
	Text, Padded, Binary, SQL, JSON string
}

func vectors(t testing.TB, name string) (list []vector) {
	t.Helper()
	readVectors(t, name, &list)
	if len(list) == 0 {
		t.Fatalf("no vectors of %s", name)
	}
	return list
}

// readVectors decodes a member of the file of vectors.
func readVectors(t testing.TB, name string, dst any) {
	t.Helper()
	data, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var file map[string]json.RawMessage
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(file[name], dst); err != nil {
		t.Fatal(err)
	}
}

// badDecimals are inputs that the parsers of decimal numbers reject.
var badDecimals = []bad{
	{"", ErrSyntax, -1},
	{"00", ErrSyntax, 0},
	{"01", ErrSyntax, 0},
	{"-1", ErrSyntax, 0},
	{"+1", ErrSyntax, 0},
	{" 1", ErrSyntax, 0},
	{"1 ", ErrSyntax, 1},
	{"1\n", ErrSyntax, 1},
	{"1_0", ErrSyntax, 1},
	{"1.0", ErrSyntax, 1},
	{"1e3", ErrSyntax, 1},
	{"0x1", ErrSyntax, 1},
	{"١", ErrSyntax, 0},
	{"9223372036854775808", ErrRange, -1},
	{"18446744073709551617", ErrRange, -1},
	{strings.Repeat("9", 100), ErrRange, -1},
}

// badNumbers are JSON inputs that the types with decimal text reject.
var badNumbers = []bad{
	{"1.0", ErrSyntax, 1}, {"1e3", ErrSyntax, 1}, {"-1", ErrSyntax, 0}, {"true", ErrSyntax, 0}, {"{}", ErrSyntax, 0},
	{"[1]", ErrSyntax, 0}, {`"`, ErrSyntax, 0}, {"", ErrSyntax, -1}, {`"\u0031"`, ErrSyntax, 0}, {"9223372036854775808", ErrRange, -1},
}

// badStrings are JSON inputs that the types with quoted text reject.
var badStrings = []bad{
	{"1.5", ErrSyntax, -1}, {"1.0", ErrSyntax, -1}, {"1e3", ErrSyntax, -1}, {"01", ErrSyntax, -1}, {"+1", ErrSyntax, -1}, {"-0", ErrSyntax, -1}, {"true", ErrSyntax, -1}, {"{}", ErrSyntax, -1}, {`"`, ErrSyntax, -1}, {"", ErrSyntax, -1},
	{"NULL", ErrSyntax, -1},
}

// badSources are column values that every ID type rejects.
var badSources = []badSource{
	{nil, ErrNull}, {[]byte(nil), ErrNull}, {1.0, ErrSyntax}, {true, ErrSyntax}, {time.Unix(0, 0), ErrSyntax}, {"", ErrSyntax},
	{[]byte{}, ErrSyntax}, {"x y", ErrSyntax}, {uint64(1), ErrSyntax},
}

func integerKey(id anyID) []byte {
	return uint64Bytes(uint64(reflect.ValueOf(id).Int()) ^ 1<<63) // flips the sign bit, so that unsigned order is the signed order
}

func uint64Bytes(v uint64) []byte { return binary.BigEndian.AppendUint64(nil, v) }

var snowflakeFormat = formatOf(format{
	name: "Snowflake", column: "bigint",
	parts: func(t *testing.T, v vector, boxed anyID) {
		id := boxed.(Snowflake)
		l := SnowflakeLayout{v.Layout.Epoch, v.Layout.DatacenterBits, v.Layout.WorkerBits, v.Layout.SequenceBits}
		checkParts(t, l.Compose, l.Parts, l.Time, id, v.Time, SnowflakeParts{v.Time, v.Parts.Datacenter, v.Parts.Worker, v.Parts.Sequence})
	},
	random:   func(r *rand.Rand) anyID { return Snowflake(r.Int64()) },
	orderKey: integerKey, byteOrders: true,
	badText:  badDecimals,
	badJSON:  badNumbers,
	goodJSON: map[string]string{"7": "7", `"7"`: "7", "0": "0", "9223372036854775807": "9223372036854775807"},
	badScan:  append([]badSource{{int64(-1), ErrRange}, {int64(math.MinInt64), ErrRange}, {"-1", ErrSyntax}, {[]byte("-1"), ErrSyntax}}, badSources...),
	goodScan: []goodSource{{int64(0), "0"}, {int64(132271570944274432), "132271570944274432"}, {"132271570944274432", "132271570944274432"},
		{[]byte("132271570944274432"), "132271570944274432"}},
	badBytes: []string{"8000000000000000", "ffffffffffffffff"},
	noIDs:    []anyID{Snowflake(-1), Snowflake(math.MinInt64)},
}, ParseSnowflake)

var snowflakeSIFormat = formatOf(format{
	name: "SnowflakeSI", column: "bigint",
	parts: func(t *testing.T, v vector, boxed anyID) {
		id := boxed.(SnowflakeSI)
		l := SnowflakeSILayout{v.Layout.BaseClock, v.Layout.MachineBits, v.Layout.IndexBits}
		checkParts(t, l.Compose, l.Parts, l.Time, id, v.Time, SnowflakeSIParts{v.Time, v.Parts.Machine, v.Parts.Index})
	},
	random:   func(r *rand.Rand) anyID { return SnowflakeSI(r.Int64N(1 << 53)) },
	orderKey: integerKey, byteOrders: true,
	badText:  append([]bad{{"9007199254740992", ErrRange, -1}}, badDecimals...),
	badJSON:  append([]bad{{"9007199254740992", ErrRange, -1}, {"9007199254740993.0", ErrSyntax, 16}}, badNumbers...),
	goodJSON: map[string]string{"7": "7", `"7"`: "7", "9007199254740991": "9007199254740991"},
	badScan:  append([]badSource{{int64(-1), ErrRange}, {int64(1) << 53, ErrRange}, {"9007199254740992", ErrRange}}, badSources...),
	goodScan: []goodSource{{int64(0), "0"}, {int64(1)<<53 - 1, "9007199254740991"}, {"17", "17"}, {[]byte("17"), "17"}},
	badBytes: []string{"8000000000000000", "0020000000000000"},
	noIDs:    []anyID{SnowflakeSI(-1), SnowflakeSI(math.MinInt64), SnowflakeSI(1 << 53), SnowflakeSI(math.MaxInt64)},
}, ParseSnowflakeSI)

var uid60Format = formatOf(format{
	name: "UID60", column: "bigint",
	parts: func(t *testing.T, v vector, boxed anyID) {
		id := boxed.(UID60)
		var l UID60Layout
		checkParts(t, l.Compose, l.Parts, l.Time, id, v.Time, UID60Parts{v.Time, v.Parts.Sequence, v.Parts.Random})
		padded, err := ParseUID60(v.Padded)
		if err != nil || padded != id {
			t.Errorf("padded %q: %v, %v", v.Padded, padded, err)
		}
	},
	random:   func(r *rand.Rand) anyID { return UID60(r.Int64N(1 << 60)) },
	orderKey: integerKey, byteOrders: true,
	badText: []bad{
		{"", ErrSyntax, -1}, {"AAA", ErrSyntax, -1}, {"AAAAAAAAAAA", ErrSyntax, -1},
		{"AAAAA", ErrSyntax, 2}, {"xiAaS8QBh", ErrSyntax, 2}, // only the 10-character form is padded
		{"naS8QBhx+", ErrSyntax, 8}, {"naS8QBhx/", ErrSyntax, 8}, {"AABA=", ErrSyntax, 4}, {"AA A", ErrSyntax, 2}, {"AAB\x80", ErrSyntax, 3},
	},
	badJSON:  append([]bad{{"-1", ErrSyntax, -1}, {"1152921504606846976", ErrRange, -1}, {"xinaS8QBh", ErrSyntax, -1}}, badStrings...),
	goodJSON: map[string]string{"0": "AAAA", "7": "AHAA", "11093174944930914": "xinaS8QBh", "1234567890": UID60(1234567890).String(), "1152921504606846975": "__________"},
	badScan:  append([]badSource{{int64(-1), ErrRange}, {int64(1) << 60, ErrRange}, {"1152921504606846976", ErrRange}, {"xinaS8QBh", ErrSyntax}}, badSources...),
	goodScan: []goodSource{{int64(0), "AAAA"}, {int64(11093174944930914), "xinaS8QBh"}, {"11093174944930914", "xinaS8QBh"},
		{[]byte("262144"), "AABA"}, {"1234567890", UID60(1234567890).String()}},
	badBytes: []string{"8000000000000000", "1000000000000000"},
	noIDs:    []anyID{UID60(-1), UID60(math.MinInt64), UID60(1 << 60), UID60(math.MaxInt64)},
}, ParseUID60)

var spread64Format = formatOf(format{
	name: "Spread64", column: "bigint",
	parts: func(t *testing.T, v vector, boxed anyID) {
		id := boxed.(Spread64)
		var l Spread64Layout
		checkParts(t, l.Compose, l.Parts, l.Time, id, v.Time, Spread64Parts{v.Time, v.Parts.Sequence, v.Parts.Generator, v.Parts.Cluster})
	},
	random:   func(r *rand.Rand) anyID { return Spread64(r.Uint64() &^ spread64Reserved) },
	orderKey: integerKey,
	badText: []bad{
		{"", ErrSyntax, -1}, {"cb54ecf2840a001", ErrSyntax, -1}, {"cb54ecf2840a00150", ErrSyntax, -1}, {"CB54ecf2840a0015", ErrSyntax, 0},
		{"cb54ecf2840a001g", ErrSyntax, 15}, {"0xcb54ecf2840a00", ErrSyntax, 1}, {" b54ecf2840a0015", ErrSyntax, 0},
		{"0000000000000400", ErrRange, -1}, {"ffffffffffffffff", ErrRange, -1}, {"0000000000008000", ErrRange, -1},
	},
	badJSON:  append([]bad{{"-1", ErrRange, -1}, {"1024", ErrRange, -1}, {"-9223372036854775809", ErrRange, -1}, {"cb54ecf2840a0015", ErrSyntax, -1}}, badStrings...),
	goodJSON: map[string]string{"0": "0000000000000000", "7": "0000000000000007", "-3795148059624996843": "cb54ecf2840a0015", "-9223372036854775808": "8000000000000000"},
	badScan: append([]badSource{{"-", ErrSyntax}, {"-0", ErrSyntax}, {"-01", ErrSyntax}, {"9223372036854775808", ErrRange}, {"-9223372036854775809", ErrRange},
		{"--1", ErrSyntax}, {"+1", ErrSyntax}, {"cb54ecf2840a0015", ErrSyntax}}, badSources...),
	goodScan: []goodSource{{int64(0), "0000000000000000"}, {int64(math.MinInt64), "8000000000000000"}, {"-9223372036854775808", "8000000000000000"},
		{[]byte("-1"), "ffffffffffffffff"}, {int64(-1), "ffffffffffffffff"}, {"1024", "0000000000000400"}, {"1000000000000000", "00038d7ea4c68000"}},
	badBytes: []string{"0000000000000400", "ffffffffffffffff"},
	noIDs:    []anyID{Spread64(0x0400), Spread64(0x8000), Spread64(-1)}, scansNoIDs: true,
}, ParseSpread64)

var snoFormat = formatOf(format{
	name: "Sno", column: "uuid",
	parts: func(t *testing.T, v vector, boxed anyID) {
		id := boxed.(Sno)
		var l SnoLayout
		p := SnoParts{v.Time, v.Parts.TickTock, v.Parts.Meta, SnoPartitionFrom(v.Parts.Partition), uint16(v.Parts.Sequence)}
		checkParts(t, l.Compose, l.Parts, l.Time, id, v.Time, p)
		if u := id.UUID(); u.String() != v.SQL || string(u[:]) != v.Text {
			t.Errorf("UUID %v, want %s", u, v.SQL)
		}
		if back, err := SnoFromUUID(uuid.MustParse(v.SQL)); err != nil || back != id {
			t.Errorf("SnoFromUUID: %v, %v", back, err)
		}
	},
	random: func(r *rand.Rand) anyID {
		var id Sno
		copy(id[:], append(uint64Bytes(r.Uint64()), byte(r.Uint32()), byte(r.Uint32())))
		return id
	},
	orderKey: func(id anyID) []byte { u := id.(Sno).UUID(); return u[:] }, textOrders: true, byteOrders: true,
	badText: []bad{
		{"", ErrSyntax, -1}, {"brpk4q72xwf2m63", ErrSyntax, -1}, {"brpk4q72xwf2m63l2", ErrSyntax, -1}, {"Brpk4q72xwf2m63l", ErrSyntax, 0},
		{"brpk4q72xwf2m63y", ErrSyntax, 15}, {"brpk4q72xwf2m631", ErrSyntax, 15}, {"0rpk4q72xwf2m63l", ErrSyntax, 0}, {"!!!!!!!!!!!!!!!!", ErrSyntax, 0},
		{"brpk4q72 wf2m63l", ErrSyntax, 8}, {"6272706b-3471-3732-7877-66326d36336c", ErrSyntax, -1},
	},
	badJSON: append([]bad{{"1", ErrSyntax, -1}, {`"f47ac10b-58cc-4372-a567-0e02b2c3d479"`, ErrNotSno, -1}, {`"6272706b-3471-3732-7877-66326d36336g"`, ErrSyntax, -1},
		{`"6272706b34713732787766326d36336c"`, ErrSyntax, -1}, {`"{6272706b-3471-3732-7877-66326d36336}"`, ErrSyntax, -1}, {"6272706b-3471-3732-7877-66326d36336c", ErrSyntax, -1}}, badStrings...),
	goodJSON: map[string]string{`"6272706b-3471-3732-7877-66326d36336c"`: "brpk4q72xwf2m63l", `"32323232-3232-3232-3232-323232323232"`: "2222222222222222"},
	badScan: append([]badSource{
		{"f47ac10b-58cc-4372-a567-0e02b2c3d479", ErrNotSno}, {uuid.MustParse("f47ac10b-58cc-4372-a567-0e02b2c3d479"), ErrNotSno},
		{[16]byte{}, ErrNotSno}, {make([]byte, 16), ErrNotSno}, {[]byte("Brpk4q72xwf2m63l"), ErrNotSno}, {"Brpk4q72xwf2m63l", ErrSyntax},
		{"6272706bx3471-3732-7877-66326d36336c", ErrSyntax}, {"{272706b-3471-3732-7877-66326d36336}", ErrSyntax},
		{"6272706b347137327877663 26d36336c", ErrSyntax}, {"6272706b34713732787766326d36336c", ErrSyntax}, {make([]byte, 9), ErrSyntax}, {int64(7), ErrSyntax},
		{"urn:uuid:6272706b-3471-3732-7877-66326d36336c", ErrSyntax}, {"brpk4q72xw", ErrSyntax},
	}, badSources...),
	goodScan: []goodSource{
		{"6272706b-3471-3732-7877-66326d36336c", "brpk4q72xwf2m63l"}, {[]byte("6272706b-3471-3732-7877-66326d36336c"), "brpk4q72xwf2m63l"},
		{"6272706B-3471-3732-7877-66326D36336C", "brpk4q72xwf2m63l"},
		{"brpk4q72xwf2m63l", "brpk4q72xwf2m63l"}, {[]byte("brpk4q72xwf2m63l"), "brpk4q72xwf2m63l"},
		{uuid.MustParse("6272706b-3471-3732-7877-66326d36336c"), "brpk4q72xwf2m63l"},
		{[16]byte([]byte("brpk4q72xwf2m63l")), "brpk4q72xwf2m63l"}, {make([]byte, 10), "2222222222222222"},
		{"32323232-3232-3232-3232-323232323232", "2222222222222222"},
	},
}, ParseSno)

// checkParts checks Compose, Parts and Time of a layout.
func checkParts[T, P comparable](t *testing.T, compose func(P) (T, error), parts func(T) (P, error), timeOf func(T) time.Time, id T, at time.Time, want P) {
	t.Helper()
	got, err := compose(want)
	if err != nil || any(got) != any(id) {
		t.Errorf("Compose(%+v) = %v, %v; want %v", want, got, err, id)
	}
	p, err := parts(id)
	if err != nil || p != want {
		t.Errorf("Parts = %+v, %v; want %+v", p, err, want)
	}
	if ts := timeOf(id); !ts.Equal(at) || ts.Location() != time.UTC {
		t.Errorf("Time = %v, want %v", ts, at)
	}
}

func TestConformance(t *testing.T) {
	t.Run("Snowflake", snowflakeFormat.test)
	t.Run("SnowflakeSI", snowflakeSIFormat.test)
	t.Run("UID60", uid60Format.test)
	t.Run("Spread64", spread64Format.test)
	t.Run("Sno", snoFormat.test)
}

func (f format) test(t *testing.T) {
	t.Run("vectors", f.testVectors)
	t.Run("invalid vectors", f.testInvalidVectors)
	t.Run("order", f.testOrder)
	t.Run("round trips", f.testRoundTrips)
	t.Run("invalid input", f.testRefusals)
	t.Run("scan", f.testScan)
	t.Run("scan valuers", f.testScanValuers)
	t.Run("invalid numbers", f.testNoIDs)
	t.Run("zero", f.testZero)
	t.Run("allocations", f.testAllocations)
}

func (f format) testVectors(t *testing.T) {
	for _, v := range vectors(t, cmp.Or(f.file, f.name)) {
		if f.meta != nil && v.Parts.Meta != *f.meta {
			continue
		}
		t.Run(v.Note, func(t *testing.T) {
			if f.prefix != "" {
				if v.Text = f.prefix + cmp.Or(v.Padded, v.Text); v.JSON != jsonNull {
					v.JSON = `"` + v.Text + `"`
				}
			}
			id, err := f.parse(v.Text)
			if err != nil {
				t.Fatal(err)
			}
			f.parts(t, v, id)
			if s := id.String(); s != v.Text {
				t.Errorf("String = %q, want %q", s, v.Text)
			}
			if b, _ := id.AppendBinary(nil); hex.EncodeToString(b) != v.Binary {
				t.Errorf("AppendBinary = %x, want %s", b, v.Binary)
			}
			if b, _ := json.Marshal(id); string(b) != v.JSON {
				t.Errorf("JSON = %s, want %s", b, v.JSON)
			}
			schema := any(id)
			if alias, ok := schema.(interface{ JSONSchemaAlias() any }); ok {
				schema = alias.JSONSchemaAlias()
			}
			if isNumber := reflect.TypeOf(schema).Kind() == reflect.Int64; v.JSON != jsonNull && isNumber == strings.HasPrefix(v.JSON, `"`) {
				t.Errorf("JSONSchemaAlias = %#v, want the kind of the JSON %s", schema, v.JSON)
			}
			if sv, _ := id.Value(); fmt.Sprint(sv) != v.SQL {
				t.Errorf("Value = %v, want %s", sv, v.SQL)
			}
			b, _ := hex.DecodeString(v.Binary)
			f.reads(t, id, "UnmarshalBinary", func(p receiver) error { return p.UnmarshalBinary(b) })
			f.reads(t, id, "UnmarshalJSON", func(p receiver) error { return json.Unmarshal([]byte(v.JSON), p) })
			f.reads(t, id, "Scan", func(p receiver) error { return p.Scan(v.SQL) })
		})
	}
}

func (f format) testInvalidVectors(t *testing.T) {
	var invalid map[string]struct{ Text, JSON, SQL []string }
	readVectors(t, "invalid", &invalid)
	list := invalid[cmp.Or(f.file, f.name)]
	if len(list.Text) < 3 || len(list.JSON) < 3 || len(list.SQL) < 3 {
		t.Fatalf("want 3 or more invalid inputs of each kind, got %q", list)
	}
	rejects := func(kind, in string, read func(receiver) error) {
		p := receive(f.other())
		if err := read(p); err == nil || received(p) != f.other() {
			t.Errorf("%s %q: %v, %v", kind, in, received(p), err)
		}
	}
	for _, in := range list.Text {
		rejects("text", in, func(p receiver) error { return p.UnmarshalText([]byte(f.prefix + in)) })
	}
	for _, in := range list.JSON {
		rejects("JSON", in, func(p receiver) error { return p.UnmarshalJSON([]byte(in)) })
	}
	for _, in := range list.SQL {
		rejects("SQL", in, func(p receiver) error { return p.Scan(in) })
	}
}

// reads checks that read sets a receiver to id.
func (f format) reads(t *testing.T, id anyID, what string, read func(receiver) error) {
	t.Helper()
	was := f.zero
	if id.IsZero() {
		was = f.other()
	}
	p := receive(was)
	if err := read(p); err != nil || received(p) != id {
		t.Errorf("%s = %v, %v; want %v", what, received(p), err, id)
	}
}

// other returns an ID that isn't zero.
func (f format) other() anyID { return f.random(rand.New(rand.NewPCG(1, 2))) }

// refuses checks that read returns a *ParseError and doesn't change its receiver. It
// returns the position and the input in the error.
func (f format) refuses(t *testing.T, what string, want error, read func(receiver) error) (pos int, input string) {
	t.Helper()
	was := f.other()
	p := receive(was)
	err := read(p)
	if !errors.Is(err, want) {
		t.Errorf("%s: error %v, want %v", what, err, want)
	}
	if got := received(p); got != was {
		t.Errorf("%s: changed the receiver to %v", what, got)
	}
	var pe *ParseError
	if !errors.As(err, &pe) {
		t.Errorf("%s: %T is not a *ParseError", what, err)
		return 0, ""
	}
	if pe.Type != f.name || len(pe.Input) > 64 || !strings.HasPrefix(err.Error(), "idtype: ") || !strings.Contains(err.Error(), " "+f.name+": ") {
		t.Errorf("%s: error %q of type %q with %d bytes of input", what, err, pe.Type, len(pe.Input))
	}
	return pe.Pos, pe.Input
}

func (f format) testRefusals(t *testing.T) {
	for _, b := range f.badText {
		pos, input := f.refuses(t, fmt.Sprintf("Parse(%q)", b.in), b.err, func(p receiver) error {
			id, err := f.parse(b.in)
			if !id.IsZero() {
				t.Errorf("Parse(%q) returns %v with an error", b.in, id)
			}
			return err
		})
		if pos != b.pos || !strings.HasPrefix(b.in, input) {
			t.Errorf("Parse(%q): position %d of %q, want %d", b.in, pos, input, b.pos)
		}
		f.refuses(t, fmt.Sprintf("UnmarshalText(%q)", b.in), b.err, func(p receiver) error { return p.UnmarshalText([]byte(b.in)) })
		f.refuses(t, fmt.Sprintf("UnmarshalParam(%q)", b.in), b.err, func(p receiver) error { return p.UnmarshalParam(b.in) })
		f.refuses(t, fmt.Sprintf("Bind(%q)", b.in), b.err, func(p receiver) error { return p.Bind(b.in) })
		if quoted := `"` + b.in + `"`; !isUUIDText([]byte(b.in)) { // JSON accepts those
			f.refuses(t, "UnmarshalJSON("+quoted+")", b.err, func(p receiver) error { return p.UnmarshalJSON([]byte(quoted)) })
		}
	}
	for _, b := range f.badJSON {
		f.refuses(t, fmt.Sprintf("UnmarshalJSON(%s)", b.in), b.err, func(p receiver) error { return p.UnmarshalJSON([]byte(b.in)) })
	}
	id := f.other()
	size, _ := id.AppendBinary(nil)
	for n := range 20 {
		if n != len(size) {
			f.refuses(t, fmt.Sprintf("UnmarshalBinary of %d bytes", n), ErrSyntax, func(p receiver) error { return p.UnmarshalBinary(make([]byte, n)) })
		}
	}
	for _, h := range f.badBytes {
		b, _ := hex.DecodeString(h)
		f.refuses(t, "UnmarshalBinary of "+h, ErrRange, func(p receiver) error { return p.UnmarshalBinary(b) })
	}
}

func (f format) testScan(t *testing.T) {
	for _, b := range f.badScan {
		f.refuses(t, fmt.Sprintf("Scan(%T(%v))", b.src, b.src), b.err, func(p receiver) error { return p.Scan(b.src) })
	}
	for _, g := range f.goodScan {
		p := receive(f.zero)
		if err := p.Scan(g.src); err != nil || received(p).String() != f.prefix+g.text {
			t.Errorf("Scan(%T(%v)) = %v, %v; want %s", g.src, g.src, p, err, g.text)
		}
	}
	for in, text := range f.goodJSON {
		p := receive(f.zero)
		if err := json.Unmarshal([]byte(in), p); err != nil || received(p).String() != f.prefix+text {
			t.Errorf("Unmarshal(%s) = %v, %v; want %s", in, p, err, text)
		}
	}
}

// A passing is a type whose Value is the Value of v.
type passing struct{ v driver.Valuer }

func (v passing) Value() (driver.Value, error) { return v.v.Value() }

// A result is a type that holds an ID but has another Value.
type result[V any] struct {
	id  V
	v   any
	err error
}

func (r result[V]) Value() (driver.Value, error) { return r.v, r.err }

// A kind is a user's ID type. idtype can't know its format.
type kind UID60

func (k kind) Value() (driver.Value, error) { return UID60(k).Value() }

// An endless is a driver.Valuer whose Value is itself.
type endless struct{}

func (e endless) Value() (driver.Value, error) { return e, nil }

// An embedder is a user's ID type with the Value of the ID it holds.
type embedder[V any] struct{ ID V }

func (e embedder[V]) Value() (driver.Value, error) { return any(e.ID).(driver.Valuer).Value() }

// holders are sources for Scan that could hold an ID.
type holders struct {
	own     []any // Value is the ID's
	valid   []any // sql.Null and others with the Value of a valid ID
	null    []any // hold NULL
	invalid []any // Value isn't an ID
	failing any   // Value returns os.ErrDeadlineExceeded
}

func holdersOf[T value[T]](id T) holders {
	val, _ := id.Value()
	return holders{
		own: []any{id, &id, passing{id}, &passing{id}, embedder[T]{id}, &embedder[T]{id}, embedder[embedder[T]]{embedder[T]{id}}, embedder[*T]{&id}},
		valid: []any{
			sql.Null[T]{V: id, Valid: true}, sql.Null[*embedder[T]]{V: &embedder[T]{id}, Valid: true}, sql.Null[any]{V: id, Valid: true}, sql.Null[any]{V: &id, Valid: true},
			result[T]{v: val},
		},
		null:    []any{(*T)(nil), (*passing)(nil), (*embedder[T])(nil), (*endless)(nil), sql.Null[T]{}, sql.Null[*T]{}, embedder[*T]{}, result[T]{id: id}},
		invalid: []any{result[T]{v: id}, result[T]{v: &id}, result[T]{v: endless{}}, result[T]{v: 1.5}, result[T]{v: true}},
		failing: result[T]{err: os.ErrDeadlineExceeded},
	}
}

// foreign returns sources that hold an ID, for the tests of other formats.
func foreign[T value[T]](id T) []any {
	of := holdersOf(id)
	return slices.Concat(of.own, of.valid, []any{struct{ *sql.Null[T] }{&sql.Null[T]{V: id, Valid: true}}})
}

// testScanValuers tests Scan from Valuers, because ent's CreateBulk calls id.Scan(&id)
// after the rows are committed.
func (f format) testScanValuers(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 100 {
		id := f.random(r)
		own := receive(id)
		if err := own.Scan(own); err != nil || received(own) != id {
			t.Fatalf("id.Scan(&id) = %v, %v; want %v", received(own), err, id)
		}
		of := f.holders(id)
		for _, src := range append(of.own, of.valid...) {
			f.reads(t, id, fmt.Sprintf("Scan(%T)", src), func(p receiver) error { return p.Scan(src) })
		}
	}
	refuses := func(want error, sources ...any) {
		t.Helper()
		for _, src := range sources {
			f.refuses(t, fmt.Sprintf("Scan(%T)", src), want, func(p receiver) error { return p.Scan(src) })
		}
	}
	id := f.other()
	of := f.holders(id)
	refuses(ErrNull, of.null...)
	refuses(ErrSyntax, of.invalid...)
	refuses(ErrSyntax, endless{}, &endless{},
		// These don't hold an ID of the format.
		result[int]{v: Must(id.Value())}, result[int]{}, kind(1), sql.NullInt64{Int64: 1, Valid: true}, sql.NullString{String: id.String(), Valid: true})
	refuses(os.ErrDeadlineExceeded, of.failing)
	if !f.scansNoIDs {
		for _, no := range f.noIDs {
			refuses(ErrRange, f.holders(no).own...)
		}
	}
	// IDs of other formats are rejected, although their numbers may be valid here.
	for _, sources := range [][]any{foreign(Snowflake(1)), foreign(SnowflakeSI(1)), foreign(UID60(1)), foreign(Spread64(1)), foreign(Sno{9: 1})} {
		if reflect.TypeOf(sources[0]) != reflect.TypeOf(id) {
			refuses(ErrSyntax, sources...)
		}
	}
}

// The Value of a struct that embeds a nil pointer panics, so Scan must not call it.
func TestScanEmbeddedNil(t *testing.T) {
	for _, src := range []driver.Valuer{struct{ *Snowflake }{}, &struct{ *Snowflake }{}, struct{ *UID60 }{}, struct{ driver.Valuer }{}, sql.Null[struct{ *Snowflake }]{Valid: true}} {
		id := Snowflake(7)
		if err := id.Scan(src); !errors.Is(err, ErrNull) || id != 7 {
			t.Errorf("Scan(%T) = %v, %v, want ErrNull", src, id, err)
		}
	}
}

// Scan rejects text from a Valuer, because the text of some UID60s and Spread64s is also
// the decimal number of another ID.
func TestScanTextOfValuer(t *testing.T) {
	for _, v := range []any{"1234567890", []byte("1234567890")} {
		id := UID60(7)
		if err := id.Scan(result[UID60]{v: v}); !errors.Is(err, ErrSyntax) || id != 7 {
			t.Errorf("Scan of a Valuer with %T = %v, %v, want ErrSyntax", v, id, err)
		}
	}
}

func (f format) testRoundTrips(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		id := f.random(r)
		text, _ := id.MarshalText()
		if string(text) != id.String() {
			t.Fatalf("text %q, String %q", text, id.String())
		}
		bin, _ := id.MarshalBinary()
		js, _ := json.Marshal(id)
		val, _ := id.Value()
		f.reads(t, id, "UnmarshalText", func(p receiver) error { return p.UnmarshalText(text) })
		f.reads(t, id, "UnmarshalParam", func(p receiver) error { return p.UnmarshalParam(string(text)) })
		f.reads(t, id, "Bind", func(p receiver) error { return p.Bind(string(text)) })
		f.reads(t, id, "UnmarshalBinary", func(p receiver) error { return p.UnmarshalBinary(bin) })
		f.reads(t, id, "UnmarshalJSON", func(p receiver) error { return json.Unmarshal(js, p) })
		f.reads(t, id, "Scan", func(p receiver) error { return p.Scan(val) })
		keyed, err := json.Marshal(reflecttest.MapOf(id, 1))
		if err != nil || !strings.Contains(string(keyed), id.String()) {
			t.Fatalf("as a JSON key: %s, %v", keyed, err)
		}
		if t.Failed() {
			t.Fatalf("ID %x", bin)
		}
	}
}

func (f format) testOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 20000 {
		a, b := f.random(r), f.random(r)
		if r.IntN(10) == 0 {
			b = a
		}
		want := bytes.Compare(f.orderKey(a), f.orderKey(b))
		if got := f.compare(a, b); got != want {
			t.Fatalf("%v.Compare(%v) = %d, want %d", a, b, got, want)
		}
		ab, _ := a.AppendBinary(nil)
		bb, _ := b.AppendBinary(nil)
		if f.byteOrders && bytes.Compare(ab, bb) != want {
			t.Fatalf("the bytes of %v and %v don't sort as the IDs do", a, b)
		}
		if f.textOrders && cmp.Compare(a.String(), b.String()) != want {
			t.Fatalf("the texts of %v and %v don't sort as the IDs do", a, b)
		}
	}
}

// testNoIDs checks that methods don't write numbers that they can't read back.
func (f format) testNoIDs(t *testing.T) {
	for _, id := range f.noIDs {
		write := map[string]func() (int, error){
			"AppendText":   func() (int, error) { b, err := id.AppendText([]byte{}); return len(b), err },
			"AppendBinary": func() (int, error) { b, err := id.AppendBinary([]byte{}); return len(b), err },
			"MarshalJSON":  func() (int, error) { b, err := id.MarshalJSON(); return len(b), err },
			"Value": func() (int, error) {
				v, err := id.Value()
				if v != nil {
					return 1, err
				}
				return 0, err
			},
		}
		if f.scansNoIDs {
			delete(write, "Value")
			val, err := id.Value()
			if err != nil {
				t.Errorf("Value of %v: %v", id, err)
			}
			f.reads(t, id, "Scan", func(p receiver) error { return p.Scan(val) })
		}
		for name, do := range write {
			n, err := do()
			var pe *ParseError
			if n != 0 || !errors.Is(err, ErrRange) || !errors.As(err, &pe) || pe.Type != f.name {
				t.Errorf("%s of %v: %d bytes, %v, want none and ErrRange", name, id, n, err)
			}
		}
		if id.String() == "" {
			t.Error("String is empty")
		}
	}
	if f.column != bigintType {
		return
	}
	for _, n := range []int64{
		math.MinInt64, -1 << 53, -1 << 16, -1<<16 | 0x3ff, -1, 0, 1, 0x3ff, 0x400, 0x8000, 0xfc00, 1 << 16, 1<<53 - 1, 1 << 53, 1<<60 - 1, 1 << 60, math.MaxInt64,
	} {
		// UnmarshalBinary is as strict as Scan, except for the IDs that only a column can have.
		binary, column := receive(f.zero), receive(f.zero)
		wantErr := binary.UnmarshalBinary(uint64Bytes(uint64(n)))
		err := column.Scan(n)
		want, id := received(binary), received(column)
		if f.scansNoIDs && wantErr != nil {
			if err != nil {
				t.Errorf("from %d: %v", n, err)
			}
			continue
		}
		if id != want || (err == nil) != (wantErr == nil) || err != nil && !errors.Is(err, ErrRange) {
			t.Errorf("from %d: %v, %v, want %v, %v", n, id, err, want, wantErr)
		}
		var pe *ParseError
		if err != nil && (!errors.As(err, &pe) || pe.Type != f.name || !strings.Contains(err.Error(), "scan "+fmt.Sprint(n)+" into")) {
			t.Errorf("from %d: error %v, want a *ParseError for %s", n, err, f.name)
		}
	}
}

func (f format) testZero(t *testing.T) {
	zero := f.zero
	if !zero.IsZero() || f.other().IsZero() {
		t.Errorf("IsZero: %v for zero and %v for another ID", zero.IsZero(), f.other().IsZero())
	}
	if b, err := json.Marshal(zero); err != nil || string(b) != "null" {
		t.Errorf("JSON of zero: %s, %v", b, err)
	}
	f.reads(t, zero, "UnmarshalJSON(null)", func(p receiver) error { return json.Unmarshal([]byte("null"), p) })
	if zero.GormDataType() != f.column || receive(zero).(interface{ GormDataType() string }).GormDataType() != f.column {
		t.Errorf("GormDataType = %s, want %s", zero.GormDataType(), f.column)
	}
	if null, valid := f.null(); null.Scan(nil) != nil || *valid {
		t.Errorf("sql.Null of NULL: %v", null)
	}
}

func (f format) testAllocations(t *testing.T) {
	id := f.other()
	checks := f.calls(id)
	if f.column == "bigint" {
		dst := receive(id)
		var integer, decimal any = int64(17), "17"
		checks["Scan int64"] = func() error { return dst.Scan(integer) }
		checks["Scan string"] = func() error { return dst.Scan(decimal) }
	}
	for name, do := range checks {
		if err := do(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n := testing.AllocsPerRun(100, func() { _ = do() }); n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
	if n := testing.AllocsPerRun(100, func() { _ = id.String() }); n != 1 {
		t.Errorf("String: %v allocations, want 1", n)
	}
}
