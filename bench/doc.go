// Package bench measures how fast this module and other Go libraries generate,
// format and parse IDs. It contains only benchmarks, which README.md describes:
//
//	go test -bench . -captime 1s
package bench
