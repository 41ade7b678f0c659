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
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Remove the SQL of sortkey",
		Long: `Down removes an installation in one transaction: all functions, domains and
tables, among them the reservations and leases of node numbers. It prints the
migrations that it removed.

If columns, defaults or views depend on the installation, down removes nothing
and names them. Bodies of PL/pgSQL functions don't count, since Postgres doesn't
track their dependencies.

On a terminal, down asks for the schema's name first. Elsewhere it needs
--yes.`,
		Example: `  sortkey migrate down --database postgres://owner@db.example/shop
  sortkey migrate down --yes`,
		Args: asUsage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !yes && !cli.IsTerminal(c.In) {
				return cli.Usagef("standard input is not a terminal, so down cannot ask for confirmation: pass --yes to remove the installation")
			}
			db, err := flags.open(cmd.Context())
			if err != nil {
				return err
			}
			defer db.Close()
			return c.migrateDown(cmd.Context(), db, migrations.Config{Schema: flags.schema}, yes)
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "remove the installation without confirmation")
	return cmd
}

func (c *app) migrateDown(ctx context.Context, db database, config migrations.Config, yes bool) error {
	list, err := migrations.Status(ctx, db.std, config)
	if err != nil {
		return db.explain(ctx, err, config.Schema)
	}
	list = slices.DeleteFunc(list, func(s migrations.MigrationStatus) bool { return s.AppliedAt.IsZero() })
	if len(list) > 0 && !yes {
		if err := c.confirmDown(ctx, db, config.Schema); err != nil {
			return err
		}
	}
	if err := migrations.Down(ctx, db.std, config); err != nil {
		return db.explain(ctx, err, config.Schema)
	}
	for _, m := range slices.Backward(list) {
		if err := c.printMigration("removed", m.Version, m.Name); err != nil {
			return err
		}
	}
	if len(list) == 0 && !c.JSON() {
		_, err = fmt.Fprintf(c.Out, "nothing to do: schema %s has no migrations\n", config.Schema)
	}
	return err
}

// confirmDown asks for the schema's name. It returns an error if the answer differs.
func (c *app) confirmDown(ctx context.Context, db database, schema string) error {
	var database string
	if err := cli.ReadRow(ctx, db, []any{&database}, "SELECT current_database()"); err != nil {
		return err
	}
	return c.confirm(ctx, fmt.Sprintf("Down removes all objects of sortkey in schema %s of database %s.", schema, database), schema, "down removed nothing")
}

// confirm asks for the name of a schema. It returns an error if the answer differs.
func (c *app) confirm(ctx context.Context, warning, schema, refused string) error {
	fmt.Fprintf(c.Errs, "%s\nTo continue, type the name of the schema: ", warning)
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(c.In).ReadString('\n')
		answer <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(c.Errs)
		return ctx.Err()
	case got := <-answer:
		if got != schema {
			return fmt.Errorf("%s: want the name of the schema, %s, got %q", refused, schema, got)
		}
		return nil
	}
}
