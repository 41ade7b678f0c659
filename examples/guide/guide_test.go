package guide

import (
	"testing"

	"github.com/sortkey/sortkey/examples/internal/snippets"
)

// Every block of code in the pages is a piece of source that is tested, here or in
// package moving. Where a piece has changed, go test -update writes it into the
// page.
func TestPages(t *testing.T) {
	for _, page := range snippets.Glob(t, "../../docs/*.md") {
		snippets.Embed(t, page)
	}
}
