package rekey

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sortkey/sortkey/migrations"
)

// Inspect returns the plan of a rekey. It changes nothing, and takes only the locks of
// SELECT. It reads the tables to check their values, as their owner. If an object belongs to
// a role that the session doesn't trust, Inspect reads only the catalog and returns a Problem.
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
	if err := migrations.CheckOwner(ctx, db, o.Config); err != nil {
		return nil, err
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
	var path []string
	if err := usePath(ctx, tx, o.SearchPath); err != nil {
		return nil, err
	}
	if err := readJSON(ctx, tx, &path, "SELECT pg_catalog.json_agg(pg_catalog.quote_ident(s))::pg_catalog.text FROM pg_catalog.unnest(pg_catalog.current_schemas(false)) s"); err != nil {
		return nil, err
	}
	named, err := resolve(ctx, tx, spec)
	if err != nil {
		return nil, err
	}
	_, err = tx.ExecContext(ctx, setSettings, settings, true)
	if err != nil {
		return nil, err
	}
	m := &model{own: []string{config.Schema, config.Schema + "_internal"}, sessionPath: path, literals: spec.Literals}
	var running bool
	if err := tx.QueryRowContext(ctx, "SELECT pg_catalog.to_regclass($1) IS NOT NULL", stateTable()).Scan(&running); err != nil {
		return nil, err
	}
	if running {
		m.problem("schema "+Schema, "belongs to a rekey that isn't complete", "finish or abort it: sortkey rekey status prints the next step")
		return m, nil
	}
	if err := m.find(ctx, tx, spec, named, formats(config)); err != nil {
		return nil, err
	}
	if trusted, err := m.asOwner(ctx, tx); err != nil || !trusted {
		return m, err
	}
	if err := m.read(ctx, tx); err != nil {
		return nil, err
	}
	if trusted, err := m.checkOwners(ctx, tx); err != nil || !trusted { // with the views
		return m, err
	}
	if err := m.check(ctx, tx, o); err != nil || len(m.problems) > 0 || len(m.relations) == 0 {
		return m, err
	}
	if m.fingerprint, err = m.allObjects().fingerprint(ctx, tx); err != nil {
		return nil, err
	}
	if err := tx.Rollback(); err != nil { // the pool can have one connection
		return nil, err
	}
	for _, k := range m.moved() {
		if k.Times.SQL == "" {
			continue
		}
		if err := m.checkTimeIndex(ctx, db, k); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *model) result(o Options) *Plan {
	p := &Plan{Tables: []Table{}, Problems: append([]Problem{}, m.problems...), Notes: append([]Problem{}, m.notes...), Actions: []Action{}} // lists in JSON
	for _, r := range m.relations {
		if r.columns[0].Name == "" {
			continue // objects of untrusted roles have kept Inspect from reading it
		}
		t := Table{Name: r.Name, Rows: int64(r.Rows)}
		for _, c := range r.columns {
			column := Column{Name: c.Name, NewName: "rekey_" + c.Name, OldType: c.Type, NewType: c.key.format.sqlType}
			if !c.root {
				column.To = strings.Join(each(c.targets, func(t target) string { return t.key.root.rel.Name }), ", ")
			}
			t.Columns = append(t.Columns, column)
		}
		p.Tables = append(p.Tables, t)
	}
	if len(m.problems) == 0 {
		p.Actions = public(m.actions(o))
	}
	return p
}

// Expand inspects the tables, and adds the new columns and the triggers that keep both keys
// equal, one table after another. Existing rows have NULL in the new columns until Backfill.
//
// If Inspect finds problems, Expand returns an error that wraps [ErrRefused].
func Expand(ctx context.Context, db *sql.DB, spec Spec, o Options) error {
	// Inspect needs a connection of its own, before run takes one, since a pool can have only
	// one.
	s, err := ReadStatus(ctx, db)
	if err != nil {
		return err
	}
	var m *model
	if s.Step == "" {
		if o, err = o.withDefaults(); err != nil {
			return err
		}
		if m, err = inspect(ctx, db, spec, o); err != nil {
			return fmt.Errorf("rekey: inspect: %w", err)
		}
		if len(m.problems) > 0 {
			texts := each(m.problems, func(p Problem) string { return "\n  " + p.String() })
			return fmt.Errorf("rekey: expand: %w:%s", ErrRefused, strings.Join(texts, ""))
		}
	}
	role := ""
	if m != nil {
		role = m.owner
	}
	return run(ctx, db, o, StepExpand, role, func(j *job) error {
		switch {
		case j.state.exists && j.state.step == StepExpand && equal(j.state.job.Spec, spec):
			return j.perform(ctx, StepExpand) // a repeated call
		case j.state.exists:
			return j.wrongStep(StepExpand)
		case m == nil:
			return fmt.Errorf("%w: another program has ended a rekey just now; repeat the step", ErrBusy)
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
// is left. It never changes a key that is set. It can be canceled and repeated at any time until Contract.
func Backfill(ctx context.Context, db *sql.DB, o Options) error {
	return run(ctx, db, o, StepBackfill, "", func(j *job) error {
		next := j.state.next()
		if next != StepBackfill && next != StepValidate && next != StepContract || j.state.swaps() > 0 {
			return j.wrongStep(StepBackfill)
		}
		if err := j.restoreTriggers(ctx, StepBackfill); err != nil {
			return err
		}
		if next != StepBackfill {
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

// Validate creates the indexes and the constraints of the new columns, waits for transactions that
// began before Backfill ended, and gives the references of their rows new keys. It compares both keys of all
// rows, and creates the views for programs of the new version. It tries Contract in a transaction
// that it rolls back. If it is repeated, it creates what is missing, such as a view that was dropped.
//
// If columns, constraints, triggers, policies or views have changed since Expand, so that the
// views or Contract would be wrong, the error wraps [ErrInconsistent] and names them. The same
// holds for Contract.
//
// If a row has no new key, because a program has written it without the triggers, Validate returns an
// error that wraps [ErrInconsistent]. Run Backfill and Validate again.
func Validate(ctx context.Context, db *sql.DB, o Options) error {
	return run(ctx, db, o, StepValidate, "", func(j *job) error {
		if next := j.state.next(); next != StepValidate && next != StepContract || j.state.swaps() > 0 {
			return j.wrongStep(StepValidate)
		}
		if err := j.unchanged(ctx); err != nil {
			return err
		}
		if err := j.restoreTriggers(ctx, StepValidate); err != nil {
			return err
		}
		if first := j.state.first(StepValidate); first >= 0 && j.state.next() == StepContract {
			j.state.position = first
		}
		return j.perform(ctx, StepValidate)
	})
}

// Contract gives the names of the old columns to the new ones, and names of rekey's to the old ones,
// one table after another, or several at once if a function or a view works on them. The triggers go
// on keeping both keys, so that [Undo] can lead back until [Cleanup]. No program of the old version
// may run any more.
//
// Before it changes anything, Contract compares both keys of all rows, and looks for objects that were
// created on the columns since Expand. It tries each change, and the triggers of the application on
// a row with the new keys, in a transaction that it rolls back. Each transaction compares the catalog
// before it commits. If an index, constraint, privilege or comment would be lost, the error wraps
// [ErrInconsistent], and nothing has changed.
func Contract(ctx context.Context, db *sql.DB, o Options) error {
	return run(ctx, db, o, StepContract, "", func(j *job) error {
		if j.state.next() != StepContract {
			return j.wrongStep(StepContract)
		}
		if j.state.swaps() == 0 {
			j.state.position = j.state.first(StepContract) // with all checks
			if err := j.unchanged(ctx); err != nil {
				return err
			}
			lost, err := lostTriggers(ctx, j.conn, j.state)
			if err != nil {
				return err
			}
			if err := inconsistent(each(lost, lostTrigger)); err != nil {
				return fmt.Errorf("%w\nRun backfill and validate again, which restore them", err)
			}
			if err := j.checkAdded(ctx, false); err != nil {
				return err
			}
		}
		return j.perform(ctx, StepContract)
	})
}

// Undo gives the old columns their names again, as they were before Contract. Rows that programs have
// written since have old keys, too. It can follow Contract, also an incomplete one, until Cleanup.
// Then the next step is Contract again, or [Abort].
func Undo(ctx context.Context, db *sql.DB, o Options) error {
	return run(ctx, db, o, StepUndo, "", func(j *job) error {
		swaps := j.state.swaps()
		if swaps == 0 || j.state.cleaned() {
			return j.wrongStep(StepUndo)
		}
		if err := j.restoreTriggers(ctx, StepUndo); err != nil {
			return err
		}
		if next := j.state.next(); next != StepUndo {
			if next == StepCleanup {
				if err := j.checkAdded(ctx, true); err != nil {
					return err
				}
			}
			j.state.position = j.state.first(StepUndo)
			if next == StepContract { // incomplete
				j.state.position = j.state.first(StepAbort) - swaps
			}
		}
		return j.perform(ctx, StepUndo)
	})
}

// Cleanup ends a rekey after [Contract]: it drops the old columns, the triggers, and the views for
// programs of the new version. From then on, there is no way back. No program may use the views.
//
// Before it changes anything, Cleanup looks for objects that depend on what it drops. If there are any,
// the error wraps [ErrInconsistent].
func Cleanup(ctx context.Context, db *sql.DB, o Options) error {
	return run(ctx, db, o, StepCleanup, "", func(j *job) error {
		if j.state.next() != StepCleanup {
			return j.wrongStep(StepCleanup)
		}
		if !j.state.cleaned() {
			j.state.position = j.state.first(StepCleanup) // with all checks
		}
		return j.perform(ctx, StepCleanup)
	})
}

// Abort drops the objects of the other steps, one table after another. It can follow any
// step until Contract has begun to change the tables, and Undo.
func Abort(ctx context.Context, db *sql.DB, o Options) error {
	return run(ctx, db, o, StepAbort, "", func(j *job) error {
		if !j.state.exists || j.state.swaps() > 0 || j.state.next() == StepCleanup {
			return j.wrongStep(StepAbort)
		}
		if j.state.next() != StepAbort {
			j.state.position = j.state.first(StepAbort)
		}
		return j.perform(ctx, StepAbort)
	})
}

// lostTriggers returns the tables on which triggers of rekey are missing or disabled.
func lostTriggers(ctx context.Context, db textQuerier, s state) ([]string, error) {
	var tables, triggers []string
	for _, t := range s.job.Triggers {
		for _, name := range t.Names {
			tables, triggers = append(tables, t.Table), append(triggers, name)
		}
	}
	return texts(ctx, db, query("lost triggers", nil), pgArray(tables), pgArray(triggers))
}

// lostTrigger describes what lostTriggers has found.
func lostTrigger(table string) string {
	return "triggers of rekey on " + table + " are missing or disabled, so rows can have one key alone"
}

// restoreTriggers creates triggers that are missing or disabled again.
func (j *job) restoreTriggers(ctx context.Context, step Step) error {
	if j.state.next() == StepExpand {
		return nil
	}
	tables, err := lostTriggers(ctx, j.conn, j.state)
	if err != nil {
		return err
	}
	for _, t := range j.state.job.Triggers {
		if !slices.Contains(tables, t.Table) {
			continue
		}
		err := j.inOneTransaction(ctx, step, "restore the triggers of "+t.Table, func(tx *sql.Tx, a action) error { return j.execute(ctx, tx, a, t.Restore) })
		if err != nil {
			return err
		}
	}
	return nil
}

// ReadStatus returns the state of the rekey. It returns
// [migrations.ErrUntrusted] if a role that the session doesn't trust could have written it.
func ReadStatus(ctx context.Context, db *sql.DB) (Status, error) {
	if err := checkJob(ctx, db, nil); err != nil {
		return Status{}, fmt.Errorf("rekey: read status: %w", err)
	}
	s, err := readState(ctx, db)
	if err != nil {
		return Status{}, fmt.Errorf("rekey: read status: %w", err)
	}
	status := Status{Spec: s.job.Spec, Step: s.step, Next: s.next(), StartedAt: s.startedAt, UpdatedAt: s.updatedAt}
	if s.exists {
		status.Actions = public(s.job.Actions[s.position:])
		if s.next() != StepExpand && s.next() != StepAbort && !s.cleaned() {
			lost, err := lostTriggers(ctx, db, s)
			if err != nil {
				return Status{}, fmt.Errorf("rekey: read status: %w", err)
			}
			status.Findings = each(lost, lostTrigger)
		}
		missing, err := s.missing(ctx, db)
		if err != nil {
			return Status{}, fmt.Errorf("rekey: read status: %w", err)
		}
		status.Findings = append(missing, status.Findings...)
	}
	if status.Next == s.step {
		status.Action = status.Actions[0].Title
	}
	return status, nil
}
