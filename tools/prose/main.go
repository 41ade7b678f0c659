// Command prose reports the phrases of patterns.txt in the Markdown, comments, messages and scripts of the repository, and
// fails if it finds any. Phrases that exceptions.txt lists are allowed.
//
//	cd tools && GOWORK=off go run ./prose [FOLDER...]
package main

import (
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

//go:embed patterns.txt
var patterns string

//go:embed exceptions.txt
var exceptions string

// gap matches a space of a phrase: white space, which may include the comment
// marker of a next line, or the operator between two string literals.
const gap = `\s+(?:(?://|--|#|>|"\s*\+\s*")\s*)?`

func main() {
	root := flag.String("root", "..", "the root of the repository")
	flag.Parse()
	folders := flag.Args()
	if len(folders) == 0 {
		folders = []string{"."}
	}
	problems, err := check(os.DirFS(*root), folders, patterns, exceptions)
	for _, p := range problems {
		fmt.Fprintln(os.Stderr, p)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil || len(problems) > 0 {
		os.Exit(1)
	}
}

// A rule is a pattern with its remedy, or an exception with its file.
type rule struct {
	*regexp.Regexp
	about string
	used  bool
}

// check returns the phrases of files in the folders, as file:line: phrase: remedy,
// and the exceptions without effect.
func check(fsys fs.FS, folders []string, patterns, exceptions string) (problems []string, err error) {
	banned, err := rules(patterns, "")
	if err != nil {
		return nil, err
	}
	allowed, err := rules(exceptions, ": ")
	if err != nil {
		return nil, err
	}
	for _, folder := range folders {
		err := fs.WalkDir(fsys, path.Clean(folder), func(name string, d fs.DirEntry, err error) error {
			if err == nil && (d.Name() == "testdata" || d.Name() == ".bin" || d.Name() == ".git") {
				if d.IsDir() {
					return fs.SkipDir
				}
				return nil // .git of a worktree
			}
			if err != nil || d.IsDir() || !hasProse(name) {
				return err
			}
			text, err := fs.ReadFile(fsys, name)
			problems = append(problems, find(name, text, banned, allowed)...)
			return err
		})
		if err != nil {
			return problems, err
		}
	}
	for _, e := range allowed {
		if !e.used && e.about != "*" && slices.Contains(folders, ".") {
			problems = append(problems, fmt.Sprintf("exceptions.txt: %s: no phrase needs this exception; remove it", e.about))
		}
	}
	return problems, nil
}

func hasProse(name string) bool {
	switch path.Ext(name) {
	case ".md", ".tmpl", ".go", ".sql", ".sh", ".yml", ".yaml":
		return true
	}
	return name == "Makefile" || name == ".ci/run" || path.Dir(name) == "scripts"
}

// rules parses a list of phrases. A comment above phrases is their remedy,
// unless a separator divides each line into a file and a phrase.
func rules(list, separator string) (parsed []rule, err error) {
	about := ""
	for line := range strings.Lines(list) {
		line = strings.TrimSpace(line)
		if remedy, ok := strings.CutPrefix(line, "# "); ok {
			about = remedy
			continue
		}
		phrase := line
		if separator != "" {
			about, phrase, _ = strings.Cut(line, separator)
		}
		if line == "" {
			continue
		}
		re, err := regexp.Compile(`(?i)\b(?:` + strings.ReplaceAll(phrase, " ", gap) + `)\b`)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, rule{Regexp: re, about: about})
	}
	return parsed, nil
}

// find returns the banned phrases in a text, except for matches within an allowed phrase.
func find(name string, text []byte, banned, allowed []rule) (found []string) {
	for _, pattern := range banned {
		for _, at := range pattern.FindAllIndex(text, -1) {
			if within(name, text, at, allowed) {
				continue
			}
			line := 1 + bytes.Count(text[:at[0]], []byte("\n"))
			phrase := strings.Join(strings.Fields(string(text[at[0]:at[1]])), " ")
			found = append(found, fmt.Sprintf("%s:%d: %s: %s", name, line, phrase, pattern.about))
		}
	}
	return found
}

func within(name string, text []byte, match []int, allowed []rule) bool {
	for i := range allowed {
		if about := allowed[i].about; about != "*" && about != name {
			continue
		}
		for _, at := range allowed[i].FindAllIndex(text, -1) {
			if at[0] <= match[0] && match[1] <= at[1] {
				allowed[i].used = true
				return true
			}
		}
	}
	return false
}
