package main

import (
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/migrations"
	"github.com/spf13/cobra"
)

func (c *app) migrateStatusCommand() *cobra.Command {
	var flags databaseFlags
	cmd := &cobra.Command{
		Use:   "status",
		Short: "List the migrations and when they were installed",
		Long: `Status lists all migrations of this version of the command. Applied is the time
at which any tool installed the migration, in UTC, or a dash.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return flags.use(cmd.Context(), func(db database) error {
				list, err := migrations.Status(cmd.Context(), db.std, db.Config)
				if err != nil {
					return err
				}
				return c.printStatus(list)
			})
		},
	}
	flags.add(cmd)
	return cmd
}

// A migrationStatus is a result of status.
type migrationStatus struct {
	Version   int        `json:"version"`
	Name      string     `json:"name"`
	AppliedAt *time.Time `json:"applied_at"`
}

func (c *app) printStatus(list []migrations.MigrationStatus) error {
	var results []migrationStatus
	for _, m := range list {
		r := migrationStatus{Version: m.Version, Name: m.Name}
		if !m.AppliedAt.IsZero() {
			at := m.AppliedAt.UTC()
			r.AppliedAt = &at
		}
		results = append(results, r)
	}
	return cli.PrintRows(c.Terminal, results, table.Row{"Version", "Name", "Applied"}, func(m migrationStatus) table.Row {
		applied := "-"
		if m.AppliedAt != nil {
			applied = m.AppliedAt.Format(time.DateTime)
		}
		return table.Row{m.Version, m.Name, applied}
	})
}
