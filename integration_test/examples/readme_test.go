package examples

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sortkey/sortkey/examples/readme"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
)

// row matches a line that a program of README.md prints.
const row = `(?m)^ord_(%s) created 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? \+0000 UTC$`

// The first program in README.md prints its two rows.
func TestFirstProgram(t *testing.T) {
	program := pgtest.Build(t, "github.com/sortkey/sortkey/examples/hello")
	t.Parallel()
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		out := run(t, program, db.URL)
		rows := regexp.MustCompile(fmt.Sprintf(row, "[0-9a-z]{26}")).FindAllStringSubmatch(out, -1)
		if len(rows) != 2 || rows[0][1] >= rows[1][1] {
			t.Fatalf("want two rows in order, got\n%s", out)
		}
		if n := pgtest.Value[int](t, db.Conn(t), "SELECT count(*) FROM orders WHERE pg_typeof(id) = 'uuid'::regtype"); n != 2 {
			t.Errorf("want two rows with a uuid, got %d", n)
		}
	})
}

// The second program in README.md prints its two rows, and pgx reads them. Ten instances that start
// at once make one installation, and each has a node number of its own.
func TestSecondProgram(t *testing.T) {
	program := pgtest.Build(t, "github.com/sortkey/sortkey/examples/snowflake")
	t.Parallel()
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, "CREATE TABLE orders (id bigint PRIMARY KEY)") // AutoMigrate of several instances can fail if it creates the table
		var starting sync.WaitGroup
		for range 10 {
			starting.Go(func() {
				cmd := exec.CommandContext(t.Context(), program)
				cmd.Env = append(os.Environ(), "DATABASE_URL="+db.URL)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
		starting.Wait()
		const written = "SELECT concat_ws(' ', count(*), count(DISTINCT sortkey.snowflake_node(id))) FROM orders"
		if got := pgtest.Value[string](t, db.Conn(t), written); got != "20 10" {
			t.Errorf("want 20 rows of 10 numbers, got %s", got)
		}
		must(t, migrations.Check(t.Context(), db.SQL(t), migrations.Config{}))

		db.Exec(t, "TRUNCATE orders")
		rows := regexp.MustCompile(fmt.Sprintf(row, `\d{18,19}`)).FindAllStringSubmatch(run(t, program, db.URL), -1)
		if len(rows) != 2 {
			t.Fatalf("want two rows, got %v", rows)
		}
		pool := db.Pool(t, pgtest.Codec)
		ids, err := readme.OrdersSince(t.Context(), pool, time.Now().Add(-time.Hour))
		if err != nil || len(ids) != 2 || ids[0].String() != rows[0][1] || ids[1].String() != rows[1][1] {
			t.Errorf("orders of the last hour: want %v, got %v, %v", rows, ids, err)
		}
		ids, err = readme.OrdersSince(t.Context(), pool, time.Now().Add(time.Hour))
		if err != nil || len(ids) != 0 {
			t.Errorf("orders of the future: want none, got %v, %v", ids, err)
		}
	})
}

// A table has a default with a reserved node number and partitions of months. An instance doesn't
// claim the number.
func TestDefaultInPartitions(t *testing.T) {
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		must(t, migrations.Up(t.Context(), db.SQL(t), migrations.Config{}))
		conn := db.Conn(t)
		db.Exec(t, `SELECT sortkey.reserve_node('snowflake', 1023, 'defaults of shop');
			CREATE TABLE payments (id sortkey.snowflake PRIMARY KEY DEFAULT sortkey.next_snowflake(1023), amount bigint NOT NULL) PARTITION BY RANGE (id);
			SELECT sortkey.manage_partitions('payments', every => '1 month', retention => '2 years', retention_action => 'drop')`)
		db.Exec(t, "CALL sortkey.maintain_partitions()")
		gen, err := readme.ClaimIDs(t.Context(), db.SQL(t))
		must(t, err)
		id, err := gen.Next()
		must(t, err)
		must(t, gen.Close())
		if _, err := gen.Next(); !errors.Is(err, idtype.ErrLeaseLost) {
			t.Errorf("ID after Close: want %v, got %v", idtype.ErrLeaseLost, err)
		}
		var number, claimed, reserved int
		must(t, conn.QueryRow(t.Context(), `SELECT sortkey.snowflake_node($1),
				(SELECT number FROM sortkey.node_lease WHERE pool = 'snowflake' AND term = 1),
				(SELECT number FROM sortkey.node_lease WHERE pool = 'snowflake' AND reserved IS NOT NULL)`, int64(id)).Scan(&number, &claimed, &reserved))
		if number != claimed || reserved != 1023 {
			t.Errorf("want an ID of number %d and number 1023 reserved, got %d and %d", claimed, number, reserved)
		}
		var partition, want string
		var created time.Time
		must(t, db.Conn(t).QueryRow(t.Context(), `INSERT INTO payments (amount) VALUES (5)
			RETURNING tableoid::regclass::text, to_char(now() AT TIME ZONE 'UTC', '"payments_p"YYYYMM'), sortkey.snowflake_time(id)`,
		).Scan(&partition, &want, &created))
		if !strings.HasPrefix(partition, want) {
			t.Errorf("partition of a payment: want %s, got %s", want, partition)
		}
		if age := time.Since(created); age.Abs() > time.Minute {
			t.Errorf("time of a payment: want now, got %s", created)
		}
	})
}
