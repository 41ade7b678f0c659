package main

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/migrations"
	"github.com/spf13/cobra"
)

func (c *app) migrateDownCommand() *cobra.Command {
	var flags databaseFlags
	var yes bool
	cmd := flags.command(&cobra.Command{
		Use:   "down",
		Short: "Remove the SQL of sortkey",
		Long: `Down removes an installation in one transaction: all functions, domains and
tables, among them the reservations and leases of node numbers. If columns,
defaults or views depend on it, down names them and removes nothing. Postgres
doesn't track what the bodies of PL/pgSQL functions depend on.

On a terminal, down asks for the schema's name first. Elsewhere it needs --yes.`,
		Args: cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error {
			if !yes && !cli.IsTerminal(c.In) {
				return cli.Usagef("standard input is not a terminal, so down cannot ask for confirmation: pass --yes to remove the installation")
			}
			return nil
		},
	}, func(ctx context.Context, db database, _ []string) error {
		list, err := migrations.Status(ctx, db.std, db.Config)
		if err != nil {
			return err
		}
		list = slices.DeleteFunc(list, func(s migrations.MigrationStatus) bool { return s.AppliedAt.IsZero() })
		if len(list) > 0 && !yes {
			name, err := db.name(ctx)
			if err == nil {
				warning := fmt.Sprintf("Down removes all objects of sortkey in schema %s of database %s.", db.Schema, name)
				err = c.confirm(ctx, warning, "schema", db.Schema, "down removed nothing")
			}
			if err != nil {
				return err
			}
		}
		if err := migrations.Down(ctx, db.std, db.Config); err != nil {
			return err
		}
		for _, m := range slices.Backward(list) {
			if err := c.printMigration("removed", m.Version, m.Name); err != nil {
				return err
			}
		}
		if len(list) == 0 {
			return c.note("nothing to do: schema %s has no migrations\n", db.Schema)
		}
		return nil
	})
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "remove the installation without confirmation")
	return cmd
}

// confirm asks for the name of an object. It returns an error if the answer differs.
func (c *app) confirm(ctx context.Context, warning, object, name, refused string) error {
	fmt.Fprintf(c.Errs, "%s\nTo continue, type the name of the %s: ", warning, object)
	answer, _ := bufio.NewReader(interruptedReader{ctx, c.In}).ReadString('\n')
	if ctx.Err() != nil {
		fmt.Fprintln(c.Errs)
		return ctx.Err()
	}
	if got := strings.TrimSpace(answer); got != name {
		return fmt.Errorf("%s: want the name of the %s, %s, got %q", refused, object, name, got)
	}
	return nil
}
