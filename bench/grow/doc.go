// Package growbench measures inserts into growing tables by the kind of primary key:
// rows per second, the size of the index and the write-ahead log. It contains only
// benchmarks and needs a server:
//
//	../../scripts/with-postgres --durable go test -bench .
//
// README.md in the parent folder describes the figures.
package growbench
