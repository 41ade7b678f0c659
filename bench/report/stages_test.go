package main

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestStages finds a benchmark for each part of each stage's pattern, and none
// that two stages would measure.
func TestStages(t *testing.T) {
	listed := map[string][]string{}
	measured := map[string]string{}
	for _, s := range stages {
		if _, ok := listed[s.folder]; !ok {
			cmd := exec.Command("go", "test", "-list", "^Benchmark", s.folder)
			cmd.Dir = "../.."
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v\n%s", s.folder, err, out)
			}
			listed[s.folder] = regexp.MustCompile(`(?m)^Benchmark\w+`).FindAllString(string(out), -1)
		}
		for _, part := range split(s.pattern, '|') {
			of := regexp.MustCompile(split(part, '/')[0])
			found := false
			for _, name := range listed[s.folder] {
				if !of.MatchString(name) {
					continue
				}
				found = true
				if other := measured[name]; other != "" {
					t.Errorf("%s is measured in two stages: %q and %q", name, other, s.title)
				}
				measured[name] = s.title
			}
			if !found {
				t.Errorf("%q: nothing in %s matches %q", s.title, s.folder, part)
			}
		}
	}
	for _, name := range wanted() {
		base, _, _ := strings.Cut(name, "/")
		if measured["Benchmark"+base] == "" {
			t.Errorf("%s is in a table, and in no stage", name)
		}
	}
}

// wanted are the benchmarks of the goals and contests.
func wanted() []string {
	names := []string{"GOMAXPROCS", "Lease", "Rows", "ScanSlice", "Create"}
	for _, g := range goals {
		names = append(names, g.of...)
	}
	for _, c := range contests {
		names = append(append(names, c.ours...), c.theirs...)
	}
	return names
}

// split cuts a pattern as go test does: not in brackets.
func split(pattern string, at byte) (parts []string) {
	depth, start := 0, 0
	for i := range len(pattern) {
		switch c := pattern[i]; {
		case c == '(' || c == '[':
			depth++
		case c == ')' || c == ']':
			depth--
		case c == at && depth == 0:
			parts = append(parts, pattern[start:i])
			start = i + 1
		}
	}
	return append(parts, pattern[start:])
}

func TestCommand(t *testing.T) {
	s := stage{folder: "./bench", pattern: "Next$|Fill", full: setting{"1s", 5, ""}, quick: setting{once, 1, "-captime 1s"}}
	for quick, want := range map[bool]string{
		false: "go test -run '^$' -bench 'Next$|Fill' -benchtime 1s -count 5 -timeout 60m ./bench",
		true:  "go test -run '^$' -bench 'Next$|Fill' -benchtime 1x -count 1 -timeout 60m ./bench -captime 1s",
	} {
		if got := s.command(quick); got != want {
			t.Errorf("quick: %t: %s, want %s", quick, got, want)
		}
	}
}

func TestLeftOut(t *testing.T) {
	here := stage{folder: "."}
	server := stage{folder: ".", server: true}
	gone := stage{folder: "./gone"}
	if here.leftOut(false) != "" || server.leftOut(true) != "" || server.leftOut(false) == "" || gone.leftOut(true) == "" {
		t.Error("a stage is left out that can be run, or the other way round")
	}
}

// TestRunFails has a stage fail, and gives what it printed.
func TestRunFails(t *testing.T) {
	t.Chdir("../..")
	s := stage{folder: "./bench/report", pattern: "[", full: setting{once, 1, ""}}
	out, err := s.run(t.Context(), false)
	if err == nil || !strings.Contains(string(out), "invalid regexp") {
		t.Errorf("error %v, and output %q", err, out)
	}
}
