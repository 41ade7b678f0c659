// Package figures contains shared code for the benchmarks of this module.
package figures
