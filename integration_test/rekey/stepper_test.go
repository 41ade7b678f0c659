package rekey

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
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
		contracted := until == rekey.StepContract && status.Next == rekey.StepExpand
		if contracted || slices.Index(steps, status.Next) > slices.Index(steps, until) {
			return nil
		}
		err = j.try(ctx, status.Next, o)
		if errors.Is(err, rekey.ErrBusy) && time.Since(begun) < stepperPatience {
			time.Sleep(20 * time.Millisecond)
		} else if err != nil {
			return fmt.Errorf("%s: %w", status.Next, err)
		}
	}
}
