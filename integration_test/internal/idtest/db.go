package idtest

import (
	"database/sql"
	"testing"
)

// CheckDB runs [Check] with a driver of database/sql: with direct queries, and without -short also
// with prepared statements and in a transaction.
func CheckDB(t *testing.T, db *sql.DB, d Dialect) {
	t.Run("direct", func(t *testing.T) {
		Check(t, func(sql string, args ...any) Row { return db.QueryRowContext(t.Context(), sql, args...) }, d)
	})
	if testing.Short() {
		return
	}
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Run("prepared", func(t *testing.T) {
		prepared := map[string]*sql.Stmt{}
		Check(t, func(sql string, args ...any) Row {
			stmt, ok := prepared[sql]
			if !ok {
				var err error
				stmt, err = db.PrepareContext(t.Context(), sql)
				must(t, err)
				t.Cleanup(func() { stmt.Close() })
				prepared[sql] = stmt
			}
			return stmt.QueryRowContext(t.Context(), args...)
		}, d)
	})
	t.Run("in a transaction", func(t *testing.T) {
		tx, err := db.BeginTx(t.Context(), nil)
		must(t, err)
		Check(t, func(sql string, args ...any) Row { return tx.QueryRowContext(t.Context(), sql, args...) }, d)
		must(t, tx.Commit())
	})
}
