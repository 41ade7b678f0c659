package guide

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
)

// TestMigrationImage builds the image of the job, which has nothing but the command, and runs
// the job's command in it.
func TestMigrationImage(t *testing.T) {
	pgtest.OneContainer(t, func(t *testing.T, db *pgtest.DB) {
		dir := t.TempDir()
		dockerfile, err := os.ReadFile("../../examples/guide/migrate.dockerfile")
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, "Dockerfile"), dockerfile, 0o644))
		pgtest.BuildStatic(t, dir, pgtest.CommandPackage)

		job := pgtest.Container(t, "", testcontainers.WithDockerfile(testcontainers.FromDockerfile{Context: dir}),
			testcontainers.WithCmd("sortkey", "migrate", "up"),
			testcontainers.WithEnv(map[string]string{"DATABASE_URL": db.URLFromContainers(t)}),
			testcontainers.WithWaitStrategy(wait.ForExit()))
		testcontainers.CleanupContainer(t, job) // also removes the image
		state, err := job.State(t.Context())
		must(t, err)
		if state.ExitCode != 0 {
			t.Errorf("expected the exit status 0, got %d", state.ExitCode)
		}
		must(t, migrations.Check(t.Context(), db.SQL(t), migrations.Config{}))
	})
}
