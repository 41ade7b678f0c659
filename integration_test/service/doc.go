// Package service tests examples/service with real processes, faults and load.
//
// # What it shows
//
// TestService runs one instance with each store of node numbers: its routes, its idempotent
// requests, and the order in which it ends. TestRoles runs an instance and the monitor of the
// database with the grants that docs/security.md has for them. TestLoad runs three instances
// behind a load balancer, and a monitor. It sends requests at a steady rate and injects each
// fault in turn: instances are killed, paused and replaced, Postgres is restarted and killed,
// and the store of node numbers is cut off. It checks every row that the service acknowledged,
// that each failed request is the effect of a fault, and that Prometheus has data for the
// dashboard.
//
// Package nodelease injects more faults into processes that only create IDs.
//
// # Fixtures
//
//   - instance_unix_test.go: a process of the service
//   - balancer_unix_test.go, proxy_unix_test.go: the load balancer, and the link to the store of
//     node numbers that a test can cut
//   - traffic_unix_test.go: the requests, and the rows that were acknowledged
//   - verify_unix_test.go: the checks and the report
//
// # Running
//
//	go test ./service -run TestService/Postgres          # on a container of Postgres 17
//	DATABASE_URL=postgres://me@localhost/db go test ./service -run TestService/Postgres
//	SORTKEY_SOAK=1m go test ./service -run TestLoad/Postgres
//
// SORTKEY_SOAK is the duration of the load, with claims in Postgres and then with claims in
// ZooKeeper. SORTKEY_REPORT is a file to which the load test appends its results in Markdown.
// TestService/ZooKeeper and TestLoad need containers. The tests build only on Unix: they use
// signals.
//
// # Cost
//
// About 45 seconds, most of it for TestLoad: two servers of Postgres, ZooKeeper and Prometheus.
// With -short, no test runs.
//
// Without SORTKEY_SOAK, it injects each fault once, at a third of the rate, and only with claims
// in Postgres. If the machine is too busy, it repeats the load with a longer TTL.
package service
