package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
)

// The measures of a drawing, in pixels.
const (
	margin   = 32.0
	barWidth = 896.0
	barTop   = 84.0
	barHigh  = 62.0
	// steps is how high the steps at the foot of a field are, which rise to the
	// bit that counts most.
	steps = 12.0
)

// style follows the reader's light or dark scheme. The drawing has a background of
// its own, so that it can be read on any page.
const style = `
text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", Helvetica, Arial, sans-serif; fill: #1f2328; }
.title { font-size: 18px; font-weight: 600; }
.small { font-size: 12px; fill: #59636e; }
.tight { font-size: 11px; }
.code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.bit { font-size: 10px; fill: #59636e; }
.back { fill: #ffffff; stroke: #d1d9e0; }
.line { stroke: #59636e; fill: none; }
.step { fill: #1f2328; fill-opacity: 0.18; }
.time { fill: #c6dcff; } .tick { fill: #8fb8f5; } .node { fill: #bfe8c8; } .node2 { fill: #d9f2c4; }
.count { fill: #ffe2a8; } .chance { fill: #e6d3ff; } .own { fill: #ffd0dd; } .free { fill: #e4e8ec; } .char { fill: #f2f4f7; }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc; } .small, .bit { fill: #a8b3bf; } .back { fill: #0d1117; stroke: #3d444d; } .line { stroke: #a8b3bf; } .step { fill: #f0f6fc; }
.time { fill: #1f4480; } .tick { fill: #3b6fc0; } .node { fill: #1d5a33; } .node2 { fill: #3b5a1d; }
.count { fill: #70500c; } .chance { fill: #543285; } .own { fill: #802c4a; } .free { fill: #30363d; } .char { fill: #1a2029; }
}
`

// A canvas is a drawing under way.
type canvas struct{ bytes.Buffer }

func (c *canvas) text(class, anchor string, x, y float64, s string) {
	fmt.Fprintf(c, `<text class="%s" text-anchor="%s" x="%.1f" y="%.1f">`, class, anchor, x, y)
	_ = xml.EscapeText(c, []byte(s)) // a Buffer takes all
	c.WriteString("</text>\n")
}

func (c *canvas) rect(class string, x, y, width, height float64) {
	fmt.Fprintf(c, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n", class, x, y, width, height)
}

func (c *canvas) line(x1, y1, x2, y2 float64) {
	fmt.Fprintf(c, "<path class=\"line\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", x1, y1, x2, y2)
}

// file is the name of the drawing.
func (f format) file() string { return "layout-" + strings.ToLower(f.name) + ".svg" }

// draw gives the drawing as SVG.
func (f format) draw() []byte {
	var body canvas
	bit := barWidth / float64(f.width)
	left := func(b int) float64 { return margin + float64(f.width-1-b)*bit } // of the bit's cell
	wide := func(fl field) float64 { return float64(len(fl.bits)) * bit }

	body.text("title", "start", margin, 36, f.name)
	body.text("small", "end", margin+barWidth, 36, fmt.Sprintf("%d bits in a %s column", f.width, f.column))

	for _, fl := range f.fields {
		x, middle := left(fl.high()), left(fl.high())+wide(fl)/2
		fmt.Fprintf(&body, "<g>\n")
		body.rect(fl.kind, x, barTop, wide(fl), barHigh)
		if fl.kind != "free" {
			for i, b := range fl.bits {
				high := steps * float64(i+1) / float64(len(fl.bits))
				body.rect("step", left(b)+1, barTop+barHigh-high, bit-2, high)
			}
		}
		switch {
		case len(fl.bits) > 1:
			class := ""
			if float64(len(fl.name))*8 > wide(fl) { // about 7 pixels a character
				class = "tight"
			}
			body.text(class, "middle", middle, barTop+24, fl.name)
			body.text("small", "middle", middle, barTop+41, fmt.Sprintf("%d bits", len(fl.bits)))
			body.text("bit code", "start", x+3, barTop-6, fmt.Sprint(fl.high()))
			body.text("bit code", "end", x+wide(fl)-3, barTop-6, fmt.Sprint(fl.low()))
		case fl.name == "0":
			body.text("", "middle", middle, barTop+24, fl.name)
			body.text("bit code", "middle", middle, barTop-6, fmt.Sprint(fl.high()))
		default: // too narrow for its name
			body.line(middle, barTop-22, middle, barTop)
			body.text("small", "middle", middle, barTop-28, fmt.Sprintf("%s, bit %d: %s", fl.name, fl.high(), fl.about))
		}
		if fl.reversed() && len(fl.about) > 0 {
			body.text("small", "start", x+8, barTop+24, "lowest bit first")
			body.text("small", "end", x+wide(fl)-8, barTop+24, "highest bit last")
		}
		body.line(x, barTop-16, x, barTop+barHigh)
		body.WriteString("</g>\n")
	}
	body.line(margin+barWidth, barTop-16, margin+barWidth, barTop+barHigh)
	body.line(margin, barTop+barHigh, margin+barWidth, barTop+barHigh)
	body.line(margin, barTop, margin+barWidth, barTop)

	y := barTop + barHigh
	if f.width%64 != 0 { // spoken of in bytes, as it fits no integer
		for b := f.width; b > 0; b -= 8 {
			body.line(left(b-1), y, left(b-1), y+18)
			body.text("small", "middle", left(b-1)+4*bit, y+14, fmt.Sprintf("byte %d", (f.width-b)/8))
		}
		body.line(margin+barWidth, y, margin+barWidth, y+18)
		y += 22
	}
	for _, fl := range f.fields {
		if middle := left(fl.high()) + wide(fl)/2; len(fl.bits) > 1 {
			body.text("small", "middle", middle, y+18, fl.about)
			body.text("code", "middle", middle, y+38, fl.value)
		} else {
			body.text("code", "middle", middle, y+38, fl.value)
		}
	}
	y += 50

	if len(f.chars) > 0 {
		high := 26.0
		if f.chars[0].hex != "" {
			high = 44
		}
		for _, ch := range f.chars {
			x, w := left(slices.Max(ch.bits)), float64(len(ch.bits))*bit
			body.rect("char", x, y, w, high)
			body.text("code", "middle", x+w/2, y+18, ch.text)
			if ch.hex != "" {
				body.text("small code", "middle", x+w/2, y+36, ch.hex)
			}
			body.line(x, y, x, y+high)
		}
		body.line(margin+barWidth, y, margin+barWidth, y+high)
		body.line(margin, y, margin+barWidth, y)
		body.line(margin, y+high, margin+barWidth, y+high)
		y += high
	}
	body.text("code", "start", margin, y+26, f.example)
	body.text("small", "start", margin, y+48, f.note)
	y += 66

	var out canvas
	width := barWidth + 2*margin
	fmt.Fprintf(&out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" role=\"img\">\n", width, y, width, y)
	out.WriteString("<title>")
	_ = xml.EscapeText(&out, []byte(f.words()))
	fmt.Fprintf(&out, "</title>\n<style>%s</style>\n", style)
	fmt.Fprintf(&out, "<rect class=\"back\" x=\"0.5\" y=\"0.5\" width=\"%.1f\" height=\"%.1f\" rx=\"6\"/>\n", width-1, y-1)
	out.Write(body.Bytes())
	out.WriteString("</svg>\n")
	return out.Bytes()
}

// words are the drawing for those who can't see it.
func (f format) words() string {
	var fields []string
	for _, fl := range f.fields {
		s := fmt.Sprintf("%s (%d)", fl.name, len(fl.bits))
		if fl.reversed() {
			s = fmt.Sprintf("%s, bits reversed (%d)", fl.name, len(fl.bits))
		}
		fields = append(fields, s)
	}
	return fmt.Sprintf("%s, from the highest bit: %s", f.name, strings.Join(fields, ", "))
}
