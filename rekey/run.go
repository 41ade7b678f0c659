package rekey

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sortkey/sortkey/migrations"
)

// Inspect returns the plan of a rekey. It changes nothing, and takes only the locks of
// SELECT. It reads the tables to check their values.
//
// The error is not nil if Inspect fails, or if the Options are invalid. Properties of the
// tables that rekey can't carry over are Problems of the plan.
func Inspect(ctx context.Context, db *sql.DB, spec Spec, o Options) (*Plan, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	m, err := inspect(ctx, db, spec, o)
	if err != nil {
		return nil, fmt.Errorf("rekey: inspect: %w", err)
	}
	return m.result(o), nil
}

func inspect(ctx context.Context, db *sql.DB, spec Spec, o Options) (*model, error) {
	if len(spec.Keys) == 0 {
		return nil, errors.New("no keys; name a table in Spec.Keys")
	}
	config, err := migrations.Installed(ctx, db, o.Config.Schema)
	if err != nil {
		return nil, err
	}
	config.Schema = o.Config.Schema
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() //nolint:errcheck // it only read
	m := &model{}
	if err := m.find(ctx, tx, spec, formats(config)); err != nil {
		return nil, err
	}
	if err := m.read(ctx, tx); err != nil {
		return nil, err
	}
	return m, m.check(ctx, tx, o)
}

func (m *model) result(o Options) *Plan {
	p := &Plan{Problems: m.problems, Notes: m.notes}
	for _, r := range m.relations {
		t := Table{Name: r.Name, Rows: int64(r.Rows)}
		for _, c := range r.columns {
			column := Column{Name: c.Name, NewName: "rekey_" + c.Name, OldType: c.Type, NewType: c.key.format.sqlType}
			if !c.root {
				column.To = c.key.root.rel.Name
			}
			t.Columns = append(t.Columns, column)
		}
		p.Tables = append(p.Tables, t)
	}
	if len(m.problems) == 0 {
		p.Actions = m.actions(o)
	}
	return p
}

// Expand inspects the tables, and adds the new columns and the triggers that keep both keys
// equal, in one transaction. Existing rows have NULL in the new columns until Backfill.
//
// If Inspect finds problems, Expand returns an error that wraps [ErrRefused].
func Expand(ctx context.Context, db *sql.DB, spec Spec, o Options) error {
	return run(ctx, db, o, StepExpand, func(j *job) error {
		if j.state.exists {
			if j.state.step == StepExpand && equal(j.state.job.Spec, spec) {
				return nil // a repeated call
			}
			return j.wrongStep(StepExpand)
		}
		m, err := inspect(ctx, db, spec, j.o)
		if err != nil {
			return err
		}
		if len(m.problems) > 0 {
			texts := each(m.problems, func(p Problem) string { return "\n  " + p.String() })
			return fmt.Errorf("%w:%s", ErrRefused, strings.Join(texts, ""))
		}
		j.state = state{job: jobOf(m, spec, j.o), step: StepExpand}
		return j.perform(ctx, StepExpand)
	})
}

// equal compares two Specs, such as one that was stored.
func equal(a, b Spec) bool {
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && string(x) == string(y)
}

// Backfill fills the new columns of existing rows, in batches, and repeats that until no row
// is left. It can be canceled and repeated at any time until Contract.
func Backfill(ctx context.Context, db *sql.DB, o Options) error {
	return run(ctx, db, o, StepBackfill, func(j *job) error {
		if !j.state.exists {
			return j.wrongStep(StepBackfill)
		}
		if j.state.next() != StepBackfill {
			left, err := j.rowsLeft(ctx)
			if err != nil || !left {
				return err
			}
			if err := j.rewind(ctx, StepBackfill); err != nil {
				return err
			}
		}
		return j.perform(ctx, StepBackfill)
	})
}

// Validate creates the indexes and the constraints of the new columns, compares both keys
// of all rows, and creates the views for programs of the new version.
//
// If a row has no new key, such as a row of a transaction that began before Backfill ended,
// Validate returns an error that wraps [ErrInconsistent]. Run Backfill and Validate again.
func Validate(ctx context.Context, db *sql.DB, o Options) error {
	return run(ctx, db, o, StepValidate, func(j *job) error {
		if next := j.state.next(); next != StepValidate && next != StepContract {
			return j.wrongStep(StepValidate)
		}
		return j.perform(ctx, StepValidate) // nothing in a repeated call
	})
}

// Contract drops the old columns and gives their names to the new ones, in one transaction.
// No program of the old version may run any more. Contract compares both keys of all rows
// before, and the catalog before it commits: if an index, constraint, privilege or comment
// would be lost, because it was created on an old column since Expand, nothing changes and
// the error wraps [ErrInconsistent].
func Contract(ctx context.Context, db *sql.DB, o Options) error {
	return run(ctx, db, o, StepContract, func(j *job) error {
		if j.state.next() != StepContract {
			return j.wrongStep(StepContract)
		}
		return j.perform(ctx, StepContract)
	})
}

// Abort drops the objects of the other steps, in one transaction. It can follow any step
// but a complete Contract.
func Abort(ctx context.Context, db *sql.DB, o Options) error {
	return run(ctx, db, o, StepAbort, func(j *job) error {
		if !j.state.exists {
			return j.wrongStep(StepAbort)
		}
		j.state.position = len(j.state.job.Actions) - 1
		return j.perform(ctx, StepAbort)
	})
}

// ReadStatus returns the state of the rekey with its views in Options.Schema.
func ReadStatus(ctx context.Context, db *sql.DB, o Options) (Status, error) {
	o, err := o.withDefaults()
	if err != nil {
		return Status{}, err
	}
	s, err := readState(ctx, db, o.Schema)
	if err != nil {
		return Status{}, fmt.Errorf("rekey: read status: %w", err)
	}
	status := Status{Spec: s.job.Spec, Step: s.step, Next: s.next(), StartedAt: s.startedAt, UpdatedAt: s.updatedAt}
	if s.exists {
		status.Actions = s.job.Actions[s.position:]
	}
	if status.Next == s.step {
		status.Action = status.Actions[0].Title
	}
	return status, nil
}

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
		defer unlock(ctx, conn, o.Schema)
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
func unlock(ctx context.Context, conn *sql.Conn, schema string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, err := conn.ExecContext(ctx, "SELECT pg_catalog.pg_advisory_unlock(pg_catalog.hashtext('sortkey rekey'), pg_catalog.hashtext($1))", schema)
	for _, setting := range []string{"lock_timeout", "statement_timeout", "search_path"} {
		if err == nil {
			_, err = conn.ExecContext(ctx, "RESET "+setting)
		}
	}
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
			return cmpErr(err, ctx.Err())
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

func cmpErr(a, b error) error {
	if a != nil {
		return a
	}
	return b
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

// A state is the row of rekey_state.
type state struct {
	exists               bool
	job                  savedJob
	step                 Step
	position             int // of the next action
	cursor               string
	startedAt, updatedAt time.Time
}

// A savedJob is the plan as Expand stores it.
type savedJob struct {
	Spec        Spec
	Actions     []Action
	Objects     objects
	ReplicaRole bool
}

func stateTable(schema string) string { return schema + ".rekey_state" }

func (s state) next() Step {
	if !s.exists {
		return StepExpand
	}
	return s.job.Actions[s.position].Step
}

func readState(ctx context.Context, db interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}, schema string,
) (s state, err error) {
	if err := db.QueryRowContext(ctx, "SELECT pg_catalog.to_regclass($1) IS NOT NULL", stateTable(schema)).Scan(&s.exists); err != nil || !s.exists {
		return s, err
	}
	var text, step string
	err = db.QueryRowContext(ctx, "SELECT job, step, position, cursor, started_at, updated_at FROM "+stateTable(schema)).Scan(&text, &step, &s.position, &s.cursor, &s.startedAt, &s.updatedAt)
	if err != nil {
		return s, err
	}
	s.step = Step(step)
	return s, json.Unmarshal([]byte(text), &s.job)
}

func jobOf(m *model, spec Spec, o Options) savedJob {
	return savedJob{Spec: spec, Actions: m.actions(o), Objects: m.objects(), ReplicaRole: m.replicaRole}
}

// begin creates the schema of the job and the state.
func (j *job) begin(ctx context.Context, tx *sql.Tx) error {
	text, err := json.Marshal(j.state.job)
	if err != nil {
		return err
	}
	table := stateTable(j.o.Schema)
	err = j.execute(ctx, tx, []string{
		"CREATE SCHEMA " + j.o.Schema,
		"COMMENT ON SCHEMA " + j.o.Schema + " IS 'Views for programs that use the new keys, and the state of sortkey rekey.'",
		`CREATE TABLE ` + table + ` (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    job text NOT NULL,
    step text NOT NULL,
    position integer NOT NULL,
    cursor text NOT NULL DEFAULT '',
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
)`,
		"COMMENT ON TABLE " + table + " IS 'The plan and the progress of a rekey.'",
	})
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO "+table+" (job, step, position) VALUES ($1, $2, 0)", string(text), string(StepExpand))
	return err
}

// started records the step of an action that can't run in one transaction.
func (j *job) started(ctx context.Context, a Action) error {
	if j.state.step == a.Step {
		return nil
	}
	j.state.step = a.Step
	_, err := j.conn.ExecContext(ctx, "UPDATE "+stateTable(j.o.Schema)+" SET step = $1, updated_at = clock_timestamp()", string(a.Step))
	return err
}

// advance records the end of an action.
func (j *job) advance(ctx context.Context, tx *sql.Tx, a Action) error {
	next := j.state
	next.exists, next.step, next.cursor = true, a.Step, ""
	next.position = slices.IndexFunc(next.job.Actions, func(o Action) bool { return o.Step == a.Step && o.Title == a.Title }) + 1
	_, err := tx.ExecContext(ctx, "UPDATE "+stateTable(j.o.Schema)+" SET step = $1, position = $2, cursor = '', updated_at = clock_timestamp()", string(a.Step), next.position)
	if err == nil {
		j.state = next
	}
	return err
}

// rowsLeft reports whether rows have no new key after the backfill.
func (j *job) rowsLeft(ctx context.Context) (left bool, err error) {
	for _, a := range ofStep(j.state.job.Actions, StepBackfill) {
		if a.Kind == kindBackfill && !left && err == nil {
			err = j.conn.QueryRowContext(ctx, a.SQL[1]).Scan(&left)
		}
	}
	return left, err
}

// rewind continues with the first action of an earlier step.
func (j *job) rewind(ctx context.Context, step Step) error {
	position := slices.IndexFunc(j.state.job.Actions, func(a Action) bool { return a.Step == step })
	_, err := j.conn.ExecContext(ctx, "UPDATE "+stateTable(j.o.Schema)+" SET step = $1, position = $2, cursor = '', updated_at = clock_timestamp()", string(step), position)
	j.state.step, j.state.position, j.state.cursor = step, position, ""
	return err
}
