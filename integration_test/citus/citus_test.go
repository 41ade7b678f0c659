package citus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/pglease"
	"github.com/sortkey/sortkey/rekey"
)

// Tests run one after another: adding a node to a cluster writes all roles of the server, and fails
// if another session changes one.
func TestMain(m *testing.M) { pgtest.Main(m) }

// must is pgtest.Must.
var must = pgtest.Must

// installed runs f on a cluster with sortkey installed through the coordinator.
func installed(t *testing.T, f func(t *testing.T, c *pgtest.Cluster)) {
	pgtest.Citus(t, func(t *testing.T, c *pgtest.Cluster) {
		must(t, migrations.Up(t.Context(), c.SQL(t), migrations.Config{}))
		must(t, migrations.Check(t.Context(), c.SQL(t), migrations.Config{}))
		f(t, c)
	})
}

// All functions reject a connection to a worker, with advice to connect to the
// coordinator. They don't change the worker, before or after the installation.
func TestWorker(t *testing.T) {
	pgtest.Citus(t, func(t *testing.T, c *pgtest.Cluster) {
		worker := c.Workers[0]
		var config migrations.Config
		calls := map[string]func() error{
			"Up":    func() error { return migrations.Up(t.Context(), worker.SQL(t), config) },
			"Check": func() error { return migrations.Check(t.Context(), worker.SQL(t), config) },
			"Status": func() error {
				_, err := migrations.Status(t.Context(), worker.SQL(t), config)
				return err
			},
			"MaintainPartitions": func() error {
				_, err := migrations.MaintainPartitions(t.Context(), worker.SQL(t), config, migrations.PartitionOptions{})
				return err
			},
		}
		refused := func(when string) {
			before := objects(t, worker)
			for name, call := range calls {
				pgtest.Fails(t, fmt.Errorf("%s %s: %w", name, when, call()), migrations.ErrCitusWorker, "connect to the coordinator")
			}
			if after := objects(t, worker); !slices.Equal(before, after) {
				t.Errorf("%s: the worker had %q, now it has %q", when, before, after)
			}
		}
		refused("before the installation")
		must(t, migrations.Down(t.Context(), worker.SQL(t), config)) // nothing is there

		must(t, migrations.Up(t.Context(), c.SQL(t), config))
		calls["Down"] = func() error { return migrations.Down(t.Context(), worker.SQL(t), config) }
		refused("after the installation")

		store := pglease.New(worker.SQL(t), pglease.Config{})
		_, err := nodelease.Acquire(t.Context(), store, nodelease.Pool{Name: "p", Size: 1, Layout: "l"}, nodelease.Options{})
		pgtest.Fails(t, err, nodelease.ErrMisconfigured, "connect to the coordinator")
		must(t, migrations.Down(t.Context(), c.SQL(t), config))
		for i, w := range c.Workers {
			if left := objects(t, w); len(left) > 0 {
				t.Errorf("after Down, worker %d has %q", i+1, left)
			}
		}
	})
}

// objects returns the names of all objects in the schemas of the migrations.
func objects(t testing.TB, db *pgtest.DB) []string {
	t.Helper()
	return values[string](t, db.Conn(t), `
		select 'schema ' || nspname from pg_namespace where nspname in ('sortkey', 'sortkey_internal')
		union all select 'relation ' || oid::regclass from pg_class where relnamespace in (to_regnamespace('sortkey'), to_regnamespace('sortkey_internal'))
		union all select 'function ' || oid::regprocedure from pg_proc where pronamespace in (to_regnamespace('sortkey'), to_regnamespace('sortkey_internal'))
		union all select 'type ' || oid::regtype from pg_type where typnamespace in (to_regnamespace('sortkey'), to_regnamespace('sortkey_internal'))
		order by 1`)
}

// values returns the only column of a query's rows.
func values[T any](t testing.TB, conn *pgx.Conn, query string, args ...any) []T {
	t.Helper()
	rows, err := conn.Query(t.Context(), query, args...)
	must(t, err)
	list, err := pgx.CollectRows(rows, pgx.RowTo[T])
	must(t, err)
	return list
}

// Tests of small tables share a database, which takes seconds to create on three servers.
func TestLimits(t *testing.T) {
	installed(t, func(t *testing.T, c *pgtest.Cluster) {
		t.Run("domains", func(t *testing.T) { domains(t, c) })
		t.Run("colocation", func(t *testing.T) { colocation(t, c) })
		t.Run("named_CHECK", func(t *testing.T) { namedCheck(t, c) })
		t.Run("claims", func(t *testing.T) { claims(t, c) })
		t.Run("rekey", func(t *testing.T) { rekeyed(t, c) })
	})
}

// A distribution column of a domain loses rows: queries by key don't find them. If the
// test fails because it finds rows, Citus has fixed this, and the warning in
// scaling-out.md can be removed. A domain in any other column is safe.
func domains(t *testing.T, c *pgtest.Cluster) {
	c.Exec(t, `create table by_domain (id sortkey.snowflake primary key);
		select create_distributed_table('by_domain', 'id');
		insert into by_domain select sortkey.snowflake_floor('2026-11-01Z') + n from generate_series(1, 100) n;
		create table by_tenant (tenant integer, id sortkey.snowflake, primary key (tenant, id));
		select create_distributed_table('by_tenant', 'tenant');
		insert into by_tenant select 1, sortkey.snowflake_floor('2026-11-01Z') + n from generate_series(1, 100) n`)
	conn := c.Conn(t)
	found := func(table string) (n int) {
		ids := values[int64](t, conn, "select id::bigint from "+table)
		if len(ids) != 100 {
			t.Fatalf("%s has %d rows, want 100", table, len(ids))
		}
		for _, id := range ids {
			n += pgtest.Value[int](t, conn, "select count(*) from "+table+" where id = $1", id)
		}
		return n
	}
	if n := found("by_tenant"); n != 100 {
		t.Errorf("by_tenant: found %d of 100 rows", n)
	}
	if n := found("by_domain"); n > 10 {
		t.Errorf("by_domain: found %d of 100 rows: the documentation says that Citus loses nearly all", n)
	}
}

// Citus colocates two tables only if their distribution columns have the same type.
func colocation(t *testing.T, c *pgtest.Cluster) {
	c.Exec(t, `create table customers (id bigint primary key);
		select create_distributed_table('customers', 'id');
		create table orders (customer_id bigint, id sortkey.snowflake, primary key (customer_id, id));
		select create_distributed_table('orders', 'customer_id', colocate_with => 'customers');
		create table notes (customer_id sortkey.snowflake, id bigint, primary key (customer_id, id))`)
	_, err := c.Conn(t).Exec(t.Context(), "select create_distributed_table('notes', 'customer_id', colocate_with => 'customers')")
	pgtest.Fails(t, err, nil, "cannot colocate")
}

// A CHECK that casts to a domain needs a name when it is added to a distributed
// table.
func namedCheck(t *testing.T, c *pgtest.Cluster) {
	c.Exec(t, "create table payments (id bigint primary key); select create_distributed_table('payments', 'id')")
	conn := c.Conn(t)
	const check = "check (id::sortkey.snowflake is not null)"
	if _, err := conn.Exec(t.Context(), "alter table payments add "+check); err == nil {
		t.Error("Citus accepts an unnamed CHECK, but the documentation says that it doesn't")
	}
	_, err := conn.Exec(t.Context(), "alter table payments add constraint payments_id_is_snowflake "+check)
	must(t, err)
	if _, err := conn.Exec(t.Context(), "insert into payments values (-1)"); err == nil {
		t.Error("the CHECK accepts -1")
	}
}

// The lock_timeout of a session applies only on the coordinator: behind a reader on
// a worker, a statement waits forever. The lock_timeout of a role also applies on
// the workers, and so does SET LOCAL lock_timeout if Citus propagates it.
func TestLockTimeout(t *testing.T) {
	installed(t, func(t *testing.T, c *pgtest.Cluster) {
		role := c.NewRole(t, "migrator", "login")
		c.Exec(t, "grant create on schema public to "+role)
		as := pgtest.Config(func(config *pgx.ConnConfig) { config.User = role })
		owner := c.Conn(t, as)
		_, err := owner.Exec(t.Context(), "create table orders (id bigint primary key); select create_distributed_table('orders', 'id')", pgx.QueryExecModeSimpleProtocol)
		must(t, err)

		reader, err := c.Workers[0].Conn(t).Begin(t.Context())
		must(t, err)
		pgtest.Value[int](t, reader.Conn(), "select count(*) from orders")

		const change = "alter table orders add column total bigint"
		_, err = owner.Exec(t.Context(), "set lock_timeout = '50ms'")
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := owner.Exec(ctx, change)
			ended <- err
		}()
		watcher := c.Workers[0].Conn(t)
		pgtest.Eventually(t, "the change waits at the worker for ten times its lock_timeout", func() error {
			if pgtest.Value[bool](t, watcher, `select exists (select from pg_locks where not granted and waitstart < clock_timestamp() - interval '500 ms'
				and database = (select oid from pg_database where datname = current_database()))`) {
				return nil
			}
			return errors.New("nothing waits")
		})
		cancel()
		if err := <-ended; err == nil {
			t.Error("the change ended behind a reader")
		}

		// quiet waits until no earlier change holds a lock.
		quiet := func() {
			t.Helper()
			for _, node := range servers(c) {
				conn := node.Conn(t)
				pgtest.Eventually(t, "no change holds a lock or waits for one", func() error {
					if n := pgtest.Value[int](t, conn, `select count(*) from pg_locks l join pg_class c on c.oid = l.relation
						where c.relname ~ '^orders' and l.mode = 'AccessExclusiveLock' and l.database = (select oid from pg_database where datname = current_database())`); n > 0 {
						return fmt.Errorf("%d locks", n)
					}
					return nil
				})
			}
		}
		locked := func(how string, statements ...string) {
			t.Helper()
			quiet()
			conn := c.Conn(t, as)
			var err error
			for _, s := range statements {
				must(t, err)
				_, err = conn.Exec(t.Context(), s)
			}
			if pg := (*pgconn.PgError)(nil); !errors.As(err, &pg) || pg.Code != "55P03" || !strings.Contains(pg.Where, "while executing command on") {
				t.Errorf("%s: want lock_not_available of a worker, got %#v", how, err)
			}
		}
		locked("SET LOCAL", "set citus.propagate_set_commands = 'local'", "begin", "set local lock_timeout = '50ms'", change)
		c.Exec(t, fmt.Sprintf("alter role %s set lock_timeout = '50ms'", role))
		locked("ALTER ROLE", change)

		must(t, reader.Rollback(t.Context()))
		quiet()
		c.Exec(t, fmt.Sprintf("alter role %s reset lock_timeout", role))
		_, err = c.Conn(t, as).Exec(t.Context(), change)
		must(t, err)
	})
}

// Maintenance creates, drains, detaches and drops partitions of distributed tables
// as on a single server. The partitions are distributed, too.
func TestPartitions(t *testing.T) {
	installed(t, func(t *testing.T, c *pgtest.Cluster) {
		c.Exec(t, `create table events (tenant integer, id bigint, primary key (tenant, id)) partition by range (id);
			select create_distributed_table('events', 'tenant');
			select sortkey.manage_partitions('events', '1 day', 'snowflake', premake => 1, retention => '2 days', retention_action => 'drop');
			create table visits (id uuid primary key) partition by range (id);
			select create_distributed_table('visits', 'id');
			select sortkey.manage_partitions('visits', '1 day', 'sno', premake => 1, retention => '2 days', retention_action => 'detach')`)
		conn := c.Conn(t)
		maintain := func(at string, want ...string) {
			t.Helper()
			now, err := time.Parse(time.RFC3339, at)
			must(t, err)
			steps, err := migrations.MaintainPartitions(t.Context(), c.SQL(t), migrations.Config{}, migrations.PartitionOptions{At: now})
			must(t, err)
			var got []string
			for _, s := range steps {
				must(t, s.Err)
				got = append(got, s.Action+" "+strings.TrimPrefix(s.Partition, "public."))
			}
			if !slices.Equal(got, want) {
				t.Errorf("at %s: got steps %q, want %q", at, got, want)
			}
		}
		maintain("2026-11-21T10:00:00Z",
			"create events_p20261121", "create events_p20261122", "default events_default",
			"create visits_p20261121", "create visits_p20261122", "default visits_default")
		// Rows of four days. The last two have no partition yet.
		const days = "generate_series(timestamptz '2026-11-21Z', '2026-11-24Z', '1 day') day"
		c.Exec(t, "insert into events select n, sortkey.snowflake_floor(day) + n from generate_series(1, 8) n, "+days)
		c.Exec(t, "insert into visits select sortkey.sno_floor(day + n * interval '1 second') from generate_series(1, 8) n, "+days)
		maintain("2026-11-24T10:00:00Z",
			"create events_p20261125", "drain events_p20261123", "drain events_p20261124", "drop events_p20261121",
			"create visits_p20261125", "drain visits_p20261123", "drain visits_p20261124", "detach visits_p20261121")
		if n := pgtest.Value[int](t, conn, "select count(*) from events"); n != 24 {
			t.Errorf("events has %d rows, want 24 after the first day was dropped", n)
		}
		if n := pgtest.Value[int](t, conn, "select count(*) from visits_p20261121"); n != 8 {
			t.Errorf("the detached partition has %d rows, want 8", n)
		}
		if n := pgtest.Value[int](t, conn, `select count(*) from pg_inherits i where i.inhparent in ('events'::regclass, 'visits'::regclass)
			and not exists (select from pg_dist_partition d where d.logicalrelid = i.inhrelid)`); n != 0 {
			t.Errorf("%d partitions aren't distributed", n)
		}
	})
}

// Package rekey refuses distributed tables and reference tables by name.
func rekeyed(t *testing.T, c *pgtest.Cluster) {
	c.Exec(t, `create table accounts (id bigint primary key, at timestamptz); select create_distributed_table('accounts', 'id');
		create table regions (id bigint primary key, at timestamptz); select create_reference_table('regions')`)
	for _, table := range []string{"public.accounts", "public.regions"} {
		plan, err := rekey.Inspect(t.Context(), c.SQL(t), rekey.Spec{Keys: []rekey.Key{{Table: table, Format: rekey.Snowflake, Node: 100, BackfillNode: 101}}}, rekey.Options{})
		must(t, err)
		if problems := fmt.Sprint(plan.Problems); !strings.Contains(problems, "table "+table) || !strings.Contains(problems, "is a table of Citus") {
			t.Errorf("%s: want a problem, got %s", table, problems)
		}
	}
}

// Claims of node numbers work through the coordinator.
func claims(t *testing.T, c *pgtest.Cluster) {
	store := pglease.New(c.SQL(t), pglease.Config{})
	pool := nodelease.ForSnowflake(idtype.DefaultSnowflakeLayout())
	seen := map[int]bool{}
	for range 3 {
		k, err := nodelease.Acquire(t.Context(), store, pool, nodelease.Options{})
		must(t, err)
		defer k.Close()
		if seen[k.Number()] {
			t.Errorf("number %d was claimed twice", k.Number())
		}
		seen[k.Number()] = true
	}
}
