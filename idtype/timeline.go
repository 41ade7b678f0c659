package idtype

import (
	"fmt"
	"math"
	"time"
)

// A timeline maps instants to a format's units of time.
type timeline struct {
	format string // the ID type's name, for errors
	epoch  int64  // the start of unit 0, in Unix milliseconds
	step   int64  // milliseconds per unit
	last   int64  // the last unit
}

// unixMilli returns t in Unix milliseconds, rounded down. If that overflows, it returns a
// value that lies on the correct side of every timeline.
func unixMilli(t time.Time) int64 {
	const far = math.MaxInt64 / 1000 / 2
	switch s := t.Unix(); {
	case s > far:
		return math.MaxInt64 / 2
	case s < -far:
		return math.MinInt64 / 2
	}
	return t.UnixMilli()
}

// place returns the unit of t. If t is outside the timeline, place returns the nearest
// unit, and ErrBeforeEpoch or ErrTimeExhausted.
func (l timeline) place(t time.Time) (unit int64, outside error) {
	ms := unixMilli(t) - l.epoch
	switch {
	case ms < 0:
		return 0, ErrBeforeEpoch
	case ms/l.step > l.last:
		return l.last, ErrTimeExhausted
	}
	return ms / l.step, nil
}

// unit returns the unit of t.
func (l timeline) unit(t time.Time) (int64, error) {
	u, outside := l.place(t)
	if outside != nil {
		return 0, l.outside(t, outside)
	}
	return u, nil
}

// bound returns the unit of a start bound, or -1 if the time is before the epoch, as the
// zero Time is. Errors call the bound by its name.
func (l timeline) bound(t time.Time, name string) (int64, error) {
	switch unit, outside := l.place(t); outside {
	case nil:
		return unit, nil
	case ErrTimeExhausted:
		return 0, &limitError{fmt.Sprintf("idtype: start %s generator after %s %s: want a time before the end of the format, %s: %v",
			l.format, name, stamp(t), stamp(l.end()), outside), outside}
	}
	return -1, nil
}

// milli returns the start of a unit in Unix milliseconds.
func (l timeline) milli(unit int64) int64 { return l.epoch + unit*l.step }

// time returns the start of a unit.
func (l timeline) time(unit int64) time.Time { return time.UnixMilli(l.milli(unit)).UTC() }

// end returns the last millisecond of the format.
func (l timeline) end() time.Time {
	return time.UnixMilli(l.milli(l.last+1) - 1).UTC()
}

func (l timeline) outside(t time.Time, sentinel error) error {
	return &limitError{fmt.Sprintf("idtype: convert time %s to %s: want %s to %s; check the clock, or choose a format or layout that covers the time: %v",
		stamp(t), l.format, stamp(l.time(0)), stamp(l.end()), sentinel), sentinel}
}

// stamp formats an instant in UTC, with milliseconds.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// timeRange returns the lowest IDs at from and to. floor returns the lowest ID of a unit;
// largest is the format's largest ID.
func timeRange[T any](l timeline, from, to time.Time, floor func(unit int64) T, largest T) (lo, hi T, err error) {
	if !from.IsZero() && !to.IsZero() && from.After(to) {
		return lo, hi, &limitError{fmt.Sprintf("idtype: convert times %s and %s to a range: the end is before the start; swap the times",
			stamp(from), stamp(to)), ErrRange}
	}
	bound := func(t time.Time) T {
		unit, outside := l.place(t)
		if outside == ErrTimeExhausted {
			return largest
		}
		return floor(unit)
	}
	lo, hi = bound(from), largest
	if !to.IsZero() {
		hi = bound(to)
	}
	return lo, hi, nil
}

// checkEpoch returns an error if t can't be an epoch.
func checkEpoch(typeName, field string, t time.Time) error {
	if y := t.UTC().Year(); y < 1 || y > 9999 || t.Nanosecond()%int(time.Millisecond) != 0 {
		return &limitError{fmt.Sprintf("idtype: %s %s: %s is invalid; want whole milliseconds between the years 1 and 9999",
			typeName, field, t.UTC().Format(time.RFC3339Nano)), ErrRange}
	}
	return nil
}
