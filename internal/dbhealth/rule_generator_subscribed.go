package dbhealth

import "context"

var generatorSubscribed = Rule{
	ID: "generator-subscribed", Area: "generators",
	Means:  "a subscription sets a sequence of the `next_` functions to the publisher's state, after which a default can repeat IDs",
	Remedy: "remove the sequence from the subscription",
	check: func(ctx context.Context, e *Examination) error {
		// Since Postgres 19, a publication can have sequences.
		type subscribed struct{ sequence, subscription string }
		list, err := collect(ctx, e, func(s *subscribed) []any { return []any{&s.sequence, &s.subscription} }, `
			SELECT c.relname, quote_ident(u.subname) FROM pg_subscription_rel r JOIN pg_class c ON c.oid = r.srrelid JOIN pg_namespace n ON n.oid = c.relnamespace
				JOIN pg_subscription u ON u.oid = r.srsubid WHERE n.nspname = '$s_internal' AND c.relkind = 'S' ORDER BY 1, 2`)
		for _, s := range list {
			e.add(Problem, "", e.sql("$s_internal."+s.sequence), "is a sequence of subscription "+s.subscription+": its next refresh sets it back, and the defaults can then repeat IDs",
				"drop the subscription, or take schema "+e.Config.Schema+"_internal out of its publication and run ALTER SUBSCRIPTION "+s.subscription+" REFRESH PUBLICATION; a subscriber with node numbers of its own needs no sequences of the publisher")
		}
		return err
	},
}
