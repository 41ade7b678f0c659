package figures

import "time"

// AwaitUnit spins until a new unit of time begins.
func AwaitUnit(unit time.Duration) {
	now := func() int64 { return time.Now().UnixNano() / int64(unit) }
	for was := now(); now() == was; {
	}
}
