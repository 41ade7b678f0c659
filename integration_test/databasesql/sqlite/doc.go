// Package sqlite shows that database/sql stores and reads the ID types in SQLite, which needs no server.
//
// It runs the tests of package idtest that package databasesql runs with drivers of Postgres. It is a
// package of its own because the compiler takes half a minute for SQLite.
//
// # Running
//
//	go test ./databasesql/sqlite
package sqlite
