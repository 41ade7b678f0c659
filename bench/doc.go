// Package bench measures how fast this module and other Go libraries generate,
// format and parse IDs. It contains only benchmarks:
//
//	go test -bench .                     # all, about five minutes
//	go test -bench 'Next$|NextParallel'  # the time per ID below the format's cap
//	go test -bench AtCap -captime 10s    # the percentage of the cap
//
// README.md describes the figures.
package bench
