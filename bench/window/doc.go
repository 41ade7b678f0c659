// Package windowbench measures queries for the rows of an hour, of a day and for
// the latest ones: by a range of keys, and by what tables have instead. It holds
// benchmarks and nothing else, and needs a server:
//
//	../../scripts/with-postgres go test -bench .
//
// README.md of the folder above says what the figures mean.
package windowbench
