package dbhealth

import (
	"fmt"
	"time"
)

// plural returns a number with a noun.
func plural[N int | int64](n N, noun, nouns string) string {
	if n == 1 {
		return "1 " + noun
	}
	if nouns == "" {
		nouns = noun + "s"
	}
	return fmt.Sprintf("%d %s", n, nouns)
}

// stamp returns a time in UTC, with milliseconds.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000 UTC") }

const (
	day  = 24 * time.Hour
	year = 365 * day
)

// distance returns the distance of t from now, such as "3 hours ago" or "2 days from now".
func distance(t, now time.Time) string {
	d, direction := t.Sub(now), "from now"
	if d < 0 {
		d, direction = -d, "ago"
	}
	for _, u := range []struct {
		length time.Duration
		name   string
	}{{year, "year"}, {30 * day, "month"}, {day, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		if n := d / u.length; n > 0 {
			return plural(int(n), u.name, "") + " " + direction
		}
	}
	return "now"
}

// short returns a duration in a few digits.
func short(d time.Duration) string {
	switch {
	case d >= 2*day:
		return plural(int(d/day), "day", "")
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(time.Microsecond).String()
}
