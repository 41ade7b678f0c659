package growbench

import (
	"testing"
	"time"

	"github.com/sortkey/sortkey/idtype"
)

// TestKeys generates keys faster than the formats allow in real time. No call fails,
// no key repeats, and the keys of this project except Spread64 ascend in the order
// of their column.
func TestKeys(t *testing.T) {
	for _, k := range newKeys(t, time.Now()) {
		if k.Next == nil {
			continue
		}
		t.Run(k.Name, func(t *testing.T) {
			const n = 200_000
			seen := make(map[any]bool, n)
			ascending := true
			var last any
			for i := range n {
				id, err := k.Next()
				if err != nil || seen[id] {
					t.Fatalf("key %d: %v is a duplicate, or: %v", i, id, err)
				}
				seen[id] = true
				ascending = ascending && (last == nil || !after(last, id))
				last = id
			}
			switch k.Name {
			case "Snowflake", "Sno", "UUID":
				if !ascending {
					t.Error("the keys aren't in ascending order")
				}
			case "Spread64":
				if ascending {
					t.Error("the keys are in ascending order, want them spread")
				}
			}
		})
	}
}

// after reports whether a sorts after b in a column of this project's types.
func after(a, b any) bool {
	switch a := a.(type) {
	case idtype.Sno:
		return a.Compare(b.(idtype.Sno)) > 0
	case idtype.UUID:
		return a.Compare(b.(idtype.UUID)) > 0
	case interface{ Int64() int64 }:
		return a.Int64() > b.(interface{ Int64() int64 }).Int64()
	}
	return false
}
