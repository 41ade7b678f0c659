//go:build !unix

package figures

import "time"

// CPUTime is not supported on this platform.
func CPUTime() (time.Duration, bool) { return 0, false }
