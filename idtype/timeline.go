package idtype

import (
	"fmt"
	"math"
	"time"
)

// A timeline maps instants to the units in which a format counts its time.
type timeline struct {
	format string // the ID type's name, for errors
	epoch  int64  // Unix milliseconds at which unit 0 begins
	step   int64  // milliseconds in a unit
	last   int64  // the last unit
}

// unixMilli is t in Unix milliseconds, rounded down; where those overflow,
// the nearest value that still orders correctly against every timeline.
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

// place is the unit in which t lies, or the nearest with the sentinel of the
// side on which t lies outside.
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

// unit is the unit in which t lies.
func (l timeline) unit(t time.Time) (int64, error) {
	u, outside := l.place(t)
	if outside != nil {
		return 0, l.outside(t, outside)
	}
	return u, nil
}

// milli is the instant at which a unit begins, in Unix milliseconds.
func (l timeline) milli(unit int64) int64 { return l.epoch + unit*l.step }

// time is the instant at which a unit begins.
func (l timeline) time(unit int64) time.Time { return time.UnixMilli(l.milli(unit)).UTC() }

// end is the last millisecond of the format.
func (l timeline) end() time.Time {
	return time.UnixMilli(l.milli(l.last+1) - 1).UTC()
}

func (l timeline) outside(t time.Time, sentinel error) error {
	return &limitError{fmt.Sprintf("idtype: expected a time for %s from %s to %s, got %s: check the clock, or choose a format or layout for that time: %v", l.format,
		stamp(l.time(0)), stamp(l.end()), stamp(t), sentinel), sentinel}
}

// stamp writes an instant with its milliseconds, in UTC.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// timeRange gives the two bounds of a window of time, given how a unit's
// lowest ID is made and which ID is the largest of all.
func timeRange[T any](l timeline, from, to time.Time, floor func(unit int64) T, largest T) (lo, hi T, err error) {
	if !from.IsZero() && !to.IsZero() && from.After(to) {
		return lo, hi, &limitError{fmt.Sprintf("idtype: expected a window of time that ends after it begins, got from %s to %s: swap them",
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

// checkEpoch refuses the instants from which no format can count.
func checkEpoch(typeName, field string, t time.Time) error {
	if y := t.UTC().Year(); y < 1 || y > 9999 || t.Nanosecond()%int(time.Millisecond) != 0 {
		return &limitError{fmt.Sprintf("idtype: expected a %s %s in whole milliseconds between the years 1 and 9999, got %s",
			typeName, field, t.UTC().Format(time.RFC3339Nano)), ErrRange}
	}
	return nil
}
