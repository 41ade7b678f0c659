package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/audit"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/ids"
	"github.com/sortkey/sortkey/migrations"
	"github.com/spf13/cobra"
)

// auditFlags are the flags of audit.
type auditFlags struct {
	audit.Options
	layout              layoutFlags
	since, until, nodes string
}

func (c *app) auditCommand() *cobra.Command {
	var o auditFlags
	cmd := &cobra.Command{
		Use:   "audit TABLE[.COLUMN]...",
		Short: "Check the IDs of tables",
		Long: `Audit reads columns of IDs and reports problems. Without COLUMN, it reads the
primary key. It reads batches in the order of the key's index. Each batch is a
separate read-only statement, so audit keeps no transaction open, needs only
SELECT, and works on a standby. It can miss rows that are inserted or deleted
while it runs. The findings are:

    malformed     not an ID of the type: a negative number (except a spread64),
                  reserved bits set, a uuid that is not a sno, or, for uuid7, a
                  variant other than RFC 9562's
    zero          the zero ID; for uuid7, the nil UUID
    future        the time of the ID is later than the server's clock by more
                  than --future
    apart         the time of the ID and the column --created-at differ by more
                  than --tolerance (a timestamp without time zone is in UTC)
    unknown_node  the node number was never claimed or reserved, and is not in
                  --nodes
    duplicate     the ID stands more than once, in one column or in several
                  (the count is of IDs, not of rows)

To find duplicates across tables and shards, name several tables, or pass
--database several times. Don't name foreign keys, whose IDs also stand in the
referenced table. A row that moves to another table meanwhile can look like a
duplicate. Audit compares only columns of one type with each other.

A node number is known if any of the databases has a reservation or a claim of
it, even a cancelled or released one, in a pool of the layout. Name the numbers
that programs have in their configuration with --nodes. The check needs SELECT
on the view node_status and the table node_pool of the installation.

The type comes from the domain or default of the column, from its comment after
sortkey rekey, or from the partition settings of its table. Another uuid column
has the type sno if one of its first and last 100 keys is a sno, and uuid7
otherwise. In other cases, pass --type. The layouts of the installation apply,
unless --epoch or --bits is set. A role without USAGE on the schema must set one
of them for snowflake and snowflake-si.

Columns of the type uuid7 can have UUIDs of all versions, and audit counts them
by version. The checks of times, and the days, are of versions 1, 6 and 7.
--since and --until also read UUIDs of other versions that are between the
bounds.

The exit code is 1 if there is a finding. Audit prints results only when it has
read all rows.`,
		Example: `  sortkey audit orders
  sortkey audit orders.id events.id --type snowflake --created-at created_at
  sortkey audit orders -d postgres://shard1/app -d postgres://shard2/app
  sortkey audit orders --since -7d --rate 50000 --output json`,
		Args: asUsage(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.checkAudit(cmd, &o); err != nil {
				return err
			}
			r, err := audit.Run(cmd.Context(), c.Terminal, args, &o.Options)
			switch {
			case err != nil:
				return err
			case c.JSON():
				err = c.PrintJSON(r)
			default:
				err = c.printAudit(r, len(o.Databases) > 1)
			}
			if err == nil && slices.ContainsFunc(r.Findings, func(f audit.Finding) bool { return f.Count > 0 }) {
				err = errFound
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringArrayVarP(&o.Databases, "database", "d", nil, "`URL` or connection string of a database; repeat it for shards (default: DATABASE_URL, or PGHOST and libpq's other variables)")
	f.StringVar(&o.Schema, "schema", migrations.DefaultSchema, "`name` of the schema with the SQL of sortkey")
	f.StringVar(&o.Type, "type", "", "`type` of the IDs: "+strings.Join(ids.Names(), ", "))
	o.layout.add(cmd)
	f.StringVar(&o.CreatedAt, "created-at", "", "`column` with the time at which each row was created")
	f.DurationVar(&o.Tolerance, "tolerance", time.Minute, "largest `difference` between an ID's time and --created-at")
	f.DurationVar(&o.Future, "future", time.Second, "largest `distance` of an ID's time after the server's clock")
	f.StringVar(&o.since, "since", "", "`time` of the first IDs to read")
	f.StringVar(&o.until, "until", "", "`time` before which the IDs to read end")
	f.StringVar(&o.nodes, "nodes", "", "node `numbers` of programs without a claim, such as 0-31,1023")
	f.StringVar(&o.After, "after", "", "`key` after which to begin, to continue an audit that was stopped")
	f.IntVar(&o.Batch, "batch", 10_000, "`number` of rows per statement")
	f.IntVar(&o.Rate, "rate", 0, "largest `number` of rows per second (default: no limit)")
	f.IntVar(&o.Examples, "examples", 5, "`number` of examples per finding")
	_ = cmd.RegisterFlagCompletionFunc("type", cobra.FixedCompletions(ids.Names(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// checkAudit checks the flags, and sets the options that need parsing.
func (c *app) checkAudit(cmd *cobra.Command, o *auditFlags) error {
	switch {
	case o.Type != "" && !slices.Contains(ids.Names(), o.Type):
		return cli.Usagef("--type %q: want %s", o.Type, strings.Join(ids.Names(), ", "))
	case o.layout != layoutFlags{} && o.Type == "":
		return cli.Usagef("--epoch and --bits need --type snowflake or snowflake-si")
	case cmd.Flags().Changed("tolerance") && o.CreatedAt == "":
		return cli.Usagef("--tolerance needs --created-at, the column to compare with")
	case o.Tolerance < 0 || o.Future < 0:
		return cli.Usagef("--tolerance and --future must not be negative")
	case o.Batch < 1 || o.Batch > 1_000_000:
		return cli.Usagef("--batch %d: want 1 to 1000000", o.Batch)
	case o.Rate < 0 || o.Examples < 0:
		return cli.Usagef("--rate and --examples must not be negative")
	}
	if o.nodes != "" {
		o.Known = map[int]bool{}
		for numbers := range strings.SplitSeq(o.nodes, ",") {
			text, last, isRange := strings.Cut(numbers, "-")
			low, err := parseNumber(text)
			high := low
			if isRange && err == nil {
				high, err = parseNumber(last)
			}
			if err != nil || high < low {
				return cli.Usagef("--nodes %q: want numbers and ranges from 0 to 65535, such as 0-31,1023", o.nodes)
			}
			for n := low; n <= high; n++ {
				o.Known[n] = true
			}
		}
	}
	for _, bound := range []struct {
		flag, value string
		time        *time.Time
	}{{"since", o.since, &o.Since}, {"until", o.until, &o.Until}} {
		if bound.value == "" {
			continue
		}
		var err error
		if *bound.time, err = c.parseTime(bound.value); err != nil {
			return fmt.Errorf("--%s: %w", bound.flag, err)
		}
	}
	if o.since != "" && o.until != "" && !o.Since.Before(o.Until) {
		return cli.Usagef("--since %s is not before --until %s", o.since, o.until)
	}
	if o.layout != (layoutFlags{}) {
		if _, err := c.format(o.Type, o.layout); err != nil { // reject wrong flags
			return err
		}
		o.Layout = func(config *migrations.Config) error { return c.applyLayout(config, o) }
	}
	if err := (migrations.Config{Schema: o.Schema}).Validate(); err != nil {
		return invalidConfig(err)
	}
	if len(o.Databases) == 0 {
		o.Databases = []string{""} // of the environment
	}
	if o.Rate > 0 {
		o.Batch = min(o.Batch, o.Rate)
	}
	return nil
}

// applyLayout sets the layout of the flags.
func (c *app) applyLayout(config *migrations.Config, o *auditFlags) error {
	widths, err := parseBits(o.layout.bits)
	if err != nil {
		return err
	}
	epoch, err := c.epochFlag("epoch", o.layout.epoch)
	if err != nil {
		return err
	}
	if o.Type == "snowflake" {
		config.Snowflake, err = snowflakeLayout(epoch, widths)
		return err
	}
	if epoch.IsZero() {
		epoch = config.SnowflakeSI.BaseClock
	}
	config.SnowflakeSI, err = snowflakeSILayout(epoch, widths)
	return err
}

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
