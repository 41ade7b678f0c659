// Package figures has what the benchmarks of this module share.
package figures
