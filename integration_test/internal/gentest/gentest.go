// Package gentest runs tests of generated code without keeping the code in the repository.
package gentest

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Run runs the tests of the package in the folder testdata. The generated code is in the
// folder generated. An overlay maps it to the folder testdata/name, which the tests import.
func Run(t *testing.T, generated, name string) {
	t.Helper()
	replace := map[string]string{}
	err := filepath.WalkDir(generated, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		rel, err := filepath.Rel(generated, path)
		if err != nil {
			return err
		}
		place, err := filepath.Abs(filepath.Join("testdata", name, rel))
		replace[place] = path
		return err
	})
	if err != nil || len(replace) == 0 {
		t.Fatalf("generated files: %v, %v", replace, err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(path, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-vet=off", "-overlay", path, "./testdata").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
