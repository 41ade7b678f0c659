package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/internal/pgerror"
	"github.com/sortkey/sortkey/migrations"
)

// Tests of crashes, dumps and locks mostly wait.
func TestMain(m *testing.M) {
	pgtest.MainParallel(m, 4,
		TestUpAndDown, TestCheckLayouts, TestCheckInstallation, TestCheckDefaults, // package migrations
		TestCatalog, TestInsertRole, TestPlans, TestParity, TestParityDomains, TestAt, TestAtErrors, TestUUID7, TestNextUUID7, // definitions
		TestServerDefaults, TestServerNodes, TestServerSettingErrors, TestServerSequenceEnd, TestServerAdvance, TestAdvanceTraces, // generators
		TestPartitionsRetention, TestPartitionsDrain)
}

// must is pgtest.Must.
var must = pgtest.Must

// complete is a Config with the functions of all formats.
var complete = migrations.Config{
	SnowflakeSI: idtype.SnowflakeSILayout{BaseClock: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)},
}

// installed is a database after Up.
var installed = pgtest.NewTemplate(func(t *testing.T, db *pgtest.DB) { up(t, db, complete) })

// up installs sortkey.
func up(t testing.TB, db *pgtest.DB, c migrations.Config) {
	t.Helper()
	must(t, migrations.Up(t.Context(), db.SQL(t), c))
}

// migrationsOf returns the migrations of a configuration.
func migrationsOf(t testing.TB, c migrations.Config) []migrations.Migration {
	t.Helper()
	list, err := migrations.List(c)
	must(t, err)
	return list
}

// newRole creates a role and opens the database as that role.
func newRole(t testing.TB, db *pgtest.DB, prefix string) (name string, pool *sql.DB) {
	t.Helper()
	name = db.NewRole(t, prefix, pgtest.LoginPassword)
	return name, db.SQL(t, pgtest.Login(name))
}

// newDatabase creates another database on the server.
func newDatabase(t testing.TB, db *pgtest.DB, suffix, options string) *pgtest.DB {
	t.Helper()
	if !strings.Contains(options, "TEMPLATE") {
		options += " TEMPLATE template0"
	}
	other := *db
	other.Name = db.Name + "_" + suffix
	other.URL = strings.Replace(db.URL, "/"+db.Name, "/"+other.Name, 1)
	db.Exec(t, "CREATE DATABASE "+other.Name+" "+options)
	t.Cleanup(func() {
		if _, err := db.SQL(t).ExecContext(context.Background(), "DROP DATABASE "+other.Name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	return &other
}

// reserveNode returns SQL that reserves a node number of each format.
func reserveNode(schema string, node int) string {
	return fmt.Sprintf("SELECT %s.reserve_node(pool, %d, 'tests') FROM unnest('{snowflake,snowflake-si,spread64,sno}'::text[]) pool", schema, node)
}

// setNode reserves a node number of each format and sets it for later sessions.
func setNode(t testing.TB, db *pgtest.DB, schema string, node int) {
	t.Helper()
	db.Exec(t, fmt.Sprintf("%s; ALTER DATABASE %s SET %s.node = %d", reserveNode(schema, node), db.Name, schema, node))
}

func exec(t testing.TB, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%v\nin: %s", err, sql)
	}
}

// waitUntil waits until an SQL condition is true.
func waitUntil(t testing.TB, db *pgtest.DB, condition string, args ...any) {
	t.Helper()
	conn := db.Conn(t)
	pgtest.Eventually(t, condition, func() error {
		if !pgtest.Value[bool](t, conn, "SELECT "+condition, args...) {
			return errors.New("not yet")
		}
		return nil
	})
}

// explain returns the plan of a statement.
func explain(t testing.TB, conn *pgx.Conn, options, sql string) string {
	t.Helper()
	rows, err := conn.Query(t.Context(), "EXPLAIN ("+options+") "+sql)
	must(t, err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%v\nin: %s", err, sql)
	}
	return strings.Join(lines, "\n")
}

// columnOf returns the result of a query with one column.
func columnOf(t testing.TB, db *sql.DB, query string, args ...any) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query, args...)
	must(t, err)
	defer rows.Close()
	var values []string
	for rows.Next() {
		var s string
		must(t, rows.Scan(&s))
		values = append(values, s)
	}
	must(t, rows.Err())
	return values
}

// wantLines fails the test unless got and want are equal.
func wantLines(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: expected\n\t%s\ngot\n\t%s", what, strings.Join(want, "\n\t"), strings.Join(got, "\n\t"))
	}
}

// wantRows fails the test unless a query with one column returns the values.
func wantRows(t testing.TB, db *sql.DB, query string, want ...string) {
	t.Helper()
	wantLines(t, query, columnOf(t, db, query), want...)
}

// wantValue fails the test unless a query returns a value.
func wantValue[T comparable](t testing.TB, conn *pgx.Conn, query string, want T) {
	t.Helper()
	if got := pgtest.Value[T](t, conn, query); got != want {
		t.Errorf("%s: expected %v, got %v", query, want, got)
	}
}

// wantError is pgtest.Fails.
var wantError = pgtest.Fails

// fails executes a statement and fails the test unless it returns an error as
// wantSQLState expects.
func fails(t testing.TB, conn *pgx.Conn, code, sql string, parts ...string) {
	t.Helper()
	_, err := conn.Exec(t.Context(), sql)
	wantSQLState(t, err, code, sql, parts...)
}

// wantSQLState fails the test unless err has the code, and its message or hint
// contains all parts.
func wantSQLState(t testing.TB, err error, code, operation string, parts ...string) {
	t.Helper()
	if pgerror.State(err) != code {
		t.Fatalf("%s: expected an error of SQLSTATE %s, got %v", operation, code, err)
	}
	for _, p := range parts {
		if text := pgerror.Message(err) + " " + pgerror.Hint(err); !strings.Contains(text, p) {
			t.Errorf("%s: expected an error with %q, got %s", operation, p, text)
		}
	}
}
