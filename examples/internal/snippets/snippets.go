// Package snippets checks that documents show code that is compiled and run.
package snippets

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Check sees that every block of a language in a document stands word for word
// in one of the files that the patterns match, where it may be indented. It
// expects that many blocks at least.
func Check(t *testing.T, document, language string, least int, patterns ...string) {
	t.Helper()
	var source strings.Builder
	for _, name := range Glob(t, patterns...) {
		source.WriteString("\n" + Read(t, name))
	}
	blocks := Blocks(t, document, language)
	if len(blocks) < least {
		t.Errorf("%d blocks of %s in %s, want %d at least", len(blocks), language, document, least)
	}
	for _, block := range blocks {
		if !containsIndented(source.String(), block) {
			t.Errorf("%s shows %s that %v don't have:\n%s", document, language, patterns, block)
		}
	}
}

// Blocks are the code blocks of a language in a document, without the
// indentation of those in lists.
func Blocks(t *testing.T, document, language string) (blocks []string) {
	t.Helper()
	var block strings.Builder
	inside, indent := false, ""
	for line := range strings.Lines(Read(t, document)) {
		trimmed := strings.TrimSpace(line)
		switch {
		case !inside && trimmed == "```"+language:
			inside, indent = true, line[:strings.Index(line, "`")]
		case inside && trimmed == "```":
			blocks = append(blocks, block.String())
			block.Reset()
			inside = false
		case inside:
			block.WriteString(strings.TrimPrefix(line, indent))
		}
	}
	return blocks
}

// containsIndented reports whether the lines of block stand in source, all
// indented by the same number of spaces.
func containsIndented(source, block string) bool {
	for n := range 16 {
		indent := "\n" + strings.Repeat(" ", n)
		if strings.Contains(source, indent+strings.ReplaceAll(strings.TrimSuffix(block, "\n"), "\n", indent)+"\n") {
			return true
		}
	}
	return false
}

// Read is the text of a file.
func Read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Glob are the files that any of the patterns matches.
func Glob(t *testing.T, patterns ...string) (names []string) {
	t.Helper()
	for _, p := range patterns {
		n, err := filepath.Glob(p)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, n...)
	}
	return names
}
