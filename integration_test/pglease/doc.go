// Package pglease tests package pglease, the store of node numbers in Postgres, on real servers.
//
// # What it shows
//
//   - pglease_test.go: the store passes leasetest.TestStore, directly and behind PgBouncer, and
//     works with each driver and query exec mode
//   - claims_test.go: concurrent claims, stuck transactions, durability, reservations, the rows
//     and plans of a claim, and a thousand claims at once
//   - failover_test.go, clock_test.go: a standby is promoted, the timeline changes as after a
//     restore, and the server's clock steps, while claims are held
//   - grants_test.go, errors_test.go: roles with the documented privileges, and the remedies in
//     errors
//
// The unit tests of pglease use no server. Package nodelease, next to this package, tests the
// claims of real processes under faults, and package zklease the same store in ZooKeeper.
//
// # Fixtures
//
// installed is a template with the functions, and store returns a store in a copy of it. Tests
// that change only rows use copies one after the other. up installs the functions on a server of
// the test's own. small returns a pool of a few numbers. The pools and reservations are the tables
// of the installation. role creates a role with the documented privileges.
//
// # Running
//
//	go test ./pglease -run TestIsolation                 # on a container of Postgres 17
//	DATABASE_URL='postgres://me@localhost/db?sslmode=disable' go test ./pglease -run TestReserve
//
// Without sslmode, lib/pq refuses servers without TLS. TestPgBouncer, TestFailover and
// TestServerClockSteps need containers.
//
// # Cost
//
// About half a minute with one version of Postgres: a server for most tests, one each for the
// failover and the clock, and PgBouncer. Tests mostly wait, so 16 run at once. With -short, the
// tests of claims, the fence, reservations and privileges run in 5 s, on one server, and
// leasetest.TestStore has a TTL of half a second instead of three.
package pglease
