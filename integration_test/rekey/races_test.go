package rekey

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/rekey"
)

// A board has lists, and rows that refer to them: by a foreign key that is checked at once, by
// one that can be deferred, and by none. Each row has the name of its list, too.
type board struct {
	testing.TB
	// Three programs of the old version, and one of the new version, which is nil before validate.
	old, other, third, new *session
	n                      int
}

const boardTables = `
	CREATE TABLE lists (id bigserial PRIMARY KEY, name text NOT NULL UNIQUE, next_id bigint REFERENCES lists DEFERRABLE, created_at timestamptz NOT NULL DEFAULT now());
	CREATE TABLE items (id bigserial PRIMARY KEY, list text NOT NULL, list_id bigint REFERENCES lists, code text UNIQUE);
	CREATE TABLE notes (list text NOT NULL, list_id bigint NOT NULL REFERENCES lists ON UPDATE NO ACTION DEFERRABLE INITIALLY DEFERRED);
	CREATE TABLE visits (list text NOT NULL, list_id bigint NOT NULL);
	CREATE TABLE stars (list_id bigint NOT NULL, who text, n integer NOT NULL DEFAULT 1, UNIQUE (list_id, who));
	CREATE TABLE places (list_id bigint NOT NULL, name text, active boolean NOT NULL DEFAULT true);
	CREATE UNIQUE INDEX ON places (lower(name), list_id) WHERE active;
	CREATE TABLE times (at timestamptz, list_id bigint, UNIQUE (list_id, at));
	CREATE TABLE marks (who text, low text GENERATED ALWAYS AS (lower(who)) STORED, n integer DEFAULT 0, list_id bigint, UNIQUE (list_id, low));
	CREATE TABLE entries (list_id bigint NOT NULL REFERENCES lists, position integer, CONSTRAINT entry UNIQUE (list_id, position));
	COMMENT ON CONSTRAINT entry ON entries IS 'An entry.';
	CREATE FUNCTION fold(text) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT lower($1)';
	CREATE FUNCTION norm(text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN fold($1); END';
	CREATE TABLE contacts (list_id bigint NOT NULL REFERENCES lists, name text);
	CREATE UNIQUE INDEX ON contacts (list_id, norm(name));
	CREATE TABLE counters (id serial PRIMARY KEY, n integer NOT NULL DEFAULT 1);
	CREATE TABLE parts (counter_id smallint REFERENCES counters);
	INSERT INTO lists (name) SELECT 'list ' || i FROM generate_series(1, 40) i;
	INSERT INTO visits SELECT name, id FROM lists WHERE id <> 39;
	INSERT INTO entries SELECT 1, i FROM generate_series(1, 100) i;
	CREATE FUNCTION star(list bigint, name text) RETURNS void LANGUAGE plpgsql AS 'BEGIN INSERT INTO stars (list_id, who) VALUES (list, name) ON CONFLICT DO NOTHING; END';
	SELECT setval('lists_id_seq', 1000)`

func boardSpec() rekey.Spec {
	spec := rekey.Spec{Keys: []rekey.Key{
		{Table: "lists", Format: rekey.Snowflake, Node: 1, BackfillNode: 2, Times: created},
		{Table: "items", Format: rekey.Snowflake, Node: 3, BackfillNode: 4, Times: started},
		{Table: "counters", Format: rekey.Snowflake, Node: 5, InPlace: true},
	}}
	for _, table := range []string{"visits", "stars", "places", "times", "marks"} {
		spec.References = append(spec.References, rekey.Reference{Table: table, Column: "list_id", To: "lists"})
	}
	return spec
}

// id returns the old key of another list that doesn't exist.
func (b *board) id() int {
	b.n++
	return 100 + b.n
}

func name(id int) string { return fmt.Sprintf("list %d", id) }

// blocked runs a statement that must wait for another session, until release has run.
func (b *board) blocked(s *session, sql string, args []any, release func()) {
	b.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := s.rows(sql, args...)
		done <- err
	}()
	pgtest.AwaitLock(b, b.old.conn, s.conn.PgConn().PID(), done)
	release()
	must(b, <-done)
}

// A boardCase has statements of programs whose order or overlap makes it hard to keep both
// keys of a list equal.
type boardCase struct {
	name string
	run  func(b *board)
}

var boardCases = []boardCase{
	{"a row without a foreign key refers to a list that another transaction inserts", func(b *board) {
		id := b.id()
		b.other.do("BEGIN")
		b.other.do("INSERT INTO lists (id, name) VALUES ($1, $2)", id, name(id))
		b.blocked(b.third, "INSERT INTO visits VALUES ($1, $2)", []any{name(id), id}, func() { b.other.do("COMMIT") })
	}},
	{"a list is inserted while another transaction refers to it", func(b *board) {
		id := b.id()
		b.other.do("BEGIN")
		b.other.do("INSERT INTO visits VALUES ($1, $2)", name(id), id)
		b.blocked(b.third, "INSERT INTO lists (id, name) VALUES ($1, $2)", []any{id, name(id)}, func() { b.other.do("COMMIT") })
	}},
	{"a list gets a key to which another transaction refers", func(b *board) {
		id := b.id()
		b.old.do("INSERT INTO lists (name) VALUES ($1)", name(id))
		b.other.do("BEGIN")
		b.other.do("INSERT INTO visits VALUES ($1, $2)", name(id), id)
		b.blocked(b.third, "UPDATE lists SET id = $1 WHERE name = $2", []any{id, name(id)}, func() { b.other.do("COMMIT") })
		b.old.do("INSERT INTO items (list, list_id) VALUES ($1, $2)", name(id), id)
	}},
	{"a list commits between the trigger and the check of the foreign key", func(b *board) {
		id := b.id()
		b.other.do("BEGIN")
		b.other.do("INSERT INTO lists (id, name) VALUES ($1, $2)", id, name(id))
		b.other.do("INSERT INTO items (list, list_id, code) VALUES ($1, $2, $1)", name(id), id)
		b.blocked(b.third, "INSERT INTO items (list, list_id, code) VALUES ($1, $2, $1)", []any{name(id), id}, func() {
			b.other.do("DELETE FROM items WHERE code = $1", name(id))
			b.other.do("COMMIT")
		})
	}},
	{"DELETE and INSERT of the same key", func(b *board) {
		id := b.id()
		b.old.do("INSERT INTO lists (id, name) VALUES ($1, $2)", id, name(id))
		b.old.do("INSERT INTO notes VALUES ($1, $2)", name(id), id)
		b.old.do("INSERT INTO visits VALUES ($1, $2)", name(id), id)
		b.old.do("BEGIN; SET CONSTRAINTS ALL DEFERRED")
		b.old.do("DELETE FROM lists WHERE id = $1", id)
		b.old.do("INSERT INTO lists (id, name) VALUES ($1, $2)", id, name(id))
		b.old.do("COMMIT")
		b.old.do("WITH d AS (DELETE FROM lists WHERE id = $1 RETURNING *) INSERT INTO lists (id, name) SELECT id, name FROM d", id)
		// A row of the first fill
		id = 11 + b.n%20
		b.old.do("WITH d AS (DELETE FROM lists WHERE id = $1 RETURNING *) INSERT INTO lists (id, name) SELECT id, name FROM d", id)
	}},
	{"references to a deleted list", func(b *board) {
		id := 35
		b.old.do("INSERT INTO visits VALUES ($1, $2)", name(id), id)
		b.old.do("DELETE FROM lists WHERE id = $1", id)
		b.old.do("INSERT INTO visits VALUES ($1, $2)", name(id), id)
	}},
	{"references to a list of the first fill that gets another key", func(b *board) {
		b.old.do("UPDATE lists SET id = $1, name = 'moved' WHERE id = 36", b.id())
		b.old.do("INSERT INTO visits VALUES ($1, 36)", name(36))
	}},
	{"new keys of lists, after references to them", func(b *board) {
		id, next := b.id(), b.id()
		b.old.do("INSERT INTO lists (id, name) VALUES ($1, $2)", id, name(id))
		b.old.do("INSERT INTO notes VALUES ($1, $2)", name(id), id)
		b.old.do("BEGIN")
		b.old.do("UPDATE notes SET list_id = $1 WHERE list_id = $2", next, id)
		b.old.do("UPDATE lists SET id = $1 WHERE id = $2", next, id)
		b.old.do("COMMIT")
	}},
	{"a list with a new key that refers to itself", func(b *board) {
		id, next := b.id(), b.id()
		b.old.do("INSERT INTO lists (id, name) VALUES ($1, $2)", id, name(id))
		b.old.do("UPDATE lists SET id = $1, next_id = $1 WHERE id = $2", next, id)
		b.old.do("INSERT INTO items (list, list_id) VALUES ($1, $2)", name(id), next)
	}},
	{"INSERT ON CONFLICT DO NOTHING of a list that a row refers to", func(b *board) {
		id := b.id()
		b.old.do("BEGIN")
		b.old.do("INSERT INTO notes VALUES ($1, $2)", name(id), id)
		b.old.do("INSERT INTO lists (id, name) VALUES ($1, 'list 1') ON CONFLICT DO NOTHING", id)
		b.old.do("INSERT INTO lists (id, name) VALUES ($1, $2)", id, name(id))
		b.old.do("COMMIT")
		if b.new == nil {
			return
		}
		key := b.new.one("SELECT sortkey.next_snowflake(9)")
		b.new.do("BEGIN")
		b.new.do("INSERT INTO notes VALUES ($1, $2)", "new "+name(id), key)
		b.new.do("INSERT INTO lists (id, name) VALUES ($1, 'list 1') ON CONFLICT DO NOTHING", key)
		b.new.do("INSERT INTO lists (id, name) VALUES ($1, $2)", key, "new "+name(id))
		b.new.do("COMMIT")
	}},
	{"a snapshot from before the list", func(b *board) {
		id := b.id()
		b.other.do("BEGIN ISOLATION LEVEL REPEATABLE READ")
		b.other.one("SELECT count(*) FROM lists WHERE id = 1")
		b.old.do("INSERT INTO lists (id, name) VALUES ($1, $2)", id, name(id))
		b.other.fails(serializationFailure, "INSERT INTO visits VALUES ($1, $2)", name(id), id)
		b.other.do("INSERT INTO visits VALUES ($1, $2)", name(id), id)
	}},
	{"a snapshot from before a list whose key a statement has claimed earlier", func(b *board) {
		id := b.id()
		b.old.do("INSERT INTO lists (id, name) VALUES ($1, 'list 1') ON CONFLICT DO NOTHING", id)
		b.other.do("BEGIN ISOLATION LEVEL REPEATABLE READ")
		b.other.one("SELECT count(*) FROM lists WHERE id = 1")
		b.old.do("INSERT INTO lists (id, name) VALUES ($1, $2)", id, name(id))
		b.other.fails(serializationFailure, "INSERT INTO visits VALUES ($1, $2)", name(id), id)
		b.other.do("INSERT INTO visits VALUES ($1, $2)", name(id), id)
	}},
	{"SERIALIZABLE inserts of a key whose list another transaction has deleted", func(b *board) {
		id, next := b.id(), b.id()
		b.old.do("INSERT INTO lists (id, name) VALUES ($1, $2)", id, name(id))
		b.old.do("INSERT INTO visits VALUES ($1, $2)", name(id), id)
		insert := func(s *session, id int) { s.do("INSERT INTO lists (id, name) VALUES ($1, $2)", id, name(id)) }
		for _, s := range []*session{b.other, b.third} {
			s.do("BEGIN ISOLATION LEVEL SERIALIZABLE")
			s.one("SELECT 1")
		}
		b.old.do("DELETE FROM lists WHERE id = $1", id)
		b.other.fails(serializationFailure, "INSERT INTO lists (id, name) VALUES ($1, $2)", id, name(id))
		b.third.do("ROLLBACK")
		// Inserts of other keys don't depend on each other.
		for _, s := range []*session{b.other, b.third} {
			s.do("BEGIN ISOLATION LEVEL SERIALIZABLE")
		}
		insert(b.other, id)
		insert(b.third, next)
		b.other.do("COMMIT")
		b.third.do("COMMIT")
	}},
	{"a list gets another key, and another list its old one", func(b *board) {
		id, next := b.id(), b.id()
		b.old.do("INSERT INTO lists (id, name) VALUES ($1, $2)", id, name(next))
		b.old.do("INSERT INTO visits VALUES ($1, $2)", name(id), id)
		b.old.do("UPDATE lists SET id = $1 WHERE id = $2", next, id)
		b.old.do("INSERT INTO lists (id, name) VALUES ($1, $2)", id, name(id))
		b.old.do("INSERT INTO visits VALUES ($1, $2), ($3, $4)", name(id), id, name(next), next)
		if b.new != nil {
			key, other := b.new.one("SELECT id FROM lists WHERE name = $1", name(id)), b.new.one("SELECT sortkey.next_snowflake(9)")
			b.new.do("UPDATE lists SET id = $1, name = 'renamed' WHERE id = $2", other, key)
			b.new.do("INSERT INTO lists (id, name) VALUES ($1, $2)", key, name(id))
		}
	}},
	{"a sequence that goes back", func(b *board) {
		if b.new == nil {
			return
		}
		id := b.old.one("INSERT INTO lists (name) VALUES ('gone') RETURNING id")
		b.old.do("DELETE FROM lists WHERE id = $1", id)
		b.old.do("SELECT setval('lists_id_seq', $1::bigint - 1)", id)
		b.new.do("INSERT INTO lists (id, name) VALUES (sortkey.next_snowflake(9), 'after a gone list')")
		if got := b.old.one("SELECT id FROM lists WHERE name = 'after a gone list'"); got == id {
			b.Errorf("expected another old key than %s, which was that of another row", id)
		}
	}},
	{"SET CONSTRAINTS of one foreign key", func(b *board) {
		for i, s := range []*session{b.old, b.new} {
			if s == nil {
				continue
			}
			one, two := fmt.Sprint(b.id()), fmt.Sprint(b.id())
			if i == 1 {
				one, two = s.one("SELECT sortkey.next_snowflake(9)"), s.one("SELECT sortkey.next_snowflake(9)")
			}
			s.do("BEGIN")
			s.do("SET CONSTRAINTS lists_next_id_fkey DEFERRED")
			s.do("INSERT INTO lists (id, name, next_id) VALUES ($1, $2, $3)", one, "one "+one, two)
			s.do("INSERT INTO lists (id, name, next_id) VALUES ($1, $2, $3)", two, "two "+two, one)
			s.do("COMMIT")
			s.fails(foreignKeyViolation, "INSERT INTO lists (name, next_id) VALUES ($1, 77777)", "three "+one)
		}
	}},
	{"ON CONFLICT DO NOTHING of an existing row waits for the transaction that locks it", func(b *board) {
		b.old.do("INSERT INTO stars (list_id, who) VALUES (1, 'a'), (1, 'b') ON CONFLICT DO NOTHING")
		b.other.do("BEGIN")
		b.other.do("INSERT INTO stars (list_id, who) VALUES (1, 'a') ON CONFLICT DO NOTHING")
		b.other.do("SELECT star(1, 'a')")
		b.other.do("INSERT INTO lists (id, name) VALUES (2, 'x') ON CONFLICT (id) DO NOTHING")
		b.old.do("INSERT INTO stars (list_id, who) VALUES (1, 'b') ON CONFLICT DO NOTHING")
		b.old.do("INSERT INTO items (list, list_id) VALUES ('list 2', 2)") // a reference doesn't wait
		b.blocked(b.third, "INSERT INTO stars (list_id, who) VALUES (1, 'a') ON CONFLICT DO NOTHING", nil, func() { b.other.do("COMMIT") })
	}},
}

// Both keys of a list stay equal in each order of statements, and when transactions overlap.
func TestOrders(t *testing.T) {
	t.Parallel()
	for i, step := range steps[:3] {
		t.Run("after "+string(step), func(t *testing.T) {
			oneJob(t, boardTables, boardSpec(), func(t *testing.T, j *job) {
				old, fresh := j.both()
				const constraints = "SELECT conname, pg_get_constraintdef(oid), obj_description(oid, 'pg_constraint') FROM pg_constraint WHERE conrelid = 'entries'::regclass AND contype = 'u' ORDER BY 1"
				before := old.all(constraints)
				j.run(steps[:i+1]...)
				b := &board{old: old, other: j.connect(oldVersion), third: j.connect(oldVersion)}
				if step == rekey.StepValidate {
					b.new = fresh
					testValidated(t, j)
				}
				for _, c := range boardCases {
					t.Run(c.name, func(t *testing.T) {
						b.TB = t
						for _, s := range []*session{b.old, b.other, b.third, fresh} {
							s.t = t
						}
						c.run(b)
					})
				}
				old.t, fresh.t = t, t
				for _, next := range steps[1:] {
					if next == rekey.StepContract {
						// The functions of a unique index run with the search_path of the programs only.
						old.do("INSERT INTO contacts VALUES (1, 'A')")
						fresh.do("INSERT INTO contacts (list_id, name) SELECT id, 'A' FROM lists WHERE name = 'list 2'")
						// Contract and abort name objects that others have created in the schema of the views,
						// before they change anything.
						for create, object := range map[string]string{
							"TABLE rekeyed.extra (id serial PRIMARY KEY)":                     "table rekeyed.extra",
							"FUNCTION rekeyed.f() RETURNS integer LANGUAGE sql AS 'SELECT 1'": "function rekeyed.f()",
							"SEQUENCE rekeyed.s": "sequence rekeyed.s",
						} {
							j.do("CREATE " + create)
							j.fails(rekey.StepContract, rekey.ErrInconsistent, object+" is in schema rekeyed")
							j.fails(rekey.StepAbort, rekey.ErrInconsistent, object+" is in schema rekeyed")
							j.do("DROP " + object)
						}
						want(t, "a row of a view", j.one("SELECT count(*) FROM rekeyed.lists WHERE name = 'list 1'"), "1")
					}
					j.run(next)
				}
				want(t, "the constraints", old.all(constraints), before)
				for _, table := range []string{"items", "notes", "visits"} {
					const others = " r LEFT JOIN lists l ON l.id = r.list_id WHERE l.name IS DISTINCT FROM r.list AND r.list NOT IN ('list 35', 'list 36')"
					want(t, "references of "+table+" to lists of other names", old.all("SELECT r.list, r.list_id FROM "+table+others), "")
				}
				got := old.all("SELECT list, count(*), count(DISTINCT list_id), count(l.id) FROM visits LEFT JOIN lists l ON l.id = list_id WHERE list IN ('list 35', 'list 36') GROUP BY 1 ORDER BY 1")
				want(t, "references by one key to each list that doesn't exist", got, "list 35|3|1|0,list 36|2|1|0")
			})
		})
	}
}

// testValidated runs programs that work at the same time, or whose keys fit both versions.
func testValidated(t *testing.T, j *job) {
	t.Run("claims need neither shared memory for each key nor a row version for each statement", func(t *testing.T) {
		s := j.connect(oldVersion)
		for range 300 { // a page has about 200 row versions
			s.do("INSERT INTO stars (list_id, who) VALUES (1, 'same') ON CONFLICT DO NOTHING")
			s.do("DELETE FROM stars WHERE who = 'same'")
		}
		want(t, "the pages of claims", s.one("SELECT pg_relation_size('rekeyed.rekey_claims') / current_setting('block_size')::integer"), "1")
		s.do("BEGIN")
		s.do("INSERT INTO stars (list_id, who) SELECT 1, i FROM generate_series(1, 10000) i")
		want(t, "whether a few locks suffice", s.one("SELECT count(*) < 1000 FROM pg_locks WHERE pid = pg_backend_pid()"), "t")
		s.do("COMMIT")
	})
	t.Run("in place, a key that the new version chooses and that fits the old type is the old key", func(t *testing.T) {
		old, fresh := j.both()
		fresh.do("INSERT INTO counters (id, n) VALUES (500, 1)")
		old.do("INSERT INTO counters (id, n) VALUES (500, 1) ON CONFLICT (id) DO UPDATE SET n = 2")
		want(t, "the rows", fresh.all("SELECT id, n FROM counters"), "500|2")
		fresh.do("INSERT INTO counters (id, n) VALUES (100000, 1)") // doesn't fit the reference
		fresh.do("INSERT INTO parts VALUES (100000), (500)")
		want(t, "the references", old.all("SELECT counter_id FROM parts ORDER BY 1"), "2,500")
		// A changed key is that of both versions, too.
		fresh.do("DELETE FROM parts")
		fresh.do("UPDATE counters SET id = 600 WHERE id = 500")
		old.do("INSERT INTO counters (id, n) VALUES (600, 1) ON CONFLICT (id) DO NOTHING")
		fresh.do("INSERT INTO counters (id, n) VALUES (500, 1)")
		old.do("UPDATE counters SET id = 700 WHERE id = 600")
		want(t, "the keys", fresh.all("SELECT id FROM counters ORDER BY 1"), "500,700,100000")
	})
	t.Run("programs of both versions insert the same rows with ON CONFLICT", func(t *testing.T) {
		paths := [2]string{oldVersion, newVersion}
		var keys [2][]string // of lists, by version; the last one has no references
		for i, path := range paths {
			keys[i] = j.connect(path).list("SELECT id FROM lists WHERE name IN ('list 1', 'list 2', 'list 3', 'list 39') ORDER BY name")
		}
		together(t, 12, 60, func(i int) *session {
			s := j.connect(paths[i%2])
			s.do("SET timezone = '" + []string{"UTC", "Europe/Stockholm"}[i%2] + "'")
			return s
		}, func(i, n int) []string {
			statements := strings.NewReplacer("{key}", keys[i%2][n%3], "{n}", fmt.Sprint(n%3), "{unused}", keys[i%2][3]).Replace(`
				INSERT INTO stars (list_id, who) VALUES ({key}, 'me') ON CONFLICT (list_id, who) DO UPDATE SET n = stars.n + 1
				DELETE FROM stars WHERE list_id = {key}
				INSERT INTO counters (id) VALUES (1{n}) ON CONFLICT (id) DO UPDATE SET n = counters.n + 1
				DELETE FROM counters WHERE id = 1{n}
				INSERT INTO times VALUES ('2025-01-01 01:00Z', {key}) ON CONFLICT (list_id, at) DO UPDATE SET at = excluded.at
				DELETE FROM times WHERE list_id = {key}
				INSERT INTO lists (id, name) VALUES ({unused}, gen_random_uuid()) ON CONFLICT (id) DO UPDATE SET name = excluded.name
				DELETE FROM lists WHERE id = {unused}`)
			return strings.Split(strings.TrimSpace(statements), "\n")
		})
	})
	t.Run("SERIALIZABLE transactions that don't depend on each other", func(t *testing.T) {
		together(t, 4, 100, func(int) *session { return j.connect(oldVersion) }, func(int, int) []string {
			return []string{"BEGIN ISOLATION LEVEL SERIALIZABLE; INSERT INTO items (list) VALUES ('s'); INSERT INTO lists (name) VALUES (gen_random_uuid()); INSERT INTO items (list) VALUES ('s'); COMMIT"}
		})
		j.do("DELETE FROM items WHERE list = 's'")
	})
}

// together runs the statements of several programs at the same time, each a number of times, and
// fails the test if one of them fails.
func together(t *testing.T, programs, times int, connect func(i int) *session, statements func(i, n int) []string) {
	t.Helper()
	var wait sync.WaitGroup
	for i := range programs {
		s := connect(i)
		wait.Go(func() {
			for n := range times {
				for _, sql := range statements(i, n) {
					if _, err := s.rows(sql); err != nil {
						t.Errorf("program %d: %v", i, err)
						return
					}
				}
			}
		})
	}
	wait.Wait()
}

// A batch that waits for a row doesn't change what its program has written, also if the role
// of rekey can't keep triggers from firing.
func TestBackfillWaits(t *testing.T) {
	tables := boardTables + fmt.Sprintf("; INSERT INTO items (list, list_id) SELECT 'list ' || 1 + i %% 9, 1 + i %% 9 FROM generate_series(1, %d) i", pgtest.Scaled(1000, 3000))
	oneJob(t, tables, boardSpec(), func(t *testing.T, j *job) {
		role := j.db.Name + "_owner"
		j.do(strings.NewReplacer("{role}", role, "{database}", j.db.Name).Replace("CREATE ROLE {role} " + pgtest.LoginPassword + `;
			GRANT CREATE ON DATABASE {database} TO {role}; GRANT CREATE ON SCHEMA public TO {role}; GRANT USAGE ON SCHEMA sortkey TO {role};
			GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA sortkey TO {role}; GRANT SELECT ON sortkey.node_status TO {role};
			DO $$ DECLARE t name; BEGIN FOR t IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' LOOP EXECUTE format('ALTER TABLE %I OWNER TO {role}', t); END LOOP; END $$`))
		t.Cleanup(func() {
			j.do("REASSIGN OWNED BY " + role + " TO CURRENT_USER; DROP OWNED BY " + role + "; DROP ROLE " + role)
		})
		j.pool = j.db.SQL(t, pgtest.Login(role))
		j.run(rekey.StepExpand)
		var stops []func()
		for i := range 4 {
			stops = append(stops, j.connect(oldVersion).repeat(0, func(n int) []string {
				list := fmt.Sprintf("program %d, list %d", i, n)
				return []string{
					"BEGIN", "INSERT INTO lists (name) VALUES ('" + list + "')",
					fmt.Sprintf("UPDATE items SET list = '%s', list_id = currval('lists_id_seq') WHERE id %% 200 = %d", list, i+n*4%200),
					"SELECT pg_sleep(0.005)", "COMMIT",
				}
			}))
		}
		j.runWith(rekey.Options{BatchTime: 20 * time.Millisecond, Pause: 0.5}, rekey.StepBackfill)
		for _, stop := range stops {
			stop()
		}
		want(t, "references that programs didn't write", j.one("SELECT count(*) FROM items i LEFT JOIN lists l ON l.id = i.list_id AND l.name = i.list AND l.rekey_id = i.rekey_list_id WHERE l.id IS NULL"), "0")
		j.run(rekey.StepValidate, rekey.StepContract)
	})
}
