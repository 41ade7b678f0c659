package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// json reports whether results are printed as JSON.
func (c *cli) json() bool { return c.output == "json" }

// printJSON prints a result as one line of JSON.
func (c *cli) printJSON(v any) error {
	encoder := json.NewEncoder(c.out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// printTable prints rows below a header in capitals, without borders. It prints
// nothing if there are no rows. Cells can be painted.
func (c *cli) printTable(header table.Row, rows []table.Row) error {
	if len(rows) == 0 {
		return nil
	}
	w := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	style.Format.Header = text.FormatDefault
	w.SetStyle(style)
	w.SuppressTrailingSpaces()
	if header != nil {
		painted := make(table.Row, len(header))
		for i, name := range header {
			painted[i] = c.paint(text.Bold, strings.ToUpper(name.(string)))
		}
		w.AppendHeader(painted)
	}
	for _, row := range rows {
		cells := make(table.Row, len(row))
		for i, value := range row {
			if s, ok := value.(string); ok {
				value = c.printable(s)
			}
			cells[i] = value
		}
		w.AppendRow(cells)
	}
	_, err := c.out.Write([]byte(w.Render() + "\n"))
	return err
}

// printBlock prints labels and values.
func (c *cli) printBlock(rows []table.Row) error {
	for _, row := range rows {
		row[0] = c.paint(text.Faint, row[0].(string))
	}
	return c.printTable(nil, rows)
}

// printRows prints each result as a line of JSON, or as a row of a table.
func printRows[T any](c *cli, results []T, header table.Row, row func(T) table.Row) error {
	var rows []table.Row
	for _, r := range results {
		if !c.json() {
			rows = append(rows, row(r))
		} else if err := c.printJSON(r); err != nil {
			return err
		}
	}
	return c.printTable(header, rows)
}

// cell returns the value, or "" for nil.
func cell[T any](v *T) any {
	if v == nil {
		return ""
	}
	return *v
}

// paintedCell matches a result of paint. A color in a part of a text comes from a name or a
// note, and could hide the text behind it.
var paintedCell = regexp.MustCompile(`^(\x1b\[(?:[12]|3[123]|90)m)([^\x1b]*)(\x1b\[0m)$`)

// printable returns s with escapes such as \n and \x1b for control characters, which
// could otherwise forge rows and change the terminal. It keeps the color of paint.
func (c *cli) printable(s string) string {
	if m := paintedCell.FindStringSubmatch(s); m != nil && c.paints() {
		return m[1] + c.printable(m[2]) + m[3]
	}
	var b strings.Builder
	for s != "" {
		r, size := utf8.DecodeRuneInString(s)
		if unicode.IsGraphic(r) && (r != utf8.RuneError || size > 1) {
			b.WriteString(s[:size])
		} else {
			quoted := strconv.QuoteToGraphic(s[:size])
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		s = s[size:]
	}
	return b.String()
}

// paints reports whether paint adds colors.
func (c *cli) paints() bool { return os.Getenv("NO_COLOR") == "" && terminal(c.out) }

// paint returns s in a color if the results go to a terminal and the environment
// variable NO_COLOR isn't set.
func (c *cli) paint(color text.Color, s string) string {
	if !c.paints() {
		return s
	}
	return color.EscapeSeq() + s + text.Reset.EscapeSeq()
}
