package pgtest

import (
	"os"
	"testing"
)

// Thorough reports whether the tests run every variant and the full counts: in
// CI, where CI=true. Elsewhere a test runs the variants and counts that find
// most faults, so that make test stays short.
func Thorough() bool { return os.Getenv("CI") == "true" }

// ThoroughOnly skips a test outside CI. Use it only for a test that has a
// shorter sibling which always runs.
func ThoroughOnly(t testing.TB) {
	t.Helper()
	if !Thorough() {
		t.Skip("runs where CI=true")
	}
}

// Scaled returns thorough in CI and short elsewhere.
func Scaled[T any](short, thorough T) T {
	if Thorough() {
		return thorough
	}
	return short
}
