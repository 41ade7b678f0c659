// Package migrations tests package migrations on real servers.
package migrations

import (
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// must is pgtest.Must.
var must = pgtest.Must

// complete is a configuration with the functions of all formats.
var complete = migrations.Config{
	SnowflakeSI: idtype.SnowflakeSILayout{BaseClock: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)},
}

// installed is a database after Up.
var installed = pgtest.NewTemplate(func(t *testing.T, db *pgtest.DB) { up(t, db, complete) })

// up makes an installation.
func up(t testing.TB, db *pgtest.DB, c migrations.Config) {
	t.Helper()
	must(t, migrations.Up(t.Context(), db.SQL(t), c))
}

func exec(t testing.TB, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%v\nin: %s", err, sql)
	}
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

// wantError expects an error that wraps a sentinel, unless that is nil, and has
// all of the parts in its text.
func wantError(t testing.TB, err, sentinel error, parts ...string) {
	t.Helper()
	if err == nil || sentinel != nil && !errors.Is(err, sentinel) {
		t.Errorf("expected an error that wraps %v, got %v", sentinel, err)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("expected an error with %q, got %v", p, err)
		}
	}
}

// fails expects a statement to fail with a code, and a message or hint that has
// all of the parts.
func fails(t testing.TB, conn *pgx.Conn, code, sql string, parts ...string) {
	t.Helper()
	_, err := conn.Exec(t.Context(), sql)
	wantSQLState(t, err, code, sql, parts...)
}

// wantSQLState is fails with the error of what was tried.
func wantSQLState(t testing.TB, err error, code, what string, parts ...string) {
	t.Helper()
	if sqlState(err) != code {
		t.Fatalf("%s: expected an error of SQLSTATE %s, got %v", what, code, err)
	}
	var pg *pgconn.PgError
	errors.As(err, &pg)
	for _, p := range parts {
		if said := pg.Message + " " + pg.Hint; !strings.Contains(said, p) {
			t.Errorf("%s: expected an error with %q, got %s", what, p, said)
		}
	}
}

// sqlState returns the code of an error, or "" if it has none.
func sqlState(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}
