package rekey

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A job is a call of a step.
type job struct {
	conn  *sql.Conn
	o     Options
	state state
}

// run locks the job against other programs, and calls f.
func run(ctx context.Context, db *sql.DB, o Options, step Step, f func(j *job) error) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("rekey: %s: %w", step, err)
	}
	defer conn.Close()
	err = func() error {
		var locked bool
		if err := conn.QueryRowContext(ctx, "SELECT pg_catalog.pg_try_advisory_lock(pg_catalog.hashtext('sortkey rekey'), pg_catalog.hashtext($1))", o.Schema).Scan(&locked); err != nil {
			return err
		}
		if !locked {
			return fmt.Errorf("%w with schema %s; wait for it, or, if the program was killed, for the server to notice it", ErrBusy, o.Schema)
		}
		var settings [3]string
		defer func() { unlock(ctx, conn, o.Schema, settings) }()
		err := conn.QueryRowContext(ctx, "SELECT pg_catalog.current_setting('lock_timeout'), pg_catalog.current_setting('statement_timeout'), pg_catalog.current_setting('search_path')").Scan(&settings[0], &settings[1], &settings[2])
		if err != nil {
			return err
		}
		// CREATE INDEX CONCURRENTLY waits for transactions as for locks.
		if _, err := conn.ExecContext(ctx, "SELECT pg_catalog.set_config('lock_timeout', '0', false), pg_catalog.set_config('statement_timeout', '0', false), pg_catalog.set_config('search_path', 'pg_catalog', false)"); err != nil {
			return err
		}
		s, err := readState(ctx, conn, o.Schema)
		if err != nil {
			return err
		}
		return f(&job{conn, o, s})
	}()
	if err != nil {
		return fmt.Errorf("rekey: %s: %w", step, err)
	}
	return nil
}

// unlock ends the advisory lock and restores the settings. If that fails, it closes the
// connection, which does both.
func unlock(ctx context.Context, conn *sql.Conn, schema string, settings [3]string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, err := conn.ExecContext(ctx, `SELECT pg_catalog.set_config('lock_timeout', $1, false), pg_catalog.set_config('statement_timeout', $2, false), pg_catalog.set_config('search_path', $3, false),
		pg_catalog.pg_advisory_unlock(pg_catalog.hashtext('sortkey rekey'), pg_catalog.hashtext($4))`, settings[0], settings[1], settings[2], schema)
	if err != nil {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // don't return it to the pool
	}
}

func (j *job) wrongStep(step Step) error {
	if !j.state.exists {
		return fmt.Errorf("%w: no rekey with schema %s has begun; run expand", ErrStep, j.o.Schema)
	}
	return fmt.Errorf("%w: %s can't run now; the next step is %s", ErrStep, step, j.state.next())
}

// perform runs the actions that are left of a step.
func (j *job) perform(ctx context.Context, step Step) error {
	for _, a := range ofStep(j.state.job.Actions[j.state.position:], step) {
		if err := j.act(ctx, a); err != nil {
			return fmt.Errorf("%s: %w", a.Title, err)
		}
		j.o.Progress(Progress{Step: a.Step, Action: a.Title, Done: true})
	}
	return nil
}

func (j *job) act(ctx context.Context, a Action) error {
	switch a.Kind {
	case kindSwap:
		return j.retry(ctx, a, func(int) error { return j.swap(ctx, a) })
	case kindIndex:
		if err := j.createIndex(ctx, a); err != nil {
			return err
		}
	case kindBackfill:
		if err := j.started(ctx, a); err != nil {
			return err
		}
		if err := j.backfill(ctx, a); err != nil {
			return err
		}
	case kindCheck:
		if err := j.check(ctx, a); err != nil {
			return err
		}
	}
	return j.retry(ctx, a, func(int) error {
		return j.tx(ctx, j.o.LockTimeout, func(tx *sql.Tx) error {
			if a.Step == StepExpand {
				if err := j.begin(ctx, tx); err != nil {
					return err
				}
			}
			if a.Kind == kindDDL {
				if err := j.execute(ctx, tx, a.SQL); err != nil {
					return err
				}
			}
			return j.advance(ctx, tx, a)
		})
	})
}

// tx runs f in a transaction.
func (j *job) tx(ctx context.Context, lockTimeout time.Duration, f func(tx *sql.Tx) error) error {
	tx, err := j.conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit, there is nothing to roll back
	_, err = tx.ExecContext(ctx, fmt.Sprintf("SELECT set_config('search_path', 'pg_catalog', true), set_config('lock_timeout', '%d', true), set_config('idle_in_transaction_session_timeout', '0', true)",
		lockTimeout.Milliseconds()))
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// execute runs the statements of an action. A LOCK TABLE of many tables waits for each of
// them, so the sum is limited, too.
func (j *job) execute(ctx context.Context, tx *sql.Tx, statements []string) error {
	for _, s := range statements {
		lock := strings.HasPrefix(s, "LOCK TABLE ")
		if lock {
			if _, err := tx.ExecContext(ctx, fmt.Sprintf("SET LOCAL statement_timeout = %d", 3*j.o.LockTimeout.Milliseconds())); err != nil {
				return err
			}
		}
		if _, err := tx.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("%w\nin: %s", err, s)
		}
		if lock {
			if _, err := tx.ExecContext(ctx, "SET LOCAL statement_timeout = 0"); err != nil {
				return err
			}
		}
	}
	return nil
}

// retry repeats f with pauses while it doesn't get its locks.
func (j *job) retry(ctx context.Context, a Action, f func(attempt int) error) error {
	deadline := time.Now().Add(j.o.LockWait)
	for attempt := 0; ; attempt++ {
		err := f(attempt)
		state := sqlState(err)
		if ctx.Err() != nil {
			return cmp.Or(err, ctx.Err())
		}
		switch state {
		case "55P03", "57014", "40P01", "40001": // lock_not_available, query_canceled, deadlock_detected, serialization_failure
		case "23514", "23505", "23503": // a constraint or a unique index
			return fmt.Errorf("%w: run backfill again, and then this step: %w", ErrInconsistent, err)
		default:
			return err
		}
		pause := jitter(attempt)
		if time.Now().Add(pause).After(deadline) {
			return fmt.Errorf("%w for %v; find it in pg_locks, and repeat the step: %w", ErrLocked, j.o.LockWait, err)
		}
		if attempt > 0 && attempt%10 == 0 {
			j.o.Progress(Progress{Step: a.Step, Action: a.Title, Waiting: "another transaction holds a lock"})
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// createIndex creates an index that doesn't exist or is invalid. CREATE INDEX CONCURRENTLY
// waits for all transactions, without blocking others.
func (j *job) createIndex(ctx context.Context, a Action) error {
	if err := j.started(ctx, a); err != nil {
		return err
	}
	var valid sql.NullBool
	err := j.conn.QueryRowContext(ctx, "SELECT (SELECT i.indisvalid FROM pg_catalog.pg_index i WHERE i.indexrelid = pg_catalog.to_regclass($1))", a.Index).Scan(&valid)
	if err != nil || valid.Bool {
		return err
	}
	if valid.Valid {
		if _, err := j.conn.ExecContext(ctx, "DROP INDEX CONCURRENTLY "+a.Index); err != nil {
			return err
		}
	}
	return j.retry(ctx, a, func(attempt int) error {
		if attempt > 0 {
			if _, err := j.conn.ExecContext(ctx, "DROP INDEX CONCURRENTLY IF EXISTS "+a.Index); err != nil {
				return err
			}
		}
		_, err := j.conn.ExecContext(ctx, a.SQL[0])
		return err
	})
}

// check runs queries whose rows are findings.
func (j *job) check(ctx context.Context, a Action) error {
	if err := j.started(ctx, a); err != nil {
		return err
	}
	var findings []string
	for _, query := range a.SQL {
		list, err := texts(ctx, j.conn, query)
		if err != nil {
			return err
		}
		findings = append(findings, list...)
	}
	return inconsistent(findings)
}

func texts(ctx context.Context, db interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}, query string, args ...any,
) (list []string, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, rows.Err()
}

func inconsistent(findings []string) error {
	if len(findings) == 0 {
		return nil
	}
	return fmt.Errorf("%w:\n  %s", ErrInconsistent, strings.Join(findings, "\n  "))
}

// swap ends the job: it runs the transaction of contract or abort, and compares the catalog
// before it commits.
func (j *job) swap(ctx context.Context, a Action) error {
	if a.Step == StepContract {
		if err := j.started(ctx, a); err != nil {
			return err
		}
	}
	return j.tx(ctx, j.o.LockTimeout, func(tx *sql.Tx) error {
		statements := a.SQL
		if strings.HasPrefix(statements[0], "LOCK TABLE ") {
			if err := j.execute(ctx, tx, statements[:1]); err != nil {
				return err
			}
			statements = statements[1:]
		}
		before, err := j.state.job.Objects.fingerprint(ctx, tx)
		if err != nil {
			return err
		}
		if err := j.execute(ctx, tx, statements); err != nil {
			return err
		}
		after, err := j.state.job.Objects.fingerprint(ctx, tx)
		if err != nil {
			return err
		}
		if a.Step == StepContract { // the types of the keys differ
			before, after = withoutTypes(before), withoutTypes(after)
		}
		if err := inconsistent(difference(before, after)); err != nil {
			return fmt.Errorf("%w\nThese objects changed since expand, and nothing has changed now. Restore their state of then, or run abort", err)
		}
		return nil
	})
}

// difference returns the lines that only one of two fingerprints has.
func difference(before, after []string) (findings []string) {
	for _, s := range before {
		if !slices.Contains(after, s) {
			findings = append(findings, "would be lost: "+s)
		}
	}
	for _, s := range after {
		if !slices.Contains(before, s) {
			findings = append(findings, "would be new: "+s)
		}
	}
	return findings
}
