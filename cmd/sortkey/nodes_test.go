package main

import (
	"testing"
	"time"

	"github.com/sortkey/sortkey/internal/dbhealth"
)

func TestNodesUsage(t *testing.T) {
	checkUsage(t, "nodes", []usageTest{
		{"list a 1 c", "accepts at most 2 arg(s), received 3"},
		{"list snowflake --all", "--all lists the numbers of all pools"},
		{"list snowflake x", `node number "x": want 0 to 65535`},
		{"reserve snowflake 65536", `node number "65536": want 0 to 65535`},
		{"release snowflake", "accepts 2 arg(s), received 1"},
		{"list", "no database: pass --database"},
		{"lists", `unknown command "lists" for "sortkey nodes"`},
	})
}

func TestMarkAheadText(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                                    "+0s",
		26912 * time.Millisecond:             "+26.9s",
		-240 * time.Millisecond:              "-200ms",
		time.Hour + 500*time.Millisecond:     "+1h0m1s",
		-50 * time.Hour:                      "-2d",
		10 * 365 * 24 * time.Hour:            "+3650d",
		-(47*time.Hour + 59*time.Minute):     "-47h59m0s",
		59*time.Second + 40*time.Millisecond: "+59s",
	} {
		now := time.Now()
		mark := now.Add(d)
		seconds := d.Seconds()
		if got := markAheadText(dbhealth.Number{Mark: &dbhealth.Moment{Time: mark}, Ahead: &seconds, Now: now}); got != want {
			t.Errorf("%v: got %q, want %q", d, got, want)
		}
	}
}
