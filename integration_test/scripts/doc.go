// Package scripts tests scripts/with-postgres.
//
// # What it shows
//
//   - withpostgres_unix_test.go: which server the script chooses, and the environment of its command
//
// # Fixtures
//
// The tests replace docker, initdb, pg_ctl and postgres by shell scripts in a folder on PATH.
//
// # Running
//
//	go test ./scripts -run TestVersion
//
// The tests need only bash.
//
// # Cost
//
// A few seconds. Nothing runs with -short.
package scripts
