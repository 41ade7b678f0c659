package main

import (
	"bytes"
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// A picture is a plot, in SVG.
type picture struct {
	name string
	svg  []byte
}

// plots are those that the results have figures for.
func (r *results) plots() ([]picture, error) {
	var pictures []picture
	for _, p := range []struct {
		name string
		draw func() ([]byte, error)
	}{
		{"mint.svg", r.plotMint},
		{"gomaxprocs.svg", r.plotGOMAXPROCS},
		{"grow-rows.svg", func() ([]byte, error) {
			return r.plotGrowth("rows/s", 1e-3, "thousand rows a second")
		}},
		{"grow-index.svg", func() ([]byte, error) {
			return r.plotGrowth("index-MB", 1, "MB of the primary key's index")
		}},
	} {
		svg, err := p.draw()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		if svg != nil {
			pictures = append(pictures, picture{p.name, svg})
		}
	}
	return pictures, nil
}

// Lengths are in points.
const (
	width      vg.Length = 560
	lineHeight vg.Length = 320
	legend     vg.Length = 110 // right of the lines
	fontSize   vg.Length = 10
)

var (
	ink  = color.NRGBA{0x33, 0x33, 0x33, 0xff}
	grid = color.NRGBA{0xdd, 0xdd, 0xdd, 0xff}
	grey = color.NRGBA{0x8c, 0x95, 0x9f, 0xff}
	blue = color.NRGBA{0x1f, 0x6f, 0xeb, 0xff}
)

// colours of lines. This project's are drawn through, the others' are dashed.
var colours = map[string]color.NRGBA{
	"Snowflake":   blue,
	"SnowflakeSI": {0x0a, 0x30, 0x69, 0xff},
	"UID60":       {0x2d, 0xa4, 0x4e, 0xff},
	"Spread64":    {0xcf, 0x22, 0x2e, 0xff},
	"Sno":         {0x82, 0x50, 0xdf, 0xff},
}

// others are for those that have no colour of their own, in turn.
var others = []color.NRGBA{
	{0x57, 0x60, 0x6a, 0xff}, {0xd9, 0x7a, 0x00, 0xff}, {0x1b, 0x7c, 0x83, 0xff}, {0xbf, 0x39, 0x89, 0xff}, {0x7d, 0x4e, 0x1f, 0xff}, {0x11, 0x11, 0x11, 0xff},
}

// blank is a plot without anything in it, in colours that are legible on the
// white that it brings along.
func blank(x, y string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = color.White
	p.X.Label.Text, p.Y.Label.Text = x, y
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Color, axis.Tick.Color = ink, ink
		axis.Label.TextStyle = style(ink)
		axis.Tick.Label = withAlignment(style(ink), axis.Tick.Label)
		axis.Padding = 0
	}
	return p
}

func style(c color.Color) text.Style {
	return text.Style{Color: c, Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: fontSize}, Handler: plot.DefaultTextHandler,
		XAlign: draw.XCenter, YAlign: draw.YBottom}
}

func withAlignment(s, of text.Style) text.Style {
	s.XAlign, s.YAlign = of.XAlign, of.YAlign
	return s
}

// plotMint has a bar for each library, as they are in the table.
func (r *results) plotMint() ([]byte, error) {
	var names []string
	var values []float64
	for _, name := range r.under("Next") {
		if f, ok := r.figure("Next/"+name, "ns/op"); ok && !strings.HasSuffix(name, "/atcap") {
			names, values = append(names, name), append(values, f.median)
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	slices.Reverse(names) // the first is on top
	slices.Reverse(values)

	p := blank("ns an ID, one goroutine", "")
	bars := func(c color.Color, of func(name string) bool) error {
		some := make(plotter.Values, len(values))
		for i, name := range names {
			if of(name) {
				some[i] = values[i]
			}
		}
		chart, err := plotter.NewBarChart(some, vg.Points(13))
		if err != nil {
			return err
		}
		chart.Horizontal, chart.Color, chart.Width = true, c, vg.Points(13)
		chart.LineStyle.Width = 0
		p.Add(chart)
		return nil
	}
	ours := func(name string) bool { return slices.Contains(formats, name) }
	if err := bars(blue, ours); err != nil {
		return nil, err
	}
	if err := bars(grey, func(name string) bool { return !ours(name) }); err != nil {
		return nil, err
	}

	var at plotter.XYLabels
	for i, v := range values {
		at.XYs = append(at.XYs, plotter.XY{X: v, Y: float64(i)})
		at.Labels = append(at.Labels, short(v))
	}
	labels, err := plotter.NewLabels(at)
	if err != nil {
		return nil, err
	}
	labels.Offset.X = vg.Points(4)
	for i := range labels.TextStyle {
		labels.TextStyle[i] = style(ink)
		labels.TextStyle[i].XAlign, labels.TextStyle[i].YAlign = draw.XLeft, -0.4
	}
	p.Add(labels)
	called := make([]string, len(names))
	for i, name := range names {
		called[i] = versioned(name)
	}
	p.NominalY(called...)
	p.Y.Padding = vg.Points(14) // for fonts that are wider than this one
	p.X.Min, p.X.Max = 0, slices.Max(values)*1.08
	p.X.Tick.Marker = decimals{}
	return svg(vg.Points(40)+vg.Length(len(names))*vg.Points(20), func(c draw.Canvas) { p.Draw(c) })
}

// A line is a series of figures with a name.
type line struct {
	name   string
	points plotter.XYs
}

// plotGOMAXPROCS has a line for each library, by the number of cores.
func (r *results) plotGOMAXPROCS() ([]byte, error) {
	procs, names := r.procs()
	if len(procs) < 2 {
		return nil, nil
	}
	var lines []line
	for _, name := range names {
		l := line{name: name}
		for i, n := range procs {
			if f, ok := r.figure(fmt.Sprintf("GOMAXPROCS/%s/procs=%d", name, n), "ns/op"); ok && f.median > 0 {
				l.points = append(l.points, plotter.XY{X: float64(i), Y: f.median})
			}
		}
		lines = append(lines, l)
	}
	p := blank("GOMAXPROCS", "ns an ID")
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, oneTwoFive{}
	ticks := make(plot.ConstantTicks, len(procs))
	for i, n := range procs {
		ticks[i] = plot.Tick{Value: float64(i), Label: fmt.Sprint(n)}
	}
	p.X.Tick.Marker = ticks
	return plotLines(p, lines, true)
}

// plotGrowth has a line for each key, by the rows that there are.
func (r *results) plotGrowth(unit string, scale float64, y string) ([]byte, error) {
	keys, points := r.growth()
	var lines []line
	for _, key := range keys {
		l := line{name: key}
		for _, at := range points[key] {
			if f, ok := r.figure(at.name, unit); ok {
				l.points = append(l.points, plotter.XY{X: at.rows / 1e6, Y: f.median * scale})
			}
		}
		if len(l.points) > 0 {
			lines = append(lines, l)
		}
	}
	if len(lines) == 0 {
		return nil, nil
	}
	p := blank("million rows", y)
	p.X.Tick.Marker, p.Y.Tick.Marker = decimals{}, decimals{}
	return plotLines(p, lines, false)
}

// plotLines draws lines, and the legend beside them: in the order in which they
// end, so that one finds them from the top down.
func plotLines(p *plot.Plot, lines []line, log bool) ([]byte, error) {
	g := plotter.NewGrid()
	g.Horizontal.Color, g.Vertical.Color = grid, grid
	p.Add(g)
	names := plot.NewLegend()
	names.Top, names.Left = true, true
	names.TextStyle = style(ink)
	names.TextStyle.XAlign, names.TextStyle.YAlign = draw.XLeft, draw.YBottom
	names.Padding, names.ThumbnailWidth = vg.Points(4), vg.Points(22)

	lines = slices.DeleteFunc(lines, func(l line) bool { return len(l.points) == 0 })
	styles := map[string]draw.LineStyle{}
	for _, l := range lines {
		s := draw.LineStyle{Width: vg.Points(1.8)}
		c, own := colours[l.name]
		if !own {
			c = others[(len(styles)-ownIn(styles))%len(others)]
			s.Dashes = []vg.Length{vg.Points(4), vg.Points(2)}
		}
		s.Color = c
		styles[l.name] = s
	}
	slices.SortStableFunc(lines, func(a, b line) int {
		return cmp.Compare(b.points[len(b.points)-1].Y, a.points[len(a.points)-1].Y)
	})
	low, high := math.Inf(1), 0.0
	var through, dashed []plot.Plotter
	for _, l := range lines {
		drawn, marks, err := plotter.NewLinePoints(l.points)
		if err != nil {
			return nil, err
		}
		drawn.LineStyle = styles[l.name]
		marks.GlyphStyle = draw.GlyphStyle{Color: styles[l.name].Color, Radius: vg.Points(1.8), Shape: draw.CircleGlyph{}}
		if len(drawn.Dashes) == 0 {
			through = append(through, drawn, marks)
		} else {
			dashed = append(dashed, drawn, marks)
		}
		names.Add(versioned(l.name), drawn)
		for _, at := range l.points {
			low, high = min(low, at.Y), max(high, at.Y)
		}
	}
	p.Add(slices.Concat(through, dashed)...) // so that both are seen where they coincide
	if log {
		p.Y.Min, p.Y.Max = low/1.2, high*1.2
	} else {
		p.X.Min, p.Y.Min, p.Y.Max = 0, 0, high*1.05
	}
	return svg(lineHeight, func(c draw.Canvas) {
		p.Draw(draw.Crop(c, 0, -legend, 0, 0))
		names.Draw(draw.Crop(c, width-legend, 0, 0, -vg.Points(8)))
	})
}

// ownIn counts the lines that have a colour of their own.
func ownIn(styles map[string]draw.LineStyle) (n int) {
	for name := range styles {
		if _, own := colours[name]; own {
			n++
		}
	}
	return n
}

// svg draws a picture. Liberation Sans is as wide as Arial and Helvetica, one of
// which a browser has.
func svg(height vg.Length, paint func(draw.Canvas)) ([]byte, error) {
	canvas := vgsvg.New(width, height)
	c := draw.New(canvas)
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	paint(draw.Crop(c, vg.Points(6), -vg.Points(8), vg.Points(6), -vg.Points(6)))
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return nil, err
	}
	return bytes.ReplaceAll(out.Bytes(), []byte("font-family:Liberation Sans"), []byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif")), nil
}

// decimals are ticks with as many digits as they need.
type decimals struct{}

func (decimals) Ticks(low, high float64) []plot.Tick {
	step := math.Pow(10, math.Floor(math.Log10((high-low)/4)))
	for _, factor := range []float64{1, 2, 5, 10} {
		if (high-low)/(step*factor) <= 8 {
			step *= factor
			break
		}
	}
	var ticks []plot.Tick
	for i := math.Ceil(low / step); i*step <= high*(1+1e-9); i++ {
		ticks = append(ticks, plot.Tick{Value: i * step, Label: short(i * step)})
	}
	return ticks
}

// oneTwoFive are the ticks of a logarithmic axis.
type oneTwoFive struct{}

func (oneTwoFive) Ticks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for power := math.Pow(10, math.Floor(math.Log10(low))); power <= high; power *= 10 {
		for _, factor := range []float64{1, 2, 5} {
			if v := power * factor; v >= low && v <= high {
				ticks = append(ticks, plot.Tick{Value: v, Label: short(v)})
			}
		}
	}
	return ticks
}
