package dbhealth

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"time"
)

var serverVersion = Rule{
	ID: "server-version", Area: "server",
	Means:  "the server is older than Postgres 15",
	Remedy: "upgrade it",
	check: func(_ context.Context, e *Examination) error {
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
	},
}

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

var serverReadOnly = Rule{
	ID: "server-read-only", Area: "server",
	Means:  "the server is a standby, or the session is read-only by default; as a problem, all sessions are",
	Remedy: "connect to the primary; remove `default_transaction_read_only`",
	check: func(_ context.Context, e *Examination) error {
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
	},
}

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
