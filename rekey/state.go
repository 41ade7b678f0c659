package rekey

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strconv"
	"time"
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
	Actions     []Action
	Tables      []string // OIDs
	ReplicaRole bool
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
	return slices.IndexFunc(s.job.Actions, func(a Action) bool { return a.Step == step })
}

// contracted reports whether contract has begun to change the tables.
func (s state) contracted() bool {
	return s.next() == StepContract && slices.ContainsFunc(s.job.Actions[s.first(StepContract):s.position], func(a Action) bool { return a.Kind == kindDDL })
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
	job := savedJob{Spec: spec, Actions: m.actions(o), ReplicaRole: m.replicaRole}
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
func (j *job) begin(ctx context.Context, tx *sql.Tx, a Action) error {
	text, err := json.Marshal(j.state.job)
	if err != nil {
		return err
	}
	table := stateTable(j.o.Schema)
	err = j.execute(ctx, tx, a, []string{
		"CREATE SCHEMA " + j.o.Schema,
		"COMMENT ON SCHEMA " + j.o.Schema + " IS 'Views for programs that use the new keys, and the state of sortkey rekey.'",
		"CREATE TABLE " + table + " (" + stateColumns + ")",
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
