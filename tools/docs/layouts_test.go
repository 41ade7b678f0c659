package main

import (
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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
		"UUID: time 127-80, version 79-76, fraction 75-64, variant 63-62, random 61-0",
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

// TestReadable checks the drawings and plots of the pages for a phone, which shows about
// 330 pixels beside each other, and for a dark scheme.
func TestReadable(t *testing.T) {
	files, err := filepath.Glob("../../docs/images/*.svg")
	if err != nil || len(files) < 9 {
		t.Fatalf("expected the drawings and plots, got %q, %v", files, err)
	}
	for _, file := range files {
		if strings.HasPrefix(filepath.Base(file), "badge-") {
			continue
		}
		svg, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		box := regexp.MustCompile(`viewBox="0 0 (\d+) `).FindSubmatch(svg)
		if box == nil || !strings.Contains(string(svg), "@media (prefers-color-scheme:dark)") {
			t.Fatalf("%s: expected a viewBox and a dark scheme", file)
		}
		width, _ := strconv.ParseFloat(string(box[1]), 64)
		for _, m := range regexp.MustCompile(`(?:font:|font-size[:=]"?)(\d+)`).FindAllSubmatch(svg, -1) {
			if size, _ := strconv.ParseFloat(string(m[1]), 64); size*330/width < 11 {
				t.Errorf("%s: text of %g pixels in a drawing of %g, want 11 in 330", file, size, width)
			}
		}
		// A character is half as wide as it is high, or 0.6 times in a font of fixed width.
		for _, m := range regexp.MustCompile(`<text class="([^"]*)" x="([^"]*)" y="[^"]*">(.*?)</text>`).FindAllSubmatch(svg, -1) {
			class := strings.Fields(string(m[1]))
			x, _ := strconv.ParseFloat(string(m[2]), 64)
			long := 7.0
			if slices.Contains(class, "code") {
				long = 8.4
			}
			long *= float64(len([]rune(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(string(m[3]), ""))))
			if slices.Contains(class, "key") {
				long *= 26.0 / 14
			}
			switch {
			case slices.Contains(class, "m"):
				x -= long / 2
			case slices.Contains(class, "e"):
				x -= long
			}
			if x < 0 || x+long > width {
				t.Errorf("%s: %q is from %.0f to %.0f, want it in %g", file, m[3], x, x+long, width)
			}
		}
	}
}
