// Package guide tests the code of the pages in docs: the Go code in examples/guide, and the SQL as
// it stands in the pages.
//
// # What it shows
//
// Each file tests the pages on one subject: choosing, migrating, monitoring, operations, partitioning, scaling,
// security and storage. Tests compare the output, tables
// and figures on a page with the results of the code and the server. They also check claims, such
// as that a role can do everything that a page grants, and nothing else.
//
// The tests in examples/guide need no server. Package examples runs README.md and the other
// examples, and checks a claim of docs/storage.md about SQLite. Package citus runs the section on
// Citus.
//
// # Fixtures
//
// Package internal/docs reads the SQL of a page by its names. The template migrated is a database
// after migrations.Up. Each test creates the tables of its page.
//
// # Running
//
//	go test ./guide -run TestStorage                     # on a container of Postgres 17
//	go test ./guide -run TestChoosingOdds                # without Postgres
//	DATABASE_URL=postgres://me@localhost/db go test ./guide -run TestOperationsSQL
//
// TestSites, TestPartitioningReplicated and TestPartmanSQL need containers.
//
// # Cost
//
// About 20 seconds with one version of Postgres. Most tests share one server. TestSites starts
// two more in its container, TestPartitioningReplicated starts a pair, and TestPartmanSQL
// a server with pg_partman. With -short, six tests run in a few seconds on one server.
package guide
