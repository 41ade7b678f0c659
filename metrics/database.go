package metrics

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"regexp"
	"sync"
	"time"

	"github.com/sortkey/sortkey/internal/dbhealth"
	"github.com/sortkey/sortkey/internal/pgerror"
	"github.com/sortkey/sortkey/migrations"
)

// DatabaseOptions configure [Database]. The zero value suits most programs.
type DatabaseOptions struct {
	// Schema is the schema of package migrations: [a-z_][a-z0-9_]*, at most 54 bytes.
	// "" means sortkey.
	Schema string
	// Timeout limits the time that a scrape waits for the database. 0 means 5 s. It
	// should be shorter than Prometheus's scrape_timeout, by default 10 s.
	Timeout time.Duration
	// FindingsEvery is the time from one search for findings to the next, also after a search
	// that failed. 0 means 5 minutes. A negative time means no search.
	FindingsEvery time.Duration
	// Logger logs the errors of scrapes, and each warning and problem that the rules find, once.
	// The alerts send an operator to this log. Nil means [slog.Default] at the call of
	// [Database]; slog.New(slog.DiscardHandler) discards it.
	Logger *slog.Logger
}

const (
	defaultTimeout       = 5 * time.Second
	defaultFindingsEvery = 5 * time.Minute
	findingsTimeout      = time.Minute // scrapes don't wait that long
)

var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,53}$`)

// Database returns a source with the node numbers and the managed partitions of a
// database in which migrations.Up has run. The name is the value of the label database.
//
// Each scrape queries the database, in read-only transactions. Concurrent scrapes get the
// result of the first one. If a query fails, or the timeout is over, sortkey_database_up is
// 0, and the metrics that are unknown are missing. In names, bytes that aren't UTF-8 are
// escaped as \xff.
//
// The source also runs the rules of sortkey doctor, every few minutes, beside the scrapes.
// sortkey_findings has the number of findings per rule and level, if there are any. If the last
// search failed, sortkey_database_up is 0 and no findings are exported. Rules for which the role
// lacks privileges have the level unknown. No statement opens a table of a role that the session
// doesn't trust: the level is skipped.
//
// All processes would report the same values, so one per database is enough. Give it a pool of
// its own with two connections, one for scrapes and one for searches: then the queries don't
// wait for requests, nor requests for the queries.
//
// The role of db needs USAGE on the schema sortkey, and SELECT on node_pool, node_status and
// partition_log. It must trust the owner of the installation: that is
// a superuser, the owner of the database, or a role that it is a member of. If something is
// missing, the warning in the log has the statement to run.
//
// Database panics if the schema's name is invalid.
func Database(name string, db *sql.DB, o DatabaseOptions) Source {
	if o.Schema == "" {
		o.Schema = "sortkey"
	}
	if !schemaName.MatchString(o.Schema) {
		panic(fmt.Sprintf("metrics: DatabaseOptions.Schema: want at most 54 lower-case letters, digits and underscores, the first not a digit, got %q", o.Schema))
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.FindingsEvery == 0 {
		o.FindingsEvery = defaultFindingsEvery
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	d := &database{db: db, o: o, name: name}
	return Source{name: name, label: labelDatabase, collect: func(to *scrape) {
		samples, up := d.scrape()
		for _, s := range samples {
			to.send(s.metric, s.value, s.labels...)
		}
		to.send(databaseUp, boolean(up))
	}}
}

// A sample is a value of a metric.
type sample struct {
	metric *metric
	value  float64
	labels []string
}

type database struct {
	name string
	db   *sql.DB
	o    DatabaseOptions

	mu      sync.Mutex
	current *reading // nil between scrapes
	search  *search  // the last one that has begun; nil before the first
	counts  counts   // of the last search that has ended; nil if it failed
	known   known    // the findings of the last search that succeeded
}

// A reading is the result of the queries of a scrape.
type reading struct {
	*database
	done    chan struct{} // closed when the fields below are set
	samples []sample
	up      bool
}

// config is the installation.
func (d *database) config() migrations.Config { return migrations.Config{Schema: d.o.Schema} }

// scrape returns the metrics, and whether all could be read. It waits for the timeout at
// most, even if the driver ignores it.
func (d *database) scrape() ([]sample, bool) {
	timeout := time.After(d.o.Timeout)
	d.mu.Lock()
	r := d.current
	if r == nil {
		r = &reading{database: d, done: make(chan struct{})}
		d.current = r
		go r.read()
	}
	d.mu.Unlock()
	select {
	case <-r.done:
		findings, found := d.findings(timeout)
		return append(r.samples[:len(r.samples):len(r.samples)], findings...), r.up && found
	case <-timeout:
		return nil, false
	}
}

// read runs the queries.
func (r *reading) read() {
	ctx, cancel := context.WithTimeout(context.Background(), r.o.Timeout)
	defer cancel()
	err := r.query(ctx)
	if pgerror.State(err) == pgerror.InsufficientPrivilege {
		role := "this role"
		_ = r.db.QueryRowContext(ctx, "SELECT pg_catalog.format('%I', current_user)").Scan(&role)
		err = fmt.Errorf("%w; as the owner of schema %s, run GRANT USAGE ON SCHEMA %[2]s TO %[3]s; GRANT SELECT ON %[2]s.node_pool, %[2]s.node_status, %[2]s.partition_log TO %[3]s",
			err, r.o.Schema, role)
	}
	if err != nil {
		r.o.Logger.Warn("metrics of the database not read", "database", r.name, "error", err)
	}
	r.up = err == nil
	r.mu.Lock()
	r.current = nil
	r.mu.Unlock()
	close(r.done)
}

// query adds all metrics that it can read.
func (r *reading) query(ctx context.Context) (err error) {
	defer recovered(&err)
	if err := migrations.CheckOwner(ctx, r.db, r.config()); err != nil {
		return err
	}
	e := dbhealth.New(r.db, dbhealth.Options{Config: r.config()})
	return errors.Join(r.pools(ctx, e), r.partitions(ctx, e))
}

func (r *reading) add(m *metric, value float64, labels ...string) {
	r.samples = append(r.samples, sample{m, value, labels})
}

// pools adds the metrics of the pools of node numbers.
func (r *reading) pools(ctx context.Context, e *dbhealth.Examination) error {
	pools, err := e.Pools(ctx)
	for _, p := range pools {
		if p.Free != nil { // otherwise nobody has created the pool
			r.add(poolNumbers, float64(*p.Free), p.Pool, "free")
		}
		r.add(poolNumbers, float64(p.Held), p.Pool, "held")
		r.add(poolNumbers, float64(p.Reserved), p.Pool, "reserved")
		r.add(poolNumbers, float64(p.Ahead), p.Pool, "ahead")
		r.add(poolFence, p.Fence, p.Pool)
	}
	return err
}

// partitions adds the metrics of the managed tables.
func (r *reading) partitions(ctx context.Context, e *dbhealth.Examination) error {
	tables, err := e.ManagedTables(ctx)
	for _, t := range tables {
		if t.Skipped != "" {
			continue // a finding says so
		}
		if t.Estimate != nil {
			r.add(defaultRows, float64(*t.Estimate), t.Table)
		}
		if failed := e.ReadMaintained(ctx, t); failed != nil {
			err = errors.Join(err, failed)
		} else {
			r.add(partitionMaintain, *t.Maintained, t.Table)
		}
		// It fails if a table has bounds that are no IDs.
		if failed := e.ReadHorizon(ctx, t); failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		horizon := 0.0
		switch {
		case t.HorizonSeconds != nil:
			horizon = float64(*t.HorizonSeconds)
		case t.Horizon != nil:
			horizon = math.Inf(1)
		}
		r.add(partitionHorizon, horizon, t.Table)
	}
	return err
}
