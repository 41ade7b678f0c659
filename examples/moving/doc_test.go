package moving

import (
	"slices"
	"testing"

	"github.com/sortkey/sortkey/examples/internal/snippets"
)

const document = "../../docs/moving-a-model.md"

// Every block of the page stands in a file here, and every SQL file is a block
// of the page.
func TestDocument(t *testing.T) {
	snippets.Check(t, document, "go", 5, "*/models.go")
	blocks := snippets.Blocks(t, document, "sql")
	for _, name := range snippets.Glob(t, "*.sql") {
		i := slices.Index(blocks, snippets.Read(t, name))
		if i < 0 {
			t.Errorf("%s is not in %s", name, document)
			continue
		}
		blocks = slices.Delete(blocks, i, i+1)
	}
	if len(blocks) > 0 {
		t.Errorf("%s shows SQL that no file has: %q", document, blocks)
	}
}
