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

// page returns the page in Markdown.
func (r *results) page() (string, error) {
	t, err := template.New("page").Funcs(template.FuncMap{
		"fact":     func(key string) string { return r.facts[key] },
		"commands": func() string { return strings.ReplaceAll(r.facts["command"], "; ", "\n") },
		"table":    func(name string) string { return r.table(tables[name]) },
		"goals":    r.goals,
		"plot": func(file, description string) string {
			if r.draw(charts[file]) == "" {
				return ""
			}
			return fmt.Sprintf("![%s](images/%s)", description, file)
		},
	}).Parse(pageTemplate)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	err = t.Execute(&out, nil)
	return out.String(), err
}

// markdown returns a table. The first columns hold words, the others figures.
func markdown(words int, rows [][]string) string {
	rule := slices.Repeat([]string{"---:"}, len(rows[0]))
	copy(rule, slices.Repeat([]string{"---"}, words))
	var lines []string
	for _, row := range slices.Insert(rows, 1, rule) {
		lines = append(lines, "| "+strings.Join(row, " | ")+" |")
	}
	return strings.Join(lines, "\n")
}

func (r *results) table(t table) string {
	var head, keys, names []string
	for _, k := range t.keys {
		title, key, _ := strings.Cut(k, "=")
		head, keys = append(head, title), append(keys, key)
	}
	if head == nil {
		head = []string{""}
	}
	words := len(head)
	for _, c := range t.columns {
		head = append(head, c.head)
		for _, name := range r.rows(c.pattern, c.unit) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if names == nil {
		return notMeasured
	}
	rows := [][]string{head}
	for _, name := range names {
		var row []string
		for _, key := range keys {
			_, value, _ := strings.Cut("/"+name, "/"+key+"=")
			value, _, _ = strings.Cut(value, "/")
			row = append(row, "`"+value+"`")
		}
		if row == nil {
			row = []string{name}
		}
		for _, c := range t.columns {
			row = append(row, r.cell(strings.Replace(c.pattern, "*", name, 1), c.unit))
		}
		rows = append(rows, row)
	}
	return markdown(words, rows)
}

// goals returns a table with the verdict on each goal and the goal's worst figure.
func (r *results) goals() string {
	rows := [][]string{{"goal", "figure", "measured by", "verdict"}}
	for _, g := range goals {
		name, measured, met := r.judge(g)
		verdict, by := "met", "`"+name+"`"
		if n := len(expand(g.pattern)); n > 1 {
			by += fmt.Sprintf(", the worst of %d", n)
		}
		switch {
		case !met:
			verdict = "**missed**"
		case !measured:
			verdict, by = "not measured", ""
		}
		rows = append(rows, []string{g.text, r.cell(name, g.unit), by, verdict})
	}
	return markdown(4, rows)
}

// judge returns the name of a goal's worst figure, and reports whether all of its
// figures were measured and whether the measured ones meet the bound.
func (r *results) judge(g goal) (furthest string, measured, met bool) {
	measured, met = true, true
	var worst float64
	for _, name := range expand(g.pattern) {
		x, _, ok := r.figure(name, g.unit)
		if g.bound < 0 { // the smallest is the worst
			x = -x
		}
		if ok && (furthest == "" || x > worst) {
			furthest, worst, met = name, x, x <= g.bound
		}
		measured = measured && ok
	}
	return furthest, measured, met
}

// missing returns the columns and goals that lack figures.
func (r *results) missing() (all []string) {
	for name, t := range tables {
		for _, c := range t.columns {
			if r.rows(c.pattern, c.unit) == nil {
				all = append(all, fmt.Sprintf("table %s: %s", name, c.head))
			}
		}
	}
	slices.Sort(all)
	for _, g := range goals {
		if _, measured, _ := r.judge(g); !measured {
			all = append(all, "goal: "+g.text)
		}
	}
	return all
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
