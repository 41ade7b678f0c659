package pglease

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/pglease"
)

// Claims and reservations of numbers, and the rows and plans that they use.

// At isolation levels that turn conflicts into errors, the store retries calls. N
// concurrent holders get N numbers of a pool that the first of them creates.
func TestIsolation(t *testing.T) {
	t.Parallel()
	installed.One(t, func(t *testing.T, db *pgtest.DB) {
		for _, level := range []string{"read committed", "repeatable read", "serializable"} {
			t.Run(level, func(t *testing.T) {
				db.Exec(t, fmt.Sprintf("ALTER DATABASE %s SET default_transaction_isolation = '%s'", db.Name, level))
				pool := db.SQL(t)
				if got := one[string](t, pool, "SHOW transaction_isolation"); got != level {
					t.Fatalf("expected %s, got %s", level, got)
				}
				s, p := pglease.New(pool, pglease.Config{}), small(8)
				p.Name = strings.ReplaceAll(level, " ", "-")
				claims, errs := make([]nodelease.Claim, p.Size), make([]error, p.Size)
				var wg sync.WaitGroup
				for i := range claims {
					wg.Go(func() {
						if claims[i], errs[i] = s.Claim(t.Context(), p, ask(fmt.Sprint(i), lasting)); errs[i] != nil {
							return
						}
						if _, errs[i] = s.Renew(t.Context(), p, claims[i], ask("", lasting)); errs[i] == nil {
							errs[i] = s.Release(t.Context(), p, claims[i], 5)
						}
					})
				}
				wg.Wait()
				must(t, errors.Join(errs...))
				for i, c := range claims {
					claims[i] = claim(t, s, p, ask(fmt.Sprint(c.Holder, " again"), lasting))
				}
				if _, err := s.Claim(t.Context(), p, ask("one more", lasting)); !errors.Is(err, nodelease.ErrPoolExhausted) {
					t.Errorf("expected %v after %d claims, got %v", nodelease.ErrPoolExhausted, p.Size, err)
				}
			})
		}
	})
}

// A stuck transaction blocks one number, not the pool.
func TestStuckTransaction(t *testing.T) {
	t.Parallel()
	installed.OneReused(t, func(t *testing.T, db *pgtest.DB) {
		s, p := store(t, db), small(4)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // a blocked call would otherwise wait until the end of the test
		defer cancel()
		a := claim(t, s, p, ask("a", lasting))
		b := claim(t, s, p, ask("b", lasting))
		tx, err := db.Conn(t).Begin(ctx)
		must(t, err)
		r := ask("stuck", lasting)
		var number int
		must(t, tx.QueryRow(ctx, "SELECT number FROM sortkey.claim_node($1, $2, $3, '{}', $4, 60000, $5, $6)", p.Name, p.Size, p.Layout, r.Holder, r.Now, r.Until).Scan(&number))
		// A second transaction locks a held number.
		other := begin(t, db, "SELECT FROM sortkey.node_lease WHERE number = $1 FOR UPDATE", a.Number)

		c, err := s.Claim(ctx, p, ask("c", lasting))
		must(t, err)
		if slices.Contains([]int{a.Number, b.Number, number}, c.Number) {
			t.Errorf("expected another number than %d, %d and %d, got %d", a.Number, b.Number, number, c.Number)
		}
		var busy *nodelease.BusyError
		if _, err := s.Claim(ctx, p, ask("d", lasting)); !errors.As(err, &busy) || busy.Held != 4 || busy.Ahead != 0 {
			t.Errorf("expected 4 numbers to be held, got %v", err)
		}
		_, err = s.Renew(ctx, p, b, ask("", lasting))
		must(t, err)
		must(t, s.Release(ctx, p, c, 1))
		must(t, tx.Rollback(ctx))
		must(t, other.Rollback(ctx))
		if d := claim(t, s, p, ask("d", lasting)); d.Number != number || d.Term != 1 || d.After != 0 {
			t.Errorf("expected number %d in term 1 after 0, got %+v", number, d)
		}
		_, err = s.Renew(ctx, p, a, ask("", lasting))
		must(t, err)
	})
}

// Claims are on disk before they are confirmed, for each default of
// synchronous_commit. The default applies again in the next transaction.
func TestDurability(t *testing.T) {
	t.Parallel()
	installed.OneReused(t, func(t *testing.T, db *pgtest.DB) {
		ctx := t.Context()
		conn := db.Conn(t)
		for setting, want := range map[string]string{"off": "on", "local": "on", "on": "on", "remote_write": "remote_write", "remote_apply": "remote_apply"} {
			_, err := conn.Exec(ctx, "SET synchronous_commit = "+setting)
			must(t, err)
			show := func(when, want string) {
				t.Helper()
				if got := pgtest.Value[string](t, conn, "SHOW synchronous_commit"); got != want {
					t.Errorf("%s with default %s: expected synchronous_commit %s, got %s", when, setting, want, got)
				}
			}
			for _, call := range []string{
				"claim_node('small', 3, 'x', '{}', 'a', 60000, 5, 6)", "renew_node('small', 0, 1, 'a', 60000, 7)",
				"release_node('small', 0, 1, 'a', 7)", "reserve_node('small', 2, 'x')", "unreserve_node('small', 2)",
			} {
				tx, err := conn.Begin(ctx)
				must(t, err)
				_, err = tx.Exec(ctx, "SELECT sortkey."+call)
				must(t, err)
				show(call, want)
				if strings.HasPrefix(call, "unreserve") {
					_, err = tx.Exec(ctx, "UPDATE sortkey.node_lease SET mark = 0")
					must(t, err)
				}
				must(t, tx.Commit(ctx))
				show("after "+call, setting)
			}
			_, err = conn.Exec(ctx, "UPDATE sortkey.node_lease SET term = 0")
			must(t, err)
		}
	})
}

// At least 95 % of the renewals are HOT updates, and the table hardly grows. The server
// prunes old row versions only if no transaction in the database can see them. So the
// test runs alone, and without autovacuum, whose ANALYZE has a snapshot.
func TestRenewalsInPlace(t *testing.T) {
	installed.One(t, func(t *testing.T, db *pgtest.DB) {
		const holders, renewals = 100, 20
		pool, renewing := db.SQL(t), db.SQL(t)
		s, p := pglease.New(renewing, pglease.Config{}), small(1024)
		must(t, execute(t.Context(), pool, "ALTER TABLE sortkey.node_lease SET (autovacuum_enabled = off)"))
		var claims []nodelease.Claim
		for i := range holders {
			claims = append(claims, claim(t, s, p, ask(fmt.Sprint(strings.Repeat("x", 100), " ", i), lasting)))
		}
		size := one[int](t, pool, "SELECT pg_relation_size('sortkey.node_lease')")
		for range renewals {
			for _, c := range claims {
				_, err := s.Renew(t.Context(), p, c, ask("", lasting))
				must(t, err)
			}
		}
		if now := one[int](t, pool, "SELECT pg_relation_size('sortkey.node_lease')"); now > size+size/10+8192 {
			t.Errorf("expected the table to stay at %d bytes, got %d after %d renewals of %d claims", size, now, renewals, holders)
		}
		must(t, renewing.Close()) // a session reports its statistics when it ends
		pgtest.Eventually(t, "the server has counted all updates, 95 % of the renewals as HOT", func() error {
			all := one[int](t, pool, "SELECT n_tup_upd FROM pg_stat_user_tables WHERE relname = 'node_lease'")
			hot := one[int](t, pool, "SELECT n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'node_lease'")
			// Claims are updates too, but of indexed columns.
			if all < holders*(1+renewals) || hot < holders*renewals*95/100 {
				return fmt.Errorf("%d of %d updates are HOT", hot, all)
			}
			return nil
		})
	})
}

// A number can be reserved before or after the first claim of its pool, but not while
// it is held or while its high-water mark is in the future.
func TestReserve(t *testing.T) {
	t.Parallel()
	installed.OneReused(t, func(t *testing.T, db *pgtest.DB) {
		ctx, s, p, pool := t.Context(), store(t, db), small(3), db.SQL(t)
		call := func(function string, args ...any) error {
			places := []string{"$1::text", "$2::integer", "$3", "$4"}[:len(args)]
			return execute(ctx, pool, fmt.Sprintf("SELECT sortkey.%s(%s)", function, strings.Join(places, ", ")), args...)
		}
		inUse := func(err error, words ...string) {
			t.Helper()
			var pg *pgconn.PgError
			if !errors.As(err, &pg) || pg.Code != "55006" {
				t.Errorf("expected an error of state 55006, got %v", err)
			}
			wrong(t, err, nil, words...)
		}
		must(t, call("reserve_node", p.Name, 1, "defaults of shop"))
		must(t, call("reserve_node", p.Name, 1, "defaults of shop")) // a migration may run twice
		for _, whileHeld := range []bool{false, true} {
			inUse(call("reserve_node", p.Name, 1, "defaults of billing", whileHeld), "number 1 of pool small for 'defaults of billing'", "reserved for 'defaults of shop'")
		}
		if note := one[string](t, pool, "SELECT reserved FROM sortkey.node_lease WHERE number = 1"); note != "defaults of shop" {
			t.Errorf("expected the first reservation, got %q", note)
		}
		a := claim(t, s, p, ask("host a AAAA", lasting))
		b := claim(t, s, p, ask("host b BBBB", lasting))
		if a.Number != 0 || b.Number != 2 {
			t.Errorf("expected numbers 0 and 2, got %d and %d", a.Number, b.Number)
		}
		inUse(call("reserve_node", p.Name, 0, "x"), "number 0 of pool small", "held by host a until")
		if _, err := s.Claim(ctx, p, ask("c", lasting)); !errors.Is(err, nodelease.ErrPoolExhausted) {
			t.Errorf("expected %v, got %v", nodelease.ErrPoolExhausted, err)
		}
		if n := one[int](t, pool, "SELECT count(*) FROM sortkey.node_lease WHERE reserved IS NOT NULL"); n != 1 {
			t.Errorf("expected one reserved number, got %d", n)
		}

		// A held number is reserved in two steps: with while_held no other holder gets it,
		// and then its holder releases it.
		must(t, call("reserve_node", p.Name, 0, "default of bills.id", true))
		_, err := s.Renew(ctx, p, a, ask("", lasting))
		must(t, err)
		mark := time.Now().UnixMilli() + 40_000 // within the renewed claim
		must(t, s.Release(ctx, p, a, mark))
		var busy *nodelease.BusyError
		if _, err := s.Claim(ctx, p, ask("c", lasting)); !errors.As(err, &busy) || busy.Held != 1 || busy.Reserved != 2 {
			t.Errorf("expected one number held and two reserved, got %v", err)
		}
		inUse(call("reserve_node", p.Name, 0, "default of bills.id"), "may be in use for another")
		mark = time.Now().UnixMilli() + 1000
		must(t, execute(ctx, pool, "UPDATE sortkey.node_lease SET mark = $1 WHERE number = 0", mark))
		pgtest.Eventually(t, "the high-water mark has passed", func() error { return call("reserve_node", p.Name, 0, "default of bills.id") })
		if time.Now().UnixMilli() < mark+900 { // by a clock that may differ a little
			t.Error("expected the number to be reserved once its high-water mark has passed")
		}

		// An expired claim can't be renewed once its number is reserved.
		must(t, s.Release(ctx, p, b, 5))
		b = claim(t, s, p, nodelease.Request{Holder: "b", TTL: time.Millisecond, Now: 10, Until: 20})
		pgtest.Eventually(t, "the claim has expired", func() error { return call("reserve_node", p.Name, 2, "x") })
		_, err = s.Renew(ctx, p, b, ask("", lasting))
		wrong(t, err, nodelease.ErrSuperseded)
		must(t, call("unreserve_node", p.Name, 2))
		must(t, call("unreserve_node", p.Name, 0, "2001-01-01Z"))
		// unreserve_node rounds up and adds 12 ms, by which IDs may be ahead of the server's clock.
		if late := one[int64](t, pool, "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint - mark FROM sortkey.node_lease WHERE number = 2"); late > 120_000 || late < -13 {
			t.Errorf("expected the high-water mark to be the time of unreserve_node, got one %d ms before now", late)
		}
		if c := claim(t, s, p, ask("c", lasting)); c.Number != 0 || c.After != mark {
			t.Errorf("expected number 0 after %d, got %+v", mark, c)
		}
		must(t, call("unreserve_node", p.Name, 1, "2100-01-01Z"))
		r := ask("d", lasting)
		r.Now += 1000
		if d := claim(t, s, p, r); d.Number != 2 {
			t.Errorf("expected number 2, got %+v", d)
		}
		if _, err := s.Claim(ctx, p, ask("e", lasting)); !errors.Is(err, nodelease.ErrClockBehind) {
			t.Errorf("expected number 1 not to be granted until 2100, got %v", err)
		}

		wrong(t, call("unreserve_node", p.Name, 0), nil, "number 0 of pool", "is not reserved")
		wrong(t, call("reserve_node", p.Name, 3, "x"), nil, "number 3 (0 to 2)")
		wrong(t, call("reserve_node", p.Name, -1, "x"), nil, "number -1 (0 to 2)")
		wrong(t, call("reserve_node", "Small", 1, "x"), nil, "pool 'Small'")
		// The first claim creates these pools. Their sizes are known before.
		wrong(t, call("reserve_node", "snowflake", 1024, "x"), nil, "number 1024 (0 to 1023)")
		wrong(t, call("reserve_node", "spread64", 1024, "x"), nil, "number 1024 (0 to 1023)")
		wrong(t, call("reserve_node", "spread64-3", 64, "x"), nil, "number 64 (0 to 63)")
		must(t, call("reserve_node", "another", 65_535, "x"))
		wrong(t, call("reserve_node", p.Name, 1, nil), nil, "note NULL")

		// A reserved number out of the pool's range means that the layouts differ.
		p.Name = "later"
		must(t, call("reserve_node", p.Name, 5, "x"))
		_, err = s.Claim(ctx, p, ask("f", lasting))
		wrong(t, err, nodelease.ErrPoolMismatch, "reserved number 5", "pool later", "(0 to 2)")
		must(t, call("unreserve_node", p.Name, 5))
		claim(t, s, p, ask("f", lasting))
	})
}

// The error of an exhausted pool lists the numbers reserved in the database with their
// notes, and names unreserve_node. Numbers in Pool.Reserved are counted separately.
func TestReservations(t *testing.T) {
	t.Parallel()
	installed.OneReused(t, func(t *testing.T, db *pgtest.DB) {
		s, p := store(t, db), small(7)
		busy := func(words ...string) {
			t.Helper()
			_, err := nodelease.Acquire(t.Context(), s, p, nodelease.Options{Wait: -1})
			wrong(t, err, nodelease.ErrPoolExhausted, words...)
			if has := strings.Contains(err.Error(), "unreserve_node"); has != (len(words) > 1) {
				t.Errorf("want unreserve_node named only if the database has reservations, got %v", err)
			}
		}
		p.Reserved = []int{0, 1, 2, 3, 4, 5, 6}
		busy("7 in Pool.Reserved")
		db.Exec(t, "SELECT sortkey.reserve_node('small', 5, repeat('é', 1000))")
		db.Exec(t, "SELECT sortkey.reserve_node('small', 2, 'the default of \"Orders\".id')")
		busy("7 in Pool.Reserved", "; reserved in the database: 2 for 'the default of \"Orders\".id', ", fmt.Sprintf("5 for '%s'; sortkey.unreserve_node", strings.Repeat("é", 100)))
		p.Reserved = []int{0, 1}
		for _, n := range []int{3, 4, 6} {
			db.Exec(t, fmt.Sprintf("SELECT sortkey.reserve_node('small', %d, 'x')", n))
		}
		busy("2 in Pool.Reserved", "7 reserved", "in the database: 2 for", "4 for 'x', 2 more; sortkey.unreserve_node")
		db.Exec(t, "SELECT sortkey.unreserve_node('small', 6, '2001-01-01Z')")
		if c := claim(t, s, p, ask("a", lasting)); c.Number != 6 {
			t.Errorf("want number 6, got %d", c.Number)
		}
		p.Reserved = nil // another program can claim the numbers in this program's Pool.Reserved
		for want := range 2 {
			if c := claim(t, s, p, ask(fmt.Sprint(want), lasting)); c.Number != want {
				t.Errorf("want number %d, got %d", want, c.Number)
			}
		}
	})
}

// A new pool takes over the reservations of other pools of its layout, and of the pool
// with the default name: defaults generate IDs with these numbers.
func TestReservationsOfLayout(t *testing.T) {
	t.Parallel()
	installed.OneReused(t, func(t *testing.T, db *pgtest.DB) {
		s := store(t, db)
		db.Exec(t, `SELECT sortkey.reserve_node('snowflake', 0, 'defaults'), sortkey.reserve_node('snowflake-si', 0, 'defaults'),
			sortkey.reserve_node('spread64', 4, 'defaults'), sortkey.reserve_node('sno', 0, 'defaults'), sortkey.reserve_node('other', 0, 'x')`)
		for _, p := range []nodelease.Pool{
			nodelease.ForSnowflake(idtype.DefaultSnowflakeLayout()), nodelease.ForSpread64(4), nodelease.ForSno(),
		} {
			for _, name := range []string{"orders", "users"} { // users has the reservations of both
				p.Name = name + "-" + p.Name
				if c := claim(t, s, p, ask(p.Name, lasting)); c.Number != 1 {
					t.Errorf("%s: want number 1, got %d", p.Name, c.Number)
				}
			}
		}
		other := nodelease.ForSpread64(5)
		if c := claim(t, s, other, ask("other", lasting)); c.Number != 0 {
			t.Errorf("another layout: want number 0, got %d", c.Number)
		}
	})
}

// A claim reads few rows, even of a large pool and with a generic plan. In addition it
// reads the row of each number in Pool.Reserved at most once.
func TestClaimReadsFewRows(t *testing.T) {
	t.Parallel()
	installed.Each(t, func(t *testing.T, db *pgtest.DB) {
		ctx := t.Context()
		size, claims := 1<<16, 0
		read := func(conn *pgx.Conn, reserved string) (number, rows int) {
			t.Helper()
			claims++
			tx, err := conn.Begin(ctx)
			must(t, err)
			const sofar = "SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::integer FROM pg_stat_xact_user_tables WHERE relname = 'node_lease'"
			var before int // reads of earlier transactions that the server hasn't flushed yet
			must(t, tx.QueryRow(ctx, sofar).Scan(&before))
			must(t, tx.QueryRow(ctx, "SELECT number FROM sortkey.claim_node('large', $3, 'x', $1, $2, 60000, 1780000000000, 1780000000001)",
				reserved, fmt.Sprint("holder ", claims), size).Scan(&number))
			must(t, tx.QueryRow(ctx, sofar).Scan(&rows))
			must(t, tx.Commit(ctx))
			return number, rows - before
		}
		odd := fmt.Sprintf("SELECT range_agg(int4range(n, n + 1))::text FROM generate_series(1, %d, 2) n", size-1)
		most := size / 16 * 15
		// The numbers have no rows until they are used.
		for _, before := range []string{
			"SELECT", "ANALYZE sortkey.node_lease",
			fmt.Sprintf("INSERT INTO sortkey.node_lease (pool, number) SELECT 'large', n FROM generate_series(0, %d) n ON CONFLICT DO NOTHING", size-1),
			"ANALYZE sortkey.node_lease",
		} {
			db.Exec(t, before)
			read(db.Conn(t), "{}") // creates the pool, or finds that it has all rows
			for name, reserves := range map[string]struct {
				reserved string
				count    int
				of       func(number int) bool
			}{
				"none":       {"{}", 0, func(int) bool { return false }},
				"most":       {fmt.Sprintf("{[0,%d]}", most-1), most, func(n int) bool { return n < most }},
				"each other": {one[string](t, db.SQL(t), odd), size / 2, func(n int) bool { return n%2 == 1 }},
			} {
				conn := db.Conn(t)
				for i := range 10 { // from the sixth call on, the server may use a generic plan
					if number, rows := read(conn, reserves.reserved); reserves.of(number) || rows > reserves.count+500 {
						t.Errorf("%s, %s reserved, call %d: want a free number after at most %d rows, got %d after %d",
							before, name, i+1, reserves.count+500, number, rows)
					}
				}
			}
		}
	})
}

// A thousand programs, many at once, get a number of the largest pool each, in the
// first call. The numbers are the lowest ones, and only these have rows.
func TestThousandClaims(t *testing.T) { // not in parallel: it would take the server from tests that renew claims
	installed.One(t, func(t *testing.T, db *pgtest.DB) {
		const programs, atOnce = 1024, 32
		db.Exec(t, "SELECT sortkey.reserve_node('sno', 3, 'defaults'), sortkey.reserve_node('sno', 65535, 'imports')")
		pool := db.SQL(t)
		pool.SetMaxOpenConns(atOnce)
		leases, errs := make([]*nodelease.Keeper, programs), make([]error, programs)
		var wg sync.WaitGroup
		connections := make(chan struct{}, atOnce) // so that the limit of a call doesn't count the wait for a connection
		for i := range programs {
			connections <- struct{}{}
			wg.Go(func() {
				defer func() { <-connections }()
				leases[i], errs[i] = nodelease.Acquire(t.Context(), pglease.New(pool, pglease.Config{}), nodelease.ForSno(), nodelease.Options{Wait: -1, TTL: time.Hour})
			})
		}
		wg.Wait()
		must(t, errors.Join(errs...))
		var numbers []int
		for _, l := range leases {
			numbers = append(numbers, l.Number())
		}
		slices.Sort(numbers)
		for i, number := range numbers {
			if i >= 3 {
				i++ // number 3 is reserved
			}
			if number != i {
				t.Fatalf("expected the %d lowest numbers, got %v", programs, numbers)
			}
		}
		if rows := one[int](t, pool, "SELECT count(*) FROM sortkey.node_lease WHERE pool = 'sno'"); rows != programs+2 {
			t.Errorf("expected %d rows, got %d", programs+2, rows)
		}
		if got := one[string](t, pool, "SELECT string_agg(format('%s %s', n, state), ', ' ORDER BY state) FROM (SELECT state, count(*) n FROM sortkey.node_status WHERE pool = 'sno' GROUP BY state) s"); got != "64510 free, 1024 held, 2 reserved" {
			t.Errorf("expected 65536 numbers, got %s", got)
		}
		for _, l := range leases {
			wg.Go(func() { _ = l.Close() })
		}
		wg.Wait()
	})
}

// Neither the custom nor the generic plan of a claim compares a number with a list of
// reserved numbers, which would take quadratic time.
func TestClaimPlans(t *testing.T) {
	t.Parallel()
	installed.EachReused(t, func(t *testing.T, db *pgtest.DB) {
		ctx := t.Context()
		var plans strings.Builder
		conn := db.Conn(t, pgtest.Config(func(c *pgx.ConnConfig) {
			c.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { plans.WriteString(n.Message + "\n") }
		}))
		_, err := conn.Exec(ctx, `LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_nested_statements = on;
			SET auto_explain.log_level = 'notice'; SET client_min_messages = 'notice'`)
		must(t, err)
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			plans.Reset()
			_, err := conn.Exec(ctx, "SET plan_cache_mode = "+mode)
			must(t, err)
			_, err = conn.Exec(ctx, "SELECT FROM sortkey.claim_node('planned', 4, 'x', '{[0,2]}', $1, 60000, 5, 6)", pgx.QueryExecModeExec, mode)
			must(t, err)
			if got := plans.String(); strings.Count(got, "<@") < 1 || regexp.MustCompile(`\b(ANY|ALL) \(`).MatchString(got) {
				t.Errorf("%s: want a test with ranges (<@) and none with a list, got %s", mode, got)
			}
		}
	})
}

// Concurrent calls of one holder may get one number each. The holder's next call keeps
// one number and releases the others.
func TestSameHolderAtOnce(t *testing.T) {
	t.Parallel()
	installed.OneReused(t, func(t *testing.T, db *pgtest.DB) {
		ctx, s, p := t.Context(), store(t, db), small(3)
		claim(t, s, p, ask("other", lasting))
		r := ask("same", lasting)
		tx := begin(t, db, "SELECT FROM sortkey.claim_node($1, $2, $3, '{}', $4, 60000, $5, $6)", p.Name, p.Size, p.Layout, r.Holder, r.Now, r.Until)
		a := claim(t, s, p, ask("same", lasting))
		must(t, tx.Commit(ctx))
		if _, err := s.Claim(ctx, p, ask("third", lasting)); !errors.Is(err, nodelease.ErrPoolExhausted) {
			t.Errorf("expected two numbers of one holder, got %v", err)
		}
		b := claim(t, s, p, ask("same", lasting))
		for _, c := range []nodelease.Claim{b, claim(t, s, p, ask("same", lasting))} {
			if c.Number != b.Number || c.Term != 1 || c.After != 0 {
				t.Errorf("expected number %d again, got %+v", b.Number, c)
			}
		}
		r = ask("third", lasting)
		r.Now, r.Until = r.Until+1000, r.Until+1000 // after the high-water mark of the released number
		c := claim(t, s, p, r)
		if c.Number == b.Number {
			t.Errorf("expected a number other than %d, got %+v", b.Number, c)
		}
		if _, err := s.Renew(ctx, p, a, ask("", lasting)); a.Number != b.Number && !errors.Is(err, nodelease.ErrSuperseded) {
			t.Errorf("expected the other claim to be over, got %v", err)
		}
	})
}

// A migration can reserve a number again right after its way back. Reservation waits until the
// clock is a second past the high-water mark. It doesn't wait for longer than two seconds.
func TestReserveAgain(t *testing.T) {
	t.Parallel()
	installed.EachReused(t, func(t *testing.T, db *pgtest.DB) {
		pool := db.SQL(t)
		reserve := func() error { return execute(t.Context(), pool, "SELECT sortkey.reserve_node('snowflake', 7, 'x')") }
		must(t, reserve())
		for range 2 {
			must(t, execute(t.Context(), pool, "SELECT sortkey.unreserve_node('snowflake', 7)"))
			must(t, reserve())
			if !one[bool](t, pool, "SELECT extract(epoch FROM clock_timestamp()) * 1000 > mark + 1000 FROM sortkey.node_lease WHERE number = 7") {
				t.Error("the reservation returned less than a second after the high-water mark")
			}
		}
		must(t, execute(t.Context(), pool, "SELECT sortkey.unreserve_node('snowflake', 7, now() + interval '1 hour')"))
		wrong(t, reserve(), nil, "cannot reserve number 7 of pool snowflake: it may be in use for another 36", "SQLSTATE 55006")
	})
}

// Before Postgres 19, the server compiles a plan whose cost is high, which takes half a second. A
// plan that can't do without a node that is off has such a cost, for example as long as a table
// has one page.
func TestCheapPlans(t *testing.T) {
	t.Parallel()
	installed.OneReused(t, func(t *testing.T, db *pgtest.DB) {
		const functions = `SELECT coalesce(string_agg(p.oid::regprocedure::text, ', '), '') FROM pg_proc p
			WHERE p.pronamespace IN ('sortkey'::regnamespace, 'sortkey_internal'::regnamespace) AND EXISTS (SELECT FROM unnest(p.proconfig) c WHERE c ~ '^enable_.*=off$')`
		if got := one[string](t, db.SQL(t), functions+` AND 'jit=off' = ANY (p.proconfig)`); !strings.Contains(got, "claim_node") {
			t.Errorf("want claim_node among the functions that turn off nodes, got %q", got)
		}
		if got := one[string](t, db.SQL(t), functions+` AND NOT 'jit=off' = ANY (p.proconfig)`); got != "" {
			t.Errorf("these functions turn off nodes of plans, but not jit: %s", got)
		}
	})
}

// If a number is reserved after its claim has expired, the sleeping holder can't use
// it any more: it can't renew the claim, get it by a repeated call, or lower the
// high-water mark with a release.
func TestReservedAsleep(t *testing.T) {
	t.Parallel()
	installed.OneReused(t, func(t *testing.T, db *pgtest.DB) {
		ctx, s, p, pool := t.Context(), store(t, db), small(2), db.SQL(t)
		asleep := claim(t, s, p, nodelease.Request{Holder: "asleep", TTL: time.Millisecond, Now: 10, Until: 20})
		must(t, execute(ctx, pool, "SELECT sortkey.reserve_node($1, $2, 'x', while_held => true)", p.Name, asleep.Number))
		pgtest.Eventually(t, "the claim has expired", func() error {
			if one[bool](t, pool, "SELECT expires_at > clock_timestamp() FROM sortkey.node_lease WHERE holder = 'asleep'") {
				return errors.New("the claim has not expired")
			}
			return nil
		})
		_, err := s.Renew(ctx, p, asleep, ask("", lasting))
		wrong(t, err, nodelease.ErrSuperseded)
		must(t, execute(ctx, pool, "SELECT sortkey.unreserve_node($1, $2, '2030-01-01Z')", p.Name, asleep.Number))
		must(t, s.Release(ctx, p, asleep, 15))
		if mark := one[int64](t, pool, "SELECT max(mark) FROM sortkey.node_lease"); mark < 1_800_000_000_000 {
			t.Errorf("expected the high-water mark of unreserve_node to stay, got %d", mark)
		}

		p.Name = "repeated"
		again := claim(t, s, p, nodelease.Request{Holder: "again", TTL: time.Millisecond, Now: 10, Until: 20})
		must(t, execute(ctx, pool, "SELECT sortkey.reserve_node($1, $2, 'x', while_held => true)", p.Name, again.Number))
		pgtest.Eventually(t, "the claim has expired", func() error {
			if c := claim(t, s, p, ask("again", time.Millisecond)); c.Number == again.Number {
				return errors.New("a repeated call still gets the reserved number")
			}
			return nil
		})
	})
}

// Locked reservations, and reservations out of the pool's range, don't block claims.
func TestReservedMeanwhile(t *testing.T) {
	t.Parallel()
	installed.OneReused(t, func(t *testing.T, db *pgtest.DB) {
		ctx, s, p := t.Context(), store(t, db), small(2)
		tx := begin(t, db, "SELECT sortkey.reserve_node('other', 3, 'x')")
		other := small(2)
		other.Name = "other"
		claim(t, s, other, ask("a", lasting)) // creates the pool
		claim(t, s, p, ask("a", lasting))
		p.Reserved = []int{1}
		soon, cancel := context.WithTimeout(ctx, 5*time.Minute) // a blocked call would otherwise wait until the end of the test
		defer cancel()
		lock := begin(t, db, "SELECT FROM sortkey.node_lease WHERE pool = 'small' AND number = 1 FOR UPDATE")
		var busy *nodelease.BusyError
		if _, err := s.Claim(soon, p, ask("b", lasting)); !errors.As(err, &busy) || busy.Held != 1 || busy.Reserved != 1 || strings.Contains(err.Error(), "unreserve_node") {
			t.Errorf("expected one number held and one reserved, got %v", err)
		}
		must(t, lock.Rollback(ctx))

		must(t, tx.Commit(ctx))
		must(t, execute(ctx, db.SQL(t), "SELECT sortkey.unreserve_node('other', 3, '2001-01-01Z')"))
		claim(t, s, other, ask("b", lasting))
		if c, err := s.Claim(ctx, other, ask("c", lasting)); !errors.As(err, &busy) || busy.Held != 2 {
			t.Errorf("expected no number out of the pool's range, got %+v, %v", c, err)
		}
	})
}

// The functions bound stored values, so that a faulty or hostile program can't store
// rows on which queries fail.
func TestBounds(t *testing.T) {
	t.Parallel()
	installed.OneReused(t, func(t *testing.T, db *pgtest.DB) {
		ctx, s, p, pool := t.Context(), store(t, db), small(2), db.SQL(t)
		const end = 253402300800000 // the year 10000
		c := claim(t, s, p, ask("a", lasting))
		for _, until := range []int64{end, math.MaxInt64} {
			_, err := s.Claim(ctx, p, nodelease.Request{Holder: "b", TTL: time.Minute, Now: 5, Until: until})
			wrong(t, err, nil, "(not after the year 9999)", fmt.Sprint(until))
			_, err = s.Renew(ctx, p, c, nodelease.Request{TTL: time.Minute, Now: 5, Until: until})
			wrong(t, err, nil, "(not after the year 9999)", fmt.Sprint(until))
			wrong(t, s.Release(ctx, p, c, until), nil, "not after the year 9999", fmt.Sprint(until))
		}
		for _, until := range []string{"infinity", "-infinity", "10000-01-01Z"} {
			wrong(t, execute(ctx, pool, "SELECT sortkey.unreserve_node('small', 1, $1::text::timestamptz)", until), nil, "not after the year 9999")
		}
		for _, bytes := range []int{1001, 10_000_000} {
			err := execute(ctx, pool, "SELECT sortkey.claim_node('long', 2, repeat('x', $1), '{}', 'h', 60000, 1, 2)", bytes)
			wrong(t, err, nil, "(up to 1000 bytes)")
			if len(err.Error()) > 1000 {
				t.Errorf("expected an error of at most 1000 bytes, got %d", len(err.Error()))
			}
		}
	})
}

// reserve_node and the next_ functions take the same number of a format. No program can
// claim it from the pool of the format.
func TestNumberOfDefaults(t *testing.T) {
	t.Parallel()
	installed.One(t, func(t *testing.T, db *pgtest.DB) {
		const node = 1021
		s := store(t, db)
		db.Exec(t, fmt.Sprintf("ALTER DATABASE %s SET sortkey.node = %d", db.Name, node))
		pool := db.SQL(t)
		for _, c := range []struct {
			format, explicit string
			pool             nodelease.Pool
			number           int // in the pool
		}{
			{"snowflake", "next_snowflake(1021)", nodelease.ForSnowflake(idtype.SnowflakeLayout{}), node},
			{"spread64", "next_spread64(1021)", nodelease.ForSpread64(node & 15), node >> 4},
			{"sno", "next_sno(1021)", nodelease.ForSno(), node},
		} {
			next := fmt.Sprintf("SELECT sortkey.%[1]s_node(sortkey.next_%[1]s())", c.format)
			wrong(t, execute(t.Context(), pool, next), nil, "55000", fmt.Sprintf("number %d of pool %s is not reserved", c.number, c.pool.Name))
			must(t, execute(t.Context(), pool, "SELECT sortkey.reserve_node($1, $2, 'defaults')", c.format, node))
			if got := one[int](t, pool, next); got != node {
				t.Errorf("next_%s(): expected an ID of node %d, got %d", c.format, node, got)
			}
			if got := one[int](t, pool, fmt.Sprintf("SELECT sortkey.%s_node(sortkey.%s)", c.format, c.explicit)); got != node {
				t.Errorf("%s: expected an ID of node %d, got %d", c.explicit, node, got)
			}
			for n := range c.pool.Size { // leave number 0 and the number of the defaults
				if n != c.number && n != 0 {
					c.pool.Reserved = append(c.pool.Reserved, n)
				}
			}
			if got := claim(t, s, c.pool, ask("a "+c.format, lasting)); got.Number != 0 {
				t.Errorf("%s: expected number 0, got %+v", c.pool.Name, got)
			}
			if _, err := s.Claim(t.Context(), c.pool, ask("b "+c.format, lasting)); !errors.Is(err, nodelease.ErrPoolExhausted) {
				t.Errorf("%s: expected %v, got %v", c.pool.Name, nodelease.ErrPoolExhausted, err)
			}
		}
	})
}

// node_status shows the holders, but not the values needed to renew their claims.
func TestStatus(t *testing.T) {
	t.Parallel()
	installed.OneReused(t, func(t *testing.T, db *pgtest.DB) {
		s, p, pool := store(t, db), small(4), db.SQL(t)
		db.Exec(t, "SELECT sortkey.reserve_node('small', 3, 'default of orders.id')")
		claim(t, s, p, nodelease.Request{Holder: "host a, process 7 AAAA", TTL: lasting, Now: 1, Until: 1500})
		must(t, s.Release(t.Context(), p, claim(t, s, p, nodelease.Request{Holder: "b", TTL: lasting, Now: 1, Until: 5}), 5))
		db.Exec(t, "UPDATE sortkey.node_lease SET mark = 1::bigint << 61 WHERE number = 1")
		got := one[string](t, pool, `SELECT string_agg(concat_ws('|', number, state, holder, clock_timestamp() - claimed_at < interval '1 hour', ttl, term, coalesce((mark AT TIME ZONE 'UTC')::text, 'no mark'), reserved), E'\n' ORDER BY number) FROM sortkey.node_status`)
		const want = `0|held|host a, process 7|t|00:10:00|1|1970-01-01 00:00:01.5
1|free|t|00:10:00|1|infinity
2|free|0|no mark
3|reserved|0|no mark|default of orders.id`
		if got != want {
			t.Errorf("expected %s\ngot %s", want, got)
		}

		// The documented repairs by hand: take a number away from its holder, and lower a
		// high-water mark that is far ahead.
		db.Exec(t, `UPDATE sortkey.node_lease SET holder = NULL, expires_at = NULL WHERE pool = 'small' AND number = 0;
			UPDATE sortkey.node_lease SET mark = extract(epoch FROM clock_timestamp()) * 1000 WHERE pool = 'small' AND number = 1 AND holder IS NULL`)
		taken := map[int]int64{}
		for range 3 {
			r := ask(fmt.Sprint(len(taken)), lasting)
			r.Now += 1000
			c := claim(t, s, p, r)
			taken[c.Number] = c.After
		}
		if len(taken) != 3 || taken[0] != 1500 {
			t.Errorf("expected three numbers, 0 after 1500, got %v", taken)
		}
	})
}
