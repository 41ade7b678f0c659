package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/rekey"
	"github.com/spf13/cobra"
)

// readSpec returns a function that reads the file in the only argument.
func readSpec(spec *rekey.Spec) func(*cobra.Command, []string) error {
	return func(_ *cobra.Command, args []string) error {
		text, err := os.ReadFile(args[0])
		if err != nil {
			return cli.Usage(err)
		}
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		err = decoder.Decode(spec)
		switch {
		case err != nil:
		case decoder.Decode(&struct{}{}) != io.EOF:
			err = errors.New("want one object, got more text after it")
		case len(spec.Keys) == 0:
			err = errors.New("no keys; name a table in keys")
		default:
			return nil
		}
		return cli.Usagef("%s: %s; sortkey rekey --help shows an example", args[0], strings.TrimPrefix(err.Error(), "json: "))
	}
}

func (c *app) rekeyInspectCommand() *cobra.Command {
	var o rekey.Options
	var spec rekey.Spec
	var sql bool
	cmd := c.rekeyDatabaseCommand(&cobra.Command{
		Use:   "inspect FILE",
		Short: "Check the tables, and print the plan",
		Long: `Inspect prints the columns that change, what to note, and the problems: properties
of the tables that rekey can't carry over, each with a remedy. It changes
nothing, but reads the tables. If there are problems, the exit code is 1.

With --sql, it prints the SQL of all steps.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeJSON,
		PreRunE:           readSpec(&spec),
	}, &o, func(ctx context.Context, db database, _ []string) error {
		plan, err := rekey.Inspect(ctx, db.std, spec, o)
		if err != nil {
			return err
		}
		return c.printPlan(plan, sql)
	})
	cmd.Flags().BoolVar(&sql, "sql", false, "print the SQL of all steps")
	return cmd
}

func (c *app) printPlan(plan *rekey.Plan, sql bool) error {
	problems := len(plan.Problems) > 0
	switch {
	case c.JSON():
		return found(c.PrintJSON(plan), problems)
	case sql && !problems:
		return c.printSQL(plan.Actions)
	}
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
	var b strings.Builder
	list := func(title string, problems []rekey.Problem) {
		for _, p := range problems {
			fmt.Fprintf(&b, "\n%s: %s %s\n  %s\n", title, cli.Printable(p.Object), cli.Printable(p.Reason), cli.Printable(p.Remedy))
		}
	}
	list("note", plan.Notes)
	list("problem", plan.Problems)
	return found(c.note("%s", b.String()), problems)
}

// printSQL prints the statements of actions.
func (c *app) printSQL(actions []rekey.Action) error {
	kinds := map[string]string{"backfill": ": a batch, and a query for more rows", "check": ": each row is an error", "trial": ": rolled back"}
	separator := ""
	for _, a := range actions {
		if err := c.Print(a, "%s-- %s: %s%s\n%s;\n", separator, a.Step, cli.Printable(a.Title), kinds[a.Kind], strings.Join(a.SQL, ";\n")); err != nil {
			return err
		}
		separator = "\n"
	}
	return nil
}

func (c *app) rekeyExpandCommand() *cobra.Command {
	var o rekey.Options
	var spec rekey.Spec
	return c.stepCommand(&cobra.Command{
		Use:   "expand FILE",
		Short: "Add the new columns, and triggers that keep both keys equal",
		Long: `Expand inspects the tables, and adds the new columns and the triggers, one table
after another. New rows get both keys from then on. If inspect finds problems,
expand changes nothing.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeJSON,
		PreRunE:           readSpec(&spec),
	}, &o, func(ctx context.Context, db database, _ []string) error {
		return rekey.Expand(ctx, db.std, spec, o)
	})
}

// rekeyStepCommand returns the command of a step that needs no FILE.
func (c *app) rekeyStepCommand(step rekey.Step, short, long string, do func(context.Context, *sql.DB, rekey.Options) error) *cobra.Command {
	var o rekey.Options
	var yes, cleanup bool
	ends := func() bool { return step == rekey.StepCleanup || cleanup }
	cmd := c.stepCommand(&cobra.Command{
		Use:   string(step),
		Short: short,
		Long:  long,
		Args:  cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error {
			if ends() && !yes && !cli.IsTerminal(c.In) {
				return cli.Usagef("standard input is not a terminal, so %s cannot ask for confirmation: pass --yes to drop the old keys", step)
			}
			return nil
		},
	}, &o, func(ctx context.Context, db database, _ []string) error {
		if ends() && !yes {
			if err := c.confirmCleanup(ctx, db, step); err != nil {
				return err
			}
		}
		if err := do(ctx, db.std, o); err != nil || !cleanup {
			return err
		}
		return rekey.Cleanup(ctx, db.std, o)
	})
	switch step {
	case rekey.StepContract:
		cmd.Flags().BoolVar(&cleanup, "cleanup", false, "drop the old keys at once: there is no way back")
		fallthrough
	case rekey.StepCleanup:
		cmd.Flags().BoolVarP(&yes, "yes", "y", false, "drop the old keys without confirmation")
	case rekey.StepBackfill:
		cmd.Flags().DurationVar(&o.BatchTime, "batch-time", 50*time.Millisecond, "`duration` that a batch should take, and for which its rows stay locked")
		cmd.Flags().DurationVar(&o.MaxLag, "max-lag", 10*time.Second, "`duration` that a replica may be behind; negative: no limit")
		cmd.Flags().Float64Var(&o.Pause, "pause", 0, "`share` of time in which backfill pauses, from 0 to below 1")
	}
	return cmd
}

// confirmCleanup asks for the name of the database, if the step is the next one.
func (c *app) confirmCleanup(ctx context.Context, db database, step rekey.Step) error {
	s, err := rekey.ReadStatus(ctx, db.std)
	if err != nil || s.Next != step {
		return err // the step reports the next one
	}
	database, err := db.name(ctx)
	if err != nil {
		return err
	}
	tables := make([]string, len(s.Spec.Keys))
	for i, k := range s.Spec.Keys {
		tables[i] = cli.Printable(k.Table)
	}
	return c.confirm(ctx, fmt.Sprintf("Cleanup drops the old keys of %s in database %s, permanently. No program of the old version may run.", strings.Join(tables, ", "), cli.Printable(database)),
		"database", database, string(step)+" changed nothing")
}

func (c *app) rekeyAddReferenceCommand() *cobra.Command {
	var o rekey.Options
	var where string
	cmd := c.stepCommand(&cobra.Command{
		Use:   "add-reference TABLE COLUMN TO",
		Short: "Map a column that was missed",
		Long: `Add-reference replaces the old keys of table TO in a column by the new ones, between
contract and cleanup. Values that are no old keys stay. A column of the new type, or
a text, is updated by one statement. Another one gets the new type, which rewrites
its table under a lock. A column that is mapped already stays. Undo maps the column
back, and contract maps it again.`,
		Args: cobra.ExactArgs(3),
	}, &o, func(ctx context.Context, db database, args []string) error {
		rows, err := rekey.AddReference(ctx, db.std, rekey.Reference{Table: args[0], Column: args[1], To: args[2], Where: where}, o)
		if err != nil {
			return err
		}
		return c.Print(map[string]int64{"rows": rows}, "%s rows mapped\n", humanize.Comma(rows))
	})
	cmd.Flags().StringVar(&where, "where", "", "`condition` for the rows that refer to TO, an SQL expression over columns of the row")
	return cmd
}
