// Command report runs the benchmarks of this module, keeps what they print, and
// writes a page with tables and plots. It runs in the root of the repository:
//
//	go run ./bench/report                        # everything: docs/benchmarks.md, docs/images
//	go run ./bench/report -quick                 # less of each: .bin/benchmarks/benchmarks.md
//	go run ./bench/report -again '^minting|GORM' # only some stages
//	go run ./bench/report -render                # no stage: the page of what was kept
//
// What the benchmarks print is kept in .bin/benchmarks/full and quick.
package main
