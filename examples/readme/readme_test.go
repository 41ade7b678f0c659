package readme

import (
	"testing"

	"github.com/sortkey/sortkey/examples/internal/snippets"
)

// Every Go block of README.md stands in readme.go.
func TestREADME(t *testing.T) { snippets.Check(t, "../../README.md", "go", 4, "readme.go") }
