package dbhealth

import (
	"context"
	"fmt"
)

var poolExhausted = Rule{
	ID: "pool-exhausted", Area: "claims",
	Means:  "a pool has no free node number, or, as a warning, fewer than a rolling deploy needs",
	Remedy: "release numbers, or move to a layout with more of them",
	needs:  []string{mayList},
	check: func(ctx context.Context, e *Examination) error {
		pools, err := e.Pools(ctx)
		if err == nil && len(pools) == 0 {
			e.add(OK, "", "pools", "no program has claimed a number, and none is reserved", "")
		}
		for _, p := range pools {
			if p.Size == nil {
				e.add(OK, p.Pool, p.subject(), fmt.Sprintf("%d reserved; no program has claimed a number", p.Reserved), "")
				continue
			}
			detail := fmt.Sprintf("%d held, %d reserved, %d free", p.Held, p.Reserved, *p.Free)
			if p.Ahead > 0 {
				detail += fmt.Sprintf(", %d ahead of the clock", p.Ahead)
			}
			switch {
			case *p.Free <= 0:
				e.add(Problem, p.Pool, p.subject(), detail+": no other program can start", "stop programs that don't need their number, or release their claims: sortkey nodes list "+p.Pool)
			case *p.Free*4 < p.Held:
				e.add(Warning, p.Pool, p.subject(), detail+": a rolling deploy with a surge of 25 % needs more", "move to a layout with more node numbers, or deploy in smaller steps")
			default:
				e.add(OK, p.Pool, p.subject(), detail, "")
			}
		}
		return err
	},
}

func (p Pool) subject() string { return "pool " + p.Pool }
