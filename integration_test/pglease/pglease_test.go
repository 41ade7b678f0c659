package pglease

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/lib/pq"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/leasetest"
	"github.com/sortkey/sortkey/nodelease/pglease"
)

func TestMain(m *testing.M) {
	pgtest.MainParallel(m, 16, TestStore, TestInstall, TestFence, TestReserve, TestPrivileges, TestCreatePool)
}

var (
	must  = pgtest.Must
	wrong = pgtest.Fails
)

// installed has the functions of the migrations.
var installed = pgtest.NewTemplate(func(t *testing.T, db *pgtest.DB) {
	must(t, migrations.Up(t.Context(), db.SQL(t), migrations.Config{}))
})

// store returns a store in a database with the functions.
func store(t *testing.T, db *pgtest.DB) *pglease.Store {
	t.Helper()
	return pglease.New(db.SQL(t), pglease.Config{})
}

// up installs the functions on a server of the test's own, and returns a store.
func up(t *testing.T, db *pgtest.DB) *pglease.Store {
	t.Helper()
	must(t, migrations.Up(t.Context(), db.SQL(t), migrations.Config{}))
	return store(t, db)
}

// small returns a pool of the given size.
func small(size int) nodelease.Pool {
	return nodelease.Pool{Name: "small", Size: size, Layout: `for a "test", it's`}
}

// lasting is the TTL of claims that must not expire during a test.
const lasting = 10 * time.Minute

// ask returns a request with the current time.
func ask(holder string, ttl time.Duration) nodelease.Request {
	now := time.Now().UnixMilli()
	return nodelease.Request{Holder: holder, TTL: ttl, Now: now, Until: now + ttl.Milliseconds()*9/10}
}

// claim claims a number, and fails the test if it can't.
func claim(t *testing.T, s nodelease.Store, p nodelease.Pool, r nodelease.Request) nodelease.Claim {
	t.Helper()
	c, err := s.Claim(t.Context(), p, r)
	must(t, err)
	return c
}

// one returns the single value of a query.
func one[T any](t testing.TB, db interface {
	QueryRow(query string, args ...any) *sql.Row
}, query string, args ...any) (v T) {
	t.Helper()
	must(t, db.QueryRow(query, args...).Scan(&v))
	return v
}

// execute runs a statement and returns its error.
func execute(ctx context.Context, db *sql.DB, query string, args ...any) error {
	_, err := db.ExecContext(ctx, query, args...)
	return err
}

// begin runs a statement in a transaction, which it leaves open.
func begin(t *testing.T, db *pgtest.DB, query string, args ...any) pgx.Tx {
	t.Helper()
	tx, err := db.Conn(t).Begin(t.Context())
	must(t, err)
	_, err = tx.Exec(t.Context(), query, args...)
	must(t, err)
	return tx
}

// The store passes the tests of leasetest.
func TestStore(t *testing.T) {
	t.Parallel()
	installed.OneReused(t, func(t *testing.T, db *pgtest.DB) {
		leasetest.TestStore(t, leasetest.Harness{
			TTL:  pgtest.Scaled(500*time.Millisecond, 3*time.Second),
			Open: func(t *testing.T, _ bool) nodelease.Store { return open(t, db) },
		})
	})
}

// The store passes the tests of leasetest behind PgBouncer in transaction mode, where each
// statement may use another of a few connections.
func TestPgBouncer(t *testing.T) {
	t.Parallel()
	bouncer := pgtest.Bouncer{Suite: "trixie", Version: "1.24", Backends: 4, Settings: "max_client_conn = 1000\nmax_prepared_statements = 0"}
	installed.OneContainer(t, func(t *testing.T, db *pgtest.DB) {
		pooled := bouncer.Start(t, db)
		open := func(t *testing.T, _ bool) nodelease.Store {
			return open(t, &pooled, pgtest.Mode(pgx.QueryExecModeExec))
		}
		leasetest.TestStore(t, leasetest.Harness{Open: open})
	})
}

// open returns a store that is connected already. On a busy machine, connecting takes
// longer than a call with a short TTL may take.
func open(t *testing.T, db *pgtest.DB, opts ...pgtest.Option) *pglease.Store {
	t.Helper()
	pool := db.SQL(t, opts...)
	must(t, pool.PingContext(t.Context()))
	return pglease.New(pool, pglease.Config{})
}

// All calls return the same results in each of pgx's query modes, and with lib/pq,
// which sends all arguments as text.
func TestDrivers(t *testing.T) {
	t.Parallel()
	installed.Each(t, func(t *testing.T, db *pgtest.DB) {
		refuseUnwelcome(t, db)
		pgtest.EachMode(t, func(t *testing.T, mode pgx.QueryExecMode) {
			calls(t, pglease.New(db.SQL(t, pgtest.Mode(mode)), pglease.Config{}), fmt.Sprintf("mode-%d", mode))
		})
		connector, err := pq.NewConnector(db.URL)
		must(t, err)
		t.Run("pq", func(t *testing.T) {
			pool := sql.OpenDB(connector)
			defer pool.Close()
			calls(t, pglease.New(pool, pglease.Config{}), "pq")
		})
	})
}

// refuseUnwelcome makes the commit of each claim by the holder "unwelcome" fail.
func refuseUnwelcome(t *testing.T, db *pgtest.DB) {
	db.Exec(t, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'refused at the commit'; END$$;
		CREATE CONSTRAINT TRIGGER refuse AFTER UPDATE ON sortkey.node_lease DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
			WHEN (NEW.holder = 'unwelcome') EXECUTE FUNCTION refuse()`)
}

// calls makes all calls of a store and checks their results and errors.
func calls(t *testing.T, s nodelease.Store, name string) {
	ctx, p := t.Context(), small(5)
	p.Name, p.Reserved = name, []int{0, 3}
	r := ask(`host "a", it's \ %s $1 ä AAAA`, lasting)
	a := claim(t, s, p, r)
	if a.Number != 1 || a.Term != 1 || a.Holder != r.Holder || a.After != 0 || a.Until != r.Until || a.TTL != r.TTL || time.Since(a.Time).Abs() > time.Hour {
		t.Errorf("expected number 1 until %d, got %+v", r.Until, a)
	}
	if again := claim(t, s, p, r); again.Number != 1 || again.Term != 1 {
		t.Errorf("expected the same claim again, got %+v", again)
	}
	early := ask("b", time.Second)
	early.Now, early.Until = -5, -4 // before 1970
	_, err := s.Claim(ctx, p, early)
	var busy *nodelease.BusyError
	if !errors.As(err, &busy) || busy.Held != 1 || busy.Reserved != 2 || busy.Ahead != 2 || busy.RetryAfter != 6*time.Millisecond {
		t.Errorf("expected 1 held, 2 reserved and 2 ahead, got %v, %+v", err, busy)
	}
	// The driver receives the row before the commit, which may still fail.
	_, err = s.Claim(ctx, p, ask("unwelcome", lasting))
	wrong(t, err, nil, "refused at the commit")
	r = ask("", 2*lasting)
	b, err := s.Renew(ctx, p, a, r)
	must(t, err)
	if b.Number != 1 || b.Term != 1 || b.Holder != a.Holder || b.After != 0 || b.Until != r.Until || b.TTL != r.TTL || b.Time.Before(a.Time) {
		t.Errorf("expected the claim until %d, got %+v", r.Until, b)
	}
	other := b
	other.Holder = "someone else"
	_, err = s.Renew(ctx, p, other, r)
	wrong(t, err, nodelease.ErrSuperseded, "number 1", "in term 1: ", "held by", "it's")
	if strings.Contains(err.Error(), "AAAA") {
		t.Errorf("expected no unique part of the holder in the error, got %v", err)
	}
	must(t, s.Release(ctx, p, b, r.Now+1))
	_, err = s.Renew(ctx, p, b, r)
	wrong(t, err, nodelease.ErrSuperseded, "released in term 1")
	other.Number = 5
	_, err = s.Renew(ctx, p, other, r)
	wrong(t, err, nodelease.ErrSuperseded, "missing in the database")
	for _, change := range []func(*nodelease.Pool){
		func(p *nodelease.Pool) { p.Size++ },
		func(p *nodelease.Pool) { p.Layout += " else" },
	} {
		q := p
		change(&q)
		_, err := s.Claim(ctx, q, ask("c", time.Second))
		wrong(t, err, nodelease.ErrPoolMismatch, name, "5 numbers", `'for a "test", it''s'`, fmt.Sprint(q.Size))
	}
}
