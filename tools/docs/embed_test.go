package main

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestEmbed(t *testing.T) {
	files := map[string]string{
		"shop.go":  "package shop\n\n// An Order has a number.\ntype Order struct{ Number int }\n\n// Age is ignored.\nfunc (o *Order) Age() {\n}\n",
		"shop.sql": "-- [one]\nSELECT 1;\n\n-- [two]\nSELECT '$1';\n",
	}
	for _, test := range []struct{ in, want, err string }{
		{"'''sh\nmake\n'''\n", "'''sh\nmake\n'''\n", ""},
		{"<!-- ../shop.go Order -->\n'''go\nold\n\nold\n'''\nend\n", "<!-- ../shop.go Order -->\n'''go\n// An Order has a number.\ntype Order struct{ Number int }\n'''\nend\n", ""},
		{"<!-- ../shop.go Order.Age -->\n'''go\n'''\n", "<!-- ../shop.go Order.Age -->\n'''go\n// Age is ignored.\nfunc (o *Order) Age() {\n}\n'''\n", ""},
		{"1. So:\n\n   <!-- ../shop.sql two one -->\n   '''sql\n   '''\n", "1. So:\n\n   <!-- ../shop.sql two one -->\n   '''sql\n   SELECT '$1';\n\n   SELECT 1;\n   '''\n", ""},
		{"<!-- ../shop.sql -->\n'''sql\n'''\n", "<!-- ../shop.sql -->\n'''sql\n" + files["shop.sql"] + "'''\n", ""},
		{"'''go\nx\n'''\n", "", "no comment above this block names its source"},
		{"<!-- ../shop.sql three -->\n'''sql\n'''\n", "", "shop.sql has no piece three"},
		{"<!-- ../gone.sql -->\n'''sql\n'''\n", "", "gone.sql"},
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
