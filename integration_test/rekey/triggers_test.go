package rekey

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/rekey"
)

// Triggers of an application work during a rekey, and contract tries them.

// films is a library of films, with integer keys.
const films = `
	CREATE TABLE films (id serial PRIMARY KEY, title text NOT NULL UNIQUE, counted integer NOT NULL DEFAULT 0);
	CREATE TABLE copies (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, film_id integer NOT NULL REFERENCES films, no integer NOT NULL,
		twice integer GENERATED ALWAYS AS (no * 2) STORED, UNIQUE (film_id, no));
	CREATE TABLE shelves (film_id integer REFERENCES films, place integer, PRIMARY KEY (film_id, place));
	CREATE TABLE seen (value bigint); -- outside of the rekey
	CREATE TABLE seen_before (value integer);
	INSERT INTO films (title) SELECT 'film ' || i FROM generate_series(1, 20) i;
	INSERT INTO copies (film_id, no) SELECT i, n FROM generate_series(1, 20) i, generate_series(1, 3) n;
	INSERT INTO shelves SELECT i, i % 3 FROM generate_series(1, 20) i;`

func filmsSpec() rekey.Spec {
	return rekey.Spec{Keys: []rekey.Key{
		{Table: "films", Format: rekey.Snowflake, Node: 1, BackfillNode: 2, Times: started},
		{Table: "copies", Format: rekey.Snowflake, Node: 3, BackfillNode: 4, Times: started},
	}}
}

// triggerOn returns the definition of a trigger with a function in PL/pgSQL.
func triggerOn(table, when, body string) string {
	declare := ""
	if rest, ok := strings.CutPrefix(body, "DECLARE "); ok {
		declare, body, _ = strings.Cut(rest, "; ")
		declare = "DECLARE " + declare + ";"
	}
	return fmt.Sprintf("CREATE OR REPLACE FUNCTION on_%[1]s() RETURNS trigger LANGUAGE plpgsql AS $$ %[3]s BEGIN %[4]s; RETURN NEW; END $$; CREATE OR REPLACE TRIGGER t %[2]s ON %[1]s FOR EACH ROW EXECUTE FUNCTION on_%[1]s();", table, when, declare, body)
}

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

func cartsSpec() rekey.Spec {
	return rekey.Spec{Keys: []rekey.Key{{Table: "carts", Format: rekey.Sno, Node: 1, BackfillNode: 2, Times: started}}}
}

// newRowTriggers are triggers that use the key of a new row.
const newRowTriggers = `
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
	CREATE TRIGGER set_slug BEFORE INSERT ON pages FOR EACH ROW EXECUTE FUNCTION set_slug()`

// Triggers of an application see both keys of a reference, and both versions see their changes.
// Triggers that work on several tables work throughout, also while contract runs. A trigger on a
// new row can insert rows that refer to it, and sees the keys that it will have.
func TestUserTriggers(t *testing.T) {
	t.Parallel()
	installed.Each(t, func(t *testing.T, db *pgtest.DB) {
		spec := cartsSpec()
		spec.Keys = append(spec.Keys, []rekey.Key{
			{Table: "lines", Format: rekey.Snowflake, Node: 3, BackfillNode: 4, Times: started},
			{Table: "tickets", Format: rekey.Snowflake, Node: 5, InPlace: true},
			{Table: "pages", Format: rekey.Sno, Node: 6, BackfillNode: 7, Times: started},
		}...)
		spec.References = []rekey.Reference{{Table: "cart_log", Column: "cart_id", To: "carts"}}
		j := newJob(t, db, carts+newRowTriggers, spec)
		var stops []func()
		var rounds []*atomic.Int32 // of running programs
		start := func(path string, number int) {
			cart := fmt.Sprintf("(SELECT id FROM carts WHERE name = 'cart %d')", number) // so that programs lock carts in the same order
			count := new(atomic.Int32)
			rounds = append(rounds, count)
			stops = append(stops, j.connect(path).repeat(2*time.Millisecond, func(n int) []string {
				count.Store(int32(n))
				return []string{
					fmt.Sprintf("INSERT INTO lines (cart_id, price) VALUES (%s, %d)", cart, n),
					"INSERT INTO lines (price) VALUES (7)",
					"UPDATE lines SET cart_id = (SELECT id FROM carts WHERE name = 'cart 1') WHERE id = (SELECT min(id) FROM lines WHERE cart_id = " + cart + ")",
					"DELETE FROM lines WHERE id = (SELECT min(id) FROM lines WHERE cart_id = " + cart + ")",
				}
			}))
		}
		// work waits until each program has run all its statements.
		work := func() {
			t.Helper()
			grow(t, "all programs run their statements", rounds, 2)
		}
		check := func(when string) {
			t.Helper()
			want(t, when+": carts without the total of their lines", j.connect(oldVersion).all("SELECT c.name, c.total, sum(l.price) FROM carts c JOIN lines l ON l.cart_id = c.id GROUP BY c.id, c.name, c.total HAVING c.total <> sum(l.price)"), "")
			want(t, when+": lines without the name of their cart", j.connect(oldVersion).all("SELECT l.id, l.cart_name, c.name FROM lines l LEFT JOIN carts c ON c.id = l.cart_id WHERE c.name IS DISTINCT FROM l.cart_name"), "")
		}
		start(oldVersion, 2)
		start(oldVersion, 3)
		for _, step := range steps {
			if step == rekey.StepContract {
				testNewRows(t, j)
				start(newVersion, 4)
				start(newVersion, 5)
				work()
				stops[0]()
				stops[1]()
				rounds = rounds[2:]
			}
			j.runWith(rekey.Options{LockTimeout: 500 * time.Millisecond, LockWait: time.Minute}, step)
			work()
			check("after " + string(step))
		}
		stops[2]()
		stops[3]()
		check("at the end")
	})
}

func testNewRows(t *testing.T, j *job) {
	old, fresh := j.both()
	old.do("INSERT INTO carts (name) VALUES ('old')")
	old.do("INSERT INTO carts (id, name) VALUES (500, 'old 500')")
	fresh.do("INSERT INTO carts (name) VALUES ('new')")
	fresh.do("INSERT INTO carts (id, name) VALUES (sortkey.next_sno(9), 'new key')")
	fresh.do("INSERT INTO tickets (id) VALUES (700), (sortkey.next_snowflake(9))")
	fresh.do("INSERT INTO pages (id) VALUES (sortkey.next_sno(9))")
	for _, s := range []*session{old, fresh} {
		want(t, "the carts with logs", s.all("SELECT c.name FROM carts c JOIN cart_log l ON l.cart_id = c.id AND l.name = c.name JOIN cart_rights r ON r.cart_id = c.id AND r.name = c.name ORDER BY 1"), "new,new key,old,old 500")
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
	want(t, "the new key", fresh.one("SELECT id FROM pages WHERE slug = 'no "+page+"'"), key)
	want(t, "the first ticket", fresh.one("SELECT slug FROM tickets ORDER BY id LIMIT 1"), "no 700")
	want(t, "the count of pages with their key in the slug", old.one("SELECT count(*) FROM pages WHERE slug = 'no ' || id"), "2")
}

// Contract runs the triggers of an application with the new keys before it changes anything.
func TestTrial(t *testing.T) {
	t.Parallel()
	const outOfRange = "integer out of range"
	for _, c := range []struct {
		name, change string
		want         string // in the error; empty: contract succeeds
		fix          string
	}{
		{"an integer variable", triggerOn("copies", "BEFORE INSERT", "DECLARE f integer := NEW.film_id; NEW.no := NEW.no + 0 * f"), outOfRange, triggerOn("copies", "BEFORE INSERT", "DECLARE f bigint := NEW.film_id; NEW.no := NEW.no + 0 * f")},
		{"an integer variable after the row", triggerOn("copies", "AFTER INSERT", "DECLARE f integer := NEW.film_id; PERFORM f"), outOfRange, "DROP TRIGGER t ON copies"},
		{"a variable of a table without a key", triggerOn("shelves", "AFTER INSERT", "DECLARE f integer := NEW.film_id; PERFORM f"), outOfRange, "DROP TRIGGER t ON shelves"},
		{"a deleted row", strings.Replace(triggerOn("copies", "AFTER DELETE", "DECLARE f integer := OLD.id; PERFORM f"), "RETURN NEW", "RETURN OLD", 1), outOfRange, "DROP TRIGGER t ON copies"},
		{"an updated row", triggerOn("films", "BEFORE UPDATE", "DECLARE f integer := NEW.id; PERFORM f"), outOfRange, "DROP TRIGGER t ON films"},
		{"a deferred trigger", strings.Replace(triggerOn("copies", "AFTER INSERT", "DECLARE f integer := NEW.film_id; PERFORM f"), "CREATE OR REPLACE TRIGGER t AFTER INSERT ON copies", "CREATE CONSTRAINT TRIGGER t AFTER INSERT ON copies DEFERRABLE INITIALLY DEFERRED", 1), outOfRange, "DROP TRIGGER t ON copies"},
		{"an argument", "CREATE FUNCTION recount(ids integer[]) RETURNS void LANGUAGE plpgsql AS $$ BEGIN UPDATE public.films f SET counted = (SELECT count(*) FROM public.copies WHERE film_id = f.id) WHERE id = ANY ($1); END $$;" +
			triggerOn("copies", "AFTER INSERT OR UPDATE", "PERFORM public.recount(ARRAY[NEW.film_id])"), "function public.recount(bigint[]) does not exist",
			"CREATE FUNCTION recount(ids bigint[]) RETURNS void LANGUAGE plpgsql AS $$ BEGIN UPDATE public.films f SET counted = (SELECT count(*) FROM public.copies WHERE film_id = f.id) WHERE id = ANY ($1); END $$"},
		{"a column of another table", triggerOn("films", "AFTER INSERT", "INSERT INTO seen_before VALUES (NEW.id)"), outOfRange, "ALTER TABLE seen_before ALTER value TYPE bigint"},
		{"a wide column", triggerOn("films", "AFTER INSERT", "INSERT INTO seen VALUES (NEW.id)"), "", ""},
		{"a type of a column", triggerOn("copies", "BEFORE INSERT OR UPDATE", "DECLARE f public.copies.film_id%TYPE := NEW.film_id; PERFORM f"), "", ""},
		{"a new row of the table that it refers to", triggerOn("copies", "BEFORE INSERT", "INSERT INTO public.films (title) VALUES ('of ' || NEW.id) RETURNING id INTO NEW.film_id"), "", ""},
		{"a key", triggerOn("films", "BEFORE INSERT", "NEW.id := nextval('public.films_id_seq')"), "a trigger on public.films sets the key that a program leaves out to 2", triggerOn("films", "BEFORE INSERT", "NULL")},
		{"a key of the new format", triggerOn("copies", "BEFORE INSERT", "IF pg_typeof(NEW.id) = 'bigint'::regtype THEN NEW.id := sortkey.next_snowflake(9); END IF"), "", ""},
		{"rows that never change", triggerOn("copies", "BEFORE UPDATE OR DELETE", "RAISE EXCEPTION 'rows never change'"), "", ""},
		{"no rows", triggerOn("films", "BEFORE INSERT OR UPDATE", "DECLARE f integer := NEW.id; PERFORM f") + "TRUNCATE films, copies, shelves", outOfRange, "DROP TRIGGER t ON films"},
	} {
		t.Run(c.name, func(t *testing.T) {
			oneJob(t, films+c.change, filmsSpec(), func(t *testing.T, j *job) {
				const counts = "SELECT count(*), (SELECT count(*) FROM copies), (SELECT count(*) FROM shelves), (SELECT count(*) FROM seen) FROM films"
				before := j.one(counts)
				j.run(steps[:2]...)
				if c.want != "" {
					j.fails(rekey.StepValidate, rekey.ErrInconsistent, c.want)
					j.wantStatus(rekey.StepValidate, rekey.StepValidate)
					want(t, "the type of the key", j.one("SELECT format_type(atttypid, -1) FROM pg_attribute WHERE attrelid = 'films'::regclass AND attname = 'id'"), "integer")
					j.do(c.fix)
				}
				j.run(steps[2:]...)
				want(t, "the row counts", j.one(counts), before)
				j.do("INSERT INTO films (title) VALUES ('last'); INSERT INTO copies (film_id, no) SELECT id, 9 FROM films WHERE title = 'last'; INSERT INTO shelves (film_id, place) SELECT id, 9 FROM films WHERE title = 'last'")
			})
		})
	}
}

// A trigger that sets the key of a table without a default would go on with old keys. Without it, the
// triggers of rekey set both keys until cleanup.
func TestTriggerSetsKey(t *testing.T) {
	const tables = `CREATE SEQUENCE numbers; CREATE TABLE invoices (id bigint PRIMARY KEY, total integer);
		CREATE FUNCTION set_id() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.id IS NULL THEN NEW.id := nextval('public.numbers'); END IF; RETURN NEW; END $$;
		CREATE TRIGGER set_id BEFORE INSERT ON invoices FOR EACH ROW EXECUTE FUNCTION set_id();
		INSERT INTO invoices (total) SELECT n FROM generate_series(1, 10) n`
	spec := rekey.Spec{Keys: []rekey.Key{{Table: "invoices", Format: rekey.Snowflake, Node: 1, BackfillNode: 2, Times: started, OldKey: "nextval('public.numbers')"}}}
	oneJob(t, tables, spec, func(t *testing.T, j *job) {
		old, fresh := j.both()
		insert := func(sessions ...*session) {
			t.Helper()
			for _, s := range sessions {
				s.do("INSERT INTO invoices (total) VALUES (1)")
			}
		}
		j.run(steps[:2]...)
		j.fails(rekey.StepValidate, rekey.ErrInconsistent, "a trigger on public.invoices sets the key that a program leaves out to ", "which is no snowflake of now; let it leave the key alone")
		j.do("CREATE OR REPLACE FUNCTION set_id() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'")
		j.run(rekey.StepValidate)
		insert(old, fresh)
		j.run(rekey.StepContract)
		insert(old, fresh)
		j.run(rekey.StepCleanup)
		want(t, "invoices with a Snowflake of now", j.one("SELECT count(*) FROM invoices WHERE sortkey.snowflake_node(id) = 1 AND sortkey.snowflake_time(id) > now() - interval '1 day'"), "4")
		old.fails(notNullViolation, "INSERT INTO invoices (total) VALUES (1)")
	})
}
