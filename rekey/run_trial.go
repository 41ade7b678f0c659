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
	var before []error
	var findings []string
	for _, s := range a.SQL {
		after, isAfter := strings.CutPrefix(s, tryAfter)
		switch {
		case strings.HasPrefix(s, tryBefore):
			failure, err := j.attempt(ctx, tx, s)
			if err != nil {
				return err
			}
			before = append(before, failure)
		case isAfter:
			failure, err := j.attempt(ctx, tx, after)
			if err != nil {
				return err
			}
			if failure != nil && sqlState(failure) != sqlState(before[0]) {
				findings = append(findings, "a trigger fails with the new keys: "+failure.Error()+strings.ReplaceAll("\n"+pgerror.Where(failure), "\n", "\n    "))
			}
			before = before[1:]
		default:
			if err := j.execute(ctx, tx, a, []string{s}); err != nil {
				return err
			}
		}
	}
	if len(findings) > 0 {
		return fmt.Errorf("%w\nNothing has changed. Correct the functions so that they work with the new types, such as bigint instead of integer, and repeat the step, or abort", inconsistent(findings))
	}
	return errTried
}
