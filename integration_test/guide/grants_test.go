package guide

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A page with a default or a claim prints the grants that a role needs for it. Only a claim needs
// USAGE. PUBLIC may execute next_uuid7.
func TestGrants(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	must(t, err)
	// At the end of a line, it is the output of a command.
	call := regexp.MustCompile(`DEFAULT sortkey\.(next_\w+)\(([^()]*)\)[^\n]`)
	found := 0
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		must(t, err)
		var want []string
		for _, m := range call.FindAllStringSubmatch(string(text), -1) {
			if m[1] != "next_uuid7" {
				parameters := ""
				if m[2] != "" {
					parameters = "integer" + strings.Repeat(", integer", strings.Count(m[2], ","))
				}
				want = append(want, "sortkey."+m[1]+"("+parameters+")")
			}
		}
		if strings.Contains(string(text), "pglease.New(") {
			want = append(want, "sortkey.claim_node, sortkey.renew_node, sortkey.release_node")
			if !strings.Contains(string(text), "GRANT USAGE ON SCHEMA sortkey TO app") {
				t.Errorf("%s: no grant of USAGE", page)
			}
		}
		slices.Sort(want)
		for _, functions := range slices.Compact(want) {
			found++
			if !strings.Contains(string(text), "GRANT EXECUTE ON FUNCTION "+functions+" TO app") {
				t.Errorf("%s: no grants for %s", page, functions)
			}
		}
	}
	if found < 6 {
		t.Errorf("found %d defaults and claims, want 6 or more", found)
	}
}
