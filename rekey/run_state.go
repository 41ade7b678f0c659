package rekey

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sortkey/sortkey/migrations"
)

// A state is the row of rekey_state. That of a job changes after the row has, since a commit can fail.
type state struct {
	exists               bool
	job                  savedJob
	step                 Step
	position             int // of the next action
	cursor               string
	slots                map[string]string // the last slot of each backfill, by its title
	added                []addedReference
	startedAt, updatedAt time.Time
}

// A savedJob is the plan as Expand stores it.
type savedJob struct {
	Spec        Spec
	Actions     []action
	Tables      []string // qualified
	Triggers    []tableTriggers
	Keys        []savedKey
	ReplicaRole bool
	// Objects are the tables and views of the plan, with the Fingerprint that they had.
	Objects     *objects
	Fingerprint []string
}

// tableTriggers are the triggers of rekey on a table, with the statements that create them again.
type tableTriggers struct {
	Table   string
	Names   []string // without quotes
	Restore []string
}

// tables returns the tables of the job, and the tables of added references.
func (s state) tables() []string {
	return append(slices.Clone(s.job.Tables), each(s.added, func(r addedReference) string { return r.Table })...)
}

// missing describes tables of the plan that have no longer their names. A table can't be dropped while
// the job has a view of it, so from validate on.
func (s state) missing(ctx context.Context, db textQuerier) ([]string, error) {
	names, err := texts(ctx, db, "SELECT x FROM pg_catalog.unnest($1::pg_catalog.text::pg_catalog.text[]) x WHERE pg_catalog.to_regclass(x) IS NULL", pgArray(s.job.Tables))
	return each(names, func(name string) string {
		return "table " + name + " doesn't exist; give it its name and its schema again, or, if it was dropped, run CREATE TABLE " + name + " (), abort the rekey, and drop it"
	}), err
}

func stateTable() string { return Schema + ".rekey_state" }

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

// swaps returns the number of swaps of contract that are in effect.
func (s state) swaps() int {
	if !s.exists {
		return 0
	}
	count := func(step Step, end int) (n int) {
		for _, a := range s.job.Actions[s.first(step):end] {
			if a.Kind == kindSwap {
				n++
			}
		}
		return n
	}
	switch all := count(StepContract, s.first(StepCleanup)); s.next() {
	case StepContract:
		return count(StepContract, s.position)
	case StepCleanup:
		return all
	case StepUndo:
		return all - count(StepUndo, s.position)
	}
	return 0
}

// cleaned reports whether cleanup has begun to change the tables.
func (s state) cleaned() bool {
	return s.next() == StepCleanup && slices.ContainsFunc(s.job.Actions[s.first(StepCleanup):s.position], func(a action) bool { return a.Kind == kindDDL })
}

func readState(ctx context.Context, db interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
},
) (s state, err error) {
	if err := db.QueryRowContext(ctx, "SELECT pg_catalog.to_regclass($1) IS NOT NULL", stateTable()).Scan(&s.exists); err != nil || !s.exists {
		return s, err
	}
	var text, step, slots, added, comment string
	err = db.QueryRowContext(ctx, "SELECT job, step, position, cursor, slots, added, started_at, updated_at, coalesce(pg_catalog.obj_description($1::text::pg_catalog.regclass, 'pg_class'), '') FROM ONLY "+stateTable(), stateTable()).
		Scan(&text, &step, &s.position, &s.cursor, &slots, &added, &s.startedAt, &s.updatedAt, &comment)
	if err != nil {
		return s, err
	}
	if comment != stateComment(text) {
		return s, fmt.Errorf("the plan in table %s isn't the one that expand stored: its comment has another digest; restore both from a backup: %w", stateTable(), migrations.ErrUntrusted)
	}
	s.step = Step(step)
	if err := errors.Join(json.Unmarshal([]byte(text), &s.job), json.Unmarshal([]byte(slots), &s.slots), json.Unmarshal([]byte(added), &s.added)); err != nil {
		return s, fmt.Errorf("read the plan in table %s: %w", stateTable(), err)
	}
	if s.position < 0 || s.position >= len(s.job.Actions) {
		return s, fmt.Errorf("table %s has position %d; want 0 to %d: restore it from a backup", stateTable(), s.position, len(s.job.Actions)-1)
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
		if len(k.columns) == 0 {
			job.Tables = append(job.Tables, k.root.rel.Name)
		}
	}
	for _, k := range m.moved() {
		job.Keys = append(job.Keys, savedKey{k.n, k.root.rel.Name, k.root.Quoted, k.root.fresh, k.root.Type, k.format.sqlType, k.root.Base, k.newOf(), k.oldOf()})
	}
	for _, r := range m.relations {
		job.Tables = append(job.Tables, r.Name)
		job.Triggers = append(job.Triggers, tableTriggers{r.Name, each(m.triggerNames(r), unquote), m.triggerSQL(r)})
	}
	return job
}

// stateColumns are the columns of rekey_state.
const stateColumns = "only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row), job text NOT NULL, step text NOT NULL, position integer NOT NULL, cursor text NOT NULL DEFAULT '', slots jsonb NOT NULL DEFAULT '{}', added text NOT NULL DEFAULT '[]', " +
	"started_at timestamptz NOT NULL DEFAULT clock_timestamp(), updated_at timestamptz NOT NULL DEFAULT clock_timestamp()"

// begin creates the schema of the job and the state.
func (j *job) begin(ctx context.Context, tx *sql.Tx, a action) error {
	text, err := json.Marshal(j.state.job)
	if err != nil {
		return err
	}
	table := stateTable()
	err = j.execute(ctx, tx, a, []string{
		"CREATE SCHEMA " + Schema,
		"COMMENT ON SCHEMA " + Schema + " IS 'Views for programs that use the new keys, and the state of sortkey rekey.'",
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
	_, err := j.conn.ExecContext(ctx, "UPDATE "+stateTable()+" SET step = $1, updated_at = clock_timestamp()", string(a.Step))
	if err == nil {
		j.state.step = a.Step
	}
	return err
}

// advance records the end of an action.
func (s *state) advance(ctx context.Context, tx *sql.Tx, a action) error {
	s.exists, s.step, s.cursor = true, a.Step, ""
	s.position++
	if a.Step == StepUndo && s.next() != StepUndo { // back before contract
		s.position, s.step = s.first(StepContract), StepValidate
	}
	_, err := tx.ExecContext(ctx, "UPDATE "+stateTable()+" SET step = $1, position = $2, cursor = '', updated_at = clock_timestamp()", string(s.step), s.position)
	return err
}

// rowsLeft reports whether rows have no new key after the backfill.
func (j *job) rowsLeft(ctx context.Context) (left bool, err error) {
	for _, a := range ofStep(j.state.job.Actions, StepBackfill) {
		if a.Kind != kindBackfill || left || err != nil {
			continue
		}
		left, err = j.left(ctx, a)
	}
	return left, err
}

// rewind continues with the first action of an earlier step.
func (j *job) rewind(ctx context.Context, step Step) error {
	position := j.state.first(step)
	_, err := j.conn.ExecContext(ctx, "UPDATE "+stateTable()+" SET step = $1, position = $2, cursor = '', updated_at = clock_timestamp()", string(step), position)
	if err == nil {
		j.state.step, j.state.position, j.state.cursor = step, position, ""
	}
	return err
}
