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
