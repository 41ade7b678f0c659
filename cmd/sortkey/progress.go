package main

import (
	"fmt"
	"io"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/schollz/progressbar/v3"
)

// A progress shows how many rows a command has read: as a bar on a terminal, and as a
// line every few seconds elsewhere.
type progress struct {
	w     io.Writer
	bar   *progressbar.ProgressBar // nil unless w is a terminal
	now   func() time.Time
	total int64 // estimated, at least 1
	rows  int64
	begun time.Time
	shown time.Time // the time of the last line
}

// progressInterval is the time between lines.
const progressInterval = 5 * time.Second

// newProgress returns a progress over an estimated number of rows.
func (c *cli) newProgress(total int64) *progress {
	if f, ok := file(c.errs); ok && terminal(f) {
		return newProgress(f, true, c.now, total) // the bar moves the cursor
	}
	return newProgress(c.errs, false, c.now, total)
}

func newProgress(w io.Writer, bar bool, now func() time.Time, total int64) *progress {
	p := &progress{w: w, now: now, total: max(total, 1), begun: now(), shown: now()}
	if bar {
		p.bar = progressbar.NewOptions64(p.total,
			progressbar.OptionSetWriter(w),
			progressbar.OptionSetWidth(20),
			progressbar.OptionShowCount(),
			progressbar.OptionShowIts(),
			progressbar.OptionSetItsString("rows"),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionUseANSICodes(true),
		)
	}
	return p
}

// add adds rows that the command has read.
func (p *progress) add(rows int64) {
	p.rows += rows
	p.total = max(p.total, p.rows)
	if p.bar != nil && p.rows == p.total {
		p.bar.ChangeMax64(p.total + 1) // a full bar would end
	}
	now := p.now()
	switch {
	case p.bar != nil:
		_ = p.bar.Add64(rows)
	case now.Sub(p.shown) >= progressInterval:
		p.shown = now
		rate := float64(p.rows) / now.Sub(p.begun).Seconds()
		left := time.Duration(float64(p.total-p.rows) / rate * float64(time.Second))
		fmt.Fprintf(p.w, "%s of about %s rows (%d%%), %s rows/s, %s left\n",
			humanize.Comma(p.rows), humanize.Comma(p.total), 100*p.rows/p.total, humanize.Comma(int64(rate)), left.Round(time.Second))
	}
}

// end ends the bar's line. Unless the command is complete, the bar keeps its state.
func (p *progress) end(complete bool) {
	if p.bar == nil {
		return
	}
	if complete {
		p.bar.ChangeMax64(max(p.rows, 1))
		_ = p.bar.Finish()
	} else {
		_ = p.bar.Exit()
	}
	fmt.Fprintln(p.w)
}
