// Package pgtest gives tests databases on real Postgres servers.
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
// [Each] runs its function as TestInsert/pg17, and so on for every version
// that is asked for, each time with an empty database of its own; [One] on the
// last of them. Tests of a package share one server per version, which
// starts when the first test needs it. All that a test opens through its [DB] is
// closed when the test ends, and if the test failed it shows what the server
// logged.
//
// With a [Template] the database is a copy of one that is filled once per server:
// [Template.Each] drops the copy when the test ends. For hundreds of short tests,
// [Template.EachReused] empties it and gives it to the next test.
//
// # Where the servers come from
//
// The first of these that applies:
//
//   - POSTGRES_VERSIONS, such as "15 17 18": a container of each version.
//   - DATABASE_URL: that server; the user must be allowed to create databases.
//   - Docker, if it answers: a container of version 17.
//   - The server binaries that scripts/with-postgres finds on this machine.
//
// Where there is none, tests fail and say what was looked for: a test that is
// passed over in silence is worth nothing.
//
// # Containers
//
// A test that needs more than a database, such as a server that it can pause,
// or a proxy, calls [EachServer], [OneServer], [EachContainer], [Container] or
// [NeedsContainers]. [EachPartman] gives servers that have pg_partman,
// [OneFaketime] one whose clock the test steps, [OnePair] two that can
// replicate, by a link that the test cuts, and [Citus] a cluster. Without Docker
// these tests are listed as not run when the package's tests end, also in the
// file that TESTS_NOT_RUN names; where CI is "true" that is a failure. The same
// holds for tests of Citus on a machine that gets no image of it.
//
// Whatever way the test process ends, killed included, its containers go.
package pgtest
