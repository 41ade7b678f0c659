package migrations

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/internal/pgerror"
	"github.com/sortkey/sortkey/migrations"
)

// genInstallClock installs sortkey in a schema, with the SQL expression now in place of
// clock_timestamp(), and with further replacements in the text of the installation.
func genInstallClock(t testing.TB, db *pgtest.DB, schema, now string, oldnew ...string) {
	t.Helper()
	config := complete
	config.Schema = schema
	sql, err := migrations.SQL(config)
	must(t, err)
	oldnew = append(oldnew, "clock_timestamp()", "test_clock.now()")
	for i := 0; i < len(oldnew); i += 2 {
		if !strings.Contains(sql, oldnew[i]) {
			t.Fatalf("the installation has no %s, so the test proves nothing", oldnew[i])
		}
		sql = strings.ReplaceAll(sql, oldnew[i], oldnew[i+1])
	}
	db.Exec(t, "create schema test_clock")
	genSetClock(t, db, now)
	db.Exec(t, sql)
	setNode(t, db, schema, genNode)
}

// genSlowSet returns a slow form of setval(clock, target), which no interrupt ends, as with setval itself.
// Hashing a megabyte takes some milliseconds. repeat() would handle interrupts.
func genSlowSet(bytes int) string {
	return fmt.Sprintf("setval(clock, target + 0 * length(md5(lpad('', %d + floor(random())::integer))))", bytes)
}

// genSetClock changes the clock of genInstallClock.
func genSetClock(t testing.TB, db *pgtest.DB, now string) {
	t.Helper()
	db.Exec(t, "create or replace function test_clock.now() returns timestamptz language sql volatile return "+now)
}

// Each reading of the clock is off by a random amount, so the readings of a single call
// contradict each other. There are no duplicates. The times of the IDs are as wrong as
// the clock, up to a window early, and less than three windows ahead of it.
//
// libfaketime steps the clock of a whole server, much less often than a call reads it.
// So the test uses genInstallClock.
func TestServerClockJitter(t *testing.T) {
	const clients, schema = 10, "jittery"
	duration := pgtest.Soak(t, 400*time.Millisecond, time.Second)
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		genInstallClock(t, db, schema, "clock_timestamp()")
		formats := genFormatsOf(schema)
		for _, f := range formats {
			db.Exec(t, fmt.Sprintf("create unlogged table %s (id %s primary key)", f.name, f.column))
		}
		conns := genConns(t, db, clients)
		// The small ones fall within a window. Most calls wait at the large one.
		for _, jitter := range []float64{4, 10, 30} {
			genSetClock(t, db, fmt.Sprintf("clock_timestamp() + (random() - 0.5) * interval '%f ms'", 2*jitter))
			orders := make([]genOrder, clients*len(formats))
			genFor(t, clients, duration, func(i, call int) error {
				n, size := (i+call)%len(formats), 1
				if (i+call)%3 == 0 {
					size = 50
				}
				f := formats[n]
				ids, early, late, err := genProbe(t, conns[i], f, i, size)
				if err != nil {
					return fmt.Errorf("%s: %w", f.name, err)
				}
				if early > jitter+genWindow || late > jitter+genAhead {
					return fmt.Errorf("%s: expected times up to %v ms before the call and up to %v ms after it, got %.3f and %.3f ms",
						f.name, jitter+genWindow, jitter+genAhead, early, late)
				}
				return orders[i*len(formats)+n].check(f, genNode, ids)
			})
			for _, f := range formats {
				t.Logf("%s: %d IDs after a jitter of %v ms", f.name, pgtest.Value[int](t, conns[0], "select count(*) from "+f.name), jitter)
			}
		}
	})
}

// Another session cancels statements and terminates sessions at random, and timeouts end
// statements, while 12 sessions generate IDs. There are no duplicates, no advisory lock
// remains, only these statements fail, and afterwards each format generates IDs.
func TestServerStorm(t *testing.T) {
	installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		setNode(t, db, migrations.DefaultSchema, genNode)
		storm(t, db, migrations.DefaultSchema)
	})
}

// The same with a fast clock, so that many calls change the window, and with a slow
// operation while the lock of the clock is held.
func TestServerStormOfWindows(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		const schema = "fast"
		start := pgtest.Value[string](t, db.Conn(t), "select clock_timestamp()::text")
		genInstallClock(t, db, schema, fmt.Sprintf("timestamptz '%[1]s' + (clock_timestamp() - '%[1]s') * 10", start),
			"setval(clock, target)", genSlowSet(30_000))
		storm(t, db, schema)
	})
}

// storm runs the clients and the session that cancels and terminates them.
func storm(t *testing.T, db *pgtest.DB, schema string) {
	const clients = 12
	duration := pgtest.Soak(t, time.Second, 2*time.Second)
	formats := genFormatsOf(schema)
	for _, f := range formats {
		db.Exec(t, fmt.Sprintf("create unlogged table %[2]s (id %[1]s.%[2]s primary key)", schema, f.name))
	}
	clientsOf := stormClients(t, db, formats, clients)
	for i, c := range clientsOf[clients/2:] {
		c.config.RuntimeParams["statement_timeout"], c.config.RuntimeParams["lock_timeout"] = fmt.Sprint(2*i), fmt.Sprint(i%2)
	}
	killer := db.Conn(t)
	kills := genStart(1, func(int, int) (string, error) {
		time.Sleep(10 * time.Millisecond)
		_, err := killer.Exec(t.Context(), `select case when random() < 0.5 then pg_cancel_backend(pid) else pg_terminate_backend(pid) end
			from (select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and state = 'active'
				order by random() limit 1) s`)
		return "", err
	})
	load := genStart(clients, func(i, n int) (string, error) {
		c := clientsOf[i]
		err := c.insert(t.Context(), n)
		switch state := pgerror.State(err); {
		case err == nil:
			return "inserted", nil
		case state == "57014", state == "55P03" && strings.Contains(err.Error(), "lock timeout"): // query_canceled, lock_not_available
			return "canceled", c.holdsNone(t.Context())
		case state == "57P01", state == "" && c.ended(): // admin_shutdown
			return "terminated", nil
		}
		return "failed", err
	})
	defer kills.stop.Store(true) // also if the test fails
	defer load.stop.Store(true)
	time.Sleep(duration)
	load.await(t, "at least 300 statements succeed and 100 are canceled, and 20 sessions are terminated", func() bool {
		return load.count("inserted") >= 300 && load.count("canceled") >= 100 && load.count("terminated") >= 20
	})
	must(t, errors.Join(kills.end(), load.end()))
	t.Log(load.counts)
	// The sessions are idle. A terminated session may still be releasing its locks.
	pgtest.Eventually(t, "no advisory lock remains", func() error {
		if n := pgtest.Value[int](t, killer, genAdvisoryLocks); n != 0 {
			return fmt.Errorf("%d remain", n)
		}
		return nil
	})
	exec(t, killer, "set statement_timeout = '60s'")
	for i, f := range formats {
		exec(t, killer, "select "+f.next()+" from generate_series(1, 20)")
		seen := map[string]bool{}
		for _, c := range clientsOf {
			for id := range slices.Chunk(c.returned[i], f.width) {
				if seen[string(id)] {
					t.Errorf("%s: expected no duplicates, got %x twice", f.name, id)
				}
				seen[string(id)] = true
			}
		}
		t.Logf("%s: %d IDs", f.name, len(seen))
		if len(seen) < 100 {
			t.Errorf("%s: expected at least 100 IDs, got %d", f.name, len(seen))
		}
	}
}

// A stormClient is a client whose session can be terminated at any time.
type stormClient struct {
	config   *pgx.ConnConfig
	formats  []*format
	number   int
	conn     *pgx.Conn
	orders   []genOrder // of this session, by format
	returned [][]byte   // all IDs that the server returned, by format
}

// stormClients returns clients that aren't connected yet.
func stormClients(t testing.TB, db *pgtest.DB, formats []*format, n int) []*stormClient {
	t.Helper()
	clients := make([]*stormClient, n)
	for i := range clients {
		config, err := pgx.ParseConfig(db.URL)
		must(t, err)
		c := &stormClient{config: config, formats: formats, number: i, returned: make([][]byte, len(formats))}
		t.Cleanup(func() {
			if c.conn != nil {
				c.conn.Close(context.Background())
			}
		})
		clients[i] = c
	}
	return clients
}

// format returns the index of the format of statement n.
func (c *stormClient) format(n int) int { return (c.number + n) % len(c.formats) }

// insert generates IDs and stores most of them. It connects first if the session has
// ended.
func (c *stormClient) insert(ctx context.Context, n int) (err error) {
	if c.ended() {
		if c.conn, err = pgx.ConnectConfig(ctx, c.config); err != nil {
			c.conn = nil
			return err
		}
		c.orders = make([]genOrder, len(c.formats))
	}
	i := c.format(n)
	f := c.formats[i]
	call := f.form(c.number)
	var sql string
	switch n % 4 {
	case 0, 1:
		sql = fmt.Sprintf("insert into %s values (%s) returning %s(id)", f.name, call, f.send)
	case 2:
		sql = fmt.Sprintf("insert into %s select %s from generate_series(1, 100) returning %s(id)", f.name, call, f.send)
	case 3:
		// The rows before the error are IDs that a client can use, too.
		sql = fmt.Sprintf("select %s(%s) from generate_series(1, 50)", f.send, call)
	}
	rows, err := c.conn.Query(ctx, sql)
	if err != nil {
		return err
	}
	defer rows.Close()
	var ids []byte
	for rows.Next() {
		ids = append(ids, rows.RawValues()[0]...)
	}
	c.returned[i] = append(c.returned[i], ids...)
	if err := c.orders[i].check(f, genNode, ids); err != nil {
		return fmt.Errorf("session %d: %w", c.number, err)
	}
	return rows.Err()
}

// holdsNone returns an error if the session holds an advisory lock.
func (c *stormClient) holdsNone(ctx context.Context) error {
	for !c.ended() {
		var n int
		err := c.conn.QueryRow(ctx, "select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()").Scan(&n)
		if err == nil && n > 0 {
			return fmt.Errorf("session %d: expected no advisory lock after a canceled statement, got %d", c.number, n)
		}
		if err == nil {
			return nil
		}
	}
	return nil
}

// ended reports whether the session has ended or never began.
func (c *stormClient) ended() bool { return c.conn == nil || c.conn.IsClosed() }

// genStop stops a session that generates Snowflakes of schema slow, while it holds the
// lock of the clock.
func genStop(t testing.TB, db *pgtest.DB, pid uint32, signal func(string)) {
	t.Helper()
	pgtest.Eventually(t, "the session is stopped while it holds the lock", func() error {
		signal("STOP")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // it can have stopped in the middle of anything
		defer cancel()
		conn, err := pgx.Connect(ctx, db.URL)
		if err == nil {
			defer conn.Close(context.Background())
			var held bool
			err = conn.QueryRow(ctx, "select exists (select from pg_locks where locktype = 'advisory' and pid = $1)", pid).Scan(&held)
			if err == nil && held {
				// Rarely, it also holds an internal lock of the server, which blocks other sessions.
				_, err = conn.Exec(ctx, "select nextval('slow_internal.snowflake_clock'), pg_logical_emit_message(true, 'test', 'test')")
				if err == nil {
					return nil
				}
			}
		}
		signal("CONT")
		return errors.Join(errors.New("it holds no lock"), err)
	})
}

// A session is stopped for a second while it changes the window of the clock, as by a
// debugger, and the clock steps back meanwhile. Calls of other sessions fail after a second
// and name the session. They succeed again once it continues or has ended. No ID repeats,
// neither then nor when the session and the clock continue.
func TestServerStopped(t *testing.T) {
	const schema, clients = "slow", 3
	t.Parallel()
	pgtest.OneContainer(t, func(t *testing.T, db *pgtest.DB) {
		// The clock passes many windows per call. The session holds the lock for most of the time.
		start := pgtest.Value[string](t, db.Conn(t), "select clock_timestamp()::text")
		fast := func(offset string) string {
			return fmt.Sprintf("timestamptz '%[1]s' + (clock_timestamp() - '%[1]s') * 1000 + interval '%[2]s'", start, offset)
		}
		genInstallClock(t, db, schema, fast("0"), "setval(clock, target)", genSlowSet(1_000_000))
		db.Exec(t, "create table ids (id bigint primary key)")
		insert := "insert into ids values (" + genFormatsOf(schema)[0].next() + ")"
		stopped, others := db.Conn(t), genConns(t, db, clients)
		pid := stopped.PgConn().PID()
		signal := func(name string) {
			t.Helper()
			genRun(t, db.Container(), fmt.Sprintf("kill -%s %d", name, pid))
		}
		defer genRun(t, db.Container(), fmt.Sprintf("kill -CONT %d || true", pid)) // a stopped session would block the end of the test
		held := fmt.Sprintf("session %d has held the lock of %s_internal.snowflake_clock", pid, schema)
		run := func(conns ...*pgx.Conn) *genLoad {
			return genStart(len(conns), func(i, _ int) (string, error) {
				_, err := conns[i].Exec(t.Context(), insert)
				switch {
				case err == nil:
					return "created", nil
				case pgerror.State(err) == "55P03" && strings.Contains(err.Error(), held):
					return "locked", nil
				case pgerror.State(err) == "55000" && strings.Contains(err.Error(), " is behind "):
					return "behind", nil
				}
				return "failed", err
			})
		}
		load, locked := run(stopped), 0
		offsets := []string{"-1 second", "-1 hour", "-20 ms"}
		for round, offset := range offsets {
			genStop(t, db, pid, signal)
			genSetClock(t, db, fast(offset))
			blocked := run(others...)
			time.Sleep(time.Second)
			must(t, blocked.end())
			if locked += blocked.count("locked"); blocked.count("locked")+blocked.count("behind") == 0 {
				t.Errorf("expected calls that fail while the session is stopped and the clock is %s off", offset)
			}
			t.Logf("the clock is %s off: %v", offset, blocked.counts)
			last := round == len(offsets)-1
			if last {
				exec(t, others[0], "select pg_terminate_backend($1)", pid)
			}
			signal("CONT")
			genSetClock(t, db, fast(fmt.Sprintf("%d hours", round+1)))
			if last {
				load.wg.Wait()
				wantSQLState(t, load.end(), "57P01", "the terminated session") // admin_shutdown
			} else {
				before := load.count("created")
				load.await(t, "the session continues", func() bool { return load.count("created") >= before+10 })
			}
			genEach(t, clients, func(i int) error {
				_, err := others[i].Exec(t.Context(), insert)
				return err
			})
		}
		if locked == 0 {
			t.Error("expected calls that fail because the lock is held")
		}
	})
}

// The lock of a clock is held, as by a stopped session. Calls that need a new window
// fail after a second and name the session that holds the lock. Calls succeed again
// once the session has ended or released the lock.
func TestServerLockHeld(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		setNode(t, db, migrations.DefaultSchema, genNode)
		formats := genFormats()
		conns, admin := genConns(t, db, 2*len(formats)), db.Conn(t)
		// The first time, the sequences have no window yet.
		for i := range 2 {
			holder := db.Conn(t)
			for _, f := range formats {
				exec(t, holder, "select pg_advisory_lock(1936683115, $1::regclass::oid::integer)", f.clock())
				if i > 0 {
					exec(t, holder, "select "+f.next()) // the holder itself can generate IDs
				}
			}
			time.Sleep(20 * time.Millisecond) // the windows are over
			counter := func(f *format) int64 {
				return pgtest.Value[int64](t, admin, "select coalesce(pg_sequence_last_value($1::regclass), 0)", f.clock())
			}
			before := make([]int64, len(formats))
			for i, f := range formats {
				before[i] = counter(f)
			}
			errs, took := make([]error, len(conns)), make([]time.Duration, len(conns))
			genEach(t, len(conns), func(i int) error {
				if _, err := conns[i].Exec(t.Context(), "set statement_timeout = '60s'"); err != nil {
					return err
				}
				start := time.Now()
				_, errs[i] = conns[i].Exec(t.Context(), "select "+formats[i/2].form(i))
				took[i] = time.Since(start)
				return nil
			})
			for i, err := range errs {
				f := formats[i/2]
				wantSQLState(t, err, "55P03", f.name, fmt.Sprintf("session %d has held the lock of %s for more than a second", holder.PgConn().PID(), f.clock()),
					"pg_terminate_backend")
				if took[i] < time.Second || took[i] > genClockPatience {
					t.Errorf("%s: expected an error after a second, got one after %s", f.name, took[i])
				}
			}
			t.Logf("calls failed after %s to %s", slices.Min(took), slices.Max(took))
			for i, f := range formats {
				if n := counter(f) - before[i]; before[i] > 0 && n > 10 { // two calls, on a clock that has begun
					t.Errorf("%s: expected calls to take few values of the sequence, got %d", f.name, n)
				}
			}
			if i == 0 {
				exec(t, holder, "select pg_advisory_unlock_all()")
			} else {
				exec(t, admin, "select pg_terminate_backend($1, 60000)", holder.PgConn().PID()) // waits for the end of the session
			}
			for _, f := range formats {
				exec(t, admin, "select "+f.next())
			}
			genEach(t, len(conns), func(i int) error {
				_, err := conns[i].Exec(t.Context(), "select "+formats[i/2].form(i)+" from generate_series(1, 200)")
				return err
			})
		}
	})
}

// A role with USAGE on the sequence of a generator, as every role has it, takes values
// as fast as it can. It causes no duplicates and can't set the sequence. Once it
// stops, calls succeed at once.
func TestServerValuesTaken(t *testing.T) {
	const takers, clients = 4, 4
	duration := pgtest.Soak(t, 500*time.Millisecond, time.Second)
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		ctx := t.Context()
		name, _ := newRole(t, db, "taker")
		f := genFormats()[genSpread64] // the fewest values per window
		oid := pgtest.Value[int64](t, db.Conn(t), "select '"+f.clock()+"'::regclass::oid::bigint")
		db.Exec(t, "create table ids (id bigint primary key)")
		conns, takings := genConns(t, db, clients), make([]*pgx.Conn, takers)
		for i := range takings {
			takings[i] = db.Conn(t, pgtest.Login(name))
			fails(t, takings[i], "42501", fmt.Sprintf("select setval(%d::regclass, 1)", oid), "permission denied")
		}
		taken := genStart(takers, func(i, _ int) (string, error) {
			_, err := takings[i].Exec(ctx, fmt.Sprintf("select nextval(%d::regclass) from generate_series(1, 1000)", oid))
			return "thousand values", err
		})
		genFor(t, clients, duration, func(i, _ int) error {
			_, err := conns[i].Exec(ctx, "insert into ids values ("+f.nextNode()+")")
			if pgerror.State(err) == "53400" { // configuration_limit_exceeded
				return nil
			}
			return err
		})
		must(t, taken.end())
		t.Logf("%s IDs beside %v", columnOf(t, db.SQL(t), "select count(*) from ids"), taken.counts)
		exec(t, conns[0], "insert into ids select "+f.nextNode()+" from generate_series(1, 100)")
		if ahead := pgtest.Value[float64](t, conns[0], "select extract(epoch from "+f.function("time")+"("+f.nextNode()+") - clock_timestamp())::float8 * 1000"); ahead >= genAhead {
			t.Errorf("expected IDs less than %d ms ahead of the clock, got one %.3f ms ahead", genAhead, ahead)
		}
	})
}

// If somebody sets the sequence back by more than a window, no ID repeats. The next
// call takes its window from the clock.
func TestServerSetBack(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		conn := db.Conn(t)
		for _, f := range genFormats() {
			exec(t, conn, fmt.Sprintf("create table %s (id %s primary key)", f.name, f.column))
			insert := "insert into " + f.name + " select " + f.nextNode() + " from generate_series(1, 200)"
			var old []int64
			for range pgtest.Scaled(6, 20) {
				exec(t, conn, insert)
				old = append(old, pgtest.Value[int64](t, conn, "select pg_sequence_last_value('"+f.clock()+"')"))
			}
			for _, value := range append(old, 1) {
				exec(t, conn, fmt.Sprintf("select pg_sleep(%f)", (genWindow+genAhead)/1000.))
				exec(t, conn, fmt.Sprintf("select setval('%s', %d)", f.clock(), value))
				exec(t, conn, insert)
			}
		}
	})
}
