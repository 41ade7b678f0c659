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

// TestEnt generates package shop from the schema, and runs the tests in testdata with it.
func TestEnt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "shop")
	pgtest.Must(t, entc.Generate("../../../examples/frameworks/entshop", &gen.Config{
		Target:  dir,
		Package: "github.com/sortkey/sortkey/integration_test/frameworks/ent/testdata/shop",
	}))
	gentest.Run(t, dir, "shop")
}
