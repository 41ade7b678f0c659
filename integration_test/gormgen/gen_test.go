// Package gormgen tests the ID types with the query code of gorm.io/gen.
package gormgen

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestGen generates package query from the models, and runs the tests in testdata with it.
// The package is in a temporary folder. An overlay maps it to testdata/query.
func TestGen(t *testing.T) {
	generated := filepath.Join(t.TempDir(), "query")
	run(t, "run", "./generate", "-out", generated)
	files, err := filepath.Glob(filepath.Join(generated, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("generated files: %v, %v", files, err)
	}
	replace := map[string]string{}
	for _, file := range files {
		path, err := filepath.Abs(filepath.Join("testdata", "query", filepath.Base(file)))
		if err != nil {
			t.Fatal(err)
		}
		replace[path] = file
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(path, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "test", "-count=1", "-overlay", path, "./testdata")
}

func run(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput(); err != nil {
		t.Fatalf("go %v: %v\n%s", args, err, out)
	}
}
