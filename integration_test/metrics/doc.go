// Package metrics tests package metrics on Postgres, and its alerts and dashboard on Prometheus.
//
// # What it shows
//
// TestDatabase reads the metrics of a database with the privileges that the documentation names,
// and without some of them. TestFailedSearch does so while a rule fails. TestPrometheus lets a Prometheus server scrape a program with
// generators, claims and a database. The server evaluates each rule of alerts.yaml, each panel of
// dashboard.json has data, and promtool runs alerts_test.yaml and alerts_days_test.yaml.
//
// The unit tests of package metrics cover the collector without a database, and the files.
//
// # Fixtures
//
// install runs the migrations and creates the partitioned tables events and visits. Only events
// has partitions. Package promtest runs Prometheus, which scrapes the test process.
//
// # Running
//
//	go test ./metrics -run TestDatabase                  # on a container of Postgres 17
//	DATABASE_URL=postgres://me@localhost/db go test ./metrics -run TestDatabase
//
// TestPrometheus needs containers: its server is an image that scripts/image builds once.
//
// # Cost
//
// About 10 seconds on two cores, on one server and one container of Prometheus. Nothing runs with -short.
package metrics
