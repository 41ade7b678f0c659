// Package pgtest provides databases on real Postgres servers for tests.
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//
//	func TestInsert(t *testing.T) {
//		pgtest.Each(t, func(t *testing.T, db *pgtest.DB) {
//			db.Exec(t, "create table t (id bigint primary key)")
//			conn := db.Conn(t, pgtest.Codec)
//			...
//		})
//	}
//
// [Each] runs its function once per requested version of Postgres, as TestInsert/pg17
// and so on, each time with its own empty database. [One] runs it on the last version
// only. Tests of a package share one server per version, which starts when the first
// test needs it. When a test ends, pgtest closes all clients that the test opened
// through its [DB]. If the test failed, pgtest shows the server's log.
//
// A [Template] fills a database once per server and gives each test a copy.
// [Template.Each] drops the copy when the test ends. For hundreds of short tests,
// [Template.EachReused] empties the copy and gives it to the next test.
//
// # Where the servers come from
//
// pgtest uses the first of these that applies:
//
//   - POSTGRES_VERSIONS, such as "15 17 18": a container per version.
//   - DATABASE_URL: that server. The user must be a superuser. Without TLS on the server, the URL
//     needs sslmode=disable, for lib/pq.
//   - Docker, if it answers: a container of version 17.
//   - The server programs that scripts/with-postgres finds on this machine.
//
// If none applies, tests fail with an error that lists these sources. They fail rather
// than skip, because skipped tests go unnoticed.
//
// # Containers
//
// A test that needs more than a database, such as a proxy or a server that it can
// pause, calls one of:
//   - [OneServer]: a server for this test alone
//   - [EachContainer] and [OneContainer]: a shared server that other containers can reach
//   - [Container] and [NeedsContainers]: any other container
//   - [EachPartman]: a server with pg_partman
//   - [OneFaketime]: a server whose clock the test can step
//   - [OnePair]: two servers that can replicate over a link that the test can cut
//   - [Citus]: a cluster
//
// Without Docker, pgtest lists these tests as not run when the package's tests end. It
// also appends them to the file that TESTS_NOT_RUN names. If CI is "true", it fails.
// The same applies to tests of Citus if no image of Citus is available.
//
// The containers are removed when the test process ends, even if it is killed.
//
// # Short and thorough runs
//
// With -short, only the tests that a package passes to [Main] run. In these, [Thorough] is
// false, [Scaled] chooses the smaller count, and [Soak] the shorter duration, unless
// SORTKEY_SOAK sets one. Without -short, all tests run all variants with full counts.
//
// # Its own tests
//
// The tests in testdata/misbehave fail, crash or are killed, in processes that the tests of this
// package start and observe.
//
//	go test ./internal/pgtest -run TestTemplate          # on a container of Postgres 17
//	DATABASE_URL=postgres://me@localhost/db go test ./internal/pgtest -run '^TestEach$'
//
// Most of them need containers, because they test them, and start several short-lived ones.
package pgtest
