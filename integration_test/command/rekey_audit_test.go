package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// After contract, audit knows the types of keys without a default and of references.
func TestAuditRekeyed(t *testing.T) {
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		file := filepath.Join(t.TempDir(), "orders.json")
		pgtest.Must(t, os.WriteFile(file, []byte(`{"keys": [{"table": "orders", "format": "uid60", "times": {"start": "2024-01-01T00:00:00Z"}, "old_key": "gen_random_uuid()"}]}`), 0o644))
		must(t, db, "migrate up")
		db.Exec(t, `CREATE TABLE orders (id text PRIMARY KEY); INSERT INTO orders SELECT 'order ' || i FROM generate_series(1, 10) i;
			CREATE TABLE lines (order_id text REFERENCES orders); INSERT INTO lines TABLE orders; CREATE INDEX ON lines (order_id);
			COMMENT ON COLUMN lines.order_id IS 'The order.'`)
		for _, args := range [][]string{{"expand", file}, {"backfill"}, {"validate"}} {
			must(t, db, "rekey", args...)
		}
		must(t, db, "rekey contract --yes")
		for _, column := range []string{"orders.id", "lines.order_id"} {
			if out := must(t, db, "audit", column); !strings.Contains(out, "uid60") {
				t.Errorf("audit %s: expected the type uid60, got\n%s", column, out)
			}
		}
		if got := pgtest.Value[string](t, db.Conn(t), "SELECT col_description('lines'::regclass, (SELECT attnum FROM pg_attribute WHERE attrelid = 'lines'::regclass AND attname = 'order_id'))"); got != "The order.\nsortkey: uid60" {
			t.Errorf("expected the comment with a line for audit, got %q", got)
		}
	})
}
