package main

import (
	"cmp"
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

// useConfig connects to the database. The Config has the layouts of the installation, except
// for types whose layout the flags select. If the database has no layouts, do reports the reason.
func (c *app) useConfig(ctx context.Context, flags *databaseFlags, layouts configFlags, do func(database) error) error {
	config, err := c.config(flags.schema, layouts)
	if err != nil {
		return err
	}
	return flags.use(ctx, func(db database) error {
		installed, err := migrations.Installed(ctx, db.std, flags.schema)
		missing := errors.Is(err, migrations.ErrNotInstalled) || errors.Is(err, migrations.ErrIncomplete)
		if err != nil && !missing {
			return err
		}
		if !layouts.hasSnowflake() && !missing {
			config.Snowflake = installed.Snowflake
		}
		if !layouts.hasSnowflakeSI() && !missing {
			config.SnowflakeSI = installed.SnowflakeSI
		}
		db.Config = config
		return do(db)
	})
}
