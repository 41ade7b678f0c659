package main

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
)

//go:embed page.md.tmpl
var pageTemplate string

const notMeasured = "Not measured in this run."

// markdown executes a template, and sets missing.
func (r *results) markdown(text string) (string, error) {
	r.missing = nil
	t, err := template.New("page").Funcs(template.FuncMap{
		"fact":  func(key string) string { return r.facts[key] },
		"table": r.table,
		"plot": func(file, description string) string {
			if len(r.lines(charts[file])) == 0 {
				r.missing = append(r.missing, file)
				return ""
			}
			return fmt.Sprintf("![%s](images/%s)", description, file)
		},
	}).Parse(text)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	err = t.Execute(&out, nil)
	return out.String(), err
}

// grid returns a table in Markdown. The first columns hold words, the others figures.
func grid(words int, rows [][]string) string {
	rule := slices.Repeat([]string{"---:"}, len(rows[0]))
	copy(rule, slices.Repeat([]string{"---"}, words))
	var lines []string
	for _, row := range slices.Insert(rows, 1, rule) {
		lines = append(lines, "| "+strings.Join(row, " | ")+" |")
	}
	return strings.Join(lines, "\n")
}

// lines returns the lines of a specification as fields. Each line has n of them.
func lines(spec string, n int) (all [][]string, err error) {
	for line := range strings.Lines(strings.TrimSpace(spec)) {
		fields := strings.SplitN(strings.TrimSpace(line), " | ", n)
		if len(fields) != n {
			return nil, fmt.Errorf("%q has %d fields, want %d", line, len(fields), n)
		}
		all = append(all, fields)
	}
	return all, nil
}

// option cuts the first line off a specification if it begins with the name.
func option(spec, name string) (value, rest string) {
	spec = strings.TrimSpace(spec)
	if line, after, _ := strings.Cut(spec, "\n"); strings.HasPrefix(line, name) {
		return line[len(name):], after
	}
	return "", spec
}

// table returns a table with a row for each substitute of * in its columns' patterns. The
// lines of a specification are
//
//	keys: head=key, head=key   columns for parts of the names, instead of one for the name
//	only: regexp               matches the names to show, all without this line
//	head | pattern | unit      a column of figures
func (r *results) table(spec string) (string, error) {
	parts, spec := option(spec, "keys: ")
	pattern, spec := option(spec, "only: ")
	only, err := regexp.Compile(pattern)
	if err != nil {
		return "", err
	}
	columns, err := lines(spec, 3)
	if err != nil {
		return "", err
	}
	var head, keys, names []string
	for part := range strings.SplitSeq(parts, ", ") {
		title, key, _ := strings.Cut(part, "=")
		head, keys = append(head, title), append(keys, key)
	}
	words := len(head)
	for _, c := range columns {
		head = append(head, c[0])
		found := r.rows(c[1], c[2])
		if found == nil {
			r.missing = append(r.missing, fmt.Sprintf("%s (%s)", c[0], c[1]))
		}
		for _, name := range found {
			if only.MatchString(name) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if names == nil {
		return notMeasured, nil
	}
	rows := [][]string{head}
	for _, name := range names {
		row := []string{name}
		if parts != "" {
			row = nil
			for _, key := range keys {
				_, value, _ := strings.Cut("/"+name, "/"+key+"=")
				value, _, _ = strings.Cut(value, "/")
				row = append(row, "`"+value+"`")
			}
		}
		for _, c := range columns {
			row = append(row, r.cell(strings.Replace(c[1], "*", name, 1), c[2]))
		}
		rows = append(rows, row)
	}
	return grid(words, rows), nil
}

// short returns a number with three significant digits, or with all digits before
// the point if there are more.
func short(x float64) string {
	s := strconv.FormatFloat(x, 'f', 0, 64)
	if max(x, -x) < 1000 {
		three, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 3, 64), 64)
		s = strconv.FormatFloat(three, 'f', -1, 64)
	}
	for i := strings.IndexByte(s+".", '.') - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
