package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/benchmarks.md anew")

func sample(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/sample.txt")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func parse(t *testing.T, text string) *results {
	t.Helper()
	r, err := read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// rendered is the page of some results.
func rendered(t *testing.T, text string) string {
	t.Helper()
	folder := t.TempDir()
	if err := render([]byte(text), folder, io.Discard); err != nil {
		t.Fatal(err)
	}
	markdown, err := os.ReadFile(filepath.Join(folder, page))
	if err != nil {
		t.Fatal(err)
	}
	for _, image := range []string{"mint", "gomaxprocs", "grow-rows", "grow-index"} {
		path := filepath.Join(images, image+".svg")
		_, err := os.Stat(filepath.Join(folder, path))
		if linked := strings.Contains(string(markdown), "]("+path+")"); linked != (err == nil) {
			t.Errorf("%s: it is shown: %t, and there: %v", path, linked, err)
		}
	}
	return string(markdown)
}

func TestPage(t *testing.T) {
	const golden = "testdata/benchmarks.md"
	got := rendered(t, sample(t))
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	lines := strings.Split(string(want), "\n")
	for i, line := range strings.Split(got, "\n") {
		if i >= len(lines) || line != lines[i] {
			t.Fatalf("line %d is\n%s\nwant\n%s\nIf that is as it should be: go test ./bench/report -update", i+1, line, strings.Join(lines[min(i, len(lines)):min(i+1, len(lines))], ""))
		}
	}
	t.Fatalf("the page is shorter than %s", golden)
}

// without is the sample without what begins with any of some words.
func without(text string, words ...string) string {
	var kept []string
	for line := range strings.Lines(text) {
		cut := false
		for _, w := range words {
			cut = cut || strings.HasPrefix(line, w)
		}
		if !cut {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

func TestMissing(t *testing.T) {
	const none, noServer = "Not measured in this run.", "Not measured: this run had no Postgres server."
	all := sample(t)
	servers := []string{"BenchmarkRows", "BenchmarkCopyFrom", "BenchmarkPostgres", "BenchmarkInsert", "BenchmarkCopy/", "BenchmarkGrow", "BenchmarkDefault", "BenchmarkWindow"}
	sections := len(servers) - 2 // Rows and CopyFrom are one, and so are Insert and Copy

	if got := rendered(t, all); strings.Contains(got, none) || strings.Contains(got, noServer) || strings.Contains(got, string(notMeasured)) {
		t.Error("the sample lacks figures, or the page says so")
	}
	got := rendered(t, without(all, append(servers, "# postgres")...))
	if n := strings.Count(got, noServer); n != sections || strings.Contains(got, none) {
		t.Errorf("without a server: %d sections say so, want %d", n, sections)
	}
	if !strings.Contains(got, "| Postgres | none |") {
		t.Error("without a server: the page has one")
	}
	if n := strings.Count(got, "| "+string(notMeasured)+" |"); n != 8 { // COPY's allocations, Create, INSERT in two ways by two defaults, COPY of either format
		t.Errorf("without a server: %d goals weren't measured, want 8", n)
	}
	got = rendered(t, without(all, servers...))
	if n := strings.Count(got, none); n != sections || strings.Contains(got, noServer) {
		t.Errorf("with a server, but without its benchmarks: %d sections say so, want %d", n, sections)
	}
	got = rendered(t, without(all, "BenchmarkGOMAXPROCS", "BenchmarkLease", "BenchmarkCompare"))
	if n := strings.Count(got, none); n != 3 {
		t.Errorf("without three benchmarks: %d sections say so", n)
	}
}

func TestJudge(t *testing.T) {
	r := parse(t, "BenchmarkA 1 10 x\nBenchmarkA 1 12 x\nBenchmarkA 1 90 x\nBenchmarkB 1 20 x\n")
	for _, c := range []struct {
		limit   float64
		atLeast bool
		of      []string
		want    verdict
		worst   string
	}{
		{12, false, []string{"A"}, met, "A"}, // the median, and the limit itself
		{11, false, []string{"A"}, missed, "A"},
		{20, false, []string{"A", "B"}, met, "B"},
		{19, false, []string{"B", "A"}, missed, "B"},
		{12, true, []string{"A", "B"}, met, "A"},
		{13, true, []string{"B", "A"}, missed, "A"},
		{99, false, []string{"C"}, notMeasured, ""},
		{99, false, []string{"A", "C"}, notMeasured, "A"},
		{19, false, []string{"B", "C"}, missed, "B"},
	} {
		g := goal{unit: "x", limit: c.limit, atLeast: c.atLeast, of: c.of}
		if v, _, name := g.judge(r); v != c.want || name != c.worst {
			t.Errorf("%v, %v, at least: %t: %s by %q, want %s by %q", c.of, c.limit, c.atLeast, v, name, c.want, c.worst)
		}
	}
}

func TestJudgeSno(t *testing.T) {
	for sno, want := range map[string]verdict{"1.05": met, "1.06": missed} {
		r := parse(t, "BenchmarkCopy/key=uuidv7 1 1 ratio\nBenchmarkCopy/key=Sno 1 "+sno+" ratio\n")
		if v, _ := judgeSno(r); v != want {
			t.Errorf("%s: %s, want %s", sno, v, want)
		}
	}
	if v, _ := judgeSno(parse(t, "BenchmarkCopy/key=Sno 1 1 ratio\n")); v != notMeasured {
		t.Errorf("without uuidv7: %s", v)
	}
}

// TestGoals has one figure of the sample change at a time: only what is wanted
// of it can be missed.
func TestGoals(t *testing.T) {
	verdicts := func(text string) string { return parse(t, text).GoalTable().String() }
	good := strings.Replace(sample(t), "1.06 ratio", "1.04 ratio", 1) // the one that the sample misses
	if strings.Contains(verdicts(good), string(missed)) {
		t.Fatal("a goal is missed")
	}
	for _, g := range goals {
		for _, name := range g.of {
			worse := g.limit + 0.5
			if g.atLeast {
				worse = g.limit - 0.5
			}
			got := verdicts(set(good, name, g.unit, worse))
			if strings.Count(got, string(missed)) == 0 {
				t.Errorf("%s: not missed by %s", g.text, name)
			}
		}
	}
}

// set is a text of results with another figure of a benchmark.
func set(text, name, unit string, value float64) string {
	return without(text, "Benchmark"+name+"-2 ") + "\nBenchmark" + name + "-2 1 " + short(value) + " " + unit + "\n"
}

func TestFigure(t *testing.T) {
	r := parse(t, "pkg: p\nBenchmarkA/b-2 1 30 ns/op 5 %cap\nBenchmarkA/b-2 1 10 ns/op\nBenchmarkA/b-2 1 20 ns/op\nBenchmarkA/c=d-7-2 1 2 x\nBenchmarkA/c=d-7-2 1 4 x\n")
	for _, c := range []struct {
		name, unit string
		want       figure
	}{
		{"A/b", "ns/op", figure{20, 0.5, 3}},
		{"A/b", "%cap", figure{5, 0, 1}},
		{"A/c=d-7", "x", figure{3, 1. / 3, 2}},
		{"A/b", "x", figure{}},
		{"A", "ns/op", figure{}},
	} {
		if got, ok := r.figure(c.name, c.unit); got != c.want || ok != (c.want.runs > 0) {
			t.Errorf("%s, %s: %v, want %v", c.name, c.unit, got, c.want)
		}
	}
}

func TestReadMalformed(t *testing.T) {
	for _, text := range []string{
		"BenchmarkA 1 10 ns/op\nBenchmarkB 1 ten ns/op\n",
		"BenchmarkA 1 10 ns/op\nBenchmarkB 1 10\n",
		"BenchmarkA one 10 ns/op\n",
		"pkg: p\nBenchmarkA 1 10 ns/op\npkg: q\nBenchmarkA 1 10 ns/op\n",
		"# no fact\nBenchmarkA 1 10 ns/op\n",
	} {
		if _, err := read(strings.NewReader(text)); err == nil || errors.Is(err, errEmpty) {
			t.Errorf("%q: %v", text, err)
		}
		if err := render([]byte(text), t.TempDir(), io.Discard); err == nil {
			t.Errorf("%q was rendered", text)
		}
	}
	if _, err := read(strings.NewReader("PASS\nok p 1s\n")); !errors.Is(err, errEmpty) {
		t.Errorf("nothing: %v", err)
	}
}

var background = regexp.MustCompile(`<path d="M0,0L\d+,0L\d+,\d+L0,\d+Z" style="fill:#FFFFFF" />`)

func TestPlots(t *testing.T) {
	r := parse(t, sample(t))
	pictures, err := r.plots()
	if err != nil {
		t.Fatal(err)
	}
	again, err := parse(t, sample(t)).plots()
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string][]string{
		"mint.svg":       {"Snowflake", "Sno", "google/uuid v7", "155"},
		"gomaxprocs.svg": {"GOMAXPROCS", "Snowflake", "rs/xid"},
		"grow-rows.svg":  {"million rows", "ulid-text", "Spread64"},
		"grow-index.svg": {"million rows", "ulid-text", "Spread64"},
	}
	if len(pictures) != len(texts) {
		t.Fatalf("%d plots, want %d", len(pictures), len(texts))
	}
	for i, p := range pictures {
		if !bytes.Equal(p.svg, again[i].svg) {
			t.Errorf("%s isn't the same again", p.name)
		}
		if len(p.svg) > 64<<10 {
			t.Errorf("%s has %d bytes", p.name, len(p.svg))
		}
		if err := xml.Unmarshal(p.svg, new(struct{})); err != nil {
			t.Errorf("%s: %v", p.name, err)
		}
		if !background.Match(p.svg) {
			t.Errorf("%s has no white behind all of it", p.name)
		}
		for _, s := range append(texts[p.name], "sans-serif") {
			if !bytes.Contains(p.svg, []byte(s)) {
				t.Errorf("%s has no %q", p.name, s)
			}
		}
	}

	// Lines that end higher are named before the others.
	legend := string(pictures[3].svg)
	if last, first := strings.LastIndex(legend, "bigserial"), strings.LastIndex(legend, "ulid-text"); first > last {
		t.Error("grow-index.svg names bigserial before ulid-text, whose index is larger")
	}
}

func TestShort(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0", 0.00497: "0.00497", 1: "1", 9.876: "9.88", 41.25: "41.2", 155.4: "155", 999.9: "1,000", 1234.5: "1,234", 9999999: "9,999,999", -1234567: "-1,234,567",
	} {
		if got := short(x); got != want {
			t.Errorf("%v is %s, want %s", x, got, want)
		}
	}
}
