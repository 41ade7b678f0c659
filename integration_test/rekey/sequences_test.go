package rekey

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/rekey"
)

const (
	refers = "CREATE TABLE {r} (id bigserial PRIMARY KEY, order_id integer NOT NULL REFERENCES {o})"
	serial = "CREATE TABLE {o} (id serial PRIMARY KEY, name text); " + refers
	down   = "ALTER SEQUENCE public.{o}_id_seq INCREMENT BY -1 MINVALUE -2147483647 RESTART WITH -1"
	named  = "sequence public.{o}_id_seq is named by public.{f}()"
)

// sequenceCases are orders {o}, refunds {r} that refer to them, and perhaps a function {f}.
var sequenceCases = []struct {
	name, tables string
	inPlace      bool
	last         int64 // of the sequence
	// remedy is that for a sequence that ends, or is about to.
	remedy  string
	problem bool // otherwise, a note has the remedy
	// function is an expression of the function, and note a note about it. kept means that contract
	// keeps the sequence.
	function, note string
	kept           bool
}{
	{name: "serial", tables: serial, last: 2147483647, remedy: down, problem: true},
	{name: "identity", tables: "CREATE TABLE {o} (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text); " + refers, last: 2147483647, remedy: down, problem: true},
	{name: "in place", tables: serial, inPlace: true, last: 2147483647, remedy: down, problem: true},
	{name: "a bigint sequence", tables: serial + "; ALTER SEQUENCE {o}_id_seq AS bigint", last: 2147483647, remedy: down, problem: true},
	{name: "with a negative key", tables: serial + "; INSERT INTO {o} VALUES (-7, 'x')", last: 2147483647, remedy: "ALTER SEQUENCE public.{o}_id_seq INCREMENT BY -1 MINVALUE -2147483647 RESTART WITH -8", problem: true},
	{name: "a bigint column", tables: "CREATE TABLE {o} (id serial PRIMARY KEY, name text); ALTER TABLE {o} ALTER id TYPE bigint; CREATE TABLE {r} (id bigserial PRIMARY KEY, order_id bigint NOT NULL REFERENCES {o})",
		last: 2147483647, remedy: "ALTER SEQUENCE public.{o}_id_seq AS bigint MAXVALUE 9223372036854775807", problem: true},
	{name: "smallint", tables: "CREATE TABLE {o} (id smallserial PRIMARY KEY, name text); CREATE TABLE {r} (id bigserial PRIMARY KEY, order_id smallint NOT NULL REFERENCES {o})",
		last: 32767, remedy: "ALTER SEQUENCE public.{o}_id_seq INCREMENT BY -1 MINVALUE -32767 RESTART WITH -1", problem: true},
	{name: "a few values", tables: serial, last: 2147483647 - 5000, remedy: down},
	{name: "many values", tables: serial, last: 1_900_000_000},

	{name: "not named", tables: serial, last: 100, function: "nextval('other_seq')"},
	{name: "named with its schema", tables: serial, last: 100, function: "nextval('public.{o}_id_seq')", note: named, kept: true},
	{name: "named without its schema", tables: serial, last: 100, function: `nextval('"{o}_id_seq"')`, note: named, kept: true},
	{name: "named in dynamic SQL", tables: serial, last: 100, function: "(SELECT 1); EXECUTE 'SELECT nextval(''{o}_id_seq'')'", note: named, kept: true},
	{name: "named, in place", tables: serial, last: 100, function: "nextval('{o}_id_seq')", inPlace: true, note: named, kept: true},
	{name: "named, bigint in place", tables: strings.ReplaceAll(serial, "id serial", "id bigserial"), last: 100, function: "nextval('{o}_id_seq')", inPlace: true, note: named, kept: true},
	{name: "not named, bigint in place", tables: strings.NewReplacer("id serial", "id bigserial", "integer", "bigint").Replace(serial), last: 100, function: "nextval('other_seq')", inPlace: true},
	{name: "named by its column", tables: serial, last: 100, function: "nextval(pg_get_serial_sequence('public.{o}', 'id'))", note: "function public.{f}() names public.{o} and calls pg_get_serial_sequence"},
}

// Inspect offers keys below the smallest one when the sequence of an old key ends, with a
// statement that works: programs of both versions insert rows until contract, and after abort.
// Contract keeps a sequence that the text of a function names.
func TestSequences(t *testing.T) {
	in := func(i int, text string) string {
		return strings.NewReplacer("{o}", fmt.Sprint("orders_", i), "{r}", fmt.Sprint("refunds_", i), "{f}", fmt.Sprint("reserve_", i)).Replace(text)
	}
	tables, spec := "", rekey.Spec{}
	for i, c := range sequenceCases {
		tables += in(i, c.tables+fmt.Sprintf("; SELECT setval('{o}_id_seq', %d); INSERT INTO {o} (name) SELECT 'old' FROM generate_series(1, 100); INSERT INTO {r} (order_id) SELECT id FROM {o};", max(c.last-100, 1)))
		if c.function != "" {
			tables += in(i, "CREATE FUNCTION {f}() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN "+c.function+"; END $$;")
		}
		k := rekey.Key{Table: in(i, "{o}"), Format: rekey.Snowflake, Node: 2 * i, InPlace: true}
		if !c.inPlace {
			k.InPlace, k.BackfillNode, k.Times = false, 2*i+1, started
		}
		spec.Keys = append(spec.Keys, k)
	}
	oneJob(t, tables, spec, func(t *testing.T, j *job) {
		// remedies returns the remedies for the sequence of a case.
		remedies := func(i int, list []rekey.Problem) (text string) {
			for _, p := range list {
				if p.Object == in(i, "sequence public.{o}_id_seq") && !strings.Contains(p.Reason, "is named by") {
					text += p.Remedy
				}
			}
			return text
		}
		plan, problems, notes := j.inspect(), 0, 0
		for i, c := range sequenceCases {
			expected, others := plan.Notes, plan.Problems
			if c.problem {
				expected, others = others, expected
				problems++
			} else if c.remedy != "" {
				notes++
			}
			if c.note != "" {
				notes++
			}
			want(t, c.name+": the remedy", remedies(i, expected), in(i, c.remedy))
			want(t, c.name+": another remedy", remedies(i, others), "")
			wantText(t, c.name+": the notes", lines(plan.Notes), in(i, c.note))
		}
		want(t, "the count of problems", len(plan.Problems), problems)
		want(t, "the count of notes in "+lines(plan.Notes), len(plan.Notes), notes+1) // the last function names its table, too
		j.fails(rekey.StepExpand, rekey.ErrRefused)
		for i, c := range sequenceCases {
			j.do(in(i, c.remedy))
		}
		old, fresh := j.both()
		insert := func(s *session) {
			t.Helper()
			for i := range sequenceCases {
				s.do(in(i, "WITH o AS (INSERT INTO {o} (name) VALUES ('new') RETURNING id) INSERT INTO {r} (order_id) SELECT id FROM o"))
			}
		}
		insert(old)
		j.run(steps[:3]...)
		insert(old)
		insert(fresh)
		j.run(rekey.StepAbort)
		insert(old)
		j.run(steps[:3]...)
		insert(fresh)
		insert(old)
		j.run(rekey.StepContract)
		insert(fresh)
		j.run(rekey.StepUndo)
		insert(old)
		j.run(rekey.StepContract, rekey.StepCleanup)
		insert(fresh)
		for i, c := range sequenceCases {
			want(t, c.name+": new orders with refunds", old.one(in(i, "SELECT count(*) FROM {o} JOIN {r} ON order_id = {o}.id WHERE name = 'new'")), "9")
			if c.function == "" {
				continue
			}
			want(t, c.name+": whether cleanup keeps the sequence", j.one(in(i, "SELECT to_regclass('public.{o}_id_seq') IS NOT NULL")), fmt.Sprint(c.kept)[:1])
			if c.kept && c.name != "named in dynamic SQL" && c.note != "" {
				want(t, c.name+": whether the sequence continues", j.one(in(i, "SELECT {f}() BETWEEN 102 AND 150")), "t")
			}
		}
	})
}
