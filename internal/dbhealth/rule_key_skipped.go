package dbhealth

import (
	"context"
	"strings"

	"github.com/sortkey/sortkey/internal/trust"
)

var keySkipped = Rule{
	ID: "key-skipped", Area: "keys",
	Means:  "the same for a table with keys, or a partition of it is on another server",
	Remedy: "none is needed; to examine the table, connect as its owner",
	needs:  []string{usage},
	check: func(ctx context.Context, e *Examination) error {
		keys, err := e.keys(ctx)
		last := ""
		for _, k := range keys { // by table
			if k.skipped != "" && k.table != last {
				e.skip(k.table, k.skipped)
			}
			last = k.table
		}
		return err
	},
}

// skip adds the finding for a table that isn't examined.
func (e *Examination) skip(table, reason string) {
	e.add(Skipped, table, table, "not examined: "+reason, "to examine it, connect as the owner of the table; rows on another server are not read")
}

// reason returns the reason for which a table isn't examined, or "". It names the relation only
// if that is a partition.
func reason(f trust.Finding, table string) string {
	if f.Object == "table "+table {
		return f.Reason
	}
	return strings.TrimSpace(f.Object + " " + f.Reason)
}
