// Package examples runs what a newcomer runs first: the quickstart, and the
// code of README.md.
package examples

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"github.com/sortkey/sortkey/examples/readme"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// The rows of the table that the quickstart prints.
var (
	quickstartRows = []string{
		`customers +Sno +[2-9a-x]{16} +uuid +[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12} +20.*meta 'c'`,
		`orders +Snowflake +(\d+) +bigint +\d+ +20.*datacenter 0, worker 0`,
		`order_lines +SnowflakeSI +(\d+) +bigint +\d+ +20.*machine 0`,
		`visits +Spread64 +[0-9a-f]{16} +bigint +-?\d+ +20.*generator 0, cluster 0`,
		`events +UID60 +[A-Za-z0-9_-]{10} +bigint +\d+ +20.*sequence`,
		`Created Ada with 2 orders, 3 lines and 2 visits`,
		`10000 events of 20`,
		`the 417 of 03:00 to 04:00 UTC`,
	}
	postgresRows = []string{
		`On Postgres \d+`, `Copied 10000`,
		`Index (Only )?Scan using events_pkey on events \(actual .*rows=417`,
		`Index Cond: \(\(id >= '\d+'::bigint\) AND \(id < '\d+'::bigint\)\)`,
	}
	sqliteRows = []string{`On SQLite`, `Inserted 10000`, `SEARCH events USING .*\(id>\? AND id<\?\)`, `What needs Postgres`}
)

func TestQuickstart(t *testing.T) {
	program := filepath.Join(t.TempDir(), "quickstart")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/sortkey/sortkey/examples/quickstart")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the quickstart: %v\n%s", err, out)
	}
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		run(t, program, db.URL, append(quickstartRows, postgresRows...))
		if out := run(t, program, db.URL, nil); strings.Contains(out, "SQLite") {
			t.Errorf("a second run says:\n%s", out)
		}
		var schemas int
		if err := db.Conn(t).QueryRow(t.Context(), "select count(*) from pg_namespace where nspname like 'sortkey%'").Scan(&schemas); err != nil || schemas != 0 {
			t.Errorf("%d schemas stayed behind, %v", schemas, err)
		}
	})
	t.Run("sqlite", func(t *testing.T) { run(t, program, "", append(quickstartRows, sqliteRows...)) })
}

func run(t *testing.T, program, url string, want []string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), "DATABASE_URL="+url)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, w := range want {
		if !regexp.MustCompile(w).Match(out) {
			t.Errorf("expected a line like %q, got:\n%s", w, out)
		}
	}
	return string(out)
}

// orders makes the table of README.md's orders, and a customer.
func orders(t *testing.T, db *pgtest.DB) (*gorm.DB, idtype.Sno) {
	t.Helper()
	gormDB := db.GORM(t, nil)
	must(t, gormDB.AutoMigrate(&readme.Order{}))
	customer, err := idtype.NewSno(0)
	must(t, err)
	return gormDB, customer
}

// The code of README.md does what it says.
func TestREADME(t *testing.T) {
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		gormDB, customer := orders(t, db)
		must(t, readme.FillKeys(gormDB))
		pool, err := readme.Connect(t.Context(), db.URL)
		must(t, err)
		defer pool.Close()
		began := time.Now()
		var want []idtype.Snowflake
		for total := range int64(3) {
			order, err := readme.CreateOrder(gormDB, customer, total)
			if err != nil || order.ID.IsZero() {
				t.Fatalf("created %+v, %v", order, err)
			}
			want = append(want, order.ID)
		}
		ids, err := readme.OrdersSince(t.Context(), pool, began.Add(-time.Minute))
		if err != nil || !slices.Equal(ids, want) {
			t.Errorf("orders since the beginning: %v, %v; want %v", ids, err, want)
		}
		ids, err = readme.OrdersSince(t.Context(), pool, time.Now().Add(time.Minute))
		if err != nil || len(ids) != 0 {
			t.Errorf("orders of the future: %v, %v", ids, err)
		}

		own, err := readme.ConnectOwn(t.Context(), db.URL)
		must(t, err)
		defer own.Close()
		invoices := []readme.InvoiceID{{Snowflake: want[0]}, {Snowflake: want[1]}}
		var back []readme.InvoiceID
		// Only a type that is registered can be a slice in this mode.
		if err := own.QueryRow(t.Context(), "SELECT $1::bigint[]", pgx.QueryExecModeExec, invoices).Scan(&back); err != nil || !slices.Equal(back, invoices) {
			t.Errorf("invoices %v: %v, %v", invoices, back, err)
		}
	})
}

// The SQL of README.md does what it says, once Migrate has been called.
func TestREADMEInSQL(t *testing.T) {
	source, err := os.ReadFile("../../examples/readme/readme.sql")
	must(t, err)
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		must(t, readme.Migrate(t.Context(), db.SQL(t)))
		conn := db.Conn(t)
		// One by one, as in psql: CALL can't be in a transaction with others.
		for _, statement := range regexp.MustCompile(`;( --.*)?\n`).Split(string(source), -1) {
			if _, err := conn.Exec(t.Context(), statement); err != nil {
				t.Fatalf("%v\nin: %s", err, statement)
			}
		}
		// A process that claims its node number gets one that the default doesn't mint with.
		gormDB, customer := orders(t, db)
		claim, err := readme.ClaimKeys(t.Context(), gormDB, db.SQL(t))
		must(t, err)
		order, err := readme.CreateOrder(gormDB, customer, 5)
		must(t, err)
		must(t, claim.Close())
		if _, err := readme.CreateOrder(gormDB, customer, 6); !errors.Is(err, idtype.ErrLeaseLost) {
			t.Errorf("expected no order without a claim, got %v", err)
		}
		var number, claimed, reserved int
		must(t, conn.QueryRow(t.Context(), `SELECT (parts).datacenter << 5 | (parts).worker,
				(SELECT number FROM sortkey.node_lease WHERE pool = 'snowflake' AND term = 1),
				(SELECT number FROM sortkey.node_lease WHERE pool = 'snowflake' AND reserved IS NOT NULL)
			FROM (SELECT sortkey.snowflake_parts($1::bigint) parts) p`, int64(order.ID)).Scan(&number, &claimed, &reserved))
		if number != claimed || reserved != 31<<5|31 {
			t.Errorf("an order of number %d, with %d claimed and %d reserved", number, claimed, reserved)
		}
		var partition, due string
		var minted time.Time
		must(t, conn.QueryRow(t.Context(), `INSERT INTO payments (amount) VALUES (5)
			RETURNING tableoid::regclass::text, to_char(now() AT TIME ZONE 'UTC', '"payments_p"YYYYMM'), sortkey.snowflake_time(id)`,
		).Scan(&partition, &due, &minted))
		if !strings.HasPrefix(partition, due) {
			t.Errorf("a payment went to %s, want this month's partition, %s", partition, due)
		}
		if age := time.Since(minted); age < -time.Minute || age > time.Minute {
			t.Errorf("a payment was made at %s", minted)
		}
	})
}
