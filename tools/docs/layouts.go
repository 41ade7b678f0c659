package main

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/bits"
	"reflect"
	"strings"
	"time"

	"github.com/sortkey/sortkey/idtype"
)

// A format is an ID type with an example to draw.
type format struct {
	name, column  string
	bits          int
	parts         func(flip int) (any, error) // returns the parts of the example, with one bit flipped unless flip is -1
	labels        map[string]label            // of the fields, by the name of the part; "" is for bits without a part
	example, note string
	text          [][]string // rows of cells that show the same number of bits each
}

// A label describes a field in a drawing.
type label struct{ name, about string }

// A field is a run of bits that belong to one part.
type field struct {
	label
	part, value string
	high        int   // the highest bit
	weights     []int // the bits' positions in the part, from the highest bit of the ID to the lowest
}

func (f field) low() int       { return f.high - len(f.weights) + 1 }
func (f field) class() string  { return cmp.Or(strings.ToLower(f.part), "free") }
func (f field) reversed() bool { return len(f.weights) > 1 && f.weights[0] < f.weights[1] }

// fields flips each bit of the example and looks for the part that changes, so
// that a drawing shows the layout of the code.
func (f format) fields() (fields []field, err error) {
	example, err := f.parts(-1)
	if err != nil {
		return nil, err
	}
	for bit := f.bits - 1; bit >= 0; bit-- {
		part, value, weight := "", "0", 0
		if changed, err := f.parts(bit); err == nil { // otherwise the bit is in no part
			part, value, weight = difference(example, changed)
		}
		if n := len(fields); n == 0 || fields[n-1].part != part {
			l := f.labels[part]
			l.name = cmp.Or(l.name, strings.ToLower(part), "0")
			fields = append(fields, field{label: l, part: part, value: value, high: bit})
		}
		last := &fields[len(fields)-1]
		last.weights = append(last.weights, weight)
	}
	return fields, nil
}

// difference returns the part that differs, its value in the example, and the
// power of two by which it differs.
func difference(example, changed any) (part, value string, weight int) {
	a, b := reflect.ValueOf(example), reflect.ValueOf(changed)
	for i := range a.NumField() {
		n, shown := number(a.Field(i).Interface())
		m, _ := number(b.Field(i).Interface())
		if n != m {
			return a.Type().Field(i).Name, shown, bits.Len64(uint64(max(n-m, m-n))) - 1
		}
	}
	return "", "", 0
}

func number(part any) (n int64, shown string) {
	switch part := part.(type) {
	case time.Time:
		return part.UnixMilli(), part.UTC().Format("2006-01-02 15:04:05.000")
	case idtype.SnoPartition:
		n = int64(part.Uint16())
	case bool:
		if part {
			n = 1
		}
	default:
		n = reflect.ValueOf(part).Convert(reflect.TypeFor[int64]()).Int()
	}
	return n, fmt.Sprint(n)
}

// integer returns a function that returns the parts of an ID, with a bit flipped.
func integer[T ~int64, P any](id T, parts func(T) (P, error)) func(int) (any, error) {
	return func(flip int) (any, error) {
		if flip < 0 {
			return parts(id)
		}
		return parts(id ^ 1<<flip)
	}
}

// uuidParts are the fields of a UUID of version 7.
type uuidParts struct {
	Time                               time.Time
	Version, Fraction, Variant, Random int64
}

func uuidPartsOf(id idtype.UUID) uuidParts {
	high, low := binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:])
	return uuidParts{time.UnixMilli(int64(high >> 16)), int64(high >> 12 & 15), int64(high & 4095), int64(low >> 62), int64(low & (1<<62 - 1))}
}

func since(t time.Time) string { return "milliseconds since " + t.Format(time.DateOnly) }

func formats() []format {
	snowflake, snowflakeLayout := idtype.Snowflake(779811650940178432), idtype.DefaultSnowflakeLayout()
	si, siLayout := idtype.SnowflakeSI(745750769467909), idtype.SnowflakeSILayout{BaseClock: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)}
	uid60 := idtype.UID60(11093174944930914)
	spread64 := idtype.Must(idtype.ParseSpread64("cb54ecf2840a0015"))
	later := make([]string, 3)
	for i := range later {
		parts, _ := idtype.Spread64Layout{}.Parts(spread64) // can't fail for a parsed ID
		parts.Time = parts.Time.Add(time.Duration(i+1) * time.Millisecond)
		id, _ := idtype.Spread64Layout{}.Compose(parts)
		later[i] = id.String()
	}
	sno := idtype.Must(idtype.ParseSno("brpk4q72xwf2m63l"))
	uuid := idtype.Must(idtype.ParseUUID("017f22e2-79b0-7cc3-98c4-dc0c0c07398f"))
	return []format{{
		name: "Snowflake", column: "bigint", bits: 64, parts: integer(snowflake, snowflakeLayout.Parts),
		labels:  map[string]label{"Time": {about: since(snowflakeLayout.Time(0))}},
		example: snowflake.String(), note: "The default layout. Epoch and field widths are configurable; the time takes the rest of 63 bits.",
	}, {
		name: "SnowflakeSI", column: "bigint", bits: 64, parts: integer(si, siLayout.Parts),
		labels:  map[string]label{"Time": {"MAB", "milliseconds since the base clock"}, "Machine": {"MID", "machine"}, "Index": {"UIN", "index"}},
		example: si.String(),
		note:    "The default split. The 13 bits of MID and UIN can be split otherwise. The base clock of the example is " + siLayout.BaseClock.Format(time.DateOnly) + ".",
	}, {
		name: "UID60", column: "bigint", bits: 64, parts: integer(uid60, idtype.UID60Layout{}.Parts),
		labels:  map[string]label{"Time": {about: since(idtype.UID60(0).Time())}},
		example: uid60.String(),
		note:    fmt.Sprintf("In the column: %d. The text is this number in base64url digits, with the last two digits first.", uid60.Int64()),
	}, {
		name: "Spread64", column: "bigint", bits: 64, parts: integer(spread64, idtype.Spread64Layout{}.Parts),
		labels:  map[string]label{"Time": {about: since(idtype.Spread64(0).Time()) + ", lowest bit first"}, "": {"reserved", "always 0"}},
		example: spread64.String(), text: [][]string{strings.Split(spread64.String(), "")},
		note: fmt.Sprintf("In the column: %d. IDs created one, two and three milliseconds later: %s.", spread64.Int64(), strings.Join(later, ", ")),
	}, {
		name: "Sno", column: "uuid", bits: 80, parts: func(flip int) (any, error) {
			id := sno
			if flip >= 0 {
				id[9-flip/8] ^= 1 << (flip % 8)
			}
			return idtype.SnoLayout{}.Parts(id)
		},
		labels: map[string]label{
			"Time":     {about: "units of 4 ms since " + idtype.Sno{}.Time().Format(time.DateOnly)},
			"TickTock": {"tick-tock", "toggles when the clock steps back"}, "Meta": {"metabyte", "user-defined"},
		},
		text:    [][]string{strings.Split(sno.String(), ""), strings.Fields(fmt.Sprintf("% x", sno.String()))},
		example: sno.String(),
		note:    "The uuid column holds the 16 characters of the text: " + sno.UUID().String(),
	}, {
		name: "UUID", column: "uuid", bits: 128, parts: func(flip int) (any, error) {
			id := uuid
			if flip >= 0 {
				id[15-flip/8] ^= 1 << (flip % 8)
			}
			return uuidPartsOf(id), nil
		},
		labels: map[string]label{
			"Time": {about: since(time.Unix(0, 0).UTC())}, "Fraction": {about: "of the millisecond, in units of 1/4096 ms"}, "Variant": {about: "of RFC 9562"},
		},
		text:    [][]string{strings.Split(strings.ReplaceAll(uuid.String(), "-", ""), "")},
		example: uuid.String(),
		note:    "Version 7, as a UUIDGenerator creates it.",
	}}
}
