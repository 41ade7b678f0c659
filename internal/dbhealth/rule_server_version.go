package dbhealth

import "context"

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
