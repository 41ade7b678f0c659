package dbhealth

import "context"

var serverReadOnly = Rule{
	ID: "server-read-only", Area: "server",
	Means:  "the server is a standby, or sessions are read-only by default",
	Remedy: "connect to the primary; remove `default_transaction_read_only`",
	check: func(_ context.Context, e *Examination) error {
		switch s := e.report.Server; {
		case s.InRecovery:
			e.add(Warning, "", "standby", "inserts with defaults, claims and partition maintenance need the primary, and the clock and the generators below can differ there",
				"connect to the primary, for example with target_session_attrs=read-write in the URL")
		case s.readOnly:
			e.add(Warning, "", "primary", "default_transaction_read_only is on, so inserts, claims and partition maintenance fail",
				"remove the setting from the connection string, the role, the database or the server")
		default:
			e.add(OK, "", "primary", "accepts writes", "")
		}
		return nil
	},
}
