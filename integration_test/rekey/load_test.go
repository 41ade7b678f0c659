package rekey

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/rekey"
)

const (
	// loadPace is the shortest pause of a program after a transaction.
	loadPace = 10 * time.Millisecond
	// loadWatched is the number of orders of the first fill that programs change and
	// restore in a transaction.
	loadWatched = 20
)

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

// A worker is a program that runs transactions until it is stopped.
type worker struct {
	*program
	count *atomic.Int32 // of its transactions
	stop  func()
}

// A reader reads the watched orders, whose committed state stays the same.
type reader struct {
	reads int
	stop  func()
}

func (s *shop) startReader(path string) *reader {
	s.Helper()
	conn := s.session(path, pgtest.Config(func(c *pgx.ConnConfig) { c.RuntimeParams["role"] = s.app }))
	query := fmt.Sprintf("%s WHERE o.ref IN (SELECT 'o' || i FROM generate_series(1, %d) i) ORDER BY 1", orderState, loadWatched)
	orders := conn.list(query)
	r := &reader{}
	r.stop = repeat(s, loadPace, func(int) error {
		r.reads++
		got, err := conn.rows(query)
		if err == nil && !slices.Equal(got, orders) {
			err = fmt.Errorf("expected the orders %q, got %q", orders, got)
		}
		return err
	})
	return r
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
	begun := time.Now()
	s := newShop(t, db, rows)
	s.snapshot()
	t.Logf("filled a shop of about %d rows in %v", rows, time.Since(begun).Round(time.Millisecond))
	plan := s.inspect()

	var all []*program
	writers := pgtest.Scaled(4, 8)
	if soak {
		writers = 8
	}
	workers := make([]worker, writers)
	begin := func(i int, fresh bool) {
		version := map[bool]string{false: "old", true: "new"}[fresh]
		p := s.program(fmt.Sprintf("%s-%d", version, i), fresh)
		if workers[i].program != nil {
			workers[i].stop()
			p.takeOver(workers[i].program)
		}
		all = append(all, p)
		count := new(atomic.Int32)
		stop := repeat(t, loadPace, func(int) error {
			_ = p.work(context.WithoutCancel(t.Context())) // p.failed has the error
			count.Add(1)
			return nil
		})
		workers[i] = worker{p, count, stop}
	}
	// work waits until each program has run transactions before, between and after the steps.
	work := func() {
		before := make([]int32, len(workers))
		for i, w := range workers {
			before[i] = w.count.Load()
		}
		pgtest.Eventually(t, "all programs run transactions", func() error {
			for i, w := range workers {
				if n := w.count.Load() - before[i]; n < 20 {
					return fmt.Errorf("%d by program %d", n, i)
				}
			}
			return nil
		})
	}
	for i := range workers {
		begin(i, false)
	}
	readers := []*reader{s.startReader(oldPath)}
	// phases are the steps, and the times between them.
	type phase struct {
		name  string
		begin time.Time
	}
	phases := []phase{{"before", time.Now()}}
	coexistence := pgtest.Soak(t, 0, 0)
	work()

	var mu sync.Mutex
	filled := map[string]int64{}
	last := time.Now()
	o := rekey.Options{Progress: func(p rekey.Progress) {
		mu.Lock()
		defer mu.Unlock()
		if p.Done {
			if took := time.Since(last); took > time.Second {
				t.Logf("%s: %s took %v", p.Step, p.Action, took.Round(time.Millisecond))
			}
			last = time.Now()
		}
		if p.Step == rekey.StepBackfill {
			filled[p.Action] = max(filled[p.Action], p.Rows)
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
					readers = append(readers, s.startReader(newPath))
					time.Sleep(coexistence)
					work()
					if rows <= 1_000_000 { // otherwise, these queries take minutes, and slow the programs down
						s.verify(newPath)
						s.agree(plan, 0)
					}
				}
				begin(i, true)
			}
			readers[0].stop()
			work()
		}
		begun := time.Now()
		phases = append(phases, phase{string(step), begun})
		last = begun
		s.runWith(o, step)
		took := time.Since(begun)
		phases = append(phases, phase{"after " + string(step), time.Now()})
		t.Logf("%s took %v", step, took.Round(time.Millisecond))
		if step == rekey.StepBackfill {
			total := int64(0)
			for _, n := range filled {
				total += n
			}
			t.Logf("backfill: %d rows, %.0f rows/s", total, float64(total)/took.Seconds())
		}
	}
	work()
	for _, w := range workers {
		w.stop()
	}
	for _, r := range readers {
		r.stop()
		if r.reads == 0 {
			t.Error("expected a reader to read, got no reads")
		}
	}

	var stalls []stall
	failed := 0
	for _, p := range all {
		stalls = append(stalls, p.stalls...)
		failed += len(p.failed)
		for _, err := range p.failed[:min(len(p.failed), 3)] {
			t.Error(err)
		}
	}
	// quantiles returns the median, the 99th percentile and the maximum.
	quantiles := func(list []stall) (p50, p99, longest time.Duration) {
		slices.SortFunc(list, func(a, b stall) int { return cmp.Compare(a.took, b.took) })
		return list[len(list)/2].took, list[len(list)*99/100].took, list[len(list)-1].took
	}
	for i, p := range phases {
		end := time.Now()
		if i+1 < len(phases) {
			end = phases[i+1].begin
		}
		var list []stall
		for _, s := range stalls {
			if s.end.After(p.begin) && !s.end.After(end) {
				list = append(list, s)
			}
		}
		if len(list) > 0 {
			_, p99, longest := quantiles(list)
			t.Logf("%s: %d transactions, p99 %v, longest %v", p.name, len(list), p99.Round(time.Microsecond), longest.Round(time.Microsecond))
		}
	}
	p50, p99, longest := quantiles(stalls)
	t.Logf("%d transactions of %d programs, %d failed; p50 %v, p99 %v, longest %v", len(stalls), len(all), failed,
		p50.Round(time.Microsecond), p99.Round(time.Microsecond), longest.Round(time.Microsecond))
	if failed > 0 {
		t.Errorf("expected no transaction to fail, got %d of %d", failed, len(stalls))
	}
	if soak && (p99 >= 100*time.Millisecond || longest >= time.Second) {
		t.Errorf("expected a p99 below 100ms and no transaction of a second, got %v and %v", p99, longest)
	}
	s.verify(oldPath)
	s.verifyIDs()
	var latest []*program
	for _, w := range workers {
		latest = append(latest, w.program)
	}
	if n := s.verifyPrograms(latest...); n < len(workers)*10 {
		t.Errorf("expected at least %d orders, got %d: the test proves little", len(workers)*10, n)
	}
}
