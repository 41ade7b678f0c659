package idtype

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/sortkey/sortkey/internal/race"
)

// A uuidClock is a clock that a test sets. The wall clock and the monotonic clock advance
// together while a call sleeps.
type uuidClock struct {
	wall   time.Time
	ticks  time.Duration
	frozen bool // the wall clock stands still
	slept  time.Duration
}

func (c *uuidClock) clock() *clock {
	return &clock{
		wall:      func() time.Time { return c.wall },
		monotonic: func() time.Duration { return c.ticks },
		sleep: func(_ context.Context, d time.Duration, _ <-chan struct{}) {
			c.ticks += d
			c.slept += d
			if !c.frozen {
				c.wall = c.wall.Add(d)
			}
		},
	}
}

// newUUIDClock returns a clock and a generator with it.
func newUUIDClock(t *testing.T, c UUIDConfig) (*uuidClock, *UUIDGenerator) {
	t.Helper()
	at := &uuidClock{wall: utc("2026-01-02T03:04:05.678Z")}
	c.clock = at.clock()
	g, err := NewUUIDGenerator(c)
	if err != nil {
		t.Fatal(err)
	}
	return at, g
}

func mustUUID(t *testing.T, g *UUIDGenerator) UUID {
	t.Helper()
	id, err := g.Next()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// The time and the fraction of an ID are the clock's.
func TestUUIDFraction(t *testing.T) {
	at, g := newUUIDClock(t, UUIDConfig{Random: bytes.NewReader(bytes.Repeat([]byte{0xff}, 4096))})
	for _, tt := range []struct {
		after time.Duration
		want  string
	}{
		{0, "019b7ca9-8f2e-7000-bfff-ffffffffffff"},
		{0, "019b7ca9-8f2e-7001-bfff-ffffffffffff"}, // the same reading
		{time.Microsecond, "019b7ca9-8f2e-7004-bfff-ffffffffffff"},
		{500 * time.Microsecond, "019b7ca9-8f2e-7800-bfff-ffffffffffff"},
		{time.Millisecond - 1, "019b7ca9-8f2e-7fff-bfff-ffffffffffff"},
		{time.Millisecond - 1, "019b7ca9-8f2f-7000-bfff-ffffffffffff"}, // carries
		{0, "019b7ca9-8f2f-7001-bfff-ffffffffffff"},                    // a step back
		{-time.Millisecond, "019b7ca9-8f2f-7002-bfff-ffffffffffff"},    // to an earlier millisecond
		{time.Hour, "019b7ce0-7dae-7000-bfff-ffffffffffff"},
	} {
		at.wall = utc("2026-01-02T03:04:05.678Z").Add(tt.after)
		if id := mustUUID(t, g); id.String() != tt.want {
			t.Errorf("after %v: %v, want %v", tt.after, id, tt.want)
		}
	}
	if s := g.Stats(); s != (GeneratorStats{Minted: 9, ClockRegressions: 1}) {
		t.Errorf("stats %+v", s)
	}
}

// Through random steps of the clock, IDs strictly increase, and their time is the clock's or the
// last ID's plus one unit. No call waits or fails.
func TestUUIDClockScripts(t *testing.T) {
	for seed := range uint64(20) {
		at, g := newUUIDClock(t, UUIDConfig{})
		r := rand.New(rand.NewPCG(seed, 1))
		var last uint64
		for range 2000 {
			switch r.IntN(6) {
			case 0:
			case 1:
				at.wall = at.wall.Add(time.Duration(r.Int64N(1e9)))
			case 2:
				at.wall = at.wall.Add(-time.Duration(r.Int64N(9e8)))
			case 3:
				at.wall = at.wall.Add(-time.Duration(r.Int64N(9e15)))
			case 4:
				at.wall = at.wall.Add(time.Duration(r.Int64N(1e4)))
			case 5:
				at.wall = time.Unix(-r.Int64N(100), 0) // before the epoch
			}
			dst := make([]UUID, 1+r.IntN(600))
			if n, err := g.Fill(t.Context(), dst); n != len(dst) || err != nil || at.slept != 0 {
				t.Fatalf("seed %d: %d IDs, %v, slept for %v", seed, n, err, at.slept)
			}
			now := uint64(max(at.wall.UnixMilli(), 0))*uuidUnits + uint64(at.wall.Nanosecond()%1e6)*uuidUnits/1e6
			for _, id := range dst {
				instant := binary.BigEndian.Uint64(id[:8])>>16<<12 | uint64(id[6]&0xf)<<8 | uint64(id[7])
				if want := max(now, last+1); instant != want && last > 0 {
					t.Fatalf("seed %d: instant %d after %d at %d, want %d", seed, instant, last, now, want)
				}
				last = instant
			}
		}
	}
}

// A clock or a NotBefore centuries ahead takes no time, and neither does the return of the clock.
func TestUUIDFarAhead(t *testing.T) {
	at, g := newUUIDClock(t, UUIDConfig{NotBefore: utc("2700-01-01T00:00:00Z")})
	if err := g.Ready(); err != nil {
		t.Errorf("Ready: %v", err)
	}
	first := mustUUID(t, g)
	if got := Must(first.Time()); !got.Equal(utc("2700-01-01T00:00:00.001Z")) {
		t.Errorf("the first time is %v", got)
	}
	at.wall = utc("9999-12-31T00:00:00Z")
	ahead := mustUUID(t, g)
	at.wall = utc("2026-01-02T00:00:00Z")
	if id := mustUUID(t, g); id.Compare(ahead) <= 0 || ahead.Compare(first) <= 0 || at.slept != 0 {
		t.Errorf("%v, %v, %v, slept for %v", first, ahead, id, at.slept)
	}
}

// More IDs than 4096 per millisecond of a clock that stands still are created at once.
func TestUUIDFrozen(t *testing.T) {
	at, g := newUUIDClock(t, UUIDConfig{})
	at.frozen = true
	n := 5_000_000 // more than a second's
	if race.Enabled {
		n = 100_000
	}
	dst := make([]UUID, n)
	if got, err := g.Fill(t.Context(), dst); got != n || err != nil || at.slept != 0 {
		t.Errorf("%d IDs, %v, slept for %v", got, err, at.slept)
	}
	if !slices.IsSortedFunc(dst, UUID.Compare) || len(slices.Compact(dst)) != n {
		t.Error("the IDs don't strictly increase")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := g.Fill(ctx, dst); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("with a canceled context: %d IDs, %v", n, err)
	}
}

// A counted reader counts the bytes that were read.
type counted struct{ bytes int }

func (c *counted) Read(b []byte) (int, error) {
	c.bytes += len(b)
	return len(b), nil
}

// Each call reads the random bits of its IDs, and no others.
func TestUUIDReads(t *testing.T) {
	random := new(counted)
	_, g := newUUIDClock(t, UUIDConfig{Random: random})
	for i, n := range []int{1, 1, 2, 63, 64, 300} {
		random.bytes = 0
		if n == 1 {
			mustUUID(t, g)
		} else if got, err := g.Fill(t.Context(), make([]UUID, n)); got != n || err != nil {
			t.Fatalf("%d IDs, %v", got, err)
		}
		if random.bytes != 8*n {
			t.Errorf("call %d: %d bytes read for %d IDs", i, random.bytes, n)
		}
	}
}

func TestUUIDConfig(t *testing.T) {
	at, g := newUUIDClock(t, UUIDConfig{NotBefore: utc("2026-01-02T03:04:06Z")})
	if id := mustUUID(t, g); id.String()[:18] != "019b7ca9-9071-7000" || at.slept != 0 {
		t.Errorf("after NotBefore 03:04:06: %v after %v", id, at.slept)
	}
	for want, c := range map[error]UUIDConfig{
		ErrBeforeEpoch:   {Clock: func() time.Time { return time.UnixMilli(-1) }},
		ErrTimeExhausted: {Clock: func() time.Time { return time.UnixMilli(1 << 48) }},
		ErrRange:         {NotBefore: time.UnixMilli(1 << 48)},
	} {
		if _, err := NewUUIDGenerator(c); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
}

func TestUUIDEnd(t *testing.T) {
	at, g := newUUIDClock(t, UUIDConfig{})
	if r := g.Remaining(); r < 200*365*24*time.Hour {
		t.Errorf("Remaining = %v", r)
	}
	at.wall = time.UnixMilli(1<<48 - 1).Add(time.Millisecond - time.Microsecond)
	if r := g.Remaining(); r != time.Microsecond {
		t.Errorf("Remaining = %v, want 1µs", r)
	}
	var ids []UUID
	for {
		id, err := g.Next()
		if errors.Is(err, ErrTimeExhausted) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if len(ids) != 5 || ids[4].String()[:18] != "ffffffff-ffff-7fff" {
		t.Errorf("the last IDs are %v", ids)
	}
	if err := g.Ready(); !errors.Is(err, ErrTimeExhausted) {
		t.Errorf("Ready after the last ID: %v", err)
	}
	_, g = newUUIDClock(t, UUIDConfig{})
	past := clock{wall: func() time.Time { return time.UnixMilli(1 << 48) }}
	g.clock = past
	if err := g.Ready(); !errors.Is(err, ErrTimeExhausted) {
		t.Errorf("Ready past the end: %v", err)
	}
	if id, err := g.Next(); !errors.Is(err, ErrTimeExhausted) {
		t.Errorf("Next past the end: %v, %v", id, err)
	}
}

// An error of the random source loses no ID and repeats none.
func TestUUIDRandomFails(t *testing.T) {
	failing := errors.New("no entropy")
	_, g := newUUIDClock(t, UUIDConfig{Random: io.MultiReader(bytes.NewReader(make([]byte, 8*uuidBlock)), iotest.ErrReader(failing))})
	dst := make([]UUID, 2*uuidBlock)
	if n, err := g.Fill(t.Context(), dst); n != uuidBlock || !errors.Is(err, failing) {
		t.Errorf("%d IDs, %v, want %d and the error", n, err, uuidBlock)
	}
	if _, err := g.Next(); !errors.Is(err, failing) {
		t.Errorf("Next: %v", err)
	}
	if s := g.Stats(); s.Minted != uuidBlock {
		t.Errorf("%d IDs counted", s.Minted)
	}
}

// Concurrent calls on the system's clock never return the same ID, and each goroutine's IDs
// increase.
func TestUUIDParallel(t *testing.T) {
	g := Must(NewUUIDGenerator(UUIDConfig{}))
	each := scaled(20_000, 400_000)
	lists := make([][]UUID, 8)
	var wg sync.WaitGroup
	for i := range lists {
		wg.Go(func() {
			list := make([]UUID, each)
			n := 0
			for n < each {
				size := min(1+i*100, each-n)
				got, err := g.Fill(context.Background(), list[n:n+size])
				if n += got; err != nil {
					t.Error(err)
					return
				}
			}
			if !slices.IsSortedFunc(list, UUID.Compare) {
				t.Error("a goroutine's IDs don't increase")
			}
			lists[i] = list
		})
	}
	wg.Wait()
	all := slices.Concat(lists...)
	slices.SortFunc(all, UUID.Compare)
	if unique := len(slices.Compact(all)); unique != 8*each {
		t.Errorf("%d different IDs of %d", unique, 8*each)
	}
	if v := all[0].Version(); v != 7 {
		t.Errorf("version %d", v)
	}
}

func TestUUIDGeneratorAllocations(t *testing.T) {
	g := Must(NewUUIDGenerator(UUIDConfig{}))
	dst := make([]UUID, 100)
	for name, do := range map[string]func() error{
		"Next": func() error { _, err := g.Next(); return err },
		"Fill": func() error { _, err := g.Fill(context.Background(), dst); return err },
	} {
		if n := testing.AllocsPerRun(100, func() {
			if err := do(); err != nil {
				t.Fatal(err)
			}
		}); n != 0 && !race.Enabled { // which makes crypto/rand copy
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestUUIDGeneratorOf(t *testing.T) {
	g := GeneratorOf[UUIDOf[prefixed]](Must(NewUUIDGenerator(UUIDConfig{})))
	id, err := g.Next()
	if err != nil || id.Version() != 7 || fmt.Sprintf("%.7s", id) != "prefix_" {
		t.Errorf("%v, %v", id, err)
	}
	if s := g.(Monitored).Stats(); s.Minted != 1 {
		t.Errorf("stats %+v", s)
	}
}
