// Package gormbench measures the cost of the GORM plugin, compared with other ways to
// create keys in the same run. It contains only benchmarks:
//
//	go test -bench Callback                                # without a server
//	../../scripts/with-postgres go test -bench Postgres    # with a server
//
// README.md in the parent folder describes the figures.
package gormbench
