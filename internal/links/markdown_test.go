package links

import (
	"path/filepath"
	"testing"
)

// What Markdown files link to is there.
func TestMarkdown(t *testing.T) {
	tree := open(t)
	names, err := tree.MarkdownFiles()
	if err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 {
		t.Fatal("expected README.md and others, found none")
	}
	for _, name := range names {
		if err := tree.Markdown(name); err != nil {
			t.Error(err)
		}
	}
}

func TestMarkdownOf(t *testing.T) {
	const other = "# Title\n\n## Is `Code` a_b, ä?\n\n## Twice\n\n## Twice\n\n## With [a link](x)\n\n<a id=\"own\"></a>\n\n```sh\n# comment\n```\n"
	for _, c := range []struct {
		text string
		want []string
	}{
		{"[a](other.md), [b](docs), [c](docs/x.go), [d](docs/x.go#L3), [e](docs/x.go#L3-L5), [f](a%20b.md)", nil},
		{"[a](https://example.com/none), [b](mailto:a@example.com)", nil},
		{"[a](none.md)", []string{"found none"}},
		{"[over\nlines](none.md)", []string{"found none"}},
		{"[a `code` [b]](none.md \"title\")", []string{"found none"}},
		{"![image](none.png) <img src=\"none2.png\"> <a href='none3.md'>x</a>", []string{"none.png", "none2.png", "none3.md"}},
		{"[a](other.md#title), [b](other.md#is-code-a_b-ä), [c](other.md#twice), [d](other.md#twice-1), [e](other.md#with-a-link), [f](other.md#own)", nil},
		{"[a](other.md#twice-2)", []string{"#twice-2"}},
		{"[a](other.md#comment)", []string{"#comment"}},
		{"[a](other.md#Title)", []string{"#Title"}},
		{"[a](docs/x.go#title)", []string{"isn't Markdown"}},
		{"# Here\n\n[a](#here)", nil},
		{"[a](#here)", []string{"expected a heading of from.md that gives #here"}},
		{"[a]()", []string{"got none"}},
		{"[a](/other.md)", []string{"from the file's folder"}},
		{"[a](../other.md)", []string{"in the repository"}},
		{"`[a](none.md)` and ``[b](none.md) ` `` and\n```md\n[c](none.md)\n```\n~~~\n```\n[d](none.md)\n~~~\n<!-- [e](none.md) -->", nil},
		{"```code``` of a line\n[g](none.md)", []string{"none.md"}},
		{"a ` alone, [b](none.md)", []string{"none.md"}},
		{"[a][x]\n\n[x]: other.md \"title\"", nil},
		{"[a][x]\n\n[x]: none.md", []string{"none.md"}},
		{"[a][x]", []string{"[x]:"}},
	} {
		root := write(t, map[string]string{
			"go.mod": "module example.com/m\n", "other.md": other, "a b.md": "", "docs/x.go": "package x", "from.md": c.text,
		})
		tree, err := Open(root)
		if err != nil {
			t.Fatal(err)
		}
		expect(t, c.text, complaints(tree.Markdown(filepath.Join(root, "from.md"))), c.want...)
	}
}
