package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Errors of a [PartitionStep] wrap one of these, so compare with [errors.Is].
var (
	// ErrLocked: another transaction held a lock in each attempt. The step, and the
	// steps of the table after it, are left for the next call.
	ErrLocked = errors.New("lock held by another transaction")
	// ErrPartition: the database refused the step. The error says why.
	ErrPartition = errors.New("failed partition step")
)

// PartitionOptions are for [MaintainPartitions]. The zero value maintains all
// tables that are managed.
type PartitionOptions struct {
	// Parent is the only table to maintain, as SQL would name it: events, or
	// app."Events". It has to be managed. Empty: all that are.
	Parent string
	// LockTimeout is how long an attempt at a step waits for a lock while others
	// wait behind it; in whole milliseconds, at most a day. 0: 100 ms. A step is
	// attempted six times, with pauses of up to 1, 2, 4, 8 and 16 times LockTimeout,
	// and 5 s at most, between the attempts. Before that, each attempt waits up to 2 s
	// for locks that block no reads or writes. While a manual VACUUM or a CREATE INDEX
	// CONCURRENTLY holds such a lock, a call can take about 15 s per table.
	LockTimeout time.Duration
	// At is the time to maintain the partitions for. Zero: the server's.
	At time.Time
	// DryRun lists the steps that the tables need, and takes none.
	DryRun bool
}

// A PartitionStep is one thing that was done to a table's partitions, or that
// would be.
type PartitionStep struct {
	// Table is the partitioned table, and Partition the partition of the step. Both
	// are schema-qualified and quoted as in SQL.
	Table, Partition string
	// Action is create, default, drain, detach or drop, or plan if the table's steps
	// couldn't be planned, for the reason in Err; Partition is empty then.
	Action string
	// From and To are the time of the partition, without the end. They are zero
	// where it has no end, for a default partition, and without a partition.
	From, To time.Time
	// SQL is what was executed, or would be, in one transaction.
	SQL string
	// Err is nil if the step was taken or only planned, and wraps [ErrLocked] or
	// [ErrPartition] if it had to be left.
	Err error
}

// MaintainPartitions creates the partitions that are needed next, moves rows out
// of default partitions, and detaches or drops partitions older than the
// retention, as the SQL function manage_partitions recorded it for each table.
// Call it every few hours, and at least several times in the time that
// partitions are created ahead for.
//
// Each step is a transaction of its own. A step that doesn't get its locks is
// left with [ErrLocked] in its Err, which is no error of the call: the next call
// takes it, and the steps of the table after it. A step that fails is left with
// [ErrPartition], and the call returns these errors joined, after all other
// steps. Several processes may call at the same time.
//
// It does the same as CALL maintain_partitions(), by the same SQL functions, and
// needs the same privileges; the steps of both are in the table partition_log.
func MaintainPartitions(ctx context.Context, db *sql.DB, c Config, o PartitionOptions) ([]PartitionStep, error) {
	d, err := c.data()
	if err != nil {
		return nil, err
	}
	m, err := newMaintenance(db, d.Schema, o)
	if err != nil {
		return nil, err
	}
	tables, err := m.tables(ctx, o)
	if err != nil {
		if worker := refuseCitusWorker(ctx, db); errors.Is(worker, ErrCitusWorker) {
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
	at          time.Time
	lockTimeout time.Duration
}

const defaultLockTimeout = 100 * time.Millisecond

func newMaintenance(db *sql.DB, schema string, o PartitionOptions) (*maintenance, error) {
	m := &maintenance{db: db, schema: schema, at: o.At, lockTimeout: o.LockTimeout}
	if m.lockTimeout == 0 {
		m.lockTimeout = defaultLockTimeout
	}
	if m.lockTimeout < time.Millisecond || m.lockTimeout > 24*time.Hour {
		return nil, fmt.Errorf("migrations: PartitionOptions.LockTimeout: %v is out of range; want 1ms to 24h, or 0 for %v", o.LockTimeout, defaultLockTimeout)
	}
	return m, nil
}

// A managedTable is one whose partitions are maintained.
type managedTable struct {
	oid  int64
	name string
}

// tables lists the tables, and sets the time if none was given: it is the same
// for all of them.
func (m *maintenance) tables(ctx context.Context, o PartitionOptions) ([]managedTable, error) {
	var list []managedTable
	err := inTx(ctx, m.db, func(tx *sql.Tx) error {
		if m.at.IsZero() {
			if err := tx.QueryRowContext(ctx, "SELECT clock_timestamp()").Scan(&m.at); err != nil {
				return err
			}
		}
		parent := sql.NullString{String: o.Parent, Valid: o.Parent != ""}
		rows, err := tx.QueryContext(ctx, `SELECT c.oid::bigint, format('%I.%I', n.nspname, c.relname)
			FROM `+m.schema+`.managed_tables($1::text::regclass, $2) t
			JOIN pg_catalog.pg_class c ON c.oid = t JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
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

// columns of a step that a plan has too; what has no end is NULL.
const stepColumns = `action, coalesce(partition, ''), CASE WHEN pg_catalog.isfinite(lower) THEN lower END, CASE WHEN pg_catalog.isfinite(upper) THEN upper END, coalesce(array_to_string(statements, E';\n') || ';', '')`

// plan lists the steps that a table needs.
func (m *maintenance) plan(ctx context.Context, t managedTable) (list []PartitionStep, err error) {
	defer func() {
		if err != nil {
			err = failed("plan partitions of "+t.name+" with", m.schema, err)
		}
	}()
	rows, err := m.db.QueryContext(ctx, "SELECT "+stepColumns+" FROM "+m.schema+".plan_partitions($1::bigint::oid::regclass, $2)", t.oid, m.at)
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

// maintain takes the steps that a table needs. It stops when none is left, or
// when a query fails.
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
		if errors.Is(step.Err, ErrPartition) {
			problems = append(problems, step.Err)
		}
	}
}

// next takes the next step of a table's run, which the server begins where run
// is NULL, and sets run to go on with. The step is nil if there is none, or
// with an error.
func (m *maintenance) next(ctx context.Context, t managedTable, run *sql.NullString) (*PartitionStep, error) {
	s := &PartitionStep{Table: t.name}
	var outcome, problem string
	err := inTx(ctx, m.db, func(tx *sql.Tx) error {
		err := s.scan(tx.QueryRowContext(ctx, "SELECT "+stepColumns+`, outcome, coalesce(problem, ''), run::text
			FROM `+m.schema+`.next_partition_step($1::bigint::oid::regclass, $2, $3::bigint * interval '1 millisecond', $4::text::jsonb)`,
			t.oid, m.at, m.lockTimeout.Milliseconds(), *run), &outcome, &problem, run)
		if errors.Is(err, sql.ErrNoRows) { // nothing is left to do
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
	what := s.Partition
	if what == "" {
		what = "partitions of " + s.Table
	}
	return fmt.Errorf("migrations: %s %s: %s: %w", s.Action, what, problem, why)
}

func (s *PartitionStep) scan(row interface{ Scan(...any) error }, more ...any) error {
	var from, to sql.NullTime
	if err := row.Scan(append([]any{&s.Action, &s.Partition, &from, &to, &s.SQL}, more...)...); err != nil {
		return err
	}
	s.From, s.To = from.Time, to.Time
	return nil
}
