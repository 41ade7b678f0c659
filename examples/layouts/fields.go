package main

import (
	"fmt"
	"math/big"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sortkey/sortkey/idtype"
)

// A format is a layout to be drawn.
type format struct {
	name    string // as Go has it
	column  string
	width   int     // bits in all
	fields  []field // from the highest bit to the lowest; bits that no part sets are one as well
	note    string
	example string // the ID whose values the fields show, as text
	chars   []char // the characters of the text, if each is some bits of its own
}

// A field is where a part lies in the ID.
type field struct {
	name  string // as the format's specification has it
	kind  string // how it is coloured
	about string // what it counts, if anything
	value string // in the example
	bits  []int  // the places of the part's bits, its lowest first, by what they are worth in the ID: 0 is the ID's lowest
}

// A char is a character of a text and the bits of the ID that it shows.
type char struct {
	text string
	hex  string // its byte
	bits []int
}

// high and low are the ends of the field.
func (f field) high() int { return slices.Max(f.bits) }
func (f field) low() int  { return slices.Min(f.bits) }

// reversed reports whether the part's lowest bit is the field's highest.
func (f field) reversed() bool { return len(f.bits) > 1 && f.bits[0] == f.high() }

// A part is composed into IDs in which all else is as in the first ID.
type part struct {
	field
	compose func(n uint64) (*big.Int, error) // an error past the part's largest number
}

// locate finds the places of a part's bits: those that each number with one
// bit sets.
func (p part) locate() (field, error) {
	zero, err := p.compose(0)
	if err != nil {
		return field{}, fmt.Errorf("%s: %w", p.name, err)
	}
	for i := range 64 {
		id, err := p.compose(1 << i)
		if err != nil {
			break // the part has no such bit
		}
		set := new(big.Int).Xor(id, zero)
		if set.Sign() == 0 || set.TrailingZeroBits()+1 != uint(set.BitLen()) {
			return field{}, fmt.Errorf("%s: expected %d to set one bit, got %b", p.name, uint64(1)<<i, set)
		}
		p.bits = append(p.bits, set.BitLen()-1)
	}
	return p.field, nil
}

// layOut finds where parts lie, and names the gaps between them.
func layOut(width int, gap string, parts []part) (fields []field, err error) {
	owner := make([]int, width) // 1 and more: a part
	for i, p := range parts {
		f, err := p.locate()
		if err != nil {
			return nil, err
		}
		for _, b := range f.bits {
			if b >= width || owner[b] != 0 {
				return nil, fmt.Errorf("%s: expected bit %d to be its own, got another's", f.name, b)
			}
			owner[b] = i + 1
		}
		if len(f.bits) == 0 || f.high()-f.low()+1 != len(f.bits) {
			return nil, fmt.Errorf("%s: expected bits that are neighbours, got %v", f.name, f.bits)
		}
		fields = append(fields, f)
	}
	for b := 0; b < width; b++ {
		if owner[b] == 0 {
			free := field{name: gap, kind: "free", value: "0"}
			for ; b < width && owner[b] == 0; b++ {
				free.bits = append(free.bits, b)
			}
			fields = append(fields, free)
		}
	}
	slices.SortFunc(fields, func(a, b field) int { return b.high() - a.high() })
	return fields, nil
}

// number is an ID of 64 bits.
func number[T ~int64](id T, err error) (*big.Int, error) {
	return new(big.Int).SetUint64(uint64(id)), err
}

// timePart is the part that counts units of time from the epoch, which is the time
// of the ID that is zero.
func timePart(name string, epoch time.Time, unit time.Duration, compose func(time.Time) (*big.Int, error)) part {
	return part{field: field{name: name, kind: "time"}, compose: func(n uint64) (*big.Int, error) {
		// In steps: a time.Duration doesn't reach as far as the formats do.
		t := epoch
		for ; n > 1<<40; n -= 1 << 40 {
			t = t.Add(unit << 40)
			if t.Year() > 9999 {
				return nil, idtype.ErrTimeExhausted
			}
		}
		return compose(t.Add(unit * time.Duration(n)))
	}}
}

// stamp writes times as the drawings do.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000") }

func formats() ([]format, error) {
	var all []format
	for _, f := range []func() (format, error){snowflake, snowflakeSI, uid60, spread64, sno} {
		made, err := f()
		if err != nil {
			return nil, err
		}
		all = append(all, made)
	}
	return all, nil
}

func snowflake() (format, error) {
	layout := idtype.DefaultSnowflakeLayout()
	epoch, id := layout.Time(0), idtype.Snowflake(132271570944274432)
	at := func(p idtype.SnowflakeParts) (*big.Int, error) {
		if p.Time.IsZero() {
			p.Time = epoch
		}
		return number(layout.Compose(p))
	}
	fields, err := layOut(64, "0", []part{
		timePart("time", epoch, time.Millisecond, func(t time.Time) (*big.Int, error) { return at(idtype.SnowflakeParts{Time: t}) }),
		{field{name: "datacenter", kind: "node"}, func(n uint64) (*big.Int, error) { return at(idtype.SnowflakeParts{Datacenter: int(n)}) }},
		{field{name: "worker", kind: "node2"}, func(n uint64) (*big.Int, error) { return at(idtype.SnowflakeParts{Worker: int(n)}) }},
		{field{name: "sequence", kind: "count"}, func(n uint64) (*big.Int, error) { return at(idtype.SnowflakeParts{Sequence: int(n)}) }},
	})
	if err != nil {
		return format{}, err
	}
	parts, err := layout.Parts(id)
	if err != nil {
		return format{}, err
	}
	describe(fields, "time", "milliseconds since "+epoch.Format(time.DateOnly), stamp(parts.Time))
	describe(fields, "datacenter", "", strconv.Itoa(parts.Datacenter))
	describe(fields, "worker", "", strconv.Itoa(parts.Worker))
	describe(fields, "sequence", "", strconv.Itoa(parts.Sequence))
	return format{
		name: "Snowflake", column: "bigint", width: 64, fields: fields, example: id.String(),
		note: "The default layout. Epoch and widths can be chosen; the time has what they leave of 63 bits.",
	}, nil
}

func snowflakeSI() (format, error) {
	base := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	layout, id := idtype.SnowflakeSILayout{BaseClock: base}, idtype.SnowflakeSI(745750769467909)
	at := func(p idtype.SnowflakeSIParts) (*big.Int, error) {
		if p.Time.IsZero() {
			p.Time = base
		}
		return number(layout.Compose(p))
	}
	fields, err := layOut(64, "0", []part{
		timePart("MAB", base, time.Millisecond, func(t time.Time) (*big.Int, error) { return at(idtype.SnowflakeSIParts{Time: t}) }),
		{field{name: "MID", kind: "node"}, func(n uint64) (*big.Int, error) { return at(idtype.SnowflakeSIParts{Machine: int(n)}) }},
		{field{name: "UIN", kind: "count"}, func(n uint64) (*big.Int, error) { return at(idtype.SnowflakeSIParts{Index: int(n)}) }},
	})
	if err != nil {
		return format{}, err
	}
	parts, err := layout.Parts(id)
	if err != nil {
		return format{}, err
	}
	describe(fields, "MAB", "milliseconds since the base clock", stamp(parts.Time))
	describe(fields, "MID", "machine", strconv.Itoa(parts.Machine))
	describe(fields, "UIN", "index", strconv.Itoa(parts.Index))
	return format{
		name: "SnowflakeSI", column: "bigint", width: 64, fields: fields, example: id.String(),
		note: "The default split. MID and UIN share their 13 bits as is chosen. The base clock of the example is " + base.Format(time.DateOnly) + ".",
	}, nil
}

func uid60() (format, error) {
	var layout idtype.UID60Layout
	epoch, id := idtype.UID60(0).Time(), idtype.UID60(11093174944930914)
	at := func(p idtype.UID60Parts) (*big.Int, error) {
		if p.Time.IsZero() {
			p.Time = epoch
		}
		return number(layout.Compose(p))
	}
	fields, err := layOut(64, "0", []part{
		timePart("time", epoch, time.Millisecond, func(t time.Time) (*big.Int, error) { return at(idtype.UID60Parts{Time: t}) }),
		{field{name: "sequence", kind: "count"}, func(n uint64) (*big.Int, error) { return at(idtype.UID60Parts{Sequence: int(n)}) }},
		{field{name: "random", kind: "chance"}, func(n uint64) (*big.Int, error) { return at(idtype.UID60Parts{Random: int(n)}) }},
	})
	if err != nil {
		return format{}, err
	}
	parts, err := layout.Parts(id)
	if err != nil {
		return format{}, err
	}
	describe(fields, "time", "milliseconds since "+epoch.Format(time.DateOnly), stamp(parts.Time))
	describe(fields, "sequence", "", strconv.Itoa(parts.Sequence))
	describe(fields, "random", "", strconv.Itoa(parts.Random))
	return format{
		name: "UID60", column: "bigint", width: 64, fields: fields, example: fmt.Sprintf("%s, in the column %d", id, id.Int64()),
		note: "Text: the number in base64url's digits, of which the last two come first.",
	}, nil
}

func spread64() (format, error) {
	var layout idtype.Spread64Layout
	epoch, id := idtype.Spread64(0).Time(), idtype.MustParseSpread64("cb54ecf2840a0015")
	at := func(p idtype.Spread64Parts) (*big.Int, error) {
		if p.Time.IsZero() {
			p.Time = epoch
		}
		return number(layout.Compose(p))
	}
	fields, err := layOut(64, "reserved", []part{
		timePart("time", epoch, time.Millisecond, func(t time.Time) (*big.Int, error) { return at(idtype.Spread64Parts{Time: t}) }),
		{field{name: "sequence", kind: "count"}, func(n uint64) (*big.Int, error) { return at(idtype.Spread64Parts{Sequence: int(n)}) }},
		{field{name: "generator", kind: "node"}, func(n uint64) (*big.Int, error) { return at(idtype.Spread64Parts{Generator: int(n)}) }},
		{field{name: "cluster", kind: "node2"}, func(n uint64) (*big.Int, error) { return at(idtype.Spread64Parts{Cluster: int(n)}) }},
	})
	if err != nil {
		return format{}, err
	}
	parts, err := layout.Parts(id)
	if err != nil {
		return format{}, err
	}
	var later []string
	for range 3 {
		parts.Time = parts.Time.Add(time.Millisecond)
		next, err := layout.Compose(parts)
		if err != nil {
			return format{}, err
		}
		later = append(later, next.String())
	}
	describe(fields, "time", "milliseconds since "+epoch.Format(time.DateOnly)+", bits in reverse order", stamp(id.Time()))
	describe(fields, "sequence", "", strconv.Itoa(parts.Sequence))
	describe(fields, "reserved", "always 0", "0")
	describe(fields, "generator", "", strconv.Itoa(parts.Generator))
	describe(fields, "cluster", "", strconv.Itoa(parts.Cluster))
	chars := charsOf(64, func(b int) string {
		if b < 0 {
			return id.String()
		}
		return (id ^ 1<<b).String()
	})
	return format{
		name: "Spread64", column: "bigint", width: 64, fields: fields, chars: chars, example: fmt.Sprintf("%s, in the column %d", id, id.Int64()),
		note: "One, two and three milliseconds later: " + strings.Join(later, ", "),
	}, nil
}

func sno() (format, error) {
	var layout idtype.SnoLayout
	var zero idtype.Sno
	id := idtype.MustParseSno("brpk4q72xwf2m63l")
	at := func(p idtype.SnoParts) (*big.Int, error) {
		if p.Time.IsZero() {
			p.Time = zero.Time()
		}
		id, err := layout.Compose(p)
		return new(big.Int).SetBytes(id[:]), err
	}
	// fits refuses what doesn't fit the type of a part, which has no more bits.
	fits := func(n uint64, size int, p idtype.SnoParts) (*big.Int, error) {
		if bits.Len64(n) > size {
			return nil, idtype.ErrRange
		}
		return at(p)
	}
	const unit = 4 * time.Millisecond
	fields, err := layOut(80, "", []part{
		timePart("time", zero.Time(), unit, func(t time.Time) (*big.Int, error) { return at(idtype.SnoParts{Time: t}) }),
		{field{name: "tick-tock", kind: "tick"}, func(n uint64) (*big.Int, error) { return fits(n, 1, idtype.SnoParts{TickTock: n == 1}) }},
		{field{name: "metabyte", kind: "own"}, func(n uint64) (*big.Int, error) { return fits(n, 8, idtype.SnoParts{Meta: byte(n)}) }},
		{field{name: "partition", kind: "node"}, func(n uint64) (*big.Int, error) {
			return fits(n, 16, idtype.SnoParts{Partition: idtype.SnoPartitionFrom(uint16(n))})
		}},
		{field{name: "sequence", kind: "count"}, func(n uint64) (*big.Int, error) { return fits(n, 16, idtype.SnoParts{Sequence: uint16(n)}) }},
	})
	if err != nil {
		return format{}, err
	}
	parts, err := layout.Parts(id)
	if err != nil {
		return format{}, err
	}
	tick := "0"
	if parts.TickTock {
		tick = "1"
	}
	describe(fields, "time", fmt.Sprintf("units of %d ms since %s", unit.Milliseconds(), zero.Time().Format(time.DateOnly)), stamp(parts.Time))
	describe(fields, "tick-tock", "changes when the clock steps back", tick)
	describe(fields, "metabyte", "your own", strconv.Itoa(int(parts.Meta)))
	describe(fields, "partition", "", strconv.Itoa(int(parts.Partition.Uint16())))
	describe(fields, "sequence", "", strconv.Itoa(int(parts.Sequence)))

	stored := id.UUID()
	chars := charsOf(80, func(b int) string {
		other := id
		if b >= 0 {
			other[9-b/8] ^= 1 << (b % 8)
		}
		return other.String()
	})
	for i := range chars {
		chars[i].hex = fmt.Sprintf("%02x", stored[i])
	}
	return format{
		name: "Sno", column: "uuid", width: 80, fields: fields, chars: chars, example: id.String(),
		note: "The uuid column holds the 16 characters of the text: " + stored.String(),
	}, nil
}

// charsOf finds the bits that each character of a text shows: those that change
// it. flipped is the text with one bit changed, or none for -1.
func charsOf(width int, flipped func(bit int) string) []char {
	text := flipped(-1)
	chars := make([]char, len(text))
	for i := range text {
		chars[i].text = text[i : i+1]
	}
	for b := range width {
		other := flipped(b)
		for i := range text {
			if other[i] != text[i] {
				chars[i].bits = append(chars[i].bits, b)
			}
		}
	}
	return chars
}

// describe says what a field has.
func describe(fields []field, name, about, value string) {
	i := slices.IndexFunc(fields, func(f field) bool { return f.name == name })
	fields[i].about, fields[i].value = about, value
}
