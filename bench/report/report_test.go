package main

import (
	"encoding/xml"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sample returns the output of a small run. Words in braces in its file expand
// to several benchmarks.
func sample(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/sample.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for line := range strings.Lines(string(text)) {
		all = append(all, expand(line)...)
	}
	return strings.Join(all, "")
}

func parse(t *testing.T, text string) *results {
	t.Helper()
	r, err := read(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestPage(t *testing.T) {
	r := parse(t, sample(t))
	if missing := r.missing(); len(missing) > 0 {
		t.Errorf("the sample lacks %q", missing)
	}
	page, err := r.page()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| date | 2026-11-22 |\n| commit | 8c67be568ba7; a3a4ff40c8a2 |\n| CPU | AMD EPYC, 2 cores |\n",
		"| `Fill`, ns |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n| time.Now | 48.9 | 1 | 0 |  |  |  |  |\n| Snowflake | 32.9 ± 4 % | 0.672 | 0 | 53.3 | 0.236 |  | 0.43 |\n",
		"| Sno | 99.0 | 0.197 | 99.0 | 0.197 | 99.0 | 0.197 | 100.2 | 0.0476 |\n",
		"| `bigint-pointer` | `*Snowflake` | 34.9 | 0.859 | 0 | 34.9 | 0.859 | 0 |\n",
		"| `google-v4` | 10,000,000 | 128,199 | 83,882 | 413 | 602 | 1,273 | 77.7 |\n",
		"parsing and Compare don't allocate | 0 | `Next/Snowflake`, the worst of 25 | met |\n",
		"takes at most 1.75 × the time of a bigserial | 2.619 | `Insert/key=next_sno()` | **missed** |\n",
		"server's CPU time of a bigserial, from 1 and 8 connections | 1.250 | `Default/clients=1/key=next_snowflake()`, the worst of 2 | met |\n",
		"| `8` | `next_sno()` | 8,922 | 112,084 | 1.430 | 64,553 | 1.250 | 186 |\n",
		"in bursts of 128 | 0.841 | `Next/SnowflakeSI / Next/sony/sonyflake`, the worst of 2 | met |\n",
		"| The index on a Sno is no larger than on any other uuid key | 0.712 | `Copy/key=Sno / Copy/key=uuidv7`, the worst of 4 | met |\n",
		"| Postgres | 18.6 (Debian 18.6-3): shared_buffers = 128MB, fsync = ",
		"\n```text\ngo test ./bench -timeout 60m -run '^$' -bench 'Next$|NextParallel|NextFlatOut' -benchtime 700ms -count 5\ngo test ./bench ",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks\n%s", want)
		}
	}
	for file, c := range charts {
		svg := r.draw(c)
		if err := xml.Unmarshal([]byte(svg), new(struct{})); err != nil || strings.Contains(svg, "%!") || strings.Contains(svg, "NaN") {
			t.Errorf("%s: %v\n%s", file, err, svg)
		}
	}
	published, err := os.ReadFile("../../docs/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := shape(string(published)), shape(page); !slices.Equal(got, want) || strings.Contains(string(published), "| not measured |") {
		t.Errorf("docs/benchmarks.md differs from the template in more than its figures: expected\n%q\ngot\n%q", want, got)
	}
}

// shape returns the lines of a page except for commands and the rows of tables.
func shape(page string) (kept []string) {
	lines := strings.Split(page, "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, "go test ") && (!strings.HasPrefix(line, "| ") || strings.HasPrefix(lines[i+1], "| ---")) {
			kept = append(kept, line)
		}
	}
	return kept
}

// Measuring a stage again replaces only its own output. A failing stage keeps the
// output of the others.
func TestMeasure(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("GOWORK", "off")
	t.Setenv("DATABASE_URL", "")
	had := stages
	t.Cleanup(func() { stages = had })
	stages = []stage{{"some", ".", "Some", false, "", "-benchtime 1x"}, {"broken", ".", "Broken", false, "", ""}, {"server", ".", "Broken", true, "", ""}}
	source := "package a\n\nimport \"testing\"\n\nfunc BenchmarkSome(*testing.B) {}\nfunc BenchmarkBroken(b *testing.B) { b.Fatal(`why`) }\n"
	if err := errors.Join(write("go.mod", "module a\n"), write("a_test.go", source)); err != nil {
		t.Fatal(err)
	}
	if err := measure(true, "", "kept"); err == nil || !strings.Contains(err.Error(), "why") {
		t.Errorf("expected the error of the failing stage, got %v", err)
	}
	if err := errors.Join(write("kept/03.txt", "BenchmarkOther 1 2 ns/op\n"), measure(true, "some|server", "kept"), render("kept", "page")); err != nil {
		t.Error(err)
	}
	page, err := os.ReadFile("page/benchmarks.md")
	if err != nil || strings.Count(string(page), "\ngo test . -timeout 60m -run '^$' -bench 'Some' -benchtime 1x\n") != 1 {
		t.Errorf("expected a page with one command, got %v\n%s", err, page)
	}
}

// TestStages removes the output of each benchmark and checks that the report
// lists missing figures. It also checks that exactly one stage runs each benchmark.
func TestStages(t *testing.T) {
	all, runs := sample(t), map[string]int{}
	for _, s := range stages {
		pattern, _, _ := strings.Cut(s.pattern, "/")
		files, _ := filepath.Glob("../../" + s.folder + "/*_test.go")
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range regexp.MustCompile(`(?m)^func (Benchmark\w+)\(`).FindAllSubmatch(source, -1) {
				if name := string(b[1]); regexp.MustCompile(pattern).MatchString(name) {
					runs[name]++
				}
			}
		}
	}
	for _, table := range tables {
		for _, c := range table.columns {
			name := "Benchmark" + c.pattern[:strings.Index(c.pattern, "/")]
			if runs[name] != 1 {
				t.Errorf("%s is in %d stages, want one", name, runs[name])
			}
			less := regexp.MustCompile(`(?m)^`+name+`/.*\n`).ReplaceAllString(all, "")
			if len(parse(t, less).missing()) == 0 {
				t.Errorf("expected missing figures without %s, got none", name)
			}
		}
	}
	page, err := parse(t, "BenchmarkElse 1 2 ns/op\n").page()
	if n := strings.Count(page, notMeasured); err != nil || n != len(tables) || !strings.Contains(page, "| Postgres | none |") {
		t.Errorf("without figures: %d tables are marked as not measured, want %d, %v", n, len(tables), err)
	}
}

func TestJudge(t *testing.T) {
	r := parse(t, "BenchmarkA 1 10 x\nBenchmarkA 1 12 x\nBenchmarkA 1 90 x\nBenchmarkB 1 20 x\n")
	for _, c := range []struct {
		bound         float64
		pattern       string
		measured, met bool
		furthest      string
	}{
		{12, "A", true, true, "A"}, // the median equals the bound
		{19, "{B|A}", true, false, "B"},
		{-12, "{A|B}", true, true, "A"},
		{-13, "{B|A}", true, false, "A"},
		{19, "{B|C}", false, false, "B"},
		{0.6, "A / B", true, true, "A / B"},
	} {
		furthest, measured, met := r.judge(goal{unit: "x", bound: c.bound, pattern: c.pattern})
		if furthest != c.furthest || measured != c.measured || met != c.met {
			t.Errorf("%s, %v: measured %t, met %t by %q, want %t, %t by %q", c.pattern, c.bound, measured, met, furthest, c.measured, c.met, c.furthest)
		}
	}
}

func TestFigure(t *testing.T) {
	r := parse(t, "BenchmarkA/b-2 1 30 ns/op 5 %cap\nBenchmarkA/b-2 1 10 ns/op\nBenchmarkA/b-2 1 20 ns/op\nBenchmarkA/c=d-7-2 1 2 x\nBenchmarkA/c=d-7-2 1 4 x\n")
	for _, c := range []struct{ name, unit, want string }{
		{"A/b", "ns/op", "20 ± 50 %"}, {"A/b", "%cap", "5.0"}, {"A/c=d-7", "x", "3"}, {"A/b", "x", ""}, {"A", "ns/op", ""},
	} {
		if got := r.cell(c.name, c.unit); got != c.want {
			t.Errorf("%s, %s: %q, want %q", c.name, c.unit, got, c.want)
		}
	}
	for x, want := range map[float64]string{
		0: "0", 0.00497: "0.00497", 1: "1", 9.876: "9.88", 41.25: "41.2", 155.4: "155", 999.9: "1,000", 1234.5: "1,234", 9999999: "9,999,999", -1234567: "-1,234,567",
	} {
		if got := short(x); got != want {
			t.Errorf("%v is %s, want %s", x, got, want)
		}
	}
}

func TestMalformed(t *testing.T) {
	for text, empty := range map[string]bool{"BenchmarkA 1 10 ns/op\nBenchmarkB 1 ten ns/op\n": false, "BenchmarkA one 10 ns/op\n": false, "PASS\nok p 1s\n": true} {
		if _, err := read(text); err == nil || errors.Is(err, errEmpty) != empty {
			t.Errorf("%q: %v", text, err)
		}
	}
}
