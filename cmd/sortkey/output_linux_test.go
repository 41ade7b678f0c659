package main

import (
	"os"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"
)

// TestPaintedCells checks that a terminal gets the command's own colors, and no other
// sequence.
func TestPaintedCells(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	c := newCLI(nil, terminal, nil)
	for _, color := range []text.Color{text.Bold, text.Faint, text.FgRed, text.FgGreen, text.FgYellow} {
		if got := c.printable(c.paint(color, "a\nb")); got != strings.ReplaceAll(c.paint(color, "a\nb"), "\n", `\n`) || !strings.HasPrefix(got, "\x1b[") {
			t.Errorf("got %q", got)
		}
	}
	if got := c.printable("\x1b[2J\x1b[8mx\x1b[0m"); got != `\x1b[2J\x1b[8mx`+"\x1b[0m" {
		t.Errorf("got %q", got)
	}
}
