package citus

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// coordinatorNode is the node number of the coordinator. The workers have the numbers
// below it.
const coordinatorNode = 1023

// generating runs f on a cluster on which every server generates IDs, with a node number
// of its own.
func generating(t *testing.T, f func(t *testing.T, c *pgtest.Cluster)) {
	installed(t, func(t *testing.T, c *pgtest.Cluster) {
		setNodes(t, c)
		prepare(t, c)
		f(t, c)
	})
}

// setNodes reserves the node numbers, and sets them.
func setNodes(t testing.TB, c *pgtest.Cluster) {
	t.Helper()
	for i, server := range servers(c) {
		n := coordinatorNode - i
		for _, pool := range []string{"snowflake", "sno"} {
			c.Exec(t, fmt.Sprintf("select sortkey.reserve_node('%s', %d, 'server %d')", pool, n, i))
		}
		setNode(t, c, setting(t, server), n)
	}
}

// setting returns the name of a server's setting.
func setting(t testing.TB, server *pgtest.DB) string {
	t.Helper()
	group := pgtest.Value[int](t, server.Conn(t), "select groupid from pg_dist_local_group")
	if group == 0 {
		return "sortkey.node"
	}
	return fmt.Sprintf("sortkey.node_%d", group)
}

// setNode sets a node number at the coordinator. Citus copies the setting to the workers.
func setNode(t testing.TB, c *pgtest.Cluster, setting string, n int) {
	t.Helper()
	c.Exec(t, fmt.Sprintf("alter database %s set %s = %d", c.Name, setting, n))
}

// prepare calls prepare_citus_worker on all workers.
func prepare(t testing.TB, c *pgtest.Cluster) {
	t.Helper()
	if failed := pgtest.Value[int](t, c.Conn(t), "select count(*) from run_command_on_workers('select sortkey.prepare_citus_worker()') where not success"); failed > 0 {
		t.Fatalf("prepare_citus_worker failed on %d workers", failed)
	}
}

// servers returns the coordinator and the workers.
func servers(c *pgtest.Cluster) []*pgtest.DB { return append([]*pgtest.DB{c.DB}, c.Workers...) }

// Up creates the same functions, domains and sequences on the workers as on the
// coordinator, with the same privileges, and Down drops them. Later grants reach the
// workers, too.
func TestObjects(t *testing.T) {
	installed(t, func(t *testing.T, c *pgtest.Cluster) {
		role := c.NewRole(t, "app", "login")
		c.Exec(t, fmt.Sprintf("grant usage on schema sortkey to %[1]s; grant execute on function sortkey.next_snowflake() to %[1]s", role))
		const objects = `
			select 'function ' || oid::regprocedure || pg_get_functiondef(oid) || proowner::regrole || coalesce(proacl::text, '')
				from pg_proc where pronamespace::regnamespace in ('sortkey', 'sortkey_internal') and proname !~ 'partition' -- only for the coordinator
			union all select 'domain ' || t.oid::regtype || t.typbasetype::regtype || t.typowner::regrole || coalesce(t.typacl::text, '')
				|| (select coalesce(string_agg(conname || pg_get_constraintdef(oid), ' ' order by conname), '') from pg_constraint where contypid = t.oid)
				from pg_type t where t.typnamespace::regnamespace in ('sortkey', 'sortkey_internal') and t.typtype = 'd'
			union all select 'sequence ' || oid::regclass || relowner::regrole || coalesce(relacl::text, '')
				from pg_class where relnamespace = 'sortkey_internal'::regnamespace and relkind = 'S'
			union all select 'schema ' || nspname || nspowner::regrole || coalesce(nspacl::text, '')
				from pg_namespace where nspname in ('sortkey', 'sortkey_internal')
			order by 1`
		want := values[string](t, c.Conn(t), objects)
		for _, kind := range []string{"function sortkey.next_snowflake()", "function sortkey_internal.use_node", "domain sortkey.sno", "sequence sortkey_internal.sno_clock", "schema sortkey_internal"} {
			if !slices.ContainsFunc(want, func(s string) bool { return strings.HasPrefix(s, kind) }) {
				t.Errorf("the coordinator has no %s", kind)
			}
		}
		for i, worker := range c.Workers {
			got := values[string](t, worker.Conn(t), objects)
			for _, s := range want {
				if !slices.Contains(got, s) {
					t.Errorf("worker %d lacks %s", i+1, s)
				}
			}
			for _, s := range got {
				if !slices.Contains(want, s) {
					t.Errorf("only worker %d has %s", i+1, s)
				}
			}
			if pgtest.Value[bool](t, worker.Conn(t), "select obj_description('sortkey.next_snowflake()'::regprocedure) is not null") {
				t.Errorf("worker %d has comments: the documentation says that Citus doesn't copy them", i+1)
			}
		}

		setNodes(t, c)
		prepare(t, c)
		for i, server := range servers(c) {
			conn := server.Conn(t, pgtest.Config(func(config *pgx.ConnConfig) { config.User = role }))
			pgtest.Value[int64](t, conn, "select sortkey.next_snowflake()")
			for _, call := range []string{"sortkey.next_sno()", "sortkey.next_snowflake(7)", "sortkey.prepare_citus_worker()", "sortkey_internal.use_node('snowflake', 1023)"} {
				if _, err := conn.Exec(t.Context(), "select "+call); !isError(err, "42501", "permission denied") {
					t.Errorf("server %d: %s by a role without the privilege: want an error, got %v", i, call, err)
				}
			}
		}
	})
}

// isError reports whether err has a SQLSTATE and a message that contains all the texts.
func isError(err error, code string, texts ...string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == code &&
		!slices.ContainsFunc(texts, func(s string) bool { return !strings.Contains(pg.Message+"\n"+pg.Hint, s) })
}

// A worker generates IDs only with a number of its own, never with the coordinator's,
// which Citus copies to all workers. After Citus has activated a worker again, which
// resets the sequences, the worker needs prepare_citus_worker.
func TestNodes(t *testing.T) {
	installed(t, func(t *testing.T, c *pgtest.Cluster) {
		worker := c.Workers[0]
		own := setting(t, worker)
		next := func(db *pgtest.DB) (node int, err error) {
			err = db.Conn(t).QueryRow(t.Context(), "select sortkey.snowflake_node(sortkey.next_snowflake())").Scan(&node)
			return node, err
		}
		wrong := func(when, code string, texts ...string) {
			t.Helper()
			if n, err := next(worker); !isError(err, code, texts...) {
				t.Errorf("%s: want an error with %q, got %d, %v", when, texts, n, err)
			}
		}
		right := func(when string) {
			t.Helper()
			for i, server := range servers(c) {
				if n, err := next(server); err != nil || n != coordinatorNode-i {
					t.Errorf("%s: server %d: want an ID of node %d, got %d, %v", when, i, coordinatorNode-i, n, err)
				}
			}
		}

		limited := []string{"_clock ends at ", "prepare_citus_worker"}
		if _, err := worker.Conn(t).Exec(t.Context(), "select sortkey.next_uid60()"); !isError(err, "55000", limited...) {
			t.Errorf("next_uid60 before prepare_citus_worker: want an error, got %v", err)
		}
		prepare(t, c)
		wrong("without a number", "55000", own+" is not set", "reserve_node", "SET "+own+" = N at the coordinator")
		setNode(t, c, "sortkey.node", coordinatorNode)
		if copied := pgtest.Value[string](t, worker.Conn(t), "show sortkey.node"); copied != fmt.Sprint(coordinatorNode) {
			t.Errorf("the worker has the setting %s: the documentation says that Citus copies it", copied)
		}
		wrong("with the coordinator's number", "55000", own+" is not set")
		setNode(t, c, own, 1024)
		wrong("with a number out of range", "22023", "(0 to 1023)")
		setNode(t, c, own, coordinatorNode)
		wrong("with the same number as the coordinator", "22023", own+" and sortkey.node are both 1023")
		setNodes(t, c)
		setNode(t, c, own, coordinatorNode-2)
		wrong("with the same number as another worker", "22023", " are both 1021")
		setNodes(t, c)
		right("after the settings")

		last := pgtest.Value[int64](t, worker.Conn(t), "select max(sortkey.next_snowflake()) from generate_series(1, 20000)")
		c.Exec(t, fmt.Sprintf("select citus_activate_node(nodename, nodeport) from pg_dist_node where groupid = %s", strings.TrimPrefix(own, "sortkey.node_")))
		wrong("after an activation", "55000", limited...)
		// A session that has failed doesn't hold the lock of the clock.
		conn := worker.Conn(t)
		for _, call := range []string{"next_snowflake()", "next_snowflake(7)", "next_uid60()", "next_spread64(7)"} {
			var err error
			for range 40 { // more than the sequence has values
				_, err = conn.Exec(t.Context(), "select sortkey."+call)
			}
			if err == nil {
				t.Errorf("%s after an activation: want an error", call)
			}
		}
		prepare(t, c)
		if id := pgtest.Value[int64](t, worker.Conn(t), "select sortkey.next_snowflake()"); id <= last {
			t.Errorf("after an activation, got ID %d, want one after %d", id, last)
		}
		right("after an activation")

		if _, err := c.Conn(t).Exec(t.Context(), "select sortkey.prepare_citus_worker()"); !isError(err, "55000", "not a worker", "run_command_on_workers") {
			t.Errorf("prepare_citus_worker at the coordinator: want an error, got %v", err)
		}

		// A client of a worker can set sortkey.node to anything.
		for _, node := range []string{"'no number'", "5", "''"} {
			_, err := conn.Exec(t.Context(), "set sortkey.node = "+node)
			must(t, err)
			if n := pgtest.Value[int](t, conn, "select sortkey.snowflake_node(sortkey.next_snowflake())"); n != coordinatorNode-1 {
				t.Errorf("with sortkey.node = %s, got an ID of node %d, want %d", node, n, coordinatorNode-1)
			}
		}
	})
}

// Tables of each kind, with defaults that generate IDs.
var defaultTables = []string{"orders", "letters", "lines", "rates", "branch.visits"}

const createDefaultTables = `
	set citus.enable_schema_based_sharding = on;
	create schema branch;
	create table branch.visits (id bigint primary key default sortkey.next_snowflake(), tenant integer, n integer);
	reset citus.enable_schema_based_sharding;
	set citus.shard_count = 8;
	create table orders (id bigint primary key default sortkey.next_snowflake(), tenant integer, n integer);
	select create_distributed_table('orders', 'id');
	create table letters (id uuid primary key default sortkey.next_sno(), tenant integer, n integer);
	select create_distributed_table('letters', 'id');
	create table lines (tenant integer, id bigint default sortkey.next_snowflake(), n integer, primary key (tenant, id));
	select create_distributed_table('lines', 'tenant');
	create table rates (id bigint primary key default sortkey.next_snowflake(), tenant integer, n integer);
	select create_reference_table('rates');
	create table source (tenant integer, n integer);
	select create_distributed_table('source', 'tenant');
	insert into source select n, n from generate_series(1, 100) n`

// Defaults generate IDs in statements of all forms, through the coordinator and at the
// workers, at the same time. No ID repeats.
func TestDefaults(t *testing.T) {
	generating(t, func(t *testing.T, c *pgtest.Cluster) {
		c.Exec(t, createDefaultTables)
		const perServer = 1 + 3 + 100 + 100 + 200 + 300
		write := func(conn *pgx.Conn, table string) error {
			insert := "insert into " + table + " (tenant, n) "
			for _, rows := range []string{
				"values (1, 1)",
				"values (1, 1), (2, 2), (3, 3)",
				"select n, n from generate_series(1, 100) n",
				"select tenant, n from source",
			} {
				if _, err := conn.Exec(t.Context(), insert+rows); err != nil {
					return fmt.Errorf("%s %s: %w", table, rows, err)
				}
			}
			_, err := conn.CopyFrom(t.Context(), strings.Split(table, "."), []string{"tenant", "n"},
				pgx.CopyFromSlice(200, func(i int) ([]any, error) { return []any{i, i}, nil }))
			if err != nil {
				return fmt.Errorf("%s: copy: %w", table, err)
			}
			batch := &pgx.Batch{}
			batch.Queue("begin")
			for i := range 300 {
				batch.Queue(insert+"values ($1, $1)", i)
			}
			batch.Queue("commit")
			if err := conn.SendBatch(t.Context(), batch).Close(); err != nil {
				return fmt.Errorf("%s: transaction: %w", table, err)
			}
			return nil
		}
		var wg sync.WaitGroup
		for i, server := range servers(c) {
			conn := server.Conn(t)
			wg.Go(func() {
				for _, table := range defaultTables {
					if err := write(conn, table); err != nil {
						t.Errorf("server %d: %v", i, err)
					}
				}
			})
		}
		wg.Wait()

		conn := c.Conn(t)
		count := func(what, ids string, rows int) {
			t.Helper()
			var all, distinct int
			must(t, conn.QueryRow(t.Context(), "select count(id), count(distinct id) from ("+ids+") i").Scan(&all, &distinct))
			if all != rows || distinct != rows {
				t.Errorf("%s: got %d IDs, %d of them distinct, want %d", what, all, distinct, rows)
			}
		}
		var bigints []string
		for _, table := range defaultTables {
			ids := "select id from " + table
			count(table, ids, 3*perServer)
			format := "snowflake"
			if table == "letters" {
				format = "sno"
			} else {
				bigints = append(bigints, ids)
			}
			nodes := values[int](t, conn, "select distinct sortkey."+format+"_node(id) from "+table+" order by 1")
			if want := []int{1021, 1022, 1023}; !slices.Equal(nodes, want) {
				t.Errorf("%s: got IDs of nodes %v, want %v", table, nodes, want)
			}
		}
		count("all Snowflakes", strings.Join(bigints, " union all "), len(bigints)*3*perServer)
	})
}

// The clock of the defaults starts no subtransaction. Citus would send a SAVEPOINT to
// the workers, which fails during a COPY.
func TestSavepoint(t *testing.T) {
	generating(t, func(t *testing.T, c *pgtest.Cluster) {
		c.Exec(t, createDefaultTables)
		var sent []string
		conn := c.Conn(t, pgtest.Config(func(config *pgx.ConnConfig) {
			config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { sent = append(sent, n.Message) }
		}))
		exec := func(statement string) {
			t.Helper()
			_, err := conn.Exec(t.Context(), statement)
			must(t, err)
		}
		// issued returns the number of commands to the workers that contain a text.
		issued := func(text string) (n int) {
			for _, s := range sent {
				if strings.HasPrefix(s, "issuing ") && strings.Contains(strings.ToUpper(s), text) {
					n++
				}
			}
			return n
		}
		window := func() int64 {
			return pgtest.Value[int64](t, conn, "select last_value >> 24 from sortkey_internal.snowflake_clock")
		}
		exec("set citus.log_remote_commands = on")
		exec("begin")
		exec("insert into orders (n) values (1)")
		before := window()
		for range 10 {
			exec("insert into orders (n) values (1), (2), (3)")
			exec("select pg_sleep(0.015)") // longer than a window
		}
		_, err := conn.CopyFrom(t.Context(), pgx.Identifier{"orders"}, []string{"n"},
			pgx.CopyFromSlice(20000, func(i int) ([]any, error) { return []any{i}, nil }))
		must(t, err)
		exec("insert into orders (n) select n from source")
		if window() == before {
			t.Error("the clock did not advance")
		}
		if issued("INSERT") == 0 || issued("COPY") == 0 {
			t.Errorf("want the commands to the workers in the notices, got %.1000q", sent)
		}
		if n := issued("SAVEPOINT"); n > 0 {
			t.Errorf("Citus sent %d savepoints", n)
		}
		// Prove that the notices would show one.
		exec("savepoint s")
		exec("insert into orders (n) values (1)")
		if issued("SAVEPOINT") == 0 {
			t.Error("the notices don't show a SAVEPOINT")
		}
		exec("commit")
	})
}
