package migrations

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// at returns a call of T_at with the given SQL expressions as arguments.
func (f *parityFormat) at(time, sequence, meta, node string) string {
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
	n := pgtest.Scaled(1000, 3000)
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		conn := db.Conn(t)
		for _, f := range parityInstall(t, db, len(parityConfigs)) {
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
			id := f.at("t::timestamptz", "n", "m", "k")
			if f.mask != 0 {
				id += fmt.Sprintf(" & ~%d::bigint", f.mask)
			}
			rows, _ := conn.Query(t.Context(), fmt.Sprintf(`select id::text, coalesce(%s, k) from (
					select %s as id, i, k from unnest($1::text[], $2::int[], $3::int[], $4::int[]) with ordinality u (t, n, m, k, i) offset 0) s order by i`, f.nodeOf("id"), id),
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
	})
}

// The random bits of uid60_at differ between calls and are in their range.
func TestAtRandom(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		if n := pgtest.Value[int](t, db.Conn(t), `select count(distinct (sortkey.uid60_parts(sortkey.uid60_at('2020-01-01', 5))).random) from generate_series(1, 10000)`); n < 500 {
			t.Errorf("expected nearly all of 512 random numbers in 10000 IDs, got %d", n)
		}
	})
}

// Without a node number, T_at takes it from the setting, as the generators do.
func TestAtSetting(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		conn := db.Conn(t)
		for _, f := range nodeFormats() {
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
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		conn := db.Conn(t)
		for _, f := range parityInstall(t, db, 3) {
			good := "'" + parityInstant(f.first.Add(time.Hour)) + "'"
			exec(t, conn, "select "+f.at(good, "0", "0", "0"))
			for _, v := range []string{"-1", fmt.Sprint(f.maxSequence + 1), "2147483647", "-2147483648", "null"} {
				fails(t, conn, "22003", "select "+f.at(good, v, "0", "0"),
					fmt.Sprintf("sequence number %s of %s is out of range (0 to %d)", strings.ToUpper(v), f.title, f.maxSequence), "Use the next time unit")
			}
			if f.node != nil {
				for _, v := range []string{"-1", fmt.Sprint(f.maxNode + 1), "2147483647", "-2147483648"} {
					fails(t, conn, "22003", "select "+f.at(good, "0", "0", v),
						fmt.Sprintf("node number %s of %s is out of range (0 to %d)", v, f.title, f.maxNode))
				}
			}
			if f.name == "sno" {
				for _, v := range []string{"-1", "256", "null"} {
					fails(t, conn, "22003", "select "+f.at(good, "0", v, "0"), "metabyte "+strings.ToUpper(v)+" is out of range (0 to 255)")
				}
			}
			for _, v := range []string{"infinity", "-infinity"} {
				fails(t, conn, "22008", "select "+f.at("'"+v+"'", "0", "0", "0"), "cannot generate an ID for time "+v, "Pass a finite time")
			}
			for _, at := range []time.Time{f.first.Add(-time.Microsecond), f.last.Add(f.unit), f.first.AddDate(-1000, 0, 0), f.last.AddDate(1000, 0, 0)} {
				fails(t, conn, "22008", "select "+f.at("'"+parityInstant(at)+"'", "0", "0", "0"), "is out of range for "+f.title)
			}
			// The difference between these times and an epoch in the past can be out of range for an interval.
			for _, at := range []string{"294276-12-31Z", "4713-01-01Z BC"} {
				fails(t, conn, "22008", "select "+f.at("'"+at+"'", "0", "16", "0"), "is out of range for "+f.title+" ("+f.first.UTC().Format("2006-01-02T"))
			}
			if f.name != "uid60" { // a UID60 has random bits
				fails(t, conn, "22003", "select "+f.at("'"+parityInstant(f.first)+"'", "0", "0", "0"), f.title+" of the first instant", "is zero", "Use a sequence number from 1 on")
			}
			if !pgtest.Value[bool](t, conn, "select "+f.at("null", "0", "0", "0")+" is null") {
				t.Errorf("%s: expected NULL for a time of NULL", f.function("at"))
			}
		}
	})
}
