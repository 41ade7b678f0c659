package moving

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// docs/moving-a-model.md shows every SQL file.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/moving-a-model.md")
	if err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob("*.sql")
	if err != nil || len(names) == 0 {
		t.Fatalf("no SQL files: got %v, %v", names, err)
	}
	for _, name := range names {
		if !strings.Contains(string(text), "<!-- ../examples/moving/"+name+" -->\n") {
			t.Errorf("docs/moving-a-model.md doesn't show %s", name)
		}
	}
}
