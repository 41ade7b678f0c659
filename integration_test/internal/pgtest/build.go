package pgtest

import (
	"os/exec"
	"path"
	"path/filepath"
	"testing"
)

// Build builds the program of a package, such as ./minter, and returns its path.
func Build(t testing.TB, pkg string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), path.Base(pkg))
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, pkg).CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, out)
	}
	return program
}
