//go:build unix

package figures

import (
	"syscall"
	"time"
)

// CPUTime returns the CPU time of the process on all cores, and whether the system
// provides it.
func CPUTime() (time.Duration, bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
