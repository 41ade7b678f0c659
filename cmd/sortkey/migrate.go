package main

import (
	"context"
	"errors"
	"strings"

	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
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

// config returns the Config that the flags select.
func (c *app) config(schema string, f configFlags) (config migrations.Config, err error) {
	config.Schema = schema
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
	var flags databaseFlags
	var layouts configFlags
	var config migrations.Config
	layouts.add(cmd)
	cmd.PreRunE = func(*cobra.Command, []string) (err error) {
		config, err = c.config(flags.schema, layouts)
		return err
	}
	return flags.command(cmd, func(ctx context.Context, db database, _ []string) error {
		installed, err := migrations.Installed(ctx, db.std, flags.schema)
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
