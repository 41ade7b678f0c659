package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/rekey"
	"github.com/spf13/cobra"
)

// rekeyFlags are the flags of the commands of rekey.
type rekeyFlags struct {
	databaseFlags
	options rekey.Options
	dryRun  bool
}

func (f *rekeyFlags) add(cmd *cobra.Command) {
	f.databaseFlags.add(cmd)
	cmd.Flags().StringVar(&f.options.Schema, "views", rekey.DefaultSchema, "`name` of the schema with the views for the new version of the programs")
}

// addStep adds the flags of the steps.
func (f *rekeyFlags) addStep(cmd *cobra.Command) {
	f.add(cmd)
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "print the SQL of the step without running it")
	cmd.Flags().DurationVar(&f.options.LockTimeout, "lock-timeout", 100*time.Millisecond, "`duration` of an attempt to get a lock behind which other sessions wait")
	cmd.Flags().DurationVar(&f.options.LockWait, "lock-wait", 10*time.Minute, "`duration` of all attempts")
}

func (c *app) rekeyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rekey",
		Short: "Replace the primary key of a table in use",
		Long: `Rekey replaces the primary keys of tables in use, and all references to them, with
IDs that sort by time. Programs keep reading and writing the tables.

The steps, in order:

    inspect    check the tables, and print the plan
    expand     add the new columns, and triggers that keep both keys equal
    backfill   fill the new columns of existing rows
    validate   add indexes, constraints, and views for the new version of the
               programs; then replace the programs
    contract   drop the old columns, and rename the new ones

Each step can be repeated after an error or an interrupt. Status prints the next
step. Abort restores the tables until contract has begun to change them.

The file FILE describes the keys in JSON:

    {
      "keys": [{
        "table": "orders",
        "format": "snowflake",
        "node": 1022,
        "backfill_node": 1023,
        "times": {"column": "created_at"}
      }],
      "references": [{"table": "audit_log", "column": "order_id", "to": "orders"}]
    }

The formats are snowflake, snowflake_si, uid60, sno and uuid7. The last one and
uid60 have no node numbers. References are columns that refer to a key without a
foreign key. Columns with a foreign key are found by themselves. Package rekey
documents the fields of Spec. Reserve no node number before: expand does so.`,
		Args: asUsage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.rekeyInspectCommand(), c.rekeyExpandCommand(),
		c.rekeyStepCommand(rekey.StepBackfill, "Fill the new columns of existing rows", `Backfill fills the new columns in small batches, and repeats that until no row is
left. It adapts the size of the batches to --batch-time, and pauses while a
replica is further behind than --max-lag, or the archive of the WAL is behind. It
slows down while autovacuum is behind. An interrupt loses at most one batch.`, rekey.Backfill),
		c.rekeyStepCommand(rekey.StepValidate, "Add indexes, constraints and views", `Validate creates the indexes without blocking writers, adds the constraints,
compares both keys of all rows, and creates the views for the new version of the
programs. After that, replace the programs. The new version uses the same SQL,
and the schema of the views first in its search_path.`, rekey.Validate),
		c.rekeyStepCommand(rekey.StepContract, "Drop the old columns, and rename the new ones", `Contract ends the rekey. No program of the old version may run any more. It
compares both keys of all rows, and looks for objects that were created on old
columns since expand, before it changes anything. It also tries the triggers of
the tables on a row with the new keys, and rolls that back. Then it replaces the
columns of one table after another. From then on, there is no way back.

On a terminal, contract asks for the name of the schema of the views first.
Elsewhere it needs --yes.`, rekey.Contract),
		c.rekeyStepCommand(rekey.StepAbort, "Restore the tables", `Abort drops the new columns and all else that the other steps created. Rows that
programs have written by either key stay. Stop the programs of the new version
first: their IDs are lost.`, rekey.Abort),
		c.rekeyStatusCommand())
	return cmd
}

// readSpec reads a file with a Spec.
func readSpec(name string) (rekey.Spec, error) {
	var spec rekey.Spec
	text, err := os.ReadFile(name)
	if err != nil {
		return spec, cli.Usage(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&spec); err != nil {
		return spec, cli.Usagef("%s: %s; sortkey rekey --help shows an example", name, strings.TrimPrefix(err.Error(), "json: "))
	}
	return spec, nil
}

func (c *app) rekeyInspectCommand() *cobra.Command {
	var flags rekeyFlags
	var sql bool
	cmd := &cobra.Command{
		Use:   "inspect FILE",
		Short: "Check the tables, and print the plan",
		Long: `Inspect prints the columns that change, what to note, and the problems: properties
of the tables that rekey can't carry over, each with a remedy. It changes
nothing, but reads the tables. If there are problems, the exit code is 1.

With --sql, it prints the SQL of all steps.`,
		Example: `  sortkey rekey inspect orders.json
  sortkey rekey inspect orders.json --sql > plan.sql`,
		Args: asUsage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			spec, err := readSpec(args[0])
			if err != nil {
				return err
			}
			return flags.run(c, cmd, func(ctx context.Context, db database) error {
				plan, err := rekey.Inspect(ctx, db.std, spec, flags.options)
				if err != nil {
					return err
				}
				return c.printPlan(plan, sql)
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&sql, "sql", false, "print the SQL of all steps")
	return cmd
}

// run connects to the database and calls f.
func (f *rekeyFlags) run(c *app, cmd *cobra.Command, fn func(ctx context.Context, db database) error) error {
	db, config, err := f.openInstalled(cmd.Context())
	if err != nil {
		return err
	}
	defer db.Close()
	f.options.Config = config
	shown := time.Now()
	began := time.Now()
	f.options.Progress = func(p rekey.Progress) {
		switch now := time.Now(); {
		case p.Done:
			c.printAction(p, now.Sub(began))
			began, shown = now, now
		case now.Sub(shown) < cli.ProgressInterval:
		case p.Waiting != "":
			shown = now
			fmt.Fprintf(c.Errs, "%s: waiting: %s\n", c.Printable(p.Action), c.Printable(p.Waiting))
		case p.Phase != "":
			shown = now
			fmt.Fprintf(c.Errs, "%s: %s\n", c.Printable(p.Action), p.Phase)
		default:
			shown = now
			fmt.Fprintf(c.Errs, "%s: %s\n", c.Printable(p.Action), filled(p))
		}
	}
	err = fn(cmd.Context(), db)
	switch {
	case errors.Is(err, errFound), cmd.Context().Err() != nil:
		return err
	case errors.Is(err, rekey.ErrInconsistent), errors.Is(err, rekey.ErrRefused):
		if err := c.printFinding(strings.TrimPrefix(err.Error(), "rekey: ")); err != nil {
			return err
		}
		return errFound
	case err != nil && strings.HasPrefix(err.Error(), "rekey: Options.Schema:"):
		return cli.Usagef("--views%s", strings.TrimPrefix(err.Error(), "rekey: Options.Schema"))
	}
	return db.explain(cmd.Context(), err, config.Schema)
}

// filled describes how far a backfill is.
func filled(p rekey.Progress) string {
	text := fmt.Sprintf("%s of about %s rows", humanize.Comma(p.Rows), humanize.Comma(p.Total))
	if p.Rate > 0 {
		text += ", " + humanize.Comma(int64(p.Rate)) + " rows/s"
	}
	if left := p.Left.Round(time.Second); left > 0 {
		text += ", " + left.String() + " left"
	}
	return text
}

// printAction prints an action that has ended.
func (c *app) printAction(p rekey.Progress, took time.Duration) {
	if c.JSON() {
		_ = c.PrintJSON(struct {
			Step    rekey.Step `json:"step"`
			Action  string     `json:"action"`
			Seconds float64    `json:"seconds"`
		}{p.Step, p.Action, took.Round(time.Millisecond).Seconds()})
		return
	}
	fmt.Fprintf(c.Out, "%s in %s\n", c.Printable(p.Action), took.Round(time.Millisecond))
}

// printFinding prints the reason why a step can't end.
func (c *app) printFinding(finding string) error {
	if c.JSON() {
		return c.PrintJSON(struct {
			Finding string `json:"finding"`
		}{finding})
	}
	_, err := fmt.Fprintln(c.Out, finding)
	return err
}

func (c *app) printPlan(plan *rekey.Plan, sql bool) error {
	switch {
	case c.JSON():
		if err := c.PrintJSON(plan); err != nil {
			return err
		}
	case sql && len(plan.Problems) == 0:
		return c.printSQL(plan.Actions)
	default:
		var rows []table.Row
		for _, t := range plan.Tables {
			for _, column := range t.Columns {
				to := "key"
				if column.To != "" {
					to = "refers to " + column.To
				}
				rows = append(rows, table.Row{t.Name, humanize.Comma(t.Rows), column.Name, column.OldType, column.NewType, to})
			}
		}
		if err := c.PrintTable(table.Row{"Table", "Rows", "Column", "From", "To", "Use"}, rows); err != nil {
			return err
		}
		for _, list := range []struct {
			title    string
			problems []rekey.Problem
		}{{"note", plan.Notes}, {"problem", plan.Problems}} {
			for _, p := range list.problems {
				if _, err := fmt.Fprintf(c.Out, "\n%s: %s %s\n  %s\n", list.title, c.Printable(p.Object), c.Printable(p.Reason), c.Printable(p.Remedy)); err != nil {
					return err
				}
			}
		}
	}
	if len(plan.Problems) > 0 {
		return errFound
	}
	return nil
}

// printSQL prints the statements of actions.
func (c *app) printSQL(actions []rekey.Action) error {
	for i, a := range actions {
		if c.JSON() {
			if err := c.PrintJSON(a); err != nil {
				return err
			}
			continue
		}
		if i > 0 {
			fmt.Fprintln(c.Out)
		}
		kind := map[string]string{"backfill": ": a batch, and a query for more rows", "check": ": each row is an error", "trial": ": rolled back"}[a.Kind]
		if _, err := fmt.Fprintf(c.Out, "-- %s: %s%s\n%s;\n", a.Step, c.Printable(a.Title), kind, strings.Join(a.SQL, ";\n")); err != nil {
			return err
		}
	}
	return nil
}

func (c *app) rekeyExpandCommand() *cobra.Command {
	var flags rekeyFlags
	cmd := &cobra.Command{
		Use:   "expand FILE",
		Short: "Add the new columns, and triggers that keep both keys equal",
		Long: `Expand inspects the tables, and adds the new columns and the triggers, one table
after another. New rows get both keys from then on. If inspect finds problems,
expand changes nothing.`,
		Example: `  sortkey rekey expand orders.json --dry-run
  sortkey rekey expand orders.json`,
		Args: asUsage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			spec, err := readSpec(args[0])
			if err != nil {
				return err
			}
			return flags.run(c, cmd, func(ctx context.Context, db database) error {
				if !flags.dryRun {
					return rekey.Expand(ctx, db.std, spec, flags.options)
				}
				plan, err := rekey.Inspect(ctx, db.std, spec, flags.options)
				if err != nil {
					return err
				}
				if len(plan.Problems) > 0 {
					return c.printPlan(plan, false)
				}
				return c.printSQL(plan.Step(rekey.StepExpand))
			})
		},
	}
	flags.addStep(cmd)
	return cmd
}

// rekeyStepCommand returns the command of a step that needs no FILE.
func (c *app) rekeyStepCommand(step rekey.Step, short, long string, do func(context.Context, *sql.DB, rekey.Options) error) *cobra.Command {
	var flags rekeyFlags
	var yes bool
	cmd := &cobra.Command{
		Use:   string(step),
		Short: short,
		Long:  long,
		Args:  asUsage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ask := step == rekey.StepContract && !yes && !flags.dryRun
			if ask && !cli.IsTerminal(c.In) {
				return cli.Usagef("standard input is not a terminal, so contract cannot ask for confirmation: pass --yes to drop the old keys")
			}
			return flags.run(c, cmd, func(ctx context.Context, db database) error {
				if ask {
					if err := c.confirmContract(ctx, db, flags.options); err != nil {
						return err
					}
				}
				if !flags.dryRun {
					return do(ctx, db.std, flags.options)
				}
				status, err := rekey.ReadStatus(ctx, db.std, flags.options)
				if err != nil {
					return err
				}
				actions := slices.DeleteFunc(status.Actions, func(a rekey.Action) bool { return a.Step != step })
				if len(actions) == 0 {
					return fmt.Errorf("%s has nothing to do; the next step is %s", step, status.Next)
				}
				return c.printSQL(actions)
			})
		},
	}
	flags.addStep(cmd)
	if step == rekey.StepContract {
		cmd.Flags().BoolVarP(&yes, "yes", "y", false, "drop the old keys without confirmation")
	}
	if step == rekey.StepBackfill {
		cmd.Flags().DurationVar(&flags.options.BatchTime, "batch-time", 50*time.Millisecond, "`duration` that a batch should take, and for which its rows stay locked")
		cmd.Flags().DurationVar(&flags.options.MaxLag, "max-lag", 10*time.Second, "`duration` that a replica may be behind; negative: no limit")
		cmd.Flags().Int64Var(&flags.options.MaxDead, "max-dead", 5_000_000, "`count` of dead rows of a table beyond which backfill runs at a quarter of its rate, if autovacuum is behind; negative: no limit")
		cmd.Flags().Int64Var(&flags.options.MaxUnarchived, "max-unarchived", 1<<30, "`bytes` of WAL that may wait for the archive; negative: no limit")
		cmd.Flags().Float64Var(&flags.options.Pause, "pause", 0, "`share` of time in which backfill pauses, from 0 to below 1")
	}
	return cmd
}

// confirmContract asks for the name of the schema of the views, if contract is the next step.
func (c *app) confirmContract(ctx context.Context, db database, o rekey.Options) error {
	s, err := rekey.ReadStatus(ctx, db.std, o)
	if err != nil || s.Next != rekey.StepContract {
		return err // contract reports the next step
	}
	var database string
	if err := cli.ReadRow(ctx, db, []any{&database}, "SELECT current_database()"); err != nil {
		return err
	}
	tables := make([]string, len(s.Spec.Keys))
	for i, k := range s.Spec.Keys {
		tables[i] = c.Printable(k.Table)
	}
	return c.confirm(ctx, fmt.Sprintf("Contract drops the old keys of %s in database %s, permanently. No program of the old version may run.", strings.Join(tables, ", "), c.Printable(database)),
		o.Schema, "contract changed nothing")
}

// A rekeyStatus is the result of status.
type rekeyStatus struct {
	Tables    []string   `json:"tables"`
	Step      rekey.Step `json:"step,omitempty"`
	Next      rekey.Step `json:"next"`
	Action    string     `json:"action,omitempty"`
	Left      int        `json:"actions_left"`
	StartedAt *time.Time `json:"started_at"`
	UpdatedAt *time.Time `json:"updated_at"`
}

func (c *app) rekeyStatusCommand() *cobra.Command {
	var flags rekeyFlags
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Print the next step",
		Long: `Status prints the tables of the rekey, the last step, and the step to run now. If
they are equal, the step is incomplete, and ACTION is the action that comes next.`,
		Args: asUsage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return flags.run(c, cmd, func(ctx context.Context, db database) error {
				s, err := rekey.ReadStatus(ctx, db.std, flags.options)
				if err != nil {
					return err
				}
				return c.printRekeyStatus(s, flags.options.Schema)
			})
		},
	}
	flags.add(cmd)
	return cmd
}

func (c *app) printRekeyStatus(s rekey.Status, views string) error {
	if s.Step == "" && !c.JSON() {
		_, err := fmt.Fprintf(c.Out, "no rekey with schema %s; the next step is expand\n", views)
		return err
	}
	status := rekeyStatus{Tables: []string{}, Step: s.Step, Next: s.Next, Action: s.Action}
	for _, k := range s.Spec.Keys {
		status.Tables = append(status.Tables, k.Table)
	}
	for _, a := range s.Actions {
		if a.Step == s.Next {
			status.Left++
		}
	}
	if s.Step != "" {
		status.StartedAt, status.UpdatedAt = &s.StartedAt, &s.UpdatedAt
	}
	if c.JSON() {
		return c.PrintJSON(status)
	}
	rows := []table.Row{{"tables", strings.Join(status.Tables, ", ")}, {"last step", string(s.Step)}, {"next step", string(s.Next)}}
	if status.Action != "" {
		rows = append(rows, table.Row{"next action", fmt.Sprintf("%s (%d left)", status.Action, status.Left)})
	}
	return c.PrintBlock(append(rows,
		table.Row{"started", fmt.Sprintf("%s (%s)", stamp(s.StartedAt), c.ago(s.StartedAt))},
		table.Row{"updated", fmt.Sprintf("%s (%s)", stamp(s.UpdatedAt), c.ago(s.UpdatedAt))}))
}
