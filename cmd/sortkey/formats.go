package main

import (
	"context"
	"encoding"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/internal/crockford"
	"github.com/spf13/cobra"
)

// An anyID is an ID of any type of package idtype.
type anyID interface {
	encoding.TextAppender
	encoding.BinaryAppender
	String() string
	IsZero() bool
}

// A format is an ID type with its layout.
type format struct {
	name   string // on the command line and in JSON
	title  string // as in Go
	column string // the column type
	nodes  []bitField
	// sequences is the number of IDs per node and unit of time.
	sequences int
	// randomBits is the number of random bits beside the sequence number.
	randomBits int
	// undated is set if the layout has no epoch, so that IDs have no time.
	undated bool

	parseText   func(string) (anyID, error)
	parseInt64  func(int64) (anyID, error)     // nil unless the column type is bigint
	parseUUID   func(uuid.UUID) (anyID, error) // nil unless the column type is uuid
	parseBinary func([]byte) (anyID, error)

	parts   func(anyID) (parts, error)
	compose func(parts) (anyID, error)
	// window returns the bounds of the IDs between two times. It is nil if the IDs don't
	// sort by time.
	window func(from, to time.Time) (lo, hi anyID, err error)
	// generate generates n IDs and calls emit with each block of them.
	generate func(ctx context.Context, p parts, n int, emit func(anyID) error) error
}

// A bitField is a field of a node number.
type bitField struct {
	name string
	bits int
}

// parts are the parts of an ID of any type.
type parts struct {
	time     time.Time // zero if the format is undated
	node     int       // the fields of the node number, concatenated; 0 if there are none
	sequence int
	random   int64 // UID60 and UUID only
	meta     byte  // Sno only
	ticktock bool  // Sno only
	version  int   // UUID only; the other parts are of version 7, the time also of 1 and 6
}

// nodeLimit returns the number of node numbers: 1 if the format has none.
func (f *format) nodeLimit() int { return 1 << widths(f.nodes) }

func widths(fields []bitField) (sum int) {
	for _, field := range fields {
		sum += field.bits
	}
	return sum
}

// nodeFields returns the fields of a node number by name, and as a text such as
// "datacenter 1, worker 5".
func (f *format) nodeFields(node int) (byName map[string]int, text string) {
	byName = map[string]int{}
	var texts []string
	for i, value := range f.splitNode(node) {
		byName[f.nodes[i].name] = value
		texts = append(texts, fmt.Sprintf("%s %d", f.nodes[i].name, value))
	}
	return byName, strings.Join(texts, ", ")
}

// splitNode returns the values of the node number's fields.
func (f *format) splitNode(node int) []int {
	values := make([]int, len(f.nodes))
	for i, field := range slices.Backward(f.nodes) {
		values[i] = node & (1<<field.bits - 1)
		node >>= field.bits
	}
	return values
}

// joinNode is the inverse of splitNode.
func (f *format) joinNode(values ...int) (node int) {
	for i, field := range f.nodes {
		node = node<<field.bits | values[i]
	}
	return node
}

// forms are the forms that appendForm appends.
var forms = []string{"text", "int64", "uuid", "typeid", "hex", "bytea"}

// errNoForm: the type doesn't have the form.
var errNoForm = errors.New("no such form")

// appendForm appends a form of an ID. hex and bytea are the big-endian bytes in the
// notations 0x... and \x.... The prefix is that of a TypeID, which can be empty.
func appendForm(b []byte, id anyID, form, prefix string) ([]byte, error) {
	switch form {
	case "text":
		return id.AppendText(b)
	case "int64":
		if id, ok := id.(interface{ Int64() int64 }); ok {
			return strconv.AppendInt(b, id.Int64(), 10), nil
		}
	case "uuid":
		switch id := id.(type) {
		case idtype.Sno:
			return append(b, id.UUID().String()...), nil
		case idtype.UUID:
			return id.AppendText(b)
		}
	case "typeid":
		if id, ok := id.(idtype.UUID); ok && typeIDPrefix.MatchString(prefix) {
			if prefix != "" {
				b = append(append(b, prefix...), '_')
			}
			return crockford.Append(b, (*[16]byte)(&id)), nil
		}
	case "hex", "bytea":
		var buf [16]byte
		binary, err := id.AppendBinary(buf[:0])
		if err != nil {
			return b, err
		}
		prefix := "0x"
		if form == "bytea" {
			prefix = `\x`
		}
		return hex.AppendEncode(append(b, prefix...), binary), nil
	}
	return b, errNoForm
}

// columnText returns the value of the ID's column.
func columnText(id anyID) string {
	b, err := appendForm(nil, id, "int64", "")
	if err != nil {
		b, _ = appendForm(nil, id, "uuid", "")
	}
	return string(b)
}

// formatNames returns the names of the ID types on the command line.
func formatNames() []string {
	return []string{"snowflake", "snowflake-si", "uid60", "spread64", "sno", "uuid7"}
}

// layoutFlags are the flags for layouts other than the default.
type layoutFlags struct {
	epoch, bits string
}

const layoutHelp = `--epoch and --bits describe a layout other than the default. For snowflake, the
default epoch is 2021-01-01, and the default bits of datacenter/worker/sequence
are 5/5/12. For snowflake-si, the epoch is the base clock, which has no default,
and the default bits of machine/index are 5/8.`

func (l *layoutFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&l.epoch, "epoch", "", "fixed `time` at which the clock of the layout starts, such as 2026-01-01, or Unix milliseconds")
	cmd.Flags().StringVar(&l.bits, "bits", "", "`widths` of the layout's fields, such as 5/5/12 or 5/8")
}

// parseBits parses widths such as 5/5/12.
func parseBits(s string) ([]int, error) {
	if s == "" {
		return nil, nil
	}
	var widths []int
	for width := range strings.SplitSeq(s, "/") {
		n, err := strconv.ParseUint(width, 10, 8)
		if err != nil {
			return nil, usagef("--bits %q: want widths such as 5/5/12", s)
		}
		widths = append(widths, int(n))
	}
	if n := len(widths); n != 2 && n != 3 {
		return nil, usagef("--bits %q: want 3 widths for snowflake (datacenter/worker/sequence) or 2 for snowflake-si (machine/index)", s)
	}
	return widths, nil
}

// snowflakeLayout returns the layout with an epoch and widths, or, where these are zero,
// with the defaults.
func snowflakeLayout(epoch time.Time, widths []int) (idtype.SnowflakeLayout, error) {
	l := idtype.SnowflakeLayout{Epoch: epoch}
	if len(widths) == 3 {
		if slices.Max(widths) == 0 {
			return l, errAllZero("5/5/12")
		}
		l.DatacenterBits, l.WorkerBits, l.SequenceBits = widths[0], widths[1], widths[2]
	}
	return l, asUsageError(l.Validate())
}

// snowflakeSILayout returns the layout with a base clock and widths.
func snowflakeSILayout(baseClock time.Time, widths []int) (idtype.SnowflakeSILayout, error) {
	l := idtype.SnowflakeSILayout{BaseClock: baseClock}
	if len(widths) == 2 {
		if slices.Max(widths) == 0 {
			return l, errAllZero("5/8")
		}
		l.MachineBits, l.IndexBits = widths[0], widths[1]
	}
	return l, asUsageError(l.Validate())
}

// errAllZero returns the error for widths that package idtype takes for its default.
func errAllZero(example string) error {
	return usagef("widths 0%s: want at least one field with bits, such as %s", strings.Repeat("/0", strings.Count(example, "/")), example)
}

func asUsageError(err error) error {
	if err != nil {
		return &usageError{err}
	}
	return nil
}

// format returns the format with this name.
func (c *cli) format(name string, l layoutFlags) (*format, error) {
	if !slices.Contains(formatNames(), name) {
		return nil, usagef("type %q: want %s", name, strings.Join(formatNames(), ", "))
	}
	widths, err := parseBits(l.bits)
	if err != nil {
		return nil, err
	}
	switch {
	case name != "snowflake" && name != "snowflake-si" && l != layoutFlags{}:
		return nil, usagef("%s has one fixed layout: omit --epoch and --bits", name)
	case name == "snowflake" && len(widths) == 2:
		return nil, usagef("--bits %q: want 3 widths for snowflake: datacenter/worker/sequence", l.bits)
	case name == "snowflake-si" && len(widths) == 3:
		return nil, usagef("--bits %q: want 2 widths for snowflake-si: machine/index", l.bits)
	}
	formats, err := c.formats(l)
	if err != nil {
		return nil, err
	}
	return formats[slices.Index(formatNames(), name)], nil
}

// formats returns all formats, in the order of formatNames. Three widths in --bits
// select the layout of snowflake, and two the one of snowflake-si. --epoch belongs to
// the same type, or to both without --bits.
func (c *cli) formats(l layoutFlags) ([]*format, error) {
	widths, err := parseBits(l.bits)
	if err != nil {
		return nil, err
	}
	epoch, err := c.epochFlag("epoch", l.epoch)
	if err != nil {
		return nil, err
	}
	baseClock := epoch
	switch len(widths) {
	case 2:
		epoch = time.Time{}
	case 3:
		baseClock = time.Time{}
	}
	snowflake, err := snowflakeLayout(epoch, widths)
	if err != nil {
		return nil, err
	}
	undated := baseClock.IsZero()
	if undated {
		baseClock = time.Unix(0, 0) // for the other parts
	}
	snowflakeSI, err := snowflakeSILayout(baseClock, widths)
	if err != nil {
		return nil, err
	}
	si := newSnowflakeSI(snowflakeSI)
	si.undated = undated
	return []*format{newSnowflake(snowflake), si, newUID60(), newSpread64(), newSno(), newUUID7()}, nil
}

// A layout is a layout of package idtype for IDs of type T with parts of type P.
type layout[T, P any] interface {
	Compose(P) (T, error)
	Parts(T) (P, error)
}

// A definition holds the differences between formats. to and from convert the parts.
type definition[T anyID, P any] struct {
	layout    layout[T, P]
	parse     func(string) (T, error)
	to        func(parts) P
	from      func(P) parts
	generator func(parts) (idtype.Generator[T], error)
}

// complete sets the functions of f.
func complete[T anyID, P any, B interface {
	*T
	encoding.BinaryUnmarshaler
}](f *format, d definition[T, P]) *format {
	f.parseText = func(s string) (anyID, error) { return d.parse(s) }
	f.parseBinary = func(b []byte) (anyID, error) {
		var id T
		err := B(&id).UnmarshalBinary(b)
		return id, err
	}
	f.parts = func(id anyID) (parts, error) {
		p, err := d.layout.Parts(id.(T))
		if err != nil {
			return parts{}, err
		}
		q := d.from(p)
		if f.undated {
			q.time = time.Time{}
		}
		return q, nil
	}
	f.compose = func(p parts) (anyID, error) { return d.layout.Compose(d.to(p)) }
	if l, ok := d.layout.(interface {
		Range(from, to time.Time) (lo, hi T, err error)
	}); ok {
		f.window = func(from, to time.Time) (lo, hi anyID, err error) { return l.Range(from, to) }
	}
	f.generate = func(ctx context.Context, p parts, n int, emit func(anyID) error) error {
		g, err := d.generator(p)
		if err != nil {
			return err
		}
		ids := make([]T, min(n, 1<<14))
		for n > 0 {
			ids = ids[:min(n, len(ids))]
			if _, err := g.Fill(ctx, ids); err != nil {
				return err
			}
			n -= len(ids)
			for _, id := range ids {
				if err := emit(id); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return f
}

// integer returns the ID with a column's number, or an error if it has no text.
func integer[T interface {
	~int64
	anyID
}](n int64) (anyID, error) {
	id := T(n)
	_, err := id.AppendText(nil)
	return id, err
}

func newSnowflake(l idtype.SnowflakeLayout) *format {
	ones, _ := l.Parts(idtype.MaxSnowflake) // all bits of each field are set
	f := &format{
		name: "snowflake", title: "Snowflake", column: "bigint",
		nodes:      []bitField{{"datacenter", bits.Len(uint(ones.Datacenter))}, {"worker", bits.Len(uint(ones.Worker))}},
		sequences:  ones.Sequence + 1,
		parseInt64: integer[idtype.Snowflake],
	}
	return complete(f, definition[idtype.Snowflake, idtype.SnowflakeParts]{
		layout: l,
		parse:  idtype.ParseSnowflake,
		to: func(p parts) idtype.SnowflakeParts {
			node := f.splitNode(p.node)
			return idtype.SnowflakeParts{Time: p.time, Datacenter: node[0], Worker: node[1], Sequence: p.sequence}
		},
		from: func(p idtype.SnowflakeParts) parts {
			return parts{time: p.Time, node: f.joinNode(p.Datacenter, p.Worker), sequence: p.Sequence}
		},
		generator: func(p parts) (idtype.Generator[idtype.Snowflake], error) {
			node := f.splitNode(p.node)
			return idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Layout: l, Datacenter: node[0], Worker: node[1]})
		},
	})
}

func newSnowflakeSI(l idtype.SnowflakeSILayout) *format {
	ones, _ := l.Parts(idtype.MaxSnowflakeSI)
	return complete(&format{
		name: "snowflake-si", title: "SnowflakeSI", column: "bigint",
		nodes:      []bitField{{"machine", bits.Len(uint(ones.Machine))}},
		sequences:  ones.Index + 1,
		parseInt64: integer[idtype.SnowflakeSI],
	}, definition[idtype.SnowflakeSI, idtype.SnowflakeSIParts]{
		layout: l,
		parse:  idtype.ParseSnowflakeSI,
		to: func(p parts) idtype.SnowflakeSIParts {
			return idtype.SnowflakeSIParts{Time: p.time, Machine: p.node, Index: p.sequence}
		},
		from: func(p idtype.SnowflakeSIParts) parts {
			return parts{time: p.Time, node: p.Machine, sequence: p.Index}
		},
		generator: func(p parts) (idtype.Generator[idtype.SnowflakeSI], error) {
			return idtype.NewSnowflakeSIGenerator(idtype.SnowflakeSIConfig{Layout: l, Machine: p.node})
		},
	})
}

func newUID60() *format {
	return complete(&format{
		name: "uid60", title: "UID60", column: "bigint", randomBits: 9,
		sequences:  idtype.UID60(idtype.MaxUID60).Sequence() + 1,
		parseInt64: integer[idtype.UID60],
	}, definition[idtype.UID60, idtype.UID60Parts]{
		layout: idtype.UID60Layout{},
		parse:  idtype.ParseUID60,
		to: func(p parts) idtype.UID60Parts {
			return idtype.UID60Parts{Time: p.time, Sequence: p.sequence, Random: int(p.random)}
		},
		from: func(p idtype.UID60Parts) parts {
			return parts{time: p.Time, sequence: p.Sequence, random: int64(p.Random)}
		},
		generator: func(parts) (idtype.Generator[idtype.UID60], error) {
			return idtype.NewUID60Generator(idtype.UID60Config{})
		},
	})
}

func newSpread64() *format {
	f := &format{
		name: "spread64", title: "Spread64", column: "bigint",
		nodes:      []bitField{{"generator", 6}, {"cluster", 4}},
		sequences:  1 << 6,
		parseInt64: integer[idtype.Spread64],
	}
	return complete(f, definition[idtype.Spread64, idtype.Spread64Parts]{
		layout: idtype.Spread64Layout{},
		parse:  idtype.ParseSpread64,
		to: func(p parts) idtype.Spread64Parts {
			node := f.splitNode(p.node)
			return idtype.Spread64Parts{Time: p.time, Generator: node[0], Cluster: node[1], Sequence: p.sequence}
		},
		from: func(p idtype.Spread64Parts) parts {
			return parts{time: p.Time, node: f.joinNode(p.Generator, p.Cluster), sequence: p.Sequence}
		},
		generator: func(p parts) (idtype.Generator[idtype.Spread64], error) {
			node := f.splitNode(p.node)
			return idtype.NewSpread64Generator(idtype.Spread64Config{Generator: node[0], Cluster: node[1]})
		},
	})
}

func newSno() *format {
	return complete(&format{
		name: "sno", title: "Sno", column: "uuid",
		nodes:     []bitField{{"partition", 16}},
		sequences: math.MaxUint16 + 1,
		parseUUID: func(u uuid.UUID) (anyID, error) { return idtype.SnoFromUUID(u) },
	}, definition[idtype.Sno, idtype.SnoParts]{
		layout: idtype.SnoLayout{},
		parse:  idtype.ParseSno,
		to: func(p parts) idtype.SnoParts {
			return idtype.SnoParts{
				Time: p.time, TickTock: p.ticktock, Meta: p.meta,
				Partition: idtype.SnoPartitionFrom(uint16(p.node)), Sequence: uint16(p.sequence),
			}
		},
		from: func(p idtype.SnoParts) parts {
			return parts{
				time: p.Time, ticktock: p.TickTock, meta: p.Meta,
				node: int(p.Partition.Uint16()), sequence: int(p.Sequence),
			}
		},
		generator: func(p parts) (idtype.Generator[idtype.Sno], error) {
			partition := idtype.SnoPartitionFrom(uint16(p.node))
			return idtype.NewSnoGenerator(idtype.SnoConfig{Meta: p.meta, Partition: &partition})
		},
	})
}

// errNotUUID: the 16 bytes have no version of RFC 9562.
var errNotUUID = errors.New("not a UUID of RFC 9562")

// newUUID7 returns the format of UUID keys. UUIDs of all versions of RFC 9562 are IDs,
// since tables can have them beside version 7.
func newUUID7() *format {
	versioned := func(id idtype.UUID, err error) (anyID, error) {
		if err == nil && uuid.UUID(id).Variant() != uuid.RFC4122 {
			err = errNotUUID
		}
		return id, err
	}
	f := complete(&format{
		name: "uuid7", title: "UUIDv7", column: "uuid",
		sequences: 1 << 12, randomBits: 62,
		parseUUID: func(u uuid.UUID) (anyID, error) { return versioned(idtype.UUID(u), nil) },
	}, definition[idtype.UUID, parts]{
		layout: uuidLayout{},
		to:     func(p parts) parts { return p },
		from:   func(p parts) parts { return p },
		generator: func(parts) (idtype.Generator[idtype.UUID], error) {
			return idtype.NewUUIDGenerator(idtype.UUIDConfig{})
		},
	})
	f.parseText = func(s string) (anyID, error) { return versioned(idtype.ParseUUID(s)) }
	f.parseBinary = func(b []byte) (anyID, error) {
		var id idtype.UUID
		return versioned(id, id.UnmarshalBinary(b))
	}
	return f
}

// A uuidLayout composes UUIDs of version 7. The sequence number is the fraction of the
// millisecond.
type uuidLayout struct{ idtype.UUIDLayout }

func (l uuidLayout) Compose(p parts) (idtype.UUID, error) {
	id, err := l.Floor(p.time)
	if err == nil {
		binary.BigEndian.PutUint16(id[6:], binary.BigEndian.Uint16(id[6:])|uint16(p.sequence))
		binary.BigEndian.PutUint64(id[8:], binary.BigEndian.Uint64(id[8:])|uint64(p.random))
	}
	return id, err
}

func (uuidLayout) Parts(id idtype.UUID) (parts, error) {
	p := parts{version: id.Version()}
	head := binary.BigEndian.Uint64(id[:8])
	switch p.version {
	case 1:
		p.time = time.Unix(uuid.UUID(id).Time().UnixTime()).UTC()
	case 6: // Time of google/uuid v1.6.0 includes the version in the time
		p.time = time.Unix(uuid.Time(head>>16<<12 | head&0xfff).UnixTime()).UTC()
	case 7:
		p.time, _ = id.Time()
		p.sequence = int(head & 0xfff)
		p.random = int64(binary.BigEndian.Uint64(id[8:]) &^ (3 << 62))
	}
	return p, nil
}
