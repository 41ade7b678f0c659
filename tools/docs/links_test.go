package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

func TestDeadInMarkdown(t *testing.T) {
	fsys := fstest.MapFS{"other.md": {Data: []byte("# Is `Code` a_b, ä & c?\n\n## Twice\n\n## Twice\n\n## With [a link](x)\n\n```\n# code\n```\n\n| <a id=\"row\"></a>Row |\n")}, "docs/a b.go": {}}
	for link, dead := range map[string]bool{
		"../other.md": false, "../docs": false, "a%20b.go#L3": false, "https://example.com/none": false, "#here": false,
		"../other.md#is-code-a_b-ä--c": false, "../other.md#twice-1": false, "../other.md#with-a-link": false, "../other.md#row": false,
		"none.md": true, "../../outside.md": true, "#none": true, "../other.md#twice-2": true, "../other.md#code": true, "../other.md#Twice": true,
	} {
		fsys["docs/from.md"] = &fstest.MapFile{Data: []byte("# Here\n\n| a |\n|---|\n| [a `b`\n](" + link + ") |\n\n`[c](none.md)`\n\n    [d](none.md)\n")}
		if got := deadInMarkdown(fsys, "docs/from.md"); len(got) != 0 != dead {
			t.Errorf("%s: got %q", link, got)
		}
	}
}

func TestDeadInComments(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.go")
	for link, dead := range map[string]bool{
		"T": false, "*T.M": false, "T.F": false, "p.T.F": false, "p": false, "]byte": false, "4]byte": false,
		"None": true, "T.None": true, "p.None": true, "no/such": true, "p.T.None": true, "other.T": true,
	} {
		for _, place := range []string{"// @\nfunc f() {}", "// Q is.\ntype Q struct {\n\ta int // @\n}", "const (\n\t// @\n\tc = 1\n)"} {
			source := "package p\n\nimport \"p\"\n\n// T is.\ntype T struct{ F p.T }\n\n// M is.\nfunc (T) M() {}\n\n" + place + "\n"
			if err := os.WriteFile(file, []byte(strings.ReplaceAll(source, "@", "It has ["+link+"].")), 0o644); err != nil {
				t.Fatal(err)
			}
			if got := (packageFiles{"p": {file}}).deadInComments("p"); len(got) != 0 != dead {
				t.Errorf("%s: got %q", link, got)
			}
		}
	}
}

// The links of packages that no other package imports are followed too.
func TestListPackages(t *testing.T) {
	packages, err := listPackages("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"idtype", "bench/report", "cmd/sortkey", "cmd/sortkey/internal/cli", "examples/hello", "integration_test/internal/pgtest", "metrics", "nodelease/zklease", "rekey"} {
		if len(packages["github.com/sortkey/sortkey/"+name]) == 0 {
			t.Errorf("want the Go files of %s, got none", name)
		}
	}
}
