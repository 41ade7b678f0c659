package dbhealth

import (
	"context"
	"fmt"
	"slices"
)

var markAhead = Rule{
	ID: "mark-ahead", Area: "claims",
	Means:  "the high-water mark of a number is further ahead than a holder with a correct clock leaves it",
	Remedy: "correct the clock of the holder; otherwise nobody can claim the number until then",
	needs:  []string{mayList},
	check: func(ctx context.Context, e *Examination) error {
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
			e.add(Warning, "", "other numbers", fmt.Sprintf("%d more high-water marks are ahead", len(wrong)-shown), "run sortkey nodes list --all")
		}
		return err
	},
}
