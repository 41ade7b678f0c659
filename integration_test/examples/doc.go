// Package examples runs the code of examples and of README.md on Postgres.
//
// # What it shows
//
//   - examples_test.go: the quickstart, the tests in examples/testing, and
//     the examples of package pgxcodec that need a server
//   - readme_test.go: the program in README.md, and a default in a table with partitions
//   - moving_test.go: examples/moving moves tables from sequences to generated keys, by SQL, by
//     GORM's AutoMigrate, and by rekey while two versions of a program run
//   - sqlc_test.go: queries that sqlc generates, in all query exec modes of pgx
//   - storage_test.go: what docs/storage.md says about SQLite
//
// The tests in the module examples need no server. Package guide runs the code of the pages in
// docs, package frameworks the recipes of docs/using-with.md, and package service the example of
// a service.
//
// # Fixtures
//
// The programs and the SQL files are in examples. Each test runs them in a database of its own,
// as a reader would: the programs are built, and get DATABASE_URL.
//
// # Running
//
//	go test ./examples -run TestSqlc                     # on a container of Postgres 17
//	DATABASE_URL=postgres://me@localhost/db go test ./examples -run TestQuickstart
//
// No test needs a container.
//
// # Cost
//
// Less than a minute with one version of Postgres, on one server. The first run takes longer,
// because it builds the programs. Nothing runs with -short.
package examples
