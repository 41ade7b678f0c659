package cli

import (
	"bytes"
	"testing"
	"time"
)

// Progress is a line every few seconds.
func TestProgressLines(t *testing.T) {
	var b bytes.Buffer
	now := time.Unix(0, 0)
	c := NewTerminal(nil, nil, &b)
	c.Now = func() time.Time { return now }
	p := c.NewProgress(1_000_000)
	for range 12 {
		now = now.Add(time.Second)
		p.Add(100_000)
	}
	want := "500,000 of about 1,000,000 rows (50%), 100,000 rows/s, 5s left\n" +
		"1,000,000 of about 1,000,000 rows (100%), 100,000 rows/s, 0s left\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}
