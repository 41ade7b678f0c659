package migrations

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/internal/pgerror"
)

// generated returns the statement that generates an ID and returns its node number.
func (f *format) generated() string {
	return "select " + f.function("node") + "(" + f.next() + ")"
}

func settingReserve(t *testing.T, conn *pgx.Conn, f *format, nodes ...int) {
	t.Helper()
	for _, node := range nodes {
		pool, number := f.pool(node)
		exec(t, conn, "select sortkey.reserve_node($1, $2, 'test')", pool, number)
	}
}

var settingRemedy = regexp.MustCompile(`SELECT sortkey\.reserve_node\([^)]*\)`)

// If sortkey.node isn't a reserved node number, calls fail, even right after another
// session opened a window. The hint has the remedy.
func TestServerSettingErrors(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		conn, other := db.Conn(t), db.Conn(t)
		for _, f := range nodeFormats() {
			failing := func(setting, code string, parts ...string) (err error) {
				t.Helper()
				parts = append(parts, "ALTER DATABASE "+db.Name+" SET sortkey.node = N", "reconnect")
				for range 3 {
					exec(t, other, "select "+f.nextNode())
					_, err = conn.Exec(t.Context(), "select "+f.next())
					wantSQLState(t, err, code, f.name+" with "+setting, parts...)
				}
				return err
			}
			missing := []string{
				"sortkey.node is not set, so next_" + f.name + " has no node number", fmt.Sprintf("from 0 to %d", f.maxNode),
				fmt.Sprintf("SELECT sortkey.reserve_node('%s', N, 'defaults of %s')", strings.ReplaceAll(f.name, "_", "-"), db.Name),
			}
			_ = failing("no setting", "55000", missing...)
			exec(t, conn, "begin")
			exec(t, conn, "set local sortkey.node = 3")
			exec(t, conn, "commit")
			_ = failing("an empty setting", "55000", missing...)
			for _, v := range []string{
				"x", "-1", "+1", "1.0", "1e2", "0x1f", "007", " 3", "3 ", "1;", "3.x", "a.b.c", "١", "é", "NULL", "99999999999999999999", strings.Repeat("1", 200),
				"4294967299", fmt.Sprint(f.maxNode + 1),
			} {
				exec(t, conn, "select set_config('sortkey.node', $1, false)", v)
				_ = failing(v, "22023", fmt.Sprintf("sortkey.node is '%s', which is not a node number of %s (0 to %d)", v, f.name, f.maxNode))
			}
			for _, node := range []int{0, 29, f.maxNode} {
				conn = db.Conn(t) // a session keeps its number
				exec(t, conn, fmt.Sprintf("set sortkey.node = %d", node))
				pool, number := f.pool(node)
				err := failing("an unreserved number", "55000", fmt.Sprintf("sortkey.node is %d, but number %d of pool %s is not reserved", node, number, pool))
				exec(t, other, settingRemedy.FindString(pgerror.Hint(err)))
				for range 2 {
					wantValue(t, conn, f.generated(), node)
				}
			}
			exec(t, conn, "reset sortkey.node")
		}
	})
}

// If programs use pools with other names, the number must be reserved in all of them.
func TestServerSettingPools(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		conn := db.Conn(t)
		for _, pool := range []string{"orders", "users"} {
			exec(t, conn, `select sortkey.claim_node($1, 1024, (select 'snowflake: ' || layout from sortkey.layout where format = 'snowflake'),
				'{[29,29]}', 'test', 1000, 1, 2)`, pool)
		}
		exec(t, conn, "select sortkey.reserve_node('snowflake', 29, 'not the pool of a program')")
		exec(t, conn, "set sortkey.node = 29")
		for _, pool := range []string{"orders", "users"} {
			fails(t, conn, "55000", "select sortkey.next_snowflake()", "number 29 of pool "+pool+" is not reserved", "reserve_node('"+pool+"', 29,")
			exec(t, conn, "select sortkey.reserve_node($1, 29, 'test')", pool)
		}
		exec(t, conn, "select sortkey.next_snowflake()")
	})
}

// A session keeps the number of its first ID, whatever it sets, also in prepared
// statements. After DISCARD ALL, RESET ALL and a rollback of the first call it reads the
// setting again.
func TestServerSettingChanges(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		admin := db.Conn(t)
		exec(t, admin, fmt.Sprintf("alter database %s set sortkey.node = 5", db.Name))
		for _, f := range nodeFormats() {
			settingReserve(t, admin, f, 5, 9)
			plans := []string{"auto"}
			if f.name == "snowflake" || f.name == "sno" { // the other formats have the same functions as Snowflake
				plans = append(plans, "force_generic_plan", "force_custom_plan")
			}
			for _, plan := range plans {
				conn := db.Conn(t, pgtest.Mode(pgx.QueryExecModeSimpleProtocol))
				exec(t, conn, "set plan_cache_mode = "+plan)
				exec(t, conn, "prepare generate as "+f.generated())
				exec(t, conn, fmt.Sprintf(`create or replace function pg_temp.generate() returns integer language plpgsql as
					$$ declare id %s := %s; begin return %s(id); end $$`, f.column, f.next(), f.function("node")))
				for _, sql := range []string{"execute generate", "select pg_temp.generate()", f.generated()} {
					for range 2 {
						for range 7 { // the sixth execution can have a generic plan
							wantValue(t, conn, sql, 5)
						}
						exec(t, conn, "set sortkey.node = 9")
						wantValue(t, conn, sql, 5)
						exec(t, conn, "begin")
						exec(t, conn, "set local sortkey.node = 10")
						wantValue(t, conn, sql, 5)
						exec(t, conn, "commit")
						exec(t, conn, fmt.Sprintf("reset sortkey.%s_node", f.name))
						wantValue(t, conn, sql, 9)
						exec(t, conn, "reset all")
						exec(t, conn, "set sortkey.node = 10")
						fails(t, conn, "55000", sql, "is not reserved")
						exec(t, conn, "reset all")
						exec(t, conn, "set plan_cache_mode = "+plan)
						wantValue(t, conn, sql, 5)
					}
				}
			}

			// Each session has its first call in a transaction or before a reset.
			for _, statements := range [][]string{
				{"begin", f.generated(), "commit"},
				{"begin", f.generated(), "rollback"},
				{"begin", "savepoint s", f.generated(), "rollback to s", f.generated(), "commit"},
				{"begin", "savepoint s", f.generated(), "release s", f.generated(), "rollback"},
				{f.generated(), "discard all"},
				{"set sortkey.node = 9", f.generated(), "discard all"},
				{"set sortkey.node = 9", f.generated(), "reset all"},
				{"begin", "set sortkey.node = 9", f.generated(), "rollback"},
			} {
				conn := db.Conn(t, pgtest.Mode(pgx.QueryExecModeSimpleProtocol))
				for _, sql := range statements {
					exec(t, conn, sql)
				}
				for range 2 {
					wantValue(t, conn, f.generated()+" -- after "+strings.Join(statements, "; "), 5)
				}
			}

			// The first call fails, and so does its transaction.
			conn := db.Conn(t, pgtest.Mode(pgx.QueryExecModeSimpleProtocol))
			exec(t, conn, "begin")
			fails(t, conn, "22012", f.generated()+" union all select 1/(random() * 0)::int", "division by zero")
			exec(t, conn, "rollback")
			wantValue(t, conn, f.generated(), 5)
		}
	})
}

// A number that a program still holds is not reserved yet.
func TestServerSettingHeld(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		conn := db.Conn(t)
		const now = "(extract(epoch from clock_timestamp()) * 1000)::bigint"
		exec(t, conn, `select sortkey.claim_node('snowflake', 1024, (select 'snowflake: ' || layout from sortkey.layout where format = 'snowflake'), '{}', 'program secret', 60000, `+now+` - 9000, `+now+` - 8000)`)
		exec(t, conn, "select sortkey.reserve_node('snowflake', 0, 'test', while_held => true)")
		exec(t, conn, "set sortkey.node = 0")
		exec(t, conn, "create table orders (id bigint default sortkey.next_snowflake())")
		fails(t, conn, "55000", "select sortkey.next_snowflake()", "number 0 of pool snowflake is still held", "reserve_node('snowflake', 0,")
		wantValue(t, conn, "select bool_or(reserved is not null) from sortkey.node_defaults", false)
		exec(t, conn, "select sortkey.release_node('snowflake', 0, 1, 'program secret', 0)")
		exec(t, conn, "select sortkey.reserve_node('snowflake', 0, 'test')")
		exec(t, conn, "select sortkey.next_snowflake()")
	})
}

// A session that forges the setting with the checked number changes only the node
// number of its IDs.
func TestServerSettingForged(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		for _, f := range nodeFormats() {
			conn := db.Conn(t)
			exec(t, conn, "set sortkey.node = 1")
			for _, forged := range []string{"9223372036854775807", "-1", "-9223372036854775808"} {
				exec(t, conn, fmt.Sprintf("set sortkey.%s_node = '%s'", f.name, forged))
				wantValue(t, conn, fmt.Sprintf(`select count(distinct id) = 100 and bool_and(abs(extract(epoch from %s(id) - clock_timestamp())) < 60)
					from (select %s from generate_series(1, 100)) g (id)`, f.function("time"), f.next()), true)
			}
		}
	})
}
