package migrations

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/internal/pgerror"
	"github.com/sortkey/sortkey/migrations"
)

// Many sessions generate IDs by defaults and calls.

// genConns opens n sessions.
func genConns(t testing.TB, db *pgtest.DB, n int) []*pgx.Conn {
	t.Helper()
	conns := make([]*pgx.Conn, n)
	for i := range conns {
		conns[i] = db.Conn(t)
	}
	return conns
}

// genEach calls f for 0 to n-1 concurrently, and ends the test if a call fails.
func genEach(t testing.TB, n int, f func(i int) error) {
	t.Helper()
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	must(t, errors.Join(errs...))
}

// A genLoad is a number of sessions that repeat a call, until the load ends or the call fails.
type genLoad struct {
	stop   atomic.Bool
	wg     sync.WaitGroup
	mu     sync.Mutex
	counts map[string]int // of the calls, by their results
	errs   []error
}

// genStart starts sessions 0 to n-1.
func genStart(n int, f func(session, call int) (result string, err error)) *genLoad {
	l := &genLoad{counts: map[string]int{}}
	for session := range n {
		l.wg.Go(func() {
			for call := 0; !l.stop.Load(); call++ {
				result, err := f(session, call)
				l.mu.Lock()
				if l.counts[result]++; err != nil {
					l.errs = append(l.errs, err)
					l.stop.Store(true)
				}
				l.mu.Unlock()
			}
		})
	}
	return l
}

func (l *genLoad) count(result string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts[result]
}

// await waits until a condition is true. It fails the test if a call fails before.
func (l *genLoad) await(t testing.TB, what string, condition func() bool) {
	t.Helper()
	pgtest.Eventually(t, what, func() error {
		if !condition() {
			l.mu.Lock()
			defer l.mu.Unlock()
			must(t, errors.Join(l.errs...))
			return fmt.Errorf("results %v", l.counts)
		}
		return nil
	})
}

// end ends the load and returns the errors of its calls.
func (l *genLoad) end() error {
	l.stop.Store(true)
	l.wg.Wait()
	return errors.Join(l.errs...)
}

// genFor repeats a call for a time in each of n sessions.
func genFor(t testing.TB, n int, duration time.Duration, f func(session, call int) error) {
	t.Helper()
	load := genStart(n, func(session, call int) (string, error) { return "", f(session, call) })
	time.Sleep(duration)
	must(t, load.end())
}

// A genOrder is the last ID of a session.
type genOrder struct{ last formatParts }

const (
	// genWindow is the time of a window of the server's clock, in milliseconds. IDs are
	// less than that early.
	genWindow = 4
	// genAhead is the time of three windows. IDs are less than that ahead of the clock.
	genAhead = 12
)

// check checks the concatenated further IDs of the session, in the order of their
// generation: all have the layout and the node number, and they increase, even if the clock was
// set back since the last ones.
func (o *genOrder) check(f *format, node int, ids []byte) error {
	for id := range slices.Chunk(ids, f.width) {
		p, err := f.parts(f.received(id))
		if err != nil {
			return fmt.Errorf("%s %x: %w", f.name, id, err)
		}
		if f.hasNodes() && p.node != node || f.meta != "" && f.meta != fmt.Sprint(p.meta) || p.tickTock {
			return fmt.Errorf("%s %x: expected node number %d, metabyte %s and no tick-tock bit, got %+v", f.name, id, node, f.meta, p)
		}
		if p.order() <= o.last.order() {
			return fmt.Errorf("%s: expected increasing IDs within a session, got %x (%s, sequence %d) after %s, sequence %d",
				f.name, id, p.time, p.sequence, o.last.time, o.last.sequence)
		}
		o.last = p
	}
	return nil
}

func TestServerDefaults(t *testing.T) {
	rows := pgtest.Scaled(500, 2000)
	installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) { genDefaults(t, db, genFormats(), rows) })
}

// 100,000 rows per client find rarer collisions. SnowflakeSI has the same functions as
// Snowflake, whose template is "generator".
func TestServerDefaultsManyRows(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		formats := genFormats()
		genDefaults(t, db, formats[:1], 40_000)
		genDefaults(t, db, formats[2:], 20_000)
	})
}

// genDefaults inserts rows in each of 8 sessions. Half of them use the default of the
// column, with the node number in the setting, and half pass the number.
func genDefaults(t *testing.T, db *pgtest.DB, formats []*format, rows int) {
	const clients, singles = 8, 500
	ctx := t.Context()
	setNode(t, db, migrations.DefaultSchema, genNode)
	for _, f := range formats {
		db.Exec(t, fmt.Sprintf("create unlogged table %[1]s (id sortkey.%[1]s not null default %[2]s, client int, n int)", f.name, f.next()))
	}
	conns := genConns(t, db, clients*len(formats))

	insert := func(f *format, client int, conn *pgx.Conn) error {
		random := rand.New(rand.NewPCG(uint64(client), 1))
		single := "insert into " + f.name + " (id, client, n) values (default, $1, $2)"
		bulk := "insert into " + f.name + " (client, n) select $1, generate_series($2::int, $3)"
		if client%2 == 1 {
			single = strings.Replace(single, "default", f.nextNode(), 1)
			bulk = "insert into " + f.name + " (id, client, n) select " + f.nextNode() + ", $1, generate_series($2::int, $3)"
		}
		for n, left := 0, singles; n < rows; {
			if left > 0 && random.IntN(2) == 0 {
				n, left = n+1, left-1
				if _, err := conn.Exec(ctx, single, client, n); err != nil {
					return err
				}
				continue
			}
			size := min(1+random.IntN(400), rows-n)
			if left == 0 {
				size = min(5000, rows-n)
			}
			if _, err := conn.Exec(ctx, bulk, client, n+1, n+size); err != nil {
				return err
			}
			n += size
		}
		return nil
	}
	for i, f := range formats {
		genEach(t, clients, func(client int) error { return insert(f, client, conns[client*len(formats)+i]) })
	}

	// Create the primary key at the end, since it would take most of the time of concurrent inserts. It finds duplicates.
	genEach(t, len(formats), func(i int) error {
		_, err := conns[i].Exec(ctx, "alter table "+formats[i].name+" add primary key (id)")
		return err
	})
	genEach(t, len(conns), func(i int) error {
		f, client := formats[i%len(formats)], i/len(formats)
		var n int
		var ids []byte
		err := conns[i].QueryRow(ctx, fmt.Sprintf("select count(*), string_agg(%s(id), '' order by n) from %s where client = $1",
			f.send, f.name), client).Scan(&n, &ids)
		if err != nil {
			return err
		}
		if n != rows || len(ids) != rows*f.width {
			return fmt.Errorf("%s: expected %d rows, got %d", f.name, rows, n)
		}
		return new(genOrder).check(f, genNode, ids)
	})
}

// genProbe inserts n IDs, and returns the milliseconds by which the earliest one is before the
// statement, and the latest one after its insert.
func genProbe(t *testing.T, conn *pgx.Conn, f *format, client, n int) (ids []byte, early, late float64, err error) {
	// The inner SELECT generates the ID of a row before RETURNING reads the clock.
	err = conn.QueryRow(t.Context(), fmt.Sprintf(`
		with generated as (insert into %s select %s from generate_series(1, %d) returning id, clock_timestamp() as inserted),
		times as (select id, %s(id) as time, inserted from generated)
		select string_agg(%s(id), ''), extract(epoch from statement_timestamp() - min(time))::float8 * 1000,
			extract(epoch from max(time - inserted))::float8 * 1000 from times`,
		f.name, f.form(client), n, f.function("time"), f.send)).Scan(&ids, &early, &late)
	return ids, early, late, err
}

// If calls exceed the rate of a format, its IDs are ahead of the clock, by less than three
// windows, and without duplicates. Even a slow machine exceeds 16 IDs per millisecond.
func TestServerRateCap(t *testing.T) {
	const clients = 12
	duration := pgtest.Soak(t, 300*time.Millisecond, time.Second)
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		ctx := t.Context()
		slow := complete
		slow.Schema, slow.Snowflake = "slow", idtype.SnowflakeLayout{DatacenterBits: 3, WorkerBits: 10, SequenceBits: 4}
		up(t, db, slow)
		formats := []*format{formatsOf(slow)[0], genFormats()[genSpread64]}
		for _, f := range formats {
			setNode(t, db, f.schema, genNode)
		}
		conns := genConns(t, db, clients)
		for _, f := range formats {
			exec(t, conns[0], fmt.Sprintf("create unlogged table %s (id bigint)", f.name))
			var most atomic.Int64 // microseconds ahead of the clock
			most.Store(-1 << 62)
			start := time.Now()
			load := genStart(clients, func(i, _ int) (string, error) {
				_, _, ahead, err := genProbe(t, conns[i], f, i, 500)
				for m := most.Load(); int64(ahead*1000) > m && !most.CompareAndSwap(m, int64(ahead*1000)); m = most.Load() {
				}
				return "inserted", err
			})
			time.Sleep(duration)
			if f.rate() == 16 {
				load.await(t, "IDs are at least 1 ms ahead of the clock", func() bool { return most.Load() >= 1000 })
			}
			must(t, load.end())
			took := time.Since(start)
			var n, repeated int
			must(t, conns[0].QueryRow(ctx, fmt.Sprintf("select count(*), count(*) - count(distinct id) from %s", f.name)).Scan(&n, &repeated))
			t.Logf("%s: %d of %d IDs per millisecond, up to %.3f ms ahead of the clock",
				f.name, n/int(took.Milliseconds()), f.rate(), float64(most.Load())/1000)
			if repeated > 0 {
				t.Errorf("%s: expected no duplicates, got %d of %d", f.name, repeated, n)
			}
			if n > f.rate()*int(took.Milliseconds()+genWindow+genAhead) {
				t.Errorf("%s: expected at most %d IDs per millisecond, got %d in %s", f.name, f.rate(), n, took)
			}
			if most.Load() >= 1000*genAhead {
				t.Errorf("%s: expected IDs less than %d ms ahead of the clock, got %d µs", f.name, genAhead, most.Load())
			}
		}
	})
}

// genAdvisoryLocks counts the advisory locks in the database of this test.
const genAdvisoryLocks = `select count(*) from pg_locks where locktype = 'advisory'
	and database = (select oid from pg_database where datname = current_database())`

// An open transaction that has generated IDs doesn't block others and holds no
// advisory lock. Its IDs aren't generated again, even after a rollback of the
// transaction or to a savepoint. A read-only transaction cannot generate IDs.
func TestServerOpenTransaction(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		setNode(t, db, migrations.DefaultSchema, genNode)
		conns := genConns(t, db, 2)
		open, other := conns[0], conns[1]
		exec(t, other, "set statement_timeout = '60s'")
		for _, f := range genFormats() {
			// As many IDs as two windows of the slower formats have, so that advance runs.
			many := fmt.Sprintf("select array_agg(%s::text) from generate_series(1, %d)", f.next(), min(2*genWindow*f.rate(), 2500))
			for _, level := range []string{"read committed", "repeatable read", "serializable"} {
				seen := map[string]bool{}
				add := func(conn *pgx.Conn) {
					t.Helper()
					for _, id := range pgtest.Value[[]string](t, conn, many) {
						if seen[id] {
							t.Fatalf("%s: expected no duplicates, got %s", f.name, id)
						}
						seen[id] = true
					}
				}
				exec(t, open, "begin isolation level "+level)
				add(open)
				wantValue(t, other, genAdvisoryLocks, 0)
				add(other)
				exec(t, open, "savepoint s")
				add(open)
				exec(t, open, "rollback to s")
				add(other)
				add(open)
				exec(t, open, "rollback")
				add(open)
			}
			exec(t, open, "begin read only")
			fails(t, open, "25006", "select "+f.nextNode(), "nextval()")
			exec(t, open, "rollback")
		}
	})
}

// Node numbers and metabytes out of range are errors, which name the value. A role that
// can generate IDs cannot exhaust the sequence by such calls.
func TestServerNodes(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		setNode(t, db, migrations.DefaultSchema, genNode)
		conn := db.Conn(t)
		for _, c := range []struct {
			format, call, read string // %s is the value, and the call
			max                int
			message            string // after the value
		}{
			{"snowflake", "sortkey.next_snowflake(%s)", "sortkey.snowflake_node(%s)", 1023, " of Snowflake is out of range (0 to 1023)"},
			{"snowflake_si", "sortkey.next_snowflake_si(%s)", "sortkey.snowflake_si_node(%s)", 31, " of SnowflakeSI is out of range (0 to 31)"},
			{"spread64", "sortkey.next_spread64(%s)", "sortkey.spread64_node(%s)", 1023, " of Spread64 is out of range (0 to 1023)"},
			{"sno", "sortkey.next_sno(%s, 255)", "sortkey.sno_node(%s)", 65535, " of Sno is out of range (0 to 65535)"},
			{"sno", "sortkey.next_sno(65535, %s)", "(sortkey.sno_parts(%s)).meta", 255, " is out of range (0 to 255)"},
			{"sno", "sortkey.next_sno_meta(%s)", "(sortkey.sno_parts(%s)).meta", 255, " is out of range (0 to 255)"},
		} {
			call := func(v string) string { return fmt.Sprintf(c.call, v) }
			for _, v := range []int{0, 1, c.max} {
				read := fmt.Sprintf(c.read, call(fmt.Sprint(v)))
				wantValue(t, conn, "select "+read, v)
			}
			last := "select pg_sequence_last_value('sortkey_internal." + c.format + "_clock')"
			before := pgtest.Value[int64](t, conn, last)
			wrong := []string{"-1", fmt.Sprint(c.max + 1), "2147483647", "-2147483648", "null"}
			for _, v := range wrong {
				fails(t, conn, "22003", "select "+call(v), strings.ToUpper(v)+c.message)
			}
			if n := pgtest.Value[int64](t, conn, last) - before; n > int64(len(wrong)) {
				t.Errorf("expected a failing call to take at most one value of the sequence, got %d for %d calls", n, len(wrong))
			}
		}
	})
}

// If somebody sets a CACHE on the sequence, sessions keep values for later. IDs are
// still unique, increase within a session, and are never a window older than the call.
func TestServerCache(t *testing.T) {
	const clients = 6
	duration := pgtest.Soak(t, 500*time.Millisecond, time.Second)
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		f := genFormats()[genSpread64]
		exec(t, db.Conn(t), "alter sequence "+f.clock()+" cache 20")
		db.Exec(t, "create table ids (id bigint primary key)")
		conns := genConns(t, db, clients)
		orders := make([]genOrder, clients)
		genFor(t, clients, duration, func(i, _ int) error {
			n := 500
			if i%2 == 1 {
				n = 1
				time.Sleep(5 * time.Millisecond)
			}
			var ids []byte
			var age float64
			err := conns[i].QueryRow(t.Context(), fmt.Sprintf(`
				with generated as materialized (select clock_timestamp() as before, %s as id from generate_series(1, %d)),
				inserted as (insert into ids select id from generated)
				select string_agg(int8send(id), ''), extract(epoch from max(date_trunc('milliseconds', before) - sortkey.spread64_time(id)))::float8
				from generated`, f.nextNode(), n)).Scan(&ids, &age)
			if err != nil {
				return err
			}
			if age*1000 >= genWindow {
				return fmt.Errorf("expected IDs less than %d ms older than the call, got one %.3f ms older", genWindow, age*1000)
			}
			return orders[i].check(f, genNode, ids)
		})
	})
}

// Failed calls take values of the sequence. They reach the next window only after
// millions of calls, and it has no IDs before its time.
func TestServerSequenceEnd(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		conns := genConns(t, db, 4)
		const last, windowShift = "select pg_sequence_last_value('sortkey_internal.spread64_clock')", 23
		set := func(after string, counter int) (window int64) {
			return pgtest.Value[int64](t, conns[0], fmt.Sprintf("select setval('sortkey_internal.spread64_clock', (extract(epoch from clock_timestamp() + interval '%s') * 250)::bigint << %d | %d)",
				after, windowShift, counter)) >> windowShift
		}
		// 50 values before the end of a window that is an hour ahead.
		window := set("1 hour", 1<<windowShift-50)
		genEach(t, len(conns), func(i int) error {
			for range 200 {
				_, err := conns[i].Exec(t.Context(), "select sortkey.next_spread64(1)")
				if pgerror.State(err) != "55000" { // object_not_in_prerequisite_state
					return fmt.Errorf("expected SQLSTATE 55000 because the clock is behind, got %w", err)
				}
			}
			return nil
		})
		wantValue(t, conns[0], fmt.Sprintf("%s >> %d", last, windowShift), window+1)
		fails(t, conns[0], "55000", "select sortkey.next_spread64(1)",
			"clock time ", " is behind ", "the last ID of sortkey_internal.spread64_clock", "The server's clock was set back.")

		// A call doesn't wait for a clock that is more than a second behind.
		set("1 minute", 100)
		fails(t, conns[0], "55000", "select sortkey.next_spread64(1)", " is behind ")

		// Once the clock has caught up, calls return IDs of this window or a later one.
		window = set("300 ms", 100)
		if id := pgtest.Value[int64](t, conns[0], "select (extract(epoch from sortkey.spread64_time(sortkey.next_spread64(1))) * 250)::bigint"); id < window {
			t.Errorf("expected an ID in window %d or later, got one of %d", window, id)
		}

		// If somebody restarts the sequence, calls take the time from the clock.
		exec(t, conns[0], "alter sequence sortkey_internal.spread64_clock restart")
		wantValue(t, conns[0], "select sortkey.spread64_time(sortkey.next_spread64(1)) > now() - interval '1 minute'", true)
	})
}

// Layouts at the limits: many IDs per millisecond, few, and many bits of time.
func TestServerLayouts(t *testing.T) {
	const clients = 4
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		for _, c := range []struct {
			datacenter, worker, sequence int
			n                            int // IDs for each client
		}{
			{0, 0, 22, pgtest.Scaled(10_000, 20_000)},
			{0, 0, 17, pgtest.Scaled(5000, 10_000)}, // 46 bits of time
			{11, 10, 1, 100},
			{0, 21, 1, 100},
		} {
			layout := idtype.SnowflakeLayout{DatacenterBits: c.datacenter, WorkerBits: c.worker, SequenceBits: c.sequence}
			f := formatSnowflake(fmt.Sprintf("l%d_%d_%d", c.datacenter, c.worker, c.sequence), layout)
			up(t, db, migrations.Config{Schema: f.schema, Snowflake: layout})
			db.Exec(t, fmt.Sprintf("create table %s_ids (id %[1]s.snowflake primary key)", f.schema))
			conns := genConns(t, db, clients)
			genEach(t, clients, func(i int) error {
				var ids []byte
				var recent bool
				err := conns[i].QueryRow(t.Context(), fmt.Sprintf(`
					with generated as (insert into %s_ids select %s from generate_series(1, %d) returning id)
					select string_agg(int8send(id), ''), bool_and(abs(extract(epoch from %s(id) - now())) < 60) from generated`,
					f.schema, f.nextOf(f.maxNode), c.n, f.function("time"))).Scan(&ids, &recent)
				if err != nil {
					return err
				}
				if len(ids) != 8*c.n || !recent {
					return fmt.Errorf("expected %d IDs of the current time, got %d, %t", c.n, len(ids)/8, recent)
				}
				return new(genOrder).check(f, f.maxNode, ids)
			})
		}
	})
}

// Generators return errors before the first instant of a layout and after the last.
func TestServerLifetime(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		conn := db.Conn(t)
		// upFrom installs Snowflakes with an epoch that is about after from now, or more until the query fits.
		upFrom := func(schema string, after, more time.Duration, query string, fits func(error) bool) {
			t.Helper()
			for ; ; more *= 2 {
				up(t, db, migrations.Config{Schema: schema, Snowflake: idtype.SnowflakeLayout{Epoch: time.Now().Add(more).Add(after).Truncate(time.Millisecond)}})
				if _, err := conn.Exec(t.Context(), query); fits(err) {
					return
				}
				exec(t, conn, "drop schema "+schema+", "+schema+"_internal cascade")
			}
		}
		upFrom("later", 0, time.Hour, "select 1", func(error) bool { return true })
		fails(t, conn, "55000", "select later.next_snowflake(0)",
			"clock time ", " is before ", "the first time that IDs of later_internal.snowflake_clock can hold")

		// An epoch shortly ahead. The first window has no IDs, since zero isn't one.
		upFrom("soon", 0, 500*time.Millisecond, "select soon.next_snowflake(0)", func(err error) bool { return pgerror.State(err) == "55000" })
		for first := int64(0); first == 0; {
			_, err := conn.Exec(t.Context(), "select soon.next_snowflake(0)")
			if err != nil {
				wantSQLState(t, err, "55000", "before the epoch")
				continue
			}
			first = pgtest.Value[int64](t, conn, "select pg_sequence_last_value('soon_internal.snowflake_clock') >> 24")
			if first < 1 {
				t.Fatalf("expected no ID of the first window, got one of %d", first)
			}
		}
		wantValue(t, conn, "select soon.next_snowflake(0) > 0", true)

		// 41 bits of milliseconds that end shortly after the first IDs.
		upFrom("over", -(1<<41)*time.Millisecond, time.Second, "select over.next_snowflake(1) from generate_series(1, 100)", func(err error) bool { return err == nil })
		pgtest.Eventually(t, "the format ends", func() error {
			_, err := conn.Exec(t.Context(), "select over.next_snowflake(1) from generate_series(1, 10000)")
			if err == nil {
				return errors.New("calls still succeed")
			}
			wantSQLState(t, err, "54000", "at the end")
			return nil
		})
		for range 3 {
			fails(t, conn, "54000", "select over.next_snowflake(1)", "is past the last time that IDs of over_internal.snowflake_clock can hold")
		}
	})
}

// Calls above the rate for a whole second fail. No load reaches this reliably.
func TestServerAdvance(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		conn := db.Conn(t)
		// One ID per 3 seconds.
		exec(t, conn, "create sequence slow")
		const advance = "select sortkey_internal.advance('slow', '1970-01-01 00:00:00+00', 3000, 23, 0, 0)"
		got := map[string]int{}
		for range 5 {
			_, err := conn.Exec(t.Context(), advance)
			got[pgerror.State(err)]++
			if err != nil {
				wantSQLState(t, err, "53400", advance, "public.slow has 1 IDs per 3000 ms", "for 1000 ms", "use a format with more IDs per millisecond")
			}
		}
		if got[""] == 0 || got["53400"] == 0 {
			t.Errorf("expected a value and an error, got %v", got)
		}
	})
}
