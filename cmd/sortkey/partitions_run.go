package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/internal/dbhealth"
	"github.com/sortkey/sortkey/migrations"
	"github.com/spf13/cobra"
)

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
	step := partitionStep{Table: s.Table, Action: s.Action, Partition: s.Partition, SQL: s.SQL, Outcome: outcome}
	if !s.From.IsZero() {
		m := dbhealth.At(s.From)
		step.From = &m
	}
	if !s.To.IsZero() {
		m := dbhealth.At(s.To)
		step.To = &m
	}
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
	var database databaseFlags
	var options migrations.PartitionOptions
	cmd := &cobra.Command{
		Use:   "run [TABLE]",
		Short: "Create partitions ahead, and remove old ones",
		Long: `Run takes the steps that are due, for one table or for all managed tables: it
creates partitions ahead, moves rows out of default partitions, and detaches or
drops partitions older than the retention. Each step is a transaction. Run
prints it when it ends, with its duration. If no step is due, it prints nothing.
With --dry-run, it takes no step: it prints each as a transaction of SQL, below a
comment with its action: create, drain, default, detach or drop.

A step that doesn't get its locks in six attempts is left to the next run, as
are the later steps of that table. If a step is left or fails, the exit code
is 1.

Run it every hour or so. Several runs can overlap. The role needs the privileges
of the tables' owners, and USAGE on both schemas of the installation.`,
		Example: `  sortkey partitions run --database postgres://owner@db.example/shop
  sortkey partitions run --dry-run
  sortkey partitions run app.events --lock-timeout 1s`,
		Args: asUsage(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if t := options.LockTimeout; t < time.Millisecond || t > 24*time.Hour {
				return cli.Usagef("--lock-timeout %s: want 1ms to 24h", t)
			}
			return c.maintain(cmd.Context(), &database, args, options)
		},
	}
	database.add(cmd)
	cmd.Flags().DurationVar(&options.LockTimeout, "lock-timeout", 100*time.Millisecond, "`duration` that a step waits for a lock behind which other sessions wait")
	cmd.Flags().BoolVar(&options.DryRun, "dry-run", false, "print the steps as SQL, without taking them")
	return cmd
}

// maintain plans or takes steps, for the table in args or for all.
func (c *app) maintain(ctx context.Context, database *databaseFlags, args []string, o migrations.PartitionOptions) error {
	db, config, err := database.openInstalled(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	if len(args) == 1 {
		o.Parent = args[0]
	}
	if !o.DryRun {
		var standby bool
		if err := cli.ReadRow(ctx, db, []any{&standby}, "SELECT pg_is_in_recovery()"); err != nil {
			return err
		}
		if standby {
			return errors.New("this server is a standby, which takes no steps; connect to the primary, for example with target_session_attrs=read-write in the URL")
		}
	}
	left := false
	var unprinted error
	began := time.Now()
	o.Progress = func(s migrations.PartitionStep) {
		left = left || s.Err != nil
		unprinted = errors.Join(unprinted, c.printStep(s, time.Since(began)))
		began = time.Now()
	}
	steps, err := migrations.MaintainPartitions(ctx, db.std, config, o)
	if o.DryRun {
		for i, s := range steps {
			if i > 0 && !c.JSON() {
				fmt.Fprintln(c.Out)
			}
			unprinted = errors.Join(unprinted, c.printPlanned(s))
		}
		if err == nil && len(steps) == 0 && !c.JSON() {
			_, unprinted = fmt.Fprintln(c.Out, "nothing to do")
		}
	}
	switch failed := notPrinted(err); {
	case failed != nil:
		return db.explain(ctx, failed, config.Schema, mayMaintain)
	case unprinted != nil:
		return unprinted
	case left:
		return errFound
	}
	return nil
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

func (c *app) printPlanned(s migrations.PartitionStep) error {
	step := newPartitionStep(s, "planned")
	if c.JSON() {
		return c.PrintJSON(step)
	}
	_, err := fmt.Fprintf(c.Out, "-- %s\nBEGIN;\n%s\nCOMMIT;\n", c.Printable(step.String()), s.SQL)
	return err
}

func (c *app) printStep(s migrations.PartitionStep, took time.Duration) error {
	outcome := "done"
	switch {
	case errors.Is(s.Err, migrations.ErrLocked):
		outcome = "locked"
	case s.Err != nil:
		outcome = "failed"
	}
	step := newPartitionStep(s, outcome)
	step.Seconds = took.Round(time.Millisecond).Seconds()
	if c.JSON() {
		return c.PrintJSON(step)
	}
	if s.Err != nil {
		_, err := fmt.Fprintf(c.Out, "%s: %s\n", outcome, c.Printable(step.Problem))
		return err
	}
	_, err := fmt.Fprintf(c.Out, "%s in %s\n", c.Printable(step.String()), took.Round(time.Millisecond))
	return err
}
