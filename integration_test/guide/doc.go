// Package guide tests the code of the pages in docs, which is in examples/guide.
//
// # What it shows
//
// Each file tests the pages on one subject: choosing, migrating, operations, partitioning, scaling,
// security and storage. The SQL runs in the order of the page. Tests compare the output, tables
// and figures on a page with the results of the code and the server. They also check claims, such
// as that a role can do everything that a page grants, and nothing else.
//
// The tests in examples/guide need no server. Package examples runs README.md and the other
// examples, and package citus the section on Citus.
//
// # Fixtures
//
// A piece is a part of a file of SQL, from one heading to the next. A heading is a comment with
// the name of the piece in brackets. Pages refer to pieces by their names. The template migrated is a database after migrations.Up. Each
// test creates the tables of its page.
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
// About half a minute with one version of Postgres. Most tests share one server. TestSites starts
// two more in its container, TestPartitioningReplicated starts a pair, and TestPartmanSQL
// a server with pg_partman.
package guide
