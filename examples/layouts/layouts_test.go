package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What the documents show is what the code draws.
func TestDrawings(t *testing.T) {
	formats, err := formats()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join("..", "..", "docs", "images")
	drawn := map[string]bool{}
	for _, f := range formats {
		drawn[f.file()] = true
		got, err := os.ReadFile(filepath.Join(folder, f.file()))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, f.draw()) {
			t.Errorf("%s isn't what would be drawn: run go run ./examples/layouts", f.file())
		}
	}
	there, err := filepath.Glob(filepath.Join(folder, "layout-*"))
	if err != nil || len(there) != len(drawn) {
		t.Errorf("expected %d drawings, got %v, %v", len(drawn), there, err)
	}

	empty := t.TempDir()
	if err := write(empty); err != nil {
		t.Fatal(err)
	}
	for name := range drawn {
		a, errA := os.ReadFile(filepath.Join(empty, name))
		b, errB := os.ReadFile(filepath.Join(folder, name))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s is written otherwise than it is drawn: %v, %v", name, errA, errB)
		}
	}
	if err := write(filepath.Join(empty, "nowhere")); err == nil {
		t.Error("expected an error of a folder that isn't there, got none")
	}
}

// The fields are those of the specifications, which give bit positions.
func TestFields(t *testing.T) {
	formats, err := formats()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"Snowflake: 0 63-63, time 62-22, datacenter 21-17, worker 16-12, sequence 11-0",
		"SnowflakeSI: 0 63-53, MAB 52-13, MID 12-8, UIN 7-0",
		"UID60: 0 63-60, time 59-18, sequence 17-9, random 8-0",
		"Spread64: time 22-63, sequence 21-16, reserved 15-10, generator 9-4, cluster 3-0",
		"Sno: time 79-41, tick-tock 40-40, metabyte 39-32, partition 31-16, sequence 15-0",
	}
	for i, f := range formats {
		var fields []string
		for _, fl := range f.fields {
			first, last := fl.bits[len(fl.bits)-1], fl.bits[0]
			fields = append(fields, fmt.Sprintf("%s %d-%d", fl.name, first, last))
			if fl.value == "" {
				t.Errorf("%s of %s has no value", fl.name, f.name)
			}
		}
		if got := f.name + ": " + strings.Join(fields, ", "); got != want[i] {
			t.Errorf("expected %s, got %s", want[i], got)
		}
		// A character of a text that shows bits alone shows neighbours.
		each := 4
		if f.name == "Sno" {
			each = 5
		}
		for n, c := range f.chars {
			for k := range each {
				if len(c.bits) != each || c.bits[k] != f.width-(n+1)*each+k {
					t.Errorf("%s: character %d shows bits %v", f.name, n, c.bits)
					break
				}
			}
		}
	}
}

// A drawing is well-formed, has what its format has, and none of its text
// leaves it.
func TestWellFormed(t *testing.T) {
	formats, err := formats()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range formats {
		drawing := f.draw()
		d := xml.NewDecoder(bytes.NewReader(drawing))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", f.name, err)
			}
		}
		shown := string(drawing)
		for _, fl := range f.fields {
			if !strings.Contains(shown, fl.name) || !strings.Contains(shown, ">"+fl.value+"<") || !strings.Contains(shown, fl.about) {
				t.Errorf("%s: %s isn't shown whole", f.name, fl.name)
			}
		}
		for _, text := range regexp.MustCompile(`<text [^>]*text-anchor="start" x="([\d.]+)"[^>]*>([^<]*)<`).FindAllStringSubmatch(shown, -1) {
			var x float64
			if _, err := fmt.Sscan(text[1], &x); err != nil || x+8*float64(len(text[2])) > barWidth+2*margin {
				t.Errorf("%s: %q has no room, %v", f.name, text[2], err)
			}
		}
	}
	reversed := func(name string) bool {
		for _, f := range formats {
			if f.name == name {
				return bytes.Contains(f.draw(), []byte("lowest bit first")) && bytes.Contains(f.draw(), []byte("bits reversed"))
			}
		}
		return false
	}
	if !reversed("Spread64") || reversed("Snowflake") {
		t.Error("expected a Spread64 to be shown with a time in reverse, and a Snowflake not")
	}
}
