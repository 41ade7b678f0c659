package readme

import (
	"os"
	"strings"
	"testing"
)

// Every Go block of README.md stands in readme.go, word for word.
func TestREADME(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("readme.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(readme), "```go\n")[1:]
	if len(blocks) < 2 {
		t.Fatalf("%d Go blocks in README.md, want one for GORM and one for pgx at least", len(blocks))
	}
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		if !strings.Contains(string(code), block) {
			t.Errorf("README.md shows code that readme.go doesn't have:\n%s", block)
		}
	}
}
