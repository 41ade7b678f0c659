package guide

import (
	"testing"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
)

func TestMain(m *testing.M) {
	pgtest.MainParallel(m, 6, TestChoosingFormats, TestMigratingSQL, TestOperationsSQL, TestPartitioningSQL, TestSecurityGrants, TestStorage)
}

// must is pgtest.Must.
var must = pgtest.Must

// migrated creates databases in which the migrations have run.
var migrated = pgtest.NewTemplate(migrate)

// migrate runs the migrations in a database.
func migrate(t *testing.T, db *pgtest.DB) {
	t.Helper()
	must(t, migrations.Up(t.Context(), db.SQL(t), migrations.Config{}))
}
