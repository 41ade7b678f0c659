package migrations

import (
	"regexp"
	"strings"
	"testing"
)

var (
	dynamic = regexp.MustCompile(`(?s)\bEXECUTE ((?:\$q\$.*?\$q\$|'(?:[^']|'')*'|[^;$'])*)`)
	comment = regexp.MustCompile(`(?m)-- .*$`)
	literal = regexp.MustCompile(`(?s)\$q\$.*?\$q\$|'(?:[^']|'')*'`)
)

// Dynamic SQL is one command at a time, which Citus asks for. A statement from a
// variable comes from a query with one command per row, or from partition_sql,
// which returns one command per element; a DO block is one command.
func TestExecuteOneCommand(t *testing.T) {
	for name, c := range configs {
		text, err := SQL(c)
		if err != nil {
			t.Fatal(err)
		}
		commands := 0
		for _, m := range dynamic.FindAllStringSubmatch(text, -1) {
			if strings.HasPrefix(m[1], "ON FUNCTION ") || m[1] == "statement" { // of a GRANT
				continue
			}
			commands++
			list := literal.FindAllString(m[1], -1)
			if len(list) == 0 || strings.Contains(strings.Join(list, ""), ";") {
				t.Errorf("%s: want one command in EXECUTE, got %s", name, m[1])
			}
		}
		if commands < 5 {
			t.Errorf("%s: found %d commands in EXECUTE, want those of the partitions", name, commands)
		}
		_, elements, _ := strings.Cut(text, ".partition_sql(\n")
		elements, _, _ = strings.Cut(elements, "\n$$;\n")
		list := literal.FindAllString(comment.ReplaceAllString(elements, ""), -1)
		for _, l := range list {
			if strings.Contains(l, ";") && !strings.HasPrefix(l, "'BEGIN ") && !strings.HasSuffix(l, " END'") {
				t.Errorf("%s: want one command in an element of partition_sql, got %s", name, l)
			}
		}
		if len(list) < 30 {
			t.Errorf("%s: found %d literals in partition_sql, want those of the steps", name, len(list))
		}
	}
}
