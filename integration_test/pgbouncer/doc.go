// Package pgbouncer tests the codec through PgBouncer in transaction mode, in which
// each transaction of a client may use another connection to the server.
//
// # What it shows
//
// With two backends, consecutive statements of a client run on different connections to the
// server. TestTransactionMode stores and reads all forms of IDs this way: in each query exec mode
// of pgx, with and without transactions, through database/sql, in batches and COPY, and from
// concurrent clients. A mode that can't work fails with the SQLSTATE of setup.expected. The table
// setups has versions of PgBouncer with and without support for prepared statements. Up and Down
// of package migrations work, too.
//
// # Fixtures
//
//   - pgbouncer_test.go: the setups; the proxy; and the turner, which makes PgBouncer use the
//     other backend for the next statement
//   - modes_test.go: the expected outcome of each mode, prepared statements and domains
//   - values_test.go: the values, batches and COPY. Each concurrent client has its own tables
//
// # Running
//
//	go test ./pgbouncer -run 'TestTransactionMode/^1.24$/pg17/domains'
//	POSTGRES_VERSIONS=17 go test ./pgbouncer             # all setups
//
// All tests need containers, and ignore DATABASE_URL. scripts/image builds an image per version
// of PgBouncer, once.
//
// # Cost
//
// About half a minute with one version of Postgres, on one server and a container of PgBouncer
// per setup. With -short, nothing runs.
package pgbouncer
