// Package ent tests the recipe for ent.
package ent

import (
	"path/filepath"
	"testing"

	"entgo.io/ent/entc"
	"entgo.io/ent/entc/gen"

	"github.com/sortkey/sortkey/integration_test/internal/gentest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// TestEnt generates the packages shop and notes from their schemas, and runs the tests in
// testdata with them.
func TestEnt(t *testing.T) {
	dir := t.TempDir()
	for name, schema := range map[string]string{"shop": "../../../examples/frameworks/entshop", "notes": "./forms"} {
		pgtest.Must(t, entc.Generate(schema, &gen.Config{
			Target:  filepath.Join(dir, name),
			Package: "github.com/sortkey/sortkey/integration_test/frameworks/ent/testdata/" + name,
		}))
	}
	gentest.Run(t, dir, "")
}
