// Package gormgen tests the ID types with the query code of gorm.io/gen.
//
// # What it shows
//
// TestGen runs the program in generate, which generates package query from the models in model,
// and then runs the tests in testdata with that package. They create rows and associations,
// and query by keys, nullable keys and windows of time, with package pgxcodec, without it, and
// on SQLite.
//
// Package gorm tests GORM itself, with the same plugin.
//
// # Fixtures
//
// The models Customer, Order and Line have keys of different formats. The generated code isn't in
// the repository: package gentest compiles it into testdata/query by an overlay. An editor
// doesn't see it, and reports errors in testdata.
//
// # Running
//
//	go test ./gormgen                                    # on a container of Postgres 17
//	DATABASE_URL=postgres://me@localhost/db go test ./gormgen
//
// TestGen is the only test. It runs all tests in testdata. No test needs a container.
//
// # Cost
//
// Seconds with one version of Postgres, on one server, and the time to compile gorm.io/gen
// and the generated code. Nothing runs with -short.
package gormgen
