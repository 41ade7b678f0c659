package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

// Control characters never reach a stream, however the text is cut into writes.
func TestVisibleWriter(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"plain\ttext\n", "plain\ttext\n"},
		{"größe 表 🙂\n", "größe 表 🙂\n"},
		{"\x1b[31mred\x1b[0m", `\u001b[31mred\u001b[0m`},
		{"a\rb\bc\x00\x7f", `a\u000db\u0008c\u0000\u007f`},
		{"\u009b2J\u0085", `\u009b2J\u0085`},
		{"abc\u202ecod.exe\u2066\u200f", `abc\u202ecod.exe\u2066\u200f`},
		{"line\u2028par\u2029", `line\u2028par\u2029`},
		{"\U000e0041tag", `\udb40\udc41tag`},
		{"bad \xff\xc3( byte", `bad \xff\xc3( byte`},
		{"\ufffd", `\ufffd`},
	} {
		for size := 1; size <= len(c.text); size++ {
			var b bytes.Buffer
			w := newVisibleWriter(&b)
			for rest := []byte(c.text); len(rest) > 0; {
				n, err := w.Write(rest[:min(size, len(rest))])
				if err != nil || n != min(size, len(rest)) {
					t.Fatalf("Write: got %d, %v", n, err)
				}
				rest = rest[n:]
			}
			if b.String() != c.want {
				t.Errorf("%q in writes of %d bytes: want %q, got %q", c.text, size, c.want, b.String())
			}
		}
	}
}

// On a terminal, only the colors of the command pass.
func TestVisibleColors(t *testing.T) {
	var b bytes.Buffer
	w := &visibleWriter{w: &b, colors: true}
	if _, err := w.Write([]byte("\x1b[31mred\x1b[0m \x1b[30mblack\x1b[8mhidden\x1b[2J\x1b]0;title\x07")); err != nil {
		t.Fatal(err)
	}
	if want := "\x1b[31mred\x1b[0m " + `\u001b[30mblack\u001b[8mhidden\u001b[2J\u001b]0;title\u0007`; b.String() != want {
		t.Errorf("want %q, got %q", want, b.String())
	}
}

// A color can be cut, too.
func TestCutColors(t *testing.T) {
	text := "\x1b[1mbold\x1b[90mgray\x1b[0m \x1b[1x \x1b[100m \x1b"
	want := "\x1b[1mbold\x1b[90mgray\x1b[0m " + `\u001b[1x \u001b[100m \u001b` + "\n"
	for size := 1; size <= len(text); size++ {
		var b bytes.Buffer
		w := &visibleWriter{w: &b, colors: true}
		for rest := text + "\n"; rest != ""; rest = rest[min(size, len(rest)):] {
			if _, err := io.WriteString(w, rest[:min(size, len(rest))]); err != nil {
				t.Fatal(err)
			}
		}
		if b.String() != want {
			t.Errorf("writes of %d bytes: want %q, got %q", size, want, b.String())
		}
	}
}

// JSON stays JSON, with the same strings.
func TestVisibleJSON(t *testing.T) {
	var b bytes.Buffer
	c := NewTerminal(strings.NewReader(""), &b, &b)
	text := "a\x1b\u009b\u202e\u2028\U000e0041\n表"
	if err := c.PrintJSON(text); err != nil {
		t.Fatal(err)
	}
	for _, r := range strings.TrimSuffix(b.String(), "\n") {
		if needsEscape(r) {
			t.Errorf("got %q in %q", r, b.String())
		}
	}
	var back string
	if err := json.Unmarshal(b.Bytes(), &back); err != nil || back != text {
		t.Errorf("want %q, got %q, %v", text, back, err)
	}
}
