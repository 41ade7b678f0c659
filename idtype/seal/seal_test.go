package seal_test

import (
	"bytes"
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/idtype/seal"
	models "github.com/sortkey/sortkey/idtype/seal/internal/one"
	othermodels "github.com/sortkey/sortkey/idtype/seal/internal/two"
	"github.com/sortkey/sortkey/internal/race"
)

// Models of the sealed keys.
type (
	Order   struct{}
	Invoice struct{}
	Plain   struct{}
)

func (Order) IDPrefix() string   { return "ord" }
func (Invoice) IDPrefix() string { return "inv" }
func (Invoice) IDMeta() byte     { return 'i' }

func key(b byte) []byte {
	sum := sha256.Sum256([]byte{b})
	return sum[:]
}

func newSealer(t testing.TB, keys ...[]byte) *seal.Sealer {
	t.Helper()
	s, err := seal.New(keys[0], keys[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A vector is a known answer; see testdata/vectors.json.
type vector struct {
	Key    string // hex
	Type   string
	ID     string // the text of the ID
	Sealed string
}

func TestVectors(t *testing.T) {
	data, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []vector
	if err := json.Unmarshal(data, &list); err != nil || len(list) == 0 {
		t.Fatal(len(list), err)
	}
	for _, v := range list {
		t.Run(v.Type+"/"+v.ID, func(t *testing.T) {
			switch v.Type {
			case "Snowflake":
				check[idtype.Snowflake](t, v)
			case "SnowflakeOf[Order]":
				check[idtype.SnowflakeOf[Order]](t, v)
			case "SnowflakeSIOf[Plain]":
				check[idtype.SnowflakeSIOf[Plain]](t, v)
			case "UID60Of[Order]":
				check[idtype.UID60Of[Order]](t, v)
			case "Spread64":
				check[idtype.Spread64](t, v)
			case "Sno":
				check[idtype.Sno](t, v)
			case "SnoOf[Invoice]":
				check[idtype.SnoOf[Invoice]](t, v)
			case "UUID":
				check[idtype.UUID](t, v)
			case "UUIDOf[Order]":
				check[idtype.UUIDOf[Order]](t, v)
			default:
				t.Fatal("unknown type")
			}
		})
	}
}

func check[V interface {
	seal.ID
	comparable
	fmt.Stringer
}, P interface {
	*V
	encoding.BinaryUnmarshaler
	encoding.TextUnmarshaler
}](t *testing.T, v vector) {
	k, _ := hex.DecodeString(v.Key)
	s := newSealer(t, k)
	id, err := idtype.Parse[V, P](v.ID)
	if err != nil {
		t.Fatal(err)
	}
	if text := seal.Text(s, id); text != v.Sealed {
		t.Fatalf("Text = %s, want %s", text, v.Sealed)
	}
	for name, s := range map[string]*seal.Sealer{"own key": s, "old key": newSealer(t, key(9), key(8), k)} {
		if got, err := seal.Parse[V, P](s, v.Sealed); err != nil || got != id {
			t.Errorf("%s: Parse = %v, %v, want %v", name, got, err, id)
		}
	}
	refuse := func(what string, s *seal.Sealer, text string) {
		t.Helper()
		got, err := seal.Parse[V, P](s, text)
		var none V
		if !errors.Is(err, seal.ErrUnreadable) || got != none {
			t.Errorf("%s: Parse(%q) = %v, %v, want ErrUnreadable", what, text, got, err)
			return
		}
		if text != "" && strings.Contains(err.Error(), text) || strings.Contains(err.Error(), v.ID) {
			t.Errorf("%s: the error %q has the text or the ID", what, err)
		}
	}
	refuse("another key", newSealer(t, key(9), key(8)), v.Sealed)
	if !strings.HasPrefix(v.Type, "UUIDOf") { // its plain text has the same form
		refuse("the plain ID", s, v.ID)
	}
	refuse("empty", s, "")
	refuse("too short", s, v.Sealed[:len(v.Sealed)-1])
	refuse("too long", s, v.Sealed+"0")
	for i, c := range []byte(v.Sealed) {
		changed := []byte(v.Sealed)
		for _, changed[i] = range []byte("07azAé_-") {
			if changed[i] != c {
				if !strings.HasPrefix(v.Type, "UUID") {
					refuse("a changed character", s, string(changed))
				} else if got, err := seal.Parse[V, P](s, string(changed)); err == nil && got == id {
					t.Errorf("%s opens to the same ID", changed)
				}
			}
		}
	}
}

// Accounts of two packages have the same name.
type (
	one = models.Account
	two = othermodels.Account
)

// A text opens as no other type: neither as another model nor as another format, whatever their
// names and prefixes.
func TestOtherTypes(t *testing.T) {
	s := newSealer(t, key(1))
	uuid := idtype.UUID{0: 1, 6: 0x70, 8: 0x80}
	texts := map[string]string{
		"Snowflake": seal.Text(s, idtype.Snowflake(7)), "SnowflakeSI": seal.Text(s, idtype.SnowflakeSI(7)),
		"UID60": seal.Text(s, idtype.UID60(7<<10)), "Spread64": seal.Text(s, idtype.Spread64(1<<40|0x15)),
		"Sno": seal.Text(s, idtype.Sno{9: 7}), "UUID": seal.Text(s, uuid),
		"Snowflake one": seal.Text(s, idtype.SnowflakeOf[one](7)), "Snowflake two": seal.Text(s, idtype.SnowflakeOf[two](7)),
		"Sno one": seal.Text(s, idtype.SnoOf[one]{9: 7}), "UUID one": seal.Text(s, idtype.UUIDOf[one](uuid)), "UUID two": seal.Text(s, idtype.UUIDOf[two](uuid)),
		"Snowflake order": seal.Text(s, idtype.SnowflakeOf[Order](7)), "UID60 order": seal.Text(s, idtype.UID60Of[Order](7<<10)),
		"Sno order": seal.Text(s, idtype.SnoOf[Order]{9: 7}), "UUID order": seal.Text(s, idtype.UUIDOf[Order](uuid)),
		"Snowflake invoice": seal.Text(s, idtype.SnowflakeOf[Invoice](7)),
	}
	parse := map[string]func(text string) (any, error){
		"Snowflake": parser[idtype.Snowflake](s), "SnowflakeSI": parser[idtype.SnowflakeSI](s),
		"UID60": parser[idtype.UID60](s), "Spread64": parser[idtype.Spread64](s),
		"Sno": parser[idtype.Sno](s), "UUID": parser[idtype.UUID](s),
		"Snowflake one": parser[idtype.SnowflakeOf[one]](s), "Snowflake two": parser[idtype.SnowflakeOf[two]](s),
		"Sno one": parser[idtype.SnoOf[one]](s), "UUID one": parser[idtype.UUIDOf[one]](s), "UUID two": parser[idtype.UUIDOf[two]](s),
		"Snowflake order": parser[idtype.SnowflakeOf[Order]](s), "UID60 order": parser[idtype.UID60Of[Order]](s),
		"Sno order": parser[idtype.SnoOf[Order]](s), "UUID order": parser[idtype.UUIDOf[Order]](s),
		"Snowflake invoice": parser[idtype.SnowflakeOf[Invoice]](s),
	}
	for name, text := range texts {
		if text == "" {
			t.Errorf("%s: no text", name)
		}
		_, rest, prefixed := strings.Cut(text, "_")
		if !prefixed {
			rest = text
		}
		for other, parse := range parse {
			for _, text := range []string{text, rest, "ord_" + rest, "inv_" + rest} {
				switch id, err := parse(text); {
				case other == name && text == texts[name] && err != nil, err != nil && !errors.Is(err, seal.ErrUnreadable):
					t.Errorf("%s as %s: %v", name, other, err)
				case (other != name || text != texts[name]) && err == nil && !strings.HasPrefix(other, "UUID"):
					t.Errorf("%s opens as %s: %v", name, other, id)
				case other != name && err == nil && fmt.Sprint(id) == fmt.Sprint(uuid):
					t.Errorf("%s opens as the same %s: %v", name, other, id)
				}
			}
		}
	}
	_, err := seal.Parse[idtype.SnowflakeOf[Order]](s, "x")
	if want := `seal: open a text as idtype.SnowflakeOf[seal_test.Order]: want "ord_" and 26 characters of Text: not a sealed ID of this type and these keys`; err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
}

func parser[V seal.ID, P interface {
	*V
	encoding.BinaryUnmarshaler
}](s *seal.Sealer) func(text string) (any, error) {
	return func(text string) (any, error) {
		id, err := seal.Parse[V, P](s, text)
		return id, err
	}
}

// Of random texts of UUIDs, one in eight opens, because one in eight has the variant and a version.
func TestForgedUUIDs(t *testing.T) {
	s, r := newSealer(t, key(1)), rand.New(rand.NewPCG(3, 4))
	opened := 0
	for range 4000 {
		text := make([]byte, 26)
		for i := range text {
			text[i] = "0123456789abcdefghjkmnpqrstvwxyz"[r.IntN(32)]
		}
		text[0] = '0' + byte(r.IntN(8))
		id, err := seal.Parse[idtype.UUID](s, string(text))
		if err != nil {
			continue
		}
		opened++
		if seal.Text(s, id) != string(text) {
			t.Errorf("%s opens to %v, which has another text", text, id)
		}
	}
	if opened < 400 || opened > 600 {
		t.Errorf("%d of 4000 texts open, want about 500", opened)
	}
}

// The zero ID has no text, and neither has a number that isn't an ID.
func TestNoID(t *testing.T) {
	s := newSealer(t, key(1))
	for _, text := range []string{seal.Text(s, idtype.Snowflake(0)), seal.Text(s, idtype.Snowflake(-1)), seal.Text(s, idtype.SnoOf[Invoice]{}), seal.Text(s, idtype.SnoOf[Invoice]{5: 'x'}),
		seal.Text(s, idtype.UUID{}), seal.Text(s, idtype.UUID{6: 0x70}), seal.Text(s, idtype.UUID{6: 0x90, 8: 0x80}), seal.Text(s, idtype.UUID{0: 1, 8: 0x80})} {
		if text != "" {
			t.Errorf("text %q, want none", text)
		}
	}
	if id := idtype.Snowflake(math.MaxInt64); seal.Text(s, id) == "" {
		t.Error("the largest ID has no text")
	}
}

func TestKeys(t *testing.T) {
	good := key(1)
	for name, c := range map[string]struct {
		keys [][]byte
		want string
	}{
		"none":        {[][]byte{nil}, "key 0 has 0 bytes; want 16, 24 or 32 random bytes"},
		"31 bytes":    {[][]byte{good[:31]}, "key 0 has 31 bytes"},
		"33 bytes":    {[][]byte{append(slices.Clone(good), 1)}, "key 0 has 33 bytes"},
		"old key":     {[][]byte{good, good[:8]}, "key 1 has 8 bytes"},
		"zero":        {[][]byte{make([]byte, 32)}, "key 0 has 1 different bytes"},
		"old zero":    {[][]byte{good, make([]byte, 16)}, "key 1 has 1 different bytes"},
		"repeated":    {[][]byte{bytes.Repeat(good[:4], 8)}, "key 0 has 4 different bytes"},
		"a password":  {[][]byte{[]byte("correct horse battery staple, ok")}, "key 0 is a text; want 16, 24 or 32 random bytes"},
		"hex digits":  {[][]byte{[]byte(hex.EncodeToString(good[:16]))}, "key 0 is a text"},
		"base64 text": {[][]byte{[]byte("q83vEjRWeJCrze8SNFZ4kA==")}, "key 0 is a text"},
	} {
		if s, err := seal.New(c.keys[0], c.keys[1:]...); err == nil || s != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	for _, size := range []int{16, 24, 32} {
		k := slices.Clone(good[:size])
		s := newSealer(t, k)
		text := seal.Text(s, idtype.Sno{9: 1})
		clear(k) // the Sealer has a copy
		if id, err := seal.Parse[idtype.Sno](s, text); err != nil || id != (idtype.Sno{9: 1}) || seal.Text(s, idtype.SnoOf[Plain]{9: 1}) == "" {
			t.Errorf("a key of %d bytes: %v, %v", size, id, err)
		}
	}
}

// Adjacent IDs have texts that share nothing.
func TestSpread(t *testing.T) {
	s, r := newSealer(t, key(1)), rand.New(rand.NewPCG(1, 2))
	equal := 0
	for range 1000 {
		id := idtype.Snowflake(r.Int64N(math.MaxInt64))
		a, b := seal.Text(s, id), seal.Text(s, id+1)
		for i := range a {
			if a[i] == b[i] {
				equal++
			}
		}
	}
	// 1/32 of 25 characters, and 1/8 of the first.
	if share := float64(equal) / 1000; share < 0.6 || share > 1.2 {
		t.Errorf("%.2f characters are equal on average, want 0.9", share)
	}
}

func FuzzParse(f *testing.F) {
	s := newSealer(f, key(1))
	f.Add(seal.Text(s, idtype.SnowflakeOf[Order](7)))
	f.Add(seal.Text(s, idtype.Sno{9: 1}))
	f.Add(seal.Text(s, idtype.UUIDOf[Order]{6: 0x70, 8: 0x80}))
	f.Add("ord_00000000000000000000000000")
	f.Fuzz(func(t *testing.T, text string) {
		if id, err := seal.Parse[idtype.SnowflakeOf[Order]](s, text); err == nil && seal.Text(s, id) != text {
			t.Errorf("%q opens to %v", text, id)
		}
		if id, err := seal.Parse[idtype.Sno](s, text); err == nil && seal.Text(s, id) != text {
			t.Errorf("%q opens to %v", text, id)
		}
		if id, err := seal.Parse[idtype.UUIDOf[Order]](s, text); err == nil && seal.Text(s, id) != text {
			t.Errorf("%q opens to %v", text, id)
		}
	})
}

func TestAllocations(t *testing.T) {
	s := newSealer(t, key(1))
	number, uuid := idtype.SnowflakeOf[Order](779300444248735744), idtype.UUIDOf[Order]{0: 1, 6: 0x70, 8: 0x80}
	texts := []string{seal.Text(s, number), seal.Text(s, uuid)}
	for name, f := range map[string]func(){
		"Text":           func() { seal.Text(s, number) },
		"Text of a UUID": func() { seal.Text(s, uuid) },
		"Parse":          func() { _, _ = seal.Parse[idtype.SnowflakeOf[Order]](s, texts[0]) },
		"Parse a UUID":   func() { _, _ = seal.Parse[idtype.UUIDOf[Order]](s, texts[1]) },
	} {
		if n := testing.AllocsPerRun(100, f); n > 1 && !race.Enabled {
			t.Errorf("%s: %v allocations, want at most 1", name, n)
		}
	}
}

func BenchmarkText(b *testing.B) {
	s := newSealer(b, key(1))
	b.Run("Snowflake", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = seal.Text(s, idtype.SnowflakeOf[Order](779300444248735744))
		}
	})
	b.Run("UUID", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = seal.Text(s, idtype.UUIDOf[Order]{0: 1, 6: 0x70, 8: 0x80})
		}
	})
}

func BenchmarkParse(b *testing.B) {
	s := newSealer(b, key(1))
	b.Run("Snowflake", func(b *testing.B) {
		text := seal.Text(s, idtype.SnowflakeOf[Order](779300444248735744))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := seal.Parse[idtype.SnowflakeOf[Order]](s, text); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("UUID", func(b *testing.B) {
		text := seal.Text(s, idtype.UUIDOf[Order]{0: 1, 6: 0x70, 8: 0x80})
		b.ReportAllocs()
		for b.Loop() {
			if _, err := seal.Parse[idtype.UUIDOf[Order]](s, text); err != nil {
				b.Fatal(err)
			}
		}
	})
}
