package migrations

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// genCrashTables has two tables: one whose default mints as usual, and one whose
// default is the sequence of a generator as such, so that all are of one unit and
// no clock helps to keep them apart.
const genCrashTables = `
	create table ordinary (id bigint primary key default sortkey.next_snowflake(1, 1));
	create table bare (id bigint primary key default nextval('sortkey.sno_clock'))`

// A genLoad is a set of clients that insert rows. Each row is committed when its
// ID is returned.
type genLoad struct {
	t       *testing.T
	stop    context.CancelFunc
	wg      sync.WaitGroup
	batches atomic.Int64
	told    [][]string // the IDs, by client
	errs    []error
}

func startLoad(t *testing.T, db *pgtest.DB, clients int) *genLoad {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	l := &genLoad{t: t, stop: stop, told: make([][]string, clients), errs: make([]error, clients)}
	for i, conn := range genConns(t, db, clients) {
		l.wg.Go(func() { l.errs[i] = l.insert(ctx, conn, i) })
	}
	return l
}

// insert inserts rows until the server is gone or ctx ends.
func (l *genLoad) insert(ctx context.Context, conn *pgx.Conn, client int) error {
	if _, err := conn.Exec(ctx, "set synchronous_commit = on"); err != nil {
		return err
	}
	for i := client + 1; ctx.Err() == nil; i++ {
		// Others' rows and one's own, by one and by several.
		sql := "insert into bare default values returning id::text"
		if i%3 == 0 {
			sql = "insert into ordinary select sortkey.next_snowflake(1, 1) from generate_series(1, 20) returning id::text"
		}
		rows, err := conn.Query(ctx, sql)
		if err != nil {
			return err
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		l.told[client] = append(l.told[client], ids...)
		l.batches.Add(1)
	}
	return nil
}

// goOn waits until so many more statements are done.
func (l *genLoad) goOn(statements int64) {
	l.t.Helper()
	end := l.batches.Load() + statements
	pgtest.Eventually(l.t, "clients insert rows", func() error {
		if n := l.batches.Load(); n < end {
			return fmt.Errorf("%d statements are done, want %d", n, end)
		}
		return nil
	})
}

// end stops the clients and returns the IDs that they were told. A server that is
// gone is no error, one that refuses a statement is.
func (l *genLoad) end() []string {
	l.t.Helper()
	l.stop()
	l.wg.Wait()
	var all []string
	for i, ids := range l.told {
		// What a server that goes says: admin_shutdown and crash_shutdown.
		if code := sqlState(l.errs[i]); code != "" && !strings.HasPrefix(code, "57P0") && code != "57014" {
			l.t.Error(l.errs[i])
		}
		all = append(all, ids...)
	}
	return all
}

// genStored expects the IDs that clients were told to be stored, none told twice.
func genStored(t *testing.T, conn *pgx.Conn, told []string) {
	t.Helper()
	seen := make(map[string]bool, len(told))
	for _, id := range told {
		if seen[id] {
			t.Fatalf("expected no ID to be returned twice, got %s", id)
		}
		seen[id] = true
	}
	if lost := pgtest.Value[int](t, conn, `select count(*) from unnest($1::text[]) as told
		where told not in (select id::text from ordinary union all select id::text from bare)`, told); lost != 0 {
		t.Fatalf("expected the rows that were committed, got %d of %d lost: the test proves nothing", lost, len(told))
	}
}

// A server that is killed while it mints, and started again, repeats nothing.
func TestServerCrash(t *testing.T) {
	t.Parallel()
	const clients, statements = 6, 300
	rounds := pgtest.Scaled(1, 3)
	pgtest.EachServer(t, func(t *testing.T, db *pgtest.DB) {
		up(t, db, complete)
		db.Exec(t, genCrashTables)
		docker, id := pgtest.Docker(t), db.Container().GetContainerID()
		var told []string
		for round := range rounds {
			load := startLoad(t, db, clients)
			load.goOn(int64(statements * (round + 1)))
			if _, err := docker.ContainerKill(t.Context(), id, client.ContainerKillOptions{Signal: "KILL"}); err != nil {
				t.Fatal(err)
			}
			told = append(told, load.end()...)
			must(t, db.Container().Start(t.Context()))
			genStored(t, genAnswer(t, db.URL), told)
		}
		load := startLoad(t, db, clients)
		load.goOn(statements)
		told = append(told, load.end()...)
		conn := db.Conn(t)
		genStored(t, conn, told)
		t.Logf("%d IDs in %d rounds, %d of them of one unit", len(told), rounds+1, pgtest.Value[int](t, conn, "select count(*) from bare"))
		if n := pgtest.Value[int](t, conn, "select count(distinct id & ((1::bigint << 39) - 1)) from bare"); n != 1 {
			t.Errorf("expected all of one unit, got of %d: the test proves less than it should", n)
		}
	})
}

// genAnswer is a connection to a server once it answers.
func genAnswer(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	var conn *pgx.Conn
	pgtest.Eventually(t, "the server answers", func() (err error) {
		conn, err = pgx.Connect(t.Context(), url)
		return err
	})
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// A standby that is promoted while its primary mints goes on where it was, and
// so does a dump that was made meanwhile: neither repeats an ID that it holds.
func TestServerFailover(t *testing.T) {
	t.Parallel()
	const clients = 4
	pgtest.EachServer(t, func(t *testing.T, db *pgtest.DB) {
		up(t, db, complete)
		db.Exec(t, genCrashTables)
		genRun(t, db.Container(), "echo 'host replication all all trust' >>/pgdata/pg_hba.conf")
		db.Exec(t, "select pg_reload_conf()")
		primary, err := url.Parse(db.URLFromContainers(t))
		must(t, err)

		image, err := pgtest.Docker(t).ContainerInspect(t.Context(), db.Container().GetContainerID(), client.ContainerInspectOptions{})
		must(t, err)
		standby := pgtest.Container(t, image.Container.Config.Image,
			testcontainers.WithConfigModifier(func(c *container.Config) { c.User = "postgres" }),
			testcontainers.WithTmpfs(map[string]string{"/pgdata": "rw,mode=0777"}),
			testcontainers.WithEntrypoint("sh", "-ec"),
			testcontainers.WithCmd(fmt.Sprintf(`
				pg_basebackup -h %s -p %s -U %s -D /pgdata/data -c fast -X stream -R --no-sync
				exec postgres -D /pgdata/data -c listen_addresses='*' -c fsync=off -c max_connections=%s`,
				primary.Hostname(), primary.Port(), primary.User.Username(), pgtest.Value[string](t, db.Conn(t), "show max_connections"))),
			testcontainers.WithExposedPorts("5432/tcp"))
		endpoint, err := standby.PortEndpoint(t.Context(), "5432/tcp", "")
		must(t, err)
		promoted := *primary
		promoted.Host = endpoint
		conn := genAnswer(t, promoted.String())
		fails(t, conn, "25006", "select sortkey.next_snowflake(1, 1)", "nextval()") // it is a standby

		load := startLoad(t, db, clients)
		load.goOn(500)
		dumped := make(chan struct{})
		go func() {
			defer close(dumped)
			genRun(t, db.Container(), fmt.Sprintf(`createdb -U %[1]s restored
				pg_dump -U %[1]s -Fc %[2]s >/tmp/dump
				pg_restore -U %[1]s -d restored /tmp/dump`, primary.User.Username(), db.Name))
		}()
		if !pgtest.Value[bool](t, conn, "select pg_promote()") {
			t.Fatal("expected the standby to be promoted")
		}
		<-dumped
		restored := *primary
		restored.Host, restored.Path = genHost(t, db.URL), "/restored"
		for what, at := range map[string]string{"promoted": promoted.String(), "restored": restored.String()} {
			conn := genAnswer(t, at)
			for _, table := range []string{"ordinary", "bare"} {
				// Each row's ID is refused if it is there already.
				before := pgtest.Value[int](t, conn, "select count(*) from "+table)
				for range 5 {
					if _, err := conn.Exec(t.Context(), "insert into "+table+" select from generate_series(1, 1000)"); err != nil {
						t.Errorf("%s, of which %d rows came from the primary: %v", what, before, err)
						break
					}
				}
				if before == 0 {
					t.Errorf("%s: expected rows of the primary in %s", what, table)
				}
				t.Logf("%s: %d rows of %s came from the primary", what, before, table)
			}
		}
		load.end()
	})
}

func genHost(t testing.TB, s string) string {
	t.Helper()
	u, err := url.Parse(s)
	must(t, err)
	return u.Host
}

// genRun runs a script in a container as the user of the server.
func genRun(t testing.TB, c testcontainers.Container, script string) {
	if _, err := pgtest.Exec(t, c, "postgres", "sh", "-ec", script); err != nil {
		t.Errorf("%v\nin: %s", err, script)
	}
}
