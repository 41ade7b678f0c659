package main

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/rekey"
	"github.com/spf13/cobra"
)

func (c *app) rekeyExpandCommand() *cobra.Command {
	var flags rekeyFlags
	var spec rekey.Spec
	return flags.stepCommand(c, &cobra.Command{
		Use:   "expand FILE",
		Short: "Add the new columns, and triggers that keep both keys equal",
		Long: `Expand inspects the tables, and adds the new columns and the triggers, one table
after another. New rows get both keys from then on. If inspect finds problems,
expand changes nothing.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeJSON,
		PreRunE:           readSpecTo(&spec),
	}, func(ctx context.Context, db database, _ []string) error {
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
}

// rekeyStepCommand returns the command of a step that needs no FILE.
func (c *app) rekeyStepCommand(step rekey.Step, short, long string, do func(context.Context, *sql.DB, rekey.Options) error) *cobra.Command {
	var flags rekeyFlags
	var yes bool
	asks := func() bool { return step == rekey.StepContract && !yes && !flags.dryRun }
	cmd := flags.stepCommand(c, &cobra.Command{
		Use:   string(step),
		Short: short,
		Long:  long,
		Args:  cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error {
			if asks() && !cli.IsTerminal(c.In) {
				return cli.Usagef("standard input is not a terminal, so contract cannot ask for confirmation: pass --yes to drop the old keys")
			}
			return nil
		},
	}, func(ctx context.Context, db database, _ []string) error {
		if asks() {
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
	database, err := db.name(ctx)
	if err != nil {
		return err
	}
	tables := make([]string, len(s.Spec.Keys))
	for i, k := range s.Spec.Keys {
		tables[i] = cli.Printable(k.Table)
	}
	return c.confirm(ctx, fmt.Sprintf("Contract drops the old keys of %s in database %s, permanently. No program of the old version may run.", strings.Join(tables, ", "), cli.Printable(database)),
		o.Schema, "contract changed nothing")
}
