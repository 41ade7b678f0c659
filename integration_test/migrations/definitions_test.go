package migrations

import (
	"database/sql"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/internal/trust"
	"github.com/sortkey/sortkey/migrations"
)

var update = flag.Bool("update", false, "write migrations/definitions.txt")

// The definitions that migrations ships are the ones of each version of Postgres.
func TestDefinitions(t *testing.T) {
	const file = "../../migrations/definitions.txt"
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		list, err := migrations.List(migrations.Config{})
		must(t, err)
		db.Exec(t, "CREATE SCHEMA sortkey; CREATE SCHEMA sortkey_internal")
		for _, m := range list { // Up would compare
			db.Exec(t, m.Up)
		}
		var b strings.Builder
		must(t, trust.Read(t.Context(), db.SQL(t), func(tx *sql.Tx) error {
			found, err := trust.Find(t.Context(), tx, trust.Definitions([]string{"sortkey", "sortkey_internal"}))
			for _, f := range found {
				b.WriteString(f.Object + "\t" + f.Reason + "\n")
			}
			return err
		}))
		got := strings.NewReplacer("sortkey_internal.", "{{.Internal}}.", "sortkey.", "{{.Schema}}.").Replace(b.String())
		if *update {
			must(t, os.WriteFile(file, []byte(got), 0o644))
		}
		want, err := os.ReadFile(file)
		must(t, err)
		if got != string(want) {
			t.Errorf("got\n%s\nwant, or run the test with -update\n%s", got, want)
		}
	})
}
