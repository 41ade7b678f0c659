// Package pgxbench measures the cost of sending and reading IDs with pgx, compared
// with pgx's own types and google/uuid in the same run. It contains only benchmarks:
//
//	go test -bench 'Encode|Scan'                                # the codecs
//	../../scripts/with-postgres go test -bench 'Rows|CopyFrom'  # with a server
//
// README.md in the parent folder describes the figures.
package pgxbench
