package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/internal/dbhealth"
	"github.com/spf13/cobra"
)

func (c *app) migrateCheckCommand() *cobra.Command {
	return c.configuredCommand(&cobra.Command{
		Use:   "check",
		Short: "Check an installation by any tool",
		Long: `Check prints the results of doctor about the installation and the defaults:
migrations and objects that are missing, layouts that differ from the flags, and
defaults whose node number is missing or isn't reserved. It exits with code 1
if there are any. It needs only USAGE on the schema.

Without flags, check accepts the layouts of the database. Programs that generate
IDs must use the same ones: pass theirs, so that check compares them.`,
		Args: cobra.NoArgs,
	}, c.checkInstallation)
}

// checkInstallation prints the findings about an installation and the defaults. It returns
// errFound if there are any.
func (c *app) checkInstallation(ctx context.Context, db database) error {
	e := dbhealth.New(db.std, dbhealth.Options{Config: db.Config, Now: c.Now, Areas: []string{"installation", "defaults"}})
	report, err := e.Run(ctx)
	if err != nil {
		return err
	}
	var b strings.Builder
	ok, findings := true, []dbhealth.Finding{}
	for _, f := range report.Distinct() {
		if f.Counts() {
			ok = ok && f.Level != dbhealth.Problem && f.Level != dbhealth.Unknown
			findings = append(findings, f)
			fmt.Fprintf(&b, "%s: %s; %s [%s]\n", cli.Printable(f.Subject), cli.Printable(f.Detail), cli.Printable(f.Remedy), f.ID)
		}
	}
	if ok {
		fmt.Fprintf(&b, "ok: the installation in schema %s has no problems\n", db.Schema)
	}
	return found(c.Print(struct {
		OK       bool               `json:"ok"`
		Findings []dbhealth.Finding `json:"findings"`
	}{ok, findings}, "%s", b.String()), !ok)
}
