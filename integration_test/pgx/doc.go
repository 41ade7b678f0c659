// Package pgx shows that pgx and package pgxcodec store and read IDs without a loss on Postgres.
//
// # What it shows
//
// table_test.go stores each Go type in each of its column types and in domains over them, and
// reads it back: values, pointers, NULL and slices, in all query exec modes. The other files are
// subjects:
//
//   - copy_test.go, query_test.go, composite_test.go, json_test.go: COPY, batches, rows in
//     structs, ranges, composite types and JSON that the server makes
//   - order_test.go: IDs sort in Go as in the column, and time windows find the right rows
//   - domain_test.go: domains of all schemas, and codecs of the caller
//   - refusal_test.go: values that aren't IDs, wrong columns, and the remedies in errors
//   - differential_test.go: connections with the codec and without it store the same values
//
// The unit tests of pgxcodec have what needs no server: encoding and scan plans, allocations,
// and fuzz targets.
//
// # Fixtures
//
// types_test.go lists the Go types, with the edge cases of package idtest, and the domains, and
// has the checks that several files use. The tests share databases with all domains and tables,
// which are emptied after each test. holders_test.go makes values of any Go type, so that the
// tests are compiled once and not once per type.
//
// # Running
//
//	go test ./pgx -run TestOrder                         # on a container of Postgres 17
//	go test ./pgx -run 'TestTable/pg17/^exec$' -v        # one query exec mode
//	DATABASE_URL=postgres://me@localhost/db go test ./pgx -run TestCopy
//
// Names of subtests are test/version/mode. No test needs a container.
//
// # Cost
//
// About half a minute, on one server. The tests of values, domains, ranges and composites run on
// each requested version, the others on the last one. With -short, the tests in TestMain run, for
// five seconds, in two modes: one that learns the types of parameters, and one that doesn't.
package pgx
