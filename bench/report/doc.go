// Command report runs the benchmarks of this module, keeps their output, and
// writes a page with tables and plots.
// Run it in the root of the repository:
//
//	go run ./bench/report                           # everything: docs/benchmarks.md, docs/images
//	go run ./bench/report -quick                    # less of each: .bin/benchmarks
//	go run ./bench/report -again '^generating|GORM' # only some stages
//	go run ./bench/report -render                   # no stage: the page from kept output
//	go run ./bench/report -redraw                   # no stage: only the plots, from the figures in them
//
// The output is kept in .bin/benchmarks/full and .bin/benchmarks/quick.
package main
