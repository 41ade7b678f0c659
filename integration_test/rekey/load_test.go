package rekey

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/rekey"
)

const (
	// loadWatched is the number of orders of the first fill that programs change and
	// restore in a transaction.
	loadWatched = 20
)

// loadPace is the shortest pause of a program after a transaction. With SORTKEY_SOAK, the load is
// higher, and the test has the machine to itself.
var loadPace = map[bool]time.Duration{false: 50 * time.Millisecond, true: 10 * time.Millisecond}[soak]

// loadRows returns the row counts of the shops.
func loadRows(t testing.TB) []int {
	t.Helper()
	if s := os.Getenv("SORTKEY_REKEY_ROWS"); s != "" {
		n, err := strconv.Atoi(s)
		must(t, err)
		return []int{n}
	}
	if soak {
		return []int{1_000_000, 10_000_000}
	}
	return []int{pgtest.Scaled(5_000, 20_000)}
}

// startReader starts a program that reads the watched orders, whose committed state stays the same.
func (s *shop) startReader(path string) (stop func()) {
	s.Helper()
	conn := s.connect(path, setting("role", s.app))
	query := fmt.Sprintf("%s WHERE o.ref IN (SELECT 'o' || i FROM generate_series(1, %d) i) ORDER BY 1", orderState, loadWatched)
	orders := conn.list(query)
	return repeat(s, loadPace, func(int) error {
		got, err := conn.rows(query)
		if err == nil && !slices.Equal(got, orders) {
			err = fmt.Errorf("expected the orders %q, got %q", orders, got)
		}
		return err
	})
}

// Programs write throughout all steps, and none of their transactions fails. No row
// is lost.
func TestLoad(t *testing.T) {
	if !soak { // otherwise it checks times
		t.Parallel()
	}
	for _, rows := range loadRows(t) {
		t.Run(fmt.Sprintf("%d rows", rows), func(t *testing.T) {
			pgtest.One(t, func(t *testing.T, db *pgtest.DB) { testLoad(t, db, rows) })
		})
	}
}

func testLoad(t *testing.T, db *pgtest.DB, rows int) {
	s := newShop(t, db, rows)
	s.snapshot()
	plan := s.inspect()
	s.phase.Store("before")

	var all []*program
	workers := make([]*program, pgtest.Scaled(4, 8))
	if soak {
		workers = make([]*program, 8)
	}
	begin := func(i int, fresh bool) {
		if workers[i] != nil {
			workers[i].stop()
		}
		p := s.program(fmt.Sprintf("%d, new: %t", i, fresh), i, fresh)
		all, workers[i] = append(all, p), p
		p.stop = repeat(t, loadPace, func(int) error {
			_ = p.work(context.WithoutCancel(t.Context())) // p.failed has the error
			return nil
		})
	}
	// work waits until each program has run transactions before, between and after the steps.
	work := func() {
		var counts []*atomic.Int32
		for _, p := range workers {
			counts = append(counts, &p.n)
		}
		grow(t, "all programs run transactions", counts, 20)
	}
	for i := range workers {
		begin(i, false)
	}
	stopReaders := []func(){s.startReader(oldPath)}
	work()

	last := time.Now()
	o := rekey.Options{Progress: func(p rekey.Progress) {
		if took := time.Since(last); p.Done && took > time.Second {
			t.Logf("%s: %s took %v, %.0f rows/s", p.Step, p.Action, took.Round(time.Millisecond), p.Rate)
		}
		if p.Done {
			last = time.Now()
		}
	}}
	if !soak {
		o.LockTimeout = 500 * time.Millisecond // longer than a transaction on a loaded machine
	}
	for _, step := range steps {
		if step == rekey.StepContract {
			// Replace the programs of the old version, one by one.
			for i := range workers {
				if i == len(workers)/2 {
					stopReaders = append(stopReaders, s.startReader(newPath))
					time.Sleep(pgtest.Soak(t, 0, 0))
					work()
					if rows <= 1_000_000 { // otherwise, these queries take minutes, and slow the programs down
						s.verify(newPath)
						s.agree(plan, 0)
					}
				}
				begin(i, true)
			}
			stopReaders[0]()
			work()
		}
		last = time.Now()
		s.phase.Store(string(step))
		s.runWith(o, step)
		s.phase.Store("after " + string(step))
	}
	work()
	stopReaders[1]()
	stalls, failed := map[string][]time.Duration{}, 0
	for _, p := range workers {
		p.stop()
	}
	for _, p := range all {
		failed += len(p.failed)
		for _, err := range p.failed[:min(len(p.failed), 3)] {
			t.Error(err)
		}
		for phase, list := range p.stalls {
			stalls[phase], stalls["all"] = append(stalls[phase], list...), append(stalls["all"], list...)
		}
	}
	for phase, list := range stalls {
		slices.Sort(list)
		p99, longest := list[len(list)*99/100], list[len(list)-1]
		t.Logf("%s: %d transactions, p50 %v, p99 %v, longest %v", phase, len(list), list[len(list)/2], p99, longest)
		if soak && phase == "all" && (p99 >= 100*time.Millisecond || longest >= time.Second) {
			t.Errorf("expected a p99 below 100ms and no transaction of a second, got %v and %v", p99, longest)
		}
	}
	want(t, "failed transactions", failed, 0)
	s.verify(oldPath)
	s.verifyIDs()
	if n := s.verifyPrograms(); n < len(workers)*10 {
		t.Errorf("expected at least %d orders, got %d: the test proves little", len(workers)*10, n)
	}
}
