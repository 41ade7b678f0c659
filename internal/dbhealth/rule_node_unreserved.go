package dbhealth

import "context"

var nodeUnreserved = Rule{
	ID: "node-unreserved", Area: "defaults",
	Means:  "a default generates IDs with a node number that a program could claim, and then both can generate the same ones",
	Remedy: "`sortkey nodes reserve POOL N`",
	needs:  []string{usage},
	check:  func(ctx context.Context, e *Examination) error { return e.addDefaults(ctx, false) },
}
