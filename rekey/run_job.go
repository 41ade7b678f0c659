package rekey

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sortkey/sortkey/internal/pgerror"
	"github.com/sortkey/sortkey/internal/trust"
	"github.com/sortkey/sortkey/migrations"
)

// A job is a call of a step.
type job struct {
	db    *sql.DB
	conn  *sql.Conn
	o     Options
	state state
	guard guard
}

// run locks the job against other programs, and calls f. The session acts as the owner of
// the job, or as role before there is a job.
func run(ctx context.Context, db *sql.DB, o Options, step Step, role string, f func(j *job) error) error {
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
		if err := conn.QueryRowContext(ctx, "SELECT pg_catalog.pg_try_advisory_lock(pg_catalog.hashtext('sortkey rekey'), pg_catalog.hashtext($1))", Schema).Scan(&locked); err != nil {
			return err
		}
		if !locked {
			return fmt.Errorf("%w; wait for it, or, if the program was killed, for the server to notice it", ErrBusy)
		}
		var before string
		defer func() { unlock(ctx, conn, before) }()
		err := conn.QueryRowContext(ctx, "SELECT (pg_catalog.json_object_agg(key, value))::pg_catalog.text FROM (SELECT key, pg_catalog.current_setting(key, true) FROM (SELECT pg_catalog.json_object_keys($1::pg_catalog.text::pg_catalog.json) UNION ALL SELECT 'role') k (key)) s (key, value) WHERE value IS NOT NULL", settings).Scan(&before)
		if err != nil {
			return err
		}
		if _, err := conn.ExecContext(ctx, setSettings, settings, false); err != nil {
			return err
		}
		if err := checkJob(ctx, conn, nil); err != nil {
			return err
		}
		role, err := jobOwner(ctx, conn, role)
		if err != nil {
			return err
		}
		if role != "" {
			if _, err := conn.ExecContext(ctx, "SELECT pg_catalog.set_config('role', $1::pg_catalog.text, false)", role); err != nil {
				return roleError(err, role)
			}
		}
		s, err := readState(ctx, conn)
		if err != nil {
			return err
		}
		if err := checkJob(ctx, conn, s.tables()); err != nil {
			return err
		}
		missing, err := s.missing(ctx, conn)
		if err != nil {
			return err
		}
		if err := inconsistent(missing); err != nil {
			return err
		}
		return f(&job{db: db, conn: conn, o: o, state: s})
	}()
	if cause := ctx.Err(); err != nil && cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err) // of a connection that is closed, for example
	}
	if err != nil {
		return fmt.Errorf("rekey: %s: %w", step, err)
	}
	return nil
}

// settings are the settings of the session of a step. CREATE INDEX CONCURRENTLY waits for
// transactions as for locks, so lock_timeout is set where it is needed. Parallel workers would
// take processors from the programs, and need shared memory, which is scarce in a container.
// The checks join whole tables, so they have as much memory as an index build has by default.
// A transaction that waits for a lock must see what the other one has written, so each statement
// has a snapshot of its own.
// The last ones determine how the catalog prints expressions, which a fingerprint compares.
// Before Postgres 17, there is no transaction_timeout.
const settings = `{"lock_timeout": "0", "statement_timeout": "0", "transaction_timeout": "0", "idle_session_timeout": "0", "idle_in_transaction_session_timeout": "0", "max_parallel_workers_per_gather": "0", "work_mem": "64MB", "default_tablespace": "", "default_transaction_isolation": "read committed", "search_path": "pg_catalog",
	"quote_all_identifiers": "off", "standard_conforming_strings": "on", "datestyle": "ISO", "timezone": "UTC", "intervalstyle": "postgres", "extra_float_digits": "1", "bytea_output": "hex"}`

const setSettings = "SELECT pg_catalog.set_config(key, value, $2) FROM pg_catalog.json_each_text($1::pg_catalog.text::pg_catalog.json) WHERE pg_catalog.current_setting(key, true) IS NOT NULL"

// unlock ends the advisory lock and restores the settings. If that fails, it closes the
// connection, which does both.
func unlock(ctx context.Context, conn *sql.Conn, before string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, err := conn.ExecContext(ctx, setSettings, before, false)
	if err == nil {
		_, err = conn.ExecContext(ctx, "SELECT pg_catalog.pg_advisory_unlock(pg_catalog.hashtext('sortkey rekey'), pg_catalog.hashtext($1))", Schema)
	}
	if err != nil {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // don't return it to the pool
	}
}

func (j *job) wrongStep(step Step) error {
	if !j.state.exists {
		return fmt.Errorf("%w: no rekey has begun; run expand", ErrStep)
	}
	back := ""
	if j.state.swaps() > 0 && j.state.next() != StepUndo && !j.state.cleaned() {
		back = ", and undo is the way back"
	}
	return fmt.Errorf("%w: %s can't run now; the next step is %s%s", ErrStep, step, j.state.next(), back)
}

// perform runs the actions that are left of a step.
func (j *job) perform(ctx context.Context, step Step) error {
	for _, a := range ofStep(j.state.job.Actions[j.state.position:], step) {
		begun := time.Now()
		a = j.withAdded(a)
		if err := j.act(ctx, a); err != nil {
			return fmt.Errorf("%s: %w", a.Title, err)
		}
		took := time.Since(begun)
		j.o.Progress(Progress{Step: a.Step, Action: a.Title, Done: true})
		if a.Kind != kindEnd && slices.ContainsFunc(a.SQL, func(s string) bool { return isLock(s) && !strings.HasSuffix(s, weakLock) }) {
			// Programs may have waited for this time. Let them go on before the next action.
			if err := sleep(ctx, min(took, 3*j.o.LockTimeout)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (j *job) act(ctx context.Context, a action) error {
	switch a.Kind {
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
	case kindTrial:
		err := j.retry(ctx, a, func(int) error {
			return j.tx(ctx, j.o.LockTimeout, func(tx *sql.Tx) error { return j.try(ctx, tx, a) })
		})
		if !errors.Is(err, errTried) {
			return err
		}
	}
	if j.state.exists && (a.Kind == kindCheck || a.Kind == kindTrial) && a.Step != StepValidate {
		// A step that fails here has changed nothing, and begins with its checks again.
		j.state.position++
		return nil
	}
	return j.retry(ctx, a, func(int) error {
		next := j.state
		err := j.tx(ctx, j.o.LockTimeout, func(tx *sql.Tx) (err error) {
			if !j.state.exists {
				if err := j.begin(ctx, tx, a); err != nil {
					return err
				}
			}
			if slices.Contains([]string{kindDDL, kindSwap, kindEnd}, a.Kind) {
				if err := j.change(ctx, tx, a); err != nil {
					return err
				}
			}
			if next.added, err = j.mapAdded(ctx, tx, a); err != nil || a.Kind == kindEnd {
				return err
			}
			return next.advance(ctx, tx, a)
		})
		if err == nil {
			j.state = next
		}
		return err
	})
}

// tx runs f in a transaction.
func (j *job) tx(ctx context.Context, lockTimeout time.Duration, f func(tx *sql.Tx) error) error {
	tx, err := j.conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit, there is nothing to roll back
	_, err = tx.ExecContext(ctx, fmt.Sprintf("SELECT set_config('search_path', 'pg_catalog', true), set_config('lock_timeout', '%d', true)",
		lockTimeout.Milliseconds()))
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// execute runs statements of an action.
func (j *job) execute(ctx context.Context, tx *sql.Tx, a action, statements []string) error {
	for _, s := range statements {
		var err error
		if isLock(s) {
			err = j.lock(ctx, tx, a, s)
		} else {
			_, err = tx.ExecContext(ctx, s)
		}
		if sqlState(err) == pgerror.DependentObjects {
			err = fmt.Errorf("%w: %w (%s); drop these objects, and repeat the step", ErrInconsistent, err, pgerror.Detail(err))
		}
		if err != nil {
			return fmt.Errorf("%w\nin: %s", err, s)
		}
	}
	return nil
}

func isLock(statement string) bool { return strings.HasPrefix(statement, "LOCK TABLE ") }

// lock runs a LOCK TABLE. A weak lock waits until an autovacuum ends. The attempts to get
// another lock are repeated in the same transaction, so that no autovacuum begins meanwhile.
// Each of them waits for one table after another, so the sum is limited, too.
func (j *job) lock(ctx context.Context, tx *sql.Tx, a action, statement string) error {
	perTable, sum := milliseconds(j.o.LockTimeout), milliseconds(3*j.o.LockTimeout)
	run := func(perTable, sum, statement string) error {
		_, err := tx.ExecContext(ctx, "SELECT set_config('lock_timeout', "+perTable+", true), set_config('statement_timeout', "+sum+", true)")
		if err == nil {
			_, err = tx.ExecContext(ctx, statement)
		}
		return err
	}
	if strings.HasSuffix(statement, weakLock) {
		return run("(4000 + 1000 * extract(epoch FROM current_setting('deadlock_timeout')::interval))::integer::text", "'0'", statement)
	}
	return j.retry(ctx, a, func(int) error {
		if _, err := tx.ExecContext(ctx, "SAVEPOINT attempt"); err != nil {
			return err
		}
		began := time.Now()
		err := run(perTable, sum, statement)
		if err == nil { // The statement that ends the limit of the sum is subject to it.
			err = run(perTable, "'0'", "RELEASE SAVEPOINT attempt")
		}
		if sqlState(err) == pgerror.QueryCanceled && time.Since(began) >= 3*j.o.LockTimeout {
			err = slowLock{err} // not pg_cancel_backend
		}
		if sqlState(err) != "" {
			if _, err := tx.ExecContext(ctx, "ROLLBACK TO SAVEPOINT attempt"); err != nil {
				return err
			}
		}
		return err
	})
}

// A slowLock is an attempt that statement_timeout has ended, which is like lock_timeout.
type slowLock struct{ error }

func (slowLock) SQLState() string { return pgerror.LockNotAvailable }

func milliseconds(d time.Duration) string { return literal(strconv.FormatInt(d.Milliseconds(), 10)) }

// isLockFailure reports whether a SQLSTATE means that a statement didn't get its locks.
func isLockFailure(state string) bool {
	return state == pgerror.LockNotAvailable || state == "40P01" || state == "40001" // deadlock_detected, serialization_failure
}

// retry repeats f with pauses while it doesn't get its locks.
func (j *job) retry(ctx context.Context, a action, f func(attempt int) error) error {
	begun := time.Now()
	reported, deadline := begun, begun.Add(j.o.LockWait)
	for attempt := 0; ; attempt++ {
		err := f(attempt)
		state := sqlState(err)
		if ctx.Err() != nil {
			return cmp.Or(err, ctx.Err())
		}
		if errors.Is(err, ErrLocked) { // of attempts in f
			return err
		}
		switch {
		case isLockFailure(state):
		case state == "55006": // object_in_use: until a second after abort, its node numbers can't be reserved
			if time.Since(begun) > 5*time.Second {
				return err
			}
		case slices.Contains([]string{"23514", "23505", "23503"}, state): // a constraint or a unique index
			return j.violated(ctx, a, err)
		default:
			return err
		}
		if time.Since(reported) > 3*time.Second {
			reported = time.Now()
			j.o.Progress(Progress{Step: a.Step, Action: a.Title, Waiting: j.holder(ctx)})
		}
		pause := jitter(j.o.LockTimeout, attempt)
		if time.Now().Add(pause).After(deadline) {
			return fmt.Errorf("%w for %v: %s; end it, and repeat the step: %w", ErrLocked, j.o.LockWait, j.holder(ctx), err)
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// violated returns the error for rows that violate a constraint or a unique index on the new columns. It names
// the rows without a new key, and the rows with keys of different rows, each with its remedy.
func (j *job) violated(ctx context.Context, a action, err error) error {
	if a.Step == StepBackfill || a.Step == StepValidate {
		for _, check := range ofStep(j.state.job.Actions, StepValidate) {
			if check.Title != compareKeys {
				continue
			}
			if found := j.check(ctx, check); errors.Is(found, ErrInconsistent) {
				return fmt.Errorf("%w\n%w", found, err)
			}
		}
	}
	return fmt.Errorf("%w: correct the rows, and repeat the step: %w", ErrInconsistent, err)
}

// holder describes the oldest other transaction that holds a lock on one of the tables.
func (j *job) holder(ctx context.Context) string {
	// In a transaction, the server reads pg_stat_activity once.
	if _, err := j.conn.ExecContext(ctx, "SELECT pg_catalog.pg_stat_clear_snapshot()"); err != nil {
		return "another transaction holds a lock"
	}
	holders, err := texts(ctx, j.conn, query("holder", nil), pgArray(j.state.tables()))
	if err != nil || len(holders) == 0 {
		return "another transaction holds a lock"
	}
	return holders[0]
}

// createIndex creates an index that doesn't exist or is invalid. CREATE INDEX CONCURRENTLY
// waits for all transactions, without blocking others.
func (j *job) createIndex(ctx context.Context, a action) error {
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
func (j *job) check(ctx context.Context, a action) error {
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

// A textQuerier is a *sql.DB, *sql.Conn or *sql.Tx.
type textQuerier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func texts(ctx context.Context, db textQuerier, query string, args ...any) (list []string, err error) {
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

// change runs the statements of an action, and compares the catalog before and after.
func (j *job) change(ctx context.Context, tx *sql.Tx, a action) error {
	if a.Objects == nil {
		return j.execute(ctx, tx, a, a.SQL)
	}
	locks := 0
	for isLock(a.SQL[locks]) {
		locks++
	}
	if err := j.execute(ctx, tx, a, a.SQL[:locks]); err != nil {
		return err
	}
	before, err := a.Objects.fingerprint(ctx, tx)
	if err != nil {
		return err
	}
	if err := j.execute(ctx, tx, a, a.SQL[locks:]); err != nil {
		return err
	}
	after, err := a.Objects.fingerprint(ctx, tx)
	if err != nil {
		return err
	}
	before, after = without(before, queryPrefix), without(after, queryPrefix) // names of relations differ
	if a.Kind == kindSwap || a.Step == StepCleanup {                          // the types of the keys differ
		before, after = without(before, typePrefix), without(after, typePrefix)
	}
	findings := difference(before, after)
	if a.Check != "" {
		list, err := texts(ctx, tx, a.Check)
		if err != nil {
			return err
		}
		findings = append(findings, list...)
	}
	if err := inconsistent(findings); err != nil {
		return fmt.Errorf("%w\nNothing has changed. Restore the state that these objects had before the rekey, and repeat the step", err)
	}
	return nil
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

// checkJob returns [migrations.ErrUntrusted] if an untrusted role could have written the plan
// of a job, or the code that its step runs.
func checkJob(ctx context.Context, db trust.Beginner, tables []string) error {
	var findings []trust.Finding
	err := trust.Read(ctx, db, func(tx *sql.Tx) (err error) {
		findings, err = trust.Find(ctx, tx, trust.Schemas([]string{Schema}, nil))
		if err == nil && len(findings) == 0 {
			findings, err = attached(ctx, tx)
		}
		if err == nil && len(findings) == 0 && len(tables) > 0 {
			var oids []string
			oids, err = texts(ctx, tx, "SELECT pg_catalog.to_regclass(x)::pg_catalog.oid::pg_catalog.text FROM pg_catalog.unnest($1::pg_catalog.text::pg_catalog.text[]) x WHERE pg_catalog.to_regclass(x) IS NOT NULL", pgArray(tables))
			if err == nil {
				findings, err = untrusted(ctx, tx, oids)
			}
		}
		return err
	})
	if err != nil || len(findings) == 0 {
		return err
	}
	return fmt.Errorf("%s (%s); connect as the role that ran expand, or, if schema %s isn't yours, drop it: %w", trust.List(findings), trust.Rule, Schema, migrations.ErrUntrusted)
}

// attached returns the triggers, rules, policies and children of the tables of a job, which has none.
// The condition of a trigger can run code, even if the function of the trigger is the server's.
func attached(ctx context.Context, tx *sql.Tx) (findings []trust.Finding, err error) {
	found, err := trust.Find(ctx, tx, trust.Definitions([]string{Schema}))
	for _, f := range found {
		part := trust.Part(f.Reason)
		kind, _, _ := strings.Cut(part, " ")
		if strings.HasPrefix(f.Object, Schema+".rekey_") && slices.Contains([]string{"trigger", "rule", "policy", "row", "child"}, kind) {
			findings = append(findings, trust.Finding{Object: "table " + f.Object, Reason: "has " + part})
		}
	}
	return findings, err
}

// jobOwner returns the role that a session acts as in a step: that of the plan's owner, or
// the session's if it is a superuser.
func jobOwner(ctx context.Context, conn *sql.Conn, fallback string) (string, error) {
	var owner sql.NullString
	err := conn.QueryRowContext(ctx, `SELECT CASE WHEN u.rolsuper THEN current_user ELSE (SELECT pg_catalog.pg_get_userbyid(c.relowner) FROM pg_catalog.pg_class c
		JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1::text AND c.relname = 'rekey_state') END FROM pg_catalog.pg_roles u WHERE u.rolname = current_user`, Schema).Scan(&owner)
	return cmp.Or(owner.String, fallback), err
}
