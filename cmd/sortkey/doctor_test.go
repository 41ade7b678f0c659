package main

import "testing"

func TestWrap(t *testing.T) {
	const line = "the clock of a holder was wrong"
	for _, tt := range []struct {
		margin, width int
		want          string
	}{
		{4, 20, "the clock of a\n    holder was wrong"},
		{4, 80, line},
		{4, 0, line},
		{11, 15, line}, // too narrow
	} {
		if got := wrap(line, tt.margin, tt.width); got != tt.want {
			t.Errorf("margin %d, width %d: got %q, want %q", tt.margin, tt.width, got, tt.want)
		}
	}
}
