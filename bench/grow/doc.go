// Package growbench measures what inserting costs as tables grow, by where
// their primary keys come from: rows in a second, the size of the index and the
// write-ahead log. It holds benchmarks and nothing else, and needs a server:
//
//	../../scripts/with-postgres go test -bench .
//
// README.md of the folder above says what the figures mean.
package growbench
