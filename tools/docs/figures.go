package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var (
	// quote matches a figure from the benchmarks page and the comments around it,
	// such as <!-- figure: Tables that grow; Sno; index, MB -->315<!-- end -->.
	quote     = regexp.MustCompile(`(<!-- figure: ([^;<>]*); ([^;<>]*); ([^;<>]*?)(; millions)? -->)[^<]*(<!-- end -->)`)
	startedBy = regexp.MustCompile(`<!-- figure:`)
)

// A benchmarkPage holds the cells of a page of benchmarks by section, row and
// column.
type benchmarkPage map[[3]string]string

// readBenchmarks parses the tables of a page. A row is named by its cells without
// figures, without backquotes and joined by spaces.
func readBenchmarks(markdown string) benchmarkPage {
	page := benchmarkPage{}
	var section string
	var head []string
	words := 0 // number of columns that name the row
	for line := range strings.Lines(markdown) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			section = strings.TrimSpace(title)
		}
		cells, ok := strings.CutPrefix(line, "| ")
		if !ok {
			head = nil
			continue
		}
		row := strings.Split(strings.TrimSuffix(strings.TrimSpace(cells), " |"), " | ")
		if head == nil {
			head = row
			continue
		}
		if strings.HasPrefix(row[0], "---") {
			words = strings.Count(line, "| --- ")
			continue
		}
		name := strings.ReplaceAll(strings.Join(row[:min(words, len(row))], " "), "`", "")
		for i := words; i < min(len(row), len(head)); i++ {
			page[[3]string{section, name, head[i]}] = row[i]
		}
	}
	return page
}

// figure returns a figure without its spread. In millions, it has two decimals.
func (p benchmarkPage) figure(section, row, column string, millions bool) (string, error) {
	text, _, _ := strings.Cut(p[[3]string{section, row, column}], " ± ")
	if text == "" {
		return "", fmt.Errorf("docs/benchmarks.md has no figure in section %q, row %q, column %q", section, row, column)
	}
	if !millions {
		return text, nil
	}
	number, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	return strconv.FormatFloat(number/1e6, 'f', 2, 64), err
}

// quoteFigures returns a Markdown file with each quoted figure replaced by the one
// on the benchmarks page:
//
//	<!-- figure: Tables that grow; Snowflake; rows/s, all steps; millions -->1.46<!-- end --> million
func (p benchmarkPage) quoteFigures(document string, text []byte) ([]byte, error) {
	var err error
	if n, all := len(quote.FindAll(text, -1)), len(startedBy.FindAll(text, -1)); n != all {
		return nil, fmt.Errorf("%s: %d of %d figures aren't of the form <!-- figure: section; row; column[; millions] -->…<!-- end -->", document, all-n, all)
	}
	quoted := quote.ReplaceAllFunc(text, func(old []byte) []byte {
		m := quote.FindSubmatch(old)
		value, e := p.figure(string(m[2]), string(m[3]), string(m[4]), len(m[5]) > 0)
		if e != nil {
			err = fmt.Errorf("%s: %w", document, e)
			return old
		}
		return []byte(string(m[1]) + value + string(m[6]))
	})
	return quoted, err
}
