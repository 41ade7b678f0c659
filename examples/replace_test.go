package examples

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// snowflakeWords are the words of a program that names its generator, in their order: what stands
// for a type in the text, and its replacement.
var snowflakeWords = []struct{ find, replace string }{
	{`idtype\.SnowflakeOf\[`, `idtype.UUIDOf[`}, // in a program that only uses keys, the only word
	{`idtype\.NewSnowflakeGenerator\(idtype\.SnowflakeConfig\{[^{}]*\}\)`, `idtype.NewUUIDGenerator(idtype.UUIDConfig{})`},
	{`idtype\.SnowflakeGenerator\b`, `idtype.UUIDGenerator`},
	{`idtype\.Generator\[idtype\.Snowflake\]`, `idtype.Generator[idtype.UUID]`},
	{`idtype\.DefaultSnowflakeLayout\(\)`, `idtype.UUIDLayout{}`},
}

// The second program of README.md is the first one with the lines that README.md removes and adds,
// and their imports.
func TestREADMEDiff(t *testing.T) {
	read := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	code := func(file string) []string {
		_, code, _ := strings.Cut(read(file), "\n)\n") // after the imports
		return strings.Split(code, "\n")
	}
	first, second := code("hello/main.go"), code("snowflake/main.go")
	var want []string
	for sign, of := range map[string][2][]string{"-": {first, second}, "+": {second, first}} {
		for _, line := range of[0] {
			if !slices.Contains(of[1], line) {
				want = append(want, sign+line)
			}
		}
	}
	got := strings.Split(regexp.MustCompile("(?s)```diff\n(.*?)\n```").FindStringSubmatch(read("../README.md"))[1], "\n")
	got = slices.DeleteFunc(got, func(line string) bool { return line == "+}" }) // which both have
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("README.md: got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A program with UUIDOf instead of SnowflakeOf, and with a generator of UUIDs, compiles. The
// quickstart also prints the parts of a Snowflake, which a UUID doesn't have.
func TestReplaceSnowflakes(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles programs")
	}
	t.Parallel()
	overlay := map[string]string{}
	var packages []string
	for _, file := range []string{"readme/readme.go", "moving/after/models.go", "testing/shop.go", "guide/choosing.go", "guide/storage.go", "guide/pgx.go", "guide/paging.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		changed := string(text)
		for _, w := range snowflakeWords {
			changed = regexp.MustCompile(w.find).ReplaceAllString(changed, w.replace)
		}
		if changed == string(text) {
			t.Errorf("%s: nothing to replace", file)
		}
		path, err := filepath.Abs(file)
		if err != nil {
			t.Fatal(err)
		}
		overlay[path] = filepath.Join(t.TempDir(), filepath.Base(file))
		if err := os.WriteFile(overlay[path], []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		packages = append(packages, "./"+filepath.Dir(file))
		// go test repeats a test if a file that it has read has changed.
		others, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range others {
			if _, err := os.ReadFile(other); err != nil {
				t.Fatal(err)
			}
		}
	}
	config, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", append([]string{"build", "-overlay", file}, packages...)...).CombinedOutput(); err != nil {
		t.Errorf("go build: %v\n%s", err, out)
	}
}
