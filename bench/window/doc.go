// Package windowbench measures queries for the rows of a day and for
// the latest rows: by a range of keys, by a column created_at, and by the time in
// each key. It contains only benchmarks and needs a server:
//
//	../../scripts/with-postgres go test -bench .
//
// README.md in the parent folder describes the figures.
package windowbench
