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
			if p.Size == nil { // no claim has created the pool, but it has the size of its format
				detail := fmt.Sprintf("%d reserved; no program has claimed a number", p.Reserved)
				all, err := e.allReserved(ctx, p.Pool)
				switch {
				case err != nil:
					return err
				case all:
					e.add(Problem, p.Pool, p.subject(), detail+", and none is free", "release the reservations that no default uses, or move to a layout with more node numbers: sortkey nodes list "+p.Pool)
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

// allReserved reports whether all numbers of a pool that no claim has created are reserved.
func (e *Examination) allReserved(ctx context.Context, pool string) (bool, error) {
	f := FormatOf(e.Config, pool, "")
	if f == nil {
		return false, nil
	}
	reserved, err := e.reservations(ctx)
	free := f.Size
	for _, r := range reserved {
		if r.pool == pool && r.setting >= 0 {
			free--
		}
	}
	return free == 0, err
}

func (p Pool) subject() string { return "pool " + p.Pool }
