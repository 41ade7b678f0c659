package dbhealth

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"time"
)

const (
	smallSkew = 100 * time.Millisecond // warning above
	largeSkew = time.Second            // problem above: the generators of the SQL defaults wait that long
)

var clockSkew = Rule{
	ID: "clock-skew", Area: "clock",
	Means:  "the server's clock differs from this machine's, by more than 100 ms, or as a problem by more than 1 s",
	Remedy: "slew the wrong one with NTP",
	check:  checkClock,
}

// checkClock measures the difference between the clocks. The server reads its clock
// during the round trip, so the shortest of several ones has the smallest error.
func checkClock(ctx context.Context, e *Examination) error {
	const trips = 10
	shortest := time.Duration(math.MaxInt64)
	err := e.read(ctx, func(tx *sql.Tx) error {
		for range trips {
			var there time.Time
			before := e.o.Now()
			if err := tx.QueryRowContext(ctx, `SELECT clock_timestamp()`).Scan(&there); err != nil {
				return err
			}
			if trip := e.o.Now().Sub(before); trip < shortest {
				shortest, e.ahead = trip, there.Sub(before.Add(trip/2))
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	direction := "ahead of"
	if e.ahead < 0 {
		direction = "behind"
	}
	detail := fmt.Sprintf("%s %s this machine's (± %s)", short(e.ahead.Abs()), direction, short(shortest/2))
	const subject = "the server's clock"
	const why = "; IDs of programs and of SQL defaults then sort and expire by different clocks, and a time window such as the last minute misses rows"
	const remedy = "find out which clock is wrong, and slew it with NTP"
	switch certain := e.ahead.Abs() - shortest/2; {
	case certain > largeSkew:
		e.add(Problem, "", subject, detail+why, remedy)
	case certain > smallSkew:
		e.add(Warning, "", subject, detail+why, remedy)
	default:
		e.add(OK, "", subject, detail, "")
	}
	return nil
}
