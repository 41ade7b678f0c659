package pgtest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func TestChoosePartman(t *testing.T) {
	for _, c := range []struct{ asked, chosen, without string }{
		{"17", "17", ""},
		{"15 17 18", "17 18", "15"},
		{"18 15", "18", "15"},
		{"15", "17", "15"},
		{"15 16", "17", "15 16"},
	} {
		chosen, without := choosePartman(strings.Fields(c.asked))
		if !slices.Equal(chosen, strings.Fields(c.chosen)) || !slices.Equal(without, strings.Fields(c.without)) {
			t.Errorf("choosePartman(%s) = %v, %v, want %s, %s", c.asked, chosen, without, c.chosen, c.without)
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
		check := func(want time.Duration) {
			t.Helper()
			if got := off(conn); got != want {
				t.Errorf("an existing session: off by %s, want %s", got, want)
			}
			if got := off(db.Conn(t)); got != want {
				t.Errorf("a new session: off by %s, want %s", got, want)
			}
		}
		check(0)
		for _, d := range []time.Duration{time.Hour, -2 * time.Hour, -time.Hour, 10 * 365 * 24 * time.Hour, 0} {
			clock.Step(t, d)
			check(d)
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
	})
}

// A running statement sees a step, parallel workers use the stepped clock, and timeouts
// fire although the clock is off.
func TestFaketimeInAllProcesses(t *testing.T) {
	ThoroughOnly(t)
	t.Parallel()
	OneFaketime(t, func(t *testing.T, db *DB, clock *Clock) {
		conn := db.Conn(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		exec := func(sql string) {
			t.Helper()
			if _, err := conn.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
				t.Fatal(err)
			}
		}

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
			var busy int
			err := db.server.admin.QueryRow(ctx, "select count(*) from pg_stat_activity where datname = $1 and state = 'active'", db.Name).Scan(&busy)
			if err == nil && busy == 0 {
				err = errors.New("no active backend")
			}
			return err
		})
		clock.Step(t, -time.Hour)
		if err := <-seen; err != nil {
			t.Fatalf("expected a loop to end when the clock goes back, got %v", err)
		}

		clock.Step(t, 5*time.Hour)
		exec(`create table t as select generate_series(1, 100) as n;
			alter table t set (parallel_workers = 2);
			set min_parallel_table_scan_size = 0; set parallel_setup_cost = 0; set parallel_tuple_cost = 0;
			set parallel_leader_participation = off`)
		var there time.Time
		if err := conn.QueryRow(ctx, "select min(clock_timestamp()) from t").Scan(&there); err != nil {
			t.Fatal(err)
		}
		if got := time.Until(there).Round(10 * time.Minute); got != 5*time.Hour {
			t.Errorf("parallel workers: off by %s, want 5h", got)
		}
		rows, _ := conn.Query(ctx, "explain (analyze, costs off) select min(clock_timestamp()) from t")
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if plan := strings.Join(lines, "\n"); err != nil || !strings.Contains(plan, "Workers Launched: 2") {
			t.Errorf("expected parallel workers, got %v and\n%s", err, plan)
		}

		exec("set statement_timeout = '100ms'")
		var pgErr *pgconn.PgError
		if _, err := conn.Exec(ctx, "select pg_sleep(3600)"); !errors.As(err, &pgErr) || pgErr.Code != "57014" {
			t.Errorf("expected a statement_timeout with the clock ahead, got %v", err)
		}
	})
}

func clockOf(t *testing.T, conn *pgx.Conn) time.Time {
	t.Helper()
	var there time.Time
	if err := conn.QueryRow(t.Context(), "select clock_timestamp()").Scan(&there); err != nil {
		t.Fatal(err)
	}
	return there
}
