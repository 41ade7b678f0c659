package rekey

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/rekey"
)

// Contract keeps a sequence that the text of a function names.
func TestSequenceOfFunction(t *testing.T) {
	t.Parallel()
	const create = "CREATE FUNCTION reserve() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN %; END $$"
	bigints := strings.NewReplacer("serial", "bigserial", "integer", "bigint").Replace(films)
	for _, c := range []struct {
		name, tables, function string
		inPlace                bool
		kept                   bool
		problem, note          string
	}{
		{name: "not named", function: "nextval('other_seq')"},
		{name: "with its schema", function: "nextval('public.films_id_seq')", kept: true, note: "sequence public.films_id_seq is named by public.reserve()"},
		{name: "without its schema", function: `nextval('"films_id_seq"')`, kept: true, note: "sequence public.films_id_seq is named by public.reserve()"},
		{name: "in dynamic SQL", function: "(SELECT 1); EXECUTE 'SELECT nextval(''films_id_seq'')'", kept: true, note: "sequence public.films_id_seq is named by public.reserve()"},
		{name: "in place", function: "nextval('films_id_seq')", inPlace: true, kept: true, note: "sequence public.films_id_seq is named by public.reserve()"},
		{name: "bigint in place", tables: bigints, function: "nextval('films_id_seq')", inPlace: true, kept: true, note: "sequence public.films_id_seq is named by public.reserve()"},
		{name: "bigint in place, not named", tables: bigints, function: "nextval('other_seq')", inPlace: true},
		{name: "identity", function: "nextval('public.copies_id_seq')", problem: "sequence public.copies_id_seq is named by public.reserve(), and would be dropped with the identity column"},
		{name: "by its column", function: "nextval(pg_get_serial_sequence('public.films', 'id'))", note: "function public.reserve() names public.films and calls pg_get_serial_sequence"},
	} {
		t.Run(c.name, func(t *testing.T) {
			installed.One(t, func(t *testing.T, db *pgtest.DB) {
				if c.tables == "" {
					c.tables = films
				}
				db.Exec(t, c.tables)
				db.Exec(t, strings.Replace(create, "%", c.function, 1))
				spec := filmsSpec()
				if c.inPlace {
					spec.Keys = []rekey.Key{{Table: "films", Format: rekey.Snowflake, Node: 1, InPlace: true}}
				}
				plan, err := rekey.Inspect(t.Context(), db.SQL(t), spec, rekey.Options{Config: config})
				must(t, err)
				all := func(list []rekey.Problem) (text string) {
					for _, p := range list {
						text += p.String() + "\n"
					}
					return text
				}
				if got := all(plan.Problems); !strings.Contains(got, c.problem) || c.problem == "" && got != "" {
					t.Fatalf("expected the problem %q, got %q", c.problem, got)
				}
				if got := all(plan.Notes); !strings.Contains(got, c.note) || c.note == "" && strings.Contains(got, "sequence") {
					t.Errorf("expected the note %q, got %q", c.note, got)
				}
				if c.problem != "" {
					return
				}
				mustRun(t, db.SQL(t), spec, rekey.Options{}, steps...)
				conn := db.Conn(t)
				if got := pgtest.Value[bool](t, conn, "SELECT to_regclass('public.films_id_seq') IS NOT NULL"); got != c.kept {
					t.Errorf("expected that contract keeps the sequence: %v, got %v", c.kept, got)
				}
				if c.kept && c.name != "in dynamic SQL" {
					if got := pgtest.Value[int64](t, conn, "SELECT reserve()"); got != 21 {
						t.Errorf("expected the next value 21, got %d", got)
					}
				}
			})
		})
	}
}

// Inspect offers keys below the smallest one when the sequence of an old key ends, with a
// statement that works: programs of both versions insert rows until contract, and after abort.
func TestExhaustedSequence(t *testing.T) {
	t.Parallel()
	const refers = "; CREATE TABLE refunds (id bigserial PRIMARY KEY, order_id integer NOT NULL REFERENCES orders)"
	for _, c := range []struct {
		name, table string
		last        int64
		want        string // the remedy
		problem     bool
		inPlace     bool
	}{
		{"serial", "CREATE TABLE orders (id serial PRIMARY KEY, name text)" + refers, 2147483647, "ALTER SEQUENCE public.orders_id_seq INCREMENT BY -1 MINVALUE -2147483647 RESTART WITH -1", true, false},
		{"identity", "CREATE TABLE orders (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text)" + refers, 2147483647, "ALTER SEQUENCE public.orders_id_seq INCREMENT BY -1 MINVALUE -2147483647 RESTART WITH -1", true, false},
		{"in place", "CREATE TABLE orders (id serial PRIMARY KEY, name text)" + refers, 2147483647, "ALTER SEQUENCE public.orders_id_seq INCREMENT BY -1 MINVALUE -2147483647 RESTART WITH -1", true, true},
		{"a bigint sequence", "CREATE TABLE orders (id serial PRIMARY KEY, name text); ALTER SEQUENCE orders_id_seq AS bigint" + refers, 2147483647, "ALTER SEQUENCE public.orders_id_seq INCREMENT BY -1 MINVALUE -2147483647 RESTART WITH -1", true, false},
		{"with a negative key", "CREATE TABLE orders (id serial PRIMARY KEY, name text); INSERT INTO orders VALUES (-7, 'x')" + refers, 2147483647, "ALTER SEQUENCE public.orders_id_seq INCREMENT BY -1 MINVALUE -2147483647 RESTART WITH -8", true, false},
		{"a bigint column", "CREATE TABLE orders (id serial PRIMARY KEY, name text); ALTER TABLE orders ALTER id TYPE bigint; CREATE TABLE refunds (id bigserial PRIMARY KEY, order_id bigint NOT NULL REFERENCES orders)", 2147483647,
			"ALTER SEQUENCE public.orders_id_seq AS bigint MAXVALUE 9223372036854775807", true, false},
		{"smallint", "CREATE TABLE orders (id smallserial PRIMARY KEY, name text); CREATE TABLE refunds (id bigserial PRIMARY KEY, order_id smallint NOT NULL REFERENCES orders)", 32767, "ALTER SEQUENCE public.orders_id_seq INCREMENT BY -1 MINVALUE -32767 RESTART WITH -1", true, false},
		{"a few values", "CREATE TABLE orders (id serial PRIMARY KEY, name text)" + refers, 2147483647 - 5000, "ALTER SEQUENCE public.orders_id_seq INCREMENT BY -1 MINVALUE -2147483647 RESTART WITH -1", false, false},
		{"many values", "CREATE TABLE orders (id serial PRIMARY KEY, name text)" + refers, 1_900_000_000, "", false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			installed.One(t, func(t *testing.T, db *pgtest.DB) {
				db.Exec(t, c.table+fmt.Sprintf("; SELECT setval('orders_id_seq', %d)", c.last-100))
				db.Exec(t, "INSERT INTO orders (name) SELECT 'old' FROM generate_series(1, 100); INSERT INTO refunds (order_id) SELECT id FROM orders")
				pool := db.SQL(t)
				spec := rekey.Spec{Keys: []rekey.Key{{Table: "orders", Format: rekey.Snowflake, Node: 1, BackfillNode: 2, Times: rekey.Times{Start: sourceStart}}}}
				if c.inPlace {
					spec.Keys[0] = rekey.Key{Table: "orders", Format: rekey.Snowflake, Node: 1, InPlace: true}
				}
				plan, err := rekey.Inspect(t.Context(), pool, spec, rekey.Options{Config: config})
				must(t, err)
				list, other := plan.Notes, plan.Problems
				if c.problem {
					list, other = other, list
				}
				if c.want == "" && len(list) == 0 && len(other) == 0 {
					return
				}
				if len(list) != 1 || len(other) > 0 || list[0].Object != "sequence public.orders_id_seq" || list[0].Remedy != c.want {
					t.Fatalf("expected the remedy %q alone, got problems %v and notes %v", c.want, plan.Problems, plan.Notes)
				}
				if c.problem {
					if err := run(t.Context(), pool, rekey.StepExpand, spec, rekey.Options{}); !errors.Is(err, rekey.ErrRefused) {
						t.Fatalf("expected %v, got %v", rekey.ErrRefused, err)
					}
				}
				db.Exec(t, list[0].Remedy)
				b := &board{TB: t, db: db}
				old, fresh := b.session("public"), b.session("rekeyed, public")
				insert := func(s *session) {
					t.Helper()
					s.do("WITH o AS (INSERT INTO orders (name) VALUES ('new') RETURNING id) INSERT INTO refunds (order_id) SELECT id FROM o")
				}
				insert(old)
				mustRun(t, pool, spec, rekey.Options{}, steps[:3]...)
				insert(old)
				insert(fresh)
				mustRun(t, pool, spec, rekey.Options{}, rekey.StepAbort)
				insert(old)
				mustRun(t, pool, spec, rekey.Options{}, steps[:3]...)
				insert(fresh)
				insert(old)
				mustRun(t, pool, spec, rekey.Options{}, rekey.StepContract)
				insert(fresh)
				if got := b.session("public").one("SELECT count(*) || ' ' || (SELECT count(*) FROM refunds) FROM orders JOIN refunds ON order_id = orders.id WHERE name = 'new'"); !strings.HasPrefix(got, "7 ") {
					t.Errorf("expected 7 new orders with refunds, got %s", got)
				}
			})
		})
	}
}
