package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/internal/dbhealth"
	"github.com/spf13/cobra"
)

func (c *app) nodesListCommand() *cobra.Command {
	var flags databaseFlags
	var all bool
	cmd := &cobra.Command{
		Use:   "list [POOL [NUMBER]]",
		Short: "List pools, the numbers of a pool, or a number",
		Long: `List prints the pools of node numbers, and below them the results of doctor
about pools. With POOL, it prints the numbers of the pool that are held or
reserved or were used before. With POOL and NUMBER, it prints the number: its
holder or reservation, its high-water mark, the fields that it has in IDs, and
the defaults of this database that use it.

The columns of pools:

    HELD      numbers that a program holds
    RESERVED  numbers that no program can claim
    FREE      numbers that a program can claim now
    AHEAD     other numbers, with a high-water mark ahead of the server's clock
    FENCE     the end of the wait after a failover: until then, the server
              grants no number of the pool

The columns of numbers:

    STATE     held, reserved or free
    HOLDER    the program with the claim, or with the number's expired claim
    CLAIMED   the age of the claim
    EXPIRES   the end of the claim, unless the holder renews it
    MARK      the high-water mark: the number may have been used up to this time
    SKEW      MARK minus the server's clock. The mark of a healthy holder is at
              most one TTL ahead. If it is further ahead, the clock of a holder
              was wrong.
    TERM      the number of claims so far
    NOTE      the note of the reservation`,
		Example: `  sortkey nodes list
  sortkey nodes list snowflake
  sortkey nodes list snowflake 7
  sortkey nodes list --all --output json`,
		Args: asUsage(cobra.MaximumNArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if all && len(args) > 0 {
				return cli.Usagef("--all lists the numbers of all pools: omit %s or --all", args[0])
			}
			var pool string
			var number int
			if len(args) == 2 {
				var err error
				if pool, number, err = parsePoolNumber(args); err != nil {
					return err
				}
			}
			n, err := openNodes(cmd.Context(), &flags)
			if err != nil {
				return err
			}
			defer n.Close()
			switch {
			case len(args) == 2:
				err = c.listNumber(cmd.Context(), n, pool, number)
			case all || len(args) > 0:
				err = c.listNumbers(cmd.Context(), n, args)
			default:
				err = c.listPools(cmd.Context(), n)
			}
			return n.explain(cmd.Context(), err, mayList)
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVarP(&all, "all", "a", false, "list the numbers of all pools")
	return cmd
}

func (c *app) listPools(ctx context.Context, n *nodes) error {
	health := n.health()
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
		results = append(results, result{p, slices.DeleteFunc(slices.Clone(report.Findings), func(f dbhealth.Finding) bool { return f.Of != p.Pool || !f.Counts() })})
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
func (c *app) listNumbers(ctx context.Context, n *nodes, args []string) error {
	pool := ""
	if len(args) > 0 {
		pool = args[0]
		pools, err := n.health().Pools(ctx)
		if err != nil {
			return err
		}
		if err := unknownPool(pool, pools); err != nil {
			return err
		}
	}
	numbers, err := n.health().Numbers(ctx, pool, -1)
	if err != nil {
		return err
	}
	header := table.Row{"Pool", "Number", "State", "Holder", "Claimed", "Expires", "Mark", "Skew", "Term", "Note"}
	return cli.PrintRows(c.Terminal, numbers, header, func(l dbhealth.Number) table.Row {
		var claimed, expires, mark, ahead string
		if l.Holder != nil && l.ClaimedAt != nil {
			claimed = l.ClaimedAt.From(l.Now)
		}
		if l.Holder != nil && l.ExpiresAt != nil {
			expires = l.ExpiresAt.From(l.Now)
		}
		if l.Mark != nil {
			mark, ahead = l.Mark.Stamp(), skew(l)
		}
		if l.FarAhead {
			ahead = c.Paint(text.FgYellow, ahead)
		}
		return table.Row{l.Pool, l.Number, l.State, cli.Cell(l.Holder), claimed, expires, mark, ahead, l.Term, cli.Cell(l.Note)}
	})
}

// skew returns Skew with a sign, as +27s or -3d.
func skew(l dbhealth.Number) string {
	d := l.Mark.Sub(l.Now)
	switch {
	case l.Skew == nil:
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
	format  string // of the pool's IDs; "": unknown
}

// outOfRange returns the error of a number that a pool doesn't have.
func outOfRange(pool string, number, size int) error {
	return cli.Usagef("number %d of pool %s is out of range; want 0 to %d", number, pool, size-1)
}

// A nodeDefault is a default that uses a number.
type nodeDefault struct {
	Kind        string `json:"kind"` // column, domain or function
	Name        string `json:"name"`
	Expression  string `json:"expression"`
	FromSetting bool   `json:"from_setting"`
}

func (n *nodes) node(ctx context.Context, pool string, number int) (node, error) {
	health := n.health()
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
	f := n.formatOf(pool, layout)
	if f != nil {
		size = cmp.Or(size, f.size)
	}
	l.inRange = size == 0 || number < size
	switch {
	case !l.inRange:
		l.fields = fmt.Sprintf("out of range; want 0 to %d", size-1)
	case f != nil:
		l.setting, l.format = f.node(number), f.Name
		l.Fields, l.fields = f.NodeFields(l.setting)
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
	l.Defaults, err = cli.Collect(ctx, n, pgx.RowToStructByName[nodeDefault], n.sql(`
		SELECT d.kind, d.name, d.expression, d.from_setting FROM $s.node_defaults d
		WHERE d.pool = $1 AND d.number = $2 ORDER BY d.kind, d.name`), pool, number)
	return l, err
}

func (c *app) listNumber(ctx context.Context, n *nodes, pool string, number int) error {
	l, err := n.node(ctx, pool, number)
	if err != nil {
		return err
	}
	return c.printNode(l)
}

func (c *app) printNode(l node) error {
	if c.JSON() {
		return c.PrintJSON(l)
	}
	var rows []table.Row
	add := func(label string, value any) { rows = append(rows, table.Row{label, value}) }
	at := func(label string, t *dbhealth.Moment) {
		if t != nil {
			add(label, fmt.Sprintf("%s (%s)", t.Stamp(), t.From(l.Now)))
		}
	}
	if l.Size != nil {
		add("Pool", fmt.Sprintf("%s (%d numbers)", l.Pool, *l.Size))
		add("Layout", *l.Layout)
	} else {
		add("Pool", l.Pool)
	}
	add("Number", l.Number.Number)
	if l.fields != "" {
		add("In IDs", l.fields)
	}
	add("State", l.State)
	if l.Note != nil {
		add("Reserved for", *l.Note)
	}
	if l.Holder != nil {
		add("Holder", *l.Holder)
		if l.TTL != nil {
			add("TTL", time.Duration(*l.TTL*float64(time.Second)))
		}
		at("Claimed", l.ClaimedAt)
		at("Renewed", l.RenewedAt)
		at("Expires", l.ExpiresAt)
	}
	if l.Mark != nil {
		add("High-water mark", fmt.Sprintf("%s (%s)", l.Mark.Stamp(), skew(l.Number)))
	} else {
		add("High-water mark", "never used by a program")
	}
	add("Claims so far", l.Term)
	label := "Used by"
	const shown = 10 // each partition has its own default
	for i, d := range l.Defaults {
		if i == shown {
			add("", fmt.Sprintf("(and %d more)", len(l.Defaults)-shown))
			break
		}
		add(label, fmt.Sprintf("%s %s, default %s", d.Kind, d.Name, d.Expression))
		label = ""
	}
	return c.PrintBlock(rows)
}
