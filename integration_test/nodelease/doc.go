// Package nodelease tests claims of node numbers with real processes and real faults:
// processes are killed and stopped, servers are paused, cut off, stopped and restarted,
// and clocks are wrong by an hour. The tests check all IDs of the processes for
// duplicates.
//
// # What it shows
//
// TestPostgres runs these scenarios. TestZooKeeper runs the scenarios that depend on the store:
//
//   - processes_unix_test.go, clocks_unix_test.go: processes end, stop, or have a wrong clock
//   - servers_unix_test.go: the server is down for longer or shorter than claims last
//   - chaos_unix_test.go: random faults of processes and of the server
//   - postgres_unix_test.go: also steps of the server's clock
//
// One scenario plants duplicates, which the checks must find. The unit tests of package nodelease
// simulate fleets of instances with a fake clock. Packages pglease and zklease, next to this
// package, test the stores.
//
// # Fixtures
//
// The program minter creates IDs with a claimed number. It writes them to a journal before it
// uses them, and reports events on its standard output. A scenario has processes that share a
// pool of four numbers, with a TTL that suits the machine. check_unix_test.go reads the
// journals. If the machine was too busy, the scenario is repeated with a longer TTL
// (trial_unix_test.go).
//
// # Running
//
//	go test ./nodelease -run 'TestPostgres/^outages$'
//	DATABASE_URL=postgres://me@localhost/db go test ./nodelease -run 'TestPostgres/^kill$'
//	SORTKEY_SOAK=10m go test ./nodelease -run /chaos -timeout 60m
//
// SORTKEY_SEED repeats the random choices of a run. SORTKEY_SOAK is the duration of the random
// faults. The scenarios of processes and clocks run on a server that you choose with
// DATABASE_URL. All others need containers. The tests build only on Unix: they use
// signals.
//
// # Cost
//
// About a minute, most of it waiting for claims to expire, on six servers of Postgres and three of
// ZooKeeper, which start one after another. Tests of exact times are in package nodelease, with a
// fake clock. With -short, no test runs.
package nodelease
