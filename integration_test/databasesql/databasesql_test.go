package databasesql

import (
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5"
	_ "github.com/lib/pq"

	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m, TestPgx, TestPq, TestArrays) }

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
			pgtest.EachMode(t, func(t *testing.T, mode pgx.QueryExecMode) {
				t.Parallel()
				// A database per mode, since the test searches its table by value.
				filled.OneReused(t, func(t *testing.T, db *pgtest.DB) {
					idtest.CheckDB(t, db.SQL(t, option, pgtest.Mode(mode)), idtest.Postgres)
				})
			})
		})
	}
}

func TestPq(t *testing.T) {
	t.Parallel()
	filled.EachReused(t, func(t *testing.T, db *pgtest.DB) {
		idtest.CheckDB(t, open(t, "postgres", db.URL), idtest.Postgres)
	})
}

func open(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	pgtest.Must(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}
