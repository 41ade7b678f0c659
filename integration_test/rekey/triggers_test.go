package rekey

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/rekey"
)

// carts has triggers that work on two tables: a line without a cart goes to the first one, a
// line has the name of its cart, and a cart has the total of its lines.
const carts = `
	CREATE TABLE carts (id bigserial PRIMARY KEY, name text NOT NULL UNIQUE, total integer NOT NULL DEFAULT 0);
	CREATE TABLE lines (id bigserial PRIMARY KEY, cart_id bigint NOT NULL REFERENCES carts, price integer NOT NULL, cart_name text);
	INSERT INTO carts (name) SELECT 'cart ' || i FROM generate_series(1, 5) i;
	CREATE FUNCTION name_line() RETURNS trigger LANGUAGE plpgsql SET search_path = public AS $$
	BEGIN
		IF NEW.cart_id IS NULL THEN
			NEW.cart_id := (SELECT id FROM carts WHERE name = 'cart 1');
		END IF;
		SELECT name INTO STRICT NEW.cart_name FROM carts WHERE id = NEW.cart_id;
		RETURN NEW;
	END $$;
	CREATE FUNCTION count_line() RETURNS trigger LANGUAGE plpgsql SET search_path = public AS $$
	BEGIN
		IF TG_OP IN ('INSERT', 'UPDATE') THEN
			UPDATE carts SET total = total + NEW.price WHERE id = NEW.cart_id;
		END IF;
		IF TG_OP IN ('DELETE', 'UPDATE') THEN
			UPDATE carts SET total = total - OLD.price WHERE id = OLD.cart_id;
		END IF;
		RETURN NULL;
	END $$;
	CREATE TRIGGER name_line BEFORE INSERT OR UPDATE ON lines FOR EACH ROW EXECUTE FUNCTION name_line();
	CREATE TRIGGER count_line AFTER INSERT OR UPDATE OR DELETE ON lines FOR EACH ROW EXECUTE FUNCTION count_line();
	INSERT INTO lines (cart_id, price) SELECT 1 + i % 5, i FROM generate_series(1, 500) i;`

// Triggers of the user see both keys of references, and what they change counts for both
// versions. Triggers that work on several tables work throughout, also while contract runs.
func TestUserTriggers(t *testing.T) {
	t.Parallel()
	installed.Each(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, carts)
		spec := rekey.Spec{Keys: []rekey.Key{
			{Table: "carts", Format: rekey.Sno, Node: 1, BackfillNode: 2, Times: rekey.Times{Start: sourceStart}},
			{Table: "lines", Format: rekey.Snowflake, Node: 3, BackfillNode: 4, Times: rekey.Times{Start: sourceStart}},
		}}
		b := &board{TB: t, db: db}
		var programs sync.WaitGroup
		program := func(path string, number int) (stop func()) {
			ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
			s := b.session(path)
			cart := fmt.Sprintf("(SELECT id FROM carts WHERE name = 'cart %d')", number) // so that programs lock carts in the same order
			done := make(chan struct{})
			programs.Go(func() {
				defer close(done)
				for n := 0; ctx.Err() == nil; n++ {
					for _, sql := range []string{
						fmt.Sprintf("INSERT INTO lines (cart_id, price) VALUES (%s, %d)", cart, n),
						"INSERT INTO lines (price) VALUES (7)",
						"UPDATE lines SET cart_id = (SELECT id FROM carts WHERE name = 'cart 1') WHERE id = (SELECT min(id) FROM lines WHERE cart_id = " + cart + ")",
						"DELETE FROM lines WHERE id = (SELECT min(id) FROM lines WHERE cart_id = " + cart + ")",
					} {
						if _, err := s.conn.Exec(context.WithoutCancel(ctx), sql); err != nil {
							t.Errorf("by search_path %s: %v\nin: %s", path, err, sql)
							return
						}
					}
					time.Sleep(2 * time.Millisecond)
				}
			})
			return func() { cancel(); <-done }
		}
		check := func(when string) {
			t.Helper()
			s := b.session("public")
			if got := s.all("SELECT c.name, c.total, sum(l.price) FROM carts c JOIN lines l ON l.cart_id = c.id GROUP BY c.id HAVING c.total <> sum(l.price)"); len(got) > 0 {
				t.Errorf("%s: expected the totals of all lines, got %q", when, got)
			}
			if got := s.all("SELECT l.id, l.cart_name, c.name FROM lines l LEFT JOIN carts c ON c.id = l.cart_id WHERE c.name IS DISTINCT FROM l.cart_name"); len(got) > 0 {
				t.Errorf("%s: expected the names of all carts, got %q", when, got)
			}
		}
		stop := []func(){program("public", 2), program("public", 3)}
		for _, step := range steps {
			if step == rekey.StepContract {
				stop = append(stop, program("rekeyed, public", 4), program("rekeyed, public", 5))
				time.Sleep(200 * time.Millisecond)
				stop[0]()
				stop[1]()
			}
			mustRun(t, db.SQL(t), spec, rekey.Options{LockWait: time.Minute}, step)
			time.Sleep(200 * time.Millisecond)
			check("after " + string(step))
		}
		for _, f := range stop[2:] {
			f()
		}
		check("at the end")
	})
}

// Inspect names functions of triggers that would work on other rows or columns.
func TestTriggerRefusals(t *testing.T) {
	t.Parallel()
	const function = "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN %s; RETURN NEW; END'; CREATE TRIGGER %s AFTER INSERT ON lines FOR EACH ROW EXECUTE FUNCTION f()"
	for _, c := range []struct{ name, change, want string }{
		{"a table without its schema", fmt.Sprintf(function, "UPDATE carts SET total = 1 WHERE id = NEW.cart_id", "t"), "function public.f() of trigger t names public.carts without its schema"},
		{"its own table", fmt.Sprintf(function, `PERFORM 1 FROM "lines" WHERE id = NEW.id`, "t"), "names public.lines without its schema"},
		{"a type", fmt.Sprintf(function, "DECLARE x carts.id%TYPE; BEGIN x := NEW.cart_id; END", "t"), "names public.carts without its schema"},
		{"dynamic SQL", fmt.Sprintf(function, "EXECUTE ''TRUNCATE carts''", "t"), "names public.carts without its schema"},
		{"a function that it calls", "CREATE FUNCTION g() RETURNS void LANGUAGE sql AS 'UPDATE carts SET total = 1';" + fmt.Sprintf(function, "PERFORM g()", "t"), "names public.carts without its schema"},
		{"a view", "CREATE VIEW v AS SELECT id FROM carts;" + fmt.Sprintf(function, "PERFORM FROM v", "t"), "names public.v without its schema"},
		{"a whole row", "CREATE TABLE history (LIKE lines);" + fmt.Sprintf(function, "INSERT INTO history SELECT NEW.*", "t"), "expands NEW.*"},
		{"a whole row in parentheses", "CREATE TABLE history (LIKE lines);" + fmt.Sprintf(function, "INSERT INTO history VALUES ((NEW).*)", "t"), "expands NEW.*"},
		{"with its schema", fmt.Sprintf(function, "UPDATE public.carts SET total = 1 WHERE id = NEW.cart_id", "t"), ""},
		{"a search_path", fmt.Sprintf(function, "UPDATE carts SET total = 1", "t") + "; ALTER FUNCTION f() SET search_path = public", ""},
		{"a column and a comment", fmt.Sprintf(function, "NEW.cart_name := carts; -- UPDATE carts\n PERFORM 1", "t"), ""},
		{"a name that sorts last", "CREATE TRIGGER \"ÿ\" BEFORE INSERT ON lines FOR EACH ROW EXECUTE FUNCTION name_line()", "sorts before or after"},
		{"a name that sorts first", "CREATE TRIGGER \" a\" BEFORE INSERT ON lines FOR EACH ROW EXECUTE FUNCTION name_line()", "sorts before or after"},
	} {
		t.Run(c.name, func(t *testing.T) {
			installed.One(t, func(t *testing.T, db *pgtest.DB) {
				db.Exec(t, carts)
				db.Exec(t, c.change)
				spec := rekey.Spec{Keys: []rekey.Key{{Table: "carts", Format: rekey.Snowflake, Node: 1, BackfillNode: 2, Times: rekey.Times{Start: sourceStart}}}}
				plan, err := rekey.Inspect(t.Context(), db.SQL(t), spec, rekey.Options{Config: config})
				must(t, err)
				var got []string
				for _, p := range plan.Problems {
					got = append(got, p.String())
				}
				if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)) {
					t.Errorf("expected the problem %q, got %q", c.want, got)
				}
			})
		})
	}
}

// Inspect notes functions that name tables, or return their rows.
func TestFunctionNotes(t *testing.T) {
	t.Parallel()
	installed.One(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, carts)
		db.Exec(t, `CREATE FUNCTION sum_of(cart bigint) RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT sum(price) FROM lines WHERE cart_id = cart); END';
			CREATE FUNCTION all_carts() RETURNS SETOF carts LANGUAGE sql AS 'SELECT * FROM carts';
			CREATE FUNCTION other() RETURNS integer LANGUAGE sql AS 'SELECT 1'`)
		spec := rekey.Spec{Keys: []rekey.Key{{Table: "carts", Format: rekey.Snowflake, Node: 1, BackfillNode: 2, Times: rekey.Times{Start: sourceStart}}}}
		plan, err := rekey.Inspect(t.Context(), db.SQL(t), spec, rekey.Options{Config: config})
		must(t, err)
		var got []string
		for _, n := range plan.Notes {
			got = append(got, n.Object+" "+n.Reason)
		}
		want := []string{"triggers work on several of the tables", "function public.all_carts() returns rows of a table, which have more columns until contract, and other types afterwards", "function public.sum_of(bigint) names public.lines"}
		if strings.Join(got, "\n") != strings.Join(want, "\n") || len(plan.Problems) > 0 {
			t.Errorf("expected the notes %q, got %q and problems %v", want, got, plan.Problems)
		}
	})
}
