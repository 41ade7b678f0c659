package main

import (
	"slices"
	"strings"

	"github.com/sortkey/sortkey/cmd/sortkey/internal/audit"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/ids"
	"github.com/sortkey/sortkey/migrations"
	"github.com/spf13/cobra"
)

// auditFlags are the flags of audit.
type auditFlags struct {
	audit.Options
	layout layoutFlags
	nodes  string
}

func (c *app) auditCommand() *cobra.Command {
	var o auditFlags
	cmd := &cobra.Command{
		Use:   "audit TABLE[.COLUMN]...",
		Short: "Check the IDs of tables",
		Long: `Audit reads columns of IDs and reports problems. Without COLUMN, it reads the
primary key. It can miss rows that are inserted or deleted while it runs. The
findings are:

    malformed     not an ID of the type: a negative number (except a spread64),
                  reserved bits set, a uuid that is not a sno, or, for uuid7, a
                  variant other than RFC 9562's
    zero          the zero ID, or the nil UUID
    future        the time of the ID is more than 1 s after the server's clock
    apart         the time of the ID and the column --created-at differ by more
                  than a minute (a timestamp without time zone is in UTC)
    unknown_node  the node number was never claimed or reserved in any of the
                  databases, and is not in --nodes
    duplicate     the ID stands more than once, in one column or in several
                  (the count is of IDs, not of rows)

Don't name foreign keys, whose IDs also stand in the referenced table. A row
that moves to another table meanwhile can look like a duplicate.

The type comes from the domain or default of the column, from its comment after
sortkey rekey, or from the partition settings of its table. Another uuid column
has the type sno if one of its first and last 100 keys is a sno, and uuid7
otherwise. In other cases, pass --type. The layouts of the installation apply,
unless --epoch or --bits is set.

Audit needs SELECT on the tables, and for unknown_node on the view node_status
and the table node_pool of the installation. The exit code is 1 if there is a
finding. Audit prints results only when it has read all rows.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.checkAudit(&o); err != nil {
				return err
			}
			r, err := audit.Run(cmd.Context(), c.Terminal, args, &o.Options)
			if err != nil {
				return err
			}
			return found(c.printAudit(r, len(o.Databases) > 1), slices.ContainsFunc(r.Findings, func(f audit.Finding) bool { return f.Count > 0 }))
		},
	}
	f := cmd.Flags()
	f.StringArrayVarP(&o.Databases, "database", "d", nil, "`URL` or connection string of a database; repeat it for shards (default: DATABASE_URL, or PGHOST and libpq's other variables)")
	schemaFlag(cmd, &o.Schema)
	f.StringVar(&o.Type, "type", "", "`type` of the IDs: "+strings.Join(ids.Names(), ", "))
	o.layout.add(cmd)
	f.StringVar(&o.CreatedAt, "created-at", "", "`column` with the time at which each row was created")
	c.timeFlag(cmd, &o.Since, "since", "`time` of the first IDs to read")
	f.StringVar(&o.nodes, "nodes", "", "node `numbers` of programs without a claim, such as 0-31,1023")
	f.IntVar(&o.Batch, "batch", 10_000, "`number` of rows per statement")
	f.IntVar(&o.Rate, "rate", 0, "largest `number` of rows per second (default: no limit)")
	f.IntVar(&o.Examples, "examples", 5, "`number` of examples per finding")
	completeFlag(cmd, "type", ids.Names())
	return cmd
}

// checkAudit checks the flags, and sets the options that need parsing.
func (c *app) checkAudit(o *auditFlags) (err error) {
	switch {
	case o.Type != "" && !slices.Contains(ids.Names(), o.Type):
		return cli.Usagef("--type %q: want %s", o.Type, strings.Join(ids.Names(), ", "))
	case o.layout.set() && o.Type == "":
		return cli.Usagef("--epoch and --bits need --type snowflake or snowflake-si")
	case o.Batch < 1 || o.Batch > 1_000_000:
		return cli.Usagef("--batch %d: want 1 to 1000000", o.Batch)
	case o.Rate < 0 || o.Examples < 0:
		return cli.Usagef("--rate and --examples must not be negative")
	}
	if o.Known, err = parseNumbers(o.nodes); err != nil {
		return err
	}
	if o.layout.set() {
		if _, err := c.datedFormat(o.Type, o.layout); err != nil {
			return err
		}
		layouts, err := c.layouts(o.layout, snowflakeBits, snowflakeSIBits)
		if err != nil {
			return err
		}
		o.Layouts = &layouts
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

// parseNumbers parses numbers and ranges, such as 0-31,1023.
func parseNumbers(list string) (map[int]bool, error) {
	numbers := map[int]bool{}
	if list == "" {
		return numbers, nil
	}
	for part := range strings.SplitSeq(list, ",") {
		text, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = text
		}
		low, err1 := parseNumber(text)
		high, err2 := parseNumber(last)
		if err1 != nil || err2 != nil || high < low {
			return nil, cli.Usagef("--nodes %q: want numbers and ranges from 0 to 65535, such as 0-31,1023", list)
		}
		for n := low; n <= high; n++ {
			numbers[n] = true
		}
	}
	return numbers, nil
}
