// Package migrations tests package migrations and its SQL on real servers.
//
// # What it shows
//
//   - install_test.go, check_test.go, tools_test.go, dump_test.go: installations, with each driver
//     and migration tool, next to others, in dumps, and the errors of Check
//   - generators_test.go, setting_test.go, uuid7_test.go: defaults generate IDs in many sessions,
//     in order and without duplicates, with node numbers as arguments and from the setting
//   - clock_test.go, crash_test.go, storm_test.go: generators survive clock steps, crashes,
//     failovers, stopped and canceled sessions
//   - parity_test.go, at_test.go: SQL functions and Go return the same results
//   - plans_test.go, statistics_test.go: queries by time use the index, and the planner estimates
//     their rows
//   - partitions_test.go, partman_test.go: partitions, by sortkey and by pg_partman
//   - privileges_test.go: roles with few privileges, and callers that shadow functions
//
// The unit tests of package migrations render the SQL without a server. Package citus runs it on
// a cluster, package hostile against an attacker, and package pglease tests the leases.
//
// # Fixtures
//
// The template installed in migrations_test.go is a database with the functions of all formats;
// up installs other configurations. formats_test.go describes the SQL functions of each format,
// with their Go types. Names of helpers begin with their subject: gen, install, partition, parity,
// at.
//
// # Running
//
//	go test ./migrations -run TestServerDefaults         # on a container of Postgres 17
//	DATABASE_URL='postgres://me@localhost/db?sslmode=disable' go test ./migrations -run TestUpAndDown
//	SORTKEY_SOAK=2m go test ./migrations -run TestServerStorm
//
// Without sslmode, lib/pq refuses servers without TLS.
//
// The tests in clock_test.go, crash_test.go, dump_test.go and partman_test.go, and TestPSQL,
// TestPartitionsDump and TestServerStopped, need containers.
//
// # Cost
//
// About 45 seconds on two cores with one version of Postgres: one server for most tests, two for
// crashes and the failover, one for the clock, and one with pg_partman. Tests run four at a time,
// since many of them wait.
//
// With -short, about 8 seconds on one server: the tests that a fault in the SQL or in package
// migrations breaks first, in TestMain. Counts are smaller, and there are fewer layouts and
// traces. Tests of catalogs, definitions, plans and dumps, and one of defaults, run on all
// versions; the others run on the last one.
package migrations
