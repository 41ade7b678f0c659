package main

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestFields compares the drawn fields with the formats' specifications.
func TestFields(t *testing.T) {
	want := []string{
		"Snowflake: 0 63-63, time 62-22, datacenter 21-17, worker 16-12, sequence 11-0",
		"SnowflakeSI: 0 63-53, MAB 52-13, MID 12-8, UIN 7-0",
		"UID60: 0 63-60, time 59-18, sequence 17-9, random 8-0",
		"Spread64: time 22-63, sequence 21-16, reserved 15-10, generator 9-4, cluster 3-0",
		"Sno: time 79-41, tick-tock 40-40, metabyte 39-32, partition 31-16, sequence 15-0",
		"UUID: time 127-80, ver 79-76, fraction 75-64, v 63-62, random 61-0",
	}
	for i, f := range formats() {
		fields, err := f.fields()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, fl := range fields {
			first, last := fl.high, fl.low()
			if fl.reversed() {
				first, last = last, first
				slices.Reverse(fl.weights)
			}
			for bit, weight := range fl.weights {
				if fl.part != "" && weight != fl.weights[0]-bit {
					t.Errorf("%s: expected the bits of %s in order, got powers of two %v", f.name, fl.name, fl.weights)
				}
			}
			got = append(got, fmt.Sprintf("%s %d-%d", fl.name, first, last))
		}
		if got := f.name + ": " + strings.Join(got, ", "); got != want[i] {
			t.Errorf("expected %s, got %s", want[i], got)
		}
		if drawing := f.draw(fields); xml.Unmarshal([]byte(drawing), new(struct{})) != nil {
			t.Errorf("expected XML, got %s", drawing)
		}
	}
}
