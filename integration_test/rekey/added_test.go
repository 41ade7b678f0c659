package rekey

import (
	"fmt"
	"testing"
	"time"

	"github.com/sortkey/sortkey/rekey"
)

// The columns of AddReference have the keys that their tables have, after each step and each error.

// logs refer to users and teams, in columns of each kind.
const logs = `
	CREATE TABLE users (id serial PRIMARY KEY, name text UNIQUE); INSERT INTO users (name) SELECT 'user ' || i FROM generate_series(1, 40) i;
	CREATE TABLE teams (id bigserial PRIMARY KEY, name text UNIQUE); INSERT INTO teams (name) SELECT 'team ' || i FROM generate_series(1, 40) i;
	CREATE TABLE number_log (who integer, name text); INSERT INTO number_log SELECT id, name FROM users WHERE id <= 5;
	CREATE TABLE text_log (who text COLLATE "C", name text); INSERT INTO text_log SELECT id, name FROM users WHERE id <= 5;
	CREATE TABLE team_log (who bigint, name text); INSERT INTO team_log SELECT id, name FROM teams WHERE id <= 5;
	CREATE TABLE mixed_log (who bigint, kind text, name text); INSERT INTO mixed_log SELECT id, 'user', name FROM users WHERE id <= 5;
	INSERT INTO mixed_log SELECT id, 'team', name FROM teams WHERE id <= 5; INSERT INTO mixed_log VALUES (3, 'other', 'other 3')`

func logsSpec() rekey.Spec {
	return rekey.Spec{
		Keys: []rekey.Key{
			{Table: "users", Format: rekey.Snowflake, Node: 1, BackfillNode: 2, Times: started},
			{Table: "teams", Format: rekey.Snowflake, Node: 3, BackfillNode: 4, Times: started},
		},
		NotReferences: []string{"number_log.who", "text_log.who", "team_log.who", "mixed_log.who"},
	}
}

// add adds a reference to a job.
func (j *job) add(table, to, where string) (int64, error) {
	return rekey.AddReference(j.Context(), j.pool, rekey.Reference{Table: table, Column: "who", To: to, Where: where}, rekey.Options{})
}

// mustAdd adds a reference, and compares the row count.
func (j *job) mustAdd(table, to, where string, rows int64) {
	j.Helper()
	n, err := j.add(table, to, where)
	must(j.TB, err)
	want(j.TB, "rows of "+table, n, rows)
}

// logged fails the test unless the rows of a log have the keys of the rows that they name, and these
// are old or new keys.
func (j *job) logged(what, table, to string, rows int, fresh bool) {
	j.Helper()
	got := j.one(fmt.Sprintf("SELECT count(*), count(*) FILTER (WHERE (k.id > 1000) = $1) FROM %s l JOIN %s k ON k.id::text = l.who::text AND k.name = l.name", table, to), fresh)
	want(j.TB, what+": rows of "+table, got, fmt.Sprintf("%d|%[1]d", rows))
}

// A column is mapped once. A second call changes nothing, so undo finds the old keys.
func TestAddReferenceAgain(t *testing.T) {
	oneJob(t, logs, logsSpec(), func(t *testing.T, j *job) {
		j.run(steps[:4]...)
		for _, table := range []string{"number_log", "text_log"} {
			j.mustAdd(table, "users", "", 5)
			j.mustAdd(table, "users", "", 0)
			j.logged("after two calls", table, "users", 5, true)
			_, err := j.add(table, "teams", "")
			wantText(t, "another key", fmt.Sprint(err), "column public."+table+".who has keys of public.users already; give each of its references a condition")
			_, err = j.add(table, "users", "name = 'user 1'")
			wantText(t, "a condition", fmt.Sprint(err), "has keys of public.users already")
		}
		j.run(rekey.StepUndo)
		want(t, "the numbers", j.one("SELECT string_agg(who::text, ' ' ORDER BY who) || ' ' || pg_typeof(min(who)) FROM number_log"), "1 2 3 4 5 integer")
		want(t, "the texts", j.one("SELECT string_agg(who, ' ' ORDER BY who) FROM text_log"), "1 2 3 4 5")
	})
}

// References of a column to several tables have conditions that exclude each other. Other rows stay.
func TestAddConditions(t *testing.T) {
	oneJob(t, logs, logsSpec(), func(t *testing.T, j *job) {
		j.run(steps[:4]...)
		j.mustAdd("mixed_log", "users", "kind = 'user'", 5)
		_, err := j.add("mixed_log", "teams", "kind <> 'other'")
		wantText(t, "conditions that overlap", fmt.Sprint(err), "so that no row meets two")
		j.mustAdd("mixed_log", "teams", "kind = 'team'", 5)
		j.mustAdd("mixed_log", "users", "kind = 'user'", 0)
		check := func(what string, fresh bool) {
			t.Helper()
			j.logged(what, "mixed_log", "users", 5, fresh)
			j.logged(what, "mixed_log", "teams", 5, fresh)
			want(t, what+": the other row", j.one("SELECT who FROM mixed_log WHERE kind = 'other'"), "3")
		}
		check("after contract", true)
		j.run(rekey.StepUndo)
		check("after undo", false)
		j.run(rekey.StepContract)
		check("after another contract", true)
		j.run(rekey.StepCleanup)
		check("after cleanup", true)
	})
}

// An undo that fails changes no added reference, and contract maps them again after an undo, so that
// cleanup finds all of them mapped.
func TestAddedAndErrors(t *testing.T) {
	oneJob(t, logs, logsSpec(), func(t *testing.T, j *job) {
		j.run(steps[:4]...)
		j.mustAdd("number_log", "users", "", 5)
		j.mustAdd("text_log", "users", "", 5)
		j.mustAdd("team_log", "teams", "", 5)
		check := func(what string, users, teams bool) {
			t.Helper()
			j.logged(what, "number_log", "users", 5, users)
			j.logged(what, "text_log", "users", 5, users)
			j.logged(what, "team_log", "teams", 5, teams)
		}
		check("after contract", true, true)
		// A check fails before the first exchange.
		fails := func(step rekey.Step, change, remedy string, parts ...string) {
			t.Helper()
			before := j.status()
			j.do(change)
			j.fails(step, rekey.ErrInconsistent, parts...)
			j.do(remedy)
			j.wantStatus(before.Step, before.Next)
			check(change, step == rekey.StepUndo, step == rekey.StepUndo)
		}
		const none = "2 rows of public.number_log refer to no row of public.users, most often with the value \"777\" in who"
		fails(rekey.StepUndo, "CREATE VIEW late AS SELECT id, name FROM users", "DROP VIEW late", "view public.late")
		fails(rekey.StepUndo, "INSERT INTO number_log VALUES (777), (777)", "DELETE FROM number_log WHERE who = 777", none)
		fails(rekey.StepUndo, "ALTER TABLE text_log RENAME who TO person", "ALTER TABLE text_log RENAME person TO who", "column public.text_log.who, which add-reference has mapped, doesn't exist; give it its name again")

		// The exchange of one table fails after that of another one.
		stops := func(step rekey.Step, users, teams bool) {
			t.Helper()
			check("after "+string(step)+" has failed", users, teams)
			j.wantStatus(step, step)
			j.fails(rekey.StepCleanup, rekey.ErrStep)
			j.fails(rekey.StepAbort, rekey.ErrStep)
		}
		reader := j.connect(oldVersion)
		brief := rekey.Options{LockWait: 300 * time.Millisecond}
		reader.do("BEGIN; SELECT FROM users")
		wantError(t, "undo", j.try(t.Context(), rekey.StepUndo, brief), rekey.ErrLocked, "give the old columns of public.users their names and map public.number_log.who, public.text_log.who back")
		stops(rekey.StepUndo, true, false)
		reader.do("COMMIT; BEGIN; SELECT FROM number_log")
		wantError(t, "undo", j.try(t.Context(), rekey.StepUndo, brief), rekey.ErrLocked, "on public.number_log")
		stops(rekey.StepUndo, true, false)
		reader.do("COMMIT; CREATE VIEW late AS SELECT who FROM number_log")
		wantText(t, "undo", fmt.Sprint(j.try(t.Context(), rekey.StepUndo, brief)), "map public.number_log.who: ", "cannot alter type of a column used by a view")
		stops(rekey.StepUndo, true, false)
		reader.do("DROP VIEW late")
		j.run(rekey.StepUndo)
		check("after undo", false, false)

		fails(rekey.StepContract, "INSERT INTO number_log VALUES (777), (777)", "DELETE FROM number_log WHERE who = 777", none)
		fails(rekey.StepContract, "ALTER TABLE team_log RENAME who TO person", "ALTER TABLE team_log RENAME person TO who", "column public.team_log.who, which add-reference has mapped, doesn't exist")
		reader.do("BEGIN; SELECT FROM team_log")
		wantError(t, "contract", j.try(t.Context(), rekey.StepContract, brief), rekey.ErrLocked, "exchange the columns of public.teams and map public.team_log.who: ")
		stops(rekey.StepContract, true, false)
		wantText(t, "abort", j.fails(rekey.StepAbort, rekey.ErrStep), "the next step is contract, and undo is the way back")
		j.run(rekey.StepUndo)
		check("after undo of one exchange", false, false)
		reader.do("COMMIT")
		j.run(rekey.StepContract)
		check("after another contract", true, true)
		wantText(t, "abort", j.fails(rekey.StepAbort, rekey.ErrStep), "the next step is cleanup, and undo is the way back")
		j.run(rekey.StepCleanup)
		check("after cleanup", true, true)
	})
}

// References to rows that were deleted are mapped, in both directions, whatever their types are.
func TestAddedAndDeletedRows(t *testing.T) {
	oneJob(t, logs, logsSpec(), func(t *testing.T, j *job) {
		const values = "SELECT (SELECT string_agg(who::text, ' ' ORDER BY name) FROM number_log), (SELECT string_agg(who, ' ' ORDER BY name) FROM text_log), (SELECT string_agg(who::text, ' ' ORDER BY name) FROM team_log)"
		before := j.one(values)
		j.run(steps[:3]...)
		j.do("DELETE FROM users WHERE name = 'user 1'; DELETE FROM teams WHERE name = 'team 1'")
		j.run(rekey.StepContract)
		for _, table := range []string{"number_log", "text_log"} {
			j.mustAdd(table, "users", "", 5)
		}
		j.mustAdd("team_log", "teams", "", 5)
		j.do("DELETE FROM users WHERE name = 'user 2'; DELETE FROM teams WHERE name = 'team 2'")
		mapped := j.one(values)
		j.run(rekey.StepUndo)
		want(t, "the values after undo", j.one(values), before)
		j.do("DELETE FROM users WHERE name = 'user 3'; DELETE FROM teams WHERE name = 'team 3'")
		j.run(rekey.StepContract)
		want(t, "the values after another contract", j.one(values), mapped)
	})
}

// A deferred trigger can refuse a commit. The step repeats the transaction, and goes on with the next
// action after it, so that undo and abort know what contract has changed.
func TestCommitFails(t *testing.T) {
	const failing = `; CREATE SEQUENCE commits;
		CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql SET search_path = public AS $$ BEGIN IF nextval('commits') % 4 <> 0 THEN RAISE EXCEPTION USING ERRCODE = '40001'; END IF; RETURN NULL; END $$;
		CREATE CONSTRAINT TRIGGER refuse AFTER UPDATE ON mixed_log DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.name = 'user 1') EXECUTE FUNCTION refuse();
		ALTER TABLE mixed_log ENABLE ALWAYS TRIGGER refuse`
	oneJob(t, logs, logsSpec(), func(t *testing.T, j *job) {
		const columns = "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'public' AND table_name IN ('users', 'teams', 'mixed_log') ORDER BY 1, 2"
		before := j.all(columns)
		j.run(steps[:4]...)
		j.mustAdd("mixed_log", "users", "kind = 'user'", 5)
		j.do(failing)
		for _, c := range []struct{ step, last, next rekey.Step }{
			{rekey.StepUndo, rekey.StepValidate, rekey.StepContract},
			{rekey.StepContract, rekey.StepContract, rekey.StepCleanup},
			{rekey.StepUndo, rekey.StepValidate, rekey.StepContract},
		} {
			attempts := j.one("SELECT last_value FROM commits")
			j.runWith(rekey.Options{LockTimeout: 20 * time.Millisecond}, c.step)
			want(t, "whether commits have failed", j.one("SELECT last_value >= $1::bigint + 3 FROM commits", attempts), "t")
			j.wantStatus(c.last, c.next)
			j.logged("after "+string(c.step), "mixed_log", "users", 5, c.step == rekey.StepContract)
			want(t, "whether the keys of users and teams are new", j.one("SELECT min(u.id) > 1000, min(t.id) > 1000 FROM users u, teams t"), map[bool]string{true: "t|t", false: "f|f"}[c.step == rekey.StepContract])
		}
		j.run(rekey.StepAbort)
		want(t, "the columns after abort", j.all(columns), before)
	})
}

// Undo waits for a transaction that refers to a key, and maps its row back, also if transactions of the role
// have one snapshot by default.
func TestAddedWhileUndoWaits(t *testing.T) {
	oneJob(t, logs, logsSpec(), func(t *testing.T, j *job) {
		for _, level := range []string{"repeatable read", "serializable"} {
			j.pool = j.db.SQL(t, setting("default_transaction_isolation", level))
			j.run(steps[:4]...)
			j.mustAdd("mixed_log", "users", "kind = 'user'", 5)
			holder := j.hold("INSERT INTO mixed_log SELECT id, 'user', name FROM users WHERE name = 'user 9'")
			done := make(chan error, 1)
			go func() { done <- j.try(t.Context(), rekey.StepUndo, rekey.Options{LockTimeout: 20 * time.Second}) }()
			j.awaitWait(done, "the transaction", "relation = 'users'::regclass")
			holder.do("COMMIT")
			must(t, <-done)
			j.logged(level, "mixed_log", "users", 6, false)
			j.run(rekey.StepAbort)
			j.do("DELETE FROM mixed_log WHERE name = 'user 9'")
		}
	})
}
