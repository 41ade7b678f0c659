package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/jackc/pgx/v5"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/internal/dbhealth"
	"github.com/sortkey/sortkey/internal/trust"
	"github.com/sortkey/sortkey/migrations"
	"github.com/spf13/cobra"
)

func (c *app) partitionsCommand() *cobra.Command {
	return group("partitions", "Maintain the partitions of tables by time", `Partitions shows and maintains the partitions of the tables that the SQL function
manage_partitions manages.`, c.partitionsListCommand(), c.partitionsRunCommand())
}

// mayMaintain is the privilege for the functions of partitions.
const mayMaintain = "USAGE ON SCHEMA $s, $s_internal"

func (c *app) partitionsListCommand() *cobra.Command {
	return installedCommand(&cobra.Command{
		Use:   "list [TABLE]",
		Short: "List the managed tables, or the partitions of one",
		Long: `List prints the managed tables, and below them the results of doctor about them:

    HORIZON    the end of the partitions that follow the current one without a
               gap; later rows go to the default partition, or are an error
    DEFAULT    the rows in the default partition; above 10,000 an estimate
    TO DO      the steps that maintenance would take now

With a table, named as in SQL, it prints the partitions of that table, with an
estimate of their rows. Times are in UTC.

The steps and bounds need USAGE on both schemas of the installation, and the
steps and the rows need SELECT on the default partition. List doesn't examine
tables of roles that the session doesn't trust.`,
		Args: cobra.MaximumNArgs(1),
	}, func(ctx context.Context, db database, args []string) error {
		if len(args) == 1 {
			return c.listPartitions(ctx, db, args[0])
		}
		return c.listManaged(ctx, db)
	}, mayMaintain)
}

// exactRows is the highest number of rows that list counts in a default partition.
const exactRows = 10_000

// listManaged prints the managed tables. If it cannot plan the steps of some, it
// prints all tables and returns an error. It doesn't examine tables of roles that the
// session doesn't trust.
func (c *app) listManaged(ctx context.Context, db database) error {
	health := dbhealth.New(db.std, dbhealth.Options{Config: db.Config, Now: c.Now, Areas: []string{"partitions"}})
	tables, err := health.ManagedTables(ctx)
	if err != nil {
		return err
	}
	var problems []error
	for _, t := range tables {
		if t.Skipped != "" {
			continue
		}
		if err := inspect(ctx, health, t); err != nil {
			if ctx.Err() != nil {
				return err
			}
			err = db.explain(ctx, err, mayMaintain)
			t.Problem = err.Error()
			problems = append(problems, fmt.Errorf("%s: %w", t.Table, err))
		}
	}
	if len(tables) == 0 {
		return c.note("no managed tables: call %s.manage_partitions for a partitioned table\n", db.Schema)
	}
	report, err := health.Run(ctx)
	if err != nil {
		return err
	}
	findings := slices.DeleteFunc(report.Findings, func(f dbhealth.Finding) bool { return f.Level == dbhealth.Unknown }) // the problems above
	var results []managedTable
	for _, t := range tables {
		results = append(results, managedTable{t, findingsOf(t.Table, findings)})
	}
	header := table.Row{"Table", "Format", "Every", "Premake", "Retention", "Partitions", "Size", "Horizon", "Default", "To do"}
	if err := cli.PrintRows(c.Terminal, results, header, c.managedRow); err != nil {
		return err
	}
	if !c.JSON() {
		problems = append(problems, c.printFindings(findings))
	}
	return errors.Join(problems...)
}

// A managedTable is a table of list, and the results of doctor about it.
type managedTable struct {
	*dbhealth.ManagedTable
	Findings []dbhealth.Finding `json:"findings"` // that count
}

// inspect sets the fields that need privileges for the table.
func inspect(ctx context.Context, health *dbhealth.Examination, t *dbhealth.ManagedTable) error {
	if err := health.ReadHorizon(ctx, t); err != nil {
		return err
	}
	if t.DefaultPartition != nil {
		rows, err := health.CountDefaultRows(ctx, t, exactRows+1)
		if err != nil {
			return err
		}
		if rows > exactRows && t.Estimate != nil {
			rows = max(rows, *t.Estimate)
		}
		t.DefaultRows = &rows
	}
	return health.ReadSteps(ctx, t)
}

func (c *app) managedRow(t managedTable) table.Row {
	retention, horizon, rows, todo := "keep", "-", "-", "?"
	if t.Retention != nil {
		retention = t.RetentionAction + " after " + *t.Retention
	}
	switch {
	case t.Horizon != nil && t.HorizonSeconds != nil:
		horizon = fmt.Sprintf("%s (%s)", t.Horizon, c.ago(t.Horizon.Time))
	case t.Horizon != nil:
		horizon = t.Horizon.String()
	case t.Problem != "", t.Skipped != "":
		horizon = "?"
	}
	switch {
	case t.DefaultRows != nil && *t.DefaultRows > exactRows:
		rows = "~" + humanize.Comma(*t.DefaultRows)
	case t.DefaultRows != nil:
		rows = humanize.Comma(*t.DefaultRows)
	case t.DefaultPartition != nil:
		rows = "?"
	}
	if t.Steps != nil {
		var counts []string
		for _, action := range []string{"create", "drain", "default", "detach", "drop"} {
			if n := t.Steps[action]; n > 0 {
				counts = append(counts, fmt.Sprintf("%s %d", action, n))
			}
		}
		todo = cmp.Or(strings.Join(counts, ", "), "-")
	}
	return table.Row{t.Table, t.Format, t.Every, t.Premake, retention, t.Partitions, humanize.IBytes(uint64(t.Bytes)), horizon, rows, todo}
}

// A partition is a result of list.
type partition struct {
	Partition string           `json:"partition"`
	From      *dbhealth.Moment `json:"from"` // nil for the default partition
	To        *dbhealth.Moment `json:"to"`
	Bytes     int64            `json:"bytes"`
	Rows      int64            `json:"rows"`
}

func (c *app) listPartitions(ctx context.Context, db database, name string) error {
	var oid uint32
	var format *string
	qualified, err := db.Qualified(ctx, name)
	if err != nil {
		return err
	}
	if err := cli.ReadRow(ctx, db, []any{&oid}, "SELECT $1::text::regclass::oid", qualified); err != nil {
		return err
	}
	if err := cli.CheckTable(ctx, db.std, trust.Tables, oid); err != nil {
		return err
	}
	err = cli.ReadRow(ctx, db, []any{&format}, db.sql("SELECT (SELECT t.format FROM $s.partitioned_table t WHERE t.parent = $1::oid)"), oid)
	if err != nil {
		return err
	}
	if format == nil {
		return fmt.Errorf("partitions of %s are not managed; call %s.manage_partitions for the table first", name, db.Schema)
	}
	partitions, err := cli.Collect(ctx, db, pgx.RowToStructByName[partition], db.sql(`
		SELECT format('%I.%I', n.nspname, c.relname) AS partition, `+dbhealth.MomentOf("lower(p.times)")+` AS "from", `+dbhealth.MomentOf("upper(p.times)")+` AS "to",
			`+dbhealth.SizeOf+` AS bytes, `+dbhealth.EstimatedRows+` AS rows
		FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_namespace n ON n.oid = c.relnamespace
		LEFT JOIN $s_internal.partition_times($1::oid, $2) p ON p.partition = c.oid
		WHERE i.inhparent = $1 ORDER BY p.times NULLS LAST`), oid, format)
	if err != nil {
		return err
	}
	return cli.PrintRows(c.Terminal, partitions, table.Row{"Partition", "From", "To", "Size", "Rows"}, func(p partition) table.Row {
		var from, to any = "default", ""
		if p.From != nil {
			from, to = p.From, p.To
		}
		return table.Row{p.Partition, from, to, humanize.IBytes(uint64(p.Bytes)), humanize.Comma(p.Rows)}
	})
}

// A partitionStep is a planned, completed or failed step. Its JSON is a result of run.
type partitionStep struct {
	Table     string           `json:"table"`
	Action    string           `json:"action"`
	Partition string           `json:"partition,omitempty"` // "": planning failed
	From      *dbhealth.Moment `json:"from"`                // nil: an open end, or a default partition
	To        *dbhealth.Moment `json:"to"`
	SQL       string           `json:"sql,omitempty"`
	Outcome   string           `json:"outcome"` // planned, done, locked or failed
	Seconds   float64          `json:"seconds,omitempty"`
	Problem   string           `json:"problem,omitempty"`
}

func newPartitionStep(s migrations.PartitionStep, outcome string) partitionStep {
	bound := func(t time.Time) *dbhealth.Moment {
		if t.IsZero() {
			return nil
		}
		m := dbhealth.At(t)
		return &m
	}
	step := partitionStep{Table: s.Table, Action: s.Action, Partition: s.Partition, From: bound(s.From), To: bound(s.To), SQL: s.SQL, Outcome: outcome}
	if s.Err != nil {
		step.Problem = strings.TrimPrefix(s.Err.Error(), "migrations: ")
	}
	return step
}

// String returns the step as a text, such as create public.events_p20261123
// (2026-11-23 to 2026-11-24).
func (s partitionStep) String() string {
	text := s.Action + " " + s.Partition
	switch {
	case s.From != nil && s.To != nil:
		return fmt.Sprintf("%s (%s to %s)", text, s.From, s.To)
	case s.From != nil:
		return fmt.Sprintf("%s (from %s)", text, s.From)
	case s.To != nil:
		return fmt.Sprintf("%s (to %s)", text, s.To)
	}
	return text
}

func (c *app) partitionsRunCommand() *cobra.Command {
	var options migrations.PartitionOptions
	cmd := installedCommand(&cobra.Command{
		Use:   "run [TABLE]",
		Short: "Create partitions ahead, and remove old ones",
		Long: `Run takes the steps that are due, for one table or for all managed tables: it
creates partitions ahead, moves rows out of default partitions, and detaches or
drops partitions older than the retention. Each step is a transaction. With
--dry-run, it prints the SQL of the steps instead.

A step that doesn't get its locks in six attempts is left to the next run, as
are the later steps of that table. If a step is left or fails, the exit code
is 1.

Run it every hour or so. Several runs can overlap. The role needs the privileges
of the tables' owners, and USAGE on both schemas of the installation.`,
		Args: cobra.MaximumNArgs(1),
		PreRunE: func(_ *cobra.Command, args []string) error {
			if t := options.LockTimeout; t < time.Millisecond || t > 24*time.Hour {
				return cli.Usagef("--lock-timeout %s: want 1ms to 24h", t)
			}
			if len(args) == 1 {
				options.Parent = args[0]
			}
			return nil
		},
	}, func(ctx context.Context, db database, _ []string) error { return c.maintain(ctx, db, options) }, mayMaintain)
	cmd.Flags().DurationVar(&options.LockTimeout, "lock-timeout", 100*time.Millisecond, "`duration` that a step waits for a lock behind which other sessions wait")
	cmd.Flags().BoolVar(&options.DryRun, "dry-run", false, "print the steps as SQL, without taking them")
	return cmd
}

// maintain plans or takes steps.
func (c *app) maintain(ctx context.Context, db database, o migrations.PartitionOptions) error {
	if !o.DryRun {
		var standby bool
		if err := cli.ReadRow(ctx, db, []any{&standby}, "SELECT pg_is_in_recovery()"); err != nil {
			return err
		}
		if standby {
			return errors.New("this server is a standby, which takes no steps; connect to the primary, for example with target_session_attrs=read-write in the URL")
		}
	}
	if o.Parent != "" {
		var err error
		if o.Parent, err = db.Qualified(ctx, o.Parent); err != nil {
			return err
		}
	}
	left := false
	began := time.Now()
	o.Progress = func(s migrations.PartitionStep) {
		left = left || s.Err != nil
		_ = c.printStep(s, time.Since(began)) // Err has the error
		began = time.Now()
	}
	steps, err := migrations.MaintainPartitions(ctx, db.std, db.Config, o)
	if o.DryRun {
		separator := ""
		for _, s := range steps {
			step := newPartitionStep(s, "planned")
			_ = c.Print(step, "%s-- %s\nBEGIN;\n%s\nCOMMIT;\n", separator, cli.Printable(step.String()), s.SQL)
			separator = "\n"
		}
		if err == nil && len(steps) == 0 {
			return c.note("nothing to do\n")
		}
	}
	return found(notPrinted(err), left)
}

// notPrinted removes the errors of steps from an error of MaintainPartitions, since
// printStep has printed them.
func notPrinted(err error) error {
	if list, ok := err.(interface{ Unwrap() []error }); ok {
		var left []error
		for _, err := range list.Unwrap() {
			left = append(left, notPrinted(err))
		}
		return errors.Join(left...)
	}
	if errors.Is(err, migrations.ErrPartition) {
		return nil
	}
	return err
}

// printStep prints a step that has ended.
func (c *app) printStep(s migrations.PartitionStep, took time.Duration) error {
	outcome := "done"
	switch {
	case errors.Is(s.Err, migrations.ErrLocked):
		outcome = "locked"
	case s.Err != nil:
		outcome = "failed"
	}
	took = took.Round(time.Millisecond)
	step := newPartitionStep(s, outcome)
	step.Seconds = took.Seconds()
	if s.Err != nil {
		return c.Print(step, "%s: %s\n", outcome, cli.Printable(step.Problem))
	}
	return c.Print(step, "%s in %s\n", cli.Printable(step.String()), took)
}
