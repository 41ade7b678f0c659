package idtest_test

import (
	"context"
	"encoding"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/idtype/idtest"
)

type order struct{}

func (order) IDPrefix() string { return "ord" }
func (order) IDMeta() byte     { return 'c' }

// checkSequence checks the text of the fourth ID, and that IDs differ and survive a
// round trip of each form.
func checkSequence[V interface {
	comparable
	fmt.Stringer
	encoding.TextAppender
}, P interface {
	*V
	encoding.BinaryUnmarshaler
	encoding.TextUnmarshaler
	Scan(any) error
}](t *testing.T, fourth string) {
	t.Helper()
	g := idtest.Sequence[V, P]()
	ids := make([]V, 70_000) // more than the 65,536 sequence numbers of a Sno
	for i := range 3 {
		id, err := g.Next()
		if err != nil {
			t.Fatal(err)
		}
		ids[i] = id
	}
	if n, err := g.Fill(t.Context(), ids[3:]); n != len(ids)-3 || err != nil {
		t.Fatal(n, err)
	}
	if ids[3].String() != fourth {
		t.Errorf("%T: got %s, want %s", ids[3], ids[3], fourth)
	}
	seen := map[V]bool{}
	for i, id := range ids {
		seen[id] = true
		var back V
		text, err := id.AppendText(nil)
		if err == nil {
			err = P(&back).UnmarshalText(text)
		}
		if err != nil || back != id || idtest.ID[V, P](int64(i)+1) != id {
			t.Fatalf("%T %d: %v, read back as %v, %v", id, i+1, id, back, err)
		}
	}
	if len(seen) != len(ids) {
		t.Errorf("%T: %d different IDs of %d", ids[0], len(seen), len(ids))
	}
}

func TestSequence(t *testing.T) {
	checkSequence[idtype.Snowflake](t, "4")
	checkSequence[idtype.SnowflakeSI](t, "4")
	checkSequence[idtype.UID60](t, idtype.UID60(4).String())
	checkSequence[idtype.Spread64](t, "0000000000000004")
	checkSequence[idtype.Sno](t, "2222222222222226")
	checkSequence[idtype.UUID](t, "00000000-0000-7000-8000-000000000004")
	checkSequence[idtype.SnowflakeOf[order]](t, "ord_4")
	checkSequence[idtype.SnowflakeSIOf[order]](t, "ord_4")
	checkSequence[idtype.UID60Of[order]](t, idtype.UID60Of[order](4).String())
	checkSequence[idtype.Spread64Of[order]](t, "ord_0000000000000004")
	checkSequence[idtype.SnoOf[order]](t, "ord_"+idtype.Sno{5: 'c', 9: 4}.String())
	checkSequence[idtype.UUIDOf[order]](t, "ord_0000000000e008000000000004")
	if at, err := idtest.ID[idtype.UUID](4).Time(); err != nil || at.UnixMilli() != 0 {
		t.Errorf("a UUID has the time %v, %v", at, err)
	}
}

type bare struct{}

// Large numbers don't repeat the IDs of smaller ones.
func checkLargest[V comparable, P interface {
	*V
	encoding.BinaryUnmarshaler
}](t *testing.T, largest int64) {
	t.Helper()
	seen := map[V]int64{}
	for bit := range 63 {
		for _, n := range []int64{1 << bit, 1<<bit + 1, 1<<bit - 1, largest - 1<<bit, largest} {
			if n < 1 || n > largest {
				continue
			}
			id := idtest.ID[V, P](n)
			if other, repeated := seen[id]; repeated && other != n {
				t.Errorf("%T: %d and %d are both %v", id, n, other, id)
			}
			seen[id] = n
		}
	}
	defer func() {
		if p := fmt.Sprint(recover()); largest < math.MaxInt64 && !strings.HasSuffix(p, fmt.Sprintf("want at most %d", largest)) && !strings.Contains(p, "9007199254740991") {
			t.Errorf("%T: %d: panic %q", *new(V), largest+1, p)
		}
	}()
	if largest < math.MaxInt64 {
		idtest.ID[V, P](largest + 1)
		t.Errorf("%T: no panic for %d", *new(V), largest+1)
	}
}

func TestLargest(t *testing.T) {
	checkLargest[idtype.Snowflake](t, math.MaxInt64)
	checkLargest[idtype.SnowflakeSI](t, 1<<53-1)
	checkLargest[idtype.Spread64](t, 1<<58-1)
	checkLargest[idtype.Spread64Of[order]](t, 1<<58-1)
	checkLargest[idtype.Sno](t, math.MaxInt64)
	checkLargest[idtype.SnoOf[bare]](t, math.MaxInt64)
	checkLargest[idtype.SnoOf[order]](t, 1<<32-1)
	checkLargest[idtype.UUID](t, 1<<62-1)
	checkLargest[idtype.UUIDOf[order]](t, 1<<62-1)
}

func TestSequenceRefusals(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := idtest.Sequence[idtype.Snowflake]().Fill(ctx, make([]idtype.Snowflake, 1)); n != 0 || !errors.Is(err, context.Canceled) {
		t.Error(n, err)
	}
	for _, f := range []func(){
		func() { idtest.ID[idtype.Snowflake](0) },
		func() { idtest.ID[idtype.SnowflakeSI](1 << 53) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("expected a panic")
				}
			}()
			f()
		}()
	}
}

func TestSequenceParallel(t *testing.T) {
	g := idtest.Sequence[idtype.Snowflake]()
	var mu sync.Mutex
	seen := map[idtype.Snowflake]bool{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				id, _ := g.Next()
				mu.Lock()
				seen[id] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(seen) != 800 || !seen[1] || !seen[800] {
		t.Errorf("%d different IDs of 800", len(seen))
	}
}

// A generator reads the clock, and IDs have its time.
func TestClock(t *testing.T) {
	start := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	clock := idtest.NewClock(start)
	g, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Options: idtype.Options{Clock: clock.Now, MaxWait: -1}})
	if err != nil {
		t.Fatal(err)
	}
	next := func(want time.Time) {
		t.Helper()
		id, err := g.Next()
		if got := idtype.DefaultSnowflakeLayout().Time(id); err != nil || !got.Equal(want) {
			t.Errorf("got an ID of %v, %v, want %v", got, err, want)
		}
	}
	next(start)
	next(start)
	clock.Add(time.Hour)
	next(start.Add(time.Hour))
	clock.Set(start)
	if _, err := g.Next(); !errors.Is(err, idtype.ErrClockBackwards) {
		t.Errorf("after a step back: got %v, want %v", err, idtype.ErrClockBackwards)
	}
}
