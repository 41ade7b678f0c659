package rekey

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/sortkey/sortkey/migrations"
)

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
	Actions     []action
	Tables      []string // OIDs
	ReplicaRole bool
	// Objects are the tables and views of the plan, with the Fingerprint that they had.
	Objects     *objects
	Fingerprint []string
}

func stateTable(schema string) string { return schema + ".rekey_state" }

func (s state) next() Step {
	if !s.exists {
		return StepExpand
	}
	return s.job.Actions[s.position].Step
}

// first returns the index of the first action of a step.
func (s state) first(step Step) int {
	return slices.IndexFunc(s.job.Actions, func(a action) bool { return a.Step == step })
}

// contracted reports whether contract has begun to change the tables.
func (s state) contracted() bool {
	return s.next() == StepContract && slices.ContainsFunc(s.job.Actions[s.first(StepContract):s.position], func(a action) bool { return a.Kind == kindDDL })
}

func readState(ctx context.Context, db interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}, schema string,
) (s state, err error) {
	if err := db.QueryRowContext(ctx, "SELECT pg_catalog.to_regclass($1) IS NOT NULL", stateTable(schema)).Scan(&s.exists); err != nil || !s.exists {
		return s, err
	}
	var text, step, comment string
	err = db.QueryRowContext(ctx, "SELECT job, step, position, cursor, started_at, updated_at, coalesce(pg_catalog.obj_description($1::text::pg_catalog.regclass, 'pg_class'), '') FROM ONLY "+stateTable(schema),
		stateTable(schema)).Scan(&text, &step, &s.position, &s.cursor, &s.startedAt, &s.updatedAt, &comment)
	if err != nil {
		return s, err
	}
	if comment != stateComment(text) {
		return s, fmt.Errorf("the plan in table %s isn't the one that expand stored: its comment has another digest; restore both from a backup: %w", stateTable(schema), migrations.ErrUntrusted)
	}
	s.step = Step(step)
	if err := json.Unmarshal([]byte(text), &s.job); err != nil {
		return s, fmt.Errorf("read the plan in table %s: %w", stateTable(schema), err)
	}
	if s.position < 0 || s.position >= len(s.job.Actions) {
		return s, fmt.Errorf("table %s has position %d; want 0 to %d: restore it from a backup", stateTable(schema), s.position, len(s.job.Actions)-1)
	}
	return s, nil
}

// stateComment returns the comment of the table of the plan. Only the owner of the table can
// set it. With its digest, a plan that another role wrote while it had a privilege on the
// table is never run.
func stateComment(job string) string {
	return fmt.Sprintf("The plan and the progress of a rekey. SHA-256 of the plan: %x", sha256.Sum256([]byte(job)))
}

func jobOf(m *model, spec Spec, o Options) savedJob {
	job := savedJob{Spec: spec, Actions: m.actions(o), ReplicaRole: m.replicaRole, Objects: m.allObjects(), Fingerprint: m.fingerprint}
	for _, k := range m.keys {
		job.Tables = append(job.Tables, strconv.FormatInt(k.root.rel.OID, 10))
	}
	for _, r := range m.relations {
		job.Tables = append(job.Tables, strconv.FormatInt(r.OID, 10))
	}
	return job
}

// stateColumns are the columns of rekey_state.
const stateColumns = "only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row), job text NOT NULL, step text NOT NULL, position integer NOT NULL, cursor text NOT NULL DEFAULT '', " +
	"started_at timestamptz NOT NULL DEFAULT clock_timestamp(), updated_at timestamptz NOT NULL DEFAULT clock_timestamp()"

// begin creates the schema of the job and the state.
func (j *job) begin(ctx context.Context, tx *sql.Tx, a action) error {
	text, err := json.Marshal(j.state.job)
	if err != nil {
		return err
	}
	table := stateTable(j.o.Schema)
	err = j.execute(ctx, tx, a, []string{
		"CREATE SCHEMA " + j.o.Schema,
		"COMMENT ON SCHEMA " + j.o.Schema + " IS 'Views for programs that use the new keys, and the state of sortkey rekey.'",
		"CREATE TABLE " + table + " (" + stateColumns + ")",
		"COMMENT ON TABLE " + table + " IS " + literal(stateComment(string(text))),
	})
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO "+table+" (job, step, position) VALUES ($1, $2, 0)", string(text), string(StepExpand))
	return err
}

// started records the step of an action that can't run in one transaction.
func (j *job) started(ctx context.Context, a action) error {
	if j.state.step == a.Step {
		return nil
	}
	j.state.step = a.Step
	_, err := j.conn.ExecContext(ctx, "UPDATE "+stateTable(j.o.Schema)+" SET step = $1, updated_at = clock_timestamp()", string(a.Step))
	return err
}

// advance records the end of an action.
func (j *job) advance(ctx context.Context, tx *sql.Tx, a action) error {
	next := j.state
	next.exists, next.step, next.cursor = true, a.Step, ""
	next.position++
	_, err := tx.ExecContext(ctx, "UPDATE "+stateTable(j.o.Schema)+" SET step = $1, position = $2, cursor = '', updated_at = clock_timestamp()", string(a.Step), next.position)
	if err == nil {
		j.state = next
	}
	return err
}

// rowsLeft reports whether rows have no new key, or another one, after the backfill.
func (j *job) rowsLeft(ctx context.Context) (left bool, err error) {
	for _, a := range ofStep(j.state.job.Actions, StepValidate) {
		if a.Kind != kindCheck || a.Title != compareKeys {
			continue
		}
		for _, query := range a.SQL {
			if found, err := texts(ctx, j.conn, query); len(found) > 0 || err != nil {
				return true, err
			}
		}
	}
	return false, nil
}

// rewind continues with the first action of an earlier step.
func (j *job) rewind(ctx context.Context, step Step) error {
	position := j.state.first(step)
	_, err := j.conn.ExecContext(ctx, "UPDATE "+stateTable(j.o.Schema)+" SET step = $1, position = $2, cursor = '', updated_at = clock_timestamp()", string(step), position)
	j.state.step, j.state.position, j.state.cursor = step, position, ""
	return err
}
