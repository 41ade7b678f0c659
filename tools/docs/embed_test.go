package main

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestEmbed(t *testing.T) {
	files := map[string]string{
		"shop.go":   "package shop\n\n// An Order has a number.\ntype Order struct{ Number int }\n\n// Age is ignored.\nfunc (o *Order) Age() {\n}\n",
		"shop.yaml": "# [one]\nsize: 1\n\n# [two]\nprice: $1\n",
	}
	for _, test := range []struct{ in, want, err string }{
		{"'''sh\nmake\n'''\n", "'''sh\nmake\n'''\n", ""},
		{"<!-- ../shop.go Order -->\n'''go\nold\n\nold\n'''\nend\n", "<!-- ../shop.go Order -->\n'''go\n// An Order has a number.\ntype Order struct{ Number int }\n'''\nend\n", ""},
		{"<!-- ../shop.go Order.Age -->\n'''go\n'''\n", "<!-- ../shop.go Order.Age -->\n'''go\n// Age is ignored.\nfunc (o *Order) Age() {\n}\n'''\n", ""},
		{"1. So:\n\n   <!-- ../shop.yaml two one -->\n   '''yaml\n   '''\n", "1. So:\n\n   <!-- ../shop.yaml two one -->\n   '''yaml\n   price: $1\n\n   size: 1\n   '''\n", ""},
		{"<!-- ../shop.yaml -->\n'''yaml\n'''\n", "<!-- ../shop.yaml -->\n'''yaml\n" + files["shop.yaml"] + "'''\n", ""},
		{"<!-- sql one two -->\n'''sql\nSELECT 1;\n'''\n", "<!-- sql one two -->\n'''sql\nSELECT 1;\n'''\n", ""},
		{"'''sql\nSELECT 1;\n'''\n", "", "no comment above this block names its source"},
		{"'''go\nx\n'''\n", "", "no comment above this block names its source"},
		{"<!-- ../shop.yaml three -->\n'''yaml\n'''\n", "", "shop.yaml has no piece three"},
		{"<!-- ../gone.yaml -->\n'''yaml\n'''\n", "", "gone.yaml"},
	} {
		fsys := fstest.MapFS{"docs/page.md": {Data: []byte(strings.ReplaceAll(test.in, "'''", "```"))}}
		for name, text := range files {
			fsys[name] = &fstest.MapFile{Data: []byte(text)}
		}
		got, err := embed(fsys, "docs/page.md")
		if test.err == "" {
			if want := strings.ReplaceAll(test.want, "'''", "```"); err != nil || string(got) != want {
				t.Errorf("expected %q, got %q, %v", want, got, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), test.err) {
			t.Errorf("%q: expected an error with %q, got %v", test.in, test.err, err)
		}
	}
}
