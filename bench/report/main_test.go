package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// elsewhere is a module with a benchmark that works and one that doesn't, and
// stages of these.
func elsewhere(t *testing.T, patterns ...string) {
	t.Helper()
	t.Chdir(t.TempDir())
	t.Setenv("GOWORK", "off")
	t.Setenv("DATABASE_URL", "")
	for path, content := range map[string]string{
		"go.mod":               "module elsewhere\n\ngo 1.26.0\n",
		"bench/report/doc.txt": "",
		"bench/some_test.go": `package bench

import "testing"

func BenchmarkNext(b *testing.B) {
	b.Run("Snowflake", func(b *testing.B) {
		for b.Loop() {
		}
	})
}

func BenchmarkOther(b *testing.B) {
	for b.Loop() {
	}
}

func BenchmarkBroken(b *testing.B) { b.Fatal("broken") }

func BenchmarkSkipped(b *testing.B) { b.Skip() }
`,
	} {
		if err := write(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	hadStages, hadPeers := stages, peers
	t.Cleanup(func() { stages, peers = hadStages, hadPeers })
	stages, peers = nil, nil
	for _, p := range patterns {
		stages = append(stages, stage{p, "./bench", p, false, setting{once, 2, ""}, setting{once, 1, ""}})
	}
	stages = append(stages, stage{"with a server", "./bench", "Broken", true, setting{once, 1, ""}, setting{once, 1, ""}})
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestReport(t *testing.T) {
	for _, quick := range []bool{true, false} {
		elsewhere(t, "Skipped", "Next")
		folder, other, runs := published, scratch, 2
		if quick {
			folder, other, runs = scratch, published, 1
		}
		var log bytes.Buffer
		if err := report(t.Context(), quick, "", &log); err != nil {
			t.Fatalf("%v\n%s", err, &log)
		}
		text, err := os.ReadFile(filepath.Join(folder, raw))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), "BenchmarkNext/Snowflake"); n != runs {
			t.Errorf("quick: %t: %d runs, want %d", quick, n, runs)
		}
		r := parse(t, string(text))
		for _, key := range []string{"date", "command", "commit", "go", "cores", "system", "peers"} {
			if r.facts[key] == "" {
				t.Errorf("quick: %t: it doesn't say its %s", quick, key)
			}
		}
		if len(r.commands) != 2 {
			t.Errorf("quick: %t: it has the commands %q", quick, r.commands)
		}
		if exists(other) || !exists(filepath.Join(folder, images, "mint.svg")) {
			t.Errorf("quick: %t: the page isn't in %s alone", quick, folder)
		}
		if !strings.Contains(log.String(), "left out: no server") || strings.Contains(log.String(), "quick run") != quick {
			t.Errorf("quick: %t: it says\n%s", quick, &log)
		}

		// What was kept gives the same page again.
		path := filepath.Join(folder, page)
		first, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := report(t.Context(), false, filepath.Join(folder, raw), &log); err != nil {
			t.Fatal(err)
		}
		if again, err := os.ReadFile(path); err != nil || !bytes.Equal(first, again) {
			t.Errorf("quick: %t: the page isn't the same again: %v", quick, err)
		}
	}
}

// TestMeasureAgain replaces the results of one stage of two.
func TestMeasureAgain(t *testing.T) {
	elsewhere(t, "Other", "Next")
	var log bytes.Buffer
	if err := report(t.Context(), false, "", &log); err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	results := filepath.Join(published, raw)
	kept := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(results)
		if err != nil {
			t.Fatal(err)
		}
		begin, end, ok := section(text, stages[slices.IndexFunc(stages, func(s stage) bool { return s.title == name })].command(false))
		if !ok {
			t.Fatalf("no results of %s in\n%s", name, text)
		}
		return string(text[begin:end])
	}
	next, other := kept("Next"), kept("Other")
	for n := range 2 {
		if err := measureAgain(t.Context(), results, "^Ne", &log); err != nil {
			t.Fatalf("%v\n%s", err, &log)
		}
		if kept("Other") != other || kept("Next") == next || strings.Count(kept("Next"), "BenchmarkNext/Snowflake") != 2 {
			t.Errorf("expected other results of Next alone, got\n%s%s", kept("Other"), kept("Next"))
		}
		markdown, err := os.ReadFile(filepath.Join(published, page))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(string(markdown), "Next: 2"); got != n+1 || !strings.Contains(string(markdown), "| measured again | Next: ") {
			t.Errorf("the page says %d times that Next was measured again, want %d", got, n+1)
		}
	}
	for pattern, want := range map[string]string{"none": "matches none", "[": "missing closing", "with": "no server"} {
		if err := measureAgain(t.Context(), results, pattern, &log); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %s", pattern, err, want)
		}
	}
	if err := measureAgain(t.Context(), "", "Next", &log); err == nil || !strings.Contains(err.Error(), "-from") {
		t.Errorf("without results: the error is %v", err)
	}
}

// TestReportFails has a stage fail after one that didn't.
func TestReportFails(t *testing.T) {
	elsewhere(t, "Next", "Broken")
	var log bytes.Buffer
	err := report(t.Context(), false, "", &log)
	if err == nil || !strings.Contains(err.Error(), "-bench Broken") {
		t.Errorf("the error is %v", err)
	}
	if !strings.Contains(log.String(), "some_test.go") {
		t.Errorf("it says nothing of what failed:\n%s", &log)
	}
	if exists(published) {
		t.Error("there is a page")
	}
	text, err := os.ReadFile(filepath.Join(scratch, "unfinished.txt"))
	if err != nil || !strings.Contains(string(text), "BenchmarkNext/Snowflake") {
		t.Errorf("what was measured before is lost: %v", err)
	}
}

func TestCommit(t *testing.T) {
	t.Chdir(t.TempDir())
	if got := commit(t.Context()); got != "unknown" {
		t.Errorf("outside of a repository: %s", got)
	}
	for _, args := range [][]string{
		{"init", "--quiet"},
		{"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "--allow-empty", "--message=a"},
		{"-c", "tag.gpgSign=false", "tag", "v1"},
	} {
		if _, err := output(t.Context(), "git", args...); err != nil {
			t.Fatal(err)
		}
	}
	if got := commit(t.Context()); got != "v1" {
		t.Errorf("as it was committed: %s", got)
	}
	if err := write("new", nil); err != nil {
		t.Fatal(err)
	}
	if got := commit(t.Context()); got != "v1, with changes" {
		t.Errorf("with another file: %s", got)
	}
}

// TestReportElsewhere refuses to run where it would write to the wrong folder.
func TestReportElsewhere(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := report(t.Context(), true, "", new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "root") {
		t.Errorf("the error is %v", err)
	}
}
