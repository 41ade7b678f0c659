package pgtest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestChoose(t *testing.T) {
	for _, c := range []struct{ asked, partman, without, pair string }{
		{"17", "17", "", "17"},
		{"15 17 18", "17 18", "15", "18"},
		{"18 15", "18", "15", "18"},
		{"15", "17", "15", "17"},
		{"15 19", "17", "15 19", "19"},
		{"15 16", "17", "15 16", "16"},
	} {
		partman, without := choosePartman(strings.Fields(c.asked))
		if !slices.Equal(partman, strings.Fields(c.partman)) || !slices.Equal(without, strings.Fields(c.without)) {
			t.Errorf("choosePartman(%s) = %v, %v, want %s, %s", c.asked, partman, without, c.partman, c.without)
		}
		if got := choosePair(strings.Fields(c.asked)); got != c.pair {
			t.Errorf("choosePair(%s) = %s, want %s", c.asked, got, c.pair)
		}
	}
}

// A step, forward or back, takes effect in existing and in new sessions.
func TestOneFaketime(t *testing.T) {
	t.Parallel()
	OneFaketime(t, func(t *testing.T, db *DB, clock *Clock) {
		conn := db.Conn(t)
		// Rounded, to allow for a slow machine or a Docker host with another clock.
		off := func(conn *pgx.Conn) time.Duration { return time.Until(clockOf(t, conn)).Round(10 * time.Minute) }
		for _, d := range []time.Duration{0, time.Hour, -2 * time.Hour, -time.Hour, 10 * 365 * 24 * time.Hour, 0} {
			clock.Step(t, d)
			if old, fresh := off(conn), off(db.Conn(t)); old != d || fresh != d {
				t.Errorf("existing and new sessions are off by %s and %s, want %s", old, fresh, d)
			}
		}

		// Steps of less than a second take effect too.
		clock.Step(t, time.Hour)
		outer := time.Now()
		before := clockOf(t, conn)
		inner := time.Now()
		clock.Step(t, time.Hour-500*time.Millisecond)
		least := time.Since(inner)
		got := clockOf(t, conn).Sub(before) + 500*time.Millisecond
		most := time.Since(outer)
		if slew := 20 * time.Millisecond; got < least-slew || got > most+slew {
			t.Errorf("after a step back by 500 ms: the clock advanced by %s otherwise, want between %s and %s", got, least, most)
		}

		// A running statement sees a step, parallel workers use the stepped clock, and
		// timeouts fire although the clock is off.
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		seen := make(chan error, 1)
		go func() {
			_, err := conn.Exec(ctx, `do $$
				declare began constant timestamptz := clock_timestamp();
				begin
					while clock_timestamp() >= began loop end loop;
				end $$`)
			seen <- err
		}()
		Eventually(t, "the statement runs", func() error {
			var busy bool
			return db.server.admin.QueryRow(ctx, "select true from pg_stat_activity where datname = $1 and state = 'active'", db.Name).Scan(&busy)
		})
		clock.Step(t, -time.Hour)
		if err := <-seen; err != nil {
			t.Fatalf("expected a loop to end when the clock goes back, got %v", err)
		}

		clock.Step(t, 5*time.Hour)
		_, err := conn.Exec(ctx, `create table t as select generate_series(1, 100) as n;
			alter table t set (parallel_workers = 2);
			set min_parallel_table_scan_size = 0; set parallel_setup_cost = 0; set parallel_tuple_cost = 0;
			set parallel_leader_participation = off`, pgx.QueryExecModeSimpleProtocol)
		Must(t, err)
		there := Value[time.Time](t, conn, "select min(clock_timestamp()) from t")
		if got := time.Until(there).Round(10 * time.Minute); got != 5*time.Hour {
			t.Errorf("parallel workers: off by %s, want 5h", got)
		}
		rows, _ := conn.Query(ctx, "explain (analyze, costs off) select min(clock_timestamp()) from t")
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if plan := strings.Join(lines, "\n"); err != nil || !strings.Contains(plan, "Workers Launched: 2") {
			t.Errorf("expected parallel workers, got %v and\n%s", err, plan)
		}

		_, err = conn.Exec(ctx, "set statement_timeout = '100ms'")
		Must(t, err)
		_, err = conn.Exec(ctx, "select pg_sleep(3600)")
		Fails(t, err, nil, "57014") // the error of statement_timeout
	})
}

func clockOf(t *testing.T, conn *pgx.Conn) time.Time {
	t.Helper()
	return Value[time.Time](t, conn, "select clock_timestamp()")
}
