// Package citus tests the SQL of package migrations on a Citus cluster: a
// coordinator and two workers.
//
// # What it shows
//
//   - defaults_test.go: every server generates IDs with a node number of its own, in statements
//     of all forms and at the same time. No ID repeats.
//   - tables_test.go: keys in distributed, reference and schema-sharded tables, with pgx, GORM
//     and COPY, while a shard moves, and how evenly they spread over shards
//   - citus_test.go: claims, partitions, and limits of Citus that the documentation warns of,
//     such as domains as distribution columns
//   - page_test.go: the SQL of the section on Citus in docs/scaling-out.md
//
// Package migrations has the tests of the same functions on single servers. Package command
// tests doctor and audit on Citus.
//
// # Fixtures
//
// pgtest.Citus starts the cluster once for the package, and gives each test its own database on
// all three servers. installed runs the migrations there. generating also gives each server its
// node number: 1023 for the coordinator, and the numbers below for the workers.
//
// # Running
//
//	go test ./citus -run TestDefaults
//
// All tests need containers and an image of Citus, which scripts/image citus pulls or compiles.
// Without one, they are listed as not run. They ignore POSTGRES_VERSIONS and DATABASE_URL: the
// image has one version of Postgres.
//
// # Cost
//
// About a minute, on three containers. Nothing runs with -short.
package citus
