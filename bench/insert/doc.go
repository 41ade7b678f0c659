// Package insertbench measures what a primary key costs where rows are
// inserted, by where the keys come from: many at once, the time, the size of the
// index and the write-ahead log; and one by one, as programs do it. It holds
// benchmarks and nothing else, and needs a server:
//
//	../../scripts/with-postgres go test -bench .
//
// README.md of the folder above says what the figures mean.
package insertbench
