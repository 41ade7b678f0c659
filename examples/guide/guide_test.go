package guide

import (
	"testing"

	"github.com/sortkey/sortkey/examples/internal/snippets"
)

// Every block of code in the pages is a piece of source that is tested. Where a
// piece has changed, go test -update writes it into the page.
func TestPages(t *testing.T) {
	for _, page := range snippets.Glob(t, "../../docs/*.md") {
		if page == "../../docs/moving-a-model.md" {
			continue // has files and a test of its own: ../moving
		}
		snippets.Embed(t, page)
	}
}
