package rekey

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sortkey/sortkey/internal/pgerror"
)

// errTried rolls a trial back.
var errTried = errors.New("nothing failed")

// attempt runs a statement, and undoes it. It returns the error of the statement as failure,
// unless it is due to a lock or a cancellation.
func (j *job) attempt(ctx context.Context, tx *sql.Tx, statement string) (failure, err error) {
	limit := tryTimeouts * j.o.LockTimeout
	if _, err := tx.ExecContext(ctx, "SAVEPOINT try"); err != nil {
		return nil, err
	}
	if _, err := tx.ExecContext(ctx, "SELECT pg_catalog.set_config('statement_timeout', "+milliseconds(limit)+", true)"); err != nil {
		return nil, err
	}
	began := time.Now()
	_, failure = tx.ExecContext(ctx, statement)
	switch state := sqlState(failure); {
	case failure == nil:
	case state == pgerror.QueryCanceled && time.Since(began) >= limit:
		return nil, fmt.Errorf("%w: the triggers of a row take longer than %v, for which programs would wait; set a longer LockTimeout (--lock-timeout)", ErrLocked, limit)
	case state == "", state == pgerror.QueryCanceled, isLockFailure(state):
		return nil, failure
	}
	_, err = tx.ExecContext(ctx, "ROLLBACK TO SAVEPOINT try")
	return failure, err
}

// try runs a trial. It returns errTried if nothing fails with the new keys alone.
func (j *job) try(ctx context.Context, tx *sql.Tx, a action) error {
	swap := ofStep(j.state.job.Actions, StepContract)
	swap = filter(swap, func(a action) bool { return a.Kind == kindSwap })[a.Swap : a.Swap+1]
	for _, s := range swap[0].SQL {
		if isLock(s) {
			if err := j.lock(ctx, tx, a, s); err != nil {
				return err
			}
		}
	}
	path := a.SQL[0]
	if _, err := tx.ExecContext(ctx, path); err != nil {
		return err
	}
	var before []error
	var findings []string
	swapped := false
	for _, s := range a.SQL[1:] {
		if strings.HasPrefix(s, tryBefore) {
			failure, err := j.attempt(ctx, tx, s)
			if err != nil {
				return err
			}
			before = append(before, failure)
			continue
		}
		if !swapped {
			if err := j.trySwap(ctx, tx, swap[0], path); err != nil {
				return err
			}
			swapped = true
		}
		failure, err := j.attempt(ctx, tx, s)
		if err != nil {
			return err
		}
		if failure != nil && sqlState(failure) != sqlState(before[0]) {
			findings = append(findings, "a trigger fails with the new keys: "+failure.Error()+strings.ReplaceAll("\n"+pgerror.Where(failure), "\n", "\n    "))
		}
		before = before[1:]
	}
	if len(findings) > 0 {
		return fmt.Errorf("%w\nNothing has changed. Correct the functions so that they work with the new types, such as bigint instead of integer, and repeat the step, or abort", inconsistent(findings))
	}
	if !swapped {
		if err := j.trySwap(ctx, tx, swap[0], path); err != nil {
			return err
		}
	}
	return errTried
}

// trySwap runs a swap as a part of a trial.
func (j *job) trySwap(ctx context.Context, tx *sql.Tx, swap action, path string) error {
	if _, err := tx.ExecContext(ctx, "SET LOCAL search_path = pg_catalog"); err != nil {
		return err
	}
	if err := j.change(ctx, tx, swap); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, path)
	return err
}
