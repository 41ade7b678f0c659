// Package multiwriter tests IDs on two servers that accept writes at the same time
// and replicate to each other. If both create the same key, no index rejects it:
// each server stores its own row, and replication stops at the row of the other.
//
// # What it shows
//
// TestTwoServers writes at both servers, with IDs of Go generators, GORM and SQL defaults. Each
// generator has its own node number, so both servers converge to the same rows, also after the
// link between them was cut. Its last part shows that it would fail with equal numbers.
//
// Package guide runs the SQL of docs/scaling-out.md for two sites.
//
// # Fixtures
//
// site_test.go has the type site: a server with its writers, and the counts of the rows that
// they wrote. Both servers have the same four tables. The keys of orders and events come from Go,
// the keys of payments and notes from defaults. A pgtest.Link is the network between the servers,
// which the test can cut.
//
// # Running
//
//	go test ./multiwriter -run TestTwoServers            # on Postgres 17
//	go test ./multiwriter -run 'TestTwoServers/.*/cut'
//
// The test needs containers: it starts two servers of the last requested version from 16 on, and
// ignores DATABASE_URL.
//
// # Cost
//
// About 15 seconds and two containers, mostly waiting: servers notice a cut after 3 seconds. Nothing
// runs with -short.
package multiwriter
