package growbench

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/sortkey/sortkey/bench/internal/figures"
	"github.com/sortkey/sortkey/idtype"
)

// TestKeys generates keys faster than the formats allow in real time. No call fails,
// no key repeats, and the keys of this project except Spread64 ascend in the order
// of their column.
func TestKeys(t *testing.T) {
	for _, k := range newKeys(t, time.Now(), 32) {
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
				if err != nil {
					t.Fatalf("key %d: %v", i, err)
				}
				if seen[id] {
					t.Fatalf("key %d: %v is a duplicate", i, id)
				}
				seen[id] = true
				if last != nil && after(last, id) {
					ascending = false
				}
				last = id
			}
			switch k.Name {
			case "Snowflake", "SnowflakeSI", "UID60", "Sno", "UUID":
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

// TestPaced generates Spread64 keys at the format's cap and above it. Above it the
// generator must fail: if it waited, the figures would include waits.
func TestPaced(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	k := figures.Spread64(t, figures.Paced(start, 64))
	for i := range 6400 {
		id, err := k.Next()
		if err != nil {
			t.Fatal(err)
		}
		want := start.Add(time.Duration(i/64) * time.Millisecond)
		if got := (idtype.Spread64Layout{}).Time(id.(idtype.Spread64)); !got.Equal(want) {
			t.Fatalf("key %d: expected time %v, got %v", i, want, got)
		}
	}
	k = figures.Spread64(t, figures.Paced(start, 65))
	var err error
	for i := 0; i < 6500 && err == nil; i++ {
		_, err = k.Next()
	}
	if !errors.Is(err, idtype.ErrSequenceExhausted) {
		t.Errorf("expected ErrSequenceExhausted at a pace of 65, got %v", err)
	}
}

func TestTotals(t *testing.T) {
	for _, c := range []struct {
		rows, steps int
		want        []int
	}{
		{100, 4, []int{25, 50, 75, 100}},
		{10, 3, []int{3, 6, 10}},
		{2, 20, []int{1, 2}},
		{5, 0, []int{5}},
	} {
		if got := totals(c.rows, c.steps); !slices.Equal(got, c.want) {
			t.Errorf("%d rows in %d steps: expected %v, got %v", c.rows, c.steps, c.want, got)
		}
	}
}

func TestChoose(t *testing.T) {
	keys := []figures.Key{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	for list, want := range map[string][]string{"": {"a", "b", "c"}, "b": {"b"}, "c,a": {"c", "a"}, "a,d": nil} {
		chosen, err := choose(keys, list)
		var got []string
		for _, k := range chosen {
			got = append(got, k.Name)
		}
		if !slices.Equal(got, want) || (err != nil) != (want == nil) {
			t.Errorf("%q: expected %v, got %v, %v", list, want, got, err)
		}
	}
}
