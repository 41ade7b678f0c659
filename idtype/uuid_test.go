package idtype

import (
	"database/sql/driver"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sortkey/sortkey/internal/crockford"
)

var uuidFormat = formatOf(format{
	name: "UUID", column: "uuid",
	parts: func(t *testing.T, v vector, boxed anyID) {
		id := boxed.(UUID)
		checkUUID(t, v, id, id.Time, id.Version())
	},
	random:   randomUUID,
	orderKey: func(id anyID) []byte { u := id.(UUID); return u[:] }, textOrders: true, byteOrders: true,
	badText: []bad{
		{"", ErrSyntax, -1}, {"017f22e2-79b0-7cc3-98c4-dc0c0c07398", ErrSyntax, -1}, {"017f22e2-79b0-7cc3-98c4-dc0c0c07398ff", ErrSyntax, -1},
		{"017F22e2-79b0-7cc3-98c4-dc0c0c0739\x18F", ErrSyntax, 34},
		{"017f22e2-79b0-7cc3-98c4-dc0c0c07398g", ErrSyntax, 35}, {"017f22e2x79b0-7cc3-98c4-dc0c0c07398f", ErrSyntax, 8},
		{"017f22e-279b0-7cc3-98c4-dc0c0c07398f", ErrSyntax, 7}, {"017f22e279b07cc398c4dc0c0c07398f", ErrSyntax, -1},
		{"{17f22e2-79b0-7cc3-98c4-dc0c0c07398}", ErrSyntax, 0}, {"urn:uuid:017f22e2-79b0-7cc3-98c4-dc0c0c07398f", ErrSyntax, -1},
		{" 17f22e2-79b0-7cc3-98c4-dc0c0c07398f", ErrSyntax, 0}, {"01fwhe4ydgfk1shh6w1g60eecf", ErrSyntax, -1},
	},
	badJSON: append([]bad{{"1", ErrSyntax, -1}, {`"017F22E2-79b0-7cc3-98c4-dc0c0c07398G"`, ErrSyntax, 35},
		{"017f22e2-79b0-7cc3-98c4-dc0c0c07398f", ErrSyntax, -1}}, badStrings...),
	badScan: append([]badSource{
		{"017f22e2x79b0-7cc3-98c4-dc0c0c07398f", ErrSyntax}, {"017f22e279b07cc398c4dc0c0c07398f", ErrSyntax}, {make([]byte, 15), ErrSyntax},
		{[]byte{}, ErrSyntax}, {"", ErrSyntax}, {int64(7), ErrSyntax}, {"urn:uuid:017f22e2-79b0-7cc3-98c4-dc0c0c07398f", ErrSyntax}, {"0123456789abcdef", ErrSyntax},
	}, badSources...),
	goodScan: []goodSource{
		{"017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"}, {[]byte("017f22e2-79b0-7cc3-98c4-dc0c0c07398f"), "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"},
		{"017F22E2-79B0-7CC3-98C4-DC0C0C07398F", "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"},
		{uuid.MustParse("919108f7-52d1-4320-9bac-f847db4148a8"), "919108f7-52d1-4320-9bac-f847db4148a8"},
		{[16]byte{15: 1}, "00000000-0000-0000-0000-000000000001"}, {[]byte("0123456789abcdef"), "30313233-3435-3637-3839-616263646566"},
	},
}, ParseUUID)

// RFC 9562, section 4, lets readers accept either case. Writers use lower case.
func TestUUIDUpperCase(t *testing.T) {
	const upper, want = "017F22E2-79B0-7CC3-98C4-DC0C0C07398F", "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"
	var plain, param, bound UUID
	var typed UUIDOf[order]
	parsed, err := ParseUUID(upper)
	if err := errors.Join(err, json.Unmarshal([]byte(`"`+upper+`"`), &plain), json.Unmarshal([]byte(`"`+upper+`"`), &typed), param.UnmarshalParam(upper), bound.Bind(upper)); err != nil {
		t.Fatal(err)
	}
	for _, id := range []UUID{parsed, plain, typed.Untyped(), param, bound} {
		if id.String() != want {
			t.Errorf("got %v, want %v", id, want)
		}
	}
	// TypeIDs are strict.
	if id, err := Parse[UUIDOf[order]]("ord_01FWHE4YDGFK1SHH6W1G60EECF"); err == nil {
		t.Errorf("an upper-case TypeID is %v", id)
	}
}

// The UUIDs of other packages.
type (
	foreignUUID [16]byte // with Value, as gofrs/uuid's
	plainUUID   [16]byte // without, as the standard library's
	shortArray  [15]byte
	words       [16]int8
)

func (u foreignUUID) Value() (driver.Value, error) { return uuid.UUID(u).String(), nil }

// Scan accepts every type of 16 bytes, but no typed key of another model.
func TestScanForeignUUIDs(t *testing.T) {
	want := Must(ParseUUID("017f22e2-79b0-7cc3-98c4-dc0c0c07398f"))
	sno := Sno{0: 0x4e, 9: 7}
	foreign := foreignUUID(want)
	for _, src := range []any{foreignUUID(want), plainUUID(want), uuid.UUID(want), [16]byte(want), &foreign} {
		var id UUID
		var typed UUIDOf[order]
		if err := errors.Join(id.Scan(src), typed.Scan(src)); err != nil || id != want || typed.Untyped() != want {
			t.Errorf("%T: %v, %v, %v", src, id, typed, err)
		}
	}
	for _, src := range []any{foreignUUID(sno.UUID()), plainUUID(sno.UUID()), sno.UUID()} {
		var id Sno
		var typed SnoOf[order]
		if err := errors.Join(id.Scan(src), typed.Scan(src)); err != nil || id != sno || typed.Untyped() != sno {
			t.Errorf("%T: %v, %v, %v", src, id, typed, err)
		}
	}
	for _, src := range []any{UUIDOf[order](want), shortArray{}, words{}, (*foreignUUID)(nil), (*plainUUID)(nil)} {
		var id UUID
		var typed UUIDOf[customer]
		if err := id.Scan(src); err == nil {
			t.Errorf("UUID from %T: %v", src, id)
		}
		if err := typed.Scan(src); err == nil {
			t.Errorf("typed key from %T: %v", src, typed)
		}
	}
	var typed UUIDOf[order]
	if err := typed.Scan(want); err == nil {
		t.Errorf("typed key from a UUID without a model: %v", typed)
	}
	var number Snowflake
	if err := number.Scan(foreign); err == nil || !strings.Contains(err.Error(), "foreignUUID") {
		t.Errorf("Snowflake from a UUID: %v, %v", number, err)
	}
}

// randomUUID returns a UUID of any version.
func randomUUID(r *rand.Rand) anyID {
	var id UUID
	copy(id[:], append(uint64Bytes(r.Uint64()), uint64Bytes(r.Uint64())...))
	return id
}

// checkUUID checks the time of a UUID: of a vector without a time it must be an error.
func checkUUID(t *testing.T, v vector, id UUID, timeOf func() (time.Time, error), version int) {
	t.Helper()
	if u := uuid.UUID(id); u.String() != v.Text {
		t.Errorf("as a uuid.UUID %v, want %v", u, v.Text)
	}
	switch at, err := timeOf(); {
	case v.Time.IsZero():
		if !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), "UUID") {
			t.Errorf("Time = %v, %v, want ErrVersion", at, err)
		}
		if version == 7 {
			t.Error("Version = 7 without a time")
		}
	case err != nil || !at.Equal(v.Time) || at.Location() != time.UTC || version != 7:
		t.Errorf("Time = %v, %v, version %d, want %v", at, err, version, v.Time)
	}
}

func TestUUID(t *testing.T) { uuidFormat.test(t) }

func TestUUIDVersion(t *testing.T) {
	for text, want := range map[string]string{
		"919108f7-52d1-4320-9bac-f847db4148a8": "version 4",
		"c232ab00-9414-11ec-b3c8-9f6bdeced846": "version 1",
		"00000000-0000-0000-0000-000000000000": "all zeros",
		"ffffffff-ffff-ffff-ffff-ffffffffffff": "all ones",
		"017f22e2-79b0-7cc3-18c4-dc0c0c07398f": "another variant",
	} {
		if _, err := Must(ParseUUID(text)).Time(); !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), text) {
			t.Errorf("Time of %s: %v, want an error with %q", text, err, want)
		}
	}
	if v := Must(ParseUUID("919108f7-52d1-4320-9bac-f847db4148a8")).Version(); v != 4 {
		t.Errorf("Version = %d, want 4", v)
	}
}

// The ranges of adjacent windows are adjacent, and contain exactly the IDs of their window.
func TestUUIDRange(t *testing.T) {
	var l UUIDLayout
	at := utc("2026-01-02T03:04:05.678Z")
	lo, hi, err := l.Range(at.Add(300*time.Microsecond), at.Add(time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	if want := Must(l.Floor(at)); lo != want || want.String() != "019b7ca9-8f2e-7000-8000-000000000000" {
		t.Errorf("lo = %v, want %v", lo, want)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		ms := int64(r.IntN(3)) - 1
		id := uuidOf(uint64(at.UnixMilli()+ms)<<12|uint64(r.IntN(4096)), r.Uint64())
		if inside := id.Compare(lo) >= 0 && id.Compare(hi) < 0; inside != (ms == 0) {
			t.Fatalf("%v, %d ms after the window's start: inside %v", id, ms, inside)
		}
	}
	for _, tt := range []struct {
		from, to time.Time
		lo, hi   UUID
	}{
		{time.Time{}, time.Time{}, uuidFloor(0), uuid7Max},
		{at, time.Time{}, lo, uuid7Max},
		{time.Time{}, at, uuidFloor(0), lo},
		{utc("1960-01-01T00:00:00Z"), at, uuidFloor(0), lo},
		{at, time.UnixMilli(1 << 48), lo, uuid7Max},
	} {
		if lo, hi, err := l.Range(tt.from, tt.to); err != nil || lo != tt.lo || hi != tt.hi {
			t.Errorf("Range(%v, %v) = %v, %v, %v, want %v, %v", tt.from, tt.to, lo, hi, err, tt.lo, tt.hi)
		}
	}
	if _, _, err := l.Range(at, at.Add(-time.Second)); !errors.Is(err, ErrRange) {
		t.Errorf("Range with the end before the start: %v", err)
	}
	for at, want := range map[time.Time]error{time.UnixMilli(-1): ErrBeforeEpoch, time.UnixMilli(1 << 48): ErrTimeExhausted} {
		if _, err := l.Floor(at); !errors.Is(err, want) {
			t.Errorf("Floor(%v): %v, want %v", at, err, want)
		}
	}
	last := Must(l.Floor(time.UnixMilli(1<<48 - 1)))
	if at, err := last.Time(); err != nil || at.UnixMilli() != 1<<48-1 {
		t.Errorf("the last instant: %v, %v", at, err)
	}
}

// The models of TypeIDs.
type (
	prefixed  struct{}
	preFixed  struct{}
	digitized struct{}
	ended     struct{}
	tooLong   struct{}
	longest   struct{}
)

func (prefixed) IDPrefix() string  { return "prefix" }
func (preFixed) IDPrefix() string  { return "pre_fix" }
func (digitized) IDPrefix() string { return "v2" }
func (ended) IDPrefix() string     { return "prefix_" }
func (tooLong) IDPrefix() string   { return strings.Repeat("a", 64) }
func (longest) IDPrefix() string   { return strings.Repeat("a", 63) }

// typedUUID derives the format of a typed key from UUID's.
func typedUUID[K any]() format {
	type V = UUIDOf[K]
	v := derived(uuidFormat, typedName[*K](uuidFormat.name), typeIDTraits[*K]().prefix,
		func(id anyID) anyID { return id.(V).Untyped() }, func(id anyID) anyID { return V(id.(UUID)) })
	v.parts = func(t *testing.T, v vector, boxed anyID) {
		id := boxed.(V)
		v.Text = id.Untyped().String()
		checkUUID(t, v, id.Untyped(), id.Untyped().Time, id.Version())
		if !id.Time().Equal(v.Time) {
			t.Errorf("Time = %v, want %v", id.Time(), v.Time)
		}
	}
	return formatOf(prefixedUUID(v), Parse[V, *V])
}

// prefixedUUID adds texts to the format of a key, which is derived from UUID's.
func prefixedUUID(v format) format {
	f := uuidFormat
	v.badText, v.badJSON = f.badText, f.badJSON
	if v.prefix == "" {
		return v
	}
	v.goodScan, v.badText = nil, []bad{
		{"", ErrSyntax, -1}, {v.prefix, ErrSyntax, -1}, {"01fwhe4ydgfk1shh6w1g60eecf", ErrSyntax, -1}, {"other_01fwhe4ydgfk1shh6w1g60eecf", ErrSyntax, -1},
		{v.prefix + "01fwhe4ydgfk1shh6w1g60eec", ErrSyntax, -1}, {v.prefix + "01fwhe4ydgfk1shh6w1g60eecff", ErrSyntax, -1},
		{v.prefix + "01fwhe4ydgfk1shh6w1g60eecF", ErrSyntax, len(v.prefix) + 25}, {v.prefix + "81fwhe4ydgfk1shh6w1g60eecf", ErrSyntax, len(v.prefix)},
		{"017f22e2-79b0-7cc3-98c4-dc0c0c07398f", ErrSyntax, -1}, {v.prefix + "017f22e2-79b0-7cc3-98c4-dc0c0c07398f", ErrSyntax, -1},
	}
	for _, g := range f.goodScan {
		var id UUID
		_ = id.Scan(g.src)
		v.goodScan = append(v.goodScan, goodSource{g.src, string(crockford.Append(nil, (*[16]byte)(&id)))})
	}
	v.goodJSON = map[string]string{`"017f22e2-79b0-7cc3-98c4-dc0c0c07398f"`: "01fwhe4ydgfk1shh6w1g60eecf"}
	return v
}

func TestTypedUUID(t *testing.T) {
	t.Run("plain", typedUUID[plain]().test)
	t.Run("order", typedUUID[order]().test)
	t.Run("preFixed", typedUUID[preFixed]().test)
	t.Run("longest", func(t *testing.T) {
		id := UUIDOf[longest]{15: 1}
		if back, err := Parse[UUIDOf[longest]](id.String()); err != nil || back != id || id.ModelPrefix() != (longest{}).IDPrefix() {
			t.Errorf("%v reads as %v, %v", id, back, err)
		}
	})
}

// An ID of another model is rejected, and so is an ID without a model.
func TestTypedUUIDScanRefusals(t *testing.T) {
	for _, src := range []any{UUID{15: 1}, UUIDOf[customer]{15: 1}, Sno{9: 1}} {
		id := UUIDOf[order]{15: 7}
		if err := id.Scan(src); !errors.Is(err, ErrSyntax) || id != (UUIDOf[order]{15: 7}) {
			t.Errorf("Scan(%T) = %v, %v", src, id, err)
		}
	}
}

func TestTypeIDPrefixes(t *testing.T) {
	for want, use := range map[string]func(){
		`returns "v2"; want a prefix of a TypeID`:      func() { _ = UUIDOf[digitized]{}.String() },
		`returns "prefix_"; want a prefix of a TypeID`: func() { _ = UUIDOf[ended]{}.String() },
		`aaaa"; want a prefix of a TypeID`:             func() { _ = UUIDOf[tooLong]{}.String() },
		// The text of other formats can contain an underscore.
		`returns "pre_fix"; want lower-case letters and digits`: func() { _ = SnowflakeOf[preFixed](7).String() },
	} {
		func() {
			defer func() {
				if r, _ := recover().(string); !strings.Contains(r, want) {
					t.Errorf("panic %q, want %q", r, want)
				}
			}()
			use()
		}()
	}
	if got := SnowflakeOf[digitized](7).String(); got != "v2_7" {
		t.Errorf("a Snowflake is %s, want v2_7", got)
	}
}

// The vectors of the TypeID specification; see testdata/typeid.json.
func TestTypeIDVectors(t *testing.T) {
	data, err := os.ReadFile("testdata/typeid.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Valid   [][3]string
		Invalid []string
	}
	if err := json.Unmarshal(data, &file); err != nil || len(file.Valid) == 0 || len(file.Invalid) == 0 {
		t.Fatalf("%d and %d vectors: %v", len(file.Valid), len(file.Invalid), err)
	}
	for _, v := range file.Valid {
		text, prefix, u := v[0], v[1], uuid.MustParse(v[2])
		var got uuid.UUID
		var back string
		switch prefix {
		case "":
			b, bad := crockford.Parse([]byte(text))
			if got, back = b, string(crockford.Append(nil, &b)); bad >= 0 {
				t.Errorf("%s: invalid byte at %d", text, bad)
			}
		case "prefix":
			got, back = typeID[prefixed](t, text)
		case "pre_fix":
			got, back = typeID[preFixed](t, text)
		default:
			t.Errorf("no model has the prefix %q", prefix)
		}
		if got != u || back != text {
			t.Errorf("%s is %v, %s, want %v", text, got, back, u)
		}
	}
	for _, text := range file.Invalid {
		if id, err := Parse[UUIDOf[prefixed]](text); !errors.Is(err, ErrSyntax) {
			t.Errorf("Parse(%q) = %v, %v, want ErrSyntax", text, id, err)
		}
		if prefix, _, ok := strings.Cut(text, "_0000"); ok && prefix != "prefix" && validTypeIDPrefix(prefix) && !strings.HasPrefix(prefix, " ") {
			t.Errorf("the prefix %q is valid", prefix)
		}
	}
}

// typeID parses a text, and returns the UUID and its text.
func typeID[K any](t *testing.T, text string) (uuid.UUID, string) {
	t.Helper()
	id, err := Parse[UUIDOf[K]](text)
	if err != nil {
		t.Error(err)
	}
	return uuid.UUID(id), id.String()
}

// google/uuid accepts the text that ParseUUID accepts, and reads the same UUID.
func FuzzUUIDText(f *testing.F) {
	for _, s := range []string{"017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "017F22e2-79b0-7cc3-98c4-dc0c0c07398f"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParseUUID(s)
		if err != nil {
			return
		}
		if want, err := uuid.Parse(s); err != nil || UUID(want) != id {
			t.Errorf("ParseUUID(%q) = %v, want %v, %v", s, id, want, err)
		}
	})
}

// At creates distinct UUIDs of past times, which sort by units of 1/4096 ms.
func TestUUIDAt(t *testing.T) {
	at := utc("2024-05-06T07:08:09.123Z")
	var last UUID
	for i := range 4096 {
		moment := at.Add(time.Duration(i)*time.Millisecond/4096 + 1)
		id, err := UUIDLayout{}.At(moment)
		if err != nil || id.Compare(last) <= 0 || !Must(id.Time()).Equal(at) || id == Must(UUIDLayout{}.At(moment)) {
			t.Fatalf("unit %d: %v after %v, %v", i, id, last, err)
		}
		last = id
	}
	for moment, want := range map[time.Time]error{time.UnixMilli(-1): ErrBeforeEpoch, time.UnixMilli(1 << 48): ErrTimeExhausted} {
		if id, err := (UUIDLayout{}).At(moment); !errors.Is(err, want) || !id.IsZero() {
			t.Errorf("%v: %v, %v, want %v", moment, id, err, want)
		}
	}
}
