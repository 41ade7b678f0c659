package readme

import (
	"testing"

	"github.com/sortkey/sortkey/examples/internal/snippets"
)

// README.md shows the code that is here.
func TestREADME(t *testing.T) {
	snippets.Embed(t, "../../README.md")
}
