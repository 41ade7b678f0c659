package moving

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// docs/moving-a-model.md or docs/rekey.md shows every SQL file.
func TestDocument(t *testing.T) {
	var text []byte
	for _, page := range []string{"moving-a-model.md", "rekey.md"} {
		b, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, b...)
	}
	names, err := filepath.Glob("*.sql")
	if err != nil || len(names) == 0 {
		t.Fatalf("no SQL files: got %v, %v", names, err)
	}
	for _, name := range names {
		if !strings.Contains(string(text), "<!-- ../examples/moving/"+name+" -->\n") {
			t.Errorf("no page shows %s", name)
		}
	}
}
