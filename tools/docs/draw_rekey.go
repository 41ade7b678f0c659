package main

import "fmt"

// drawRekey returns the drawing of the steps of a rekey, from top to bottom, with the versions of the
// program beside them and the way back from each.
func drawRekey() string {
	var d drawing
	steps := []struct{ name, does string }{
		{"expand", "adds columns, triggers"},
		{"backfill", "fills old rows"},
		{"validate", "indexes, checks, views"},
		{"", "replace the programs"},
		{"contract", "exchanges the names"},
		{"cleanup", "drops the old columns"},
	}
	const (
		top, row    = 84.0, 64.0
		left, width = 188.0, 58.0 // of the bar of the old version
		right       = left + width + 10
		back        = right + width + 22
	)
	line := func(step int) float64 { return top + row*float64(step) } // where a step is
	d.put(text("m", left+width/2, 34, "old"), text("m", right+width/2, 34, "new"), text("m", (left+right+width)/2, 54, "version"), text("m", back+24, 44, "way back"))

	// Both versions write while the programs are replaced.
	d.put(rect("datacenter", left, top-16, width, 4*row-16), rect("time", right, line(3)-16, width, 3*row-8))
	for _, bar := range []struct {
		left   float64
		step   int
		column string
	}{{left, 1, "old"}, {right, 4, "new"}} {
		d.put(text("m", bar.left+width/2, line(bar.step), bar.column), text("m", bar.left+width/2, line(bar.step)+20, "keys"))
	}
	for i, s := range steps {
		y := line(i)
		d.put(fmt.Sprintf(`<path class="line" d="M%g %gH%g"/>`, margin, y-24, drawingWidth-margin), text("code", margin, y, s.name), text("small", margin, y+20, s.does))
	}
	// The ways back.
	for _, b := range []struct {
		name            string
		from, to, label float64
	}{{"abort", line(0), line(3), line(1) + 10}, {"undo", line(4), line(4), line(4) + 10}} {
		d.put(fmt.Sprintf(`<path class="line" fill="none" d="M%g %gH%gV%gH%[1]g"/>`, back-6, b.from-14, back+4, b.to+26), text("code", back+10, b.label, b.name))
	}
	d.put(text("small", back-6, line(5)+10, "none"))
	return d.svg("The steps of a rekey", line(5)+row-6)
}
