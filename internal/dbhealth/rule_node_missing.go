package dbhealth

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/sortkey/sortkey/migrations"
)

var nodeMissing = Rule{
	ID: "node-missing", Area: "defaults",
	Means:  "a default takes its node number from the setting `sortkey.node`, which is missing or no node number, so inserts fail",
	Remedy: "reserve a number, and `ALTER DATABASE … SET sortkey.node = N`",
	needs:  []string{usage},
	check:  func(ctx context.Context, e *Examination) error { return e.addDefaults(ctx, true) },
}

// addDefaults adds the rows of the view node_problems, which [migrations.CheckDefaults] reports
// to programs: the defaults without a node number, or the ones whose number isn't reserved.
func (e *Examination) addDefaults(ctx context.Context, noNode bool) error {
	type row struct {
		noNode                   bool
		subject, problem, remedy string
	}
	rows, err := recall(e, "defaults", func() ([]row, error) {
		return collect(ctx, e, func(r *row) []any { return []any{&r.noNode, &r.subject, &r.problem, &r.remedy} },
			`SELECT no_node, subject, problem, remedy FROM $s.node_problems ORDER BY pool, number, subject, problem`)
	})
	for _, r := range rows {
		if r.noNode == noNode {
			e.add(Problem, "", r.subject, r.problem, withCommand(r.remedy, e.Config.Schema))
		}
	}
	return err
}

// reserveCall matches a call in the remedy for an unreserved number.
var reserveCall = regexp.MustCompile(`^run SELECT [a-z0-9_]+\.reserve_node\('([a-z0-9-]+)', ([0-9]+), `)

// withCommand adds the command to a remedy that reserves a number.
func withCommand(remedy, schema string) string {
	call := reserveCall.FindStringSubmatch(remedy)
	if call == nil {
		return remedy
	}
	option := ""
	if schema != migrations.DefaultSchema {
		option = " --schema " + schema
	}
	return fmt.Sprintf("run sortkey nodes reserve%s %s %s, or %s", option, call[1], call[2], strings.TrimPrefix(remedy, "run "))
}
