package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/internal/dbhealth"
	"github.com/spf13/cobra"
)

func (c *app) nodesListCommand() *cobra.Command {
	var flags databaseFlags
	var all bool
	var pool string
	var number int
	cmd := flags.installedCommand(&cobra.Command{
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
