package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/audit"
)

// auditTop is the number of nodes and days in the tables.
const auditTop = 10

// printAudit prints the result as tables. databases is set if there are several.
func (c *app) printAudit(r *audit.Result, databases bool) error {
	name := func(p audit.Place) string {
		if databases {
			return p.Database + ": " + p.Table + "." + p.Column
		}
		return p.Table + "." + p.Column
	}
	var columns, findings []table.Row
	for _, t := range r.Tables {
		row := table.Row{name(t.Place), t.Type, humanize.Comma(t.Rows), humanize.Comma(t.Nulls)}
		if t.First != nil {
			row = append(row, stamp(t.First.Time), stamp(t.Last.Time))
		}
		columns = append(columns, row)
	}
	for _, f := range r.Findings {
		row := table.Row{f.Finding, "-", ""}
		if f.Checked {
			row[1] = humanize.Comma(f.Count)
		}
		if f.Count > 0 {
			row[1] = c.Paint(text.FgRed, row[1].(string))
		}
		for _, e := range f.Examples {
			row[2] = describeExample(e, f.Finding, name)
			findings = append(findings, row)
			row = table.Row{"", "", ""}
		}
		if f.More && len(f.Examples) > 0 {
			findings = append(findings, table.Row{"", "", "..."})
		}
		for _, reason := range f.Reasons {
			row[2] = "not checked: " + reason
			findings = append(findings, row)
			row = table.Row{"", "", ""}
		}
		if len(f.Examples)+len(f.Reasons) == 0 {
			findings = append(findings, row)
		}
	}
	for i, t := range []struct {
		header table.Row
		rows   []table.Row
	}{
		{table.Row{"COLUMN", "TYPE", "ROWS", "NULLS", "FIRST", "LAST"}, columns},
		{table.Row{"FINDING", "COUNT", "EXAMPLES"}, findings},
		{table.Row{"TYPE", "NODE", "ROWS", "SHARE", ""}, shareRows(r.Nodes, "other", nodeRow)},
		{table.Row{"UUID VERSION", "ROWS", "SHARE"}, shareRows(r.Versions, "other version", versionRow)},
		{table.Row{"DAY", "ROWS", "SHARE"}, shareRows(r.Days, "other day", dayRow)},
	} {
		if i > 0 && len(t.rows) > 0 {
			fmt.Fprintln(c.Out)
		}
		if err := c.PrintTable(t.header, t.rows); err != nil {
			return err
		}
	}
	if n := len(r.Days); n > auditTop {
		fmt.Fprintf(c.Out, "\nThe days are from %s to %s.\n", r.Days[0].Day, r.Days[n-1].Day)
	}
	for _, p := range r.Hidden {
		fmt.Fprintf(c.Out, "\nRow-level security can hide rows of %s from the role.\n", name(p))
	}
	return nil
}

// describeExample returns an example for the table of findings.
func describeExample(e audit.Example, finding string, name func(audit.Place) string) string {
	var names []string
	for _, p := range e.Places {
		names = append(names, name(p))
	}
	s := e.Key
	switch finding {
	case "future":
		s += " of " + stamp(e.Time.Time)
	case "apart":
		s += " of " + stamp(e.Time.Time) + ", but created at " + e.CreatedAt
	case "unknown_node":
		s += " of node " + strconv.Itoa(*e.Node)
	}
	if e.Rows > 1 {
		s += fmt.Sprintf(", %d times", e.Rows)
	}
	return s + " in " + strings.Join(names, ", ")
}

// nodeRow describes a node number for shareRows.
func nodeRow(n audit.Node) (label table.Row, rows int64, note string) {
	if n.Known != nil && !*n.Known {
		note = "unknown"
	}
	return table.Row{n.Type, n.Node}, n.Rows, note
}

func versionRow(v audit.Version) (table.Row, int64, string) { return table.Row{v.Version}, v.Rows, "" }

func dayRow(d audit.Day) (table.Row, int64, string) { return table.Row{d.Day}, d.Rows, "" }

// shareRows returns table rows with the shares of the elements with the most rows, in their
// order, and of the others together.
func shareRows[T any](all []T, other string, describe func(T) (label table.Row, rows int64, note string)) (result []table.Row) {
	var total, rest int64
	counts, order := make([]int64, len(all)), make([]int, len(all))
	for i, e := range all {
		order[i] = i
		_, counts[i], _ = describe(e)
		total += counts[i]
	}
	add := func(label table.Row, rows int64, note string) {
		result = append(result, append(label, humanize.Comma(rows), fmt.Sprintf("%.1f%%", 100*float64(rows)/float64(max(total, 1))), note))
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(counts[j], counts[i]) })
	keep := order[:min(auditTop, len(order))]
	slices.Sort(keep)
	for _, i := range keep {
		add(describe(all[i]))
	}
	if others := order[len(keep):]; len(others) > 0 {
		for _, i := range others {
			rest += counts[i]
		}
		label, _, _ := describe(all[0])
		for i := range label {
			label[i] = ""
		}
		label[0] = english.Plural(len(others), other, "")
		add(label, rest, "")
	}
	return result
}
