// Package gorm shows that the ID types, GORM and the plugin work together on databases.
//
// # What it shows
//
// Each test of the table in suite_test.go runs with every ID type, typed keys and the caller's
// own ID types included, on SQLite and on Postgres. On Postgres it runs with package pgxcodec;
// tests in which IDs are encoded or scanned in many forms run without it, too. The files are
// subjects: create, save and hooks, forms of keys, associations, foreign keys, queries, scopes,
// upserts, collisions, migrations. Tests outside the table depend on one ID type or one database.
//
// The unit tests of gormplugin have what needs no database: which generator fills which key in
// structs and maps, Select and Omit, errors of tags and bindings, rejected foreign keys, the SQL
// of scopes, allocations, and generators and drivers that fail.
//
// # Fixtures
//
// models_test.go has the models. All of them are generic in the ID type:
//
//   - thing: an ID and a name.
//   - Person: an association of each kind. k.newGraph returns a person with all of them.
//   - contact: unique keys besides the ID, for upserts.
//   - sender and letter: soft deletion, and IDs of several weeks, for pages and windows.
//   - keyed: an ID in any form, such as *T or sqltypes.Text[T].
//
// The tables of an ID type are created once per server. A test gets an empty copy. A test with
// the field empty gets a database without tables.
//
// # Running
//
//	go test ./gorm                                       # on a container of Postgres 17
//	go test ./gorm -run '/^SQLite$'                      # without Postgres
//	go test ./gorm -run 'TestSno/^Upsert$/codec' -v      # one test; -v shows the SQL
//	DATABASE_URL=postgres://me@localhost/db go test ./gorm -run TestDomains
//	CI=true POSTGRES_VERSIONS='15 17 18' go test ./gorm  # all clients and versions
//
// Names of subtests are test/client/version, such as Upsert/codec/pg17 and Upsert/SQLite.
//
// # Cost
//
// With one version of Postgres: 20 seconds of CPU time in the tests and 16 in the server.
// Outside CI, only Snowflake and Sno run every test on Postgres. The other ID types run there
// where their values matter (wide in the table), and on SQLite otherwise.
package gorm
