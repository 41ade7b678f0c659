package idtype

import (
	"encoding"
	"fmt"
	"strconv"
	"testing"
)

// BenchmarkText writes an ID of each type as text and reads it, and does the
// same to numbers of as many digits with strconv alone, for a yardstick. All
// are called through dictionaries, which is a nanosecond slower than straight.
func BenchmarkText(b *testing.B) {
	snowflakeFormat.bench(b, 132271570944274432)
	benchText[decimalYardstick](b, "strconv 18 digits", 132271570944274432, parseDecimalYardstick)
	snowflakeSIFormat.bench(b, 1<<53-1)
	benchText[decimalYardstick](b, "strconv 16 digits", 1<<53-1, parseDecimalYardstick)
	uid60Format.bench(b, 1<<60-1)
	spread64Format.bench(b, MustParseSpread64("cb54ecf2840a0015"))
	benchText[hexYardstick](b, "strconv 16 hex digits", 0xcb54ecf2840a0015, parseHexYardstick)
	snoFormat.bench(b, MustParseSno("brpk4q72xwf2m63l"))
}

type (
	decimalYardstick int64
	hexYardstick     uint64
)

func (v decimalYardstick) AppendText(b []byte) ([]byte, error) {
	return strconv.AppendInt(b, int64(v), 10), nil
}
func (v decimalYardstick) String() string { return strconv.FormatInt(int64(v), 10) }
func (v *decimalYardstick) UnmarshalText(b []byte) (err error) {
	*v, err = parseDecimalYardstick(string(b))
	return err
}

func parseDecimalYardstick(s string) (decimalYardstick, error) {
	v, err := strconv.ParseInt(s, 10, 64)
	return decimalYardstick(v), err
}

func (v hexYardstick) AppendText(b []byte) ([]byte, error) {
	return strconv.AppendUint(b, uint64(v), 16), nil
}
func (v hexYardstick) String() string { return strconv.FormatUint(uint64(v), 16) }
func (v *hexYardstick) UnmarshalText(b []byte) (err error) {
	*v, err = parseHexYardstick(string(b))
	return err
}

func parseHexYardstick(s string) (hexYardstick, error) {
	v, err := strconv.ParseUint(s, 16, 64)
	return hexYardstick(v), err
}

func (f format[T, P]) bench(b *testing.B, id T) {
	benchText[T, P](b, f.name, id, f.parse)
	column, err := id.Value()
	if err != nil {
		b.Fatal(err)
	}
	scan := func(what string, src any) {
		dst := new(T)
		benchLoop(b, f.name+"/Scan "+what, func(b *testing.B) {
			for b.Loop() {
				_ = P(dst).Scan(src)
			}
		})
	}
	scan("text", fmt.Sprint(column))
	scan("bytes of text", fmt.Append(nil, column))
	if sno, ok := any(id).(Sno); ok {
		u := sno.UUID()
		scan("uuid", u)
		scan("16 bytes", u[:])
		scan("digits", sno.String())
	} else {
		scan("int64", column)
	}
	benchLoop(b, f.name+"/Value", func(b *testing.B) {
		for b.Loop() {
			_, _ = id.Value()
		}
	})
}

// benchString keeps strings, so that they are allocated.
var benchString string

func benchText[T interface {
	encoding.TextAppender
	fmt.Stringer
}, P interface {
	*T
	encoding.TextUnmarshaler
}](b *testing.B, name string, id T, parse func(string) (T, error)) {
	text, buf, dst := id.String(), make([]byte, 0, 64), new(T)
	raw := []byte(text)
	benchLoop(b, name+"/AppendText", func(b *testing.B) {
		for b.Loop() {
			_, _ = id.AppendText(buf)
		}
	})
	benchLoop(b, name+"/String", func(b *testing.B) {
		for b.Loop() {
			benchString = id.String()
		}
	})
	benchLoop(b, name+"/Parse", func(b *testing.B) {
		for b.Loop() {
			_, _ = parse(text)
		}
	})
	benchLoop(b, name+"/UnmarshalText", func(b *testing.B) {
		for b.Loop() {
			_ = P(dst).UnmarshalText(raw)
		}
	})
}

func benchLoop(b *testing.B, name string, loop func(*testing.B)) {
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		loop(b)
	})
}
