package pgtest

import (
	"os"
	"testing"
	"time"
)

// Thorough reports whether tests run every variant with full counts. With -short, a test
// runs only the variants and counts that find most faults.
func Thorough() bool { return !testing.Short() }

// Scaled returns short with -short, and thorough without it.
func Scaled[T any](short, thorough T) T {
	if Thorough() {
		return thorough
	}
	return short
}

// Soak returns the duration of a test that injects random faults: the value of
// SORTKEY_SOAK, such as 10m, or else one of the arguments, as in [Scaled].
func Soak(t testing.TB, short, thorough time.Duration) time.Duration {
	t.Helper()
	s := os.Getenv("SORTKEY_SOAK")
	if s == "" {
		return Scaled(short, thorough)
	}
	d, err := time.ParseDuration(s)
	Must(t, err)
	return d
}
