package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/ids"
	"github.com/sortkey/sortkey/internal/dbhealth"
	"github.com/spf13/cobra"
)

func (c *app) nodesCommand() *cobra.Command {
	return group("nodes", "List, reserve and release node numbers", `Nodes shows and changes the node numbers of a database.

Programs claim numbers from pools, and column defaults use reserved numbers. The
pools of the formats are snowflake, snowflake-si, sno, and spread64-0 to
spread64-15, one per cluster. The name spread64 stands for all pools of
Spread64: its numbers are generator << 4 | cluster.`,
		c.nodesListCommand(), c.nodesReserveCommand(), c.nodesReleaseCommand())
}

// The privileges for the tables and functions of node numbers.
const (
	mayList    = "SELECT ON $s.node_pool, $s.node_status"
	mayReserve = "EXECUTE ON FUNCTION $s.reserve_node"
	mayRelease = "EXECUTE ON FUNCTION $s.unreserve_node"
	mayTake    = "SELECT, UPDATE ON $s.node_lease"
)

// parsePoolNumber parses the arguments POOL and NUMBER. A number of pool spread64 is
// one of a cluster's pool, as in the SQL function reserve_node.
func parsePoolNumber(args []string) (pool string, number int, err error) {
	pool = args[0]
	number, err = parseNumber(args[1])
	if err == nil && pool == "spread64" {
		pool, number = fmt.Sprintf("spread64-%d", number&15), number>>4
	}
	return pool, number, err
}

func parseNumber(s string) (int, error) {
	number, err := strconv.ParseUint(s, 10, 16)
	if err != nil {
		return 0, cli.Usagef("node number %q: want 0 to 65535", s)
	}
	return int(number), nil
}

// outOfRange returns the error of a number that a pool doesn't have.
func outOfRange(pool string, number, size int) error {
	return cli.Usagef("number %d of pool %s is out of range; want 0 to %d", number, pool, size-1)
}

// poolHealth returns an examination of the pools.
func (db database) poolHealth() *dbhealth.Examination {
	return dbhealth.New(db.std, dbhealth.Options{Config: db.Config, Areas: []string{"claims"}})
}

// unknownPool returns an error unless the pool exists or has reservations.
func unknownPool(name string, pools []dbhealth.Pool) error {
	if len(pools) == 0 {
		return fmt.Errorf("pool %q doesn't exist, and there are no others: the first claim or reservation creates a pool", name)
	}
	var names []string
	for _, p := range pools {
		if p.Pool == name || name == "spread64" && strings.HasPrefix(p.Pool, "spread64-") {
			return nil
		}
		names = append(names, p.Pool)
	}
	return fmt.Errorf("pool %q doesn't exist; the pools are %s", name, strings.Join(names, ", "))
}

func (c *app) nodesListCommand() *cobra.Command {
	var all bool
	var pool string
	var number int
	cmd := installedCommand(&cobra.Command{
		Use:   "list [POOL [NUMBER]]",
		Short: "List pools, the numbers of a pool, or a number",
		Long: `List prints the pools of node numbers, and below them the results of doctor
about them. With POOL, it prints the numbers of the pool that are held or
reserved or were claimed before. With NUMBER, it prints one number, and below it its
fields in IDs and the defaults of this database that use it.

    AHEAD   free numbers with a high-water mark ahead of the server's clock
    FENCE   the end of the wait after a failover: until then, the server grants
            no number of the pool
    MARK    the high-water mark: the number may have been used up to this time
    MARK AHEAD
            MARK minus the server's clock. The mark of a healthy holder is up to
            one TTL ahead; further ahead, the clock of a holder was wrong.
    TERM    the number of claims so far`,
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: completePools,
		PreRunE: func(_ *cobra.Command, args []string) (err error) {
			if all && len(args) > 0 {
				return cli.Usagef("--all lists the numbers of all pools: omit %s or --all", args[0])
			}
			if len(args) == 2 {
				pool, number, err = parsePoolNumber(args)
			}
			return err
		},
	}, func(ctx context.Context, db database, args []string) error {
		switch {
		case len(args) == 2:
			return c.listNumber(ctx, db, pool, number)
		case all || len(args) > 0:
			return c.listNumbers(ctx, db, args)
		}
		return c.listPools(ctx, db)
	}, mayList)
	cmd.Flags().BoolVarP(&all, "all", "a", false, "list the numbers of all pools")
	return cmd
}

func (c *app) listPools(ctx context.Context, db database) error {
	health := db.poolHealth()
	pools, err := health.Pools(ctx)
	if err != nil {
		return err
	}
	report, err := health.Run(ctx)
	if err != nil {
		return err
	}
	type result struct {
		dbhealth.Pool
		Findings []dbhealth.Finding `json:"findings"` // that count
	}
	var results []result
	for _, p := range pools {
		results = append(results, result{p, findingsOf(p.Pool, report.Findings)})
	}
	header := table.Row{"Pool", "Size", "Held", "Reserved", "Free", "Ahead", "Fence", "Layout"}
	err = cli.PrintRows(c.Terminal, results, header, func(p result) table.Row {
		var fence, layout any = "", "(not used yet)"
		if p.FencedUntil != nil {
			fence = p.FencedUntil.Stamp()
		}
		if p.Layout != nil {
			layout = *p.Layout
		}
		return table.Row{p.Pool.Pool, cli.Cell(p.Size), p.Held, p.Reserved, cli.Cell(p.Free), p.Ahead, fence, layout}
	})
	if err != nil || c.JSON() {
		return err
	}
	return c.printFindings(report.Findings)
}

// listNumbers prints the numbers of the pool in args, or of all pools.
func (c *app) listNumbers(ctx context.Context, db database, args []string) error {
	pool, health := "", db.poolHealth()
	if len(args) > 0 {
		pool = args[0]
		pools, err := health.Pools(ctx)
		if err != nil {
			return err
		}
		if err := unknownPool(pool, pools); err != nil {
			return err
		}
	}
	numbers, err := health.Numbers(ctx, pool, -1)
	if err != nil {
		return err
	}
	return c.printNumbers(numbers)
}

func (c *app) printNumbers(numbers []dbhealth.Number) error {
	header := table.Row{"Pool", "Number", "State", "Holder", "Claimed", "Expires", "Mark", "Mark ahead", "Term", "Note"}
	return cli.PrintRows(c.Terminal, numbers, header, func(l dbhealth.Number) table.Row {
		var mark, ahead any = "", ""
		from := func(t *dbhealth.Moment) string {
			if l.Holder == nil || t == nil {
				return ""
			}
			return t.From(l.Now)
		}
		if l.Mark != nil {
			mark, ahead = l.Mark.Stamp(), markAheadText(l)
		}
		if l.FarAhead {
			ahead = cli.Painted{Color: text.FgYellow, Text: markAheadText(l)}
		}
		return table.Row{l.Pool, l.Number, l.State, cli.Cell(l.Holder), from(l.ClaimedAt), from(l.ExpiresAt), mark, ahead, l.Term, cli.Cell(l.Note)}
	})
}

// markAheadText returns Ahead with a sign, as +27s or -3d.
func markAheadText(l dbhealth.Number) string {
	d := l.Mark.Sub(l.Now)
	switch {
	case l.Ahead == nil:
		return l.Mark.Stamp()
	case d.Abs() >= 48*time.Hour:
		return fmt.Sprintf("%+dd", int(d.Hours()/24))
	case d.Abs() >= time.Minute:
		d = d.Round(time.Second)
	default:
		d = d.Round(100 * time.Millisecond)
	}
	if d >= 0 {
		return "+" + d.String()
	}
	return d.String()
}

// A node is a number with its use.
type node struct {
	dbhealth.Number
	Size     *int           `json:"size"`
	Layout   *string        `json:"layout"`
	Fields   map[string]int `json:"fields"` // of IDs; nil if the layout is unknown
	Defaults []nodeDefault  `json:"defaults"`

	fields  string
	inRange bool
	setting int    // the value of sortkey.node with this number; -1: none
	format  string // of the pool's IDs, as in SQL; "": unknown
}

// A nodeDefault is a default that uses a number.
type nodeDefault struct {
	Kind        string `json:"kind"` // column, domain or function
	Name        string `json:"name"`
	Expression  string `json:"expression"`
	FromSetting bool   `json:"from_setting"`
}

func (db database) node(ctx context.Context, pool string, number int) (node, error) {
	health := db.poolHealth()
	l := node{setting: -1, Number: dbhealth.Number{Pool: pool, Number: number, State: "free"}}
	pools, err := health.Pools(ctx)
	if err != nil {
		return l, err
	}
	size, layout := 0, ""
	for _, p := range pools {
		if p.Pool == pool && p.Size != nil { // a claim created the pool
			l.Size, l.Layout = p.Size, p.Layout
			size, layout = *p.Size, *p.Layout
		}
	}
	f := dbhealth.FormatOf(db.Config, pool, layout)
	if f != nil {
		size = cmp.Or(size, f.Size)
	}
	l.inRange = size == 0 || number < size
	switch {
	case !l.inRange:
		l.fields = fmt.Sprintf("out of range; want 0 to %d", size-1)
	case f != nil:
		l.setting, l.format = f.Node(number), f.Name
		layouts := ids.Layouts{Snowflake: db.Snowflake, SnowflakeSI: db.SnowflakeSI}
		l.Fields, l.fields = ids.ByName(strings.ReplaceAll(f.Name, "_", "-"), layouts).NodeFields(l.setting)
	}
	found, err := health.Numbers(ctx, pool, number)
	switch {
	case err != nil:
		return l, err
	case len(found) > 0:
		l.Number = found[0]
	case !l.inRange:
		return l, outOfRange(pool, number, size)
	case size > 0: // no program has used the number
	case unknownPool(pool, pools) != nil:
		return l, unknownPool(pool, pools)
	default:
		return l, fmt.Errorf("number %d of pool %s is neither reserved nor held, and no program has claimed a number of this pool", number, pool)
	}
	l.Defaults, err = cli.Collect(ctx, db, pgx.RowToStructByName[nodeDefault], db.sql(`
		SELECT d.kind, d.name, d.expression, d.from_setting FROM $s.node_defaults d
		WHERE d.pool = $1 AND d.number = $2 ORDER BY d.kind, d.name`), pool, number)
	return l, err
}

// listNumber prints a number as in the list of its pool, and below it its fields in IDs and the defaults that use it.
func (c *app) listNumber(ctx context.Context, db database, pool string, number int) error {
	l, err := db.node(ctx, pool, number)
	if err != nil {
		return err
	}
	if c.JSON() {
		return c.PrintJSON(l)
	}
	if err := c.printNumbers([]dbhealth.Number{l.Number}); err != nil {
		return err
	}
	lines := ""
	if l.fields != "" {
		lines = "\nin IDs: " + l.fields + "\n"
	}
	const shown = 10 // each partition has its own default
	for i, d := range l.Defaults {
		if i == shown {
			lines += fmt.Sprintf("(and %d more)\n", len(l.Defaults)-shown)
			break
		}
		lines += fmt.Sprintf("used by %s %s, default %s\n", d.Kind, cli.Printable(d.Name), cli.Printable(d.Expression))
	}
	return c.note("%s", lines)
}
