package examples

import (
	"strings"
	"testing"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/sqlitetest"
)

// A claim of docs/storage.md: in a column declared uuid, SQLite stores the result of Value unchanged, and
// converts a text of digits to a number.
func TestStorageSQLite(t *testing.T) {
	g := sqlitetest.Open(t)
	must(t, g.Exec("CREATE TABLE t (id uuid)").Error)
	id := idtype.Must(idtype.ParseSno("2222222242222222"))
	var kinds []string
	must(t, g.Exec("INSERT INTO t VALUES (?), (?)", id, id.String()).Error)
	if err := g.Raw("SELECT typeof(id) FROM t ORDER BY rowid").Scan(&kinds).Error; err != nil || strings.Join(kinds, " ") != "text integer" {
		t.Errorf("expected text from Value and an integer from String, got %v, %v", kinds, err)
	}
}
