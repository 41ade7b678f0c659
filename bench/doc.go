// Package bench measures how fast IDs are minted, written and read, next to
// other Go libraries in the same run. It holds benchmarks and nothing else:
//
//	go test -bench .                     # all of them, about five minutes
//	go test -bench 'Next$|NextParallel'  # the cost of an ID below the format's cap
//	go test -bench AtCap -captime 10s    # the share of the cap that is reached
//
// README.md says what the figures mean.
package bench
