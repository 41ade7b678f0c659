package migrations

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/migrations"
)

// genNode is the node number of both forms of the generators: as an argument, and in
// the setting sortkey.node. IDs of both forms would collide.
const genNode = 29

// installNode is a node number for the setting in tests that pass another one as an argument.
const installNode = 21

// A genFormat holds the properties of a format and of its generator.
type genFormat struct {
	schema string
	name   string // as in the names of functions
	meta   string // the arguments before the node number
	base   string // type of the column
	rate   int    // IDs per millisecond
	unit   time.Duration

	// UID60 has no node numbers, and zero values here.
	max       int                          // the largest node number
	node      int                          // a node number with bits in each part of the ID
	pool      func(node int) (string, int) // the pool of a node number, and the number there
	nodeParts string                       // SQL: the parts have the node number and the metabyte

	// parts parses 8 or 16 bytes, the output of int8send and uuid_send. It returns an
	// error if they are not an ID of the layout with genNode.
	parts func([]byte) (genParts, error)
}

type genParts struct {
	time     time.Time
	sequence int
}

// order returns a number that increases with each ID of a generator.
func (p genParts) order() int64 { return p.time.UnixMilli()<<16 | int64(p.sequence) }

func (f genFormat) width() int {
	if f.base == "uuid" {
		return 16
	}
	return 8
}

func (f genFormat) send() string {
	if f.base == "uuid" {
		return "uuid_send"
	}
	return "int8send"
}

// clock returns the name of the format's sequence.
func (f genFormat) clock() string { return f.schema + "_internal." + f.name + "_clock" }

// function returns a function of the format: floor is sortkey.snowflake_floor.
func (f genFormat) function(name string) string { return f.schema + "." + f.name + "_" + name }

func (f genFormat) hasNodes() bool { return f.pool != nil }

// next returns the call that generates an ID with the node number in the setting.
func (f genFormat) next() string { return f.schema + ".next_" + f.name + "(" + f.meta + ")" }

// nextOf returns the call that generates an ID with an explicit node number.
func (f genFormat) nextOf(node int) string {
	if !f.hasNodes() {
		return f.next()
	}
	return f.schema + ".next_" + f.name + "(" + strings.TrimPrefix(fmt.Sprintf("%s, %d", f.meta, node), ", ") + ")"
}

func (f genFormat) nextNode() string { return f.nextOf(genNode) }

// call returns one form for clients with an even number, and the other for odd ones.
func (f genFormat) call(client int) string {
	if client%2 == 0 {
		return f.next()
	}
	return f.nextNode()
}

// signatures returns the functions of next and nextOf, which are one function for UID60.
func (f genFormat) signatures() (next, nextOf string) {
	switch name := "next_" + f.name; f.name {
	case "uid60":
		return name + "()", name + "()"
	case "sno":
		return name + "(integer)", name + "(integer, integer)"
	default:
		return name + "()", name + "(integer)"
	}
}

// valid returns a condition that is true for recent IDs with a node number.
func (f genFormat) valid(node int) string {
	condition := "abs(extract(epoch FROM clock_timestamp() - " + f.function("time") + "(id))) < 3600"
	if f.hasNodes() {
		condition += fmt.Sprintf(" AND %s AND %s(id) = %d", f.nodeParts, f.function("node"), node)
	}
	return condition
}

// text returns an SQL expression for the text of an ID. The text of a Snowflake is the
// number.
func (f genFormat) text(id string) string {
	if strings.HasPrefix(f.name, "snowflake") {
		return id + "::text"
	}
	return f.function("text") + "(" + id + ")"
}

// fromText returns an SQL expression that parses a text.
func (f genFormat) fromText(text string) string {
	if strings.HasPrefix(f.name, "snowflake") {
		return "(" + text + ")::bigint"
	}
	return f.function("from_text") + "(" + text + ")"
}

func genInt(b []byte) int64 { return int64(binary.BigEndian.Uint64(b)) }

// genWant returns an error if got, the node number or metabyte of an ID, isn't want.
func genWant(got, want int) error {
	if got != want {
		return fmt.Errorf("expected node number or metabyte %d, got %d", want, got)
	}
	return nil
}

// genSpread64 is the index in genFormats of Spread64, which has the fewest IDs per
// millisecond.
const genSpread64 = 3

// genFormats returns all formats.
func genFormats() []genFormat { return genFormatsOf(migrations.DefaultSchema) }

// genFormatsOf returns all formats of an installation in another schema.
func genFormatsOf(schema string) []genFormat {
	onePool := func(name string) func(int) (string, int) {
		return func(node int) (string, int) { return name, node }
	}
	return []genFormat{
		{
			schema: schema, name: "snowflake", base: "bigint", rate: 4096, unit: time.Millisecond, max: 1023, node: 103, pool: onePool("snowflake"),
			nodeParts: "(sortkey.snowflake_parts(id)).datacenter << 5 | (sortkey.snowflake_parts(id)).worker = sortkey.snowflake_node(id)",
			parts: func(b []byte) (genParts, error) {
				p, err := idtype.DefaultSnowflakeLayout().Parts(idtype.Snowflake(genInt(b)))
				return genParts{p.Time, p.Sequence}, errors.Join(err, genWant(p.Datacenter<<5|p.Worker, genNode))
			},
		},
		{
			schema: schema, name: "snowflake_si", base: "bigint", rate: 256, unit: time.Millisecond, max: 31, node: 5, pool: onePool("snowflake-si"),
			nodeParts: "(sortkey.snowflake_si_parts(id)).machine = sortkey.snowflake_si_node(id)",
			parts: func(b []byte) (genParts, error) {
				p, err := complete.SnowflakeSI.Parts(idtype.SnowflakeSI(genInt(b)))
				return genParts{p.Time, p.Index}, errors.Join(err, genWant(p.Machine, genNode))
			},
		},
		{
			schema: schema, name: "uid60", base: "bigint", rate: 512, unit: time.Millisecond,
			parts: func(b []byte) (genParts, error) {
				p, err := idtype.UID60Layout{}.Parts(idtype.UID60(genInt(b)))
				return genParts{p.Time, p.Sequence}, err
			},
		},
		{
			schema: schema, name: "spread64", base: "bigint", rate: 64, unit: time.Millisecond, max: 1023, node: 146,
			pool:      func(node int) (string, int) { return fmt.Sprintf("spread64-%d", node&15), node >> 4 },
			nodeParts: "(sortkey.spread64_parts(id)).generator << 4 | (sortkey.spread64_parts(id)).cluster = sortkey.spread64_node(id)",
			parts: func(b []byte) (genParts, error) {
				p, err := idtype.Spread64Layout{}.Parts(idtype.Spread64(genInt(b)))
				return genParts{p.Time, p.Sequence}, errors.Join(err, genWant(p.Generator<<4|p.Cluster, genNode))
			},
		},
		{
			schema: schema, name: "sno", meta: "200", base: "uuid", rate: 65536 / 4, unit: 4 * time.Millisecond, max: 65535, node: 40000, pool: onePool("sno"),
			nodeParts: "sortkey.sno_text(id) ~ '^[2-9a-x]{16}$' AND (sortkey.sno_parts(id)).meta = 200 AND (sortkey.sno_parts(id)).partition = sortkey.sno_node(id)",
			parts: func(b []byte) (genParts, error) {
				id, err := idtype.SnoFromUUID(uuid.UUID(b))
				if id.TickTock() {
					err = errors.Join(err, errors.New("expected no tick-tock bit"))
				}
				return genParts{id.Time(), int(id.Sequence())}, errors.Join(err,
					genWant(int(id.Partition().Uint16()), genNode), genWant(int(id.Meta()), 200))
			},
		},
	}
}

// nodeFormats returns the formats whose generators take the node number from sortkey.node.
func nodeFormats() []genFormat {
	all := genFormats()
	return append(all[:2], all[genSpread64:]...)
}
