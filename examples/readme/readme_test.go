package readme

import (
	"testing"

	"github.com/sortkey/sortkey/examples/internal/snippets"
)

// Every Go block of README.md stands in readme.go, and every block of SQL in
// readme.sql.
func TestREADME(t *testing.T) {
	snippets.Check(t, "../../README.md", "go", 6, "readme.go")
	snippets.Check(t, "../../README.md", "sql", 1, "readme.sql")
}
