package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/rekey"
	"github.com/spf13/cobra"
)

// readSpecTo returns a function that reads the file in the only argument.
func readSpecTo(spec *rekey.Spec) func(*cobra.Command, []string) error {
	return func(_ *cobra.Command, args []string) (err error) {
		*spec, err = readSpec(args[0])
		return err
	}
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
	err = decoder.Decode(&spec)
	if err == nil && decoder.Decode(&struct{}{}) != io.EOF {
		err = errors.New("want one object, got more text after it")
	}
	if err == nil && len(spec.Keys) == 0 {
		err = errors.New("no keys; name a table in keys")
	}
	if err != nil {
		return spec, cli.Usagef("%s: %s; sortkey rekey --help shows an example", name, strings.TrimPrefix(err.Error(), "json: "))
	}
	return spec, nil
}

func (c *app) rekeyInspectCommand() *cobra.Command {
	var flags rekeyFlags
	var spec rekey.Spec
	var sql bool
	cmd := flags.command(c, &cobra.Command{
		Use:   "inspect FILE",
		Short: "Check the tables, and print the plan",
		Long: `Inspect prints the columns that change, what to note, and the problems: properties
of the tables that rekey can't carry over, each with a remedy. It changes
nothing, but reads the tables. If there are problems, the exit code is 1.

With --sql, it prints the SQL of all steps.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeJSON,
		PreRunE:           readSpecTo(&spec),
	}, func(ctx context.Context, db database, _ []string) error {
		plan, err := rekey.Inspect(ctx, db.std, spec, flags.options)
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
