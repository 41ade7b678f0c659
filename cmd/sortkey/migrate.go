package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/internal/dbhealth"
	"github.com/sortkey/sortkey/migrations"
	"github.com/spf13/cobra"
)

func (c *app) migrateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Install, check and remove the SQL of sortkey",
		Long: `Migrate installs the SQL of sortkey in a database: domains for columns, functions
that read, convert and generate IDs, maintenance of partitions, and leases of
node numbers. It also checks and removes an installation, and writes the
migrations as files for other migration tools.`,
		Args: asUsage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.migrateUpCommand(), c.migrateDownCommand(), c.migrateStatusCommand(), c.migrateCheckCommand(),
		c.migratePrintCommand(), c.migrateExportCommand())
	return cmd
}

// configFlags are the flags for the layouts of an installation.
type configFlags struct {
	epoch, bits, siEpoch, siBits string
}

func (f *configFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.epoch, "epoch", "", "`time` at which snowflake's clock starts, or Unix milliseconds (default: 2021-01-01)")
	cmd.Flags().StringVar(&f.bits, "bits", "", "`widths` of snowflake's datacenter/worker/sequence (default: 5/5/12)")
	cmd.Flags().StringVar(&f.siEpoch, "si-epoch", "", "`time` at which snowflake-si's clock starts, or Unix milliseconds (default: no functions for snowflake-si)")
	cmd.Flags().StringVar(&f.siBits, "si-bits", "", "`widths` of snowflake-si's machine/index (default: 5/8)")
}

// hasSnowflake and hasSnowflakeSI report whether flags select the layout of a type.
func (f *configFlags) hasSnowflake() bool   { return f.epoch != "" || f.bits != "" }
func (f *configFlags) hasSnowflakeSI() bool { return f.siEpoch != "" || f.siBits != "" }

// config returns the Config that the flags select.
func (c *app) config(schema string, f configFlags) (migrations.Config, error) {
	config := migrations.Config{Schema: schema}
	epoch, err1 := c.epochFlag("epoch", f.epoch)
	widths, err2 := bitsFlag("bits", f.bits, "datacenter/worker/sequence", "5/5/12")
	siEpoch, err3 := c.epochFlag("si-epoch", f.siEpoch)
	siWidths, err4 := bitsFlag("si-bits", f.siBits, "machine/index", "5/8")
	if err := cmp.Or(err1, err2, err3, err4); err != nil {
		return config, err
	}
	var err error
	if config.Snowflake, err = snowflakeLayout(epoch, widths); err != nil {
		return config, err
	}
	if f.hasSnowflakeSI() {
		if f.siEpoch == "" {
			return config, cli.Usagef("--si-bits needs --si-epoch")
		}
		if config.SnowflakeSI, err = snowflakeSILayout(siEpoch, siWidths); err != nil {
			return config, err
		}
	}
	if err := config.Validate(); err != nil {
		return config, invalidConfig(err)
	}
	return config, nil
}

// bitsFlag returns the widths of the fields in a flag, or nil if the flag is empty.
func bitsFlag(flag, value, fields, example string) ([]int, error) {
	widths, err := parseBits(value)
	if err != nil || value != "" && len(widths) != 1+strings.Count(fields, "/") {
		return nil, cli.Usagef("--%s %q: want the widths of %s, such as %s", flag, value, fields, example)
	}
	return widths, nil
}

// openConfig connects to a database. It also returns the layouts of the installation,
// except for types whose layout the flags select. If the database has no layouts, the
// caller's next function reports the reason.
func (c *app) openConfig(ctx context.Context, flags *databaseFlags, layouts configFlags) (database, migrations.Config, error) {
	config, err := c.config(flags.schema, layouts)
	if err != nil {
		return database{}, config, err
	}
	db, err := flags.open(ctx)
	if err != nil {
		return db, config, err
	}
	installed, err := migrations.Installed(ctx, db.std, config.Schema)
	switch {
	case errors.Is(err, migrations.ErrNotInstalled), errors.Is(err, migrations.ErrIncomplete):
		return db, config, nil
	case err != nil:
		err = db.explain(ctx, err, config.Schema)
		db.Close()
		return db, config, err
	}
	if !layouts.hasSnowflake() {
		config.Snowflake = installed.Snowflake
	}
	if !layouts.hasSnowflakeSI() {
		config.SnowflakeSI = installed.SnowflakeSI
	}
	return db, config, nil
}

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

func (c *app) migrateStatusCommand() *cobra.Command {
	var flags databaseFlags
	cmd := &cobra.Command{
		Use:   "status",
		Short: "List the migrations and when they were installed",
		Long: `Status lists all migrations of this version of the command. Applied is the time
at which any tool installed the migration, in UTC, or a dash.`,
		Example: `  sortkey migrate status
  sortkey migrate status --output json | jq -r 'select(.applied_at == null).name'`,
		Args: asUsage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			db, err := flags.open(cmd.Context())
			if err != nil {
				return err
			}
			defer db.Close()
			list, err := migrations.Status(cmd.Context(), db.std, migrations.Config{Schema: flags.schema})
			if err != nil {
				return db.explain(cmd.Context(), err, flags.schema)
			}
			return c.printStatus(list)
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
