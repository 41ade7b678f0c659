package dbhealth

import "context"

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
