package main

import (
	"testing"
	"time"
)

func TestLayoutArgs(t *testing.T) {
	for _, tt := range []struct {
		epoch  time.Time
		widths []int
		want   string
	}{
		{time.Date(2021, 1, 1, 0, 0, 0, 0, time.UTC), []int{5, 5, 12}, "--epoch 2021-01-01 --bits 5/5/12"},
		{time.Date(2021, 1, 1, 1, 0, 0, 0, time.FixedZone("", 3600)), []int{5, 8}, "--epoch 2021-01-01 --bits 5/8"},
		{time.UnixMilli(1288834974657), []int{5, 5, 12}, "--epoch 2010-11-04T01:42:54.657Z --bits 5/5/12"},
	} {
		if got := layoutArgs(tt.epoch, tt.widths...); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                                     "0s",
		14217 * time.Nanosecond:               "14µs",
		1234567 * time.Nanosecond:             "1.2ms",
		123456 * time.Microsecond:             "123.5ms",
		1234567 * time.Microsecond:            "1.23s",
		90*time.Minute + 600*time.Millisecond: "1h30m1s",
		49 * time.Hour:                        "2 days",
	} {
		if got := short(d); got != want {
			t.Errorf("%d ns: got %q, want %q", d, got, want)
		}
	}
}

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
