package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sortkey/sortkey/cmd/sortkey/internal/audit"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/ids"
	"github.com/sortkey/sortkey/migrations"
	"github.com/spf13/cobra"
)

// auditFlags are the flags of audit.
type auditFlags struct {
	audit.Options
	layout              layoutFlags
	since, until, nodes string
}

func (c *app) auditCommand() *cobra.Command {
	var o auditFlags
	cmd := &cobra.Command{
		Use:   "audit TABLE[.COLUMN]...",
		Short: "Check the IDs of tables",
		Long: `Audit reads columns of IDs and reports problems. Without COLUMN, it reads the
primary key. It reads batches in the order of the key's index. Each batch is a
separate read-only statement, so audit keeps no transaction open, needs only
SELECT, and works on a standby. It can miss rows that are inserted or deleted
while it runs. The findings are:

    malformed     not an ID of the type: a negative number (except a spread64),
                  reserved bits set, a uuid that is not a sno, or, for uuid7, a
                  variant other than RFC 9562's
    zero          the zero ID; for uuid7, the nil UUID
    future        the time of the ID is later than the server's clock by more
                  than --future
    apart         the time of the ID and the column --created-at differ by more
                  than --tolerance (a timestamp without time zone is in UTC)
    unknown_node  the node number was never claimed or reserved, and is not in
                  --nodes
    duplicate     the ID stands more than once, in one column or in several
                  (the count is of IDs, not of rows)

To find duplicates across tables and shards, name several tables, or pass
--database several times. Don't name foreign keys, whose IDs also stand in the
referenced table. A row that moves to another table meanwhile can look like a
duplicate. Audit compares only columns of one type with each other.

A node number is known if any of the databases has a reservation or a claim of
it, even a cancelled or released one, in a pool of the layout. Name the numbers
that programs have in their configuration with --nodes. The check needs SELECT
on the view node_status and the table node_pool of the installation.

The type comes from the domain or default of the column, from its comment after
sortkey rekey, or from the partition settings of its table. Another uuid column
has the type sno if one of its first and last 100 keys is a sno, and uuid7
otherwise. In other cases, pass --type. The layouts of the installation apply,
unless --epoch or --bits is set. A role without USAGE on the schema must set one
of them for snowflake and snowflake-si.

Columns of the type uuid7 can have UUIDs of all versions, and audit counts them
by version. The checks of times, and the days, are of versions 1, 6 and 7.
--since and --until also read UUIDs of other versions that are between the
bounds.

The exit code is 1 if there is a finding. Audit prints results only when it has
read all rows.`,
		Example: `  sortkey audit orders
  sortkey audit orders.id events.id --type snowflake --created-at created_at
  sortkey audit orders -d postgres://shard1/app -d postgres://shard2/app
  sortkey audit orders --since -7d --rate 50000 --output json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.checkAudit(cmd, &o); err != nil {
				return err
			}
			r, err := audit.Run(cmd.Context(), c.Terminal, args, &o.Options)
			switch {
			case err != nil:
				return err
			case c.JSON():
				err = c.PrintJSON(r)
			default:
				err = c.printAudit(r, len(o.Databases) > 1)
			}
			if err == nil && slices.ContainsFunc(r.Findings, func(f audit.Finding) bool { return f.Count > 0 }) {
				err = errFound
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringArrayVarP(&o.Databases, "database", "d", nil, "`URL` or connection string of a database; repeat it for shards (default: DATABASE_URL, or PGHOST and libpq's other variables)")
	f.StringVar(&o.Schema, "schema", migrations.DefaultSchema, "`name` of the schema with the SQL of sortkey")
	f.StringVar(&o.Type, "type", "", "`type` of the IDs: "+strings.Join(ids.Names(), ", "))
	o.layout.add(cmd)
	f.StringVar(&o.CreatedAt, "created-at", "", "`column` with the time at which each row was created")
	f.DurationVar(&o.Tolerance, "tolerance", time.Minute, "largest `difference` between an ID's time and --created-at")
	f.DurationVar(&o.Future, "future", time.Second, "largest `distance` of an ID's time after the server's clock")
	f.StringVar(&o.since, "since", "", "`time` of the first IDs to read")
	f.StringVar(&o.until, "until", "", "`time` before which the IDs to read end")
	f.StringVar(&o.nodes, "nodes", "", "node `numbers` of programs without a claim, such as 0-31,1023")
	f.StringVar(&o.After, "after", "", "`key` after which to begin, to continue an audit that was stopped")
	f.IntVar(&o.Batch, "batch", 10_000, "`number` of rows per statement")
	f.IntVar(&o.Rate, "rate", 0, "largest `number` of rows per second (default: no limit)")
	f.IntVar(&o.Examples, "examples", 5, "`number` of examples per finding")
	_ = cmd.RegisterFlagCompletionFunc("type", cobra.FixedCompletions(ids.Names(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// checkAudit checks the flags, and sets the options that need parsing.
func (c *app) checkAudit(cmd *cobra.Command, o *auditFlags) error {
	switch {
	case o.Type != "" && !slices.Contains(ids.Names(), o.Type):
		return cli.Usagef("--type %q: want %s", o.Type, strings.Join(ids.Names(), ", "))
	case o.layout != layoutFlags{} && o.Type == "":
		return cli.Usagef("--epoch and --bits need --type snowflake or snowflake-si")
	case cmd.Flags().Changed("tolerance") && o.CreatedAt == "":
		return cli.Usagef("--tolerance needs --created-at, the column to compare with")
	case o.Tolerance < 0 || o.Future < 0:
		return cli.Usagef("--tolerance and --future must not be negative")
	case o.Batch < 1 || o.Batch > 1_000_000:
		return cli.Usagef("--batch %d: want 1 to 1000000", o.Batch)
	case o.Rate < 0 || o.Examples < 0:
		return cli.Usagef("--rate and --examples must not be negative")
	}
	if o.nodes != "" {
		o.Known = map[int]bool{}
		for numbers := range strings.SplitSeq(o.nodes, ",") {
			text, last, isRange := strings.Cut(numbers, "-")
			low, err := parseNumber(text)
			high := low
			if isRange && err == nil {
				high, err = parseNumber(last)
			}
			if err != nil || high < low {
				return cli.Usagef("--nodes %q: want numbers and ranges from 0 to 65535, such as 0-31,1023", o.nodes)
			}
			for n := low; n <= high; n++ {
				o.Known[n] = true
			}
		}
	}
	for _, bound := range []struct {
		flag, value string
		time        *time.Time
	}{{"since", o.since, &o.Since}, {"until", o.until, &o.Until}} {
		if bound.value == "" {
			continue
		}
		var err error
		if *bound.time, err = c.parseTime(bound.value); err != nil {
			return fmt.Errorf("--%s: %w", bound.flag, err)
		}
	}
	if o.since != "" && o.until != "" && !o.Since.Before(o.Until) {
		return cli.Usagef("--since %s is not before --until %s", o.since, o.until)
	}
	if o.layout != (layoutFlags{}) {
		if _, err := c.format(o.Type, o.layout); err != nil { // reject wrong flags
			return err
		}
		o.Layout = func(config *migrations.Config) error { return c.applyLayout(config, o) }
	}
	if err := (migrations.Config{Schema: o.Schema}).Validate(); err != nil {
		return invalidConfig(err)
	}
	if len(o.Databases) == 0 {
		o.Databases = []string{""} // of the environment
	}
	if o.Rate > 0 {
		o.Batch = min(o.Batch, o.Rate)
	}
	return nil
}

// applyLayout sets the layout of the flags.
func (c *app) applyLayout(config *migrations.Config, o *auditFlags) error {
	widths, err := parseBits(o.layout.bits)
	if err != nil {
		return err
	}
	epoch, err := c.epochFlag("epoch", o.layout.epoch)
	if err != nil {
		return err
	}
	if o.Type == "snowflake" {
		config.Snowflake, err = snowflakeLayout(epoch, widths)
		return err
	}
	if epoch.IsZero() {
		epoch = config.SnowflakeSI.BaseClock
	}
	config.SnowflakeSI, err = snowflakeSILayout(epoch, widths)
	return err
}
