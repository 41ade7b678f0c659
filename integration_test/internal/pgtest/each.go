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
	"github.com/testcontainers/testcontainers-go/modules/postgres"
)

// adminTimeout bounds what the harness itself does on a server.
const adminTimeout = time.Minute

// Each runs f once per version of Postgres, as a subtest named after it, with
// an empty database of its own.
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

// One is [Each] on the last of the versions only: for what is known to be the
// same on all of them from a test that is like it.
func One(t *testing.T, f func(t *testing.T, db *DB)) {
	t.Helper()
	each(t, last(need(t, sharedServers)), f)
}

// EachContainer is [Each] for tests that need a server which other containers
// can reach: [DB.URLFromContainers] and [DB.Container] have a meaning there.
func EachContainer(t *testing.T, f func(t *testing.T, db *DB)) {
	t.Helper()
	NeedsContainers(t)
	each(t, need(t, containerServers), f)
}

// last returns the server of the last version only.
func last(servers []*server) []*server { return servers[len(servers)-1:] }

// OneContainer is [EachContainer] on the last of the versions only.
func OneContainer(t *testing.T, f func(t *testing.T, db *DB)) {
	t.Helper()
	NeedsContainers(t)
	each(t, last(need(t, containerServers)), f)
}

// Must ends the test if something fails that it is not about.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// need is what a test can't do without.
func need[T any](t *testing.T, get func() (T, error)) T {
	t.Helper()
	v, err := get()
	if err != nil {
		t.Fatal(err)
	}
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

// EachServer is [EachContainer] for tests that pause their server, cut it from
// its network, stop it and start it again: it is theirs alone. Its data and
// its port outlive a restart.
func EachServer(t *testing.T, f func(t *testing.T, db *DB)) {
	t.Helper()
	NeedsContainers(t)
	for _, v := range need(t, containerVersions) {
		t.Run("pg"+v, func(t *testing.T) { f(t, ownServer(t, v, stoppable).newDB(t)) })
	}
}

// OneServer is [EachServer] on the last of the versions only.
func OneServer(t *testing.T, f func(t *testing.T, db *DB)) {
	t.Helper()
	v := lastVersion(t)
	t.Run("pg"+v, func(t *testing.T) { f(t, ownServer(t, v, stoppable).newDB(t)) })
}

// lastVersion is the last of those that are asked for, for a test that needs a
// container of it.
func lastVersion(t *testing.T) string {
	t.Helper()
	NeedsContainers(t)
	versions := need(t, containerVersions)
	return versions[len(versions)-1]
}

// ownServer starts a server that goes when the test ends.
func ownServer(t *testing.T, version string, k kind) *running {
	t.Helper()
	docker := Docker(t)
	r, err := runContainer(version, k)
	if r != nil && r.container != nil {
		removeAtEnd(t, docker, r.container)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.close() })
	return r
}

// A DB is an empty database of a test's own. What its methods open is closed
// when the test that they are given ends.
type DB struct {
	Name    string // of the database
	URL     string // that drivers connect to
	Version string // of the server: 17

	server *running
}

// databasePrefix begins the names of our databases.
const databasePrefix = "sortkey_test_"

// databases numbers them. The random part of their names is for servers that
// several processes test on.
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
	return r.newDBFrom(t, "template0", name) // which nobody can be connected to: that would be an error
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
		t.Fatalf("expected to create a database, for which the user needs the right to: %v", err)
	}
}

func (r *running) drop(name string) error {
	return r.exec(adminTimeout, "drop database if exists "+name+" with (force)")
}

// exec runs a statement beside the tests.
func (r *running) exec(timeout time.Duration, sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	_, err := r.admin.Exec(ctx, sql)
	return err
}

// withDatabase is the connection string of another database of the server.
func withDatabase(connection, name string) (string, error) {
	u, err := url.Parse(connection)
	if err != nil || u.Scheme == "" {
		return "", errors.Join(fmt.Errorf("expected %s in the form postgres://user@host:port/database", urlVar), err)
	}
	u.Path = "/" + name
	return u.String(), nil
}

// Eventually waits until f returns nil. It fails the test after two minutes, which
// even a machine under load doesn't need.
func Eventually(t testing.TB, what string, f func() error) {
	t.Helper()
	const patience = 2 * time.Minute
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if err = f(); err == nil {
			return
		}
	}
	t.Fatalf("expected that %s within %s: %v", what, patience, err)
}

func (db *DB) showLog(t *testing.T) {
	if db.server.log == nil {
		return
	}
	// What the server writes gets to Docker's log a while later. Once a line of
	// ours is there, so is all that came before.
	end := "pgtest: end of the log of " + db.Name
	_ = db.server.exec(2*time.Second, "do $$ begin raise log '"+end+"'; end $$") // in vain if the server is down
	var log string
	for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		var err error
		if log, err = db.server.log(); err != nil {
			t.Logf("the log of the server can't be had: %v", err)
			return
		}
		if before, _, found := strings.Cut(log, end); found {
			log = before[:strings.LastIndex(before, "\n")+1]
			break
		}
	}
	t.Logf("the server, of which this test used database %s, logged:\n%s", db.Name, lastLines(linesAbout(db.Name, log), logLines))
}

// Container is the container of the server. It is nil in a test of [Each] whose
// server isn't in one.
func (db *DB) Container() *postgres.PostgresContainer { return db.server.container }

// URLFromContainers is the URL of the database as other containers see it.
func (db *DB) URLFromContainers(t testing.TB) string {
	t.Helper()
	if db.server.container == nil {
		t.Fatal("expected a server in a container, as EachContainer and EachServer give, got one that may be anywhere")
	}
	u, err := url.Parse(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = db.host(t) + ":5432"
	return u.String()
}

// Exec runs statements that make up the test's surroundings: several if there
// are semicolons between them.
func (db *DB) Exec(t testing.TB, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatalf("%v\nin: %s", err, sql)
	}
}
