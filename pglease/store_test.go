package pglease

import (
	"testing"
	"time"
)

func TestArray(t *testing.T) {
	for want, numbers := range map[string][]int{"{}": nil, "{7}": {7}, "{0,31,65535}": {0, 31, 65535}} {
		if got := array(numbers); got != want {
			t.Errorf("expected %s, got %s", want, got)
		}
	}
}

// A claim that stands for less than was asked for would be trusted too long.
func TestMilliseconds(t *testing.T) {
	for d, want := range map[time.Duration]int64{
		time.Second: 1000, time.Second + 1: 1001, time.Second - 1: 1000, time.Hour: 3_600_000,
	} {
		if got := milliseconds(d); got != want {
			t.Errorf("%v: expected %d ms, got %d", d, want, got)
		}
	}
}
