package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
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
