package pgbouncer

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/internal/pgerror"
	"github.com/sortkey/sortkey/pgxcodec"
)

const someID idtype.Snowflake = 132271570944274432

var someSno = idtype.Must(idtype.ParseSno("brpk4q72xwf2m63l"))

// turns checks an assumption of the other tests: consecutive statements of a client run
// on different backends. A turner guarantees this. Without a turner, PgBouncer's round
// robin does, as long as only one client is active.
func (p *proxy) turns(t *testing.T) {
	alternates(t, p.Conn(t, simple))
	alternates(t, p.Conn(t, simple, p.turner(t).trace()))
}

func alternates(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	var pids []int
	for range 6 {
		pids = append(pids, pgtest.Value[int](t, conn, "select pg_backend_pid()"))
	}
	a, b := pids[0], pids[1]
	if want := []int{a, b, a, b, a, b}; a == b || !slices.Equal(pids, want) {
		t.Errorf("expected two alternating backends, got %v", pids)
	}
}

// mode tests one query exec mode.
func (p *proxy) mode(t *testing.T, mode pgx.QueryExecMode) {
	want := p.setup.expected(mode)
	t.Run("outcome", func(t *testing.T) {
		// Part of the statement's text, so that no other test has prepared it on a backend.
		label := strings.ReplaceAll(mode.String(), " ", "_")
		pool := p.Pool(t, pgtest.Codec, pgtest.Mode(mode), p.turner(t).trace())
		got := outcome{
			alone: failure(t, alone(pool), "select $1::bigint as alone_"+label),
			inTx:  failure(t, inTx(pool), "select $1::bigint as in_tx_"+label),
		}
		if got != want {
			t.Errorf("expected %v, got %v", want, got)
		}
	})
	switch {
	case p.setup.brief:
	case want.alone == "":
		p.works(t, mode, alone, aloneSQL)
	case want.inTx == "":
		p.works(t, mode, inTx, inTxSQL)
	}
}

// works tests all operations in a mode, with statements run by how and howSQL.
func (p *proxy) works(t *testing.T, mode pgx.QueryExecMode, how func(client) runner, howSQL func(*sql.DB) query) {
	opts := []pgtest.Option{pgtest.Codec, pgtest.Mode(mode)}
	t.Run("turns", func(t *testing.T) {
		t.Run("pool", func(t *testing.T) { how(p.Pool(t, opts...)).everything(t, 0) })
		t.Run("database/sql", func(t *testing.T) { howSQL(p.SQL(t, opts...)).values(t, 0) })
	})
	t.Run("at once", func(t *testing.T) { p.atOnce(t, how, opts...) })
}

// failure runs a statement a few times and returns the SQLSTATE if it fails.
func failure(t *testing.T, run runner, sql string) string {
	t.Helper()
	for range 3 {
		var id idtype.Snowflake
		if err := run.query(t.Context(), sql, someID).Scan(&id); err != nil {
			return sqlState(t, err)
		}
		same(t, "ID", nil, id, someID)
	}
	return ""
}

func sqlState(t *testing.T, err error) string {
	t.Helper()
	state := pgerror.State(err)
	if err != nil && state == "" {
		t.Fatalf("expected an error of the server, got %v", err)
	}
	return state
}

// atOnce runs several goroutines on one pool, each on its own connection. There are more
// goroutines than backends.
func (p *proxy) atOnce(t *testing.T, how func(client) runner, opts ...pgtest.Option) {
	pool := p.Pool(t, opts...)
	var conns []*pgxpool.Conn
	for range workers {
		c, err := pool.Acquire(t.Context())
		pgtest.Must(t, err)
		t.Cleanup(c.Release)
		conns = append(conns, c)
	}
	var wg sync.WaitGroup
	pids := make([]int, workers) // of backends
	for n, c := range conns {
		wg.Go(func() {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				run := how(c)
				run.everything(t, n)
				if err := run.query(t.Context(), "select pg_backend_pid()").Scan(&pids[n]); err != nil {
					t.Error(err)
				}
			})
		})
	}
	wg.Wait()
	slices.Sort(pids)
	if used := slices.Compact(pids); len(used) > backends {
		t.Errorf("expected %d clients to share %d backends, got %d", workers, backends, len(used))
	}
}

// Statements that the client prepares, as sql.DB.Prepare does, have names in all modes.
func (p *proxy) named(t *testing.T) {
	pgtest.EachMode(t, func(t *testing.T, mode pgx.QueryExecMode) {
		conn := p.Conn(t, pgtest.Codec, pgtest.Mode(mode), p.turner(t).trace())
		name := "named " + mode.String()
		_, err := conn.Prepare(t.Context(), name, "select $1::bigint")
		pgtest.Must(t, err)
		if got, want := failure(t, alone(conn), name), p.setup.unlessTracked(missing); got != want {
			t.Errorf("expected SQLSTATE %q, got %q", want, got)
		}
	})
}

// In the default mode, two clients give the same statement the same name. Unless
// PgBouncer tracks prepared statements, the second client's name clashes with the first.
func (p *proxy) sameStatement(t *testing.T) {
	p.turner(t) // leaves one backend for both clients
	var id idtype.Snowflake
	for n, want := range []string{"", p.setup.unlessTracked(duplicate)} {
		conn := p.Conn(t, pgtest.Codec)
		err := conn.QueryRow(t.Context(), "select $1::bigint as same", someID).Scan(&id)
		if got := sqlState(t, err); got != want {
			t.Errorf("client %d: expected SQLSTATE %q, got %v", n+1, want, err)
		}
	}
}

// The mode describe_exec can do worse than fail: on another backend it executes the
// statement that was described there last, even another client's.
func (p *proxy) strayStatement(t *testing.T) {
	other := p.Conn(t, pgtest.Mode(pgx.QueryExecModeExec))
	turner := p.turner(t)
	turner.prepared = func(ctx context.Context) { turner.exec(ctx, other, "select $1::bigint + 1", 7) }
	conn := p.Conn(t, pgtest.Codec, pgtest.Mode(pgx.QueryExecModeDescribeExec), turner.trace())
	alone(conn).returns(t, someID+1, "select $1::bigint", someID) // of the other client's statement
	inTx(conn).returns(t, someID, "select $1::bigint", someID)
}

// AfterConnect finds domains through PgBouncer. A Loader queries them once for all
// connections of a pool.
func (p *proxy) domains(t *testing.T) {
	p.direct.Exec(t, `create schema sortkey;
create domain sortkey.snowflake as bigint check (value > 0);
create domain sortkey.sno as uuid;
create table owned (id sortkey.snowflake, owner sortkey.sno)`)
	for _, mode := range pgtest.Modes {
		if p.setup.expected(mode).alone != "" {
			continue
		}
		t.Run(mode.String(), func(t *testing.T) {
			var loader pgxcodec.Loader
			var queries atomic.Int32
			turner := p.turner(t)
			turner.onQuery = func(sql string) {
				if strings.Contains(sql, "pg_type") {
					queries.Add(1)
				}
			}
			pool := p.Pool(t, pgtest.AfterConnect(loader.AfterConnect), pgtest.Mode(mode), turner.trace())
			for range workers {
				c, err := pool.Acquire(t.Context())
				pgtest.Must(t, err)
				defer c.Release()
				checkDomains(t, c.Conn())
			}
			if n := queries.Load(); n != 1 {
				t.Errorf("expected one query for domains from %d connections, got %d", workers, n)
			}
			checkDomains(t, p.Conn(t, pgtest.Codec, pgtest.Mode(mode)))
		})
	}
}

// checkDomains sends IDs through domains as parameters, results and COPY rows. It also
// checks that the domains are registered: the values would round-trip without that.
func checkDomains(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	for _, name := range []string{"sortkey.snowflake", "sortkey._snowflake", "sortkey.sno", "sortkey._sno"} {
		if _, ok := conn.TypeMap().TypeForName(name); !ok {
			t.Errorf("%s is not registered on the connection", name)
		}
	}
	run := alone(conn)
	for domain, value := range map[string]any{
		"snowflake": someID, "snowflake[]": []idtype.Snowflake{someID, 1}, "sno": someSno, "sno[]": []idtype.Sno{someSno, {}},
	} {
		run.returns(t, value, "select $1::sortkey."+domain, value)
	}
	row := []any{someID, someSno}
	back, err := run.copied(t.Context(), "owned", []string{"id", "owner"}, [][]any{row})
	same(t, "copied", err, back, [][]any{row})
}
