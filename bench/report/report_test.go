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

// expand returns the names that a pattern with words in braces stands for: a{1|8}
// is a1 and a8.
func expand(pattern string) (names []string) {
	before, rest, ok := strings.Cut(pattern, "{")
	if !ok {
		return []string{pattern}
	}
	words, after, _ := strings.Cut(rest, "}")
	for word := range strings.SplitSeq(words, "|") {
		names = append(names, expand(before+word+after)...)
	}
	return names
}

func parse(t *testing.T, text string) *results {
	t.Helper()
	r, err := read(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// pageOf returns the page, and what lacks figures in it.
func pageOf(t *testing.T, r *results) (page string, missing []string) {
	t.Helper()
	page, err := r.markdown(pageTemplate)
	if err != nil {
		t.Fatal(err)
	}
	return page, r.missing
}

func TestPage(t *testing.T) {
	r := parse(t, sample(t))
	page, missing := pageOf(t, r)
	if len(missing) > 0 {
		t.Errorf("the sample lacks %q", missing)
	}
	for _, want := range []string{
		"| date | 2026-11-22 |\n| commit | 8c67be568ba7; a3a4ff40c8a2 |\n| CPU | AMD EPYC, 2 cores |\n",
		"| cores |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n| time.Now | 48.9 | 0 |  |  |  |  |  |\n| Snowflake | 32.9 ± 4 % | 0 | 53.3 | 0.236 | 0.43 | 99.0 | 0.197 |\n",
		"| `uuid` | `Sno` | 34.9 | 0.859 | 0 | 34.9 | 0.859 | 0 | 0.970 | 0.970 | 1.039 | 1.039 |\n",
		"| `google-v4` | 10,000,000 | 128,199 | 83,882 | 413 | 602 | 127 | 0.251 | 68.9 | 77.7 | 2,352 |\n",
		"| `next_snowflake()` | 8,922 | 1.430 | 1.250 | 8,922 | 1.430 | 1.250 | 1.430 | 1.250 |\n",
		"| Postgres | 18.6 (Debian 18.6-3): shared_buffers = 128MB, fsync = ",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks\n%s", want)
		}
	}
	for file, c := range charts {
		svg := c.draw(r.lines(c))
		if err := xml.Unmarshal([]byte(svg), new(struct{})); err != nil || strings.Contains(svg, "%!") || strings.Contains(svg, "NaN") {
			t.Errorf("%s: %v\n%s", file, err, svg)
		}
	}
	published, err := os.ReadFile("../../docs/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := shape(string(published)), shape(page); !slices.Equal(got, want) || strings.Contains(string(published), notMeasured) {
		t.Errorf("docs/benchmarks.md differs from the template in more than its figures: expected\n%q\ngot\n%q", want, got)
	}
	if n := strings.Count(string(published), "\n"); n > 200 {
		t.Errorf("docs/benchmarks.md has %d lines, want at most 200", n)
	}
}

// shape returns the lines of a page except for the rows of tables.
func shape(page string) (kept []string) {
	lines := strings.Split(page, "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(lines[i+1], "| ---") {
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
	stages = []stage{{"some", ".", "Some", false, false, "", "-benchtime 1x"}, {"broken", ".", "Broken", false, false, "", ""}, {"server", ".", "Broken", true, false, "", ""}}
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
	output, err := os.ReadFile("kept/01.txt")
	if err != nil || strings.Count(string(output), "\n# command: go test . -timeout 60m -run '^$' -bench 'Some' -benchtime 1x\n") != 1 {
		t.Errorf("expected output with its command, got %v\n%s", err, output)
	}
	if _, err := os.Stat("page/benchmarks.md"); err != nil {
		t.Error(err)
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
	used := map[string]bool{}
	for line := range strings.Lines(pageTemplate) {
		if fields := strings.Split(line, " | "); len(fields) == 3 && fields[0] != "" { // of a column
			name, _, _ := strings.Cut(fields[1], "/")
			used["Benchmark"+name] = true
		}
	}
	for name := range used {
		if runs[name] != 1 {
			t.Errorf("%s is in %d stages, want one", name, runs[name])
		}
		less := regexp.MustCompile(`(?m)^`+name+`/.*\n`).ReplaceAllString(all, "")
		if _, missing := pageOf(t, parse(t, less)); len(missing) == 0 {
			t.Errorf("expected missing figures without %s, got none", name)
		}
	}
	if len(used) < 20 {
		t.Errorf("the template uses %d benchmarks, want more", len(used))
	}
	page, _ := pageOf(t, parse(t, "BenchmarkElse 1 2 ns/op\n"))
	if n, tables := strings.Count(page, notMeasured), strings.Count(pageTemplate, "{{table"); n != tables || !strings.Contains(page, "| Postgres | none |") {
		t.Errorf("without figures: %d tables are marked as not measured, want %d", n, tables)
	}
}

func TestMalformedTemplate(t *testing.T) {
	r := parse(t, "BenchmarkA 1 10 x\n")
	for _, text := range []string{"{{table `` `a | A/*`}}", "{{goals}}"} {
		if page, err := r.markdown(text); err == nil {
			t.Errorf("%s: expected an error, got %q", text, page)
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
