//go:build !race

package nodelease_test

// raced reports whether the race detector is on.
const raced = false
