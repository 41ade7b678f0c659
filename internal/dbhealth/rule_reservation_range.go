package dbhealth

import (
	"context"
	"fmt"
)

var reservationRange = Rule{
	ID: "reservation-range", Area: "claims",
	Means:  "a reserved number is out of the range of its pool",
	Remedy: "`sortkey nodes release POOL N`",
	needs:  []string{mayList},
	check: func(ctx context.Context, e *Examination) error {
		reserved, err := e.reservations(ctx)
		for _, r := range reserved {
			if r.setting < 0 {
				e.add(Problem, r.pool, fmt.Sprintf("number %d of pool %s", r.number, r.pool), "reserved, but out of range: "+r.rangeText(),
					fmt.Sprintf("run sortkey nodes release %s %d", r.pool, r.number))
			}
		}
		return err
	},
}
