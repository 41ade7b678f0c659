package sqlite

import (
	"database/sql"
	"math"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

func TestSQLite(t *testing.T) { idtest.CheckDB(t, open(t, idtest.CreateTable()), idtest.SQLite) }

// In a column declared uuid, SQLite converts text that looks like a number, so Snos
// stored as their 16 digits can collide. In the form that Value returns they don't.
func TestNumericAffinity(t *testing.T) {
	db := open(t, "create table t (id uuid primary key)")
	a, b := idtype.Must(idtype.ParseSno("22222222e2222222")), idtype.Must(idtype.ParseSno("33333333e3333333"))

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

// open opens a database with a table.
func open(t *testing.T, createTable string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+t.TempDir()+"/test.db?_pragma=synchronous(off)")
	pgtest.Must(t, err)
	t.Cleanup(func() { db.Close() })
	_, err = db.Exec(createTable)
	pgtest.Must(t, err)
	return db
}
