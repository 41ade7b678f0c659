// Package dbhealth tests the rules of internal/dbhealth on real Postgres.
//
// # What it shows
//
// TestRules plants one fault per case in a healthy database. Its rule finds the fault, with a
// remedy, and no other rule finds anything. A new rule needs a case for each of its findings there.
// TestUnknown runs the rules as a role without privileges, whose findings are unknown, not errors.
// In TestViews, the commands doctor, migrate check and the lists, and the metrics, report the same
// findings. TestNamesOfOtherEncodings reads names that aren't UTF-8.
//
// The unit tests of internal/dbhealth need no server. Package command tests how sortkey doctor
// shows findings, and the rules that need Citus.
//
// # Fixtures
//
// The template installed is a database after migrations.Up. Each case adds its objects in SQL,
// in which DB stands for the name of the database. Most cases use a database one after the
// other: restore drops the objects. A case that changes the installation or other schemas has its
// own. A case that reads no catalogs runs on one version of Postgres. TestViews builds the command
// sortkey.
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
// About 8 seconds on two cores with one version of Postgres, on one server. With -short, about 3
// seconds: the cases of TestRules with the field short.
package dbhealth
