package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The measures of a plot, in pixels. It fits a phone, as the drawings of tools/docs do.
const (
	plotWidth                = 400.0
	left, right, top, bottom = 48.0, 380.0, 40.0, 260.0 // of the axes
	leading                  = 22.0
)

// style follows the reader's light or dark scheme.
const style = `<style>
text{font:14px system-ui,-apple-system,"Segoe UI","DejaVu Sans",Helvetica,Arial,sans-serif;fill:#1f2328}.m{text-anchor:middle}.e{text-anchor:end}
.title{font-weight:600}.small{fill:#59636e}.back{fill:#fff;stroke:#d1d9e0}.grid{stroke:#d1d9e0}.line{fill:none;stroke-width:2}
@media (prefers-color-scheme:dark){text{fill:#f0f6fc}.small{fill:#a8b3bf}.back{fill:#0d1117;stroke:#3d444d}.grid{stroke:#3d444d}}
</style>
`

// colours are the line colours, which differ from white and from black. Lines of other
// projects' keys are dashed.
var colours = []string{"#808a95", "#2f81f7", "#a371f7", "#2da44e", "#e5484d", "#b08800", "#e0752d", "#1b9aaa", "#db61a2", "#9a6b3f"}

// A chart has a line for each substitute of * in its pattern, which ends with the key of
// the x axis.
type chart struct{ pattern, unit, x, y string }

// charts are the charts of the page, by file name.
var charts = map[string]chart{
	"grow-rows.svg":  {"Grow/*/rows=", "rows/s", "rows in the table", "Rows per second"},
	"grow-index.svg": {"Grow/*/rows=", "index-MB", "rows in the table", "MB of the primary key index"},
}

// formats are the keys of this project.
var formats = []string{"Snowflake", "SnowflakeSI", "UID60", "Spread64", "Sno", "UUID"}

// A line holds the points of one name.
type line struct {
	name   string
	points [][2]float64
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
			lines = append(lines, line{name: name})
		}
		last := &lines[len(lines)-1]
		last.points = append(last.points, [2]float64{x, y})
	}
	return lines
}

// draw returns a chart as SVG, or "" if it has no lines. Its description has the points, so
// that a screen reader finds them.
func (c chart) draw(lines []line) string {
	if lines == nil {
		return ""
	}
	var highX, highY float64
	var points strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&points, "\n%s:", l.name)
		for _, p := range l.points {
			highX, highY = max(highX, p[0]), max(highY, p[1])
			fmt.Fprintf(&points, " %s at %s,", decimal(p[1]), decimal(p[0]))
		}
	}
	height := bottom + 62 + leading*float64((len(lines)+1)/2)
	var b strings.Builder
	write := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	write(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%[1]g" height="%[2]g" role="img">`, plotWidth, height)
	write("<title>%s</title>\n<desc>%s by %s%s\n</desc>", c.y, c.y, c.x, points.String())
	write(`%s<rect class="back" x=".5" y=".5" width="%g" height="%g" rx="6"/>`, style, plotWidth-1, height-1)
	write(`<text class="title" x="12" y="26">%s</text><text class="small m" x="%g" y="%g">%s</text>`, c.y, (left+right)/2, bottom+40, c.x)

	across := func(x float64) float64 { return left + (right-left)*x/highX }
	up := func(y float64) float64 { return bottom - (bottom-top)*y/highY }
	for _, tick := range ticks(highX) {
		x := across(tick)
		write(`<path class="grid" d="M%.0f %gV%g"/><text class="small m" x="%.0f" y="%g">%s</text>`, x, top, bottom, x, bottom+20, brief(tick))
	}
	for _, tick := range ticks(highY) {
		y := up(tick)
		write(`<path class="grid" d="M%g %.0fH%g"/><text class="small e" x="%g" y="%.0f">%s</text>`, left, y, right, left-6, y+5, brief(tick))
	}
	// The legend lists the lines in the order of their last points, from the top down.
	colour := map[string]string{}
	for i, l := range lines {
		colour[l.name] = colours[i%len(colours)]
	}
	lines = slices.Clone(lines)
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(b.points[len(b.points)-1][1], a.points[len(a.points)-1][1]) })
	for i, l := range lines {
		var path strings.Builder
		for _, p := range l.points {
			fmt.Fprintf(&path, "L%.1f %.1f", across(p[0]), up(p[1]))
		}
		dashes := ""
		if !slices.Contains(formats, l.name) {
			dashes = ` stroke-dasharray="5 3"`
		}
		x, y := 12.0, bottom+66
		if half := (len(lines) + 1) / 2; i < half {
			y += leading * float64(i)
		} else {
			x, y = plotWidth/2+12, y+leading*float64(i-half)
		}
		write(`<path class="line" d="M%sM%g %gh26" stroke="%s"%s/><text x="%g" y="%g">%s</text>`,
			path.String()[1:], x, y-5, colour[l.name], dashes, x+34, y, l.name)
	}
	return b.String() + "</svg>\n"
}

func decimal(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// brief returns a round number for an axis, such as 200k.
func brief(x float64) string {
	switch {
	case x >= 1e6:
		return decimal(x/1e6) + "M"
	case x >= 1e3:
		return decimal(x/1e3) + "k"
	}
	return decimal(x)
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
