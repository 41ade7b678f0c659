// Package gorm shows that the ID types, GORM and the plugin work together on Postgres.
//
// # What it shows
//
// The tests are in package internal/gormtest. Each one of its table runs with every ID type, typed
// keys and the caller's own ID types included, with package pgxcodec. Tests in which IDs are encoded
// or scanned in many forms run without it, too, and through a pool. Other tests depend on one ID
// type. Package sqlite runs the tests on SQLite, and package gormgeneric has the tests of gorm.G.
//
// The unit tests of gormplugin have what needs no database: which generator fills which key in
// structs and maps, Select and Omit, errors of tags and bindings, rejected foreign keys, the SQL
// of scopes, allocations, and generators and drivers that fail.
//
// The tables of an ID type are created once per server. Tests use the copies in turn, and get them
// empty. A test that creates tables gets a database of its own.
//
// # Running
//
//	go test ./gorm                                  # on a container of Postgres 17
//	go test ./gorm -run 'TestSno/^Upsert$/codec' -v # one test; -v shows the SQL
//	go test -short ./gorm
//	DATABASE_URL=postgres://me@localhost/db go test ./gorm -run TestDomains
//	POSTGRES_VERSIONS='15 17 18' go test ./gorm
//
// Names of subtests are test/client/version, such as Upsert/codec/pg17.
//
// # Cost
//
// With one version of Postgres: 20 seconds of CPU time in the tests and 16 in the server. With
// -short, three seconds: Snowflake and Sno run the tests that a fault in gormplugin would break
// first. Only these two run with several clients. Tests that call the plugin in the same way for all
// ID types run for seven of them.
package gorm
