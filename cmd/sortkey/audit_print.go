package main

import (
	"fmt"
	"slices"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/ids"
)

// An auditResult is the result for a column.
type auditResult struct {
	Table    string         `json:"table"`
	Column   string         `json:"column"`
	Type     string         `json:"type"`
	Rows     int64          `json:"rows"` // without nulls
	Nulls    int64          `json:"nulls"`
	Serial   int64          `json:"serial"` // up to --serial-until
	First    *ids.Time      `json:"first"`  // null without an ID, and for a spread64
	Last     *ids.Time      `json:"last"`
	Findings []auditFinding `json:"findings"`
	Versions []auditVersion `json:"versions,omitempty"` // of UUIDs
	Hidden   bool           `json:"row_level_security"` // can hide rows from the role
}

// An auditFinding is the result of a check.
type auditFinding struct {
	Finding string  `json:"finding"`
	Count   *int64  `json:"count"` // null if it wasn't checked
	Example *string `json:"example"`
	Note    string  `json:"note,omitempty"`
}

// An auditVersion is a version of UUIDs with its rows.
type auditVersion struct {
	Version string `json:"version"`
	Rows    int64  `json:"rows"`
}

// found reports whether there is a finding.
func (r auditResult) found() bool {
	return slices.ContainsFunc(r.Findings, func(f auditFinding) bool { return f.Count != nil && *f.Count > 0 })
}

// printAuditSQL prints the statements.
func (c *app) printAuditSQL(keys []*auditKey) error {
	separator := ""
	for _, k := range keys {
		for _, sql := range []string{k.counts, k.duplicates} {
			if sql == "" {
				continue
			}
			if err := c.Print(map[string]string{"column": k.String(), "sql": sql}, "%s-- %s\n%s;\n", separator, cli.Printable(k.String()), sql); err != nil {
				return err
			}
			separator = "\n"
		}
	}
	return nil
}

func (c *app) printAudit(results []auditResult) error {
	var findings, versions []table.Row
	hidden := ""
	err := cli.PrintRows(c.Terminal, results, table.Row{"Column", "Type", "Rows", "Nulls", "Serial", "First", "Last"}, func(r auditResult) table.Row {
		name := r.Table + "." + r.Column
		for _, f := range r.Findings {
			findings = append(findings, f.row(name))
		}
		for _, v := range r.Versions {
			versions = append(versions, table.Row{name, v.Version, humanize.Comma(v.Rows)})
		}
		if r.Hidden {
			hidden += fmt.Sprintf("\nRow-level security can hide rows of %s from the role.\n", cli.Printable(name))
		}
		row := table.Row{name, r.Type, humanize.Comma(r.Rows), humanize.Comma(r.Nulls), humanize.Comma(r.Serial)}
		if r.First != nil {
			row = append(row, stamp(r.First.Time), stamp(r.Last.Time))
		}
		return row
	})
	if err != nil || c.JSON() {
		return err
	}
	fmt.Fprintln(c.Out)
	if err := c.PrintTable(table.Row{"Column", "Finding", "Count", "Example"}, findings); err != nil {
		return err
	}
	if versions != nil {
		fmt.Fprintln(c.Out)
	}
	if err := c.PrintTable(table.Row{"Column", "UUID version", "Rows"}, versions); err != nil {
		return err
	}
	return c.note("%s", hidden)
}

// row returns the finding as a row of a table.
func (f auditFinding) row(column string) table.Row {
	var count any = "-"
	if f.Count != nil {
		count = humanize.Comma(*f.Count)
		if *f.Count > 0 {
			count = cli.Painted{Color: text.FgRed, Text: humanize.Comma(*f.Count)}
		}
	}
	example := fmt.Sprint(cli.Cell(f.Example))
	if example != "" && f.Note != "" {
		example += "; "
	}
	return table.Row{column, f.Finding, count, example + f.Note}
}
