package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/dustin/go-humanize"
)

// A Progress prints how many rows a command has read, as a line every few seconds.
type Progress struct {
	w     io.Writer
	now   func() time.Time
	total int64 // estimated, at least 1
	rows  int64
	begun time.Time
	shown time.Time // the time of the last line
}

// ProgressInterval is the time between lines.
const ProgressInterval = 5 * time.Second

// NewProgress returns a progress over an estimated number of rows.
func (c *Terminal) NewProgress(total int64) *Progress {
	return &Progress{w: c.Errs, now: c.Now, total: max(total, 1), begun: c.Now(), shown: c.Now()}
}

// Add adds rows that the command has read.
func (p *Progress) Add(rows int64) {
	p.rows += rows
	p.total = max(p.total, p.rows)
	now := p.now()
	if now.Sub(p.shown) < ProgressInterval {
		return
	}
	p.shown = now
	rate := float64(p.rows) / now.Sub(p.begun).Seconds()
	left := time.Duration(float64(p.total-p.rows) / rate * float64(time.Second))
	fmt.Fprintf(p.w, "%s of about %s rows (%d%%), %s rows/s, %s left\n",
		humanize.Comma(p.rows), humanize.Comma(p.total), 100*p.rows/p.total, humanize.Comma(int64(rate)), left.Round(time.Second))
}
