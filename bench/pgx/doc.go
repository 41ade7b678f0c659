// Package pgxbench measures what it costs to send IDs to Postgres and to read
// them with pgx, next to pgx's own types and to google/uuid in the same run. It
// holds benchmarks and nothing else:
//
//	go test -bench 'Encode|Scan'                                # the codecs
//	../../scripts/with-postgres go test -bench 'Rows|CopyFrom'  # the same with a server
//
// README.md of the folder above says what the figures mean.
package pgxbench
