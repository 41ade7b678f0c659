package rekey

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/sortkey/sortkey/rekey"
)

// stepperVar is the last step of a stepper, which is another run of the test binary.
const stepperVar = "REKEY_STEPPER"

// stepperPatience limits the wait until the server has noticed that an earlier process was
// killed.
const stepperPatience = 2 * time.Minute

// runStepper runs the steps of a shop, in a process that tests can kill. It prints a line for
// each report of progress, and returns when a step is complete.
func runStepper(ctx context.Context, database string, until rekey.Step) error {
	db, err := sql.Open("pgx", database)
	if err != nil {
		return err
	}
	defer db.Close()
	j := &job{pool: db, spec: shopSpec()}
	o := rekey.Options{Config: config, Progress: func(p rekey.Progress) {
		fmt.Printf("%s: %s: %d rows, done: %t\n", p.Step, p.Action, p.Rows, p.Done)
	}}
	for begun := time.Now(); ; {
		status, err := rekey.ReadStatus(ctx, db, o)
		if err != nil {
			return err
		}
		if status.Next == rekey.StepExpand && status.Step == "" && until == rekey.StepContract {
			return nil // contract was complete before
		}
		if status.Next == rekey.StepContract && until != rekey.StepContract {
			return nil
		}
		err = j.try(ctx, status.Next, o)
		if errors.Is(err, rekey.ErrBusy) && time.Since(begun) < stepperPatience {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", status.Next, err)
		}
		if status.Next == until {
			return nil
		}
	}
}
