// Package graph tests the recipe for gqlgen.
package graph

import (
	"path/filepath"
	"testing"

	"github.com/99designs/gqlgen/api"
	"github.com/99designs/gqlgen/codegen/config"

	"github.com/sortkey/sortkey/integration_test/internal/gentest"
)

// TestGraph generates package graph from the schema, and runs the tests in testdata with it.
func TestGraph(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "graph")
	generate(t, filepath.Join(dir, "generated.go"))
	gentest.Run(t, dir, "graph")
}

func generate(t *testing.T, file string) {
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("../../../examples/frameworks/web") // gqlgen.yml has relative names
	defer t.Chdir(here)
	cfg, err := config.LoadConfig("gqlgen.yml")
	if err != nil {
		t.Fatal(err)
	}
	cfg.SkipModTidy, cfg.SkipValidation = true, true // the tests in testdata compile the code
	cfg.Exec.Filename = file
	cfg.Model = config.PackageConfig{} // gqlgen.yml names a Go type for each type of the schema
	if err := api.Generate(cfg); err != nil {
		t.Fatal(err)
	}
}
