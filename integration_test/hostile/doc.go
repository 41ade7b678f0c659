// Package hostile tests that an administrator's command or library call never runs code
// of a lesser role.
//
// A query runs code that it doesn't name: the functions of a view, a trigger, a policy,
// the CHECK of a domain, the output function of a type. That code has the rights of the
// session. So each test here plants a trap, and an administrator walks into it. The library's
// rule has two parts, and so have the traps: it opens no table of a role that the session doesn't
// trust, whatever the definition of the table is, and it uses no schema that such a role could
// have changed.
//
// # Roles
//
//   - mallory has LOGIN, CREATE on the database, a schema mallory, and in some traps a
//     documented grant, such as REFERENCES on a table or the functions of leases.
//   - The administrator is a superuser in one half of the tests. In the other half it is
//     dba, a plain role with CREATE on the database. The administrator owns the tables in
//     schema shop, and the installation.
//   - service is a program's role, with the grants for programs and monitoring. In some traps it
//     takes the place of the administrator.
//   - prize is a role that the administrator can grant.
//
// Roles belong to the server, so their names end with the name of the test's database.
//
// # The payload
//
// Each trap calls mallory.payload. If the session isn't one of mallory's, it counts the
// call, and tries to grant prize and the tables of the administrator to mallory, and to
// make mallory a superuser. The server's statistics count the call even in a transaction
// that is read-only or rolled back. TestPayload shows that.
//
// A test fails if
//
//   - the payload ran in a call,
//   - mallory has a privilege, a membership or an object after the calls that it hadn't,
//   - a call failed, and its error names no object of the trap,
//   - the output has a control character, a name begins a line of it, or the command panicked.
//
// A privilege that the administrator grants on purpose is part of a trap: mallory must not
// get more by it than the documentation says.
//
// # Files
//
//   - trap_test.go: roles, payload, and the checks
//   - install_test.go: schemas and objects that stand where the installation belongs
//   - tables_test.go: tables with keys, for everything that reads or maintains tables
//   - rekey_test.go: objects that depend on a table whose key changes
//   - state_test.go: forged plans of a rekey
//   - partitions_test.go, leases_test.go: a role with the grants to maintain or claim
//   - names_test.go: names and notes with control characters
//
// Traps that leave no trace share a database: after each, the test drops mallory's objects, and
// compares the catalogs and the rows of the administrator with those before the trap.
//
// # Running
//
//	go test ./hostile -run TestInstall/dba/.*/view_revision   # on a container of Postgres 17
//	DATABASE_URL=postgres://me@localhost/db go test ./hostile -run TestPayload
//
// No test needs a container. The user of DATABASE_URL must be a superuser.
//
// # Cost
//
// About 85 s of CPU time, on one server, for 80 traps per administrator. The superuser uses
// the first requested version of Postgres, and dba the last one. With -short, 10 seconds: the
// superuser walks into one trap of each of six tests.
package hostile
