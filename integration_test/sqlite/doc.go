// Package sqlite shows that the ID types, GORM and the plugin work together on SQLite, which needs
// no server.
//
// It runs the tests of package internal/gormtest that package gorm runs on Postgres, and the test
// of foreign keys of other types, which needs columns without a type. It is a package of its own
// because the compiler takes half a minute for SQLite.
//
// # Running
//
//	go test ./sqlite
//	go test ./sqlite -run 'TestSno/^Upsert$' -v
//
// With -short, it runs nothing.
package sqlite
