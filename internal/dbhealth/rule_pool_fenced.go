package dbhealth

import (
	"context"
	"fmt"
	"time"
)

const longestFence = time.Hour // the longest TTL: problem above

var poolFenced = Rule{
	ID: "pool-fenced", Area: "claims",
	Means:  "after a failover, a pool grants no numbers until the claims that the standby lacks have expired; longer than an hour is a problem",
	Remedy: "wait; correct `fenced_until` if the server's clock was ahead",
	needs:  []string{mayList},
	check: func(ctx context.Context, e *Examination) error {
		pools, err := e.Pools(ctx)
		for _, p := range pools {
			if p.FencedUntil == nil {
				continue
			}
			level, remedy := Warning, "wait: claims that a standby had not received at the failover expire until then"
			if p.FencedUntil.Infinite != "" || p.Fence > longestFence {
				level, remedy = Problem, e.sql("the server's clock was ahead when the fence began: correct $s.node_pool.fenced_until by hand, to at least one TTL after the failover")
			}
			e.add(level, p.Pool, p.subject(), fmt.Sprintf("fenced: the server grants no number until %s (%s)", p.FencedUntil.Stamp(), p.FencedUntil.From(e.serverNow())), remedy)
		}
		return err
	},
}
