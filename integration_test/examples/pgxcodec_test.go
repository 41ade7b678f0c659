package examples

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// TestCodecExamples runs the examples of package pgxcodec that need a server.
func TestCodecExamples(t *testing.T) {
	t.Parallel()
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-v", "-run", "^TestExamples$", "github.com/sortkey/sortkey/pgxcodec")
		cmd.Env = append(os.Environ(), "RUN_EXAMPLES=1", "DATABASE_URL="+db.URL)
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Contains(string(out), "SKIP") || !strings.Contains(string(out), "--- PASS: TestExamples/pgxpool") {
			t.Errorf("%v\n%s", err, out)
		}
	})
}
