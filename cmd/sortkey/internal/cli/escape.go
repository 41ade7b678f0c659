package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"regexp"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// A visibleWriter writes text for people and JSON. It replaces characters that could change
// a terminal by escapes such as \u001b, and bytes that aren't UTF-8 by escapes such as \xff:
// any role can choose names and notes in a database.
// JSON stays valid, because control characters occur only in its strings. Newlines, tabs
// and, if colors is set, the colors of paint stay.
type visibleWriter struct {
	w      io.Writer
	colors bool
	rest   []byte // of a character or a color that a write has cut
	err    error  // the first one
}

func newVisibleWriter(w io.Writer) *visibleWriter { return &visibleWriter{w: w} }

// painting matches the escape sequences of paint, and cutPainting the beginning of one.
var (
	painting    = regexp.MustCompile(`^\x1b\[(?:[012]|3[123]|90)m`)
	cutPainting = regexp.MustCompile(`^\x1b(?:\[[0-9]{0,2})?$`)
)

func (v *visibleWriter) Write(p []byte) (int, error) {
	_, err := v.w.Write(v.escape(p))
	if err == nil {
		return len(p), nil
	}
	v.err = cmp.Or(v.err, err)
	return 0, err
}

func (v *visibleWriter) escape(p []byte) []byte {
	if len(v.rest) == 0 && !bytes.ContainsFunc(p, needsEscape) {
		return p
	}
	text := append(v.rest, p...)
	v.rest = nil
	var b []byte
	for len(text) > 0 {
		if color := painting.Find(text); color != nil && v.colors {
			b, text = append(b, color...), text[len(color):]
			continue
		}
		if !utf8.FullRune(text) || v.colors && cutPainting.Match(text) {
			v.rest = bytes.Clone(text)
			break
		}
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1:
			b = fmt.Appendf(b, `\x%02x`, text[0]) // not in JSON, whose encoder has replaced it
		case needsEscape(r):
			for _, unit := range utf16.AppendRune(nil, r) {
				b = fmt.Appendf(b, `\u%04x`, unit)
			}
		default:
			b = append(b, text[:size]...)
		}
		text = text[size:]
	}
	return b
}

// needsEscape reports whether a character is a control or format character, such as one
// that reverses text, or isn't valid UTF-8.
func needsEscape(r rune) bool {
	if ' ' <= r && r <= '~' { // most of the output
		return false
	}
	return r == utf8.RuneError || r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}
