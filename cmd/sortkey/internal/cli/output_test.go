package cli

import (
	"bytes"
	"testing"

	"github.com/jedib0t/go-pretty/v6/table"
)

// TestPrintTableEscapes checks that no cell forges a row or reaches the terminal as an
// escape sequence.
func TestPrintTableEscapes(t *testing.T) {
	var out bytes.Buffer
	c := NewTerminal(nil, &out, nil)
	rows := []table.Row{
		{1, "Größe — 表 \U0001f600"},
		{2, "a\nb\rc\td"},
		{3, "\x1b[31mred\x1b[0m\x1b]0;title\x07"},
		{4, "\u202eevil \u0085 \x9b31m \x7f"},
		{5, `C:\new`},
	}
	if err := c.PrintTable(table.Row{"N", "Note"}, rows); err != nil {
		t.Fatal(err)
	}
	want := `N  NOTE
1  Größe — 表 ` + "\U0001f600" + `
2  a\nb\rc\td
3  \u001b[31mred\u001b[0m\u001b]0;title\u0007
4  \u202eevil \u0085 \x9b31m \u007f
5  C:\new
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	if rows[1][1] != "a\nb\rc\td" {
		t.Error("printTable changes the caller's rows")
	}
}
