package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"
)

// TestPaintedStreams checks that results on a terminal keep the command's own colors, unless
// NO_COLOR is set, and that errors have none.
func TestPaintedStreams(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	for _, noColor := range []string{"", "1"} {
		t.Setenv("NO_COLOR", noColor)
		c := NewTerminal(nil, terminal, terminal)
		if got := c.Out.(*visibleWriter).colors; got != (noColor == "") {
			t.Errorf("NO_COLOR=%q: results: got colors %t", noColor, got)
		}
		if c.Errs.(*visibleWriter).colors {
			t.Errorf("NO_COLOR=%q: errors have colors", noColor)
		}
	}
}

// TestPaintedCells checks that a terminal gets the command's own colors, and no other
// sequence.
func TestPaintedCells(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	c := NewTerminal(nil, terminal, nil)
	for _, color := range []text.Color{text.Bold, text.Faint, text.FgRed, text.FgGreen, text.FgYellow} {
		if got, want := c.Paint(color, "a"), color.EscapeSeq()+"a"+text.Reset.EscapeSeq(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for _, data := range []string{"\x1b[2J\x1b[8mx\x1b[0m", "\x1b[90mhides the text behind it", "a\x1b[31mb\x1b[0m", "\x1b[31mred\x1b[0m"} {
		if got := Printable(data); strings.Contains(got, "\x1b") {
			t.Errorf("%q: got %q", data, got)
		}
	}
}
