package main

import (
	"testing"
	"time"

	"github.com/sortkey/sortkey/migrations"
)

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
