package migrations

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
)

// An atFormat is a format of an installation, with the Go implementation of T_at and
// T_node.
type atFormat struct {
	*parityFormat
	maxSequence, maxNode int   // maxNode is 0 for UID60, which has no nodes
	mask                 int64 // the random bits of an ID

	compose func(t time.Time, sequence, meta, node int) (string, error)
	node    func(stored string) (node int, ok bool) // nil for UID60, which has no node numbers
}

// atNumber returns the compose function of a format that is stored as a number.
func atNumber[P any, T ~int64](compose func(P) (T, error), parts func(t time.Time, sequence, node int) P) func(time.Time, int, int, int) (string, error) {
	return func(t time.Time, sequence, _, node int) (string, error) {
		id, err := compose(parts(t, sequence, node))
		return parityDecimal(id), err
	}
}

// atNode returns the node function of a format that is stored as a number.
func atNode[P any, T ~int64](parts func(T) (P, error), node func(P) int) func(string) (int, bool) {
	return func(stored string) (int, bool) {
		id, ok := parityNumber[T](stored)
		p, err := parts(id)
		return node(p), ok && err == nil
	}
}

func atFormats(c migrations.Config) []*atFormat {
	widths, err := c.Snowflake.Parts(idtype.MaxSnowflake) // the maximum of each field
	if err != nil {
		panic(err)
	}
	workers := widths.Worker + 1
	si, err := c.SnowflakeSI.Parts(idtype.MaxSnowflakeSI)
	if err != nil {
		panic(err)
	}
	return []*atFormat{
		{
			parityFormat: paritySnowflake(c.Schema, c.Snowflake), maxSequence: widths.Sequence, maxNode: (widths.Datacenter+1)*workers - 1,
			compose: atNumber(c.Snowflake.Compose, func(t time.Time, sequence, node int) idtype.SnowflakeParts {
				return idtype.SnowflakeParts{Time: t, Datacenter: node / workers, Worker: node % workers, Sequence: sequence}
			}),
			node: atNode(c.Snowflake.Parts, func(p idtype.SnowflakeParts) int { return p.Datacenter*workers + p.Worker }),
		},
		{
			parityFormat: paritySnowflakeSI(c.Schema, c.SnowflakeSI), maxSequence: si.Index, maxNode: si.Machine,
			compose: atNumber(c.SnowflakeSI.Compose, func(t time.Time, sequence, node int) idtype.SnowflakeSIParts {
				return idtype.SnowflakeSIParts{Time: t, Machine: node, Index: sequence}
			}),
			node: atNode(c.SnowflakeSI.Parts, func(p idtype.SnowflakeSIParts) int { return p.Machine }),
		},
		{
			parityFormat: parityUID60(c.Schema), maxSequence: 511, mask: 511,
			compose: atNumber(idtype.UID60Layout{}.Compose, func(t time.Time, sequence, _ int) idtype.UID60Parts {
				return idtype.UID60Parts{Time: t, Sequence: sequence}
			}),
		},
		{
			parityFormat: atSpread64(c.Schema), maxSequence: 63, maxNode: 1023,
			compose: atNumber(idtype.Spread64Layout{}.Compose, func(t time.Time, sequence, node int) idtype.Spread64Parts {
				return idtype.Spread64Parts{Time: t, Sequence: sequence, Generator: node >> 4, Cluster: node & 15}
			}),
			node: atNode(idtype.Spread64Layout{}.Parts, func(p idtype.Spread64Parts) int { return p.Generator<<4 | p.Cluster }),
		},
		{
			parityFormat: paritySno(c.Schema), maxSequence: 65535, maxNode: 65535,
			compose: func(t time.Time, sequence, meta, node int) (string, error) {
				id, err := idtype.SnoLayout{}.Compose(idtype.SnoParts{
					Time: t, Meta: byte(meta), Partition: idtype.SnoPartitionFrom(uint16(node)), Sequence: uint16(sequence),
				})
				return id.UUID().String(), err
			},
			node: func(stored string) (int, bool) {
				id, err := idtype.SnoFromUUID(uuid.MustParse(stored))
				p := id.Partition()
				return int(p.Uint16()), err == nil
			},
		},
	}
}

// atSpread64 is paritySpread64 with the first and the last unit.
func atSpread64(schema string) *parityFormat {
	f := paritySpread64(schema)
	f.first, f.last = idtype.Spread64(0).Time(), idtype.Spread64(-1<<22).Time()
	return f
}

// atInstall installs a configuration and returns its formats.
func atInstall(t *testing.T, db *pgtest.DB, c migrations.Config) []*atFormat {
	t.Helper()
	up(t, db, c)
	if c.Schema == "" {
		c.Schema = migrations.DefaultSchema
	}
	return atFormats(c)
}

// call returns a call of T_at with the given SQL expressions as arguments.
func (f *atFormat) call(time, sequence, meta, node string) string {
	args := []string{time, sequence}
	if f.name == "sno" {
		args = append(args, "meta => "+meta)
	}
	if f.node != nil {
		args = append(args, "node => "+node)
	}
	return f.function("at") + "(" + strings.Join(args, ", ") + ")"
}

// atEdges returns a random number up to max, often near an end.
func atEdges(r *rand.Rand, max int) int {
	switch r.IntN(4) {
	case 0:
		return min(r.IntN(2), max)
	case 1:
		return max
	}
	return r.IntN(max + 1)
}

// T_at returns the ID that Go composes of the same parts, and T_node returns its node
// number.
func TestAt(t *testing.T) {
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) { atCompare(t, db, 1000) })
}

// More IDs find rarer differences.
func TestAtManyIDs(t *testing.T) {
	pgtest.ThoroughOnly(t)
	t.Parallel()
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) { atCompare(t, db, 5000) })
}

// atCompare compares T_at and T_node with Go for n random cases of each format and layout.
func atCompare(t *testing.T, db *pgtest.DB, n int) {
	t.Helper()
	conn := db.Conn(t)
	for _, c := range parityConfigs {
		for _, f := range atInstall(t, db, c) {
			r := idtest.Rand("at " + f.schema + f.name)
			var times, want []string
			var sequences, metas, nodes []int
			span := f.last.UnixMilli() - f.first.UnixMilli() // a Duration is too short for some layouts
			for i := range n {
				at := time.UnixMilli(f.first.UnixMilli() + r.Int64N(span+1)).Add(time.Duration(r.IntN(1000)) * time.Microsecond)
				switch i % 8 {
				case 0:
					at = f.first.Add(time.Duration(r.IntN(9000)) * time.Microsecond)
				case 1:
					at = f.last.Add(f.unit - time.Duration(1+r.IntN(9000))*time.Microsecond)
				case 2: // a whole unit, and a microsecond before it
					at = at.Truncate(f.unit).Add(-time.Duration(r.IntN(2)) * time.Microsecond)
				}
				if at.Before(f.first) {
					at = f.first
				}
				sequence, meta, node := atEdges(r, f.maxSequence), atEdges(r, 255), atEdges(r, f.maxNode)
				if at.Sub(f.first) < f.unit && sequence+node == 0 && (meta == 0 || f.name != "sno") {
					at = at.Add(f.unit) // the ID would be zero
				}
				id, err := f.compose(at, sequence, meta, node)
				must(t, err)
				times, want = append(times, parityInstant(at)), append(want, id)
				sequences, metas, nodes = append(sequences, sequence), append(metas, meta), append(nodes, node)
			}
			id := f.call("t::timestamptz", "n", "m", "k")
			if f.mask != 0 {
				id += fmt.Sprintf(" & ~%d::bigint", f.mask)
			}
			nodeOf := "k"
			if f.node != nil {
				nodeOf = f.function("node") + "(id)"
			}
			rows, _ := conn.Query(t.Context(), fmt.Sprintf(`select id::text, %s from (
					select %s as id, i, k from unnest($1::text[], $2::int[], $3::int[], $4::int[]) with ordinality u (t, n, m, k, i) offset 0) s order by i`, nodeOf, id),
				times, sequences, metas, nodes)
			var got string
			var node int
			i, wrong := 0, 0
			_, err := pgx.ForEachRow(rows, []any{&got, &node}, func() error {
				if got != want[i] || node != nodes[i] {
					t.Errorf("%s of %s, %d, %d, %d: SQL returns %s with node number %d, and Go %s with %d",
						f.function("at"), times[i], sequences[i], metas[i], nodes[i], got, node, want[i], nodes[i])
					if wrong++; wrong == 5 {
						return errors.New("too many errors")
					}
				}
				i++
				return nil
			})
			if err != nil || i != n {
				t.Errorf("%s: %d rows of %d, %v", f.function("at"), i, n, err)
			}
		}
	}
}

// The random bits of uid60_at differ between calls and are in their range.
func TestAtRandom(t *testing.T) {
	t.Parallel()
	installed.One(t, func(t *testing.T, db *pgtest.DB) {
		if n := pgtest.Value[int](t, db.Conn(t), `select count(distinct (sortkey.uid60_parts(sortkey.uid60_at('2020-01-01', 5))).random) from generate_series(1, 10000)`); n < 500 {
			t.Errorf("expected nearly all of 512 random numbers in 10000 IDs, got %d", n)
		}
	})
}

// Without a node number, T_at takes it from the setting, as the generators do.
func TestAtSetting(t *testing.T) {
	t.Parallel()
	installed.One(t, func(t *testing.T, db *pgtest.DB) {
		conn := db.Conn(t)
		for _, f := range settingFormats() {
			at := "sortkey." + f.name + "_at('2024-05-06 07:08:09.123+00', 7"
			fails(t, conn, "55000", "select "+at+")", "sortkey.node is not set")
			exec(t, conn, "set sortkey.node = 17")
			fails(t, conn, "55000", "select "+at+")", "is not reserved")
			settingReserve(t, conn, f, 17)
			for _, call := range []string{at + ")", at + ", node => null)"} {
				if !pgtest.Value[bool](t, conn, "select "+call+" = "+at+", node => 17)") {
					t.Errorf("expected node number 17 of %s", call)
				}
			}
			exec(t, conn, "reset sortkey.node")
		}
	})
}

// T_at rejects times, sequence numbers, metabytes and node numbers out of range.
func TestAtErrors(t *testing.T) {
	t.Parallel()
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		conn := db.Conn(t)
		for _, c := range parityConfigs[:3] {
			for _, f := range atInstall(t, db, c) {
				good := "'" + parityInstant(f.first.Add(time.Hour)) + "'"
				exec(t, conn, "select "+f.call(good, "0", "0", "0"))
				for _, v := range []string{"-1", fmt.Sprint(f.maxSequence + 1), "2147483647", "-2147483648", "null"} {
					fails(t, conn, "22003", "select "+f.call(good, v, "0", "0"),
						fmt.Sprintf("sequence number %s of %s is out of range (0 to %d)", strings.ToUpper(v), f.title, f.maxSequence), "Use the next time unit")
				}
				if f.node != nil {
					for _, v := range []string{"-1", fmt.Sprint(f.maxNode + 1), "2147483647", "-2147483648"} {
						fails(t, conn, "22003", "select "+f.call(good, "0", "0", v),
							fmt.Sprintf("node number %s of %s is out of range (0 to %d)", v, f.title, f.maxNode))
					}
				}
				if f.name == "sno" {
					for _, v := range []string{"-1", "256", "null"} {
						fails(t, conn, "22003", "select "+f.call(good, "0", v, "0"), "metabyte "+strings.ToUpper(v)+" is out of range (0 to 255)")
					}
				}
				for _, v := range []string{"infinity", "-infinity"} {
					fails(t, conn, "22008", "select "+f.call("'"+v+"'", "0", "0", "0"), "cannot generate an ID for time "+v, "Pass a finite time")
				}
				for _, at := range []time.Time{f.first.Add(-time.Microsecond), f.last.Add(f.unit), f.first.AddDate(-1000, 0, 0), f.last.AddDate(1000, 0, 0)} {
					fails(t, conn, "22008", "select "+f.call("'"+parityInstant(at)+"'", "0", "0", "0"), "is out of range for "+f.title)
				}
				// The difference between these times and an epoch in the past can be out of range for an interval.
				for _, at := range []string{"294276-12-31Z", "4713-01-01Z BC"} {
					fails(t, conn, "22008", "select "+f.call("'"+at+"'", "0", "16", "0"), "is out of range for "+f.title+" ("+f.first.UTC().Format("2006-01-02T"))
				}
				if f.name != "uid60" { // a UID60 has random bits
					fails(t, conn, "22003", "select "+f.call("'"+parityInstant(f.first)+"'", "0", "0", "0"), f.title+" of the first instant", "is zero", "Use a sequence number from 1 on")
				}
				if !pgtest.Value[bool](t, conn, "select "+f.call("null", "0", "0", "0")+" is null") {
					t.Errorf("%s: expected NULL for a time of NULL", f.function("at"))
				}
			}
		}
	})
}

// T_node returns the node number of any ID as Go does, and NULL for other values.
// spread64_node ignores the reserved bits, as spread64_time does. Queries inline T_node.
func TestNodeOf(t *testing.T) {
	n := pgtest.Scaled(1000, 5000)
	show := func(node *int) string {
		if node == nil {
			return "NULL"
		}
		return fmt.Sprint(*node)
	}
	t.Parallel()
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		conn := db.Conn(t)
		for _, c := range parityConfigs[:3] {
			for _, f := range atInstall(t, db, c) {
				if f.node == nil {
					continue
				}
				r := idtest.Rand("node " + f.schema + f.name)
				values := append([]string{f.zero}, f.edges...)
				for range n {
					values = append(values, f.random(r), f.noIDs(r))
				}
				rows, _ := conn.Query(t.Context(), fmt.Sprintf("select %s(x::%s) from unnest($1::text[]) with ordinality u (x, i) order by i", f.function("node"), f.column), values)
				got, err := pgx.CollectRows(rows, pgx.RowTo[*int])
				must(t, err)
				none := 0
				for i, v := range values {
					want, ok := f.node(v)
					if !ok && f.name == "spread64" {
						id, err := strconv.ParseInt(v, 10, 64)
						must(t, err)
						want, ok = int(id&1023), true
					}
					if !ok {
						none++
					}
					if ok != (got[i] != nil) || ok && *got[i] != want {
						t.Fatalf("%s of %s: expected %d (%t), got %s", f.function("node"), v, want, ok, show(got[i]))
					}
				}
				if none == 0 && f.name != "spread64" {
					t.Errorf("%s: expected values that are no IDs among the cases", f.function("node"))
				}
				for _, column := range []string{f.column, f.schema + "." + f.name} {
					table := strings.ReplaceAll("t_"+f.function("node")+"_"+column, ".", "_")
					exec(t, conn, "create table "+table+" (id "+column+")")
					if plan := explain(t, conn, "COSTS OFF, VERBOSE", "select "+f.function("node")+"(id) from "+table); strings.Contains(plan, f.function("node")+"(") {
						t.Errorf("%s isn't inlined:\n%s", f.function("node"), plan)
					}
				}
			}
		}
	})
}
