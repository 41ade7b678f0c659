package links

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// MarkdownFiles gives the Markdown files.
func (t *Tree) MarkdownFiles() (names []string, err error) {
	err = t.walk(func(name string) error {
		if strings.EqualFold(filepath.Ext(name), ".md") {
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

var (
	// A text between brackets may itself have brackets, of an image or of code.
	inlineLink    = regexp.MustCompile(`\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(\s*<?([^()<>\s]*)>?(?:\s+["'][^)]*)?\)`)
	referenceLink = regexp.MustCompile(`\[[^\[\]]+\]\[([^\[\]]+)\]`)
	definition    = regexp.MustCompile(`(?m)^ {0,3}\[([^\[\]]+)\]:\s*<?(\S+?)>?(?:\s+["'(].*)?$`)
	htmlLink      = regexp.MustCompile(`<(?:a|img)\s[^>]*?(?:href|src)=["']([^"']*)["']`)
	htmlAnchor    = regexp.MustCompile(`<[a-z]+\s[^>]*?(?:name|id)=["']([^"']*)["']`)
	htmlComment   = regexp.MustCompile(`(?s)<!--.*?-->`)
	heading       = regexp.MustCompile(`^ {0,3}#{1,6}\s+(.*?)\s*#*\s*$`)
	lineAnchor    = regexp.MustCompile(`^L\d+(?:-L\d+)?$`)
)

// Markdown complains about links of a file to files, and headings of files, that
// don't exist.
func (t *Tree) Markdown(name string) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	prose := withoutSpans(withoutBlocks(string(b)))
	var errs []error
	complain := func(target, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: the link to %s: %s", name, target, fmt.Sprintf(format, args...)))
	}
	var targets []string
	defined := make(map[string]bool)
	for _, m := range definition.FindAllStringSubmatch(prose, -1) {
		defined[strings.ToLower(m[1])] = true
		targets = append(targets, m[2])
	}
	for _, re := range []*regexp.Regexp{inlineLink, htmlLink} {
		for _, m := range re.FindAllStringSubmatch(prose, -1) {
			targets = append(targets, m[1])
		}
	}
	for _, m := range referenceLink.FindAllStringSubmatch(prose, -1) {
		if !defined[strings.ToLower(m[1])] {
			complain(m[1], "expected a line that begins with [%s]:, found none", m[1])
		}
	}
	for _, target := range targets {
		if err := t.target(name, target); err != nil {
			complain(target, "%v", err)
		}
	}
	return errors.Join(errs...)
}

// target complains unless what a link of a file leads to is there, or elsewhere
// than in the repository.
func (t *Tree) target(from, target string) error {
	u, err := url.Parse(target)
	if err != nil {
		return err
	}
	if u.Scheme != "" || u.Host != "" {
		return nil
	}
	file := from
	if u.Path != "" {
		if strings.HasPrefix(u.Path, "/") {
			return errors.New("expected a path from the file's folder")
		}
		file = filepath.Join(filepath.Dir(from), filepath.FromSlash(u.Path))
		if rel, err := filepath.Rel(t.root, file); err != nil || !filepath.IsLocal(rel) {
			return errors.New("expected a path in the repository")
		}
		if _, err := os.Stat(file); err != nil {
			return errors.New("expected a file or a folder, found none")
		}
	}
	if u.Fragment == "" {
		if target == "" || target == "#" {
			return errors.New("expected a path or a heading, got none")
		}
		return nil
	}
	if !strings.EqualFold(filepath.Ext(file), ".md") {
		if lineAnchor.MatchString(u.Fragment) {
			return nil
		}
		return fmt.Errorf("expected lines such as L1 of a file that isn't Markdown, got %s", u.Fragment)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if !anchors(string(b))[u.Fragment] {
		return fmt.Errorf("expected a heading of %s that gives #%s, found none", filepath.Base(file), u.Fragment)
	}
	return nil
}

// withoutBlocks leaves out fenced code and comments.
func withoutBlocks(text string) string {
	var kept []string
	fence := ""
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		if fence != "" {
			if strings.HasPrefix(trimmed, fence) && strings.Trim(trimmed, fence[:1]) == "" {
				fence = ""
			}
			continue
		}
		for _, mark := range []string{"`", "~"} {
			rest := strings.TrimLeft(trimmed, mark)
			// What has another ` behind it is code within the line.
			if run := len(trimmed) - len(rest); run >= 3 && !(mark == "`" && strings.Contains(rest, mark)) {
				fence = strings.Repeat(mark, run)
			}
		}
		if fence == "" {
			kept = append(kept, line)
		}
	}
	return htmlComment.ReplaceAllString(strings.Join(kept, ""), "")
}

// withoutSpans leaves out code within lines. A space takes its place, so that a
// link whose text is code stays one.
func withoutSpans(text string) string {
	var out strings.Builder
	for text != "" {
		i := strings.IndexByte(text, '`')
		if i < 0 {
			break
		}
		run := len(text[i:]) - len(strings.TrimLeft(text[i:], "`"))
		out.WriteString(text[:i])
		text = text[i+run:]
		if after := endOfSpan(text, run); after > 0 {
			out.WriteByte(' ')
			text = text[after:]
		}
	}
	out.WriteString(text)
	return out.String()
}

// endOfSpan is where code ends that n backticks begin: after as many, and no
// more. It is 0 if it doesn't.
func endOfSpan(text string, n int) int {
	for at := 0; ; {
		i := strings.IndexByte(text[at:], '`')
		if i < 0 {
			return 0
		}
		at += i
		run := len(text[at:]) - len(strings.TrimLeft(text[at:], "`"))
		at += run
		if run == n {
			return at
		}
	}
}

// anchors are those that GitHub gives a file's headings, and those that it says
// itself in HTML.
func anchors(text string) map[string]bool {
	found := make(map[string]bool)
	text = withoutBlocks(text)
	for line := range strings.Lines(text) {
		m := heading.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil {
			continue
		}
		slug := slugOf(m[1])
		for i := 0; found[slug]; i++ {
			slug = slugOf(m[1]) + "-" + strconv.Itoa(i+1)
		}
		found[slug] = true
	}
	for _, m := range htmlAnchor.FindAllStringSubmatch(text, -1) {
		found[m[1]] = true
	}
	return found
}

// slugOf is a heading in lower case, with hyphens for spaces, and without
// punctuation. Of a link its text counts.
func slugOf(title string) string {
	title = inlineLink.ReplaceAllStringFunc(title, func(link string) string {
		return link[1:strings.LastIndex(link, "](")]
	})
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsNumber(r):
			return unicode.ToLower(r)
		}
		return -1
	}, title)
}
