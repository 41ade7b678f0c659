package multiwriter

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
	"github.com/sortkey/sortkey/nodelease"
)

// tables lists the tables that both servers replicate.
var tables = []string{"orders", "events", "payments", "notes"}

// An Order is a row of orders, written by GORM.
type Order struct {
	ID      idtype.Snowflake
	Server  string
	Changes int
}

// A site is a server with its writers.
type site struct {
	name string
	db   *pgtest.DB
	pool *pgxpool.Pool
	gorm *gorm.DB

	subscription string // to the other site's changes

	orders idtype.Generator[idtype.Snowflake]
	events idtype.Generator[idtype.Sno]

	mu    sync.Mutex
	wrote map[string]tally // by table
}

// A tally counts the rows that a site wrote to a table, and their changes.
type tally struct{ Rows, Changes int64 }

// ddl creates the tables. It is the same at both servers. The column server has the
// name of the server that inserted the row.
const (
	ddl = `
		CREATE TABLE orders (id sortkey.snowflake PRIMARY KEY, ` + columns + `);
		CREATE TABLE events (id sortkey.sno PRIMARY KEY, ` + columns + `);
		CREATE TABLE payments (id sortkey.snowflake PRIMARY KEY DEFAULT sortkey.next_snowflake(), ` + columns + `);
		CREATE TABLE notes (id sortkey.sno PRIMARY KEY DEFAULT sortkey.next_sno_meta(1), ` + columns + `);
		CREATE PUBLICATION rows FOR TABLE orders, events, payments, notes`
	columns = "server text NOT NULL DEFAULT current_setting('test.server'), changes bigint NOT NULL DEFAULT 0"
)

// newSite runs the migrations, sets the node number of the server, reserves the numbers
// of both servers, since programs can claim at either, and creates the tables.
func newSite(t *testing.T, name string, db *pgtest.DB) *site {
	t.Helper()
	must(t, migrations.Up(t.Context(), db.SQL(t), migrations.Config{}))
	db.Exec(t, fmt.Sprintf("ALTER DATABASE %[1]s SET sortkey.node = %[2]d; ALTER DATABASE %[1]s SET test.server = %[3]s", db.Name, nodes[name], name))
	for other, node := range nodes {
		db.Exec(t, fmt.Sprintf("SELECT sortkey.reserve_node('snowflake', %[1]d, 'defaults at %[2]s'), sortkey.reserve_node('sno', %[1]d, 'defaults at %[2]s')", node, other))
	}
	db.Exec(t, ddl)
	return &site{
		name:  name,
		db:    db,
		pool:  db.Pool(t, pgtest.Codec),
		wrote: make(map[string]tally),
	}
}

// notice are parameters of a connection with which the kernels of both ends notice a cut after
// three seconds, however busy the servers are.
const notice = "connect_timeout=5&keepalives_idle=1&keepalives_interval=1&keepalives_count=2&tcp_user_timeout=3000&options=" +
	"-ctcp_keepalives_idle%3D1%20-ctcp_keepalives_interval%3D1%20-ctcp_keepalives_count%3D2%20-ctcp_user_timeout%3D3000"

// follow subscribes the site to the changes made at another one, but not to the
// changes that the other one receives by replication.
func (s *site) follow(t *testing.T, other *site, link *pgtest.Link) {
	t.Helper()
	s.subscription = "from_" + other.name
	s.db.Exec(t, fmt.Sprintf("CREATE SUBSCRIPTION %s CONNECTION '%s&%s' PUBLICATION rows WITH (origin = none, copy_data = false)",
		s.subscription, link.URL(t, other.db), notice))
}

// replicate enables or disables the subscription.
func (s *site) replicate(t *testing.T, action string) {
	t.Helper()
	s.db.Exec(t, "ALTER SUBSCRIPTION "+s.subscription+" "+action)
}

// workers returns the number of processes that apply changes of the other server.
func (s *site) workers(t *testing.T) (n int) {
	t.Helper()
	must(t, s.pool.QueryRow(t.Context(), "SELECT count(pid) FROM pg_stat_subscription").Scan(&n))
	return n
}

// claim gives the writers in Go generators with numbers that they claim in a store.
func (s *site) claim(t *testing.T, store nodelease.Store) {
	t.Helper()
	orders, err := nodelease.NewGenerator(t.Context(), store, nodelease.ForSnowflake(idtype.SnowflakeLayout{}), nodelease.Options{},
		func(l idtype.Lease) (*idtype.SnowflakeGenerator, error) {
			return idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Options: idtype.Options{Lease: l}})
		})
	must(t, err)
	t.Cleanup(func() { orders.Close() })
	events, err := nodelease.NewGenerator(t.Context(), store, nodelease.ForSno(), nodelease.Options{},
		func(l idtype.Lease) (*idtype.SnoGenerator, error) {
			return idtype.NewSnoGenerator(idtype.SnoConfig{Options: idtype.Options{Lease: l}})
		})
	must(t, err)
	t.Cleanup(func() { events.Close() })
	s.useGenerators(t, orders, events)
}

// useGenerators sets the generators of the writers in Go.
func (s *site) useGenerators(t *testing.T, orders idtype.Generator[idtype.Snowflake], events idtype.Generator[idtype.Sno]) {
	t.Helper()
	s.orders, s.events = orders, events
	s.gorm = s.db.GORM(t, &gorm.Config{Logger: logger.Discard}, pgtest.Codec) // a plugin is registered once
	must(t, s.gorm.Use(gormplugin.New(gormplugin.For(orders))))
}

// rounds is the number of rounds per writer in a call of write.
const rounds = 15

// write starts all writers of the sites at the same time, and returns a function
// that waits for them.
func write(t *testing.T, sites ...*site) (wait func()) {
	t.Helper()
	var group sync.WaitGroup
	errs := make(chan error, 3*len(sites))
	for _, s := range sites {
		for _, round := range []func(context.Context) error{s.createByGORM, s.copyByPgx, s.insertBySQL} {
			group.Go(func() {
				for range rounds {
					if err := round(t.Context()); err != nil {
						errs <- fmt.Errorf("at %s: %w", s.name, err)
						return
					}
				}
			})
		}
	}
	return func() {
		t.Helper()
		group.Wait()
		close(errs)
		for err := range errs {
			t.Error(err)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
}

func (s *site) createByGORM(ctx context.Context) error {
	made := make([]Order, 3)
	for i := range made {
		made[i].Server = s.name
	}
	g := s.gorm.WithContext(ctx)
	if err := g.Create(&made).Error; err != nil {
		return err
	}
	if err := g.Model(&made[0]).Update("changes", 1).Error; err != nil {
		return err
	}
	if err := g.Delete(&made[1]).Error; err != nil {
		return err
	}
	s.add("orders", 2, 1)
	return nil
}

func (s *site) copyByPgx(ctx context.Context) error {
	ids := make([]idtype.Sno, 20)
	if _, err := s.events.Fill(ctx, ids); err != nil {
		return err
	}
	if _, err := s.pool.CopyFrom(ctx, pgx.Identifier{"events"}, []string{"id"},
		pgx.CopyFromSlice(len(ids), func(i int) ([]any, error) { return []any{ids[i]}, nil })); err != nil {
		return err
	}
	if err := s.changeAndDelete(ctx, "events", ids[0], ids[1]); err != nil {
		return err
	}
	s.add("events", 19, 1)
	return nil
}

func (s *site) insertBySQL(ctx context.Context) error {
	payments, err := insert[idtype.Snowflake](ctx, s.pool, "payments")
	if err != nil {
		return err
	}
	notes, err := insert[uuid.UUID](ctx, s.pool, "notes")
	if err != nil {
		return err
	}
	err = errors.Join(s.changeAndDelete(ctx, "payments", payments[0], payments[1]), s.changeAndDelete(ctx, "notes", notes[0], notes[1]))
	if err != nil {
		return err
	}
	s.add("payments", 4, 1)
	s.add("notes", 4, 1)
	return nil
}

// insert inserts five rows whose keys come from the default of the table.
func insert[T any](ctx context.Context, pool *pgxpool.Pool, table string) ([]T, error) {
	rows, err := pool.Query(ctx, "INSERT INTO "+table+" (changes) SELECT 0 FROM generate_series(1, 5) RETURNING id")
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[T])
}

// changeAndDelete updates one row of this site and deletes another.
func (s *site) changeAndDelete(ctx context.Context, table string, change, remove any) error {
	_, err := s.pool.Exec(ctx, "UPDATE "+table+" SET changes = changes + 1 WHERE id = $1", change)
	if err != nil {
		return err
	}
	_, err = s.pool.Exec(ctx, "DELETE FROM "+table+" WHERE id = $1", remove)
	return err
}

func (s *site) add(table string, rows, changes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrote[table] = tally{s.wrote[table].Rows + rows, s.wrote[table].Changes + changes}
}

// has returns the tally of the rows in a table that the site named writer wrote.
func (s *site) has(t *testing.T, table, writer string) (n tally) {
	t.Helper()
	must(t, s.pool.QueryRow(t.Context(), "SELECT count(*), coalesce(sum(changes), 0)::bigint FROM "+table+" WHERE server = $1", writer).Scan(&n.Rows, &n.Changes))
	return n
}

// digest returns the row count of a table and a hash of its rows.
func (s *site) digest(ctx context.Context, table string) (hash string, err error) {
	err = s.pool.QueryRow(ctx, "SELECT count(*) || ' rows, ' || coalesce(md5(string_agg(r::text, E'\n' ORDER BY r.id)), '') FROM "+table+" r").Scan(&hash)
	return hash, err
}

// A state describes replication in both directions, as seen by one server.
type state struct {
	senders  int   // connections that stream to the other server
	enabled  bool  // whether the subscription is enabled
	ready    bool  // whether all tables of the subscription are ready
	errors   int64 // errors that ended the apply worker; each retry adds one
	conflict int64 // rows that couldn't be applied; always 0 before Postgres 18
}

func (s *site) state(t *testing.T) (v state) {
	t.Helper()
	must(t, s.pool.QueryRow(t.Context(), `
		SELECT (SELECT count(*) FROM pg_stat_replication),
			(SELECT bool_and(subenabled) FROM pg_subscription),
			(SELECT count(*) = $1 AND bool_and(srsubstate = 'r') FROM pg_subscription_rel),
			(SELECT sum(apply_error_count)::bigint FROM pg_stat_subscription_stats),
			-- Through JSON, because versions before 18 lack these columns.
			(SELECT coalesce(sum(c.value::bigint), 0)::bigint FROM pg_stat_subscription_stats s, jsonb_each_text(to_jsonb(s)) c WHERE c.key LIKE 'confl\_%')`,
		len(tables)).Scan(&v.senders, &v.enabled, &v.ready, &v.errors, &v.conflict))
	return v
}

// end returns the end of the server's write-ahead log.
func (s *site) end(t *testing.T) (lsn string) {
	t.Helper()
	must(t, s.pool.QueryRow(t.Context(), "SELECT pg_current_wal_lsn()::text").Scan(&lsn))
	return lsn
}

// applied returns an error unless the other server has applied all changes up to lsn.
func (s *site) applied(ctx context.Context, lsn string) error {
	var upTo string
	var active, all bool
	err := s.pool.QueryRow(ctx, "SELECT confirmed_flush_lsn::text, active, active AND confirmed_flush_lsn >= $1::text::pg_lsn FROM pg_replication_slots", lsn).
		Scan(&upTo, &active, &all)
	if err == nil && !all {
		err = fmt.Errorf("changes of %s: applied up to %s, want %s; connected: %t", s.name, upTo, lsn, active)
	}
	return err
}
