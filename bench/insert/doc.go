// Package insertbench measures what a primary key costs where rows are
// inserted: the time, the size of its index and the write-ahead log, by where
// the keys come from. It holds benchmarks and nothing else, and needs a server:
//
//	../../scripts/with-postgres go test -bench .
//
// README.md of the folder above says what the figures mean.
package insertbench
