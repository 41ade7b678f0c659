package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// Elsewhere than on a terminal, progress is a line every few seconds.
func TestProgressLines(t *testing.T) {
	var b bytes.Buffer
	now := time.Unix(0, 0)
	p := newProgress(&b, false, func() time.Time { return now }, 1_000_000)
	for range 12 {
		now = now.Add(time.Second)
		p.add(100_000)
	}
	p.end(true)
	want := "500,000 of about 1,000,000 rows (50%), 100,000 rows/s, 5s left\n" +
		"1,000,000 of about 1,000,000 rows (100%), 100,000 rows/s, 0s left\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

// The bar ends with a new line, also after an interrupt and if the estimate was wrong.
func TestProgressBar(t *testing.T) {
	for _, tt := range []struct {
		estimate int64
		complete bool
		want     string
	}{
		{1000, true, "100% |"},
		{10, true, "100% |"},
		{0, true, "100% |"},
		{1000, false, "50% |"},
	} {
		var b bytes.Buffer
		p := newProgress(&b, true, time.Now, tt.estimate)
		p.add(250)
		time.Sleep(110 * time.Millisecond) // the bar is drawn at most every 100 ms
		p.add(250)
		p.end(tt.complete)
		lines := strings.Split(b.String(), "\n")
		last := lines[0][strings.LastIndex(lines[0], "\r"):]
		if len(lines) != 2 || lines[1] != "" || !strings.Contains(last, tt.want) || !strings.Contains(last, "500/") || !strings.Contains(last, "rows/s") {
			t.Errorf("estimate %d, complete %t: got %q, want one line with %q", tt.estimate, tt.complete, b.String(), tt.want)
		}
	}
}
