// Command report runs the benchmarks of this module, keeps what they print, and
// makes a page and plots of it. It is what make bench runs, from the root of the
// repository:
//
//	go run ./bench/report          # all: docs/benchmarks.md, .txt and docs/images
//	go run ./bench/report -quick   # less of each, in .bin/benchmarks
//	go run ./bench/report -from docs/benchmarks.txt
//
// The last one measures nothing: it makes the page and the plots of a file anew.
package main
