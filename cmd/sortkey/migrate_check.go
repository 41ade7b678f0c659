package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sortkey/sortkey/internal/dbhealth"
	"github.com/sortkey/sortkey/migrations"
	"github.com/spf13/cobra"
)

func (c *app) migrateCheckCommand() *cobra.Command {
	var flags databaseFlags
	var layouts configFlags
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check an installation by any tool",
		Long: `Check prints the problems with an installation, and exits with code 1 if there
are any: missing migrations, missing tables, views, functions and domains,
layouts other than the ones of the flags, and defaults of columns whose node
number is missing or isn't reserved. It needs only USAGE on the schema. Check
prints the results of doctor about the installation and the defaults.

Without flags, check accepts the layouts of the database. Programs that generate
IDs must use the same ones: pass theirs, so that check compares them.`,
		Example: `  sortkey migrate check
  sortkey migrate check --epoch 2026-01-01 --bits 0/10/12`,
		Args: asUsage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			db, config, err := c.openConfig(cmd.Context(), &flags, layouts)
			if err != nil {
				return err
			}
			defer db.Close()
			return c.checkInstallation(cmd.Context(), db, config)
		},
	}
	flags.add(cmd)
	layouts.add(cmd)
	return cmd
}

// checkInstallation prints the findings about an installation and the defaults. It returns
// errFound if there are any.
func (c *app) checkInstallation(ctx context.Context, db database, config migrations.Config) error {
	e := dbhealth.New(db.std, dbhealth.Options{Config: config, Now: c.Now, Areas: []string{"installation", "defaults"}})
	report, err := e.Run(ctx)
	if err != nil {
		return err
	}
	findings := slices.DeleteFunc(report.Distinct(), func(f dbhealth.Finding) bool { return !f.Counts() })
	ok := !slices.ContainsFunc(findings, func(f dbhealth.Finding) bool { return f.Level == dbhealth.Problem || f.Level == dbhealth.Unknown })
	if c.JSON() {
		err = c.PrintJSON(struct {
			OK       bool               `json:"ok"`
			Findings []dbhealth.Finding `json:"findings"`
		}{ok, append([]dbhealth.Finding{}, findings...)})
	} else {
		var b strings.Builder
		for _, f := range findings {
			fmt.Fprintf(&b, "%s: %s; %s [%s]\n", c.Printable(f.Subject), c.Printable(f.Detail), c.Printable(f.Remedy), f.ID)
		}
		if ok {
			fmt.Fprintf(&b, "ok: the installation in schema %s has no problems\n", config.Schema)
		}
		_, err = c.Out.Write([]byte(b.String()))
	}
	if err == nil && !ok {
		err = errFound
	}
	return err
}
