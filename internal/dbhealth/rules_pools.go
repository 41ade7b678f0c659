package dbhealth

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/nodelease"
)

func checkExhausted(ctx context.Context, e *Examination) error {
	pools, err := e.Pools(ctx)
	if err == nil && len(pools) == 0 {
		e.add(OK, "", "pools", "no program has claimed a number, and none is reserved", "")
	}
	for _, p := range pools {
		if p.Size == nil { // no claim has created the pool, but it has the size of its format
			detail := fmt.Sprintf("%d reserved; no program has claimed a number", p.Reserved)
			all, err := e.allReserved(ctx, p.Pool)
			switch {
			case err != nil:
				return err
			case all:
				e.add(Problem, p.Pool, p.subject(), detail+", and none is free", "release the reservations that no default uses, or move to a layout with more node numbers: "+e.command("nodes list %s", p.Pool))
			default:
				e.add(OK, p.Pool, p.subject(), detail, "")
			}
			continue
		}
		detail := fmt.Sprintf("%d held, %d reserved, %d free", p.Held, p.Reserved, *p.Free)
		if p.Ahead > 0 {
			detail += fmt.Sprintf(", %d ahead of the clock", p.Ahead)
		}
		switch {
		case *p.Free <= 0:
			e.add(Problem, p.Pool, p.subject(), detail+": no other program can start", "stop programs that don't need their number, or release their claims: "+e.command("nodes list %s", p.Pool))
		case *p.Free*4 < p.Held:
			e.add(Warning, p.Pool, p.subject(), detail+": a rolling deploy with a surge of 25 % needs more", "move to a layout with more node numbers, or deploy in smaller steps")
		default:
			e.add(OK, p.Pool, p.subject(), detail, "")
		}
	}
	return err
}

// allReserved reports whether all numbers of a pool that no claim has created are reserved.
func (e *Examination) allReserved(ctx context.Context, pool string) (bool, error) {
	reservations, err := e.reservations(ctx)
	reserved, size := 0, 0
	for _, r := range reservations {
		if r.pool == pool && r.setting >= 0 {
			reserved, size = reserved+1, r.size
		}
	}
	return size > 0 && reserved == size, err
}

func (p Pool) subject() string { return "pool " + p.Pool }

const longestFence = time.Hour // the longest TTL: problem above

func checkFences(ctx context.Context, e *Examination) error {
	pools, err := e.Pools(ctx)
	for _, p := range pools {
		if p.FencedUntil == nil {
			continue
		}
		level, remedy := Warning, "wait: claims that a standby had not received at the failover expire until then"
		if p.Fence > longestFence.Seconds() {
			level, remedy = Problem, e.sql("the server's clock was ahead when the fence began: correct $s.node_pool.fenced_until by hand, to at least one TTL after the failover")
		}
		e.add(level, p.Pool, p.subject(), fmt.Sprintf("fenced: the server grants no number until %s (%s)", p.FencedUntil.Stamp(), p.FencedUntil.From(e.serverNow())), remedy)
	}
	return err
}

func checkPoolLayouts(ctx context.Context, e *Examination) error {
	pools, err := e.Pools(ctx)
	want := map[string]string{"snowflake": nodelease.ForSnowflake(e.Config.Snowflake).Layout}
	if e.Config.SnowflakeSI != (idtype.SnowflakeSILayout{}) {
		want["snowflake_si"] = nodelease.ForSnowflakeSI(e.Config.SnowflakeSI).Layout
	}
	for _, p := range pools {
		if p.Layout == nil {
			continue
		}
		format, _, _ := strings.Cut(*p.Layout, ":")
		if layout, ok := want[format]; ok && *p.Layout != layout {
			e.add(Warning, p.Pool, p.subject(), fmt.Sprintf("has layout %q, but the functions of this database have %q", *p.Layout, layout),
				"use the same layout in all programs, or the functions read wrong times from their IDs")
		}
	}
	return err
}

func checkRanges(ctx context.Context, e *Examination) error {
	reserved, err := e.reservations(ctx)
	for _, r := range reserved {
		if r.setting < 0 {
			e.add(Problem, r.pool, fmt.Sprintf("number %d of pool %s", r.number, r.pool), "reserved, but out of range: "+r.rangeText(),
				"run "+e.command("nodes release %s %d", r.pool, r.number))
		}
	}
	return err
}

func checkMarks(ctx context.Context, e *Examination) error {
	numbers, err := e.Numbers(ctx, "", -1)
	const shown = 5
	wrong := slices.DeleteFunc(numbers, func(n Number) bool { return !n.FarAhead })
	for _, n := range wrong[:min(shown, len(wrong))] {
		remedy := "no program can claim the number until then; the documentation of package pglease describes when you may set a mark back"
		if n.Holder != nil {
			remedy = "correct the clock of " + *n.Holder
		}
		ahead := n.Mark.Infinite
		if ahead == "" {
			ahead = short(n.Mark.Sub(n.Now))
		}
		e.add(Warning, n.Pool, fmt.Sprintf("number %d of pool %s", n.Number, n.Pool), fmt.Sprintf("high-water mark %s ahead of the server's clock: the clock of a holder was wrong", ahead), remedy)
	}
	if len(wrong) > shown {
		e.add(Warning, "", "other numbers", fmt.Sprintf("%d more high-water marks are ahead", len(wrong)-shown), "run "+e.command("nodes list --all"))
	}
	return err
}
