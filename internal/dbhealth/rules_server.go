package dbhealth

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"time"
)

// readServer reads what describes the server.
func (e *Examination) readServer(ctx context.Context) error {
	s := &e.report.Server // transaction_read_only would be the one of the query
	err := e.row(ctx, []any{&s.Version, &s.number, &s.readOnly, &s.readOnlyForAll, &s.InRecovery, &s.Database, &s.Role, &s.Citus}, `
		SELECT current_setting('server_version'), current_setting('server_version_num')::integer, r.setting::boolean, r.source NOT IN ('client', 'session', 'user', 'database user'),
			pg_is_in_recovery(), current_database(), current_user, (SELECT x.extversion FROM pg_extension x WHERE x.extname = 'citus')
		FROM pg_settings r WHERE r.name = 'default_transaction_read_only'`)
	s.Database, s.Role = visible(s.Database), visible(s.Role)
	return err
}

func checkVersion(_ context.Context, e *Examination) error {
	version := "PostgreSQL " + e.report.Server.Version
	if citus := e.report.Server.Citus; citus != nil {
		version += ", Citus " + *citus
	}
	if e.report.Server.number < 150000 {
		e.add(Problem, "", "version", version, "upgrade the server to PostgreSQL 15 or later")
	} else {
		e.add(OK, "", "version", version, "")
	}
	return nil
}

func checkReadOnly(_ context.Context, e *Examination) error {
	switch s := e.report.Server; {
	case s.InRecovery:
		e.add(Warning, "", "standby", "inserts with defaults, claims and partition maintenance need the primary, and the clock and the generators below can differ there",
			"connect to the primary, for example with target_session_attrs=read-write in the URL")
	case s.readOnly && s.readOnlyForAll:
		e.add(Problem, "", "primary", "default_transaction_read_only is on for the database or the server, so inserts, claims and partition maintenance fail",
			"remove the setting from the database or the server")
	case s.readOnly:
		e.add(Warning, "", "primary", "default_transaction_read_only is on for this session, so inserts, claims and partition maintenance fail in sessions like this one",
			"remove the setting from the connection string or the role, if programs use the same")
	default:
		e.add(OK, "", "primary", "accepts writes", "")
	}
	return nil
}

const (
	smallSkew = 100 * time.Millisecond // warning above
	largeSkew = time.Second            // problem above: the generators of the SQL defaults wait that long
)

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
	certain := e.ahead.Abs() - shortest/2
	if certain <= smallSkew {
		e.add(OK, "", "the server's clock", detail, "")
		return nil
	}
	level := Warning
	if certain > largeSkew {
		level = Problem
	}
	e.add(level, "", "the server's clock", detail+"; IDs of programs and of SQL defaults then sort and expire by different clocks, and a time window such as the last minute misses rows",
		"find out which clock is wrong, and slew it with NTP")
	return nil
}
