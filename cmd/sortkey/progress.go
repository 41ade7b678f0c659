package main

import (
	"fmt"
	"io"
	"time"

	"github.com/dustin/go-humanize"
)

// A progress prints how many rows a command has read, as a line every few seconds.
type progress struct {
	w     io.Writer
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
	return &progress{w: c.errs, now: c.now, total: max(total, 1), begun: c.now(), shown: c.now()}
}

// add adds rows that the command has read.
func (p *progress) add(rows int64) {
	p.rows += rows
	p.total = max(p.total, p.rows)
	now := p.now()
	if now.Sub(p.shown) < progressInterval {
		return
	}
	p.shown = now
	rate := float64(p.rows) / now.Sub(p.begun).Seconds()
	left := time.Duration(float64(p.total-p.rows) / rate * float64(time.Second))
	fmt.Fprintf(p.w, "%s of about %s rows (%d%%), %s rows/s, %s left\n",
		humanize.Comma(p.rows), humanize.Comma(p.total), 100*p.rows/p.total, humanize.Comma(int64(rate)), left.Round(time.Second))
}
