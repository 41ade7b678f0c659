// Package migrations tests package migrations on real servers.
package migrations

import (
	"database/sql"
	"regexp"
	"testing"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// must is pgtest.Must.
var must = pgtest.Must

var relationName = regexp.MustCompile(`"Relation Name": "([^"]*)"`)

// relations are the tables that a plan, in JSON, reads.
func relations(plan string) (names []string) {
	for _, m := range relationName.FindAllStringSubmatch(plan, -1) {
		names = append(names, m[1])
	}
	return names
}

// columnOf is the result of a query with one column.
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
