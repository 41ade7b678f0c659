package main

import (
	"cmp"
	"os"
	"strings"
	"testing"
)

// The first screens of README.md have the benefit, the way to get the module, and the first program.
func TestFirstScreen(t *testing.T) {
	lines := strings.Split(read(t, "../../README.md"), "\n")
	if len(lines) > 131 {
		t.Errorf("want at most 130 lines, got %d", len(lines)-1)
	}
	screen := strings.Join(lines[:45], "\n")
	for _, want := range []string{"Typed, time-sorted primary keys for Go and Postgres", "go get github.com/sortkey/sortkey", "idtype.UUIDOf[Order]", "NewUUIDGenerator"} {
		if !strings.Contains(screen, want) {
			t.Errorf("want %q on the first screen", want)
		}
	}
}

// Each question of a newcomer is answered in README.md or on a page that it links.
func TestQuestions(t *testing.T) {
	readme := read(t, "../../README.md")
	for _, q := range []struct{ question, page, answer string }{
		{"a node number in Kubernetes", "docs/kubernetes.md", "let each claim its node number in Postgres"},
		{"two replicas on deploy", "docs/kubernetes.md", "Old and new pods run side by side, each with a number of its own"},
		{"claims beside configured numbers", "docs/node-numbers.md", "Claims don't see configured numbers"},
		{"the clock goes back", "", "never issues a duplicate, with any number of goroutines, even if the clock stops or steps back"},
		{"hosted Postgres", "docs/hosted.md", "no extension, no superuser, no restart"},
		{"testing", "docs/testing.md", "pass a generator whose IDs are the same in every run"},
		{"time in SQL", "", "WHERE id >= sortkey.snowflake_floor("},
		{"debug an ID", "docs/command.md", "## inspect"},
		{"change the epoch", "docs/migrating.md", "## Another schema or epoch"},
		{"overhead", "docs/benchmarks.md", "bigserial"},
		{"sqlc, ent and bun", "docs/using-with.md", "## bun"},
		{"expose publicly", "docs/security.md", "## Show outsiders sealed IDs"},
		{"bwmarrin's IDs in the table", "docs/coming-from.md", "| bwmarrin/snowflake"},
	} {
		text := readme
		if q.page != "" {
			if !strings.Contains(readme, "("+q.page) {
				t.Errorf("%s: README.md doesn't link %s", q.question, q.page)
			}
			text = read(t, "../../"+q.page)
		}
		if !strings.Contains(strings.ToLower(text), strings.ToLower(q.answer)) {
			t.Errorf("%s: want %q in %s", q.question, q.answer, cmp.Or(q.page, "README.md"))
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
