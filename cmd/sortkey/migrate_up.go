package main

import (
	"fmt"

	"github.com/sortkey/sortkey/migrations"
	"github.com/spf13/cobra"
)

func (c *app) migrateUpCommand() *cobra.Command {
	var flags databaseFlags
	var layouts configFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Install the SQL of sortkey, or upgrade it",
		Long: `Up installs the missing migrations, each in a transaction, and prints their
versions and names. Concurrent calls wait for one another.

The layouts of an installation are permanent. If the database has an
installation, up uses its layouts, and flags that differ from them are an error.
Up can add snowflake-si to an installation without it.

Up refuses an installation by another migration tool. Continue with that tool,
and with the files from sortkey migrate export.`,
		Example: `  sortkey migrate up --database postgres://owner@db.example/shop
  sortkey migrate up --epoch 2026-01-01 --si-epoch 2026-01-01`,
		Args: asUsage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			db, config, err := c.openConfig(cmd.Context(), &flags, layouts)
			if err != nil {
				return err
			}
			defer db.Close()
			applied, err := migrations.Apply(cmd.Context(), db.std, config)
			for _, m := range applied {
				if err := c.printMigration("installed", m.Version, m.Name); err != nil {
					return err
				}
			}
			if err == nil && len(applied) == 0 && !c.JSON() {
				_, err = fmt.Fprintf(c.Out, "nothing to do: schema %s has all migrations\n", flags.schema)
			}
			return db.explain(cmd.Context(), err, config.Schema)
		},
	}
	flags.add(cmd)
	layouts.add(cmd)
	return cmd
}

// printMigration prints a migration that a command has installed or removed.
func (c *app) printMigration(done string, version int, name string) error {
	if c.JSON() {
		return c.PrintJSON(struct {
			Version int    `json:"version"`
			Name    string `json:"name"`
		}{version, name})
	}
	_, err := fmt.Fprintln(c.Out, done, version, name)
	return err
}
