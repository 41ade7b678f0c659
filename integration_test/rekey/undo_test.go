package rekey

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/internal/pgerror"
	"github.com/sortkey/sortkey/rekey"
)

// What contract has done can be undone until cleanup, also what Inspect couldn't know.

// accounts have UUIDs, and references without foreign keys: as text, and by another name.
const accounts = `
	CREATE TABLE users (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), name text UNIQUE, created_at timestamptz NOT NULL DEFAULT now());
	CREATE TABLE refresh_tokens (token text PRIMARY KEY, user_id varchar(255), name text);
	CREATE TABLE posts (id bigserial PRIMARY KEY, author uuid, name text, unrelated uuid DEFAULT gen_random_uuid(), note text);
	INSERT INTO users (name) SELECT 'user ' || i FROM generate_series(1, 50) i;
	INSERT INTO refresh_tokens SELECT 'token ' || name, id, name FROM users;
	INSERT INTO posts (author, name, note) SELECT id, name, 'by ' || id FROM users;`

func accountsSpec() rekey.Spec {
	return rekey.Spec{Keys: []rekey.Key{{Table: "users", Format: rekey.Snowflake, Node: 1, BackfillNode: 2, Times: created}}}
}

// Values tell which columns refer to a key, whatever their names and types are.
func TestReferencesByValue(t *testing.T) {
	oneJob(t, accounts, accountsSpec(), func(t *testing.T, j *job) {
		problems := lines(j.inspect().Problems)
		want(t, "problems", strings.Count(problems, "\n"), 2)
		wantText(t, "problems", problems, "column public.refresh_tokens.user_id has keys of public.users in 50 of 50 values that were read", "column public.posts.author has keys of public.users in 50 of 50")
		j.spec.References = []rekey.Reference{{Table: "refresh_tokens", Column: "user_id", To: "users"}, {Table: "posts", Column: "author", To: "users"}}
		want(t, "problems", lines(j.inspect().Problems), "")
		old, fresh := j.both()
		insert := func(s *session, name string) {
			t.Helper()
			s.do("INSERT INTO users (name) VALUES ($1)", name)
			s.do("INSERT INTO refresh_tokens (token, user_id, name) SELECT 'token ' || name, id, name FROM users WHERE name = $1", name)
			s.do("INSERT INTO posts (author, name) SELECT id, name FROM users WHERE name = $1", name)
		}
		valid := func(s *session, n int) {
			t.Helper()
			want(t, "tokens and posts of their users", s.one("SELECT (SELECT count(*) FROM refresh_tokens t JOIN users u ON u.id::text = t.user_id::text AND u.name = t.name), (SELECT count(*) FROM posts p JOIN users u ON u.id = p.author AND u.name = p.name)"), fmt.Sprintf("%d|%[1]d", n))
		}
		j.run(rekey.StepExpand)
		insert(old, "user 51")
		for _, noKey := range []string{"", "n/a"} {
			old.fails(invalidText, "INSERT INTO refresh_tokens (token, user_id) VALUES ('no token', $1)", noKey)
		}
		j.run(rekey.StepBackfill, rekey.StepValidate)
		insert(fresh, "user 52")
		valid(old, 52)
		valid(fresh, 52)
		j.run(rekey.StepContract)
		insert(fresh, "user 53")
		valid(j.session, 53)
		j.run(rekey.StepUndo)
		insert(old, "user 54")
		valid(old, 54)
		valid(fresh, 54)
		j.run(rekey.StepContract, rekey.StepCleanup)
		valid(j.session, 54)
		want(t, "the types", j.one("SELECT string_agg(DISTINCT format_type(atttypid, atttypmod), ' ') FROM pg_attribute WHERE attrelid IN ('users'::regclass, 'refresh_tokens'::regclass, 'posts'::regclass) AND attname IN ('id', 'user_id', 'author')"), "bigint")
	})
}

// Columns of small integers, whose values prove nothing, are noted once per table. Large ones prove
// a reference.
func TestNumbers(t *testing.T) {
	const tables = `
		CREATE TABLE users (id bigint PRIMARY KEY DEFAULT 0, created_at timestamptz DEFAULT now());
		CREATE TABLE posts (id bigserial PRIMARY KEY, creator_id bigint, editor integer, count integer, words integer, "text" text);
		INSERT INTO users SELECT i FROM generate_series(1, 50) i;
		INSERT INTO posts (creator_id, editor, count, words, "text") SELECT i, i, i % 3 + 1, 100 + i, i FROM generate_series(1, 50) i;`
	oneJob(t, tables, rekey.Spec{Keys: []rekey.Key{{Table: "users", Format: rekey.Snowflake, Node: 1, BackfillNode: 2, Times: created}}}, func(t *testing.T, j *job) {
		plan := j.inspect()
		want(t, "problems", lines(plan.Problems), "")
		want(t, "notes", strings.Count(lines(plan.Notes), "\n"), 1)
		wantText(t, "notes", lines(plan.Notes), "table public.posts has numbers in the range of keys in creator_id, editor, count, text; if one")
		j.do("UPDATE users SET id = id + 10000000000; UPDATE posts SET creator_id = creator_id + 10000000000, words = NULL")
		wantText(t, "problems", lines(j.inspect().Problems), "column public.posts.creator_id has keys of public.users in 50 of 50 values")
	})
}

// Tables and views can have another owner than the role that runs rekey, and grant it privileges.
func TestOtherOwners(t *testing.T) {
	oneJob(t, films+"CREATE VIEW report AS SELECT id, title FROM films", filmsSpec(), func(t *testing.T, j *job) {
		owner, clerk := j.db.Name+"_owner", j.db.Name+"_clerk"
		j.do(strings.NewReplacer("{owner}", owner, "{clerk}", clerk, "{database}", j.db.Name).Replace(`CREATE ROLE {clerk}; CREATE ROLE {owner} IN ROLE {clerk} ` + pgtest.LoginPassword + `;
			GRANT CREATE ON DATABASE {database} TO {owner}; GRANT CREATE, USAGE ON SCHEMA public TO {owner}, {clerk}; GRANT USAGE ON SCHEMA sortkey TO {owner}, {clerk};
			GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA sortkey TO {owner}, {clerk}; GRANT SELECT ON sortkey.node_status TO {owner};
			ALTER TABLE films OWNER TO {owner}; ALTER TABLE copies OWNER TO {clerk}; ALTER TABLE shelves OWNER TO {owner}; ALTER VIEW report OWNER TO {clerk};
			GRANT SELECT, INSERT, UPDATE, DELETE ON copies TO {owner}; GRANT SELECT ON report TO {owner} WITH GRANT OPTION; GRANT SELECT ON films TO {clerk}`))
		t.Cleanup(func() {
			j.do("REASSIGN OWNED BY " + owner + ", " + clerk + " TO CURRENT_USER; DROP OWNED BY " + owner + ", " + clerk + "; DROP ROLE " + owner + ", " + clerk)
		})
		const privileges = "SELECT string_agg(c.oid::regclass || ' ' || relowner::regrole || ' ' || relacl::text, '; ' ORDER BY relname) FROM pg_class c WHERE relname IN ('copies', 'report') AND relnamespace = 'public'::regnamespace"
		before := j.one(privileges)
		j.pool = j.db.SQL(t, pgtest.Login(owner))
		j.run(steps[:4]...)
		want(t, "the privileges after contract", j.one(privileges), before)
		j.run(rekey.StepUndo)
		want(t, "the privileges after undo", j.one(privileges), before)
		j.run(rekey.StepContract, rekey.StepCleanup)
		want(t, "the privileges after cleanup", j.one(privileges), before)
	})
}

// The triggers of rekey fire in sessions of replication. If somebody disables or drops them, status,
// validate and contract say so, and backfill and validate create them again. Keys that differ since
// then stay as they are until the error's statement is run.
func TestLostTriggers(t *testing.T) {
	oneJob(t, films, filmsSpec(), func(t *testing.T, j *job) {
		j.run(steps[:3]...)
		j.do("SET session_replication_role = replica; INSERT INTO films (title) VALUES ('replicated'); RESET session_replication_role")
		want(t, "films without a new key", j.one("SELECT count(*) FROM films WHERE rekey_id IS NULL"), "0")
		want(t, "findings", len(j.status().Findings), 0)

		j.do(`ALTER TABLE copies DISABLE TRIGGER "~rekey update"; DROP TRIGGER "~rekey update" ON shelves`)
		j.do("DELETE FROM copies WHERE film_id IN (3, 20); UPDATE copies SET film_id = 20 WHERE film_id = 1 AND no = 1; UPDATE shelves SET film_id = 21 WHERE film_id = 2")
		want(t, "findings", fmt.Sprint(j.status().Findings), "[triggers of rekey on public.copies are missing or disabled, so rows can have one key alone triggers of rekey on public.shelves are missing or disabled, so rows can have one key alone]")
		j.fails(rekey.StepContract, rekey.ErrInconsistent, "triggers of rekey on public.copies are missing or disabled", "Run backfill and validate")
		j.run(rekey.StepBackfill)
		text := j.fails(rekey.StepValidate, rekey.ErrInconsistent, "1 rows of public.copies have film_id and rekey_film_id of different rows", "1 rows of public.shelves have film_id", "if film_id is right, run UPDATE ONLY public.copies SET rekey_film_id = rekeyed.new_key_0(film_id)")
		want(t, "findings", len(j.status().Findings), 0)
		want(t, "the film of the copy", j.one("SELECT film_id FROM copies WHERE film_id = 20 AND no = 1"), "20") // backfill has overwritten nothing
		// The keys stand in the error.
		for _, table := range []string{"copies", "shelves"} {
			_, line, _ := strings.Cut(text, "rows of public."+table+" have")
			_, pair, _ := strings.Cut(line, `as {"`)
			pair, _, _ = strings.Cut(pair, `"`)
			old, fresh, _ := strings.Cut(pair, " and ")
			_, remedy, _ := strings.Cut(line, "if film_id is right, run ")
			remedy, _, _ = strings.Cut(remedy, ", and if")
			j.do(strings.NewReplacer("film_id IS NOT DISTINCT FROM …", "film_id IS NOT DISTINCT FROM "+old, "rekey_film_id = …", "rekey_film_id = "+fresh).Replace(remedy))
		}
		j.run(rekey.StepValidate, rekey.StepContract)
		// After contract, too.
		j.do(`ALTER TABLE copies DISABLE TRIGGER ALL; UPDATE copies SET film_id = (SELECT id FROM films WHERE title = 'film 3') WHERE no = 1 AND film_id = (SELECT id FROM films WHERE rekey_id = 20)`)
		j.fails(rekey.StepUndo, rekey.ErrInconsistent, "1 rows of public.copies have rekey_film_id and film_id of different rows", "if film_id is right, UPDATE ONLY public.copies SET rekey_film_id = rekeyed.old_key_0(film_id)")
		j.do("UPDATE copies SET rekey_film_id = rekeyed.old_key_0(film_id) WHERE film_id = (SELECT id FROM films WHERE title = 'film 3')")
		j.do("ALTER TABLE copies ENABLE TRIGGER ALL; ALTER TABLE copies ENABLE ALWAYS TRIGGER \"~rekey update\"")
		j.run(rekey.StepUndo)
		want(t, "the film of the copies", j.one("SELECT count(*) FROM copies WHERE film_id = 3"), "1")
		j.run(rekey.StepContract, rekey.StepCleanup)
	})
}

// Validate finds references whose keys mean different rows, also if the old key means none.
// Errors of constraints name them, and advise a backfill only if rows have no new key.
func TestReferencesToOtherRows(t *testing.T) {
	const tables = `CREATE TABLE lists (id bigserial PRIMARY KEY, name text); INSERT INTO lists (name) SELECT 'list ' || i FROM generate_series(1, 10) i;
		CREATE TABLE visits (list_id bigint); INSERT INTO visits VALUES (5); CREATE TABLE notes (list_id bigint REFERENCES lists); INSERT INTO notes VALUES (1)`
	spec := rekey.Spec{Keys: []rekey.Key{{Table: "lists", Format: rekey.Sno, Node: 1, BackfillNode: 2, Times: started}}, References: []rekey.Reference{{Table: "visits", Column: "list_id", To: "lists"}}}
	oneJob(t, tables, spec, func(t *testing.T, j *job) {
		j.run(rekey.StepExpand, rekey.StepBackfill)
		j.do("ALTER TABLE notes DISABLE TRIGGER USER; UPDATE notes SET rekey_list_id = gen_random_uuid()")
		text := j.fails(rekey.StepValidate, rekey.ErrInconsistent, "1 rows of public.notes have list_id and rekey_list_id of different rows", "if list_id is right, run UPDATE ONLY public.notes", foreignKeyViolation)
		want(t, "whether the error advises a backfill", strings.Contains(text, "run backfill"), false)
		j.do("UPDATE notes SET rekey_list_id = rekeyed.new_key_0(list_id)")
		j.run(rekey.StepValidate)
		j.do("BEGIN; ALTER TABLE lists DISABLE TRIGGER USER; UPDATE lists SET id = 200 WHERE id = 5; COMMIT")
		j.fails(rekey.StepValidate, rekey.ErrInconsistent, "1 rows of public.visits have list_id and rekey_list_id of different rows")
		j.do("UPDATE ONLY visits SET list_id = rekeyed.old_key_0(rekey_list_id)")
		j.run(rekey.StepValidate, rekey.StepContract)
	})
}

// Steps name a table that was renamed, moved or dropped since expand, and go on after the remedy.
func TestMissingTables(t *testing.T) {
	oneJob(t, films, filmsSpec(), func(t *testing.T, j *job) {
		j.run(rekey.StepExpand)
		finding := func(table string, list ...rekey.Step) {
			t.Helper()
			text := "table public." + table + " doesn't exist; give it its name and its schema again, or, if it was dropped, run CREATE TABLE public." + table + " (), abort the rekey, and drop it"
			for _, step := range list {
				j.fails(step, rekey.ErrInconsistent, text)
			}
			want(t, "the first finding", j.status().Findings[0], text)
		}
		j.do("ALTER TABLE copies RENAME TO tapes")
		finding("copies", rekey.StepBackfill, rekey.StepAbort)
		j.do("ALTER TABLE tapes RENAME TO copies")
		j.run(rekey.StepBackfill)
		j.do("CREATE SCHEMA archive; ALTER TABLE films SET SCHEMA archive")
		finding("films", rekey.StepValidate)
		j.do("ALTER TABLE archive.films SET SCHEMA public")
		j.do("DROP TABLE shelves")
		finding("shelves", rekey.StepBackfill, rekey.StepValidate, rekey.StepAbort)
		j.do("CREATE TABLE shelves ()")
		j.run(rekey.StepAbort)
		want(t, "columns of rekey", j.one("SELECT count(*) FROM pg_attribute WHERE attname LIKE 'rekey%' AND NOT attisdropped"), "0")
		j.do("DROP TABLE shelves")
		j.run(steps[:3]...)
		j.session.fails(pgerror.DependentObjects, "DROP TABLE copies")
		j.run(rekey.StepContract)
		j.do("ALTER TABLE films RENAME TO movies")
		finding("films", rekey.StepUndo, rekey.StepCleanup)
		j.do("ALTER TABLE movies RENAME TO films")
		j.run(rekey.StepCleanup)
	})
}

// A repeated validate creates a view that was dropped. Abort doesn't need the functions.
func TestMissingObjects(t *testing.T) {
	oneJob(t, filmsChanged, filmsSpec(), func(t *testing.T, j *job) {
		j.run(steps[:3]...)
		j.do("DROP VIEW rekeyed.films CASCADE; DROP INDEX rekey_copies_of_film")
		j.run(rekey.StepValidate)
		want(t, "rows of the views", j.one("SELECT count(*), (SELECT count(*) FROM rekeyed.report) FROM rekeyed.films"), "20|20")
		j.run(rekey.StepContract, rekey.StepUndo)
		j.do("DROP FUNCTION rekeyed.fill_0() CASCADE; DROP FUNCTION rekeyed.new_key_0(bigint); DROP TABLE rekeyed.rekey_claims; DROP VIEW rekeyed.report")
		j.run(rekey.StepAbort)
		j.run(steps...)
	})
}

// Objects that were created since inspect, and would be lost or keep a step from its end, are named
// before the step changes anything.
func TestLateObjects(t *testing.T) {
	oneJob(t, filmsChanged, filmsSpec(), func(t *testing.T, j *job) {
		fails := func(create, drop, text string, list ...rekey.Step) {
			t.Helper()
			j.do(create)
			next := j.status().Next
			for _, step := range list {
				j.fails(step, rekey.ErrInconsistent, text)
			}
			want(t, "the next step", j.status().Next, next)
			j.do(drop)
		}
		j.run(rekey.StepExpand)
		fails("CREATE TABLE late () INHERITS (films)", "DROP TABLE late", "table public.late inherits from public.films", rekey.StepBackfill)
		j.run(rekey.StepBackfill)
		const onView = "CREATE VIEW late AS SELECT id FROM report"
		j.do(onView)
		j.fails(rekey.StepValidate, rekey.ErrInconsistent, "view public.late depends on view public.report")
		j.do("DROP VIEW late")
		j.run(rekey.StepValidate)
		j.do(onView)
		j.fails(rekey.StepContract, rekey.ErrInconsistent, "view public.late depends on view public.report")
		j.wantStatus(rekey.StepValidate, rekey.StepContract)
		j.do("DROP VIEW late")
		fails("CREATE VIEW late AS SELECT id FROM rekeyed.films", "DROP VIEW late", "view public.late depends on the views of rekey", rekey.StepAbort)
		fails("CREATE INDEX late ON films (rekey_id)", "DROP INDEX late", "depends on a column of rekey: index public.late", rekey.StepContract)
		j.run(rekey.StepContract)
		const child = "CREATE TABLE late () INHERITS (copies)"
		fails(child, "DROP TABLE late", "table public.late inherits from public.copies", rekey.StepCleanup, rekey.StepUndo)
		fails("CREATE VIEW late AS SELECT id FROM rekeyed.films", "DROP VIEW late", "view public.late depends on the views of rekey", rekey.StepCleanup)
		fails("CREATE VIEW late AS SELECT id, rekey_id FROM films", "DROP VIEW late", "depends on a column of rekey: view public.late; drop it", rekey.StepCleanup, rekey.StepUndo)
		for object, create := range map[string]string{
			"index public.late":                            "CREATE INDEX late ON films (id, title)",
			"view public.late":                             "CREATE VIEW late AS SELECT id, title FROM films",
			"statistics object public.late":                "CREATE STATISTICS late ON film_id, no FROM copies",
			"table constraint late_id_fkey on public.late": "CREATE TABLE late (id bigint REFERENCES films (id))",
			"table constraint late on public.films":        "ALTER TABLE films ADD CONSTRAINT late CHECK (id > 0)",
		} {
			j.do(create)
			j.fails(rekey.StepUndo, rekey.ErrInconsistent, "would be lost: "+object+"; drop it before undo")
			kind, _, _ := strings.Cut(object, " ")
			j.do(map[string]string{"index": "DROP INDEX late", "view": "DROP VIEW late", "statistics": "DROP STATISTICS late", "table": "DROP TABLE IF EXISTS late; ALTER TABLE films DROP CONSTRAINT IF EXISTS late"}[kind])
		}
		j.run(rekey.StepUndo, rekey.StepContract)

		// What depends on the new columns alone stays, and a sequence that doesn't belong to the key.
		j.do("CREATE INDEX late_index ON films (id, title); CREATE VIEW late_view AS SELECT id, title FROM films; CREATE STATISTICS late_statistics ON film_id, no FROM copies; " +
			"CREATE TABLE late_reference (id bigint REFERENCES films (id)); INSERT INTO late_reference SELECT id FROM films; ALTER TABLE films ADD CONSTRAINT late_check CHECK (id > 0); " +
			"CREATE TABLE other (n bigint DEFAULT nextval('films_id_seq'))")
		text := j.fails(rekey.StepCleanup, rekey.ErrInconsistent, "default value for public.other.n uses sequence public.films_id_seq, which would be dropped")
		_, remedy, _ := strings.Cut(text, "; run ")
		remedy, _, _ = strings.Cut(remedy, ", and cleanup keeps")
		j.do(remedy)
		// A child that appears later keeps its values, too.
		late := j.connect(oldVersion)
		err := j.try(t.Context(), rekey.StepCleanup, rekey.Options{Progress: func(p rekey.Progress) {
			if p.Action == "look for new objects on the columns" {
				late.do(child)
			}
		}})
		wantError(t, "cleanup", err, rekey.ErrInconsistent, "table public.late inherits from public.copies")
		j.do("DROP TABLE late")
		j.run(rekey.StepCleanup)
		want(t, "rows of the views", j.one("SELECT count(*) FROM report JOIN films USING (id) JOIN late_view USING (id) JOIN late_reference USING (id)"), "20")
		want(t, "late objects", j.one("SELECT count(to_regclass('late_index')), (SELECT count(*) FROM pg_statistic_ext WHERE stxname = 'late_statistics'), (SELECT count(*) FROM pg_constraint WHERE conname IN ('late_check', 'late_reference_id_fkey'))"), "1|1|2")
		j.do("INSERT INTO other DEFAULT VALUES")
	})
}

// A view that names columns by their position, or a WITH query like a table, would read the old key.
func TestPositionsInViews(t *testing.T) {
	for name, view := range map[string]string{
		"names of columns":          "CREATE VIEW v AS SELECT k, n FROM films f(k, n)",
		"names of columns of joins": "CREATE VIEW v AS SELECT j.k FROM (films f JOIN copies c ON c.film_id = f.id) j(k)",
		"WITH query":                "CREATE VIEW v AS WITH films AS (SELECT id FROM films) SELECT id FROM films",
	} {
		t.Run(name, func(t *testing.T) {
			oneJob(t, films+view, filmsSpec(), func(t *testing.T, j *job) {
				j.run(steps[:2]...)
				j.fails(rekey.StepValidate, rekey.ErrInconsistent, "view")
				j.run(rekey.StepAbort)
			})
		})
	}
}

// A database that is dumped in the middle of a rekey and restored as another one continues with it.
func TestRestore(t *testing.T) {
	t.Parallel()
	pgtest.OneServer(t, func(t *testing.T, db *pgtest.DB) {
		j := install(t, db, filmsChanged, filmsSpec())
		j.do("ALTER TABLE films ADD gap text; ALTER TABLE films DROP gap") // columns have other numbers afterwards
		j.run(rekey.StepExpand)
		for i, step := range steps[1:] {
			name := fmt.Sprintf("restored_%d", i)
			j.do("CREATE DATABASE " + name)
			url := j.db.URLFromContainers(j)
			_, err := pgtest.Exec(t, db.Container(), "postgres", "sh", "-c", "pg_dump '"+url+"' | psql -XAtq -v ON_ERROR_STOP=1 '"+strings.Replace(url, j.db.Name, name, 1)+"'")
			must(t, err)
			restored := *db
			restored.Name, restored.URL = name, strings.Replace(db.URL, "/"+db.Name, "/"+name, 1)
			j = &job{TB: t, db: &restored, spec: j.spec}
			j.pool, j.session = j.db.SQL(t), j.connect(oldVersion)
			j.run(step)
		}
		want(t, "rows of the view", j.one("SELECT count(*) FROM report JOIN films USING (id) JOIN copies ON film_id = films.id"), "60")
	})
}

// Only the tables that a function works on are locked together.
func TestManyTables(t *testing.T) {
	var tables strings.Builder
	spec := rekey.Spec{Keys: []rekey.Key{{Table: "t0", Format: rekey.Snowflake, Node: 1, BackfillNode: 2, Times: started}}}
	tables.WriteString("CREATE TABLE t0 (id bigserial PRIMARY KEY);")
	for i := 1; i < 120; i++ {
		fmt.Fprintf(&tables, "CREATE TABLE t%d (t0_id bigint REFERENCES t0);", i)
	}
	tables.WriteString(`CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO public.t2 (t0_id) VALUES (NEW.t0_id); DELETE FROM public.t3; DELETE FROM public.t4; RETURN NEW; END';
		CREATE TRIGGER f AFTER INSERT ON t1 FOR EACH ROW EXECUTE FUNCTION f();
		CREATE FUNCTION g() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; CREATE TRIGGER g AFTER INSERT ON t5 FOR EACH ROW EXECUTE FUNCTION g(); CREATE TRIGGER g AFTER INSERT ON t6 FOR EACH ROW EXECUTE FUNCTION g()`)
	oneJob(t, tables.String(), spec, func(t *testing.T, j *job) {
		plan := j.inspect()
		want(t, "problems", lines(plan.Problems), "")
		swaps, most := 0, 0
		for _, a := range plan.Actions {
			if a.Kind == "swap" && a.Step == rekey.StepContract {
				swaps++
			}
			for _, sql := range a.SQL {
				if lock, ok := strings.CutPrefix(sql, "LOCK TABLE "); ok {
					most = max(most, strings.Count(lock, ",")+1)
				}
			}
		}
		want(t, "the transactions of contract", swaps, 117)
		want(t, "the tables of the largest lock", most, 4)
	})
}

// In place, the default of a bigint column and its identity come back, with their sequence.
func TestUndoInPlace(t *testing.T) {
	const tables = `CREATE TABLE items (id bigserial PRIMARY KEY); INSERT INTO items SELECT FROM generate_series(1, 10);
		CREATE TABLE things (id bigint GENERATED ALWAYS AS IDENTITY (START 100 INCREMENT 5 MAXVALUE 100000) PRIMARY KEY, n integer); INSERT INTO things (n) SELECT 1 FROM generate_series(1, 10);
		GRANT USAGE ON SEQUENCE things_id_seq TO pg_monitor`
	spec := rekey.Spec{Keys: []rekey.Key{{Table: "items", Format: rekey.Snowflake, Node: 20, InPlace: true}, {Table: "things", Format: rekey.UID60, InPlace: true}}}
	oneJob(t, tables, spec, func(t *testing.T, j *job) {
		const sequence = "SELECT (SELECT identity_generation || identity_start || identity_increment || identity_maximum FROM information_schema.columns WHERE table_name = 'things' AND column_name = 'id'), (SELECT relacl::text FROM pg_class WHERE relname = 'things_id_seq')"
		before := j.one(sequence)
		j.run(rekey.StepExpand, rekey.StepContract)
		want(t, "whether both tables get IDs", j.one("WITH a AS (INSERT INTO items DEFAULT VALUES RETURNING id), b AS (INSERT INTO things (n) VALUES (1) RETURNING id) SELECT a.id > 1000000, b.id > 1000000 FROM a, b"), "t|t")
		j.run(rekey.StepUndo)
		want(t, "the identity", j.one(sequence), before)
		j.do("CREATE TABLE tickets (n bigint DEFAULT nextval('items_id_seq'))")
		want(t, "the next numbers", j.one("WITH a AS (INSERT INTO items DEFAULT VALUES RETURNING id), b AS (INSERT INTO things (n) VALUES (1) RETURNING id) SELECT a.id, b.id FROM a, b"), "11|150")
		j.run(rekey.StepContract)
		j.fails(rekey.StepCleanup, rekey.ErrInconsistent, "default value for public.tickets.n uses sequence public.items_id_seq, which would be dropped; run ALTER SEQUENCE public.items_id_seq OWNED BY NONE")
		j.do("ALTER SEQUENCE items_id_seq OWNED BY tickets.n")
		j.run(rekey.StepCleanup)
		want(t, "the next ticket", j.one("INSERT INTO tickets DEFAULT VALUES RETURNING n"), "12")
		want(t, "sequences", j.all("SELECT relname FROM pg_class WHERE relkind = 'S' AND relnamespace = 'public'::regnamespace"), "items_id_seq")
	})
}

// A column that inspect and the spec have missed can be mapped after contract, also if programs have
// written new keys to it since. Undo maps it back, and another contract maps it again.
func TestAddReference(t *testing.T) {
	const tables = accounts + `
		CREATE TABLE logs (n integer PRIMARY KEY, user_key uuid, kind text);
		INSERT INTO logs SELECT row_number() OVER (), id, 'user' FROM users; INSERT INTO logs VALUES (51, gen_random_uuid(), 'other'), (52, NULL, 'user');
		CREATE TABLE numbers (n bigserial PRIMARY KEY, number bigint, name text);
		CREATE TABLE counted (id bigserial PRIMARY KEY, name text UNIQUE); INSERT INTO counted (name) SELECT 'c' || i FROM generate_series(1, 20) i; INSERT INTO numbers (number, name) SELECT id, name FROM counted;
		CREATE TABLE rooms (id bigint GENERATED ALWAYS AS IDENTITY); CREATE TABLE parents (id bigint PRIMARY KEY); CREATE TABLE keys (post_id bigint REFERENCES posts, parent_id bigint REFERENCES parents);
		CREATE TABLE profiles (id bigint PRIMARY KEY, name text); INSERT INTO profiles SELECT id, name FROM counted`
	spec := accountsSpec()
	spec.Keys = append(spec.Keys, rekey.Key{Table: "counted", Format: rekey.Snowflake, Node: 3, BackfillNode: 4, Times: started})
	spec.NotReferences = []string{"refresh_tokens.user_id", "posts.author", "logs.user_key"}
	oneJob(t, tables, spec, func(t *testing.T, j *job) {
		add := func(table, column, to, where string) (int64, error) {
			return rekey.AddReference(t.Context(), j.pool, rekey.Reference{Table: table, Column: column, To: to, Where: where}, rekey.Options{})
		}
		valid := func(what string, n int) {
			t.Helper()
			want(t, what, j.one(`SELECT (SELECT count(*) FROM refresh_tokens t JOIN users u ON u.id::text = t.user_id AND u.name = t.name), (SELECT count(*) FROM posts p JOIN users u ON u.id::text = p.author::text AND u.name = p.name),
				(SELECT count(*) FROM numbers x JOIN counted c ON c.id = number AND c.name = x.name)`), fmt.Sprintf("%d|%[1]d|%d", n, map[int]int{50: 20, 51: 21, 0: 0}[n]))
		}
		_, err := add("posts", "author", "users", "")
		wantError(t, "before expand", err, rekey.ErrStep)
		j.run(steps[:4]...)
		valid("after contract", 0)
		j.do("INSERT INTO users (name) VALUES ('user 51'); INSERT INTO refresh_tokens SELECT 'token 51', id, name FROM users WHERE name = 'user 51'; INSERT INTO counted (name) VALUES ('c21'); INSERT INTO numbers (number, name) SELECT id, name FROM counted WHERE name = 'c21'")
		for _, c := range []struct{ table, column, to, where, want string }{
			{"nobody", "a", "users", "", "table nobody doesn't exist"},
			{"posts", "nothing", "users", "", `table public.posts has no column "nothing"`},
			{"posts", "author", "posts", "", "table posts has no key that the rekey replaces; name one of public.users, public.counted"},
			{"users", "id", "users", "", "column public.users.id changes already"},
			{"users", "created_at", "users", "", "has type timestamp with time zone"},
			{"posts", "id", "counted", "", "column public.posts.id is in the primary key of its table and has a default"},
			{"rooms", "id", "counted", "", "column public.rooms.id is an identity or a generated column"},
			{"keys", "post_id", "counted", "", "column public.keys.post_id belongs to foreign key keys_post_id_fkey of public.keys; drop it"},
			{"parents", "id", "counted", "", "column public.parents.id belongs to foreign key keys_parent_id_fkey of public.keys; drop it"},
			{"posts", "unrelated", "users", "", "50 rows of public.posts refer to no row of public.users"},
			{"logs", "user_key", "users", "kind = 'user'", "which the rows that don't meet the condition keep"},
			{"logs", "user_key", "users", "kind = 'user') OR (true", "unbalanced"},
		} {
			_, err := add(c.table, c.column, c.to, c.where)
			wantText(t, c.table+"."+c.column, fmt.Sprint(err), c.want)
		}
		for _, c := range []struct {
			table, column, to string
			rows              int64
		}{{"refresh_tokens", "user_id", "users", 50}, {"posts", "author", "users", 50}, {"numbers", "number", "counted", 20}, {"profiles", "id", "counted", 20}} {
			n, err := add(c.table, c.column, c.to, "")
			must(t, err)
			want(t, "rows of "+c.table, n, c.rows)
		}
		j.do("INSERT INTO posts (author, name) SELECT id, name FROM users WHERE name = 'user 51'")
		valid("after the references were added", 51)
		want(t, "rows of a shared primary key", j.one("SELECT count(*) FROM profiles p JOIN counted USING (id, name)"), "20")
		j.run(rekey.StepUndo)
		valid("after undo", 51)
		want(t, "the type of a reference", j.one("SELECT pg_typeof(author) FROM posts LIMIT 1"), "uuid")
		j.run(rekey.StepContract)
		valid("after another contract", 51)
		j.run(rekey.StepCleanup)
		valid("after cleanup", 51)
	})
}

// After contract, undo and abort, the dump of a database is the one before expand, in schemas of many
// kinds.
func TestDumps(t *testing.T) {
	t.Parallel()
	kinds := map[string]struct {
		tables string
		spec   rekey.Spec
	}{
		"lists with references of every kind": {boardTables, boardSpec()},
		"films with triggers and a view":      {filmsChanged + triggerOn("copies", "BEFORE INSERT", "NULL"), filmsSpec()},
		"carts with triggers":                 {carts, cartsSpec()},
		"references to several tables":        {subjects, subjectsSpec()},
		"accounts":                            {accounts, accountsSpec()},
		"integers in place":                   {"CREATE TABLE counters (id serial PRIMARY KEY, n integer); CREATE TABLE parts (counter_id integer NOT NULL REFERENCES counters ON DELETE CASCADE); INSERT INTO counters (n) SELECT i FROM generate_series(1, 50) i; INSERT INTO parts SELECT id FROM counters", rekey.Spec{Keys: []rekey.Key{{Table: "counters", Format: rekey.Snowflake, Node: 9, InPlace: true}}}},
		"bigints in place":                    {"CREATE TABLE items (id bigint GENERATED ALWAYS AS IDENTITY (START 7 INCREMENT 2) PRIMARY KEY, n integer); INSERT INTO items (n) SELECT i FROM generate_series(1, 50) i", rekey.Spec{Keys: []rekey.Key{{Table: "items", Format: rekey.Snowflake, Node: 9, InPlace: true}}}},
		"texts": {`CREATE TABLE "Teams" ("Id" text COLLATE "C" PRIMARY KEY DEFAULT 'team ' || random(), at timestamptz DEFAULT now()); CREATE TABLE "Members" ("TeamId" varchar(80) REFERENCES "Teams" ON UPDATE CASCADE DEFERRABLE, PRIMARY KEY ("TeamId"));
			INSERT INTO "Teams" SELECT 'team ' || i FROM generate_series(1, 50) i; INSERT INTO "Members" SELECT "Id" FROM "Teams"`, rekey.Spec{Keys: []rekey.Key{{Table: `"Teams"`, Format: rekey.UUID7, Times: rekey.Times{Column: "at"}}}}},
	}
	pgtest.OneServer(t, func(t *testing.T, db *pgtest.DB) {
		j := install(t, db, "", rekey.Spec{})
		for name, kind := range kinds {
			t.Run(name, func(t *testing.T) {
				j := &job{TB: t, db: db, pool: j.pool, spec: kind.spec, session: &session{t: t, conn: j.conn}}
				j.do("DROP SCHEMA public CASCADE; CREATE SCHEMA public; DELETE FROM sortkey.node_lease; DELETE FROM sortkey.node_pool; " + kind.tables)
				for _, p := range j.inspect().Problems { // references that the kind leaves open
					column := strings.TrimPrefix(p.Object, "column public.")
					j.spec.NotReferences = append(j.spec.NotReferences, column)
				}
				before := j.dump()
				j.run(steps[:4]...)
				j.run(rekey.StepUndo, rekey.StepAbort)
				j.wantDump("undo and abort", before)
				j.run(steps...)
			})
		}
	})
}

// A session that translates a key while contract exchanges the columns of its table finds the new
// names: it locks the table before it chooses them.
func TestExchangeWhileTranslating(t *testing.T) {
	const tables = `CREATE TABLE parents (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), name text); CREATE TABLE children (parent_id uuid NOT NULL);
		INSERT INTO parents (name) SELECT 'parent ' || i FROM generate_series(1, 10) i; INSERT INTO children SELECT id FROM parents`
	spec := rekey.Spec{Keys: []rekey.Key{{Table: "parents", Format: rekey.UUID7, Times: started}}, References: []rekey.Reference{{Table: "children", Column: "parent_id", To: "parents"}}}
	oneJob(t, tables, spec, func(t *testing.T, j *job) {
		plan := j.inspect()
		j.run(steps[:3]...)
		child := j.connect(oldVersion)
		child.do("INSERT INTO children SELECT id FROM parents WHERE name = 'parent 1'") // compiles the functions
		key := j.one("SELECT id FROM parents WHERE name = 'parent 2'")
		swap := j.connect(oldVersion)
		swap.do("BEGIN; LOCK TABLE parents IN ACCESS EXCLUSIVE MODE")
		done := make(chan error, 1)
		go func() {
			_, err := child.rows("INSERT INTO children VALUES ($1)", key)
			done <- err
		}()
		pgtest.Eventually(t, "the INSERT waits for the table of the key", func() error {
			if j.one("SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = 'Lock'", int64(child.conn.PgConn().PID())) != "1" {
				return fmt.Errorf("not yet")
			}
			return nil
		})
		for _, a := range plan.Actions {
			if a.Step == rekey.StepContract && a.Title == "exchange the columns of public.parents" {
				for _, sql := range a.SQL {
					swap.do(sql)
				}
			}
		}
		swap.do("COMMIT")
		must(t, <-done)
		want(t, "children of another parent by the new key than by the old one", j.one("SELECT count(*) FROM children c JOIN parents p ON p.rekey_id = c.parent_id WHERE p.id IS DISTINCT FROM c.rekey_parent_id"), "0")
		want(t, "children of the parent", j.one("SELECT count(*) FROM children WHERE parent_id = $1", key), "2")
	})
}
