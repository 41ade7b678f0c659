// Package service tests examples/service. Its load test runs three instances behind a
// load balancer and injects faults. It checks every row that the service acknowledged, and
// that Prometheus has data for the dashboard.
//
// SORTKEY_SOAK, for example 10m, is the duration of the load, with claims in Postgres
// and then with claims in ZooKeeper. SORTKEY_REPORT is a file to which the load test
// appends its results in Markdown.
package service
