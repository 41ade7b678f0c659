package moving

import (
	"strings"
	"testing"

	"github.com/sortkey/sortkey/examples/internal/snippets"
)

const document = "../../docs/moving-a-model.md"

// The page shows the code that is here, and all of the SQL: TestPages of package
// guide sees to the rest.
func TestDocument(t *testing.T) {
	text := snippets.Read(t, document)
	names := snippets.Glob(t, "*.sql")
	if len(names) == 0 {
		t.Error("expected files of SQL, got none")
	}
	for _, name := range names {
		if !strings.Contains(text, "<!-- ../examples/moving/"+name+" -->\n") {
			t.Errorf("%s is not in %s", name, document)
		}
	}
}
