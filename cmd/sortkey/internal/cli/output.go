package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

// A Terminal holds the streams of the process, and how results are printed.
type Terminal struct {
	In     io.Reader
	Out    io.Writer // results
	Errs   io.Writer // errors and progress
	Output string    // table or json
	Now    func() time.Time

	visible *visibleWriter // of the results
}

// NewTerminal returns a terminal that escapes what it prints.
func NewTerminal(in io.Reader, out, errs io.Writer) *Terminal {
	visible := newVisibleWriter(out)
	visible.colors = os.Getenv("NO_COLOR") == "" && IsTerminal(out)
	return &Terminal{In: in, Out: visible, Errs: newVisibleWriter(errs), Now: time.Now, visible: visible}
}

// Err returns the first error of writing results. cobra and functions that report progress
// ignore them.
func (c *Terminal) Err() error { return c.visible.err }

// Buffer calls do, and writes the results in large blocks meanwhile. do calls flush before it
// waits.
func (c *Terminal) Buffer(do func(flush func() error) error) error {
	out := c.Out
	defer func() { c.Out = out }()
	buffer := bufio.NewWriterSize(out, 1<<16)
	c.Out = buffer
	err := do(buffer.Flush)
	if flushed := buffer.Flush(); err == nil {
		err = flushed
	}
	return err
}

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// JSON reports whether results are printed as JSON.
func (c *Terminal) JSON() bool { return c.Output == "json" }

// PrintJSON prints a result as one line of JSON.
func (c *Terminal) PrintJSON(v any) error {
	encoder := json.NewEncoder(c.Out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// Print prints a result as one line of JSON, or as text.
func (c *Terminal) Print(v any, format string, args ...any) error {
	if c.JSON() {
		return c.PrintJSON(v)
	}
	_, err := fmt.Fprintf(c.Out, format, args...)
	return err
}

// A Painted is a cell of a table in a color.
type Painted struct {
	Color text.Color
	Text  string
}

// PrintTable prints rows below a header in capitals, without borders. It prints
// nothing if there are no rows.
func (c *Terminal) PrintTable(header table.Row, rows []table.Row) error {
	if len(rows) == 0 {
		return nil
	}
	w := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	if c.visible.colors {
		style.Color.Header = text.Colors{text.Bold}
	}
	w.SetStyle(style)
	w.SuppressTrailingSpaces()
	if header != nil {
		w.AppendHeader(header)
	}
	for _, row := range rows {
		cells := slices.Clone(row)
		for i, value := range row {
			switch value := value.(type) {
			case string:
				cells[i] = Printable(value)
			case Painted:
				cells[i] = c.Paint(value.Color, Printable(value.Text))
			}
		}
		w.AppendRow(cells)
	}
	_, err := c.Out.Write([]byte(w.Render() + "\n"))
	return err
}

// PrintBlock prints labels and values, without the values that are "".
func (c *Terminal) PrintBlock(rows []table.Row) error {
	rows = slices.DeleteFunc(rows, func(row table.Row) bool { return row[1] == "" })
	for _, row := range rows {
		row[0] = Painted{text.Faint, row[0].(string)}
	}
	return c.PrintTable(nil, rows)
}

// PrintRows prints each result as a line of JSON, or as a row of a table.
func PrintRows[T any](c *Terminal, results []T, header table.Row, row func(T) table.Row) error {
	var rows []table.Row
	for _, r := range results {
		if !c.JSON() {
			rows = append(rows, row(r))
		} else if err := c.PrintJSON(r); err != nil {
			return err
		}
	}
	return c.PrintTable(header, rows)
}

// Cell returns the value, or "" for nil.
func Cell[T any](v *T) any {
	if v == nil {
		return ""
	}
	return *v
}

// Printable returns s as one line without colors, so that it can't forge a row or an error.
// The streams escape other control characters.
func Printable(s string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`, "\r", `\r`, "\x1b", `\u001b`).Replace(s)
}

// Paint returns s in a color if the results go to a terminal and the environment
// variable NO_COLOR isn't set.
func (c *Terminal) Paint(color text.Color, s string) string {
	if !c.visible.colors {
		return s
	}
	return color.EscapeSeq() + s + text.Reset.EscapeSeq()
}

// A UsageError is an error in the command line.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef returns an error in the command line.
func Usagef(format string, args ...any) error {
	return &UsageError{fmt.Errorf(format, args...)}
}

// Usage returns err as an error in the command line, or nil.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return &UsageError{err}
}
