// Package insertbench measures inserts by the kind of primary key: for bulk inserts
// the time, the size of the index and the write-ahead log; for single rows the time.
// It contains only benchmarks and needs a server:
//
//	../../scripts/with-postgres go test -bench .
//
// README.md in the parent folder describes the figures.
package insertbench
