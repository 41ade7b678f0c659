// Package gormbench measures what it costs to have the plugin fill in the keys
// of the rows that GORM creates, next to the other ways in which they get theirs
// in the same run. It holds benchmarks and nothing else:
//
//	go test -bench 'Callback|Create$'                             # without a server
//	../../scripts/with-postgres go test -bench 'Postgres|Upsert'  # the same with one
//
// README.md of the folder above says what the figures mean.
package gormbench
