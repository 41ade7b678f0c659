package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/sortkey/sortkey/internal/trust"
)

// The error of a [PartitionStep] wraps one of these, so compare with [errors.Is].
var (
	// ErrLocked means that another transaction held a lock in each attempt. The step
	// and the later steps of the table are left to the next call.
	ErrLocked = errors.New("lock held by another transaction")
	// ErrPartition means that the step failed. The error has the reason.
	ErrPartition = errors.New("failed partition step")
)

// PartitionOptions are the options of [MaintainPartitions]. The zero value
// maintains all managed tables.
type PartitionOptions struct {
	// Parent is the table to maintain, named as in SQL: events, or app."Events". It
	// must be managed. Empty: all managed tables.
	Parent string
	// LockTimeout is the timeout for a lock behind which other sessions wait: 1 ms
	// to 24 h, in whole milliseconds. 0: 100 ms. A step has six attempts, with
	// pauses of up to 1, 2, 4, 8 and 16 times LockTimeout, at most 5 s, between
	// them. Each attempt first waits up to 2 s for locks that don't block reads and
	// writes. While a manual VACUUM or a CREATE INDEX CONCURRENTLY holds such a
	// lock, a call can take about 15 s per table.
	LockTimeout time.Duration
	// At is the time that the maintenance takes as the current time. Zero: the
	// server's clock.
	At time.Time
	// DryRun returns the steps without taking them.
	DryRun bool
	// Progress, if set, is called after each step, done or failed. DryRun calls it
	// for no step.
	Progress func(PartitionStep)
}

// A PartitionStep is a completed, failed or planned change of a table's partitions.
type PartitionStep struct {
	// Table is the partitioned table, and Partition the partition of the step. Both
	// are schema-qualified, and quoted as in SQL.
	Table, Partition string
	// Action is create, default (create the default partition), drain (create a
	// partition for rows of the default partition, and move them), detach or drop.
	// If planning the steps of the table failed, Action is plan, Partition is
	// empty, and Err has the reason.
	Action string
	// From and To are the time range of the partition; To is exclusive. They are
	// zero for an open end, for a default partition, and if Partition is empty.
	From, To time.Time
	// SQL has the statements of the step, which run in one transaction.
	SQL string
	// Err is nil if the step is done or only planned. Otherwise it wraps [ErrLocked]
	// or [ErrPartition].
	Err error
}

// MaintainPartitions creates partitions ahead, moves rows out of default
// partitions, and detaches or drops partitions older than the retention, with the
// settings that the SQL function manage_partitions recorded for each table. Call it
// about every hour, and at least several times in the time that the partitions ahead
// cover.
//
// Each step is a separate transaction. If a step doesn't get its locks, its Err
// wraps [ErrLocked]. That is not an error of the call: the next call takes the step
// and the later steps of the table. If a step fails, its Err wraps [ErrPartition].
// The call then takes the other steps and returns these errors, joined. Several
// processes can call MaintainPartitions at the same time.
//
// CALL maintain_partitions() does the same with the same SQL functions, and needs
// the same privileges, among them USAGE on both schemas of the installation, such
// as sortkey and sortkey_internal. Both record the steps that they take in the table
// partition_log. Neither works on tables of other roles as a superuser, or on a table with
// partitions, or with foreign keys to or from tables, of a role that the session doesn't
// trust. MaintainPartitions returns [ErrUntrusted] like [Up].
func MaintainPartitions(ctx context.Context, db *sql.DB, c Config, o PartitionOptions) ([]PartitionStep, error) {
	d, err := c.data()
	if err != nil {
		return nil, err
	}
	m, err := newMaintenance(db, d, o)
	if err != nil {
		return nil, err
	}
	err = trust.Read(ctx, db, func(tx *sql.Tx) error { return checkOwners(ctx, tx, "maintain partitions with", d) })
	if err != nil {
		return nil, err
	}
	tables, err := m.tables(ctx, o)
	if err != nil {
		worker := trust.Read(ctx, db, func(tx *sql.Tx) error { return refuseCitusWorker(ctx, tx) })
		if errors.Is(worker, ErrCitusWorker) {
			return nil, worker
		}
		return nil, failed("maintain partitions with", d.Schema, err)
	}
	steps := m.maintain
	if o.DryRun {
		steps = m.plan
	}
	var all []PartitionStep
	var problems []error
	for _, t := range tables {
		list, err := steps(ctx, t)
		all = append(all, list...)
		if err != nil {
			problems = append(problems, err)
			if ctx.Err() != nil {
				break
			}
		}
	}
	return all, errors.Join(problems...)
}

// A maintenance is one call of MaintainPartitions.
type maintenance struct {
	db          *sql.DB
	schema      string
	internal    string // the schema of internal functions
	at          time.Time
	lockTimeout time.Duration
	progress    func(PartitionStep)
}

const defaultLockTimeout = 100 * time.Millisecond

func newMaintenance(db *sql.DB, d data, o PartitionOptions) (*maintenance, error) {
	m := &maintenance{db: db, schema: d.Schema, internal: d.Internal, at: o.At, lockTimeout: o.LockTimeout, progress: o.Progress}
	if m.progress == nil {
		m.progress = func(PartitionStep) {}
	}
	if m.lockTimeout == 0 {
		m.lockTimeout = defaultLockTimeout
	}
	if m.lockTimeout < time.Millisecond || m.lockTimeout > 24*time.Hour {
		return nil, fmt.Errorf("migrations: PartitionOptions.LockTimeout: %v is out of range; want 1ms to 24h, or 0 for %v", o.LockTimeout, defaultLockTimeout)
	}
	return m, nil
}

// A managedTable is a table in partitioned_table.
type managedTable struct {
	oid  int64
	name string
}

// tables returns the tables to maintain. It also sets m.at, unless the options
// have it, so that all tables use the same time.
func (m *maintenance) tables(ctx context.Context, o PartitionOptions) ([]managedTable, error) {
	var list []managedTable
	err := inTx(ctx, m.db, func(tx *sql.Tx) error {
		if m.at.IsZero() {
			if err := tx.QueryRowContext(ctx, "SELECT pg_catalog.clock_timestamp()").Scan(&m.at); err != nil {
				return err
			}
		}
		parent := sql.NullString{String: o.Parent, Valid: o.Parent != ""}
		rows, err := tx.QueryContext(ctx, `SELECT c.oid::bigint, pg_catalog.format('%I.%I', n.nspname, c.relname)
			FROM `+m.internal+`.managed_tables($1::pg_catalog.text::pg_catalog.regclass, $2) t
			JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) t::pg_catalog.oid JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
			ORDER BY 2`, parent, !o.DryRun)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var t managedTable
			if err := rows.Scan(&t.oid, &t.name); err != nil {
				return err
			}
			list = append(list, t)
		}
		return rows.Err()
	})
	return list, err
}

// stepColumns are the columns of a step, planned or taken. An open end is NULL.
// Queries here name the schema of each function, and cast where an operator's types
// would differ from its arguments: the session's search_path may have functions and
// operators of other users that match the arguments better.
const stepColumns = `action, coalesce(partition, ''), CASE WHEN pg_catalog.isfinite(lower) THEN lower END, CASE WHEN pg_catalog.isfinite(upper) THEN upper END, coalesce(pg_catalog.array_to_string(statements, E';\n') OPERATOR(pg_catalog.||) ';', '')`

// plan returns the steps that a table needs.
func (m *maintenance) plan(ctx context.Context, t managedTable) (list []PartitionStep, err error) {
	defer func() {
		if err != nil {
			err = failed("plan partitions of "+t.name+" with", m.schema, err)
		}
	}()
	rows, err := m.db.QueryContext(ctx, "SELECT "+stepColumns+" FROM "+m.schema+".plan_partitions($1::bigint::pg_catalog.oid::pg_catalog.regclass, $2)", t.oid, m.at)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		s := PartitionStep{Table: t.name}
		if err := s.scan(rows); err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, rows.Err()
}

// maintain takes the steps that a table needs, until no step is left or a query
// fails.
func (m *maintenance) maintain(ctx context.Context, t managedTable) ([]PartitionStep, error) {
	var taken []PartitionStep
	var problems []error
	var run sql.NullString
	for {
		step, err := m.next(ctx, t, &run)
		if err != nil {
			problems = append(problems, failed("maintain partitions of "+t.name+" with", m.schema, err))
		}
		if step == nil {
			return taken, errors.Join(problems...)
		}
		taken = append(taken, *step)
		m.progress(*step)
		if errors.Is(step.Err, ErrPartition) {
			problems = append(problems, step.Err)
		}
	}
}

// next takes the next step of a run and updates run. If run is NULL, the server
// begins a new run. The step is nil if no step is left, or if next returns an
// error.
func (m *maintenance) next(ctx context.Context, t managedTable, run *sql.NullString) (*PartitionStep, error) {
	s := &PartitionStep{Table: t.name}
	var outcome, problem string
	err := inTx(ctx, m.db, func(tx *sql.Tx) error {
		err := s.scan(tx.QueryRowContext(ctx, "SELECT "+stepColumns+`, outcome, coalesce(problem, ''), run::pg_catalog.text
			FROM `+m.schema+`.next_partition_step($1::bigint::pg_catalog.oid::pg_catalog.regclass, $2, pg_catalog.make_interval(secs => $3::pg_catalog.float8), $4::pg_catalog.text::pg_catalog.jsonb)`,
			t.oid, m.at, m.lockTimeout.Seconds(), *run), &outcome, &problem, run)
		if errors.Is(err, sql.ErrNoRows) { // no steps are left
			s = nil
			return nil
		}
		return err
	})
	if err != nil || s == nil {
		return nil, err
	}
	switch outcome {
	case "skipped":
		s.Err = s.left(ErrLocked, problem)
	case "failed":
		s.Err = s.left(ErrPartition, problem)
	}
	return s, nil
}

func (s *PartitionStep) left(why error, problem string) error {
	object := s.Partition
	if object == "" {
		object = "partitions of " + s.Table
	}
	return fmt.Errorf("migrations: %s %s: %s: %w", s.Action, object, problem, why)
}

func (s *PartitionStep) scan(row interface{ Scan(...any) error }, more ...any) error {
	var from, to sql.NullTime
	if err := row.Scan(append([]any{&s.Action, &s.Partition, &from, &to, &s.SQL}, more...)...); err != nil {
		return err
	}
	s.From, s.To = from.Time, to.Time
	return nil
}
