package rekey

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/rekey"
)

// Contract keeps a sequence that the text of a function names.
func TestSequenceOfFunction(t *testing.T) {
	const named = "sequence public.{films}_id_seq is named by public.{reserve}()"
	cases := []struct {
		name, id, function string
		inPlace, kept      bool
		note               string
	}{
		{"not named", "serial", "nextval('other_seq')", false, false, ""},
		{"with its schema", "serial", "nextval('public.{films}_id_seq')", false, true, named},
		{"without its schema", "serial", `nextval('"{films}_id_seq"')`, false, true, named},
		{"in dynamic SQL", "serial", "(SELECT 1); EXECUTE 'SELECT nextval(''{films}_id_seq'')'", false, true, named},
		{"in place", "serial", "nextval('{films}_id_seq')", true, true, named},
		{"bigint in place", "bigserial", "nextval('{films}_id_seq')", true, true, named},
		{"bigint in place, not named", "bigserial", "nextval('other_seq')", true, false, ""},
		{"by its column", "serial", "nextval(pg_get_serial_sequence('public.{films}', 'id'))", false, false, "function public.{reserve}() names public.{films} and calls pg_get_serial_sequence"},
	}
	in := func(i int, text string) string {
		return strings.NewReplacer("{films}", fmt.Sprint("films_", i), "{reserve}", fmt.Sprint("reserve_", i)).Replace(text)
	}
	tables, spec := "", rekey.Spec{}
	for i, c := range cases {
		tables += in(i, "CREATE TABLE {films} (id "+c.id+" PRIMARY KEY, title text); INSERT INTO {films} (title) SELECT 'film ' || i FROM generate_series(1, 20) i;"+
			"CREATE FUNCTION {reserve}() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN "+c.function+"; END $$;")
		k := rekey.Key{Table: in(i, "{films}"), Format: rekey.Snowflake, Node: 2 * i, BackfillNode: 2*i + 1, Times: started}
		if c.inPlace {
			k = rekey.Key{Table: k.Table, Format: rekey.Snowflake, Node: k.Node, InPlace: true}
		}
		spec.Keys = append(spec.Keys, k)
	}
	oneJob(t, tables, spec, func(t *testing.T, j *job) {
		plan := j.inspect()
		want(t, "problems", lines(plan.Problems), "")
		for i, c := range cases {
			if got := lines(plan.Notes); !strings.Contains(got, in(i, c.note)) || c.note == "" && strings.Contains(got, in(i, "{films}_id_seq")) {
				t.Errorf("%s: expected the note %q, got %q", c.name, in(i, c.note), got)
			}
		}
		j.run(steps...)
		for i, c := range cases {
			want(t, c.name+": whether contract keeps the sequence", j.one(in(i, "SELECT to_regclass('public.{films}_id_seq') IS NOT NULL")), fmt.Sprint(c.kept)[:1])
			if c.kept && c.name != "in dynamic SQL" {
				want(t, c.name+": the next value", j.one(in(i, "SELECT {reserve}()")), "21")
			}
		}
	})
}

// Inspect offers keys below the smallest one when the sequence of an old key ends, with a
// statement that works: programs of both versions insert rows until contract, and after abort.
func TestExhaustedSequence(t *testing.T) {
	const (
		refers = "CREATE TABLE {r} (id bigserial PRIMARY KEY, order_id integer NOT NULL REFERENCES {o})"
		down   = "ALTER SEQUENCE public.{o}_id_seq INCREMENT BY -1 MINVALUE -2147483647 RESTART WITH -1"
	)
	cases := []struct {
		name, table string
		last        int64
		want        string // the remedy
		problem     bool
		inPlace     bool
	}{
		{"serial", "CREATE TABLE {o} (id serial PRIMARY KEY, name text); " + refers, 2147483647, down, true, false},
		{"identity", "CREATE TABLE {o} (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text); " + refers, 2147483647, down, true, false},
		{"in place", "CREATE TABLE {o} (id serial PRIMARY KEY, name text); " + refers, 2147483647, down, true, true},
		{"a bigint sequence", "CREATE TABLE {o} (id serial PRIMARY KEY, name text); ALTER SEQUENCE {o}_id_seq AS bigint; " + refers, 2147483647, down, true, false},
		{"with a negative key", "CREATE TABLE {o} (id serial PRIMARY KEY, name text); INSERT INTO {o} VALUES (-7, 'x'); " + refers, 2147483647, "ALTER SEQUENCE public.{o}_id_seq INCREMENT BY -1 MINVALUE -2147483647 RESTART WITH -8", true, false},
		{"a bigint column", "CREATE TABLE {o} (id serial PRIMARY KEY, name text); ALTER TABLE {o} ALTER id TYPE bigint; CREATE TABLE {r} (id bigserial PRIMARY KEY, order_id bigint NOT NULL REFERENCES {o})", 2147483647,
			"ALTER SEQUENCE public.{o}_id_seq AS bigint MAXVALUE 9223372036854775807", true, false},
		{"smallint", "CREATE TABLE {o} (id smallserial PRIMARY KEY, name text); CREATE TABLE {r} (id bigserial PRIMARY KEY, order_id smallint NOT NULL REFERENCES {o})", 32767, "ALTER SEQUENCE public.{o}_id_seq INCREMENT BY -1 MINVALUE -32767 RESTART WITH -1", true, false},
		{"a few values", "CREATE TABLE {o} (id serial PRIMARY KEY, name text); " + refers, 2147483647 - 5000, down, false, false},
		{"many values", "CREATE TABLE {o} (id serial PRIMARY KEY, name text); " + refers, 1_900_000_000, "", false, false},
	}
	in := func(i int, text string) string {
		return strings.NewReplacer("{o}", fmt.Sprint("orders_", i), "{r}", fmt.Sprint("refunds_", i)).Replace(text)
	}
	tables, spec := "", rekey.Spec{}
	for i, c := range cases {
		tables += in(i, c.table+fmt.Sprintf("; SELECT setval('{o}_id_seq', %d); INSERT INTO {o} (name) SELECT 'old' FROM generate_series(1, 100); INSERT INTO {r} (order_id) SELECT id FROM {o};", c.last-100))
		k := rekey.Key{Table: in(i, "{o}"), Format: rekey.Snowflake, Node: 2 * i, BackfillNode: 2*i + 1, Times: started}
		if c.inPlace {
			k = rekey.Key{Table: k.Table, Format: rekey.Snowflake, Node: k.Node, InPlace: true}
		}
		spec.Keys = append(spec.Keys, k)
	}
	oneJob(t, tables, spec, func(t *testing.T, j *job) {
		// remedies returns the remedies for the sequence of a case.
		remedies := func(i int, list []rekey.Problem) (text string) {
			for _, p := range list {
				if p.Object == in(i, "sequence public.{o}_id_seq") {
					text += p.Remedy
				}
			}
			return text
		}
		plan, count := j.inspect(), 0
		for i, c := range cases {
			expected, others := plan.Notes, plan.Problems
			if c.problem {
				expected, others = others, expected
			}
			want(t, c.name+": the remedy", remedies(i, expected), in(i, c.want))
			want(t, c.name+": another remedy", remedies(i, others), "")
			if c.want != "" {
				count++
			}
		}
		want(t, "the count of problems and notes", len(plan.Problems)+len(plan.Notes), count)
		j.fails(rekey.StepExpand, rekey.ErrRefused)
		for i, c := range cases {
			j.exec(in(i, c.want))
		}
		old, fresh := j.both()
		insert := func(s *session) {
			t.Helper()
			for i := range cases {
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
		for i, c := range cases {
			want(t, c.name+": new orders with refunds", old.one(in(i, "SELECT count(*) FROM {o} JOIN {r} ON order_id = {o}.id WHERE name = 'new'")), "7")
		}
	})
}
