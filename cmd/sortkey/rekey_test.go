package main

import (
	"testing"
	"time"

	"github.com/sortkey/sortkey/rekey"
)

func TestFilled(t *testing.T) {
	for _, c := range []struct {
		progress rekey.Progress
		want     string
	}{
		{rekey.Progress{Rows: 1000, Total: 9000, Rate: 1999.9, Left: 4 * time.Second}, "1,000 of about 9,000 rows, 1,999 rows/s, 4s left"},
		{rekey.Progress{Rows: 0, Total: 9000}, "0 of about 9,000 rows"},
		{rekey.Progress{Rows: 9000, Total: 9000, Rate: 5}, "9,000 of about 9,000 rows, 5 rows/s"},
	} {
		if got := filled(c.progress); got != c.want {
			t.Errorf("expected %q, got %q", c.want, got)
		}
	}
}
