package main

import (
	"testing"
	"time"

	"github.com/sortkey/sortkey/migrations"
)

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
		var m moment
		if err := m.Scan(text); err != nil || m.String() != want {
			t.Errorf("%s: got %s, %v, want %s", text, m, err, want)
		}
	}
	var m moment
	if err := m.Scan(nil); err != nil || m.String() != "" {
		t.Errorf("NULL: got %s, %v", m, err)
	}
}

func TestPartitionStepText(t *testing.T) {
	day := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	for want, s := range map[string]migrations.PartitionStep{
		"create e_1 (2026-11-23 to 2026-11-24)": {Action: "create", Partition: "e_1", From: day, To: day.AddDate(0, 0, 1)},
		"create e_1 (from 2026-11-23)":          {Action: "create", Partition: "e_1", From: day},
		"drop e_1 (to 2026-11-23)":              {Action: "drop", Partition: "e_1", To: day},
		"default e_default":                     {Action: "default", Partition: "e_default"},
	} {
		if got := newPartitionStep(s, "done").String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
