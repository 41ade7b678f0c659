package migrations

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
)

// A genFormat is a format as these tests see it.
type genFormat struct {
	name string // as in the names of functions
	next string // what mints on the server
	base string // type of the column
	rate int    // IDs in a millisecond

	// parts reads 8 or 16 bytes, as int8send and uuid_send give them. It fails
	// if they are no ID of the layout, or have other node numbers than next.
	parts func([]byte) (genParts, error)
}

type genParts struct {
	time     time.Time
	sequence int
}

// order is the order in which a generator mints.
func (p genParts) order() int64 { return p.time.UnixMilli()<<16 | int64(p.sequence) }

func (f genFormat) width() int {
	if f.base == "uuid" {
		return 16
	}
	return 8
}

func (f genFormat) send() string {
	if f.base == "uuid" {
		return "uuid_send"
	}
	return "int8send"
}

// clock is the format's sequence.
func (f genFormat) clock() string { return "sortkey." + f.name + "_clock" }

func genInt(b []byte) int64 { return int64(binary.BigEndian.Uint64(b)) }

// genNode is an error if got isn't want.
func genNode(got, want [2]int) error {
	if got != want {
		return fmt.Errorf("expected node numbers %v, got %v", want, got)
	}
	return nil
}

// genSpread64 is the index of Spread64, which has the fewest IDs in a
// millisecond, in genFormats.
const genSpread64 = 3

// genFormats are all of them.
func genFormats() []genFormat {
	return []genFormat{
		{
			name: "snowflake", next: "sortkey.next_snowflake(30, 17)", base: "bigint", rate: 4096,
			parts: func(b []byte) (genParts, error) {
				p, err := idtype.DefaultSnowflakeLayout().Parts(idtype.Snowflake(genInt(b)))
				return genParts{p.Time, p.Sequence}, errors.Join(err, genNode([2]int{p.Datacenter, p.Worker}, [2]int{30, 17}))
			},
		},
		{
			name: "snowflake_si", next: "sortkey.next_snowflake_si(31)", base: "bigint", rate: 256,
			parts: func(b []byte) (genParts, error) {
				p, err := complete.SnowflakeSI.Parts(idtype.SnowflakeSI(genInt(b)))
				return genParts{p.Time, p.Index}, errors.Join(err, genNode([2]int{p.Machine}, [2]int{31}))
			},
		},
		{
			name: "uid60", next: "sortkey.next_uid60()", base: "bigint", rate: 512,
			parts: func(b []byte) (genParts, error) {
				id, err := idtype.UID60FromInt64(genInt(b))
				return genParts{id.Time(), id.Sequence()}, err
			},
		},
		{
			name: "spread64", next: "sortkey.next_spread64(63, 14)", base: "bigint", rate: 64,
			parts: func(b []byte) (genParts, error) {
				p, err := idtype.Spread64Layout{}.Parts(idtype.Spread64(genInt(b)))
				return genParts{p.Time, p.Sequence}, errors.Join(err, genNode([2]int{p.Generator, p.Cluster}, [2]int{63, 14}))
			},
		},
		{
			name: "sno", next: "sortkey.next_sno(200, 65535)", base: "uuid", rate: 65536 / 4,
			parts: func(b []byte) (genParts, error) {
				id, err := idtype.SnoFromUUID(uuid.UUID(b))
				p := id.Partition()
				if id.TickTock() {
					err = errors.Join(err, errors.New("expected no tick-tock bit"))
				}
				return genParts{id.Time(), int(id.Sequence())}, errors.Join(err,
					genNode([2]int{int(id.Meta()), int(p[0])<<8 | int(p[1])}, [2]int{200, 65535}))
			},
		},
	}
}

// genConns gives n sessions.
func genConns(t testing.TB, db *pgtest.DB, n int) []*pgx.Conn {
	t.Helper()
	conns := make([]*pgx.Conn, n)
	for i := range conns {
		conns[i] = db.Conn(t)
	}
	return conns
}

// genEach calls f for 0 to n-1 at the same time, and ends the test if one fails.
func genEach(t testing.TB, n int, f func(i int) error) {
	t.Helper()
	must(t, genAll(n, f))
}

func genAll(n int, f func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// genCheckOrder reads the IDs of a session, one after the other in the order in
// which they were minted: all of the layout, with the server's node numbers,
// and increasing.
func genCheckOrder(f genFormat, ids []byte) error {
	var last int64
	w := f.width()
	for i := 0; i < len(ids); i += w {
		p, err := f.parts(ids[i : i+w])
		if err != nil {
			return fmt.Errorf("%s %x: %w", f.name, ids[i:i+w], err)
		}
		if p.order() <= last {
			return fmt.Errorf("expected IDs of %s that increase within a session, got %x as number %d", f.name, ids[i:i+w], i/w+1)
		}
		last = p.order()
	}
	return nil
}

func TestServerDefaults(t *testing.T) {
	installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) { genDefaults(t, db, 10_000) })
}

// A rare collision needs more rows.
func TestServerDefaultsOfMany(t *testing.T) {
	pgtest.ThoroughOnly(t)
	t.Parallel()
	installed.One(t, func(t *testing.T, db *pgtest.DB) { genDefaults(t, db, 100_000) })
}

// genDefaults has 8 sessions insert so many rows each. All IDs have the server's
// node numbers, so that they can't be those of another generator.
func genDefaults(t *testing.T, db *pgtest.DB, rows int) {
	const clients, singles = 8, 500
	ctx := t.Context()
	formats := genFormats()
	for _, f := range formats {
		db.Exec(t, fmt.Sprintf("create unlogged table %[1]s (id sortkey.%[1]s not null default %[2]s, client int, n int)", f.name, f.next))
	}
	conns := genConns(t, db, clients*len(formats))

	insert := func(f genFormat, client int, conn *pgx.Conn) error {
		random := rand.New(rand.NewPCG(uint64(client), 1))
		for n, left := 0, singles; n < rows; {
			if left > 0 && random.IntN(2) == 0 {
				n, left = n+1, left-1
				if _, err := conn.Exec(ctx, "insert into "+f.name+" (client, n) values ($1, $2)", client, n); err != nil {
					return err
				}
				continue
			}
			size := min(1+random.IntN(400), rows-n)
			if left == 0 {
				size = min(5000, rows-n)
			}
			if _, err := conn.Exec(ctx, "insert into "+f.name+" (client, n) select $1, generate_series($2::int, $3)", client, n+1, n+size); err != nil {
				return err
			}
			n += size
		}
		return nil
	}
	// The slowest format beside the others, which come one after the other: so there are fewer sessions at once.
	genEach(t, 2, func(lane int) error {
		for i, f := range formats {
			if (f.name == "spread64") != (lane == 0) {
				continue
			}
			if err := genAll(clients, func(client int) error { return insert(f, client, conns[client*len(formats)+i]) }); err != nil {
				return err
			}
		}
		return nil
	})

	// At the end, because an index of what many insert at once takes most of the time. It finds whatever is there twice.
	genEach(t, len(formats), func(i int) error {
		_, err := conns[i].Exec(ctx, "alter table "+formats[i].name+" add primary key (id)")
		return err
	})
	genEach(t, len(conns), func(i int) error {
		f, client := formats[i%len(formats)], i/len(formats)
		var n int
		var ids []byte
		err := conns[i].QueryRow(ctx, fmt.Sprintf("select count(*), string_agg(%s(id), '' order by n) from %s where client = $1",
			f.send(), f.name), client).Scan(&n, &ids)
		if err != nil {
			return err
		}
		if n != rows || len(ids) != rows*f.width() {
			return fmt.Errorf("%s: expected %d rows, got %d", f.name, rows, n)
		}
		return genCheckOrder(f, ids)
	})
}

// With more calls than a format has IDs, it gives nearly all that it has, none
// of them twice and none more than 10 ms ahead of the clock.
func TestServerRateCap(t *testing.T) {
	const clients = 12
	duration := pgtest.Scaled(300*time.Millisecond, time.Second)
	installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		ctx := t.Context()
		conns := genConns(t, db, clients)
		for _, f := range genFormats() {
			if f.rate > 256 {
				continue // more than the sessions would ask for on a slow machine
			}
			exec(t, conns[0], fmt.Sprintf("create unlogged table %s (id bigint)", f.name))
			var most atomic.Int64 // microseconds ahead of the clock
			most.Store(-1 << 62)
			start := time.Now()
			genEach(t, clients, func(i int) error {
				for time.Since(start) < duration {
					// The inner SELECT mints a row's ID, the outer one looks at the clock after that.
					var ahead float64
					err := conns[i].QueryRow(ctx, fmt.Sprintf(`
						with minted as (insert into %[1]s select %[2]s from generate_series(1, 500) returning id, clock_timestamp() as now)
						select extract(epoch from max(sortkey.%[1]s_time(id) - now))::float8 from minted`, f.name, f.next)).Scan(&ahead)
					if err != nil {
						return err
					}
					for m := most.Load(); int64(ahead*1e6) > m && !most.CompareAndSwap(m, int64(ahead*1e6)); m = most.Load() {
					}
				}
				return nil
			})
			took := time.Since(start)
			var n, repeated int
			must(t, conns[0].QueryRow(ctx, fmt.Sprintf("select count(*), count(*) - count(distinct id) from %s", f.name)).Scan(&n, &repeated))
			t.Logf("%s: %d IDs in a millisecond, of %d; up to %.3f ms ahead of the clock",
				f.name, n/int(took.Milliseconds()), f.rate, float64(most.Load())/1000)
			if repeated > 0 {
				t.Errorf("%s: expected no ID twice, got %d of %d", f.name, repeated, n)
			}
			if n > f.rate*int(took.Milliseconds()+11) {
				t.Errorf("%s: expected at most %d IDs in a millisecond, got %d in %s", f.name, f.rate, n, took)
			}
			if most.Load() > 10_000 {
				t.Errorf("%s: expected IDs at most 10 ms ahead of the clock, got %d µs", f.name, most.Load())
			}
			if f.rate <= 64 && most.Load() < 1000 {
				t.Errorf("%s: expected IDs ahead of the clock, for the format's rate was to be reached; got %d µs", f.name, most.Load())
			}
		}
	})
}

// genAdvisoryLocks counts those of the database, not of tests beside this one.
const genAdvisoryLocks = `select count(*) from pg_locks where locktype = 'advisory'
	and database = (select oid from pg_database where datname = current_database())`

// A transaction that has minted and stays open doesn't stop others, nor does it
// keep a lock. What it minted isn't minted again, whether it is rolled back as a
// whole or to a savepoint.
func TestServerOpenTransaction(t *testing.T) {
	installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		conns := genConns(t, db, 2)
		open, other := conns[0], conns[1]
		exec(t, other, "set statement_timeout = '60s'")
		for _, f := range genFormats() {
			// Enough for several milliseconds, so that the clock is advanced.
			many := fmt.Sprintf("select array_agg(%s::text) from generate_series(1, %d)", f.next, min(4*f.rate, 5000))
			for _, level := range []string{"read committed", "repeatable read", "serializable"} {
				seen := map[string]bool{}
				add := func(conn *pgx.Conn) {
					t.Helper()
					for _, id := range pgtest.Value[[]string](t, conn, many) {
						if seen[id] {
							t.Fatalf("%s: expected no ID twice, got %s", f.name, id)
						}
						seen[id] = true
					}
				}
				exec(t, open, "begin isolation level "+level)
				add(open)
				if n := pgtest.Value[int](t, other, genAdvisoryLocks); n != 0 {
					t.Fatalf("%s: expected no lock to stay, got %d", f.name, n)
				}
				add(other)
				exec(t, open, "savepoint s")
				add(open)
				exec(t, open, "rollback to s")
				add(other)
				add(open)
				exec(t, open, "rollback")
				add(open)
			}
		}
	})
}

// Statements that are cancelled at any point leave nothing behind: no lock, and
// nothing by which an ID would be minted again.
func TestServerCancelled(t *testing.T) {
	const clients, duration, patience = 10, 2 * time.Second, 2 * time.Minute
	installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		f := genFormats()[genSpread64]
		db.Exec(t, "create table ids (id bigint primary key)")
		conns, killer := genConns(t, db, clients), db.Conn(t)
		mint := fmt.Sprintf("insert into ids select %s from generate_series(1, 40)", f.next)
		var cancelled, inserted atomic.Int64
		start := time.Now()
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := killer.Exec(t.Context(), `select pg_cancel_backend(pid) from pg_stat_activity
					where datname = current_database() and pid <> pg_backend_pid() and state = 'active' and random() < 0.2`); err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Millisecond)
			}
		})
		tooFew := func() bool { return inserted.Load() < 10 || cancelled.Load() < 100 }
		genEach(t, clients, func(i int) error {
			for time.Since(start) < duration || tooFew() && time.Since(start) < patience {
				// 0: cancelled by another session alone.
				_, err := conns[i].Exec(t.Context(), fmt.Sprintf("set statement_timeout = %d; set lock_timeout = %d", i%6, i%2), pgx.QueryExecModeSimpleProtocol)
				if err == nil {
					_, err = conns[i].Exec(t.Context(), mint)
				}
				switch {
				case err == nil:
					inserted.Add(1)
				case sqlState(err) == "57014", sqlState(err) == "55P03": // query_canceled, lock_not_available
					cancelled.Add(1)
				default:
					return err
				}
			}
			return nil
		})
		close(stop)
		wg.Wait()
		t.Logf("%d statements minted, %d were cancelled", inserted.Load(), cancelled.Load())
		if tooFew() {
			t.Errorf("expected statements to be cancelled and others to succeed, got %d and %d", cancelled.Load(), inserted.Load())
		}
		if n := pgtest.Value[int](t, killer, genAdvisoryLocks); n != 0 {
			t.Errorf("expected no lock to stay, got %d", n)
		}
		exec(t, killer, "set statement_timeout = '60s'")
		exec(t, killer, mint)
	})
}

// Node numbers out of range are refused, with what was given, and use up
// nothing: a role that may mint can't bring a sequence to its end.
func TestServerNodes(t *testing.T) {
	installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		conn := db.Conn(t)
		for _, f := range []struct {
			format, fields string
			max            []int
		}{
			{"snowflake", "datacenter, worker", []int{31, 31}},
			{"snowflake_si", "machine", []int{31}},
			{"spread64", "generator, cluster", []int{63, 15}},
			{"sno", "meta, partition", []int{255, 65535}},
		} {
			call := func(args []string) string { return "sortkey.next_" + f.format + "(" + strings.Join(args, ", ") + ")" }
			last := fmt.Sprintf("select pg_sequence_last_value('sortkey.%s_clock')", f.format)
			for field, max := range f.max {
				for _, v := range []int{0, 1, max} {
					args := make([]string, len(f.max))
					for i := range args {
						args[i] = "0"
					}
					args[field] = fmt.Sprint(v)
					want, got := "("+strings.Join(args, ",")+")", ""
					must(t, conn.QueryRow(t.Context(), fmt.Sprintf("select row(%s)::text from sortkey.%s_parts(%s)", f.fields, f.format, call(args))).Scan(&got))
					if got != want {
						t.Errorf("%s: expected %s of %s, got %s", f.format, want, f.fields, got)
					}
				}
				before := pgtest.Value[int64](t, conn, last)
				for _, v := range []string{"-1", fmt.Sprint(max + 1), "2147483647", "-2147483648", "null"} {
					args := make([]string, len(f.max))
					for i := range args {
						args[i] = "0"
					}
					args[field] = v
					fails(t, conn, "22003", "select "+call(args), "node number is out of range: ", fmt.Sprintf("%s (0 to %d)", strings.ToUpper(v), max))
				}
				if after := pgtest.Value[int64](t, conn, last); after != before {
					t.Errorf("%s: expected calls that fail to use up nothing, got from %d to %d", f.format, before, after)
				}
			}
		}
	})
}

// A read-only transaction can't mint.
func TestServerReadOnly(t *testing.T) {
	installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		conn := db.Conn(t)
		for _, f := range genFormats() {
			exec(t, conn, "begin read only")
			fails(t, conn, "25006", "select "+f.next, "nextval()")
			exec(t, conn, "rollback")
		}
	})
}

// With a CACHE that somebody gave the sequence, sessions hold values back. IDs
// are still unique, increase within a session, and are never older than the call.
func TestServerCache(t *testing.T) {
	const clients, duration = 6, 1500 * time.Millisecond
	installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		f := genFormats()[genSpread64]
		exec(t, db.Conn(t), "alter sequence "+f.clock()+" cache 20")
		db.Exec(t, "create table ids (id bigint primary key)")
		conns := genConns(t, db, clients)
		start := time.Now()
		genEach(t, clients, func(i int) error {
			n := 500
			if i%2 == 1 {
				n = 1 // and then not for some milliseconds
			}
			var all []byte
			for time.Since(start) < duration {
				var ids []byte
				var age float64
				err := conns[i].QueryRow(t.Context(), fmt.Sprintf(`
					with minted as materialized (select clock_timestamp() as before, %s as id from generate_series(1, %d)),
					inserted as (insert into ids select id from minted)
					select string_agg(int8send(id), ''), extract(epoch from max(date_trunc('milliseconds', before) - sortkey.spread64_time(id)))::float8
					from minted`, f.next, n)).Scan(&ids, &age)
				if err != nil {
					return err
				}
				if age > 0 {
					return fmt.Errorf("expected IDs no older than the call, got one older by %.3f ms", age*1000)
				}
				all = append(all, ids...)
				if n == 1 {
					time.Sleep(5 * time.Millisecond)
				}
			}
			return genCheckOrder(f, all)
		})
	})
}

// Calls that fail count on in the sequence. They don't bring it to its end, from
// which it couldn't come back.
func TestServerSequenceEnd(t *testing.T) {
	installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		conns := genConns(t, db, 4)
		// The most that the sequence can count to, less 50, in a unit an hour ahead.
		exec(t, conns[0], `select setval('sortkey.spread64_clock',
			(((1::bigint << 21) - 50) << 42) | (extract(epoch from clock_timestamp() + interval '1 hour') * 1000)::bigint)`)
		genEach(t, len(conns), func(i int) error {
			for range 200 {
				_, err := conns[i].Exec(t.Context(), "select sortkey.next_spread64(1, 1)")
				if sqlState(err) != "55000" { // object_not_in_prerequisite_state
					return fmt.Errorf("expected the error of a clock that is behind, got %w", err)
				}
			}
			return nil
		})
		if n := pgtest.Value[int64](t, conns[0], "select pg_sequence_last_value('sortkey.spread64_clock') >> 42"); n > 2*64+int64(len(conns)) || n < 64 {
			t.Errorf("expected a counter that is full and not far beyond, got %d", n)
		}
		fails(t, conns[0], "55000", "select sortkey.next_spread64(1, 1)",
			"clock time ", " is behind ", "the last ID of sortkey.spread64_clock", "The server's clock was set back.")

		// Nobody waits for a clock that is behind by more than a second.
		exec(t, conns[0], `select setval('sortkey.spread64_clock', (100::bigint << 42) | (extract(epoch from clock_timestamp() + interval '1 minute') * 1000)::bigint)`)
		fails(t, conns[0], "55000", "select sortkey.next_spread64(1, 1)", " is behind ")

		// Once the clock has caught up it goes on, with a later time.
		exec(t, conns[0], `select setval('sortkey.spread64_clock', (100::bigint << 42) | (extract(epoch from clock_timestamp() + interval '300 ms') * 1000)::bigint)`)
		if later := pgtest.Value[bool](t, conns[0], `with u as materialized (select pg_sequence_last_value('sortkey.spread64_clock') & ((1::bigint << 42) - 1) as unit)
			select extract(epoch from sortkey.spread64_time(sortkey.next_spread64(1, 1))) * 1000 > unit from u`); !later {
			t.Error("expected an ID after the last one")
		}

		// A sequence that somebody restarts tells no time, and then the clock does.
		exec(t, conns[0], "alter sequence sortkey.spread64_clock restart")
		if now := pgtest.Value[bool](t, conns[0], `select sortkey.spread64_time(sortkey.next_spread64(1, 1)) > now() - interval '1 minute'`); !now {
			t.Error("expected an ID of now")
		}
	})
}

// Layouts at the limits: of many IDs in a millisecond, of few, and of much time.
func TestServerLayouts(t *testing.T) {
	const clients = 4
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		for _, c := range []struct {
			datacenter, worker, sequence int
			n                            int // IDs for each client
		}{
			{0, 0, 22, 50_000},
			{0, 0, 17, 20_000}, // 46 bits of time
			{11, 10, 1, 100},
			{0, 21, 1, 100},
		} {
			layout := idtype.SnowflakeLayout{DatacenterBits: c.datacenter, WorkerBits: c.worker, SequenceBits: c.sequence}
			schema := fmt.Sprintf("l%d_%d_%d", c.datacenter, c.worker, c.sequence)
			up(t, db, migrations.Config{Schema: schema, Snowflake: layout})
			db.Exec(t, fmt.Sprintf("create table %s_ids (id %[1]s.snowflake primary key)", schema))
			conns := genConns(t, db, clients)
			datacenter, worker := 1<<c.datacenter-1, 1<<c.worker-1
			genEach(t, clients, func(i int) error {
				var ids []byte
				err := conns[i].QueryRow(t.Context(), fmt.Sprintf(`
					with minted as (insert into %s_ids select %[1]s.next_snowflake(%d, %d) from generate_series(1, %d) returning id)
					select string_agg(int8send(id), '') from minted`, schema, datacenter, worker, c.n)).Scan(&ids)
				if err != nil {
					return err
				}
				if len(ids) != 8*c.n {
					return fmt.Errorf("expected %d IDs, got %d", c.n, len(ids)/8)
				}
				return genCheckOrder(genFormat{name: schema, base: "bigint", parts: func(b []byte) (genParts, error) {
					p, err := layout.Parts(idtype.Snowflake(genInt(b)))
					if since := time.Since(p.Time); since > time.Minute || since < -time.Minute {
						err = errors.Join(err, fmt.Errorf("expected a time of now, got %s", p.Time))
					}
					return genParts{p.Time, p.Sequence}, errors.Join(err, genNode([2]int{p.Datacenter, p.Worker}, [2]int{datacenter, worker}))
				}}, ids)
			})
		}
	})
}

// Before the first instant of a layout there are no IDs, and after the last one
// neither.
func TestServerLifetime(t *testing.T) {
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		conn := db.Conn(t)
		upFrom := func(schema string, epoch time.Time) {
			t.Helper()
			up(t, db, migrations.Config{Schema: schema, Snowflake: idtype.SnowflakeLayout{Epoch: epoch.Truncate(time.Millisecond)}})
		}
		upFrom("later", time.Now().Add(time.Hour))
		fails(t, conn, "55000", "select later.next_snowflake(0, 0)",
			"clock time ", " is before ", "the first time that IDs of later.snowflake_clock can hold")

		// Soon enough to wait for. Zero, which would be the first ID, is none.
		for wait := 500 * time.Millisecond; ; wait *= 2 {
			upFrom("soon", time.Now().Add(wait))
			_, err := conn.Exec(t.Context(), "select soon.next_snowflake(0, 0)")
			if err != nil {
				wantSQLState(t, err, "55000", "before the epoch")
				break
			}
			exec(t, conn, "drop schema soon cascade")
		}
		for first := int64(0); first == 0; {
			_, err := conn.Exec(t.Context(), "select soon.next_snowflake(0, 0)")
			if err != nil {
				wantSQLState(t, err, "55000", "before the epoch")
				continue
			}
			first = pgtest.Value[int64](t, conn, "select pg_sequence_last_value('soon.snowflake_clock') & ((1::bigint << 41) - 1)")
			if first < 1 {
				t.Fatalf("expected no ID of the first millisecond, got one of %d", first)
			}
		}
		if id := pgtest.Value[int64](t, conn, "select soon.next_snowflake(0, 0)"); id <= 0 {
			t.Errorf("expected an ID that isn't zero, got %d", id)
		}

		// 41 bits of milliseconds, which end soon, and after the first IDs.
		for wait := time.Second; ; wait *= 2 {
			upFrom("over", time.Now().Add(wait).Add(-(1<<41)*time.Millisecond))
			_, err := conn.Exec(t.Context(), "select over.next_snowflake(1, 1) from generate_series(1, 100)")
			if err == nil {
				break
			}
			wantSQLState(t, err, "54000", "at the end")
			exec(t, conn, "drop schema over cascade")
		}
		pgtest.Eventually(t, "the format ends", func() error {
			_, err := conn.Exec(t.Context(), "select over.next_snowflake(1, 1) from generate_series(1, 10000)")
			if err == nil {
				return errors.New("it goes on")
			}
			wantSQLState(t, err, "54000", "at the end")
			return nil
		})
		for range 3 {
			fails(t, conn, "54000", "select over.next_snowflake(1, 1)", "is past the last time that IDs of over.snowflake_clock can hold")
		}
	})
}

// What no load can bring about for sure: a rate that is too high for all of a
// second, and a sequence that was set to a value that isn't called yet.
func TestServerAdvanceClock(t *testing.T) {
	installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		conn := db.Conn(t)
		// One ID in 2 seconds.
		exec(t, conn, "create sequence slow increment by "+fmt.Sprint(int64(1)<<40))
		const advance = "select sortkey.advance_clock('slow', 0, 2000, 40, 0, 0)"
		fails(t, conn, "55000", advance, "sequence public.slow was set by hand")
		exec(t, conn, "select nextval('slow')")
		got := map[string]int{}
		for range 3 {
			_, err := conn.Exec(t.Context(), advance)
			got[sqlState(err)]++
			if err != nil {
				wantSQLState(t, err, "53400", advance, "public.slow has 1 IDs per 2000 ms", "for 1000 ms", "use a format with more IDs per millisecond")
			}
		}
		if got[""] == 0 || got["53400"] == 0 {
			t.Errorf("expected a value and then an error, got %v", got)
		}
	})
}
