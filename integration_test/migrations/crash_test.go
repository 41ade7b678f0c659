package migrations

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/internal/pgerror"
)

// genCrashTables creates two tables. The default of one is a next_ function. The
// default of the other is the bare sequence of a generator, so that all values are of
// one window and the clock doesn't help to keep them unique.
const genCrashTables = `
	create table ordinary (id bigint primary key default sortkey.next_snowflake(1));
	create table bare (id bigint primary key default nextval('sortkey_internal.sno_clock'))`

// genCrashInserts insert single rows and several at once.
var genCrashInserts = []string{
	"insert into bare default values returning id::text",
	"insert into bare default values returning id::text",
	"insert into ordinary select sortkey.next_snowflake(1) from generate_series(1, 20) returning id::text",
}

// A genInserts is a load of sessions that insert rows. Each row is committed when its ID is
// returned.
type genInserts struct {
	*genLoad
	cancel   context.CancelFunc
	returned [][]string // the returned IDs, by session
}

func startInserts(t *testing.T, db *pgtest.DB, sessions int, inserts []string) genInserts {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	conns, returned := genConns(t, db, sessions), make([][]string, sessions)
	for _, conn := range conns {
		exec(t, conn, "set synchronous_commit = on")
	}
	return genInserts{genStart(sessions, func(i, n int) (string, error) {
		rows, _ := conns[i].Query(ctx, inserts[(i+n)%len(inserts)])
		ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if pgerror.State(err) == "55000" && strings.Contains(err.Error(), " is behind ") {
			return "behind", nil
		}
		if err == nil {
			returned[i] = append(returned[i], ids...)
		}
		return "inserted", err
	}), cancel, returned}
}

// goOn waits until the sessions have completed a number of further statements.
func (l genInserts) goOn(t *testing.T, statements int) {
	t.Helper()
	before := l.count("inserted")
	l.await(t, "sessions insert rows", func() bool { return l.count("inserted") >= before+statements })
}

// finish ends the load and returns all IDs that the server returned. It ignores errors of a
// stopped server and reports all other errors.
func (l genInserts) finish(t *testing.T) []string {
	t.Helper()
	l.cancel()
	_ = l.end()
	for _, err := range l.errs {
		// A server that stops returns admin_shutdown or crash_shutdown.
		if code := pgerror.State(err); code != "" && !strings.HasPrefix(code, "57P0") && code != "57014" {
			t.Error(err)
		}
	}
	return slices.Concat(l.returned...)
}

// genStored fails the test unless all returned IDs are stored and unique. stored is a
// query of the stored IDs as text.
func genStored(t *testing.T, conn *pgx.Conn, returned []string, stored string) {
	t.Helper()
	unique := slices.Clone(returned)
	slices.Sort(unique)
	if n := len(returned) - len(slices.Compact(unique)); n > 0 {
		t.Fatalf("expected no ID to be returned twice, got %d", n)
	}
	if lost := pgtest.Value[int](t, conn, "select count(*) from (select unnest($1::text[]) except ("+stored+")) lost", returned); lost != 0 {
		t.Fatalf("%d of %d committed rows are lost, so the test proves nothing", lost, len(returned))
	}
}

func TestServerCrash(t *testing.T) {
	t.Parallel()
	pgtest.OneServer(t, func(t *testing.T, db *pgtest.DB) {
		up(t, db, complete)
		db.Exec(t, genCrashTables)
		t.Run("failover", func(t *testing.T) { genFailover(t, db) })
		t.Run("crash", func(t *testing.T) { genCrash(t, db) })
	})
}

// A server that is killed while it generates IDs, and restarted, returns no duplicates,
// even if its clock is then behind the IDs from before the crash. Calls wait until it has
// caught up with their window.
func genCrash(t *testing.T, db *pgtest.DB) {
	const clients, statements, rounds, schema = 6, 400, 2, "behind" // this schema has a clock that the test sets
	genInstallClock(t, db, schema, "clock_timestamp()")
	inserts, stored := slices.Clone(genCrashInserts), "select id::text from ordinary union all select id::text from bare"
	formats := genFormatsOf(schema)
	for _, f := range formats {
		db.Exec(t, fmt.Sprintf("create table %s (id %s primary key default %s)", f.name, f.column, f.nextNode()))
		inserts = append(inserts, fmt.Sprintf("insert into %s select from generate_series(1, 20) returning id::text", f.name))
		stored += " union all select id::text from " + f.name
	}
	docker, id := pgtest.Docker(t), db.Container().GetContainerID()
	var returned []string
	for round := range rounds + 1 {
		load := startInserts(t, db, clients, inserts)
		load.goOn(t, statements*(round+1))
		if round < rounds {
			if _, err := docker.ContainerKill(t.Context(), id, client.ContainerKillOptions{Signal: "KILL"}); err != nil {
				t.Fatal(err)
			}
		}
		returned = append(returned, load.finish(t)...)
		t.Logf("round %d: %v statements", round, load.counts)
		if round == rounds {
			break
		}
		must(t, db.Container().Start(t.Context()))
		conn := genAnswer(t, db.URL)
		genStored(t, conn, returned, stored)
		last := pgtest.Value[string](t, conn, "select max(behind.snowflake_time(id))::text from snowflake")
		now := pgtest.Value[string](t, conn, "select clock_timestamp()::text")
		genSetClock(t, db, fmt.Sprintf("timestamptz '%s' - interval '500 ms' + (clock_timestamp() - '%s')", last, now))
		for _, f := range formats {
			since := fmt.Sprintf("select extract(epoch from %[1]s(%[2]s) - max(%[1]s(id))) * 1000 > -%[4]d from %[3]s", f.function("time"), f.nextNode(), f.name, genWindow)
			wantValue(t, conn, since, true) // an ID in the last window or later
		}
	}
	conn := db.Conn(t)
	genStored(t, conn, returned, stored)
	t.Logf("%d IDs in %d rounds, %d of them in one window", len(returned), rounds+1, pgtest.Value[int](t, conn, "select count(*) from bare"))
	if n := pgtest.Value[int](t, conn, "select count(distinct id >> 24) from bare"); n != 1 {
		t.Errorf("expected all IDs of table bare in one window, got %d windows: the test proves less than it should", n)
	}
}

// genAnswer waits until the server accepts connections and returns one.
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

// A standby that is promoted while its primary generates IDs continues the sequences,
// and so does a database restored from a dump of that time. Neither generates an ID
// that it already stores.
func genFailover(t *testing.T, db *pgtest.DB) {
	const clients = 4
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
	fails(t, conn, "25006", "select sortkey.next_snowflake(1)", "nextval()") // it is a standby

	load := startInserts(t, db, clients, genCrashInserts)
	load.goOn(t, 500)
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
	for name, at := range map[string]string{"promoted": promoted.String(), "restored": strings.Replace(db.URL, "/"+db.Name, "/restored", 1)} {
		conn := genAnswer(t, at)
		for _, table := range []string{"ordinary", "bare"} {
			// The primary key rejects duplicates.
			t.Logf("%s: %d rows of %s came from the primary", name, pgtest.Value[int](t, conn, "select count(*) from "+table), table)
			wantValue(t, conn, "select count(*) > 0 from "+table, true)
			for range 5 {
				exec(t, conn, "insert into "+table+" select from generate_series(1, 1000)")
			}
		}
	}
	load.finish(t)
}

// genRun runs a script in a container as the user of the server.
func genRun(t testing.TB, c testcontainers.Container, script string) {
	if _, err := pgtest.Exec(t, c, "postgres", "sh", "-ec", script); err != nil {
		t.Errorf("%v\nin: %s", err, script)
	}
}
