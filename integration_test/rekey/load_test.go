package rekey

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/rekey"
)

const (
	// loadWriters is the number of programs that write.
	loadWriters = 8
	// loadPace is the shortest time from one transaction of a program to the next one.
	loadPace = 15 * time.Millisecond
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

// A worker runs a program's transactions until it is stopped.
type worker struct {
	*program
	stop context.CancelFunc
	done chan struct{}
}

func startWorker(t testing.TB, p *program) *worker {
	ctx, stop := context.WithCancel(context.Background())
	w := &worker{p, stop, make(chan struct{})}
	go func() {
		defer close(w.done)
		for ctx.Err() == nil {
			begun := time.Now()
			_ = p.work(t.Context()) // p.failed has the error
			select {
			case <-ctx.Done():
			case <-time.After(loadPace - time.Since(begun)):
			}
		}
	}()
	t.Cleanup(w.end)
	return w
}

// end stops the worker after its current transaction.
func (w *worker) end() {
	w.stop()
	<-w.done
}

// A reader reads the watched orders, whose committed state stays the same.
type reader struct {
	reads int
	err   error
	stop  context.CancelFunc
	done  chan struct{}
}

func (s *shop) startReader(t testing.TB, path string) *reader {
	t.Helper()
	conn := s.Conn(t, pgtest.Config(func(c *pgx.ConnConfig) {
		c.RuntimeParams["search_path"], c.RuntimeParams["role"] = path, s.app
	}))
	query := func(ctx context.Context) (list []string, err error) {
		rows, err := conn.Query(ctx, orderState+" WHERE o.ref IN (SELECT 'o' || i FROM generate_series(1, $1) i) ORDER BY 1", loadWatched)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		for rows.Next() {
			ref, o, err := scanOrder(rows)
			if err != nil {
				return nil, err
			}
			list = append(list, fmt.Sprintf("%s %+v", ref, o))
		}
		return list, rows.Err()
	}
	want, err := query(t.Context())
	must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	r := &reader{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		for ; ctx.Err() == nil && r.err == nil; r.reads++ {
			got, err := query(t.Context())
			if err == nil && !slices.Equal(got, want) {
				err = fmt.Errorf("expected the orders %q, got %q", want, got)
			}
			r.err = err
			time.Sleep(loadPace)
		}
	}()
	t.Cleanup(r.end)
	return r
}

func (r *reader) end() {
	r.stop()
	<-r.done
}

// Eight programs write throughout all steps, and none of their transactions fails. No row
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
	s.snapshot(t)
	t.Logf("filled a shop of about %d rows in %v", rows, time.Since(begun).Round(time.Millisecond))
	spec := shopSpec()
	plan, err := rekey.Inspect(t.Context(), s.owner, spec, rekey.Options{Config: config})
	must(t, err)

	var all []*program
	var workers [loadWriters]*worker
	begin := func(i int, fresh bool) {
		version := map[bool]string{false: "old", true: "new"}[fresh]
		p := s.program(t, fmt.Sprintf("%s-%d", version, i), fresh)
		if workers[i] != nil {
			workers[i].end()
			p.takeOver(workers[i].program)
		}
		all = append(all, p)
		workers[i] = startWorker(t, p)
	}
	for i := range workers {
		begin(i, false)
	}
	readers := []*reader{s.startReader(t, oldPath)}
	// phases are the steps, and the times between them.
	type phase struct {
		name  string
		begin time.Time
	}
	phases := []phase{{"before", time.Now()}}
	during := 500 * time.Millisecond // how long programs work before, between and after the steps
	coexistence := pgtest.Soak(t, time.Second, 2*time.Second)
	time.Sleep(during)

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
	for _, step := range steps {
		if step == rekey.StepContract {
			// Replace the programs of the old version, one by one.
			for i := range workers {
				if i == loadWriters/2 {
					readers = append(readers, s.startReader(t, newPath))
					time.Sleep(coexistence)
					if rows <= 1_000_000 { // otherwise, these queries take minutes, and slow the programs down
						s.verify(t, newPath)
						agree(t, s.at(t, oldPath), plan, 0)
					}
				}
				begin(i, true)
			}
			readers[0].end()
			time.Sleep(during)
		}
		begun := time.Now()
		phases = append(phases, phase{string(step), begun})
		last = begun
		mustRun(t, s.owner, spec, o, step)
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
	time.Sleep(during)
	for _, w := range workers {
		w.end()
	}
	for _, r := range readers {
		r.end()
		if r.err != nil || r.reads == 0 {
			t.Errorf("reader: expected no error, got %v after %d reads", r.err, r.reads)
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
	s.verify(t, oldPath)
	s.verifyIDs(t)
	var latest []*program
	for _, w := range workers {
		latest = append(latest, w.program)
	}
	if n := s.verifyPrograms(t, latest...); n < loadWriters*10 {
		t.Errorf("expected at least %d orders, got %d: the test proves little", loadWriters*10, n)
	}
}
