package dbhealth

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// visible returns s with an escape, such as \xff, for each byte that isn't UTF-8. Names in a
// database with the encoding SQL_ASCII can have such bytes.
func visible(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		if _, size := utf8.DecodeRuneInString(s[i:]); r == utf8.RuneError && size == 1 {
			fmt.Fprintf(&b, `\x%02x`, s[i])
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// visiblePointer returns visible for the text of p, or nil.
func visiblePointer(p *string) *string {
	if p == nil {
		return nil
	}
	s := visible(*p)
	return &s
}

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
