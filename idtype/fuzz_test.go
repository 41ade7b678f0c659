package idtype

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func FuzzSnowflake(f *testing.F)   { snowflakeFormat.fuzz(f) }
func FuzzSnowflakeSI(f *testing.F) { snowflakeSIFormat.fuzz(f) }
func FuzzUID60(f *testing.F)       { uid60Format.fuzz(f) }
func FuzzSpread64(f *testing.F)    { spread64Format.fuzz(f) }
func FuzzSno(f *testing.F)         { snoFormat.fuzz(f) }
func FuzzUUID(f *testing.F)        { uuidFormat.fuzz(f) }
func FuzzTypeID(f *testing.F)      { typedUUID[prefixed]().fuzz(f) }

// fuzz passes random bytes to all functions that read an ID. If they return an error, the
// receiver must be unchanged. Otherwise the ID must be written back as the same bytes.
func (format format[T, P]) fuzz(f *testing.F) {
	for _, v := range vectors(f, cmp.Or(format.file, format.name)) {
		b, err := hex.DecodeString(v.Binary)
		if err != nil {
			f.Fatal(err)
		}
		for _, seed := range []string{v.Text, v.Padded, v.JSON, v.SQL, string(b)} {
			f.Add([]byte(seed))
		}
	}
	for _, b := range format.badText {
		f.Add([]byte(b.in))
	}
	for _, b := range format.badJSON {
		f.Add([]byte(b.in))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		format.fuzzRead(t, in, "Parse", func(p P) error {
			id, err := format.parse(string(in))
			if err == nil {
				*p = id
			}
			return err
		}, func(id T) bool {
			return id.String() == string(in) || len(in) == uid60MaxDigits && format.name == "UID60"
		})
		format.fuzzRead(t, in, "UnmarshalText", func(p P) error { return p.UnmarshalText(in) }, func(id T) bool {
			same, err := format.parse(string(in))
			return err == nil && same == id
		})
		format.fuzzRead(t, in, "UnmarshalBinary", func(p P) error { return p.UnmarshalBinary(in) }, func(id T) bool {
			b, err := id.AppendBinary(nil)
			return err == nil && string(b) == string(in)
		})
		format.fuzzRead(t, in, "UnmarshalJSON", func(p P) error { return p.UnmarshalJSON(in) }, func(id T) bool {
			s, quoted := unquote(in)
			again, err := format.parse(string(s))
			column, _ := id.Value()
			_, isText := column.(string)
			return string(in) == jsonNull && id.IsZero() || err == nil && again == id ||
				quoted == isText && strings.EqualFold(string(s), fmt.Sprint(column))
		})
		for what, src := range map[string]any{"Scan(string)": string(in), "Scan([]byte)": in} {
			format.fuzzRead(t, in, what, func(p P) error { return p.Scan(src) }, func(id T) bool {
				v, err := id.Value()
				var again T
				return err == nil && P(&again).Scan(v) == nil && again == id
			})
		}
	})
}

func (format format[T, P]) fuzzRead(t *testing.T, in []byte, what string, read func(P) error, taken func(T) bool) {
	was := format.other()
	id := was
	if err := read(P(&id)); err != nil {
		var pe *ParseError
		if id != was || !errors.As(err, &pe) || pe.Error() == "" || pe.Unwrap() == nil {
			t.Errorf("%s(%q) = %v with the error %v", what, in, id, err)
		}
	} else if !taken(id) {
		t.Errorf("%s(%q) = %v", what, in, id)
	}
}
