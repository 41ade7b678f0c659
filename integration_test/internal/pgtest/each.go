package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/testcontainers/testcontainers-go/modules/postgres"
)

// adminTimeout bounds pgtest's own operations on a server.
const adminTimeout = 5 * time.Minute

// Each runs f once per version of Postgres, as a subtest named after the version, with
// its own empty database.
func Each(t *testing.T, f func(t *testing.T, db *DB)) {
	t.Helper()
	each(t, need(t, sharedServers), f)
}

// EachParallel is [Each] for a test that runs in parallel with others.
func EachParallel(t *testing.T, f func(t *testing.T, db *DB)) {
	t.Helper()
	t.Parallel()
	Each(t, f)
}

// One is [Each] on the last version only. Use it if a similar test shows that all
// versions behave the same.
func One(t *testing.T, f func(t *testing.T, db *DB)) {
	t.Helper()
	each(t, last(need(t, sharedServers)), f)
}

// OneParallel is [One] for a test that runs in parallel with others.
func OneParallel(t *testing.T, f func(t *testing.T, db *DB)) {
	t.Helper()
	t.Parallel()
	One(t, f)
}

// First is [Each] on the first version only. With [One] for a variant of the test, the
// variants together run on the oldest and on the newest version.
func First(t *testing.T, f func(t *testing.T, db *DB)) {
	t.Helper()
	each(t, first(need(t, sharedServers)), f)
}

// EachContainer is [Each] with servers in containers, which other containers can reach.
// The test can use [DB.URLFromContainers] and [DB.Container].
func EachContainer(t *testing.T, f func(t *testing.T, db *DB)) {
	t.Helper()
	NeedsContainers(t)
	each(t, need(t, containerServers), f)
}

// last returns the server of the last version only.
func last(servers []*server) []*server { return servers[len(servers)-1:] }

// first returns the server of the first version only.
func first(servers []*server) []*server { return servers[:1] }

// OneContainer is [EachContainer] on the last version only.
func OneContainer(t *testing.T, f func(t *testing.T, db *DB)) {
	t.Helper()
	NeedsContainers(t)
	each(t, last(need(t, containerServers)), f)
}

// Must fails the test if err is not nil. Use it for errors in the test's setup.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Fails reports an error unless err is an error that wraps the sentinel, if there is one, and
// contains all words.
func Fails(t testing.TB, err, sentinel error, words ...string) {
	t.Helper()
	if err == nil || sentinel != nil && !errors.Is(err, sentinel) {
		t.Errorf("expected an error that is %v, got %v", sentinel, err)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("expected an error with %q, got %v", w, err)
		}
	}
}

// need returns the result of get, or fails the test.
func need[T any](t *testing.T, get func() (T, error)) T {
	t.Helper()
	v, err := get()
	Must(t, err)
	return v
}

func each(t *testing.T, servers []*server, f func(t *testing.T, db *DB)) {
	t.Helper()
	eachFrom(t, servers, func(t *testing.T, r *running) *DB { return r.newDB(t) }, f)
}

// eachFrom runs f once per server, with a database that get returns.
func eachFrom(t *testing.T, servers []*server, get func(t *testing.T, r *running) *DB, f func(t *testing.T, db *DB)) {
	t.Helper()
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) { f(t, get(t, need(t, s.running))) })
	}
}

// OneServer is [OneContainer] with a server for the test alone, which the test can pause,
// disconnect from its network, stop and start again. The server keeps its data and its port
// across restarts.
func OneServer(t *testing.T, f func(t *testing.T, db *DB)) {
	t.Helper()
	v := lastVersion(t)
	t.Run("pg"+v, func(t *testing.T) { f(t, ownServer(t, v, stoppable).newDB(t)) })
}

// lastVersion returns the last requested version, for a test that needs a container.
func lastVersion(t *testing.T) string {
	t.Helper()
	NeedsContainers(t)
	versions := need(t, containerVersions)
	return versions[len(versions)-1]
}

// ownServer starts a server for one test and removes it when the test ends.
func ownServer(t *testing.T, version string, k kind) *running {
	t.Helper()
	docker := Docker(t)
	r, err := runContainer(version, k)
	if r != nil && r.container != nil {
		removeAtEnd(t, docker, r.container)
	}
	Must(t, err)
	t.Cleanup(func() { r.close() })
	return r
}

// A DB is a test's own database. A client that a method opens is closed when the test
// passed to the method ends.
type DB struct {
	Name    string // of the database
	URL     string // for drivers
	Version string // major version of the server, such as 17

	server *running
}

// OddStrings is the value of the setting standard_conforming_strings that gives a backslash another
// meaning: off. Since Postgres 19, the setting is always on.
func (db *DB) OddStrings() string {
	if db.Version >= "19" {
		return "on"
	}
	return "off"
}

// databasePrefix is the prefix of the names of pgtest's databases.
const databasePrefix = "sortkey_test_"

// databases numbers the databases. databaseOwner is a random part of their names,
// because several processes may use the same server.
var (
	databases     atomic.Int64
	databaseOwner = strings.ToLower(rand.Text()[:8])
)

func (r *running) newDB(t *testing.T) *DB {
	t.Helper()
	return r.newDBNamed(t, newDatabaseName())
}

func newDatabaseName() string {
	return fmt.Sprintf("%s%s_%d", databasePrefix, databaseOwner, databases.Add(1))
}

func (r *running) newDBNamed(t *testing.T, name string) *DB {
	t.Helper()
	return r.newDBFrom(t, "template0", name) // template1 may have connections, which CREATE DATABASE rejects
}

func (r *running) newDBFrom(t *testing.T, template, name string) *DB {
	t.Helper()
	r.create(t, name, template)
	if !r.own {
		t.Cleanup(func() {
			if err := r.drop(name); err != nil {
				t.Error(err)
			}
		})
	}
	return r.testDB(t, name)
}

// testDB returns a DB for a database that exists. If the test fails, it shows
// the server's log.
func (r *running) testDB(t *testing.T, name string) *DB {
	t.Helper()
	url, err := withDatabase(r.url, name)
	Must(t, err)
	db := &DB{Name: name, URL: url, Version: r.version, server: r}
	t.Cleanup(func() {
		if t.Failed() {
			db.showLog(t)
		}
	})
	return db
}

func (r *running) create(t *testing.T, name, template string) {
	t.Helper()
	if err := r.exec(adminTimeout, "create database "+name+" template "+template); err != nil {
		t.Fatalf("create a database, for which the user needs CREATEDB: %v", err)
	}
}

// drop retries, because Postgres gives the sessions that it ends 5 s, and Citus opens new ones.
func (r *running) drop(name string) error {
	const objectInUse = "55006"
	for deadline := time.Now().Add(adminTimeout); ; {
		err := r.exec(adminTimeout, "drop database if exists "+name+" with (force)")
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != objectInUse || time.Now().After(deadline) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// exec runs a statement on pgtest's own connection.
func (r *running) exec(timeout time.Duration, sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	_, err := r.admin.Exec(ctx, sql)
	return err
}

// withDatabase returns the connection string for another database of the server.
func withDatabase(connection, name string) (string, error) {
	u, err := url.Parse(connection)
	if err != nil || u.Scheme == "" {
		return "", errors.Join(fmt.Errorf("expected %s in the form postgres://user@host:port/database", urlVar), err)
	}
	u.Path = "/" + name
	return u.String(), nil
}

// Eventually waits until f returns nil. It fails the test after five minutes, which is
// ample even on a loaded machine. what is a statement such as "the server answers".
func Eventually(t testing.TB, what string, f func() error) {
	t.Helper()
	const patience = 5 * time.Minute
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if err = f(); err == nil {
			return
		}
	}
	t.Fatalf("timed out after %s waiting until %s: %v", patience, what, err)
}

func (db *DB) showLog(t *testing.T) {
	if db.server.log == nil {
		return
	}
	// The server's output reaches Docker's log with a delay. Write a line, and wait
	// until the log contains it.
	end := "pgtest: end of the log of " + db.Name
	_ = db.server.exec(2*time.Second, "do $$ begin raise log '"+end+"'; end $$") // fails if the server is down
	var log string
	for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		var err error
		if log, err = db.server.log(); err != nil {
			t.Logf("reading the server's log: %v", err)
			return
		}
		if before, _, found := strings.Cut(log, end); found {
			log = before[:strings.LastIndex(before, "\n")+1]
			break
		}
	}
	t.Logf("server log, with lines about the test's database %s:\n%s", db.Name, lastLines(linesAbout(db.Name, log), logLines))
}

// Container returns the server's container. It is nil in a test of [Each] if the server
// doesn't run in a container.
func (db *DB) Container() *postgres.PostgresContainer { return db.server.container }

// URLFromContainers returns the URL of the database for other containers.
func (db *DB) URLFromContainers(t testing.TB) string {
	t.Helper()
	if db.server.container == nil {
		t.Fatal("the server doesn't run in a container; use EachContainer or OneServer")
	}
	u, err := url.Parse(db.URL)
	Must(t, err)
	u.Host = db.host(t) + ":5432"
	return u.String()
}

// DirectHost returns the address of the server's container, for ports that aren't published.
// If this machine can't reach it, DirectHost lists the test as not run.
func (db *DB) DirectHost(t testing.TB) string {
	t.Helper()
	ip := db.host(t)
	if !isReachable(ip) {
		notRun(t, fmt.Errorf("this machine can't reach the container's address %s", ip))
	}
	return ip
}

// Exec runs one or more statements, separated by semicolons, to set up a test.
func (db *DB) Exec(t testing.TB, sql string) {
	t.Helper()
	Must(t, db.exec(t.Context(), sql))
}

func (db *DB) exec(ctx context.Context, sql string) error {
	conn, err := pgx.Connect(ctx, db.URL)
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		return fmt.Errorf("%w\nin: %s", err, sql)
	}
	return nil
}

// NewRole creates a role with attributes such as [LoginPassword], and returns its name. When
// the test ends, it drops the role and the objects that the role owns. The prefix must be
// unique in the test: roles belong to the server, which other tests use at the same time.
func (db *DB) NewRole(t testing.TB, prefix, attributes string) string {
	t.Helper()
	name := prefix + "_" + db.Name
	db.Exec(t, "CREATE ROLE "+name+" "+attributes)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
		defer cancel()
		if err := db.exec(ctx, "DROP OWNED BY "+name+" CASCADE; DROP ROLE "+name); err != nil {
			t.Error(err)
		}
	})
	return name
}
