package pgtest

import (
	"os"
	"testing"
	"time"
)

// Thorough reports whether tests run every variant with full counts, which they do if
// CI=true. Otherwise a test runs only the variants and counts that find most faults, to
// keep make test short.
func Thorough() bool { return os.Getenv("CI") == "true" }

// ThoroughOnly skips a test outside CI. Use it only if a shorter test of the same
// behaviour always runs.
func ThoroughOnly(t testing.TB) {
	t.Helper()
	if !Thorough() {
		t.Skip("runs only with CI=true")
	}
}

// Scaled returns thorough in CI and short elsewhere.
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
