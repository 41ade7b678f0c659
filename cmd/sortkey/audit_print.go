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
	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
)

// auditTop is the number of nodes and days in the tables.
const auditTop = 10

// printAudit prints the result. databases is set if there are several.
func (c *app) printAudit(r *audit.Result, databases bool) error {
	if c.JSON() {
		return c.PrintJSON(r)
	}
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
			row[1] = cli.Painted{Color: text.FgRed, Text: humanize.Comma(f.Count)}
		}
		var lines []string
		for _, e := range f.Examples {
			lines = append(lines, describeExample(e, f.Finding, name))
		}
		if f.More && len(lines) > 0 {
			lines = append(lines, "...")
		}
		for _, reason := range f.Reasons {
			lines = append(lines, "not checked: "+reason)
		}
		if len(lines) == 0 {
			lines = []string{""}
		}
		for i, line := range lines {
			if i > 0 {
				row = table.Row{"", "", ""}
			}
			row[2] = line
			findings = append(findings, row)
		}
	}
	var versions, days []share
	for _, v := range r.Versions {
		versions = append(versions, share{table.Row{v.Version}, v.Rows, ""})
	}
	for _, d := range r.Days {
		days = append(days, share{table.Row{d.Day}, d.Rows, ""})
	}
	for i, t := range []struct {
		header table.Row
		rows   []table.Row
	}{
		{table.Row{"COLUMN", "TYPE", "ROWS", "NULLS", "FIRST", "LAST"}, columns},
		{table.Row{"FINDING", "COUNT", "EXAMPLES"}, findings},
		{table.Row{"TYPE", "NODE", "ROWS", "SHARE", ""}, shareRows("other", nodeShares(r.Nodes))},
		{table.Row{"UUID VERSION", "ROWS", "SHARE"}, shareRows("other version", versions)},
		{table.Row{"DAY", "ROWS", "SHARE"}, shareRows("other day", days)},
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

// A share is a row of a table that counts rows.
type share struct {
	label table.Row
	rows  int64
	note  string
}

func nodeShares(nodes []audit.Node) (all []share) {
	for _, n := range nodes {
		s := share{table.Row{n.Type, n.Node}, n.Rows, ""}
		if n.Known != nil && !*n.Known {
			s.note = "unknown"
		}
		all = append(all, s)
	}
	return all
}

// shareRows returns the shares with the most rows, in their order, and the others together.
func shareRows(other string, all []share) (result []table.Row) {
	var total int64
	order := make([]int, len(all))
	for i, s := range all {
		order[i] = i
		total += s.rows
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(all[j].rows, all[i].rows) })
	keep, others := order[:min(auditTop, len(order))], order[min(auditTop, len(order)):]
	slices.Sort(keep)
	add := func(s share) {
		result = append(result, append(s.label, humanize.Comma(s.rows), fmt.Sprintf("%.1f%%", 100*float64(s.rows)/float64(max(total, 1))), s.note))
	}
	for _, i := range keep {
		add(all[i])
	}
	if len(others) > 0 {
		rest := share{label: table.Row{english.Plural(len(others), other, ""), ""}[:len(all[0].label)]}
		for _, i := range others {
			rest.rows += all[i].rows
		}
		add(rest)
	}
	return result
}
