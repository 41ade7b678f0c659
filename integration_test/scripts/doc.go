// Package scripts tests scripts/with-postgres.
//
// # What it shows
//
//   - withpostgres_unix_test.go: which server the script chooses, the environment of its command,
//     where it reaches a container, and that nothing is left of a run that was killed
//
// # Fixtures
//
// Most tests replace docker, initdb, pg_ctl and postgres by shell scripts in a folder on PATH.
//
// # Running
//
//	go test ./scripts -run TestVersion
//
// TestKilledContainer needs containers. The other tests need only bash.
//
// # Cost
//
// About a minute. Nothing runs with -short.
package scripts
