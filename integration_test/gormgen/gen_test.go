package gormgen

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sortkey/sortkey/integration_test/internal/gentest"
)

// TestGen generates package query from the models, and runs the tests in testdata with it.
func TestGen(t *testing.T) {
	generated := filepath.Join(t.TempDir(), "query")
	if out, err := exec.CommandContext(t.Context(), "go", "run", "./generate", "-out", generated).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	gentest.Run(t, generated, "query")
}
