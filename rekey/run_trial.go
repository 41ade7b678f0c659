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
	swaps := filter(ofStep(j.state.job.Actions, StepContract), func(a action) bool { return a.Kind == kindSwap })
	swap, path, tries := swaps[a.Swap], a.SQL[0], a.SQL[1:]
	before := filter(tries, func(s string) bool { return strings.HasPrefix(s, tryBefore) })
	if err := j.execute(ctx, tx, a, filter(swap.SQL, isLock)); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, path); err != nil {
		return err
	}
	failed, err := j.attempts(ctx, tx, before)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "SET LOCAL search_path = pg_catalog"); err != nil {
		return err
	}
	if err := j.change(ctx, tx, swap); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, path); err != nil {
		return err
	}
	failures, err := j.attempts(ctx, tx, tries[len(before):])
	if err != nil {
		return err
	}
	var findings []string
	for i, failure := range failures {
		switch {
		case sqlState(failure) == setsKey:
			findings = append(findings, pgerror.Message(failure)+"; let it leave the key alone, since the triggers of rekey set it until cleanup, and give the column a default then")
		case failure != nil && sqlState(failure) != sqlState(failed[i]):
			findings = append(findings, "a trigger fails with the new keys: "+failure.Error()+strings.ReplaceAll("\n"+pgerror.Where(failure), "\n", "\n    "))
		}
	}
	if len(findings) > 0 {
		return fmt.Errorf("%w\nNothing has changed. Correct the functions so that they work with the new types, such as bigint instead of integer, and repeat the step, or abort", inconsistent(findings))
	}
	return errTried
}

// attempts runs statements, undoes each of them, and returns their errors.
func (j *job) attempts(ctx context.Context, tx *sql.Tx, statements []string) (failures []error, err error) {
	for _, s := range statements {
		failure, err := j.attempt(ctx, tx, s)
		if err != nil {
			return nil, err
		}
		failures = append(failures, failure)
	}
	return failures, nil
}
