package migrations

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// The server's clock is stepped back and forward while 8 sessions mint. No ID
// comes twice, and those of a session increase, whatever the clock does. A call
// waits for a second at most and then says what is wrong, and all goes on once
// the clock has caught up.
func TestServerClockSteps(t *testing.T) {
	t.Parallel()
	const clients = 8
	pgtest.OneFaketime(t, func(t *testing.T, db *pgtest.DB, clock *pgtest.Clock) {
		up(t, db, complete)
		formats := genFormats()
		for _, f := range formats {
			db.Exec(t, fmt.Sprintf("create unlogged table %s (id %s primary key default %s, client int, n int)", f.name, f.base, f.next))
		}
		load := genClockLoad{formats: formats}
		conns, probe := genConns(t, db, clients), db.Conn(t)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var wg sync.WaitGroup
		errs := make([]error, clients)
		for i, conn := range conns {
			wg.Go(func() { errs[i] = load.run(ctx, conn, i) })
		}

		var high, at time.Duration // the highest that the clock was set to, and what it is set to
		for _, step := range pgtest.Scaled(
			[]time.Duration{-5 * time.Millisecond, -500 * time.Millisecond, -time.Hour, 0, time.Hour},
			[]time.Duration{
				-5 * time.Millisecond, 0, -500 * time.Millisecond, 0, -3 * time.Millisecond, -time.Hour, 0,
				time.Hour, 0, time.Hour, time.Hour - 5*time.Millisecond, time.Hour - 500*time.Millisecond, time.Hour + time.Second,
			}) {
			clock.Step(t, step)
			back := step < at
			at, high = step, max(at, high, step)
			if back {
				load.wake(t, probe)
			}
			behind := high-at > 2*time.Second
			for _, f := range formats {
				n := 100
				if behind {
					n = 1 // not even what is left of the unit
				}
				start := time.Now()
				_, err := probe.Exec(t.Context(), fmt.Sprintf("select %s from generate_series(1, %d)", f.next, n))
				took := time.Since(start)
				if behind {
					wantSQLState(t, err, "55000", f.next, " is behind ", "the last ID of "+f.clock(), "The server's clock was set back.")
				} else if err != nil {
					t.Errorf("%s: expected it to go on at %s, where %s was the highest; got %v", f.name, at, high, err)
				}
				if took > genClockPatience {
					t.Errorf("%s: expected an answer after about a second, got %v after %s", f.name, err, took)
				}
			}
			// Sessions go on at the new time, and mint if it is the highest.
			tried, minted := load.tried.Load(), load.minted.Load()
			pgtest.Eventually(t, fmt.Sprintf("sessions go on at %s, where %s was the highest", at, high), func() error {
				if n, m := load.tried.Load()-tried, load.minted.Load()-minted; n < 2*clients || high == at && m == 0 {
					return fmt.Errorf("they tried %d times, and minted in %d", n, m)
				}
				return nil
			})
		}
		stop()
		wg.Wait()
		for _, err := range errs {
			must(t, err)
		}
		t.Logf("%d statements minted, %d found the clock behind, %d slept when it was set back",
			load.minted.Load(), load.behind.Load(), load.woken.Load())
		if load.minted.Load() == 0 || load.behind.Load() == 0 {
			t.Error("expected statements that minted and statements that found the clock behind")
		}

		// A cancelled statement may have left its connection closed.
		for _, f := range formats {
			for client := range clients {
				var ids []byte
				must(t, probe.QueryRow(t.Context(), fmt.Sprintf("select coalesce(string_agg(%s(id), '' order by n), '') from %s where client = $1",
					f.send(), f.name), client).Scan(&ids))
				must(t, genCheckOrder(f, ids))
			}
			if ahead := pgtest.Value[float64](t, probe, fmt.Sprintf("select extract(epoch from max(sortkey.%[1]s_time(id)) - clock_timestamp())::float8 from %[1]s", f.name)); ahead > 0.010 {
				t.Errorf("%s: expected no ID more than 10 ms ahead of the highest that the clock was set to, got %.3f s", f.name, ahead)
			}
		}
	})
}

// genClockPatience is how long a statement may take on a busy machine. Its calls
// wait for a second by the server's count. If they waited for the clock, they
// would wait for up to an hour.
const genClockPatience = 30 * time.Second

// A genClockLoad is sessions that insert all the time.
type genClockLoad struct {
	formats                      []genFormat
	tried, minted, behind, woken atomic.Int64
}

func (l *genClockLoad) run(ctx context.Context, conn *pgx.Conn, client int) error {
	n := 0
	for i := 0; ctx.Err() == nil; i++ {
		f, size := l.formats[(client+i)%len(l.formats)], 1
		if i%3 == 0 {
			size = 200
		}
		start := time.Now()
		_, err := conn.Exec(context.WithoutCancel(ctx), fmt.Sprintf("insert into %s (client, n) select %d, generate_series(%d, %d)", f.name, client, n+1, n+size))
		n += size
		took := time.Since(start)
		l.tried.Add(1)
		switch sqlState(err) {
		case "55000": // object_not_in_prerequisite_state
			if !strings.Contains(err.Error(), "the last ID of "+f.clock()) {
				return err
			}
			l.behind.Add(1)
		case "57014": // query_canceled, by wake
			continue
		default:
			if err != nil {
				return err
			}
			l.minted.Add(1)
		}
		if took > genClockPatience {
			return fmt.Errorf("%s: expected an answer after about a second, got one after %s: %w", f.name, took, err)
		}
	}
	return nil
}

// wake cancels the statements that were asleep when the clock was set back, or
// that go to sleep yet: what sleeps wakes at a time of day. They began later
// than now.
func (l *genClockLoad) wake(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	pgtest.Eventually(t, "statements end that began before the clock was set back", func() error {
		var began, asleep int64
		must(t, conn.QueryRow(t.Context(), `select count(*), count(*) filter (where wait_event = 'PgSleep' and pg_cancel_backend(pid))
			from pg_stat_activity where backend_type = 'client backend' and state = 'active' and pid <> pg_backend_pid()
				and query_start > clock_timestamp()`).Scan(&began, &asleep))
		l.woken.Add(asleep)
		if began > 0 {
			return fmt.Errorf("%d run", began)
		}
		return nil
	})
}
