package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
)

// The measures of a drawing, in pixels.
const (
	margin   = 32.0
	barWidth = 896.0
	barTop   = 84.0
	barHigh  = 62.0
)

// style follows the reader's light or dark scheme. A drawing has its own
// background, so that it is readable on any page.
const style = `<style>
text{font:13px system-ui,-apple-system,"Segoe UI","DejaVu Sans",Helvetica,Arial,sans-serif;fill:#1f2328}.m{text-anchor:middle}.e{text-anchor:end}
.title{font-size:18px;font-weight:600}.small{font-size:12px;fill:#59636e}.name{font-size:12px}.bit{font-size:10px;fill:#59636e}
.code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
.back{fill:#fff;stroke:#d1d9e0}.line{stroke:#59636e}.wedge{fill-opacity:.15}
.time{fill:#c6dcff}.ticktock{fill:#8fb8f5}.sequence,.index,.fraction{fill:#ffe2a8}.random{fill:#e6d3ff}.meta{fill:#ffd0dd}.free,.version,.variant{fill:#e4e8ec}.char{fill:#f2f4f7}
.datacenter,.machine,.generator,.partition{fill:#bfe8c8}.worker,.cluster{fill:#d9f2c4}
@media (prefers-color-scheme:dark){text,.wedge{fill:#f0f6fc}.small,.bit{fill:#a8b3bf}.back{fill:#0d1117;stroke:#3d444d}.line{stroke:#a8b3bf}
.time{fill:#1f4480}.ticktock{fill:#3b6fc0}.sequence,.index,.fraction{fill:#70500c}.random{fill:#543285}.meta{fill:#802c4a}.free,.version,.variant{fill:#30363d}.char{fill:#1a2029}
.datacenter,.machine,.generator,.partition{fill:#1d5a33}.worker,.cluster{fill:#3b5a1d}}
</style>
`

// drawings returns the drawings of the formats by file name.
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

// The measures of the drawing for README.md, in pixels. It is readable on a phone.
const (
	keyWidth = 560.0
	keyBar   = keyWidth - 2*16
)

// drawKey returns the drawing of a key with a prefix: its text, and the fields in its
// column.
func (f format) drawKey(prefix string, fields []field) string {
	var body strings.Builder
	put := func(elements ...string) { body.WriteString(strings.Join(elements, "") + "\n") }
	put(text("key code m", keyWidth/2, 44, `<tspan class="prefix">`+prefix+`_</tspan>`+f.example))
	put(text("note m", keyWidth/2, 68, "in text, JSON and logs; the prefix names the type"))
	put(text("note m", keyWidth/2, 112, fmt.Sprintf("8 bytes in the table, a %s:", f.column)))
	const top, high = 124.0, 44.0
	// Fields of few bits need room for their names: each has a fixed share and one per bit.
	share := make([]float64, len(fields))
	sum := 0.0
	for i, fl := range fields {
		if share[i] = 18 + float64(len(fl.weights)); fl.part == "" {
			share[i] = 0 // the sign
		}
		sum += share[i]
	}
	left := (keyWidth - keyBar) / 2
	for i, fl := range fields {
		width := share[i] / sum * keyBar
		if width == 0 {
			continue
		}
		middle := left + width/2
		put(rect("line "+strings.ToLower(fl.part), left, top, width, high),
			text("note m", middle, top+18, fl.name), text("small m", middle, top+35, fmt.Sprintf("%d bits", len(fl.weights))),
			text("note code m", middle, top+high+22, fl.value))
		left += width
	}
	const height = top + high + 40
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%[1]g" height="%[2]g" role="img">
<title>%s</title>
%s<style>text.key{font-size:26px}.note{font-size:15px}.prefix{fill:#8250df;font-weight:600}@media (prefers-color-scheme:dark){.prefix{fill:#c297ff}}</style>
<rect class="back" x=".5" y=".5" width="%g" height="%g" rx="6"/>
%s</svg>
`, keyWidth, height, prefix+"_"+f.example, style, keyWidth-1, height-1, body.String())
}

// text returns a text element. The text must not contain characters that XML
// reserves.
func text(class string, x, y float64, s string) string {
	return fmt.Sprintf(`<text class="%s" x="%.4g" y="%.4g">%s</text>`, class, x, y, s)
}

func rect(class string, x, y, width, height float64) string {
	return fmt.Sprintf(`<rect class="%s" x="%.4g" y="%.4g" width="%.4g" height="%.4g"/>`, class, x, y, width, height)
}

// draw returns the drawing of a format as SVG, with a line for each field.
func (f format) draw(fields []field) string {
	var body strings.Builder
	put := func(elements ...string) { body.WriteString(strings.Join(elements, "")) }
	row := func(class string, y, high float64, cells []string) {
		width := barWidth / float64(len(cells))
		for i, cell := range cells {
			x := margin + float64(i)*width
			put(rect("line char", x, y, width, high), text(class, x+width/2, y+high/2+5, cell))
		}
		put("\n")
	}
	bit := barWidth / float64(f.bits)
	foot := barTop + barHigh
	under := foot // where the next row begins
	if len(f.bytes) > 0 {
		row("small m", foot, 18, f.bytes)
		under += 22
	}
	for _, fl := range fields {
		n := len(fl.weights)
		left, width := margin+float64(f.bits-1-fl.high)*bit, float64(n)*bit
		middle, right := left+width/2, left+width
		put(rect("line "+cmp.Or(strings.ToLower(fl.part), "free"), left, barTop, width, barHigh), text("code m", middle, under+38, fl.value))
		if n == 1 && len(fl.name) > 1 {
			put(fmt.Sprintf(`<path class="line" d="M%.4g %gv-22"/>`, middle, barTop))
			put(text("small m", middle, barTop-28, fmt.Sprintf("%s, bit %d: %s", fl.name, fl.high, fl.about)))
		} else {
			put(text("name m", middle, barTop+24, fl.name), text("bit code", left+3, barTop-6, fmt.Sprint(fl.high)))
		}
		highest := left // the end with the most significant bit
		if fl.reversed() {
			highest = right
			put(text("small", left+8, barTop+24, "lowest bit first"), text("small e", right-8, barTop+24, "highest bit last"))
		}
		if n > 1 && width > 50 {
			put(text("bit code e", right-3, barTop-6, fmt.Sprint(fl.low())))
			put(text("small m", middle, barTop+41, fmt.Sprintf("%d bits", n)), text("small m", middle, under+18, fl.about))
		}
		if n > 1 && fl.part != "" {
			put(fmt.Sprintf(`<path class="wedge" d="M%.4g %gh%.4gL%.4g %gz"/>`, left, foot, width, highest, foot-12))
		}
		put("\n")
	}
	under += 50
	for _, cells := range f.text {
		row("code m", under, 24, cells)
		under += 24
	}
	put(text("code", margin, under+26, f.example), text("small", margin, under+48, f.note))
	width, height := barWidth+2*margin, under+66
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%[1]g" height="%[2]g" role="img">
<title>%s</title>
%s<rect class="back" x=".5" y=".5" width="%g" height="%g" rx="6"/>
%s%s
%s
</svg>
`, width, height, f.name, style, width-1, height-1, text("title", margin, 36, f.name),
		text("small e", margin+barWidth, 36, fmt.Sprintf("%d bits in a %s column", f.bits, f.column)), body.String())
}
