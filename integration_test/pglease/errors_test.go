package pglease

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/pglease"
)

// each calls every method of a store and passes the error to f.
func each(t *testing.T, s *pglease.Store, p nodelease.Pool, f func(what string, err error)) {
	t.Helper()
	c := nodelease.Claim{Number: 0, Term: 1, Holder: "a"}
	_, err := s.Claim(t.Context(), p, ask("a", time.Second))
	f("Claim", err)
	_, err = s.Renew(t.Context(), p, c, ask("a", time.Second))
	f("Renew", err)
	f("Release", s.Release(t.Context(), p, c, 0))
}

// If the schema isn't installed, each call fails with ErrMisconfigured and the remedy.
func TestNotInstalled(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, db *pgtest.DB) {
		all := func(schema string, words ...string) {
			t.Helper()
			each(t, pglease.New(db.SQL(t), pglease.Config{Schema: schema}), small(1), func(what string, err error) {
				wrong(t, fmt.Errorf("%s: %w", what, err), nodelease.ErrMisconfigured, words...)
			})
		}
		const advice = "run migrations.Up"
		all("", `schema "sortkey"`, advice, "small")
		list, err := migrations.List(migrations.Config{})
		must(t, err)
		db.Exec(t, list[0].Up) // without claims
		all("", `schema "sortkey"`, advice)
		db.Exec(t, list[1].Up)
		all("elsewhere", `schema "elsewhere"`, advice)
		for _, name := range []string{"Upper", "x y", `x"`, "sortkey.", "é", "1a", "a123456789012345678901234567890123456789012345678901234567890123"} {
			all(name, "Config.Schema", fmt.Sprintf("%q", name))
		}
		// A reserved word of SQL is a valid name; the schema is just missing.
		all("select", `schema "select"`, advice)

		must(t, migrations.Up(t.Context(), db.SQL(t), migrations.Config{Schema: "other"}))
		claim(t, pglease.New(db.SQL(t), pglease.Config{Schema: "other"}), small(1), ask("a", time.Second))
	})
}

// A Citus worker has the functions, but neither the tables nor their types. Each
// error names both remedies, and Acquire fails at once.
func TestWithoutTables(t *testing.T) {
	t.Parallel()
	installed.Each(t, func(t *testing.T, db *pgtest.DB) {
		s := store(t, db)
		advised := func(what string, err error) {
			t.Helper()
			wrong(t, fmt.Errorf("%s: %w", what, err), nodelease.ErrMisconfigured, "does not exist", "run migrations.Up", "on a Citus worker, connect to the coordinator")
		}
		db.Exec(t, "DROP TABLE sortkey.node_pool, sortkey.node_lease CASCADE")
		each(t, s, small(1), advised)
		_, err := s.Claim(t.Context(), small(1), ask("a", time.Second))
		wrong(t, err, nil, `type "sortkey.node_pool" does not exist`, "42704")
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		_, err = nodelease.Acquire(ctx, s, small(1), nodelease.Options{Wait: time.Hour})
		advised("Acquire", err)
		if errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("want an error at once, got %v", err)
		}

		// An error about another table has no advice and isn't ErrMisconfigured.
		must(t, migrations.Up(t.Context(), db.SQL(t), migrations.Config{Schema: "other"}))
		db.Exec(t, `CREATE FUNCTION log_claim() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN INSERT INTO an_other.claim_log VALUES (1); RETURN NEW; END$$;
			CREATE SCHEMA an_other;
			CREATE TRIGGER log_claim AFTER UPDATE ON other.node_lease FOR EACH ROW EXECUTE FUNCTION log_claim()`)
		_, err = pglease.New(db.SQL(t), pglease.Config{Schema: "other"}).Claim(t.Context(), small(1), ask("a", time.Second))
		wrong(t, err, nil, "42P01", "claim_log")
		if strings.Contains(err.Error(), "migrations.Up") || errors.Is(err, nodelease.ErrMisconfigured) {
			t.Errorf("want no advice on another table, got %v", err)
		}
	})
}

// If the server rejects the login, Acquire fails at once.
func TestRefusedLogin(t *testing.T) {
	t.Parallel()
	installed.OneReused(t, func(t *testing.T, db *pgtest.DB) {
		for what, change := range map[string]func(*pgx.ConnConfig){
			"3D000": func(c *pgx.ConnConfig) { c.Database = "nowhere" },
			"28":    func(c *pgx.ConnConfig) { c.User, c.Password = "nobody", "wrong" },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			_, err := nodelease.Acquire(ctx, pglease.New(db.SQL(t, pgtest.Config(change)), pglease.Config{}), small(1), nodelease.Options{Wait: time.Hour})
			wrong(t, err, nodelease.ErrMisconfigured, "SQLSTATE "+what)
		}
	})
}

// A role needs only the documented privileges. With them it can't access the tables.
func TestPrivileges(t *testing.T) {
	t.Parallel()
	installed.Each(t, func(t *testing.T, db *pgtest.DB) {
		ctx, s := t.Context(), store(t, db)
		held := claim(t, s, small(3), ask("owner's OOOO", lasting))
		name := db.NewRole(t, "app", pgtest.LoginPassword)
		pool := db.SQL(t, pgtest.Login(name))
		app := pglease.New(pool, pglease.Config{})
		refused := func(what string, err error) {
			t.Helper()
			wrong(t, fmt.Errorf("%s: %w", what, err), nodelease.ErrMisconfigured, "permission denied", "GRANT USAGE ON SCHEMA sortkey", "EXECUTE", "sortkey.claim_node, sortkey.renew_node, sortkey.release_node")
		}
		each(t, app, small(3), refused)
		db.Exec(t, "GRANT USAGE ON SCHEMA sortkey TO "+name)
		each(t, app, small(3), refused)
		db.Exec(t, fmt.Sprintf(grants+"GRANT CREATE ON DATABASE %[2]s TO %[1]s", name, db.Name))
		c := claim(t, app, small(3), ask("app's AAAA", lasting))
		_, err := app.Renew(ctx, small(3), c, ask("", lasting))
		must(t, err)
		for _, statement := range []string{
			"SELECT * FROM sortkey.node_lease", "SELECT * FROM sortkey.node_pool", "SELECT * FROM sortkey.node_status", "SELECT holder FROM sortkey.node_lease",
			"UPDATE sortkey.node_lease SET mark = 0", "DELETE FROM sortkey.node_lease", "INSERT INTO sortkey.node_lease (pool, number) VALUES ('x', 1)",
			"UPDATE sortkey.node_pool SET fenced_until = '-infinity'", "DELETE FROM sortkey.node_pool", "TRUNCATE sortkey.node_lease",
			"SELECT sortkey.reserve_node('small', 2, 'x')", "SELECT sortkey.unreserve_node('small', 2)", "SELECT sortkey_internal.commit_durably()",
			"ALTER TABLE sortkey.node_lease OWNER TO CURRENT_USER", "ALTER FUNCTION sortkey.release_node SET search_path = public",
		} {
			if err := execute(ctx, pool, statement); err == nil || !strings.Contains(err.Error(), "42501") {
				t.Errorf("%s: expected SQLSTATE 42501, got %v", statement, err)
			}
		}
		// Release doesn't lower a high-water mark below the claim's After, and only the
		// holder can lower it.
		held.Holder = "owner's"
		must(t, app.Release(ctx, small(3), c, -1))
		must(t, app.Release(ctx, small(3), held, 0))
		for number, want := range map[int]int64{c.Number: c.After, held.Number: held.Until} {
			if mark := one[int64](t, db.SQL(t), "SELECT mark FROM sortkey.node_lease WHERE number = $1", number); mark != want {
				t.Errorf("expected a high-water mark of %d, got %d", want, mark)
			}
		}
	})
}

// The functions run with their owner's rights and ignore the caller's search_path.
func TestHostileCaller(t *testing.T) {
	t.Parallel()
	installed.One(t, func(t *testing.T, db *pgtest.DB) {
		session := db.Conn(t)
		exec := func(statement string) error {
			_, err := session.Exec(t.Context(), statement)
			return err
		}
		const trap = " LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'trapped'; END$$;"
		for _, statement := range []string{
			"CREATE SCHEMA evil",
			"CREATE FUNCTION evil.clock_timestamp() RETURNS timestamptz" + trap,
			"CREATE FUNCTION evil.set_config(text, text, boolean) RETURNS text" + trap,
			"CREATE FUNCTION evil.compare(timestamptz, timestamptz) RETURNS boolean" + trap,
			"CREATE OPERATOR evil.> (FUNCTION = evil.compare, LEFTARG = timestamptz, RIGHTARG = timestamptz)",
			"CREATE OPERATOR evil.<= (FUNCTION = evil.compare, LEFTARG = timestamptz, RIGHTARG = timestamptz)",
			"CREATE TEMPORARY TABLE node_lease (number integer)",
			"SET search_path = evil, pg_temp, pg_catalog",
		} {
			must(t, exec(statement))
		}
		wrong(t, exec("SELECT clock_timestamp()"), nil, "trapped")
		wrong(t, exec("SELECT now() <= now()"), nil, "trapped")
		for _, call := range []string{
			"claim_node('small', 3, 'x', '{[2,2]}', 'a', 60000, 5, 6)", "claim_node('small', 3, 'x', '{}', 'b', 60000, 5, 6)",
			"claim_node('small', 3, 'x', '{}', 'c', 60000, 5, 6)", "renew_node('small', 0, 1, 'a', 60000, 7)",
			"release_node('small', 0, 1, 'a', 7)", "reserve_node('small', 0, 'x')", "unreserve_node('small', 0)",
		} {
			must(t, exec("SELECT sortkey."+call))
		}
	})
}

// The error of a read-only server advises to connect to the primary.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	installed.One(t, func(t *testing.T, db *pgtest.DB) {
		s := store(t, db)
		claim(t, s, small(2), ask("first", time.Second))
		db.Exec(t, "ALTER DATABASE "+db.Name+" SET default_transaction_read_only = on")
		s = pglease.New(db.SQL(t), pglease.Config{})
		for _, p := range []nodelease.Pool{small(2), {Name: "new", Size: 1}} {
			each(t, s, p, func(what string, err error) {
				wrong(t, fmt.Errorf("%s: %w", what, err), nil, "25006", "connect to the primary", "target_session_attrs=read-write")
				if errors.Is(err, nodelease.ErrMisconfigured) {
					t.Errorf("want a temporary error, got %v", err)
				}
			})
		}
	})
}
