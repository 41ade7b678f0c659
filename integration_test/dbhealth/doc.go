// Package dbhealth tests the rules of internal/dbhealth on real Postgres.
//
// # What it shows
//
// TestRules plants one fault per case in a healthy database. Its rule finds the fault, with a
// remedy, and no other rule finds anything. A new rule needs a case for each of its findings there.
// TestUnknown runs the rules as a role without privileges, whose findings are unknown, not errors.
// In TestViews, the commands doctor, migrate check and the lists, and the metrics, report the same
// findings.
//
// The unit tests of internal/dbhealth need no server. Package command tests how sortkey doctor
// shows findings, and the rules that need Citus.
//
// # Fixtures
//
// The template installed is a database after migrations.Up. Each case adds its objects in SQL,
// in which DB stands for the name of the database. TestMain builds the command sortkey.
//
// # Running
//
//	go test ./dbhealth -run 'TestRules/sequence_ahead'   # one rule, on a container of Postgres 17
//	DATABASE_URL=postgres://me@localhost/db go test ./dbhealth -run TestUnknown
//
// No test needs a container.
//
// # Cost
//
// About 30 seconds with one version of Postgres, on one server: a database per case.
package dbhealth
