package migrations

import (
	_ "embed"
	"maps"
	"slices"
	"strings"

	"github.com/sortkey/sortkey/internal/trust"
)

// definitions are the results of [trust.Definitions] after Up, as a template: the name of a relation,
// a tab and a definition per line.
//
//go:embed definitions.txt
var definitions string

// compare returns findings for tables and views of the installation that don't have exactly the
// definitions that the migrations created, among the results of [trust.Definitions]. It ignores
// other relations, such as the version table of a migration tool.
func (d data) compare(found []trust.Finding) (findings []trust.Finding) {
	names := strings.NewReplacer("{{.Schema}}", d.Schema, "{{.Internal}}", d.Internal)
	want := map[string][]string{} // by relation
	for line := range strings.Lines(names.Replace(definitions)) {
		relation, definition, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		want[relation] = append(want[relation], definition)
	}
	got := map[string][]string{}
	for _, f := range found {
		if want[f.Object] != nil {
			got[f.Object] = append(got[f.Object], f.Reason)
		}
	}
	for _, relation := range slices.Sorted(maps.Keys(got)) {
		missing := without(want[relation], got[relation])
		for _, p := range without(got[relation], want[relation]) {
			reason := "has " + p + ", which the migrations didn't create"
			if i := slices.Index(missing, p); i >= 0 {
				missing = slices.Delete(missing, i, i+1)
				reason = "has another " + p + " than the migrations created"
			}
			findings = append(findings, trust.Finding{Object: relation, Reason: reason})
		}
		for _, p := range missing {
			findings = append(findings, trust.Finding{Object: relation, Reason: "lacks " + p})
		}
	}
	return findings
}

// without returns the kinds and the names of the parts of a table that only the first list describes.
func without(list, other []string) (parts []string) {
	for _, definition := range list {
		if !slices.Contains(other, definition) {
			parts = append(parts, trust.Part(definition))
		}
	}
	return parts
}
