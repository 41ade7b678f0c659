package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

//go:embed phrases.txt
var phrases string

// proseFiles matches the files with prose: Markdown, comments, messages and scripts.
var proseFiles = regexp.MustCompile(`\.(md|tmpl|go|sql|sh|ya?ml)$|^Makefile$|^\.ci/run$|^scripts/[^/]*$`)

// rejectedPhrases returns the phrases of a list in the files, as file:line: phrase: remedy. In
// the list, the comment above phrases is their remedy, and a line with "allow: " has a phrase
// in which they are good English.
func rejectedPhrases(fsys fs.FS, list string) (found []string, err error) {
	var allowed []*regexp.Regexp
	remedies := map[*regexp.Regexp]string{}
	remedy := ""
	for line := range strings.Lines(list) {
		line = strings.TrimSpace(line)
		phrase, allows := strings.CutPrefix(line, "allow: ")
		if comment, ok := strings.CutPrefix(line, "# "); ok || line == "" {
			remedy = comment
			continue
		}
		// A space matches white space, also with the comment marker of a next line, or the operator between two string literals.
		re, err := regexp.Compile(`(?i)\b(?:` + strings.ReplaceAll(phrase, " ", `\s+(?:(?://|--|#|>|"\s*\+\s*")\s*)?`) + `)\b`)
		if err != nil {
			return nil, err
		}
		if allows {
			allowed = append(allowed, re)
		} else {
			remedies[re] = remedy
		}
	}
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == "testdata" || d.Name() == ".bin" || d.Name() == ".git") {
			return fs.SkipDir
		}
		if err != nil || d.IsDir() || !proseFiles.MatchString(name) {
			return err
		}
		text, err := fs.ReadFile(fsys, name)
		for _, re := range allowed {
			text = re.ReplaceAllFunc(text, func(phrase []byte) []byte { return bytes.Repeat([]byte("\n"), bytes.Count(phrase, []byte("\n"))) })
		}
		for re, remedy := range remedies {
			for _, at := range re.FindAllIndex(text, -1) {
				line := 1 + bytes.Count(text[:at[0]], []byte("\n"))
				found = append(found, fmt.Sprintf("%s:%d: %s: %s", path.Clean(name), line, bytes.Join(bytes.Fields(text[at[0]:at[1]]), []byte(" ")), remedy))
			}
		}
		return err
	})
	return found, err
}
