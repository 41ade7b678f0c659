// Package figures contains shared code for the benchmarks of this module.
package figures

import (
	"cmp"
	"slices"
	"syscall"
	"time"
)

// AwaitUnit spins until a new unit of time begins.
func AwaitUnit(unit time.Duration) {
	now := func() int64 { return time.Now().UnixNano() / int64(unit) }
	for was := now(); now() == was; {
	}
}

// CPUTime returns the CPU time of the process on all cores.
func CPUTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Median returns the median of figures. It sorts them.
func Median[T cmp.Ordered](figures []T) T {
	slices.Sort(figures)
	return figures[len(figures)/2]
}
