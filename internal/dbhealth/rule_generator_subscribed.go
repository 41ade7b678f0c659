package dbhealth

import "context"

var generatorSubscribed = Rule{
	ID: "generator-subscribed", Area: "generators",
	Means:  "a subscription sets a sequence of the `next_` functions to the publisher's state, and a default that creates IDs meanwhile repeats some",
	Remedy: "subscribe to no publication `FOR ALL SEQUENCES`; copy other sequences with `setval`",
	check: func(ctx context.Context, e *Examination) error {
		// Since Postgres 19, a publication can have sequences.
		type subscribed struct{ sequence, subscription string }
		list, err := collect(ctx, e, func(s *subscribed) []any { return []any{&s.sequence, &s.subscription} }, `
			SELECT c.relname, quote_ident(u.subname) FROM pg_subscription_rel r JOIN pg_class c ON c.oid = r.srrelid JOIN pg_namespace n ON n.oid = c.relnamespace
				JOIN pg_subscription u ON u.oid = r.srsubid WHERE n.nspname = '$s_internal' AND c.relkind = 'S' ORDER BY 1, 2`)
		for _, s := range list {
			e.add(Problem, "", e.sql("$s_internal."+s.sequence), "is a sequence of subscription "+s.subscription+": its next refresh sets it back, and the defaults repeat IDs if they create some meanwhile",
				"run ALTER SUBSCRIPTION "+s.subscription+" DROP PUBLICATION … with the publication of all sequences, or take the sequences out of it and run ALTER SUBSCRIPTION "+s.subscription+" REFRESH PUBLICATION; copy the sequences of other schemas with setval")
		}
		return err
	},
}
