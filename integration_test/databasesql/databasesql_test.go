package databasesql

import (
	"database/sql"
	"math"
	"testing"

	"github.com/jackc/pgx/v5"
	_ "github.com/lib/pq"
	_ "modernc.org/sqlite"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m, TestPgx, TestPq, TestSQLite, TestArrays) }

// filled has the tables of all tests, which share its copies.
var filled = pgtest.NewTemplate(func(t *testing.T, db *pgtest.DB) {
	db.Exec(t, idtest.CreateTable()+"; "+arrayDDL)
})

// options are for connections without and with the codec.
var options = map[string]pgtest.Option{"plain": pgtest.Config(func(*pgx.ConnConfig) {}), "codec": pgtest.Codec}

// The pgx driver returns the same values with and without the codec, in all exec modes.
func TestPgx(t *testing.T) {
	for name, option := range options {
		t.Run(name, func(t *testing.T) {
			eachMode(t, func(t *testing.T, mode pgx.QueryExecMode) {
				t.Parallel()
				// A database per mode, since the test searches its table by value.
				filled.OneReused(t, func(t *testing.T, db *pgtest.DB) {
					check(t, db.SQL(t, option, pgtest.Mode(mode)), idtest.Postgres)
				})
			})
		})
	}
}

// eachMode runs f in each query exec mode, and with -short in those that differ most: with
// the types of parameters and without.
func eachMode(t *testing.T, f func(t *testing.T, mode pgx.QueryExecMode)) {
	t.Helper()
	pgtest.EachMode(t, func(t *testing.T, mode pgx.QueryExecMode) {
		if mode != pgx.QueryExecModeCacheStatement && mode != pgx.QueryExecModeSimpleProtocol {
			pgtest.ThoroughOnly(t)
		}
		f(t, mode)
	})
}

func TestPq(t *testing.T) {
	t.Parallel()
	filled.EachReused(t, func(t *testing.T, db *pgtest.DB) {
		check(t, open(t, "postgres", db.URL), idtest.Postgres)
	})
}

func TestSQLite(t *testing.T) {
	t.Parallel()
	check(t, openSQLite(t, idtest.CreateTable()), idtest.SQLite)
}

// In a column declared uuid, SQLite converts text that looks like a number, so Snos
// stored as their 16 digits can collide. In the form that Value returns they don't.
func TestSQLiteNumericAffinity(t *testing.T) {
	db := openSQLite(t, "create table t (id uuid primary key)")
	a, b := idtype.MustParseSno("22222222e2222222"), idtype.MustParseSno("33333333e3333333")

	var number float64
	if err := db.QueryRow("insert into t values ($1) returning id", a.String()).Scan(&number); err != nil || !math.IsInf(number, 1) {
		t.Errorf("%s: stored %v, %v, want an infinite number", a, number, err)
	}
	if _, err := db.Exec("insert into t values ($1)", b.String()); err == nil {
		t.Errorf("inserted %s and %s as text, expected a collision", a, b)
	}

	_, err := db.Exec("delete from t")
	pgtest.Must(t, err)
	for _, id := range []idtype.Sno{a, b} {
		var got idtype.Sno
		if err := db.QueryRow("insert into t values ($1) returning id", id).Scan(&got); err != nil || got != id {
			t.Errorf("%s: got %v, %v", id, got, err)
		}
	}
}

// check runs idtest.Check with direct queries, and without -short also with prepared statements
// and in a transaction.
func check(t *testing.T, db *sql.DB, d idtest.Dialect) {
	t.Run("direct", func(t *testing.T) {
		idtest.Check(t, func(sql string, args ...any) idtest.Row { return db.QueryRowContext(t.Context(), sql, args...) }, d)
	})
	t.Run("prepared", func(t *testing.T) {
		pgtest.ThoroughOnly(t)
		prepared := map[string]*sql.Stmt{}
		idtest.Check(t, func(sql string, args ...any) idtest.Row {
			stmt, ok := prepared[sql]
			if !ok {
				var err error
				stmt, err = db.PrepareContext(t.Context(), sql)
				pgtest.Must(t, err)
				t.Cleanup(func() { stmt.Close() })
				prepared[sql] = stmt
			}
			return stmt.QueryRowContext(t.Context(), args...)
		}, d)
	})
	t.Run("in a transaction", func(t *testing.T) {
		pgtest.ThoroughOnly(t)
		tx, err := db.BeginTx(t.Context(), nil)
		pgtest.Must(t, err)
		idtest.Check(t, func(sql string, args ...any) idtest.Row { return tx.QueryRowContext(t.Context(), sql, args...) }, d)
		pgtest.Must(t, tx.Commit())
	})
}

func open(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	pgtest.Must(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

// openSQLite opens a database with a table.
func openSQLite(t *testing.T, createTable string) *sql.DB {
	t.Helper()
	db := open(t, "sqlite", "file:"+t.TempDir()+"/test.db?_pragma=synchronous(off)")
	_, err := db.Exec(createTable)
	pgtest.Must(t, err)
	return db
}
