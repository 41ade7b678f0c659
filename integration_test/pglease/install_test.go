package pglease

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/pglease"
)

// Ten instances that start at once on an empty database make one installation, and each gets a
// number of its own.
func TestInstall(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{"", "keys"} {
		t.Run("schema "+schema, func(t *testing.T) {
			t.Parallel()
			pgtest.Each(t, func(t *testing.T, db *pgtest.DB) {
				var starting sync.WaitGroup
				ids := make([]*nodelease.Generator[idtype.Snowflake], 10)
				for i := range ids {
					leases := db.SQL(t)
					leases.SetMaxOpenConns(2)
					starting.Go(func() {
						var err error
						ids[i], err = nodelease.NewSnowflakeGenerator(t.Context(), pglease.New(leases, pglease.Config{Schema: schema, Install: true}), idtype.SnowflakeConfig{}, nodelease.Options{Wait: 10 * time.Minute})
						if err != nil {
							t.Errorf("instance %d: %v", i, err)
						}
					})
				}
				starting.Wait()
				if t.Failed() {
					return
				}
				held := map[int]bool{}
				for _, g := range ids {
					_, err := g.Next()
					must(t, err)
					held[g.Keeper().Number()] = true
					defer g.Close()
				}
				if len(held) != len(ids) {
					t.Errorf("want %d numbers, got %v", len(ids), held)
				}
				must(t, migrations.Check(t.Context(), db.SQL(t), migrations.Config{Schema: schema}))
			})
		})
	}
}

// On a server so slow that an installation takes longer than a claim may, the claim that started
// it fails, and a later one finds it complete.
func TestSlowInstall(t *testing.T) {
	t.Parallel()
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, `CREATE SEQUENCE public.commands; CREATE FUNCTION slow_down() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.02), nextval(''public.commands''); END';
			CREATE EVENT TRIGGER slow ON ddl_command_end EXECUTE FUNCTION slow_down()`)
		s, p := pglease.New(db.SQL(t), pglease.Config{Install: true}), nodelease.ForSnowflake(idtype.SnowflakeLayout{})
		const limit = time.Second // of a claim, which is half a TTL
		k, err := nodelease.Acquire(t.Context(), s, p, nodelease.Options{TTL: 2 * limit, Wait: 5 * time.Minute})
		must(t, err)
		must(t, k.Close())
		if n := pgtest.Value[int64](t, db.Conn(t), "SELECT last_value FROM public.commands"); time.Duration(n)*20*time.Millisecond < limit {
			t.Errorf("the installation has only %d commands, so it may have ended within one claim", n)
		}
		must(t, migrations.Check(t.Context(), db.SQL(t), migrations.Config{}))
	})
}

// A role that can't create schemas gets an error with both remedies, and nothing is installed. It
// needs no right to create anything in an installation of another role.
func TestInstallDenied(t *testing.T) {
	t.Parallel()
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		name := db.NewRole(t, "app", pgtest.LoginPassword)
		s, p := pglease.New(db.SQL(t, pgtest.Login(name)), pglease.Config{Install: true}), nodelease.ForSnowflake(idtype.SnowflakeLayout{})
		_, err := nodelease.Acquire(t.Context(), s, p, nodelease.Options{})
		wrong(t, err, nodelease.ErrMisconfigured, `install schema "sortkey"`, "permission denied for database", "run GRANT CREATE ON DATABASE", "run sortkey migrate up as the owner of the database",
			"GRANT USAGE ON SCHEMA sortkey TO "+name+"; GRANT EXECUTE ON FUNCTION sortkey.claim_node, sortkey.renew_node, sortkey.release_node TO "+name+":")
		wrong(t, migrations.Check(t.Context(), db.SQL(t), migrations.Config{}), migrations.ErrNotInstalled)

		must(t, migrations.Up(t.Context(), db.SQL(t), migrations.Config{}))
		_, err = nodelease.Acquire(t.Context(), s, p, nodelease.Options{})
		_, statements, _ := strings.Cut(err.Error(), `as the owner of schema "sortkey", run `)
		statements, _, found := strings.Cut(statements, ": "+nodelease.ErrMisconfigured.Error())
		if wrong(t, err, nodelease.ErrMisconfigured, "permission denied for schema sortkey"); !found {
			t.Fatalf("want the statements of the remedy, got %v", err)
		}
		db.Exec(t, statements)
		// A claim that couldn't be renewed, or released, fails at once.
		for _, f := range []string{"renew_node", "release_node"} {
			db.Exec(t, "REVOKE EXECUTE ON FUNCTION sortkey."+f+" FROM "+name)
			_, err := nodelease.Acquire(t.Context(), s, p, nodelease.Options{})
			wrong(t, err, nodelease.ErrMisconfigured, "this role can't execute "+f+" of schema", statements)
			db.Exec(t, statements)
		}
		k, err := nodelease.Acquire(t.Context(), s, p, nodelease.Options{})
		must(t, err)
		must(t, k.Close())
		// Types of this name don't stand in the way.
		db.Exec(t, "CREATE DOMAIN text AS varchar(3); CREATE DOMAIN int4multirange AS pg_catalog.text; ALTER ROLE "+name+" SET search_path = public, pg_catalog")
		k, err = nodelease.Acquire(t.Context(), pglease.New(db.SQL(t, pgtest.Login(name)), pglease.Config{}), p, nodelease.Options{})
		must(t, err)
		must(t, k.Close())
		db.Exec(t, "REVOKE CONNECT ON DATABASE "+db.Name+" FROM PUBLIC")
		_, err = nodelease.Acquire(t.Context(), pglease.New(db.SQL(t, pgtest.Login(name)), pglease.Config{}), p, nodelease.Options{})
		wrong(t, err, nodelease.ErrMisconfigured, "grant the role CONNECT on the database")
	})
}
