package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/internal/dbhealth"
	"github.com/sortkey/sortkey/migrations"
	"github.com/spf13/cobra"
)

func (c *app) migrateCommand() *cobra.Command {
	return group("migrate", "Install, check and remove the SQL of sortkey", `Migrate installs the SQL of sortkey in a database: domains for columns, functions
that read, convert and generate IDs, maintenance of partitions, and leases of
node numbers. It also checks and removes an installation, and writes the
migrations as files for other migration tools.`,
		c.migrateUpCommand(), c.migrateDownCommand(), c.migrateStatusCommand(), c.migrateCheckCommand(),
		c.migratePrintCommand(), c.migrateExportCommand())
}

// configFlags are the flags for the layouts of an installation.
type configFlags struct{ snowflake, si layoutFlags }

func (f *configFlags) add(cmd *cobra.Command) {
	f.si.prefix = "si-"
	cmd.Flags().StringVar(&f.snowflake.epoch, "epoch", "", "`time` at which snowflake's clock starts, or Unix milliseconds (default: 2021-01-01)")
	cmd.Flags().StringVar(&f.snowflake.bits, "bits", "", "`widths` of snowflake's datacenter/worker/sequence (default: 5/5/12)")
	cmd.Flags().StringVar(&f.si.epoch, "si-epoch", "", "`time` at which snowflake-si's clock starts, or Unix milliseconds (default: no functions for snowflake-si)")
	cmd.Flags().StringVar(&f.si.bits, "si-bits", "", "`widths` of snowflake-si's machine/index (default: 5/8)")
}

// config returns the Config that the flags of cmd select.
func (c *app) config(cmd *cobra.Command, f configFlags) (config migrations.Config, err error) {
	config.Schema = cmd.Flag("schema").Value.String()
	snowflake, err := c.layouts(f.snowflake, snowflakeBits)
	if err != nil {
		return config, err
	}
	si, err := c.layouts(f.si, snowflakeSIBits)
	if err != nil {
		return config, err
	}
	config.Snowflake = snowflake.Snowflake
	if f.si.set() {
		if f.si.epoch == "" {
			return config, cli.Usagef("--si-bits needs --si-epoch")
		}
		config.SnowflakeSI = si.SnowflakeSI
	}
	err = config.Validate()
	switch {
	case err == nil:
		return config, nil
	case strings.HasPrefix(err.Error(), "migrations: Config.Snowflake:"):
		return config, f.snowflake.error(err)
	case strings.HasPrefix(err.Error(), "migrations: Config.SnowflakeSI:"):
		return config, f.si.error(err)
	}
	return config, invalidConfig(err)
}

// configuredCommand is a command with flags for the layouts. Its database has the layouts of the
// installation, except for types whose layout the flags select. If the database has no layouts,
// do reports the reason.
func (c *app) configuredCommand(cmd *cobra.Command, do func(context.Context, database) error) *cobra.Command {
	var layouts configFlags
	var config migrations.Config
	layouts.add(cmd)
	cmd.PreRunE = func(*cobra.Command, []string) (err error) {
		config, err = c.config(cmd, layouts)
		return err
	}
	return databaseCommand(cmd, func(ctx context.Context, db database, _ []string) error {
		installed, err := migrations.Installed(ctx, db.std, config.Schema)
		missing := errors.Is(err, migrations.ErrNotInstalled) || errors.Is(err, migrations.ErrIncomplete)
		if err != nil && !missing {
			return err
		}
		if !layouts.snowflake.set() && !missing {
			config.Snowflake = installed.Snowflake
		}
		if !layouts.si.set() && !missing {
			config.SnowflakeSI = installed.SnowflakeSI
		}
		db.Config = config
		return do(ctx, db)
	})
}

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

func (c *app) migrateDownCommand() *cobra.Command {
	var yes bool
	cmd := databaseCommand(&cobra.Command{
		Use:   "down",
		Short: "Remove the SQL of sortkey",
		Long: `Down removes an installation in one transaction: all functions, domains and
tables, among them the reservations and leases of node numbers. If columns,
defaults or views depend on it, down names up to 20 of them and removes nothing.
Postgres doesn't track what the bodies of PL/pgSQL functions depend on.

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

func (c *app) migrateStatusCommand() *cobra.Command {
	return databaseCommand(&cobra.Command{
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

func (c *app) migrateCheckCommand() *cobra.Command {
	strict := false
	cmd := c.configuredCommand(&cobra.Command{
		Use:   "check",
		Short: "Check an installation by any tool",
		Long: `Check prints the results of doctor about the installation and the defaults:
migrations and objects that are missing, layouts that differ from the flags, and
defaults whose node number is missing or isn't reserved. It exits with code 1
if there is a problem, and with --strict also if there is a warning, such as a
role that can't execute the function of a default. It needs only USAGE on the
schema.

Without flags, check accepts the layouts of the database. Programs that generate
IDs must use the same ones: pass theirs, so that check compares them.`,
		Args: cobra.NoArgs,
	}, func(ctx context.Context, db database) error { return c.checkInstallation(ctx, db, strict) })
	strictFlag(cmd, &strict)
	return cmd
}

// strictFlag adds the flag --strict to a command that prints findings.
func strictFlag(cmd *cobra.Command, strict *bool) {
	cmd.Flags().BoolVar(strict, "strict", false, "exit with code 1 for warnings, too")
}

// checkInstallation prints the findings about an installation and the defaults. It returns
// errFound if there is a problem, or, if strict, a warning.
func (c *app) checkInstallation(ctx context.Context, db database, strict bool) error {
	e := dbhealth.New(db.std, dbhealth.Options{Config: db.Config, Now: c.Now, Areas: []string{"installation", "defaults"}})
	report, err := e.Run(ctx)
	if err != nil {
		return err
	}
	var b strings.Builder
	warnings, findings := report.Count(dbhealth.Warning), []dbhealth.Finding{}
	ok := report.Count(dbhealth.Problem)+report.Count(dbhealth.Unknown) == 0 && !(strict && warnings > 0)
	for _, f := range report.Distinct() {
		if f.Counts() {
			findings = append(findings, f)
			fmt.Fprintf(&b, "%s: %s; %s [%s]\n", cli.Printable(f.Subject), cli.Printable(f.Detail), cli.Printable(f.Remedy), f.ID)
		}
	}
	if ok {
		fmt.Fprintf(&b, "ok: the installation in schema %s has no problems", db.Schema)
		if warnings > 0 {
			fmt.Fprintf(&b, ", but %s", english.Plural(warnings, "warning", ""))
		}
		b.WriteString("\n")
	}
	return found(c.Print(struct {
		OK       bool               `json:"ok"`
		Findings []dbhealth.Finding `json:"findings"`
	}{ok, findings}, "%s", b.String()), !ok)
}
