package pgtest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// A Template is a filled database that tests get copies of. Copying takes less time than
// filling a database per test.
type Template struct {
	fill func(t *testing.T, db *DB)

	mu   sync.Mutex
	made map[*running]*copies
}

// NewTemplate returns a Template. The first test that needs it on a server calls fill to
// fill the database there. If that fails, all later tests that need the template fail.
func NewTemplate(fill func(t *testing.T, db *DB)) *Template {
	return &Template{fill: fill, made: map[*running]*copies{}}
}

// Each is like the function [Each], with copies of the template.
func (tp *Template) Each(t *testing.T, f func(t *testing.T, db *DB)) {
	t.Helper()
	eachFrom(t, need(t, sharedServers), tp.newDB, f)
}

// EachParallel is like the function [EachParallel], with copies of the template.
func (tp *Template) EachParallel(t *testing.T, f func(t *testing.T, db *DB)) {
	t.Helper()
	t.Parallel()
	tp.Each(t, f)
}

// One is like the function [One], with a copy of the template.
func (tp *Template) One(t *testing.T, f func(t *testing.T, db *DB)) {
	t.Helper()
	eachFrom(t, last(need(t, sharedServers)), tp.newDB, f)
}

// OneParallel is like the function [OneParallel], with a copy of the template.
func (tp *Template) OneParallel(t *testing.T, f func(t *testing.T, db *DB)) {
	t.Helper()
	t.Parallel()
	tp.One(t, f)
}

// First is like the function [First], with a copy of the template.
func (tp *Template) First(t *testing.T, f func(t *testing.T, db *DB)) {
	t.Helper()
	eachFrom(t, first(need(t, sharedServers)), tp.newDB, f)
}

// EachContainer is like the function [EachContainer], with copies of the template.
func (tp *Template) EachContainer(t *testing.T, f func(t *testing.T, db *DB)) {
	t.Helper()
	NeedsContainers(t)
	eachFrom(t, need(t, containerServers), tp.newDB, f)
}

// OneContainer is like the function [OneContainer], with a copy of the template.
func (tp *Template) OneContainer(t *testing.T, f func(t *testing.T, db *DB)) {
	t.Helper()
	NeedsContainers(t)
	eachFrom(t, last(need(t, containerServers)), tp.newDB, f)
}

// EachReused is [Template.Each] with copies that tests use one after the other. This
// takes a fraction of the time of a copy per test. A parallel test must call t.Parallel
// first, so that it holds no database while it waits for its turn.
//
// When a test ends, EachReused empties the tables that are empty in the template. The
// test must leave everything else unchanged. It fails if it changes columns, defaults,
// indexes, constraints, triggers or functions. The database of a failed test is dropped.
func (tp *Template) EachReused(t *testing.T, f func(t *testing.T, db *DB)) {
	t.Helper()
	eachFrom(t, need(t, sharedServers), tp.reusedDB, f)
}

// OneReused is [Template.EachReused] on the last version only.
func (tp *Template) OneReused(t *testing.T, f func(t *testing.T, db *DB)) {
	t.Helper()
	eachFrom(t, last(need(t, sharedServers)), tp.reusedDB, f)
}

// newDB returns a copy of the template for one test.
func (tp *Template) newDB(t *testing.T, r *running) *DB {
	t.Helper()
	return r.newDBFrom(t, tp.on(t, r).name, newDatabaseName())
}

// reusedDB returns a copy that the test uses until it ends.
func (tp *Template) reusedDB(t *testing.T, r *running) *DB {
	t.Helper()
	return tp.on(t, r).take(t)
}

// A copies is the template on one server, with the copies that no test is using.
type copies struct {
	server *running

	mu     sync.Mutex
	name   string // of the filled database
	failed string // the test in which filling it failed
	idle   []*reused
}

// A reused is a database that tests use one after the other, with a connection for
// emptying it.
type reused struct {
	name  string
	admin *pgx.Conn
	kept  []uint32 // the tables with rows in the template
	shape string   // the hash from look before the first test
}

// on returns the copies on a server, after filling the template if necessary.
func (tp *Template) on(t *testing.T, r *running) *copies {
	t.Helper()
	tp.mu.Lock()
	c := tp.made[r]
	if c == nil {
		c = &copies{server: r}
		tp.made[r] = c
	}
	tp.mu.Unlock()

	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed != "" {
		t.Fatalf("no template to copy: filling it failed in %s", c.failed)
	}
	if c.name != "" {
		return c
	}
	c.failed = t.Name() // unless the rest succeeds
	name := newDatabaseName()
	c.create(t, name, "template0")
	tp.fill(t, r.testDB(t, name))
	if t.Failed() {
		t.FailNow()
	}
	// Postgres can't copy a database with connections.
	for _, sql := range []string{
		"alter database " + name + " allow_connections false",
		"select pg_terminate_backend(pid, 60000) from pg_stat_activity where backend_type = 'client backend' and datname = '" + name + "'",
	} {
		Must(t, r.exec(2*adminTimeout, sql))
	}
	c.failed, c.name = "", name
	return c
}

// create creates a database, and drops it after the tests of the package unless its
// container is removed anyway.
func (c *copies) create(t *testing.T, name, template string) {
	t.Helper()
	c.server.create(t, name, template)
	if c.server.container == nil {
		atEnd(func() error { return c.server.drop(name) })
	}
}

// take returns an idle copy, or a new one, until the test ends.
func (c *copies) take(t *testing.T) *DB {
	t.Helper()
	c.mu.Lock()
	var db *reused
	if n := len(c.idle) - 1; n >= 0 {
		db, c.idle = c.idle[n], c.idle[:n]
	}
	c.mu.Unlock()
	if db == nil {
		db = c.add(t)
	}
	t.Cleanup(func() {
		if !t.Failed() {
			if err := db.empty(); err != nil {
				t.Errorf("database %s, which other tests use too: %v", db.name, err)
			}
		}
		if t.Failed() {
			_ = db.admin.Close(context.Background())
			if err := c.server.drop(db.name); err != nil {
				t.Error(err)
			}
			return
		}
		c.mu.Lock()
		c.idle = append(c.idle, db)
		c.mu.Unlock()
	})
	return c.server.testDB(t, db.name)
}

// add creates another copy for reuse.
func (c *copies) add(t *testing.T) *reused {
	t.Helper()
	db := &reused{name: newDatabaseName()}
	c.create(t, db.name, c.name)
	url, err := withDatabase(c.server.url, db.name)
	Must(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	db.admin, err = pgx.Connect(ctx, url)
	Must(t, err)
	db.kept, db.shape, err = db.look(ctx)
	Must(t, err)
	return db
}

// look returns the tables with rows, and a hash of the catalog rows that a test must not
// change. Objects that tests create have OIDs from 16384 on.
func (db *reused) look(ctx context.Context) (filled []uint32, shape string, err error) {
	err = db.admin.QueryRow(ctx, `
		select (select array_agg(oid) from pg_class where relkind = 'r' and oid >= 16384 and pg_relation_size(oid) > 0),
			md5(coalesce(string_agg(r, '' order by r), ''))
		from (select a::text from pg_attribute a where attrelid >= 16384 -- of tables, views and indexes
			union all select d::text from pg_attrdef d
			union all select i::text from pg_index i where indexrelid >= 16384
			union all select c::text from pg_constraint c where oid >= 16384
			union all select g::text from pg_trigger g
			union all select p::text from pg_proc p where oid >= 16384) catalog (r)`).Scan(&filled, &shape)
	return filled, shape, err
}

// empty truncates the tables that a test has filled. It returns an error if the test
// changed more than rows.
func (db *reused) empty() error {
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	filled, shape, err := db.look(ctx)
	if err != nil {
		return err
	}
	if shape != db.shape {
		return errors.New("the test changed columns, defaults, indexes, constraints, triggers or functions; use Each")
	}
	filled = slices.DeleteFunc(filled, func(oid uint32) bool { return slices.Contains(db.kept, oid) })
	if len(filled) == 0 {
		return nil
	}
	// Postgres truncates a table only together with the tables that reference it. Don't
	// use CASCADE, which would also truncate tables with rows in the template: those
	// must cause an error.
	var tables string
	if err := db.admin.QueryRow(ctx, `
		with recursive emptied (oid) as (select unnest($1::oid[])
			union select conrelid from pg_constraint join emptied on confrelid = emptied.oid where contype = 'f')
		select string_agg(oid::regclass::text, ', ') from emptied where coalesce(oid <> all($2::oid[]), true)`,
		filled, db.kept).Scan(&tables); err != nil {
		return err
	}
	_, err = db.admin.Exec(ctx, "truncate "+tables+" restart identity")
	return err
}
