// Stepper runs the steps of a rekey, in a process that tests can kill. It prints a line
// for each report of progress, and ends when a step is complete.
//
//	stepper -database URL -spec FILE -until validate
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/sortkey/sortkey/rekey"
)

// patience limits the wait until the server has noticed that an earlier process was killed.
const patience = 2 * time.Minute

func main() {
	database := flag.String("database", "", "the URL of the database")
	file := flag.String("spec", "", "a file with the rekey.Spec in JSON")
	until := flag.String("until", string(rekey.StepContract), "the last step")
	flag.Parse()
	if err := run(context.Background(), *database, *file, rekey.Step(*until)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, database, file string, until rekey.Step) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var spec rekey.Spec
	if err := json.Unmarshal(text, &spec); err != nil {
		return err
	}
	db, err := sql.Open("pgx", database)
	if err != nil {
		return err
	}
	defer db.Close()
	o := rekey.Options{Progress: func(p rekey.Progress) {
		fmt.Printf("%s: %s: %d rows, done: %t\n", p.Step, p.Action, p.Rows, p.Done)
	}}
	for begun := time.Now(); ; {
		status, err := rekey.ReadStatus(ctx, db, o)
		if err != nil {
			return err
		}
		switch status.Next {
		case rekey.StepExpand:
			if status.Step == "" && until == rekey.StepContract {
				return nil // contract was complete before
			}
			err = rekey.Expand(ctx, db, spec, o)
		case rekey.StepBackfill:
			err = rekey.Backfill(ctx, db, o)
		case rekey.StepValidate:
			err = rekey.Validate(ctx, db, o)
		case rekey.StepContract:
			if until != rekey.StepContract {
				return nil
			}
			err = rekey.Contract(ctx, db, o)
		default:
			err = errors.New("unexpected step " + string(status.Next))
		}
		if errors.Is(err, rekey.ErrBusy) && time.Since(begun) < patience {
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
