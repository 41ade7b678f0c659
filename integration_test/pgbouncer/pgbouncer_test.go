package pgbouncer

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// backends is the number of PgBouncer's connections to the server.
const backends = 2

// A setup is a version of PgBouncer with its settings.
type setup struct {
	name     string
	suite    string // the Debian release with this version
	version  string
	settings string
	tracks   bool // prepares the statements of clients on each connection to the server
	brief    bool // test only the outcomes, which equal another setup's
}

var setups = []setup{
	{name: "1.18", suite: "bookworm", version: "1.18"},
	{name: "1.24", suite: "trixie", version: "1.24", settings: "max_prepared_statements = 100", tracks: true},
	{name: "1.24 without prepared statements", suite: "trixie", version: "1.24", settings: "max_prepared_statements = 0", brief: true},
}

// An outcome is the SQLSTATE with which statements fail if consecutive statements run on
// different connections to the server. It is "" if they succeed.
type outcome struct {
	alone string // without a transaction
	inTx  string // each in its own transaction
}

func (o outcome) String() string {
	return fmt.Sprintf("%q alone, %q in a transaction", o.alone, o.inTx)
}

const (
	missing   = "26000" // the SQLSTATE of a prepared statement that doesn't exist
	duplicate = "42P05" // the SQLSTATE of a second one with a name
)

// expected returns the outcome of a mode. Modes that aren't listed work.
func (s setup) expected(mode pgx.QueryExecMode) outcome {
	switch mode {
	case pgx.QueryExecModeCacheStatement:
		return outcome{alone: s.unlessTracked(missing), inTx: s.unlessTracked(missing)}
	case pgx.QueryExecModeDescribeExec:
		return outcome{alone: missing}
	}
	return outcome{}
}

// unlessTracked returns the SQLSTATE with which a statement fails that another connection has
// prepared.
func (s setup) unlessTracked(state string) string {
	if s.tracks {
		return ""
	}
	return state
}

func TestTransactionMode(t *testing.T) {
	for _, s := range setups {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			pgtest.OneContainer(t, func(t *testing.T, db *pgtest.DB) {
				db.Exec(t, tables)
				p := start(t, db, s)
				t.Run("turns", p.turns)
				t.Run("named", p.named)
				t.Run("same statement", p.sameStatement)
				t.Run("stray statement", p.strayStatement)
				t.Run("domains", p.domains)
				t.Run("migrations", p.migrations)
				t.Run("command", p.command)
				pgtest.EachMode(t, p.mode)
			})
		})
	}
}

// migrations calls Up several times at once, and then Down.
func (p *proxy) migrations(t *testing.T) {
	ctx, pool, c := t.Context(), p.SQL(t, pgtest.Mode(pgx.QueryExecModeExec)), migrations.Config{Schema: "keys"}
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() {
			if err := errors.Join(migrations.Up(ctx, pool, c), migrations.Check(ctx, pool, c)); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	pgtest.Must(t, migrations.Down(ctx, pool, c))
	pgtest.Fails(t, migrations.Check(ctx, pool, c), migrations.ErrNotInstalled)
}

// command runs the command. PgBouncer refuses its startup parameters, so each transaction of the command
// has their settings. The sessions of other clients keep their own.
func (p *proxy) command(t *testing.T) {
	sortkey := func(line string) (string, error) {
		c := exec.CommandContext(t.Context(), pgtest.Command(t), strings.Fields(line)...)
		c.Env = append(os.Environ(), "DATABASE_URL="+withMode(t, p.URL))
		out, err := c.CombinedOutput()
		return string(out), err
	}
	p.direct.Exec(t, "CREATE SCHEMA d; CREATE TABLE d.orders (id bigint PRIMARY KEY); ALTER DATABASE "+p.Name+" SET search_path = d, pg_catalog; CREATE FUNCTION d.pg_is_in_recovery() RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE ''trapped''; END'")
	defer func() {
		p.direct.Exec(t, "SET ROLE NONE; ALTER DATABASE "+p.Name+" RESET ALL; DROP SCHEMA d CASCADE")
		p.reconnect(t)
	}()
	p.reconnect(t)
	for _, line := range []string{
		"migrate up --schema keys", "migrate check --schema keys", "doctor --schema keys", "nodes reserve snowflake 5 --schema keys", "nodes list --schema keys", "partitions run --schema keys",
		"audit orders.id --type snowflake --schema keys", "migrate down --schema keys --yes",
	} {
		if out, err := sortkey(line); err != nil {
			t.Errorf("sortkey %s: %v\n%s", line, err, out)
		}
	}
	for range 2 * backends {
		if path := pgtest.Value[string](t, p.Conn(t, simple), "SELECT pg_catalog.current_setting('search_path')"); path != "d, pg_catalog" {
			t.Errorf("another client has the search_path %q", path)
		}
	}
	role := p.direct.NewRole(t, "other", "")
	p.direct.Exec(t, "ALTER DATABASE "+p.Name+" SET role = "+role)
	p.reconnect(t)
	if out, err := sortkey("doctor --schema keys"); err == nil || !strings.Contains(out, "acts as role "+role+", because of a setting that the connection pooler keeps") {
		t.Errorf("a role of the database: got %v\n%s", err, out)
	}
}

// withMode returns a URL with an exec mode that needs no prepared statements.
func withMode(t *testing.T, connString string) string {
	t.Helper()
	u, err := url.Parse(connString)
	pgtest.Must(t, err)
	q := u.Query()
	q.Set("default_query_exec_mode", "exec")
	q.Set("target_session_attrs", "primary")
	u.RawQuery = q.Encode()
	return u.String()
}

// reconnect ends PgBouncer's connections to the server, which have the settings of the time of their
// start.
func (p *proxy) reconnect(t *testing.T) {
	t.Helper()
	p.direct.Exec(t, "SET ROLE NONE; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = 'idle'")
	for range 10 * backends { // PgBouncer notices at the next statement
		if conn, err := pgx.Connect(t.Context(), p.URL); err == nil {
			_, _ = conn.Exec(t.Context(), "SELECT 1", pgx.QueryExecModeSimpleProtocol)
			_ = conn.Close(t.Context())
		}
	}
}

// A proxy is a PgBouncer in front of a test's database. Its DB connects through
// PgBouncer.
type proxy struct {
	pgtest.DB
	direct *pgtest.DB
	setup  setup
}

func start(t *testing.T, db *pgtest.DB, s setup) *proxy {
	t.Helper()
	bouncer := pgtest.Bouncer{Suite: s.suite, Version: s.version, Backends: backends, Settings: s.settings}
	p := &proxy{DB: bouncer.Start(t, db), direct: db, setup: s}
	// PgBouncer opens both connections to the server if clients use them at once, and keeps them
	// open.
	u := p.turner(t)
	u.turn(t.Context())
	u.exec(t.Context(), u.busy, "rollback")
	return p
}

// A turner keeps one of PgBouncer's two connections to the server busy, so that all
// other clients use the other connection. It can swap the two. As a client's tracer it
// swaps them before each statement, and between preparing and executing a statement,
// unless the client is in a transaction.
type turner struct {
	t           testing.TB
	busy, ready *pgx.Conn
	onQuery     func(sql string)      // runs before each query
	prepared    func(context.Context) // runs between preparing and executing a statement outside a transaction
}

func (p *proxy) turner(t testing.TB) *turner {
	t.Helper()
	u := &turner{t: t, busy: p.Conn(t, simple), ready: p.Conn(t, simple), onQuery: func(string) {}, prepared: func(context.Context) {}}
	u.exec(t.Context(), u.busy, "begin")
	t.Cleanup(func() { u.exec(context.Background(), u.busy, "rollback") })
	return u
}

var simple = pgtest.Mode(pgx.QueryExecModeSimpleProtocol)

// turn swaps the busy connection and the free one.
func (u *turner) turn(ctx context.Context) {
	u.exec(ctx, u.ready, "begin")
	u.exec(ctx, u.busy, "rollback")
	u.busy, u.ready = u.ready, u.busy
}

func (u *turner) exec(ctx context.Context, conn *pgx.Conn, sql string, args ...any) {
	if _, err := conn.Exec(ctx, sql, args...); err != nil {
		u.t.Errorf("%s between the statements of a client: %v", sql, err)
	}
}

func (u *turner) unlessInTx(ctx context.Context, conn *pgx.Conn) context.Context {
	if conn.PgConn().TxStatus() == 'I' {
		u.turn(ctx)
	}
	return ctx
}

// trace returns the option that makes the turner a client's tracer.
func (u *turner) trace() pgtest.Option {
	return pgtest.Config(func(c *pgx.ConnConfig) { c.Tracer = u })
}

func (u *turner) TraceQueryStart(ctx context.Context, c *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	u.onQuery(data.SQL)
	return u.unlessInTx(ctx, c)
}

func (u *turner) TracePrepareEnd(ctx context.Context, c *pgx.Conn, _ pgx.TracePrepareEndData) {
	u.unlessInTx(ctx, c)
	if c.PgConn().TxStatus() == 'I' {
		u.prepared(ctx)
	}
}

func (u *turner) TraceBatchStart(ctx context.Context, c *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return u.unlessInTx(ctx, c)
}

func (u *turner) TraceCopyFromStart(ctx context.Context, c *pgx.Conn, _ pgx.TraceCopyFromStartData) context.Context {
	return u.unlessInTx(ctx, c)
}

func (*turner) TracePrepareStart(ctx context.Context, _ *pgx.Conn, _ pgx.TracePrepareStartData) context.Context {
	return ctx
}

func (*turner) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData)       {}
func (*turner) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData)   {}
func (*turner) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)       {}
func (*turner) TraceCopyFromEnd(context.Context, *pgx.Conn, pgx.TraceCopyFromEndData) {}
