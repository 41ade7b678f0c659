package metrics

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/sortkey/sortkey/internal/trust"
)

// DatabaseOptions configure [Database]. The zero value suits most programs.
type DatabaseOptions struct {
	// Schema is the schema of package migrations: [a-z_][a-z0-9_]*, at most 63 bytes.
	// "" means sortkey.
	Schema string
	// Timeout limits the time that a scrape waits for the database. 0 means 5 s. It
	// should be shorter than Prometheus's scrape_timeout, by default 10 s.
	Timeout time.Duration
	// Logger logs the errors of scrapes. Nil means no logging.
	Logger *slog.Logger
}

const defaultTimeout = 5 * time.Second

var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// Database returns a source with the node numbers and the managed partitions of a
// database in which migrations.Up has run. The name is the value of the label database.
//
// Each scrape queries the database, in read-only transactions. Concurrent scrapes get the
// result of the first one. If a query fails, or the timeout is over, sortkey_database_up is
// 0, and the metrics that are unknown are missing.
//
// The role of db needs USAGE on the schema sortkey, and SELECT on node_pool, node_status,
// partition_log and partition_horizon. It must trust the owner of the installation: that is
// a superuser, the owner of the database, or a role that it is a member of. If something is
// missing, the warning in the log has the statement to run. One process per
// database is enough, since all report the same values.
//
// Database panics if the schema's name is invalid.
func Database(name string, db *sql.DB, o DatabaseOptions) Source {
	if o.Schema == "" {
		o.Schema = "sortkey"
	}
	if !schemaName.MatchString(o.Schema) {
		panic(fmt.Sprintf("metrics: DatabaseOptions.Schema: want at most 63 lower-case letters, digits and underscores, the first not a digit, got %q", o.Schema))
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	d := &database{db: db, o: o, name: name}
	return Source{name: name, label: labelDatabase, collect: func(send send) {
		samples, up := d.scrape()
		for _, s := range samples {
			send(s.metric, s.value, s.labels...)
		}
		send(databaseUp, boolean(up))
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
}

// A reading is the result of the queries of a scrape.
type reading struct {
	*database
	done    chan struct{} // closed when the fields below are set
	samples []sample
	up      bool
}

// scrape returns the metrics, and whether all could be read. It waits for the timeout at
// most, even if the driver ignores it.
func (d *database) scrape() ([]sample, bool) {
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
		return r.samples, r.up
	case <-time.After(d.o.Timeout):
		return nil, false
	}
}

// read runs the queries.
func (r *reading) read() {
	ctx, cancel := context.WithTimeout(context.Background(), r.o.Timeout)
	defer cancel()
	err := r.trust(ctx)
	if err == nil {
		err = errors.Join(r.pools(ctx), r.partitions(ctx))
	}
	var state interface{ SQLState() string }
	if errors.As(err, &state) && state.SQLState() == "42501" { // insufficient_privilege
		role := "this role"
		_ = r.db.QueryRowContext(ctx, "SELECT pg_catalog.format('%I', current_user)").Scan(&role)
		err = fmt.Errorf("%w; as the owner of schema %s, run GRANT USAGE ON SCHEMA %[2]s TO %[3]s; GRANT SELECT ON %[2]s.node_pool, %[2]s.node_status, %[2]s.partition_log, %[2]s.partition_horizon TO %[3]s",
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

func (r *reading) add(m *metric, value float64, labels ...string) {
	r.samples = append(r.samples, sample{m, value, labels})
}

// trust returns an error if a role that the session doesn't trust could run code in the
// queries, because it owns the schema or an object in it, for example.
func (r *reading) trust(ctx context.Context) error {
	return trust.Read(ctx, r.db, func(tx *sql.Tx) error {
		findings, err := trust.Find(ctx, tx, trust.Installation(r.o.Schema))
		if err == nil && len(findings) > 0 {
			err = fmt.Errorf("%s (%s); %s", trust.List(findings), trust.Rule, trust.Remedy(ctx, tx, r.o.Schema, findings))
		}
		return err
	})
}

// pools adds the metrics of the pools of node numbers.
func (r *reading) pools(ctx context.Context) error {
	// A pool has up to 65,536 numbers, most of them free. The query drops these first:
	// counting all in one GROUP BY takes three times as long.
	return r.query(ctx, func(scan func(...any) error) error {
		var pool string
		var held, reserved, ahead int64
		var free sql.Null[int64] // NULL: nobody has created the pool
		var fence float64
		if err := scan(&pool, &free, &held, &reserved, &ahead, &fence); err != nil {
			return err
		}
		if free.Valid {
			r.add(poolNumbers, float64(free.V), pool, "free")
		}
		r.add(poolNumbers, float64(held), pool, "held")
		r.add(poolNumbers, float64(reserved), pool, "reserved")
		r.add(poolNumbers, float64(ahead), pool, "ahead")
		r.add(poolFence, fence, pool)
		return nil
	}, `SELECT coalesce(p.name, s.pool), p.size - coalesce(s.taken, 0), coalesce(s.held, 0), coalesce(s.reserved, 0), coalesce(s.taken - s.held - s.reserved, 0),
			CASE WHEN p.fenced_until > clock_timestamp() THEN extract(epoch FROM p.fenced_until - clock_timestamp()) ELSE 0 END::float8
		FROM $s.node_pool p FULL JOIN (
			SELECT pool, count(*) AS taken, count(*) FILTER (WHERE state = 'held') AS held, count(*) FILTER (WHERE state = 'reserved') AS reserved
			FROM $s.node_status WHERE state <> 'free' OR mark > clock_timestamp() GROUP BY pool
		) s ON s.pool = p.name`)
}

// A managed table has partitions that maintain_partitions creates.
type managed struct {
	oid  int64
	name string
}

// partitions adds the metrics of the managed tables.
func (r *reading) partitions(ctx context.Context) error {
	var tables []managed
	err := r.query(ctx, func(scan func(...any) error) error {
		var t managed
		var maintained float64
		var rows sql.Null[int64]
		if err := scan(&t.oid, &t.name, &maintained, &rows); err != nil {
			return err
		}
		tables = append(tables, t)
		r.add(partitionMaintain, maintained, t.name)
		if rows.Valid {
			r.add(defaultRows, float64(rows.V), t.name)
		}
		return nil
	}, `SELECT c.oid::bigint, format('%I.%I', n.nspname, c.relname),
			(SELECT coalesce(extract(epoch FROM max(l.ended_at)), 0)::float8 FROM $s.partition_log l
				WHERE l.parent_table = format('%I.%I', n.nspname, c.relname) AND l.action = 'maintain' AND l.outcome = 'done'),
			coalesce(nullif(pg_stat_get_live_tuples(r.oid), 0), greatest(r.reltuples, 0)::bigint)
		FROM $s.partitioned_table t JOIN pg_class c ON c.oid = t.parent JOIN pg_namespace n ON n.oid = c.relnamespace
			JOIN pg_partitioned_table p ON p.partrelid = c.oid LEFT JOIN pg_class r ON r.oid = p.partdefid`)
	for _, t := range tables {
		// One query per table, because the view fails if a table has bounds that are no
		// IDs.
		err = errors.Join(err, r.query(ctx, func(scan func(...any) error) error {
			var horizon float64
			if err := scan(&horizon); err != nil {
				return err
			}
			r.add(partitionHorizon, horizon, t.name)
			return nil
		}, `SELECT coalesce(extract(epoch FROM h.horizon) - extract(epoch FROM clock_timestamp()), 0)::float8
			FROM $s.partition_horizon h WHERE h.parent = $1::bigint::oid`, t.oid))
	}
	return err
}

// query runs a query in a read-only transaction and calls each for its rows. $s in the
// query is the schema.
func (r *reading) query(ctx context.Context, each func(scan func(...any) error) error, query string, args ...any) error {
	tx, err := r.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, "SET LOCAL search_path = pg_catalog, pg_temp"); err != nil {
		return err
	}
	rows, err := tx.QueryContext(ctx, strings.ReplaceAll(query, "$s", r.o.Schema), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
