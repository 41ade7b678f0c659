package dbhealth

import (
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// A Moment is a time of the server, which can be infinite. In SQL it is the result of
// MomentOf. Its JSON is RFC 3339, infinity or -infinity.
type Moment struct {
	time.Time        // zero if infinite
	Infinite  string // infinity, -infinity or ""
}

// At returns the moment of a time.
func At(t time.Time) Moment { return Moment{Time: t.UTC()} }

// MomentOf returns an SQL expression that scans into a Moment, with any driver.
func MomentOf(expression string) string {
	return fmt.Sprintf(`CASE WHEN isfinite(%[1]s) THEN to_char(%[1]s AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') ELSE %[1]s::text END`, expression)
}

// Scan implements [sql.Scanner].
func (m *Moment) Scan(src any) (err error) {
	var text sql.NullString
	*m = Moment{}
	if err := text.Scan(src); err != nil || !text.Valid {
		return err
	}
	if strings.HasSuffix(text.String, "infinity") {
		m.Infinite = text.String
		return nil
	}
	m.Time, err = time.Parse(time.RFC3339, text.String)
	return err
}

// MarshalText implements [encoding.TextMarshaler].
func (m Moment) MarshalText() ([]byte, error) {
	if m.Infinite != "" {
		return []byte(m.Infinite), nil
	}
	return m.Time.MarshalText()
}

// MarshalJSON replaces the method of time.Time.
func (m Moment) MarshalJSON() ([]byte, error) {
	text, err := m.MarshalText()
	return []byte(`"` + string(text) + `"`), err
}

// Stamp returns the moment with milliseconds.
func (m Moment) Stamp() string {
	if m.Infinite != "" {
		return m.Infinite
	}
	return stamp(m.Time)
}

// String returns the moment without a time of day if it is a midnight, and without zeros at
// the end.
func (m Moment) String() string {
	switch {
	case m.Infinite != "":
		return m.Infinite
	case m.Time.Equal(m.Time.Truncate(day)):
		return m.Time.Format(time.DateOnly)
	}
	return strings.TrimSuffix(m.Time.Format("2006-01-02 15:04:05.999"), ":00")
}

// From returns the distance from a time, such as 3 minutes ago.
func (m Moment) From(now time.Time) string {
	if m.Infinite != "" {
		return m.Infinite
	}
	return distance(m.Time, now)
}
