package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/internal/dbhealth"
	"github.com/spf13/cobra"
)

func (c *app) doctorCommand() *cobra.Command {
	var ignore []string
	strict := false
	cmd := databaseCommand(&cobra.Command{
		Use:   "doctor",
		Short: "Check a database and suggest remedies",
		Long: `Doctor checks the installation in a database and everything that depends on it,
and prints the results on one page, with a remedy below each problem. It changes
nothing.

Each result is ok, info, a warning, a problem, unknown if the role lacks the
privilege to read it, or skipped: doctor opens no table of a role that the
session doesn't trust. The exit code is 1 if there is a problem, or if the role
cannot read the installation, and with --strict also if there is a warning.

A result that isn't ok has the ID of its rule in brackets; docs/monitoring.md
lists them. Results of a rule don't count with --ignore and its ID, nor for a
table whose comment says so: COMMENT ON TABLE t IS 'sortkey: ignore ID, ID'.`,
		Args: cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error {
			for _, id := range ignore {
				if !slices.Contains(ruleIDs(), id) {
					return cli.Usagef("--ignore %q: want the ID of a rule: %s", id, strings.Join(ruleIDs(), ", "))
				}
			}
			return nil
		},
	}, func(ctx context.Context, db database, _ []string) error {
		report, err := dbhealth.New(db.std, dbhealth.Options{Config: db.Config, Now: c.Now, Ignore: ignore}).Run(ctx)
		if err != nil {
			return err
		}
		return found(c.printReport(report), report.Count(dbhealth.Problem) > 0 || report.Blind || strict && report.Count(dbhealth.Warning) > 0)
	})
	cmd.Flags().StringSliceVar(&ignore, "ignore", nil, "`IDs` of rules whose results don't count")
	completeFlag(cmd, "ignore", ruleIDs())
	strictFlag(cmd, &strict)
	return cmd
}

// ruleIDs returns the IDs of the rules.
func ruleIDs() (ids []string) {
	for _, rule := range dbhealth.Rules() {
		ids = append(ids, rule.ID)
	}
	return ids
}

// printReport prints the report as sections of lines, with remedies below problems.
func (c *app) printReport(r *dbhealth.Report) error {
	if c.JSON() {
		return c.PrintJSON(r)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", c.Paint(text.Bold, "database "+cli.Printable(r.Server.Database)))
	area, suppressed := "", 0
	for _, f := range r.Distinct() {
		if f.Area != area {
			area = f.Area
			fmt.Fprintf(&b, "\n%s\n", c.Paint(text.Bold, area))
		}
		if f.Suppressed != "" {
			suppressed++
		}
		b.WriteString(c.findingText(f))
	}
	var counts []string
	count := func(n int, one, several string) {
		if n > 0 {
			counts = append(counts, english.Plural(n, one, several))
		}
	}
	count(r.Count(dbhealth.Problem), "problem", "")
	count(r.Count(dbhealth.Warning), "warning", "")
	count(r.Count(dbhealth.Unknown), "unknown", "unknown")
	count(r.Count(dbhealth.Skipped), "skipped", "skipped")
	count(suppressed, "suppressed", "suppressed")
	return c.note("%s\n%s\n", b.String(), cmp.Or(strings.Join(counts, ", "), "no problems"))
}

// findingText returns a finding as a line, with its remedy below.
func (c *app) findingText(f dbhealth.Finding) string {
	status, colors := string(f.Level), map[dbhealth.Level]text.Color{dbhealth.OK: text.FgGreen, dbhealth.Warning: text.FgYellow, dbhealth.Problem: text.FgRed, dbhealth.Info: text.FgHiBlack, dbhealth.Unknown: text.FgHiBlack, dbhealth.Skipped: text.FgHiBlack}
	line := f.Subject + ": " + f.Detail
	if f.Level != dbhealth.OK {
		line += " [" + f.ID + "]"
	}
	color := colors[f.Level]
	if f.Suppressed != "" {
		status, color = "ignored", text.FgHiBlack
		line += ", " + f.Suppressed
	}
	result := fmt.Sprintf("  %s%s  %s\n", c.Paint(color, status), strings.Repeat(" ", len(dbhealth.Problem)-len(status)), cli.Printable(line))
	if f.Remedy != "" {
		result += "           → " + cli.Printable(f.Remedy) + "\n"
	}
	return result
}

// findingsOf returns the findings about a pool or a table that count.
func findingsOf(of string, all []dbhealth.Finding) []dbhealth.Finding {
	list := []dbhealth.Finding{}
	for _, f := range all {
		if f.Of == of && f.Counts() {
			list = append(list, f)
		}
	}
	return list
}

// printFindings prints the findings that count below a table.
func (c *app) printFindings(findings []dbhealth.Finding) error {
	var b strings.Builder
	for _, f := range findings {
		if f.Counts() {
			b.WriteString(c.findingText(f))
		}
	}
	if b.Len() == 0 {
		return nil
	}
	return c.note("\n%s", b.String())
}
