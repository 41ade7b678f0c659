package main

import (
	"context"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/migrations"
	"github.com/spf13/cobra"
)

func (c *app) migrateStatusCommand() *cobra.Command {
	var flags databaseFlags
	return flags.command(&cobra.Command{
		Use:   "status",
		Short: "List the migrations and when they were installed",
		Long: `Status lists all migrations of this version of the command. Applied is the time
at which any tool installed the migration, in UTC, or a dash.`,
		Args: cobra.NoArgs,
	}, func(ctx context.Context, db database, _ []string) error {
		list, err := migrations.Status(ctx, db.std, db.Config)
		if err != nil {
			return err
		}
		type status struct {
			Version   int        `json:"version"`
			Name      string     `json:"name"`
			AppliedAt *time.Time `json:"applied_at"`
		}
		var results []status
		for _, m := range list {
			s := status{Version: m.Version, Name: m.Name}
			if !m.AppliedAt.IsZero() {
				at := m.AppliedAt.UTC()
				s.AppliedAt = &at
			}
			results = append(results, s)
		}
		return cli.PrintRows(c.Terminal, results, table.Row{"Version", "Name", "Applied"}, func(s status) table.Row {
			applied := "-"
			if s.AppliedAt != nil {
				applied = s.AppliedAt.Format(time.DateTime)
			}
			return table.Row{s.Version, s.Name, applied}
		})
	})
}
