package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The edges of a plot and the height of a line of text, in pixels.
const left, right, top, bottom, leading = 72.0, 430.0, 10.0, 270.0, 20.0

// colours are the line colours. Lines of other projects' keys are dashed.
var colours = []string{"#57606a", "#1f6feb", "#0a3069", "#2da44e", "#cf222e", "#8250df", "#d97a00", "#1b7c83", "#bf3989", "#7d4e1f", "#111"}

// A chart has a line for each substitute of * in its pattern, which ends with the key of
// the x axis.
type chart struct{ pattern, unit, x, y string }

// charts are the charts of the page, by file name.
var charts = map[string]chart{
	"grow-rows.svg":  {"Grow/*/rows=", "rows/s", "rows", "rows per second"},
	"grow-index.svg": {"Grow/*/rows=", "index-MB", "rows", "MB of the primary key index"},
}

// formats are the keys of this project.
var formats = []string{"Snowflake", "SnowflakeSI", "UID60", "Spread64", "Sno", "UUID"}

// A line holds the points of one name.
type line struct {
	name, style string
	points      [][2]float64
}

// lines returns the lines of a chart.
func (r *results) lines(c chart) (lines []line) {
	prefix, axis, _ := strings.Cut(c.pattern, "*")
	for _, row := range r.rows(prefix+"*", c.unit) {
		name, number, _ := strings.Cut(row, axis)
		x, err := strconv.ParseFloat(number, 64)
		y, _, ok := r.figure(prefix+row, c.unit)
		if err != nil || !ok {
			continue
		}
		name = strings.TrimPrefix(name, "key=")
		if len(lines) == 0 || lines[len(lines)-1].name != name {
			style := `stroke="` + colours[len(lines)%len(colours)] + `"`
			if !slices.Contains(formats, name) {
				style += ` stroke-dasharray="4 2"`
			}
			lines = append(lines, line{name: name, style: style})
		}
		last := &lines[len(lines)-1]
		last.points = append(last.points, [2]float64{x, y})
	}
	return lines
}

// draw returns a chart as SVG, or "" if it has no figures.
func (r *results) draw(c chart) string {
	lines := r.lines(c)
	if lines == nil {
		return ""
	}
	var highX, highY float64
	for _, l := range lines {
		for _, p := range l.points {
			highX, highY = max(highX, p[0]), max(highY, p[1])
		}
	}
	var b strings.Builder
	write := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	write(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 560 310" font-family="Arial,Helvetica,sans-serif" font-size="10" fill="#333">`)
	write(`<rect width="560" height="310" fill="#fff"/><text x="251" y="304" text-anchor="middle">%s</text>`, c.x)

	across := func(x float64) float64 { return left + (right-left)*x/highX }
	up := func(y float64) float64 { return bottom - (bottom-top)*y/highY }
	write(`<text transform="translate(12 140) rotate(-90)" text-anchor="middle">%s</text>`, c.y)
	for _, tick := range ticks(highX) {
		x := across(tick)
		write(`<path d="M%.0f %.0fV%.0f" stroke="#ddd"/><text x="%.0f" y="%.0f" text-anchor="middle">%s</text>`, x, top, bottom, x, bottom+14, short(tick))
	}
	for _, tick := range ticks(highY) {
		y := up(tick)
		write(`<path d="M%.0f %.0fH%.0f" stroke="#ddd"/><text x="%.0f" y="%.0f" text-anchor="end">%s</text>`, left, y, right, left-4, y+3, short(tick))
	}
	// The legend lists the lines in the order of their last points, from the top down.
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(b.points[len(b.points)-1][1], a.points[len(a.points)-1][1]) })
	for i, l := range lines {
		var path strings.Builder
		for _, p := range l.points {
			fmt.Fprintf(&path, "L%.1f %.1f", across(p[0]), up(p[1]))
		}
		y := top + leading*float64(i)
		write(`<path d="M%sM%.0f %.0fh22" fill="none" stroke-width="1.8" %s/><text x="%.0f" y="%.0f">%s</text>`,
			path.String()[1:], right+12, y+6, l.style, right+38, y+10, l.name)
	}
	return b.String() + "</svg>\n"
}

// ticks returns about four to eight round numbers up to high.
func ticks(high float64) (ticks []float64) {
	step := math.Pow(10, math.Floor(math.Log10(high/4)))
	for _, factor := range []float64{2, 2.5} {
		if high/step > 8 {
			step *= factor
		}
	}
	for tick := 0.0; tick <= high; tick += step {
		ticks = append(ticks, tick)
	}
	return ticks
}
