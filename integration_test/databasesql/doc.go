// Package databasesql shows that database/sql drivers store and read the ID types: pgx with and
// without package pgxcodec, and lib/pq. Package sqlite in its folder has SQLite.
//
// # What it shows
//
// Each driver stores all cases of package idtest in columns of all types that hold IDs, and
// reads them back: with direct queries, prepared statements and in a transaction. Values that
// aren't IDs are errors, and leave the destination unchanged. array_test.go tests a sqltypes.Array
// in an array column. go127_test.go tests the standard library's UUID and pgx's arrays, which need
// Go 1.27.
//
// The unit tests of idtype and sqltypes call Value and Scan without a driver. Package pgx tests
// pgx's own API.
//
// # Fixtures
//
// idtest.CreateTable creates the table forms, with a column per type of column. The tests share
// databases, which are emptied after each test.
//
// # Running
//
//	go test ./databasesql -run TestPq                    # on a container of Postgres 17
//	DATABASE_URL='postgres://me@localhost/db?sslmode=disable' go test ./databasesql -run TestPq
//
// No test needs a container. Without sslmode, lib/pq refuses servers without TLS.
//
// # Cost
//
// Twenty seconds with one version of Postgres, on one server. With -short, the tests in TestMain
// run, for three seconds: with direct queries, in two query exec modes.
package databasesql
