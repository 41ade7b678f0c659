package main

import (
	_ "embed"
	"fmt"
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

// table returns a table with a row for each substitute of * in its columns' patterns. Each line
// of columns has a head, a pattern and a unit. The first columns of the table show the row's
// name, or, with keys such as "head=key, head=key", the values of these keys in it.
func (r *results) table(keys, columns string) (string, error) {
	head, words, names := []string{}, []string{}, []string{}
	for part := range strings.SplitSeq(keys, ", ") {
		title, word, _ := strings.Cut(part, "=")
		head, words = append(head, title), append(words, word)
	}
	var figures [][]string // pattern and unit
	for line := range strings.Lines(strings.TrimSpace(columns)) {
		fields := strings.Split(strings.TrimSpace(line), " | ")
		if len(fields) != 3 {
			return "", fmt.Errorf("%q has %d fields, want 3", line, len(fields))
		}
		head, figures = append(head, fields[0]), append(figures, fields[1:])
		found := r.rows(fields[1], fields[2])
		if found == nil {
			r.missing = append(r.missing, fmt.Sprintf("%s (%s)", fields[0], fields[1]))
		}
		for _, name := range found {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return notMeasured, nil
	}
	rows := [][]string{head}
	for _, name := range names {
		row := []string{name}
		if keys != "" {
			row = nil
			for _, key := range words {
				_, value, _ := strings.Cut("/"+name, "/"+key+"=")
				value, _, _ = strings.Cut(value, "/")
				row = append(row, "`"+value+"`")
			}
		}
		for _, f := range figures {
			row = append(row, r.cell(strings.Replace(f[0], "*", name, 1), f[1]))
		}
		rows = append(rows, row)
	}
	return grid(len(words), rows), nil
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
