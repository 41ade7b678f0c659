// Package race tells tests whether the race detector is on.
package race
