package idtype

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
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
func (f format) fuzz(target *testing.F) {
	for _, v := range vectors(target, cmp.Or(f.file, f.name)) {
		b, err := hex.DecodeString(v.Binary)
		if err != nil {
			target.Fatal(err)
		}
		for _, seed := range []string{v.Text, v.Padded, v.JSON, v.SQL, string(b)} {
			target.Add([]byte(seed))
		}
	}
	for _, b := range f.badText {
		target.Add([]byte(b.in))
	}
	for _, b := range f.badJSON {
		target.Add([]byte(b.in))
	}
	target.Fuzz(func(t *testing.T, in []byte) {
		f.fuzzRead(t, in, "Parse", func(p receiver) error {
			id, err := f.parse(string(in))
			if err == nil {
				reflect.ValueOf(p).Elem().Set(reflect.ValueOf(id))
			}
			return err
		}, func(id anyID) bool {
			return id.String() == string(in) || len(in) == uid60MaxDigits && f.name == "UID60" || f.name == "UUID" && strings.EqualFold(id.String(), string(in))
		})
		f.fuzzRead(t, in, "UnmarshalText", func(p receiver) error { return p.UnmarshalText(in) }, func(id anyID) bool {
			same, err := f.parse(string(in))
			return err == nil && same == id
		})
		f.fuzzRead(t, in, "UnmarshalBinary", func(p receiver) error { return p.UnmarshalBinary(in) }, func(id anyID) bool {
			b, err := id.AppendBinary(nil)
			return err == nil && string(b) == string(in)
		})
		f.fuzzRead(t, in, "UnmarshalJSON", func(p receiver) error { return p.UnmarshalJSON(in) }, func(id anyID) bool {
			s, quoted := unquote(in)
			again, err := f.parse(string(s))
			column, _ := id.Value()
			_, isText := column.(string)
			return string(in) == jsonNull && id.IsZero() || err == nil && again == id ||
				quoted == isText && strings.EqualFold(string(s), fmt.Sprint(column))
		})
		for what, src := range map[string]any{"Scan(string)": string(in), "Scan([]byte)": in} {
			f.fuzzRead(t, in, what, func(p receiver) error { return p.Scan(src) }, func(id anyID) bool {
				v, err := id.Value()
				again := receive(f.zero)
				return err == nil && again.Scan(v) == nil && received(again) == id
			})
		}
	})
}

func (f format) fuzzRead(t *testing.T, in []byte, what string, read func(receiver) error, taken func(anyID) bool) {
	was := f.other()
	p := receive(was)
	err := read(p)
	id := received(p)
	if err != nil {
		var pe *ParseError
		if id != was || !errors.As(err, &pe) || pe.Error() == "" || pe.Unwrap() == nil {
			t.Errorf("%s(%q) = %v with the error %v", what, in, id, err)
		}
	} else if !taken(id) {
		t.Errorf("%s(%q) = %v", what, in, id)
	}
}

func FuzzSnowflakeOf(f *testing.F) { typedInteger[order, Snowflake](snowflakeFormat).fuzz(f) }
func FuzzUID60Of(f *testing.F)     { typedInteger[order, UID60](uid60Format).fuzz(f) }
func FuzzSnoOf(f *testing.F)       { typedSno[customer]().fuzz(f) }

// validPrefix and validTypeIDPrefix accept the documented prefixes.
func FuzzPrefix(f *testing.F) {
	for _, s := range []string{"", "a", "user2", "a_b", "_a", "a_", "a__b", "2a", "A", "ä", strings.Repeat("a", 63), strings.Repeat("a", 64)} {
		f.Add(s)
	}
	own, typeID := regexp.MustCompile(`^[a-z][a-z0-9]*$`), regexp.MustCompile(`^[a-z]([a-z_]{0,61}[a-z])?$`)
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := validPrefix(s), own.MatchString(s); got != want {
			t.Errorf("validPrefix(%q) = %v, want %v", s, got, want)
		}
		if got, want := validTypeIDPrefix(s), typeID.MatchString(s); got != want {
			t.Errorf("validTypeIDPrefix(%q) = %v, want %v", s, got, want)
		}
	})
}

// From any JSON, NewSnoGenerator returns an error, or a generator that continues after all
// pairs of the snapshot. Its own snapshot, through JSON, does so too, at any time of the clock.
func FuzzSnoSnapshot(f *testing.F) {
	c := &scripted{wall: snoStart}
	g := smallSno(f, c, Options{})
	for _, back := range []time.Duration{0, -time.Second, 2 * time.Second} { // also toggles the tick-tock bit
		c.step(back)
		Must(g.Next())
		f.Add(Must(json.Marshal(g.Snapshot())), int32(0), int32(-1), uint8(3))
		f.Add(Must(json.Marshal(g.Snapshot())), int32(-1), int32(-300), uint8(9))
	}
	f.Add([]byte(`{"sequenceMax":65535,"wallHi":-1,"wallSafe":-1,"first":-1}`), int32(0), int32(0), uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, step, next int32, n uint8) {
		var s SnoSnapshot
		if json.Unmarshal(data, &s) != nil {
			return
		}
		if unit := max(s.WallHi, s.WallSafe); unit > snoLine.last-1<<33 || unit < -1 {
			step, next = 0, 0 // the time of the clock must be one of the format
		}
		var last [2]pair // of each tick-tock bit
		tick := s.Drifts & 1
		last[tick], last[1-tick] = pair{s.WallHi, tick == 1, int64(s.Sequence)}, pair{s.WallSafe, tick == 0, 1 << 16}
		if s.First < 0 {
			last[tick].number = 1 << 16 // WallHi is a start bound
		}
		at := time.UnixMilli(snoPlan.epoch.UnixMilli() + 4*min(max(s.WallHi, s.WallSafe, 0), snoLine.last-1<<33))
		for _, d := range []int32{step, next} {
			at = at.Add(time.Duration(d) * 4 * time.Millisecond)
			forget()
			record := snoRecord(s.Partition)
			g, err := NewSnoGenerator(SnoConfig{Snapshot: &s, Options: Options{MaxWait: -1, clock: (&scripted{wall: at}).clock()}})
			if err != nil {
				if !errors.Is(err, ErrRange) && !errors.Is(err, ErrConfig) && !errors.Is(err, ErrBeforeEpoch) && !errors.Is(err, ErrTimeExhausted) {
					t.Errorf("%+v at %v: %v", s, at, err)
				}
				return
			}
			for range n % 16 {
				id, err := g.Next()
				if err != nil {
					break
				}
				p := record(id).pair
				was := &last[0]
				if p.tick {
					was = &last[1]
				}
				if p.unit < was.unit || p.unit == was.unit && p.number <= was.number {
					t.Errorf("%+v at %v: created %v after %v", s, at, p, *was)
				}
				*was = p
			}
			was := s
			s = SnoSnapshot{}
			if err := json.Unmarshal(Must(json.Marshal(g.Snapshot())), &s); err != nil || s != g.Snapshot() {
				t.Errorf("%+v: the JSON of %+v is read as %+v, %v", was, g.Snapshot(), s, err)
			}
		}
	})
}
