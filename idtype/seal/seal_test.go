package seal_test

import (
	"bytes"
	"encoding"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/idtype/seal"
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

func key(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }

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
	refuse("the plain ID", s, v.ID)
	refuse("empty", s, "")
	refuse("too short", s, v.Sealed[:len(v.Sealed)-1])
	refuse("too long", s, v.Sealed+"0")
	for i, c := range []byte(v.Sealed) {
		changed := []byte(v.Sealed)
		for _, changed[i] = range []byte("07azAé_-") {
			if changed[i] != c {
				refuse("a changed character", s, string(changed))
			}
		}
	}
}

// The text of one type isn't an ID of another, whatever its prefix.
func TestOtherTypes(t *testing.T) {
	s := newSealer(t, key(1))
	text := seal.Text(s, idtype.SnowflakeOf[Order](7))
	rest := text[len("ord_"):]
	for name, parse := range map[string]func() error{
		"plain":        func() error { _, err := seal.Parse[idtype.Snowflake](s, rest); return err },
		"other model":  func() error { _, err := seal.Parse[idtype.SnowflakeOf[Invoice]](s, "inv_"+rest); return err },
		"other size":   func() error { _, err := seal.Parse[idtype.SnoOf[Order]](s, text); return err },
		"without":      func() error { _, err := seal.Parse[idtype.SnowflakeOf[Order]](s, rest); return err },
		"other format": func() error { _, err := seal.Parse[idtype.SnowflakeOf[Plain]](s, rest); return err },
	} {
		if err := parse(); !errors.Is(err, seal.ErrUnreadable) {
			t.Errorf("%s: %v, want ErrUnreadable", name, err)
		}
	}
	_, err := seal.Parse[idtype.SnowflakeOf[Order]](s, "x")
	if want := `seal: open a text as idtype.SnowflakeOf[seal_test.Order]: want "ord_" and 26 characters of Text: not a sealed ID of this type and these keys`; err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
}

// The zero ID has no text, and neither has a number that isn't an ID.
func TestNoID(t *testing.T) {
	s := newSealer(t, key(1))
	for _, text := range []string{seal.Text(s, idtype.Snowflake(0)), seal.Text(s, idtype.Snowflake(-1)), seal.Text(s, idtype.SnoOf[Invoice]{}), seal.Text(s, idtype.SnoOf[Invoice]{5: 'x'})} {
		if text != "" {
			t.Errorf("text %q, want none", text)
		}
	}
	if id := idtype.Snowflake(math.MaxInt64); seal.Text(s, id) == "" {
		t.Error("the largest ID has no text")
	}
}

func TestKeys(t *testing.T) {
	for _, keys := range [][][]byte{{nil}, {make([]byte, 31)}, {make([]byte, 33)}, {make([]byte, 32), make([]byte, 8)}} {
		if s, err := seal.New(keys[0], keys[1:]...); err == nil || s != nil || !strings.Contains(err.Error(), "want 16, 24 or 32 random bytes") {
			t.Errorf("keys of %d bytes: %v", len(keys[len(keys)-1]), err)
		}
	}
	for _, size := range []int{16, 24, 32} {
		s := newSealer(t, make([]byte, size))
		if id, err := seal.Parse[idtype.Sno](s, seal.Text(s, idtype.Sno{9: 1})); err != nil || id != (idtype.Sno{9: 1}) {
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
	f.Add("ord_00000000000000000000000000")
	f.Fuzz(func(t *testing.T, text string) {
		if id, err := seal.Parse[idtype.SnowflakeOf[Order]](s, text); err == nil && seal.Text(s, id) != text {
			t.Errorf("%q opens to %v", text, id)
		}
		if id, err := seal.Parse[idtype.Sno](s, text); err == nil && seal.Text(s, id) != text {
			t.Errorf("%q opens to %v", text, id)
		}
	})
}

func BenchmarkText(b *testing.B) {
	s := newSealer(b, key(1))
	b.ReportAllocs()
	for b.Loop() {
		_ = seal.Text(s, idtype.SnowflakeOf[Order](779300444248735744))
	}
}

func BenchmarkParse(b *testing.B) {
	s := newSealer(b, key(1))
	text := seal.Text(s, idtype.SnowflakeOf[Order](779300444248735744))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := seal.Parse[idtype.SnowflakeOf[Order]](s, text); err != nil {
			b.Fatal(err)
		}
	}
}
