package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/ids"
	"github.com/sortkey/sortkey/internal/dbhealth"
	"github.com/sortkey/sortkey/internal/pgerror"
	"github.com/sortkey/sortkey/migrations"
	"github.com/spf13/cobra"
)

// auditFlags are the flags of audit.
type auditFlags struct {
	layout       layoutFlags
	layouts      *ids.Layouts // of layout, or nil
	name         string       // of the format, or ""
	since, until time.Time
	nodes        map[int]bool // of --nodes, or nil
	serialUntil  int64
	sql          bool

	missing   string // why the installation has no layouts and node numbers
	forbidden bool   // the role can't read it
}

func (c *app) auditCommand() *cobra.Command {
	var o auditFlags
	cmd := databaseCommand(&cobra.Command{
		Use:   "audit TABLE[.COLUMN]...",
		Short: "Check the IDs of tables",
		Long: `Audit reads columns of IDs and reports problems. Without COLUMN, it reads the
primary key. The findings are:

    malformed     not an ID of the type: a negative number (except a spread64),
                  reserved bits set, a uuid that is not a sno, or, for uuid7, a
                  variant other than RFC 9562's
    zero          the zero ID, or the nil UUID
    future        the time of the ID is more than 1 s after the server's clock
    small         the ID is below 2^32, as the key of a serial column; a spread64
                  has no such limit
    unknown_node  the node number was never claimed or reserved in the database,
                  and is not in --nodes
    duplicate     another row has the ID, too (the first one doesn't count);
                  not read if a unique index excludes it

If a table has keys of a serial column beside its IDs, pass the largest one as
--serial-until: audit counts these keys apart. Of uuid7, it counts the versions.

The type comes from the domain or default of the column, or from its comment
after sortkey rekey. In other cases, pass --type. The layouts of the
installation apply, unless --epoch or --bits is set. If the domain or default is
of another installation, pass its --schema.

Audit reads each table once, or twice if it has no unique index on the column.
With --sql, it prints these statements instead of running them.

Audit needs SELECT on the tables, and for unknown_node on the view node_status
and the table node_pool of the installation. It opens only tables whose owner
the session trusts. The exit code is 1 if there is a finding.`,
		Args: cobra.MinimumNArgs(1),
		PreRunE: func(*cobra.Command, []string) error {
			return c.checkAudit(&o)
		},
	}, func(ctx context.Context, db database, args []string) error {
		return c.audit(ctx, db, args, &o)
	})
	f := cmd.Flags()
	choiceFlag(cmd, &o.name, "type", "", "`type` of the IDs: "+strings.Join(ids.Names(), ", "), ids.Names())
	o.layout.add(cmd)
	c.timeFlag(cmd, &o.since, "since", "`time` of the first IDs to read")
	c.timeFlag(cmd, &o.until, "until", "`time` after the last IDs to read")
	f.Func("nodes", "node `numbers` of programs without a claim, such as 0-31,1023", func(list string) (err error) {
		o.nodes, err = parseNumbers(list)
		return err
	})
	f.Int64Var(&o.serialUntil, "serial-until", 0, "largest `key` of a serial column that the table had before (default: none)")
	f.BoolVar(&o.sql, "sql", false, "print the SQL instead of running it")
	return cmd
}

// maxSerial is above any key that a serial column reaches.
const maxSerial = 1 << 53

// checkAudit checks the flags, and sets layouts.
func (c *app) checkAudit(o *auditFlags) error {
	switch {
	case o.layout.set() && o.name == "":
		return cli.Usagef("--epoch and --bits need --type snowflake or snowflake-si")
	case o.serialUntil < 0 || o.serialUntil > maxSerial:
		return cli.Usagef("--serial-until %d: want the largest key of the serial column, up to %d, or 0 for none", o.serialUntil, int64(maxSerial))
	case !o.until.IsZero() && o.until.Before(o.since):
		return cli.Usagef("--until %s: the end is before the start, %s", o.until.Format(time.RFC3339), o.since.Format(time.RFC3339))
	}
	if !o.layout.set() {
		return nil
	}
	if _, err := c.datedFormat(o.name, o.layout); err != nil {
		return err
	}
	layouts, err := c.layouts(o.layout, snowflakeBits, snowflakeSIBits)
	o.layouts = &layouts
	return err
}

// parseNumbers parses numbers and ranges, such as 0-31,1023.
func parseNumbers(list string) (map[int]bool, error) {
	if list == "" {
		return nil, nil
	}
	numbers := map[int]bool{}
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

// audit audits tables, each as TABLE or TABLE.COLUMN.
func (c *app) audit(ctx context.Context, db database, names []string, o *auditFlags) error {
	installed, err := migrations.Installed(ctx, db.std, db.Schema)
	switch {
	case err == nil:
		db.Config = installed
	case errors.Is(err, migrations.ErrNotInstalled), errors.Is(err, migrations.ErrCitusWorker):
		o.missing = "the database has no installation in schema " + db.Schema
	case pgerror.State(err) == pgerror.InsufficientPrivilege:
		o.missing, o.forbidden = "the role lacks USAGE on schema "+db.Schema, true
		if o.layouts == nil && (o.name == "" || strings.HasPrefix(o.name, "snowflake")) {
			return fmt.Errorf("%s, so the types and layouts of IDs are unknown; grant the privilege, or pass --type, and --epoch or --bits for a snowflake", o.missing)
		}
	default:
		return err
	}
	if o.layouts != nil {
		db.Snowflake = o.layouts.Snowflake
		if !o.layouts.SnowflakeSI.BaseClock.IsZero() {
			db.SnowflakeSI = o.layouts.SnowflakeSI
		}
	}
	var keys []*auditKey
	for _, name := range names {
		k, err := db.auditKey(ctx, name, o)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(keys, func(other *auditKey) bool { return other.String() == k.String() }) {
			return cli.Usagef("column %s is named twice", k)
		}
		keys = append(keys, k)
	}
	if o.sql {
		return c.printAuditSQL(keys)
	}
	var results []auditResult
	for _, k := range keys {
		r, err := db.runAudit(ctx, k)
		if err != nil {
			return err
		}
		results = append(results, r)
	}
	return found(c.printAudit(results), slices.ContainsFunc(results, auditResult.found))
}

// knownNodes returns the node numbers in the flag, and the ones that programs have claimed or that were reserved, in the
// pools of the format. If it can't know them, it returns nil and sets unchecked.
func (db database) knownNodes(ctx context.Context, k *auditKey, o *auditFlags) (known map[int]bool, err error) {
	known = map[int]bool{}
	maps.Copy(known, o.nodes)
	found := o.nodes != nil
	switch {
	case k.format.Nodes == nil:
		k.unchecked = k.format.Name + " has no node numbers"
		return nil, nil
	case o.missing != "" && !o.forbidden && found:
		return known, nil
	case o.missing != "":
		k.unchecked = o.missing
		return nil, nil
	}
	health := dbhealth.New(db.std, dbhealth.Options{Config: db.Config})
	pools, err := health.Pools(ctx)
	numbers, err2 := health.Numbers(ctx, "", -1)
	switch err = cmp.Or(err, err2); {
	case pgerror.State(err) == pgerror.InsufficientPrivilege: // the numbers would seem unknown
		k.unchecked = fmt.Sprintf("the role lacks SELECT on %s.node_status and %[1]s.node_pool", db.Schema)
		return nil, nil
	case err != nil:
		return nil, err
	}
	for _, p := range pools {
		layout := fmt.Sprint(cli.Cell(p.Layout))
		// Programs that share a partition claim ranges of its sequence.
		var partition, ranges int
		var node func(number int) int
		if matched, _ := fmt.Sscanf(layout, "sno: partition %d in %d ranges", &partition, &ranges); matched == 2 && k.format.Name == "sno" {
			node = func(int) int { return partition }
		} else if pool := dbhealth.FormatOf(db.Config, p.Pool, layout); pool != nil && strings.ReplaceAll(pool.Name, "_", "-") == k.format.Name {
			node = pool.Node
		} else {
			continue
		}
		found = true
		for _, n := range numbers {
			if n.Pool == p.Pool {
				known[node(n.Number)] = true
			}
		}
	}
	if !found {
		k.unchecked = "no pool of node numbers has the layout of " + k.format.Name
		return nil, nil
	}
	return known, nil
}
