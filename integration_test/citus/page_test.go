package citus

import (
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/integration_test/internal/docs"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// The SQL of the section on Citus in scaling-out.md works as the page describes.
func TestPage(t *testing.T) {
	installed(t, func(t *testing.T, c *pgtest.Cluster) {
		role := c.NewRole(t, "migrator", "")
		run := func(conn *pgx.Conn, name string) {
			t.Helper()
			for _, s := range docs.One(t, "scaling-out", name).Replace("DATABASE shop", "DATABASE "+c.Name, "ROLE migrator", "ROLE "+role).Statements() {
				_, err := conn.Exec(t.Context(), s)
				must(t, err)
			}
		}
		run(c.Conn(t), "nodes")
		run(c.Conn(t), "tables")
		for i, server := range servers(c) {
			run(server.Conn(t), "rows")
			used := func(table string) []int {
				return values[int](t, c.Conn(t), "select distinct sortkey.snowflake_node(id) from "+table+" order by 1")
			}
			want := []int{1021, 1022, 1023}[2-i:] // of the servers so far
			for _, table := range []string{"customers", "purchases"} {
				if got := used(table); !slices.Equal(got, want) {
					t.Errorf("server %d: expected IDs of nodes %v in %s, got %v", i, want, table, got)
				}
			}
		}
		// 2 customers per server, with a purchase for each customer so far.
		conn := c.Conn(t)
		if got := fmt.Sprint(values[int](t, conn, "select count(distinct id) from customers union all select count(distinct id) from purchases order by 1")); got != "[6 12]" {
			t.Errorf("got %s IDs", got)
		}
		for _, id := range values[int64](t, conn, "select id from customers") {
			if n := pgtest.Value[int](t, conn, "select count(*) from customers c join purchases p on p.customer_id = c.id where c.id = $1", id); n == 0 {
				t.Errorf("found no purchases of customer %d", id)
			}
		}
		if _, err := conn.Exec(t.Context(), "insert into customers values (-1, 'x')"); !isError(err, "23514", "customers_id_is_snowflake") {
			t.Errorf("want the CHECK to reject -1, got %v", err)
		}

		run(c.Conn(t), "tenants")
		conn = c.Conn(t)
		for _, tenant := range []int{1, 2} {
			_, err := conn.Exec(t.Context(), "insert into events (tenant_id, kind) values ($1, 'x')", tenant)
			must(t, err)
		}
		partitions := pgtest.Value[int](t, conn, "select count(*) from pg_dist_partition join pg_inherits on inhrelid = logicalrelid where inhparent = 'events'::regclass")
		if rows := pgtest.Value[int](t, conn, "select count(*) from events where id >= sortkey.snowflake_floor(now() - interval '1 hour')"); rows != 2 || partitions != 6 {
			t.Errorf("want 2 rows and 6 distributed partitions, got %d and %d", rows, partitions)
		}

		run(c.Conn(t), "lock-timeout")
		for i, worker := range c.Workers {
			if settings := pgtest.Value[string](t, worker.Conn(t), "select rolconfig::text from pg_roles where rolname = $1", role); settings != "{lock_timeout=2s}" {
				t.Errorf("worker %d has the settings %s for the role", i+1, settings)
			}
		}
	})
}
