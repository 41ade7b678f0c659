package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/rekey"
	"github.com/spf13/cobra"
)

// rekeyDatabaseCommand is installedCommand for a call of package rekey. It sets the options, except for flags.
func (c *app) rekeyDatabaseCommand(cmd *cobra.Command, o *rekey.Options, do databaseFunc) *cobra.Command {
	return installedCommand(cmd, func(ctx context.Context, db database, args []string) error {
		o.Config = db.Config
		o.Progress = c.rekeyProgress()
		path, err := db.Path(ctx)
		if err != nil {
			return err
		}
		o.SearchPath = path
		err = do(ctx, db, args)
		switch {
		case errors.Is(err, rekey.ErrInconsistent), errors.Is(err, rekey.ErrRefused):
			finding := strings.TrimPrefix(err.Error(), "rekey: ")
			return found(c.Print(map[string]string{"finding": finding}, "%s\n", finding), true)
		case err == nil:
			return nil
		}
		if m := optionError.FindStringSubmatch(err.Error()); m != nil {
			return cli.Usagef("--%s: %s", optionFlags[m[1]], m[2])
		}
		return err
	})
}

// optionError matches an error in a field of [rekey.Options], and optionFlags has its flag.
var (
	optionError = regexp.MustCompile(`^rekey: Options\.(\w+): (.*)`)
	optionFlags = map[string]string{"LockTimeout": "lock-timeout", "LockWait": "lock-wait", "BatchTime": "batch-time", "Pause": "pause"}
)

// stepCommand is rekeyDatabaseCommand for a step.
func (c *app) stepCommand(cmd *cobra.Command, o *rekey.Options, do databaseFunc) *cobra.Command {
	cmd.Flags().DurationVar(&o.LockTimeout, "lock-timeout", 100*time.Millisecond, "`duration` of an attempt to get a lock behind which other sessions wait")
	cmd.Flags().DurationVar(&o.LockWait, "lock-wait", 10*time.Minute, "`duration` of all attempts")
	return c.rekeyDatabaseCommand(cmd, o, do)
}

func (c *app) rekeyCommand() *cobra.Command {
	return group("rekey", "Replace the primary key of a table in use", `Rekey replaces the primary keys of tables in use, and all references to them, with
IDs that sort by time. Programs keep reading and writing the tables. The steps,
in order, are inspect, expand, backfill, validate, contract and cleanup;
docs/rekey.md shows them. Each can be repeated after an error or an interrupt.
Status prints the next one. Abort restores the tables until contract, and undo
takes contract back until cleanup.

The file FILE describes the keys in JSON. Package rekey documents the fields of
Spec:

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

The formats are snowflake, uid60, sno and uuid7. The last one and uid60 have no
node numbers. References are columns that refer to a key without a foreign key.
Reserve no node number before: expand does so.`,
		c.rekeyInspectCommand(), c.rekeyExpandCommand(),
		c.rekeyStepCommand(rekey.StepBackfill, "Fill the new columns of existing rows", `Backfill fills the new columns in small batches, and repeats that until no row is
left. It pauses while a replica is behind. An interrupt loses at most one batch.`, rekey.Backfill),
		c.rekeyStepCommand(rekey.StepValidate, "Add indexes, constraints and views", `Validate creates the indexes without blocking writers, adds the constraints,
compares both keys of all rows, and creates the views for the new version of the
programs. It tries contract and rolls it back. After that, replace the programs.
The new version uses the same SQL, and the schema of the views, rekeyed, first in
its search_path. Repeat validate to create what is missing, such as a view.`, rekey.Validate),
		c.rekeyStepCommand(rekey.StepContract, "Give the names of the old columns to the new ones", `Contract compares both keys of all rows, looks for objects that were created on the
columns since expand, and tries the triggers of the tables. Then it exchanges the
names of the columns of one table after another. No program of the old version
may run any more. The old keys stay, and new rows get old keys, too, until
cleanup: undo takes contract back.

With --cleanup, cleanup follows at once.`, rekey.Contract),
		c.rekeyStepCommand(rekey.StepUndo, "Take contract back", `Undo gives the old columns their names again. Rows that programs have written since
contract stay, with both keys. Stop programs that need the new keys by the names
of the tables first. Programs that use the views of schema rekeyed can go on.
Afterwards, run contract again, or abort.`, rekey.Undo),
		c.rekeyStepCommand(rekey.StepCleanup, "Drop the old columns", `Cleanup ends a rekey after contract: it drops the old columns, the triggers, and the
views for the new version. From then on, there is no way back.

On a terminal, cleanup asks for the name of the database first. Elsewhere it needs
--yes.`, rekey.Cleanup),
		c.rekeyStepCommand(rekey.StepAbort, "Restore the tables", `Abort drops the new columns and all else that the other steps created. Rows that
programs have written by either key stay. Stop the programs of the new version
first: their IDs are lost.`, rekey.Abort),
		c.rekeyAddReferenceCommand(), c.rekeyStatusCommand())
}

// progressInterval is the time between lines of progress.
const progressInterval = 5 * time.Second

// rekeyProgress returns a function that prints the actions that have ended, and every few
// seconds how far an action is.
func (c *app) rekeyProgress() func(rekey.Progress) {
	shown := time.Now()
	began := time.Now()
	return func(p rekey.Progress) {
		now := time.Now()
		if p.Done {
			took := now.Sub(began).Round(time.Millisecond)
			_ = c.Print(struct { // Err has the error
				Step    rekey.Step `json:"step"`
				Action  string     `json:"action"`
				Seconds float64    `json:"seconds"`
			}{p.Step, p.Action, took.Seconds()}, "%s in %s\n", cli.Printable(p.Action), took)
			began, shown = now, now
			return
		}
		if now.Sub(shown) < progressInterval {
			return
		}
		shown = now
		state := filled(p)
		if p.Waiting != "" {
			state = "waiting: " + cli.Printable(p.Waiting)
		}
		fmt.Fprintf(c.Errs, "%s: %s\n", cli.Printable(p.Action), state)
	}
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

// A rekeyStatus is the result of status.
type rekeyStatus struct {
	Tables    []string   `json:"tables"`
	Step      rekey.Step `json:"step,omitempty"`
	Next      rekey.Step `json:"next"`
	Action    string     `json:"action,omitempty"`
	Left      int        `json:"actions_left"`
	Findings  []string   `json:"findings,omitempty"`
	StartedAt *time.Time `json:"started_at"`
	UpdatedAt *time.Time `json:"updated_at"`
}

func (c *app) rekeyStatusCommand() *cobra.Command {
	return c.rekeyDatabaseCommand(&cobra.Command{
		Use:   "status",
		Short: "Print the next step",
		Long: `Status prints the tables of the rekey, the last step, and the step to run now. If
they are equal, the step is incomplete, and ACTION is the action that comes next.`,
		Args: cobra.NoArgs,
	}, &rekey.Options{}, func(ctx context.Context, db database, _ []string) error {
		s, err := rekey.ReadStatus(ctx, db.std)
		if err != nil {
			return err
		}
		return c.printRekeyStatus(s)
	})
}

func (c *app) printRekeyStatus(s rekey.Status) error {
	if s.Step == "" && !c.JSON() {
		return c.note("no rekey; the next step is expand\n")
	}
	status := rekeyStatus{Tables: []string{}, Step: s.Step, Next: s.Next, Action: s.Action, Findings: s.Findings}
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
	action, next := "", string(s.Next)
	if s.Step == rekey.StepContract {
		next += ", or undo as the way back"
	}
	if status.Action != "" {
		action = fmt.Sprintf("%s (%d left)", status.Action, status.Left)
	}
	return c.PrintBlock([]table.Row{
		{"tables", strings.Join(status.Tables, ", ")},
		{"last step", string(s.Step)},
		{"next step", next},
		{"next action", action},
		{"started", fmt.Sprintf("%s (%s)", stamp(s.StartedAt), c.ago(s.StartedAt))},
		{"updated", fmt.Sprintf("%s (%s)", stamp(s.UpdatedAt), c.ago(s.UpdatedAt))},
		{"problem", strings.Join(s.Findings, "; ")},
	})
}
