package snippets

import (
	"fmt"
	"strings"
	"testing"
)

const source = `package shop

import "time"

// An Order has a number.
type Order struct{ Number int }

// Age is not shown.
func (o *Order) Age() time.Duration {
	return 0
}

func main() {
	// [loop]
	for {
	}
	// []
}
`

const sqlSource = `-- [one]
SELECT 1;

-- [two]
SELECT 2;
`

func read(name string) ([]byte, error) {
	switch name {
	case "shop.go":
		return []byte(source), nil
	case "shop.sql":
		return []byte(sqlSource), nil
	}
	return nil, fmt.Errorf("no %s", name)
}

// doc is a document in which ' stands for `.
func doc(s string) string { return strings.ReplaceAll(s, "'''", "```") }

func TestEmbed(t *testing.T) {
	for _, test := range []struct{ name, in, want string }{
		{"other languages", "'''sh\nmake\n'''\n", "'''sh\nmake\n'''\n"},
		{"a declaration", "<!-- shop.go Order -->\n'''go\nold\n'''\nend\n",
			"<!-- shop.go Order -->\n'''go\n// An Order has a number.\ntype Order struct{ Number int }\n'''\nend\n"},
		{"a method", "<!-- shop.go Order.Age -->\n'''go\n'''\n",
			"<!-- shop.go Order.Age -->\n'''go\n// Age is not shown.\nfunc (o *Order) Age() time.Duration {\n\treturn 0\n}\n'''\n"},
		{"pieces in a list", "1. So:\n\n   <!-- shop.sql two one -->\n   '''sql\n   '''\n",
			"1. So:\n\n   <!-- shop.sql two one -->\n   '''sql\n   SELECT 2;\n\n   SELECT 1;\n   '''\n"},
		{"a whole file", "<!-- shop.sql -->\n'''sql\n'''\n", "<!-- shop.sql -->\n'''sql\n" + sqlSource + "'''\n"},
	} {
		if got, err := embed(doc(test.in), read); err != nil || got != doc(test.want) {
			t.Errorf("%s: %v\n%s", test.name, err, got)
		}
	}
	for _, test := range []struct{ in, err string }{
		{"'''go\n'''\n", "line 1: expected a comment above the block"},
		{"text\n'''sql\n'''\n", "line 2: expected a comment above the block"},
		{"<!-- shop.sql three -->\n'''sql\n'''\n", "line 2: expected shop.sql to have three"},
		{"<!-- gone.sql -->\n'''sql\n'''\n", "no gone.sql"},
		{"'''sh\n", "line 1: expected an end"},
	} {
		if got, err := embed(doc(test.in), read); err == nil || !strings.Contains(err.Error(), test.err) {
			t.Errorf("%q: expected an error with %q, got %v\n%s", test.in, test.err, err, got)
		}
	}
}
