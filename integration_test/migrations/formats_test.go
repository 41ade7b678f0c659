package migrations

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/migrations"
)

// genNode is the node number of both forms of the generators: as an argument, and in
// the setting sortkey.node. IDs of both forms would collide.
const genNode = 29

// installNode is a node number for the setting in tests that pass another one as an argument.
const installNode = 21

// A format has the SQL functions of an ID type in an installation, and the Go implementation
// with the same layout. The functions use the text output of the column as stored values, so
// that the tests handle all formats alike, without codecs.
type format struct {
	schema, name string // in the names of the SQL functions
	title        string // in errors
	column       string // the base type
	send         string // the function that returns a stored value as bytes
	width        int    // the number of these bytes
	fields       string // of T_parts after the time, comma-separated
	meta         string // the arguments of next_T before the node number

	unit        time.Duration
	first, last time.Time // the first and the last unit
	maxSequence int
	mask        int64 // random bits in an ID of T_at

	// UID60 has no node numbers, and zero values here.
	maxNode   int
	node      int                          // a node number with bits in each part of the ID
	pool      func(node int) (string, int) // the pool of a node number, and the number there
	nodeParts string                       // SQL: the parts have the node number and the metabyte

	zero   string // which all domains reject
	random func(*rand.Rand) string
	edges  []string
	noIDs  func(*rand.Rand) string

	parse   func(text string) (stored string, err error)
	text    func(stored string) (string, error)
	time    func(stored string) (time.Time, bool)
	parts   func(stored string) (formatParts, error)
	compose func(formatParts) (stored string, err error)
	floor   func(time.Time) (string, error) // nil: no order in time
	lo, hi  string                          // the bounds of all times
}

type formatParts struct {
	time                 time.Time
	sequence, node, meta int
	tickTock             bool
	shown                string // the further columns of T_parts
}

// order returns a number that increases with each ID of a generator.
func (p formatParts) order() int64 { return p.time.UnixMilli()<<16 | int64(p.sequence) }

// function returns a function of the format: floor is sortkey.snowflake_floor.
func (f *format) function(name string) string { return f.schema + "." + f.name + "_" + name }

// clock returns the name of the format's sequence.
func (f *format) clock() string { return f.schema + "_internal." + f.name + "_clock" }

// numeric reports whether the text of an ID is its number. Then SQL has no functions for
// the text, but a cast.
func (f *format) numeric() bool { return strings.HasPrefix(f.name, "snowflake") }

// call returns an SQL expression that calls a function, or casts from or to text.
func (f *format) call(name, argument string) string {
	switch {
	case f.numeric() && name == "text":
		return "(" + argument + ")::text"
	case f.numeric() && name == "from_text":
		return "(" + argument + ")::bigint"
	}
	return f.function(name) + "(" + argument + ")"
}

// received returns the stored value of bytes from send.
func (f *format) received(b []byte) string {
	if f.column == "uuid" {
		return uuid.UUID(b).String()
	}
	return fmt.Sprint(int64(binary.BigEndian.Uint64(b)))
}

// rate returns the number of IDs per millisecond.
func (f *format) rate() int { return (f.maxSequence + 1) / int(f.unit.Milliseconds()) }

func (f *format) hasNodes() bool { return f.pool != nil }

// next returns the call that generates an ID with the node number in the setting.
func (f *format) next() string {
	if f.meta != "" {
		return f.schema + ".next_" + f.name + "_meta(" + f.meta + ")"
	}
	return f.schema + ".next_" + f.name + "()"
}

// nextOf returns the call that generates an ID with an explicit node number.
func (f *format) nextOf(node int) string {
	if !f.hasNodes() {
		return f.next()
	}
	return f.schema + ".next_" + f.name + "(" + strings.TrimSuffix(fmt.Sprintf("%d, %s", node, f.meta), ", ") + ")"
}

func (f *format) nextNode() string { return f.nextOf(genNode) }

// form returns one form of the call for clients with an even number, and the other for odd ones.
func (f *format) form(client int) string {
	if client%2 == 0 {
		return f.next()
	}
	return f.nextNode()
}

// signatures returns the functions of next and nextOf, which are one function for UID60.
func (f *format) signatures() (next, nextOf string) {
	switch name := "next_" + f.name; f.name {
	case "uid60":
		return name + "()", name + "()"
	case "sno":
		return name + "_meta(integer)", name + "(integer, integer)"
	default:
		return name + "()", name + "(integer)"
	}
}

// valid returns a condition that is true for recent IDs with a node number.
func (f *format) valid(node int) string {
	condition := "abs(extract(epoch FROM clock_timestamp() - " + f.function("time") + "(id))) < 3600"
	if f.hasNodes() {
		condition += fmt.Sprintf(" AND %s AND %s(id) = %d", f.nodeParts, f.function("node"), node)
	}
	return condition
}

// genSpread64 is the index in genFormats of Spread64, which has the fewest IDs per
// millisecond.
const genSpread64 = 3

// genFormats returns all formats.
func genFormats() []*format { return genFormatsOf(migrations.DefaultSchema) }

// genFormatsOf returns all formats of an installation of complete in another schema.
func genFormatsOf(schema string) []*format {
	c := complete
	c.Schema = schema
	return formatsOf(c)
}

// formatsOf returns all formats of an installation. The first two have layouts.
func formatsOf(c migrations.Config) []*format {
	return []*format{formatSnowflake(c.Schema, c.Snowflake), formatSnowflakeSI(c.Schema, c.SnowflakeSI), formatUID60(c.Schema), formatSpread64(c.Schema), formatSno(c.Schema)}
}

// nodeFormats returns the formats whose generators take the node number from sortkey.node.
func nodeFormats() []*format {
	all := genFormats()
	return append(all[:2], all[genSpread64:]...)
}

// A formatLayout is a layout of any type: a Spread64 has no floor.
type formatLayout[T, P any] interface {
	Parts(T) (P, error)
	Time(T) time.Time
}

type formatFloors[T any] interface {
	Floor(time.Time) (T, error)
	Range(from, to time.Time) (lo, hi T, err error)
}

// A formatType has the functions of a Go type.
type formatType[T, P any] struct {
	layout   formatLayout[T, P]
	parse    func(text string) (T, error)
	read     func(stored string) (T, error)
	show     func(T) (stored string)
	describe func(T, P) formatParts
	compose  func(formatParts) (T, error)
}

// formatOf adds the functions of a Go type to a format.
func formatOf[T idtest.ID[T], P any](f format, c formatType[T, P]) *format {
	var zero T
	f.zero = c.show(zero)
	f.parse = func(s string) (string, error) {
		id, err := c.parse(s)
		return c.show(id), err
	}
	f.text = func(stored string) (string, error) {
		id, err := c.read(stored)
		if err != nil {
			return "", err
		}
		b, err := id.AppendText(nil)
		return string(b), err
	}
	f.time = func(stored string) (time.Time, bool) {
		id, err := c.read(stored)
		t := c.layout.Time(id)
		return t, err == nil && !t.IsZero()
	}
	f.parts = func(stored string) (formatParts, error) {
		id, err := c.read(stored)
		p, partsErr := c.layout.Parts(id)
		return c.describe(id, p), errors.Join(err, partsErr)
	}
	f.compose = func(p formatParts) (string, error) {
		id, err := c.compose(p)
		return c.show(id), err
	}
	if floors, ok := c.layout.(formatFloors[T]); ok {
		f.floor = func(t time.Time) (string, error) {
			id, err := floors.Floor(t)
			return c.show(id), err
		}
		lo, hi, err := floors.Range(time.Time{}, time.Time{})
		if err != nil {
			panic(err)
		}
		f.lo, f.hi = c.show(lo), c.show(hi)
		f.first, f.last = c.layout.Time(lo), c.layout.Time(hi)
	}
	return &f
}

// formatNumber is formatOf for a type that is a number. The bits of mask can be set in an ID.
func formatNumber[T interface {
	~int64
	idtest.ID[T]
}, P any](f format, mask int64, c formatType[T, P]) *format {
	f.column, f.send, f.width, f.unit = "bigint", "int8send", 8, time.Millisecond
	// short returns an ID of a random width.
	short := func(r *rand.Rand) int64 { return int64(r.Uint64()>>max(0, r.IntN(128)-64)) & mask }
	f.random = func(r *rand.Rand) string { return fmt.Sprint(short(r)) }
	f.noIDs = func(r *rand.Rand) string {
		id, bit := short(r), r.IntN(64)
		if r.IntN(2) == 0 {
			return fmt.Sprint(^id)
		}
		for mask>>bit&1 == 1 {
			bit = r.IntN(64)
		}
		return fmt.Sprint(id | 1<<bit)
	}
	f.edges = []string{"0", fmt.Sprint(mask)}
	for bit := range 64 { // a single bit, all lower bits, and the rest
		for _, id := range []int64{1 << bit, 1<<bit - 1} {
			f.edges = append(f.edges, fmt.Sprint(id&mask), fmt.Sprint(^id&mask))
		}
	}
	c.read = func(stored string) (T, error) {
		n, err := strconv.ParseInt(stored, 10, 64)
		return T(n), err
	}
	c.show = func(id T) string { return strconv.FormatInt(int64(id), 10) }
	return formatOf(f, c)
}

func onePool(name string) func(int) (string, int) {
	return func(node int) (string, int) { return name, node }
}

func formatSnowflake(schema string, l idtype.SnowflakeLayout) *format {
	largest, err := l.Parts(idtype.MaxSnowflake)
	if err != nil {
		panic(err)
	}
	workers := largest.Worker + 1
	return formatNumber(format{
		schema: schema, name: "snowflake", title: "Snowflake", fields: "p.datacenter, p.worker, p.sequence",
		maxSequence: largest.Sequence, maxNode: (largest.Datacenter+1)*workers - 1, node: 103, pool: onePool("snowflake"),
		nodeParts: "(sortkey.snowflake_parts(id)).datacenter << 5 | (sortkey.snowflake_parts(id)).worker = sortkey.snowflake_node(id)",
	}, 1<<63-1, formatType[idtype.Snowflake, idtype.SnowflakeParts]{
		layout: l, parse: idtype.ParseSnowflake,
		describe: func(_ idtype.Snowflake, p idtype.SnowflakeParts) formatParts {
			return formatParts{time: p.Time, sequence: p.Sequence, node: p.Datacenter*workers + p.Worker, shown: fmt.Sprint(p.Datacenter, p.Worker, p.Sequence)}
		},
		compose: func(p formatParts) (idtype.Snowflake, error) {
			return l.Compose(idtype.SnowflakeParts{Time: p.time, Datacenter: p.node / workers, Worker: p.node % workers, Sequence: p.sequence})
		},
	})
}

func formatSnowflakeSI(schema string, l idtype.SnowflakeSILayout) *format {
	largest, err := l.Parts(idtype.MaxSnowflakeSI)
	if err != nil {
		panic(err)
	}
	return formatNumber(format{
		schema: schema, name: "snowflake_si", title: "SnowflakeSI", fields: "p.machine, p.index",
		maxSequence: largest.Index, maxNode: largest.Machine, node: 5, pool: onePool("snowflake-si"),
		nodeParts: "(sortkey.snowflake_si_parts(id)).machine = sortkey.snowflake_si_node(id)",
	}, 1<<53-1, formatType[idtype.SnowflakeSI, idtype.SnowflakeSIParts]{
		layout: l, parse: idtype.ParseSnowflakeSI,
		describe: func(_ idtype.SnowflakeSI, p idtype.SnowflakeSIParts) formatParts {
			return formatParts{time: p.Time, sequence: p.Index, node: p.Machine, shown: fmt.Sprint(p.Machine, p.Index)}
		},
		compose: func(p formatParts) (idtype.SnowflakeSI, error) {
			return l.Compose(idtype.SnowflakeSIParts{Time: p.time, Machine: p.node, Index: p.sequence})
		},
	})
}

func formatUID60(schema string) *format {
	return formatNumber(format{
		schema: schema, name: "uid60", title: "UID60", fields: "p.sequence, p.random", maxSequence: 511, mask: 511,
	}, 1<<60-1, formatType[idtype.UID60, idtype.UID60Parts]{
		layout: idtype.UID60Layout{}, parse: idtype.ParseUID60,
		describe: func(_ idtype.UID60, p idtype.UID60Parts) formatParts {
			return formatParts{time: p.Time, sequence: p.Sequence, shown: fmt.Sprint(p.Sequence, p.Random)}
		},
		compose: func(p formatParts) (idtype.UID60, error) {
			return idtype.UID60Layout{}.Compose(idtype.UID60Parts{Time: p.time, Sequence: p.sequence})
		},
	})
}

func formatSpread64(schema string) *format {
	const reserved = 0xfc00
	return formatNumber(format{
		schema: schema, name: "spread64", title: "Spread64", fields: "p.sequence, p.generator, p.cluster",
		first: idtype.Spread64(0).Time(), last: idtype.Spread64(-1 << 22).Time(), maxSequence: 63, maxNode: 1023, node: 146,
		pool:      func(node int) (string, int) { return fmt.Sprintf("spread64-%d", node&15), node >> 4 },
		nodeParts: "(sortkey.spread64_parts(id)).generator << 4 | (sortkey.spread64_parts(id)).cluster = sortkey.spread64_node(id)",
	}, ^reserved, formatType[idtype.Spread64, idtype.Spread64Parts]{
		layout: idtype.Spread64Layout{}, parse: idtype.ParseSpread64,
		describe: func(id idtype.Spread64, p idtype.Spread64Parts) formatParts {
			return formatParts{time: p.Time, sequence: p.Sequence, node: int(id & 1023), shown: fmt.Sprint(p.Sequence, p.Generator, p.Cluster)}
		},
		compose: func(p formatParts) (idtype.Spread64, error) {
			return idtype.Spread64Layout{}.Compose(idtype.Spread64Parts{Time: p.time, Sequence: p.sequence, Generator: p.node >> 4, Cluster: p.node & 15})
		},
	})
}

func formatSno(schema string) *format {
	show := func(id idtype.Sno) string { return id.UUID().String() }
	edges := []string{show(idtype.Sno{}), show(idtype.Sno{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})}
	for bit := range 80 { // a single bit, and all bits except one
		var one, rest idtype.Sno
		for i := range rest {
			rest[i] = 0xff
		}
		one[bit/8] |= 1 << (bit % 8)
		rest[bit/8] &^= 1 << (bit % 8)
		edges = append(edges, show(one), show(rest))
	}
	return formatOf(format{
		schema: schema, name: "sno", title: "Sno", column: "uuid", send: "uuid_send", width: 16, fields: "p.tick_tock::text, p.meta, p.partition, p.sequence", meta: "200", unit: 4 * time.Millisecond,
		maxSequence: 65535, maxNode: 65535, node: 40000, pool: onePool("sno"),
		nodeParts: "sortkey.sno_text(id) ~ '^[2-9a-x]{16}$' AND (sortkey.sno_parts(id)).meta = 200 AND (sortkey.sno_parts(id)).partition = sortkey.sno_node(id)",
		edges:     edges,
		random:    func(r *rand.Rand) string { return show(idtest.Sno.Random(r)) },
		noIDs: func(r *rand.Rand) string {
			u := idtest.Sno.Random(r).UUID()
			if r.IntN(10) == 0 {
				u = uuid.UUID(idtest.UUID.Random(r))
			}
			bytes := "\x00\x01 01:;A`yz{\x7f\x80\x92\xb2\xe1\xff" // neighbors of digits, and digits with another bit
			u[r.IntN(16)] = bytes[r.IntN(len(bytes))]
			return u.String()
		},
	}, formatType[idtype.Sno, idtype.SnoParts]{
		layout: idtype.SnoLayout{}, parse: idtype.ParseSno, show: show,
		read: func(stored string) (idtype.Sno, error) { return idtype.SnoFromUUID(uuid.MustParse(stored)) },
		describe: func(_ idtype.Sno, p idtype.SnoParts) formatParts {
			return formatParts{p.Time, int(p.Sequence), int(p.Partition.Uint16()), int(p.Meta), p.TickTock, fmt.Sprint(p.TickTock, p.Meta, p.Partition.Uint16(), p.Sequence)}
		},
		compose: func(p formatParts) (idtype.Sno, error) {
			return idtype.SnoLayout{}.Compose(idtype.SnoParts{
				Time: p.time, Meta: byte(p.meta), Partition: idtype.SnoPartitionFrom(uint16(p.node)), Sequence: uint16(p.sequence),
			})
		},
	})
}
