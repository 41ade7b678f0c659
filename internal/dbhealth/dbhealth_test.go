package dbhealth

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestLayoutFlags(t *testing.T) {
	for _, tt := range []struct {
		epoch  time.Time
		widths []int
		want   string
	}{
		{time.Date(2021, 1, 1, 0, 0, 0, 0, time.UTC), []int{5, 5, 12}, "--epoch 2021-01-01 --bits 5/5/12"},
		{time.Date(2021, 1, 1, 1, 0, 0, 0, time.FixedZone("", 3600)), []int{5, 8}, "--epoch 2021-01-01 --bits 5/8"},
		{time.UnixMilli(1288834974657), []int{5, 5, 12}, "--epoch 2010-11-04T01:42:54.657Z --bits 5/5/12"},
	} {
		if got := layoutFlags(tt.epoch, tt.widths...); got != tt.want {
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

func TestMoment(t *testing.T) {
	for text, want := range map[string]string{
		"2026-11-23T00:00:00.000Z": "2026-11-23",
		"2026-11-23T06:00:00.000Z": "2026-11-23 06:00",
		"2026-11-23T06:00:05.000Z": "2026-11-23 06:00:05",
		"2026-11-23T06:00:05.004Z": "2026-11-23 06:00:05.004",
		"2026-11-23T06:00:00.100Z": "2026-11-23 06:00:00.1",
		"infinity":                 "infinity",
		"-infinity":                "-infinity",
	} {
		var m Moment
		if err := m.Scan(text); err != nil || m.String() != want {
			t.Errorf("%s: got %s, %v, want %s", text, m, err, want)
		}
	}
	for m, want := range map[Moment]string{{Infinite: "-infinity"}: `"-infinity"`, At(time.UnixMilli(1)): `"1970-01-01T00:00:00.001Z"`} {
		if got, err := json.Marshal(m); err != nil || string(got) != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
}

func TestDistance(t *testing.T) {
	now := time.Now()
	for d, want := range map[time.Duration]string{
		0:                       "now",
		-900 * time.Millisecond: "now",
		59 * time.Second:        "59 seconds from now",
		-90 * time.Minute:       "1 hour ago",
		47 * time.Hour:          "1 day from now",
		-40 * 24 * time.Hour:    "1 month ago",
		800 * 24 * time.Hour:    "2 years from now",
	} {
		if got := distance(now.Add(d), now); got != want {
			t.Errorf("%v: got %q, want %q", d, got, want)
		}
	}
}

// Each rule has an ID of its own, in a form that comments and labels can have, and its line
// in the documentation.
func TestRules(t *testing.T) {
	text, err := os.ReadFile("../../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Findings\n")
	documented := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z0-9-]+)` \\| (.*) \\|$").FindAllStringSubmatch(section, -1) {
		documented[m[1]] = m[2]
	}
	areas := map[string]bool{}
	area := ""
	for _, r := range Rules() {
		if !regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)+$`).MatchString(r.ID) {
			t.Errorf("ID %q", r.ID)
		}
		if r.Area != area && areas[r.Area] {
			t.Errorf("%s: the rules of area %s are not in sequence", r.ID, r.Area)
		}
		area = r.Area
		areas[area] = true
		if means, remedy, _ := strings.Cut(documented[r.ID], " | "); means == "" || remedy == "" {
			t.Errorf("docs/monitoring.md: want a line | `%s` | what it means | remedy |", r.ID)
		}
		delete(documented, r.ID)
	}
	for id := range documented {
		t.Errorf("docs/monitoring.md: no rule has the ID %s", id)
	}
}
