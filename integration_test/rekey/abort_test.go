package rekey

import (
	"context"
	"errors"
	"testing"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/rekey"
)

// Abort at any step restores the tables: the dumps of the schema and of the rows equal
// those from before.
func TestAbort(t *testing.T) {
	t.Parallel()
	pgtest.OneContainer(t, func(t *testing.T, db *pgtest.DB) {
		s := newShop(t, db, 2000)
		spec := shopSpec()
		s.snapshot(t)
		schema, data := s.dump(t, "--schema-only"), s.data(t)
		for _, a := range []struct {
			name    string
			prepare func(t *testing.T)
		}{
			{"after expand", func(t *testing.T) { mustRun(t, s.owner, spec, rekey.Options{}, steps[:1]...) }},
			{"in the backfill", func(t *testing.T) {
				mustRun(t, s.owner, spec, rekey.Options{}, steps[:1]...)
				interrupt(t, s, rekey.StepBackfill, spec, 5)
			}},
			{"after backfill", func(t *testing.T) { mustRun(t, s.owner, spec, rekey.Options{}, steps[:2]...) }},
			{"in validate", func(t *testing.T) {
				mustRun(t, s.owner, spec, rekey.Options{}, steps[:2]...)
				interrupt(t, s, rekey.StepValidate, spec, 12)
			}},
			{"after validate", func(t *testing.T) { mustRun(t, s.owner, spec, rekey.Options{}, steps[:3]...) }},
		} {
			t.Run(a.name, func(t *testing.T) {
				a.prepare(t)
				mustRun(t, s.owner, spec, rekey.Options{}, rekey.StepAbort)
				wantStatus(t, s.owner, "", rekey.StepExpand)
				same(t, "schema", schema, s.dump(t, "--schema-only"))
				same(t, "rows", data, s.data(t))
				if got := s.nodes(t); got != "" {
					t.Errorf("expected no reserved node number, got %s", got)
				}
				s.unchanged(t)
			})
		}

		// The programs go on, also with rows from programs of the new version.
		old := s.program(t, "old", false)
		old.probe(t)
		mustRun(t, s.owner, spec, rekey.Options{}, steps[:3]...)
		fresh := s.program(t, "new", true)
		old.probe(t)
		fresh.probe(t)
		mustRun(t, s.owner, spec, rekey.Options{}, rekey.StepAbort)
		same(t, "schema", schema, s.dump(t, "--schema-only"))
		s.verify(t, oldPath)
		s.verifyPrograms(t, old, fresh)
		old.takeOver(fresh)
		old.probe(t)
		s.verifyPrograms(t, old)

		// Another attempt goes the whole way.
		mustRun(t, s.owner, spec, rekey.Options{}, steps[:3]...)
		old.probe(t)
		mustRun(t, s.owner, spec, rekey.Options{}, rekey.StepContract)
		s.verify(t, oldPath)
		s.verifyIDs(t)
		fresh = s.program(t, "newer", true)
		fresh.takeOver(old)
		fresh.probe(t)
		s.verifyPrograms(t, fresh)
		wantDifference(t, schema, s.dump(t, "--schema-only"), shopDifference)
	})
}

// interrupt runs a step and cancels it after a number of reports.
func interrupt(t testing.TB, s *shop, step rekey.Step, spec rekey.Spec, reports int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := run(ctx, s.owner, step, spec, rekey.Options{Progress: func(rekey.Progress) {
		if reports--; reports == 0 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("expected %s to be canceled, got %v", step, err)
	}
	wantStatus(t, s.owner, step, step)
	status, err := rekey.ReadStatus(t.Context(), s.owner, rekey.Options{Config: config})
	must(t, err)
	if status.Action == "" || len(status.Spec.Keys) != len(spec.Keys) || status.StartedAt.IsZero() || status.UpdatedAt.Before(status.StartedAt) {
		t.Errorf("expected the next action, the Spec and times, got %+v", status)
	}
}

// Abort can be repeated after it was interrupted.
func TestAbortInterrupted(t *testing.T) {
	t.Parallel()
	installed.OneContainer(t, func(t *testing.T, db *pgtest.DB) {
		s := &shop{DB: db, owner: db.SQL(t)}
		l := newLibrary(t, db, uuidLibrary)
		l.fill(t)
		schema, data := s.dump(t, "--schema-only"), s.data(t)
		mustRun(t, s.owner, l.spec(), rekey.Options{}, steps[:3]...)
		for reports := 1; ; reports++ {
			ctx, cancel := context.WithCancel(t.Context())
			left := reports
			err := run(ctx, s.owner, rekey.StepAbort, l.spec(), rekey.Options{Progress: func(rekey.Progress) {
				if left--; left == 0 {
					cancel()
				}
			}})
			cancel()
			if err == nil {
				break
			}
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("expected abort to be canceled, got %v", err)
			}
			status, err := rekey.ReadStatus(t.Context(), s.owner, rekey.Options{Config: config})
			must(t, err)
			if status.Step == "" {
				break // canceled after the last action
			}
			l.probe(t, false)
		}
		same(t, "schema", schema, s.dump(t, "--schema-only"))
		same(t, "rows", data, s.data(t))
	})
}
