package migrations

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// at returns a call of T_at with the given SQL expressions as arguments.
func (f *format) at(time, sequence, meta, node string) string {
	args := []string{time, sequence}
	if f.name == "sno" {
		args = append(args, "meta => "+meta)
	}
	if f.hasNodes() {
		args = append(args, "node => "+node)
	}
	return f.function("at") + "(" + strings.Join(args, ", ") + ")"
}

// atEdges returns a random number up to max, often near an end.
func atEdges(r *rand.Rand, max int) int {
	return []int{min(r.IntN(2), max), max, r.IntN(max + 1), r.IntN(max + 1)}[r.IntN(4)]
}

// T_at returns the ID that Go composes of the same parts, and T_node returns its node
// number.
func TestAt(t *testing.T) {
	n := pgtest.Scaled(300, 1500)
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		conn := db.Conn(t)
		for _, f := range parityInstall(t, db, pgtest.Scaled(2, len(parityConfigs))) {
			r := idtest.Rand("at " + f.schema + f.name)
			var arguments, want []string
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
				p := formatParts{time: at, sequence: atEdges(r, f.maxSequence), meta: atEdges(r, 255), node: atEdges(r, f.maxNode)}
				if at.Sub(f.first) < f.unit && p.sequence+p.node == 0 && (p.meta == 0 || f.name != "sno") {
					p.time = at.Add(f.unit) // the ID would be zero
				}
				id, err := f.compose(p)
				must(t, err)
				arguments = append(arguments, fmt.Sprintf("%s|%d|%d|%d", parityInstant(p.time), p.sequence, p.meta, p.node))
				if want = append(want, id); f.hasNodes() {
					want[i] += fmt.Sprint(" ", p.node)
				}
			}
			id := f.at("split_part(x, '|', 1)::timestamptz", "split_part(x, '|', 2)::int", "split_part(x, '|', 3)::int", "split_part(x, '|', 4)::int")
			if f.mask != 0 {
				id += fmt.Sprintf(" & ~%d::bigint", f.mask)
			}
			for i, got := range parityValues(t, conn, "concat_ws(' ', "+id+", "+f.nodeOf(id)+")", arguments) {
				if got != want[i] {
					t.Errorf("%s of %s: SQL returns the ID and its node number %s, Go %s", f.function("at"), arguments[i], got, want[i])
					break
				}
			}
		}
	})
}

// Without a node number, T_at takes it from the setting, as the generators do. The random bits
// of uid60_at differ between calls and are in their range.
func TestAtSetting(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		conn := db.Conn(t)
		if n := pgtest.Value[int](t, conn, `select count(distinct (sortkey.uid60_parts(sortkey.uid60_at('2020-01-01', 5))).random) from generate_series(1, 10000)`); n < 500 {
			t.Errorf("expected nearly all of 512 random numbers in 10000 IDs, got %d", n)
		}
		for _, f := range nodeFormats() {
			at := "sortkey." + f.name + "_at('2024-05-06 07:08:09.123+00', 7"
			fails(t, conn, "55000", "select "+at+")", "sortkey.node is not set")
			exec(t, conn, "set sortkey.node = 17")
			fails(t, conn, "55000", "select "+at+")", "is not reserved")
			settingReserve(t, conn, f, 17)
			for _, call := range []string{at + ")", at + ", node => null)"} {
				wantValue(t, conn, "select "+call+" = "+at+", node => 17)", true)
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
			if f.hasNodes() {
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
			wantValue(t, conn, "select "+f.at("null", "0", "0", "0")+" is null", true)
		}
	})
}
