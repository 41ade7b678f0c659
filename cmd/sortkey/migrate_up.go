package main

import (
	"context"

	"github.com/sortkey/sortkey/migrations"
	"github.com/spf13/cobra"
)

func (c *app) migrateUpCommand() *cobra.Command {
	return c.configuredCommand(&cobra.Command{
		Use:   "up",
		Short: "Install the SQL of sortkey, or upgrade it",
		Long: `Up installs the missing migrations in one transaction. Concurrent calls wait for
one another. The layouts of an installation are permanent: flags that differ
from them are an error, but up can add snowflake-si.

If another migration tool created the installation, continue with that tool, and
with the files from sortkey migrate export: it doesn't see what up installs.`,
		Args: cobra.NoArgs,
	}, func(ctx context.Context, db database) error {
		applied, err := migrations.Apply(ctx, db.std, db.Config)
		for _, m := range applied {
			if err := c.printMigration("installed", m.Version, m.Name); err != nil {
				return err
			}
		}
		if err == nil && len(applied) == 0 {
			err = c.note("nothing to do: schema %s has all migrations\n", db.Schema)
		}
		return err
	})
}

// printMigration prints a migration that a command has installed or removed.
func (c *app) printMigration(done string, version int, name string) error {
	return c.Print(struct {
		Version int    `json:"version"`
		Name    string `json:"name"`
	}{version, name}, "%s %d %s\n", done, version, name)
}
