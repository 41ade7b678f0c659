package main

import (
	"fmt"
	"path/filepath"
	"strings"
)

// The measures of a drawing, in pixels. It fits a phone: the drawing is narrow, and its text
// has at least 14 pixels.
const (
	drawingWidth = 400.0
	margin       = 12.0
	barWidth     = drawingWidth - 2*margin
	leading      = 20.0
	wrapAt       = 48 // characters of a note
)

// style follows the reader's light or dark scheme. A drawing has its own
// background, so that it is readable on any page.
const style = `<style>
text{font:14px system-ui,-apple-system,"Segoe UI","DejaVu Sans",Helvetica,Arial,sans-serif;fill:#1f2328}.m{text-anchor:middle}.e{text-anchor:end}
.title{font-size:18px;font-weight:600}text.key{font-size:26px}.small{fill:#59636e}.prefix{fill:#8250df;font-weight:600}
.code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
.back{fill:#fff;stroke:#d1d9e0}.line{stroke:#59636e}.wedge{fill-opacity:.15}
.time{fill:#c6dcff}.ticktock{fill:#8fb8f5}.sequence,.index,.fraction{fill:#ffe2a8}.random{fill:#e6d3ff}.meta{fill:#ffd0dd}.free,.version,.variant{fill:#e4e8ec}.char{fill:#f2f4f7}
.datacenter,.machine,.generator,.partition{fill:#bfe8c8}.worker,.cluster{fill:#d9f2c4}
@media (prefers-color-scheme:dark){text,.wedge{fill:#f0f6fc}.small{fill:#a8b3bf}.prefix{fill:#c297ff}.back{fill:#0d1117;stroke:#3d444d}.line{stroke:#a8b3bf}
.time{fill:#1f4480}.ticktock{fill:#3b6fc0}.sequence,.index,.fraction{fill:#70500c}.random{fill:#543285}.meta{fill:#802c4a}.free,.version,.variant{fill:#30363d}.char{fill:#1a2029}
.datacenter,.machine,.generator,.partition{fill:#1d5a33}.worker,.cluster{fill:#3b5a1d}}
</style>
`

// drawings returns the drawings of the pages by file name.
func drawings() (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, f := range formats() {
		fields, err := f.fields()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		if f.name == "Snowflake" {
			files[filepath.Join("docs", "images", "key.svg")] = []byte(f.drawKey("ord", fields))
		}
		files[filepath.Join("docs", "images", "layout-"+strings.ToLower(f.name)+".svg")] = []byte(f.draw(fields))
	}
	return files, nil
}

// drawKey returns the drawing of a key with a prefix for README.md: its text, and the
// fields in its column.
func (f format) drawKey(prefix string, fields []field) string {
	var d drawing
	d.put(text("key code m", drawingWidth/2, 40, `<tspan class="prefix">`+prefix+`_</tspan>`+f.example))
	d.put(text("m", drawingWidth/2, 64, "in text, JSON and logs; the prefix names the type"))
	d.put(text("m", drawingWidth/2, 100, fmt.Sprintf("8 bytes in the table, a %s:", f.column)))
	const top, high = 110.0, 44.0
	// Fields of few bits need room for their names: each has a fixed share and one per bit.
	share := make([]float64, len(fields))
	sum := 0.0
	for i, fl := range fields {
		if share[i] = 75 + float64(len(fl.weights)); fl.part == "" {
			share[i] = 0 // the sign
		}
		sum += share[i]
	}
	left := margin
	for i, fl := range fields {
		width := share[i] / sum * barWidth
		if width == 0 {
			continue
		}
		middle := left + width/2
		d.put(rect("line "+strings.ToLower(fl.part), left, top, width, high),
			text("m", middle, top+18, fl.name), text("small m", middle, top+36, fmt.Sprintf("%d bits", len(fl.weights))))
		for line, value := range strings.Fields(fl.value) { // a date and a time
			d.put(text("code m", middle, top+high+18+leading*float64(line), value))
		}
		left += width
	}
	return d.svg(prefix+"_"+f.example, top+high+50)
}

// A drawing is the body of an SVG.
type drawing struct{ strings.Builder }

// put adds elements in a line.
func (d *drawing) put(elements ...string) { d.WriteString(strings.Join(elements, "") + "\n") }

func (d *drawing) svg(title string, height float64) string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%[1]g" height="%[2]g" role="img">
<title>%s</title>
%s<rect class="back" x=".5" y=".5" width="%g" height="%g" rx="6"/>
%s</svg>
`, drawingWidth, height, title, style, drawingWidth-1, height-1, d.String())
}

// text returns a text element. The text must not contain characters that XML
// reserves.
func text(class string, x, y float64, s string) string {
	return fmt.Sprintf(`<text class="%s" x="%.4g" y="%.4g">%s</text>`, class, x, y, s)
}

func rect(class string, x, y, width, height float64) string {
	return fmt.Sprintf(`<rect class="%s" x="%.4g" y="%.4g" width="%.4g" height="%.4g"/>`, class, x, y, width, height)
}

// draw returns the drawing of a format as SVG: a bar of its bits, and a line for each
// field.
func (f format) draw(fields []field) string {
	var d drawing
	d.put(text("title", margin, 28, f.name), text("small e", margin+barWidth, 28, fmt.Sprintf("%d bits in a %s", f.bits, f.column)))
	d.put(text("code", margin, 54, f.example))
	const top, high, foot = 66.0, 40.0, 106.0
	bit := barWidth / float64(f.bits)
	for _, fl := range fields {
		n := len(fl.weights)
		left, width := margin+float64(f.bits-1-fl.high)*bit, float64(n)*bit
		d.put(rect("line "+fl.class(), left, top, width, high))
		if count := fmt.Sprint(n); width > 25 {
			d.put(text("m", left+width/2, top+18, count))
		}
		highest := left // the end with the most significant bit
		if fl.reversed() {
			highest += width
		}
		if n > 1 && fl.part != "" {
			d.put(fmt.Sprintf(`<path class="wedge" d="M%.4g %gh%.4gL%.4g %gz"/>`, left, foot, width, highest, foot-14))
		}
	}
	y := foot
	for _, cells := range f.text {
		width := barWidth / float64(len(cells))
		for i, cell := range cells {
			x := margin + float64(i)*width
			d.put(rect("line char", x, y, width, 24), text("code m", x+width/2, y+17, cell))
		}
		y += 24
	}
	y += 6
	for _, fl := range fields {
		y += leading
		name, bits := fl.name, fmt.Sprintf("bits %d–%d", fl.high, fl.low())
		if fl.high == fl.low() {
			bits = fmt.Sprint("bit ", fl.high)
		}
		d.put(rect("line "+fl.class(), margin, y-12, 14, 14), text("", margin+22, y, name), text("small", 108, y, bits))
		if fl.part != "" {
			d.put(text("code e", margin+barWidth, y, fl.value))
		}
		if fl.about != "" {
			y += leading
			d.put(text("small", margin+22, y, fl.about))
		}
	}
	y += 8
	for _, line := range wrap(f.note, wrapAt) {
		y += leading
		d.put(text("small", margin, y, line))
	}
	return d.svg(f.name, y+14)
}

// wrap splits a text into lines of up to width characters, unless a word is longer.
func wrap(text string, width int) (lines []string) {
	for word := range strings.FieldsSeq(text) {
		if last := len(lines) - 1; last >= 0 && len(lines[last])+1+len(word) <= width {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}
