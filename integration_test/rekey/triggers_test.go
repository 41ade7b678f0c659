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

// Triggers of an application see both keys of a reference, and both versions see their changes.
// Triggers that work on several tables work throughout, also while contract runs.
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
		{"dynamic SQL", fmt.Sprintf(function, "EXECUTE format(''UPDATE %I SET price = 1'', TG_TABLE_NAME)", "t"), "has EXECUTE and no search_path"},
		{"a function that it calls", "CREATE FUNCTION g() RETURNS void LANGUAGE sql AS 'UPDATE carts SET total = 1';" + fmt.Sprintf(function, "PERFORM g()", "t"), "names public.carts without its schema"},
		{"a view", "CREATE VIEW v AS SELECT id FROM carts;" + fmt.Sprintf(function, "PERFORM FROM v", "t"), "names public.v without its schema"},
		{"a whole row", "CREATE TABLE history (LIKE lines);" + fmt.Sprintf(function, "INSERT INTO history SELECT NEW.*", "t"), "expands a row"},
		{"a whole row in parentheses", "CREATE TABLE history (LIKE lines);" + fmt.Sprintf(function, "INSERT INTO history VALUES ((NEW).*)", "t"), "expands a row"},
		{"a row of a table", "DROP TRIGGER name_line ON lines;" + fmt.Sprintf(function, "DECLARE c carts; BEGIN SELECT * INTO c FROM public.carts WHERE id = NEW.cart_id; END", "t"), "names public.carts without its schema"},
		{"in parentheses", fmt.Sprintf(function, "PERFORM 1 FROM (carts c LEFT JOIN other o ON true)", "t"), "names public.carts without its schema"},
		{"between strings like comments", fmt.Sprintf(function, "RAISE DEBUG ''/* a''; UPDATE carts SET total = 1; RAISE DEBUG ''b */''", "t"), "names public.carts without its schema"},
		{"a row of a statement", "CREATE TABLE history (LIKE lines);" + fmt.Sprintf(function, "EXECUTE ''INSERT INTO history SELECT ($1).*'' USING NEW", "t") + "; ALTER FUNCTION f() SET search_path = public", "expands a row"},
		{"rows of a transition table", "CREATE TABLE history (LIKE lines);" + strings.Replace(fmt.Sprintf(function, "INSERT INTO history (SELECT * FROM added)", "t"), "FOR EACH ROW", "REFERENCING NEW TABLE AS added FOR EACH STATEMENT", 1), "expands a row"},
		{"compared rows", fmt.Sprintf(function, "IF NEW.* IS DISTINCT FROM NEW.* THEN END IF", "t"), "write NEW without .*"},
		{"compared rows without .*", fmt.Sprintf(function, "IF NEW IS DISTINCT FROM NEW THEN END IF", "t"), ""},
		{"a column with the name of a function", "CREATE FUNCTION price() RETURNS bigint LANGUAGE sql AS 'SELECT sum(total) FROM carts';" + fmt.Sprintf(function, "NEW.price := NEW.price", "t"), ""},
		{"a default", "CREATE SEQUENCE numbers; CREATE FUNCTION next() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN nextval(''numbers''); END'; ALTER TABLE carts ALTER id SET DEFAULT next()", "chooses old keys of public.carts"},
		{"with its schema", fmt.Sprintf(function, "UPDATE public.carts SET total = 1 WHERE id = NEW.cart_id", "t"), ""},
		{"a search_path", fmt.Sprintf(function, "UPDATE carts SET total = 1", "t") + "; ALTER FUNCTION f() SET search_path = public", ""},
		{"a comment", fmt.Sprintf(function, "-- UPDATE carts\n PERFORM 1", "t"), "names public.carts without its schema"},
		{"parts of names", fmt.Sprintf(function, "NEW.cart_name := NEW.carts_2; RAISE NOTICE ''UPDATE carts_2''; -- UPDATE carts_2\n PERFORM 1", "t"), ""},
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
		want := []string{"functions work on several of the tables", "function public.all_carts() returns rows of a table, which have more columns until contract, and other types afterwards", "function public.sum_of(bigint) names public.lines"}
		if strings.Join(got, "\n") != strings.Join(want, "\n") || len(plan.Problems) > 0 {
			t.Errorf("expected the notes %q, got %q and problems %v", want, got, plan.Problems)
		}
	})
}

// A trigger on a new row can insert rows that refer to it, and sees the keys that it will have.
func TestTriggerOfNewRow(t *testing.T) {
	t.Parallel()
	installed.One(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, `
			CREATE TABLE carts (id bigserial PRIMARY KEY, name text NOT NULL UNIQUE);
			CREATE TABLE cart_log (cart_id bigint NOT NULL, name text);
			CREATE TABLE cart_rights (cart_id bigint NOT NULL REFERENCES carts DEFERRABLE INITIALLY DEFERRED, name text);
			CREATE FUNCTION log_cart() RETURNS trigger LANGUAGE plpgsql SET search_path = public AS $$
			BEGIN
				INSERT INTO cart_log (cart_id, name) VALUES (NEW.id, NEW.name);
				INSERT INTO cart_rights (cart_id, name) VALUES (NEW.id, NEW.name);
				RETURN NEW;
			END $$;
			CREATE TRIGGER log_cart BEFORE INSERT ON carts FOR EACH ROW EXECUTE FUNCTION log_cart();
			CREATE TABLE tickets (id serial PRIMARY KEY, slug text);
			CREATE TABLE pages (id uuid PRIMARY KEY, slug text NOT NULL);
			CREATE FUNCTION set_slug() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN
				NEW.slug := 'no ' || NEW.id;
				RETURN NEW;
			END $$;
			CREATE TRIGGER set_slug BEFORE INSERT ON tickets FOR EACH ROW EXECUTE FUNCTION set_slug();
			CREATE TRIGGER set_slug BEFORE INSERT ON pages FOR EACH ROW EXECUTE FUNCTION set_slug()`)
		spec := rekey.Spec{
			Keys: []rekey.Key{
				{Table: "carts", Format: rekey.Sno, Node: 1, BackfillNode: 2, Times: started},
				{Table: "tickets", Format: rekey.Snowflake, Node: 1, InPlace: true},
				{Table: "pages", Format: rekey.Sno, Node: 3, BackfillNode: 4, Times: started},
			},
			References: []rekey.Reference{{Table: "cart_log", Column: "cart_id", To: "carts"}},
		}
		mustRun(t, db.SQL(t), spec, rekey.Options{}, steps[:3]...)
		b := &board{TB: t, db: db}
		old, fresh := b.session("public"), b.session("rekeyed, public")
		old.do("INSERT INTO carts (name) VALUES ('old')")
		old.do("INSERT INTO carts (id, name) VALUES (500, 'old 500')")
		fresh.do("INSERT INTO carts (name) VALUES ('new')")
		fresh.do("INSERT INTO carts (id, name) VALUES (sortkey.next_sno(0, 9), 'new key')")
		fresh.do("INSERT INTO tickets (id) VALUES (700), (sortkey.next_snowflake(9))")
		fresh.do("INSERT INTO pages (id) VALUES (sortkey.next_sno(0, 9))")
		for _, s := range []*session{old, fresh} {
			if got := s.all("SELECT c.name FROM carts c JOIN cart_log l ON l.cart_id = c.id AND l.name = c.name JOIN cart_rights r ON r.cart_id = c.id AND r.name = c.name ORDER BY 1"); strings.Join(got, ",") != "new,new key,old,old 500" {
				t.Errorf("expected the logs of all carts, got %q", got)
			}
		}
		// The pair of a row stays the same, whatever the isolation level.
		const page = "00000000-0000-4000-8000-000000000001"
		old.do("INSERT INTO pages (id) VALUES ($1)", page)
		key := fresh.one("SELECT id FROM pages WHERE slug = 'no " + page + "'")
		fresh.do("BEGIN ISOLATION LEVEL SERIALIZABLE")
		fresh.do("INSERT INTO pages (id) VALUES ($1) ON CONFLICT (id) DO UPDATE SET slug = pages.slug", key)
		fresh.do("COMMIT")
		old.do("DELETE FROM pages WHERE id = $1", page)
		old.do("INSERT INTO pages (id) VALUES ($1)", page)
		if got := fresh.one("SELECT id FROM pages WHERE slug = 'no " + page + "'"); got != key {
			t.Errorf("expected the new key %s, got %s", key, got)
		}
		if got := fresh.all("SELECT slug FROM tickets ORDER BY id LIMIT 1"); strings.Join(got, ",") != "no 700" {
			t.Errorf("expected ticket 700, got %q", got)
		}
		if got := old.one("SELECT count(*) FROM pages WHERE slug = 'no ' || id"); got != "2" {
			t.Errorf("expected the keys of both pages in their slugs, got %q", old.all("SELECT id, slug FROM pages"))
		}
		mustRun(t, db.SQL(t), spec, rekey.Options{}, rekey.StepContract)
	})
}
