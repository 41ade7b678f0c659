//go:build !unix

package figures

import "time"

// CPUTime is not known here.
func CPUTime() (time.Duration, bool) { return 0, false }
