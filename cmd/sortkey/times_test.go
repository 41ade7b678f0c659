package main

import (
	"strings"
	"testing"
	"time"

	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
)

// testNow is the time of the clock in tests.
var testNow = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func TestParseTime(t *testing.T) {
	c := &app{Terminal: &cli.Terminal{Now: func() time.Time { return testNow }}}
	for _, tt := range []struct{ in, want string }{
		{"now", "2026-11-23T12:00:00Z"},
		{"-24h", "2026-11-22T12:00:00Z"},
		{"-7d", "2026-11-16T12:00:00Z"},
		{"-1d12h", "2026-11-22T00:00:00Z"},
		{"+1d12h30m", "2026-11-25T00:30:00Z"},
		{"2026-01-31", "2026-01-31T00:00:00Z"},
		{"2026-01-31 15:04", "2026-01-31T15:04:00Z"},
		{"2026-01-31 15:04:05", "2026-01-31T15:04:05Z"},
		{"2026-01-31 15:04:05.25", "2026-01-31T15:04:05.25Z"},
		{"2026-01-31 15:04:05.25+00", "2026-01-31T15:04:05.25Z"},
		{"2026-01-31 15:04:05+05:30", "2026-01-31T09:34:05Z"},
		{"2026-01-31T15:04:05", "2026-01-31T15:04:05Z"},
		{"2026-01-31T15:04:05+02:00", "2026-01-31T13:04:05Z"},
	} {
		got, err := c.parseTime(tt.in)
		if err != nil || got.Format(time.RFC3339Nano) != tt.want {
			t.Errorf("parseTime(%q): got %s, error %v; want %s", tt.in, got.Format(time.RFC3339Nano), err, tt.want)
		}
	}
	for _, in := range []string{"", "-", "yesterday", "24h", "-7days", "--7d", "-d", "-99999999d", "2026-13-01", "1700000000"} {
		if got, err := c.parseTime(in); err == nil || !strings.Contains(err.Error(), "want a time such as") {
			t.Errorf("parseTime(%q): got %s, error %v; want an error", in, got, err)
		}
	}
}

func TestAgo(t *testing.T) {
	c := &app{Terminal: &cli.Terminal{Now: func() time.Time { return testNow }}}
	for _, tt := range []struct {
		offset time.Duration
		want   string
	}{
		{-3 * time.Hour, "3 hours ago"},
		{48 * time.Hour, "2 days from now"},
		{0, "now"},
	} {
		if got := c.ago(testNow.Add(tt.offset)); got != tt.want {
			t.Errorf("ago(%s): got %q, want %q", tt.offset, got, tt.want)
		}
	}
}
