package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/spf13/cobra"
)

// timeForms describes the times that parseTime accepts, for help texts and errors.
const timeForms = "a time such as 2026-01-31, 2026-01-31 15:04:05 (UTC), 2026-01-31T15:04:05+02:00, -24h, -7d or now"

// timeLayouts are the layouts of absolute times. A time without an offset is in UTC.
// Postgres prints offsets as +00 or +05:30.
var timeLayouts = []string{
	time.RFC3339,
	time.DateOnly,
	time.DateTime,
	"2006-01-02 15:04",
	"2006-01-02T15:04:05",
	"2006-01-02 15:04:05Z07:00",
	"2006-01-02 15:04:05Z07",
}

// parseTime parses a time of the command line: an absolute time, or one relative to
// now.
func (c *app) parseTime(s string) (time.Time, error) {
	if s == "now" {
		return c.Now().UTC(), nil
	}
	if d, err := parseOffset(s); err == nil {
		return c.Now().UTC().Add(d), nil
	}
	for _, layout := range timeLayouts {
		t, err := time.Parse(layout, s)
		switch {
		case err != nil:
			continue
		case t.IsZero(): // no time, in this command
			return t, cli.Usagef("time %q: want a time after 0001-01-01", s)
		}
		return t.UTC(), nil
	}
	return time.Time{}, cli.Usagef("time %q: want %s", s, timeForms)
}

// unixMilliseconds matches those from 1973 to 2286. Fewer digits can be seconds or a date.
var unixMilliseconds = regexp.MustCompile(`^[1-9][0-9]{11,12}$`)

// parseEpoch parses the epoch of a layout, a time or Unix milliseconds.
func (c *app) parseEpoch(s string) (time.Time, error) {
	if s == "now" || relative(s) {
		return time.Time{}, cli.Usagef("epoch %q: want a fixed time such as 2026-01-01, since all programs must use the same one", s)
	}
	if unixMilliseconds.MatchString(s) {
		ms, _ := strconv.ParseInt(s, 10, 64)
		return time.UnixMilli(ms).UTC(), nil
	}
	t, err := c.parseTime(s)
	if err != nil && strings.Trim(s, "0123456789") == "" {
		err = cli.Usagef("%w; or 12 or 13 digits of Unix milliseconds", err)
	}
	return t, err
}

// timeFlag adds a flag that sets t. An empty value is the zero time.
func (c *app) timeFlag(cmd *cobra.Command, t *time.Time, flag, usage string) {
	cmd.Flags().Func(flag, usage, func(value string) (err error) {
		*t = time.Time{}
		if value != "" {
			*t, err = c.parseTime(value)
		}
		if err != nil {
			err = cli.Usagef("--%s: %w", flag, err)
		}
		return err
	})
}

// leadingDays matches the days of an offset, which [time.ParseDuration] doesn't know.
var leadingDays = regexp.MustCompile(`^([-+])([0-9]+)d`)

// parseOffset parses a signed duration that can begin with days, such as -7d or
// +1d12h.
func parseOffset(s string) (time.Duration, error) {
	if !relative(s) {
		return 0, errors.New("no sign")
	}
	if m := leadingDays.FindStringSubmatch(s); m != nil {
		days, err := strconv.ParseUint(m[2], 10, 16)
		if err != nil {
			return 0, err
		}
		s = fmt.Sprintf("%s%dh%s", m[1], 24*days, s[len(m[0]):])
	}
	return time.ParseDuration(s)
}

// relative reports whether a time begins with a sign.
func relative(s string) bool { return strings.HasPrefix(s, "-") || strings.HasPrefix(s, "+") }

// stamp returns an instant for tables: in UTC, with milliseconds.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000 UTC") }

// ago returns the distance of t from now, such as "3 hours ago" or "2 days from now".
func (c *app) ago(t time.Time) string { return humanize.RelTime(t, c.Now(), "ago", "from now") }
