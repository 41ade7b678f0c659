// Package rekey tests package rekey on real servers: the keys of tables in use are replaced,
// and no program fails and no row is lost.
//
// # What it shows
//
//   - steps_test.go: the whole way, back from each step, and steps at a wrong time. Dumps differ
//     only as documented.
//   - undo_test.go, added_test.go: what leads back after contract, and the faults that make it
//     necessary
//   - versions_test.go, races_test.go, triggers_test.go: programs of both versions work on the
//     same rows, in each order of statements, with GORM and pgx, and with triggers
//   - load_test.go, kill_test.go: the same under load, and when programs or servers are killed
//   - waits_test.go: locks, timeouts, canceled steps, and a standby or an archive that is behind
//   - sources_test.go, sequences_test.go: old keys, their references and times, and new formats
//   - refusals_test.go, references_test.go, changes_test.go: what Inspect and the steps refuse, and
//     the remedies that they name
//   - publications_test.go: a subscriber of the tables, also one that is behind
//
// The unit tests of package rekey render plans without a server. Package hostile has tables of
// other owners, and packages command and examples follow docs/rekey.md.
//
// # Fixtures
//
// A job in rekey_test.go is a rekey of the tables of a database, with sessions of programs. The
// shop in shop_test.go has eight tables with every property that rekey carries over, an
// owner and a role for programs. programs_test.go has the programs of both versions.
// library_test.go has authors and their books, with keys of any type. The board in races_test.go
// has lists, and tables that refer to them in every way. The sources in sources_test.go have keys
// and times of any kind. Other tests have small tables, and many cases share a job. runStepper in
// rekey_test.go runs steps in a process that tests can kill.
//
// # Running
//
//	go test ./rekey -run TestStepErrors                  # on a container of Postgres 17
//	DATABASE_URL=postgres://me@localhost/db go test ./rekey -run TestOrders
//	SORTKEY_REKEY_ROWS=1000000 go test ./rekey -run TestLoad -timeout 60m
//
// TestSteps, TestKillServer, TestPressure, TestRestore, TestDumps and TestSubscriber need containers.
//
// SORTKEY_REKEY_ROWS is the row count of the shop in the load test, such as 10000000.
// SORTKEY_SEED repeats the random choices of a run. SORTKEY_SOAK, for example 10m, is
// how long the programs of both versions run side by side under load. If it is set, the
// tests also kill programs and servers with 50 seeds instead of two, and the load test
// checks times.
//
// # Cost
//
// About 4 minutes with one version of Postgres: a server for most tests, one each for TestKillServer,
// TestPressure, TestRestore and TestDumps, and a pair. With -short, the tests in TestMain run, with an eighth of the cases
// of refusals and references.
package rekey
