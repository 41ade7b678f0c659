// Package command runs the built command sortkey against real Postgres.
//
// # What it shows
//
// Each test runs the program as a user does, and checks its output, exit code and effects. The
// files are the subcommands: migrate, nodes, partitions, audit, doctor, rekey, sqlc, and the
// generation and conversion of IDs. connection_test.go has what all commands share: errors of the connection,
// missing privileges, interrupts and terminals. page_test.go has the sessions in README.md,
// docs/command.md and docs/rekey.md.
//
// The unit tests of cmd/sortkey have what needs no database: flags, formats of the output, and
// the commands for single IDs. Package hostile runs the same commands against traps.
//
// # Fixtures
//
// TestMain builds the command. The helpers in main_test.go run it: must for commands that
// succeed, sortkey and wantFailure for the others, start for a command that a test interrupts,
// and onTerminal for one that asks. asRole returns the same database as a role without
// privileges. installed is a template with the installation. The table auditMessy has every
// finding of an audit. testdata/sqlc has a schema with every case of sqlc, and its outputs;
// -update writes them.
//
// # Running
//
//	go test ./command -run TestRekey                     # on a container of Postgres 17
//	go test ./command -run TestPages -update             # updates the sessions in the pages
//	DATABASE_URL=postgres://me@localhost/db go test ./command -run TestAuditFindings
//
// TestMigrateExportPlain, TestAuditPgBouncer, TestAuditCitus, TestDoctorClock, TestDoctorStandby
// and TestDoctorCitus need containers. A part of TestSqlc needs the program node.
//
// # Cost
//
// About a minute of CPU time: a server for most tests, a server each for TestDoctorClock and
// TestDoctorStandby, PgBouncer, and a Citus cluster. Most tests use only the last requested version
// of Postgres. They run in parallel, because they wait for processes and locks.
//
// With -short, ten tests run in a few seconds on one server.
package command
