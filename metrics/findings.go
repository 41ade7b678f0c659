package metrics

import (
	"context"
	"time"

	"github.com/sortkey/sortkey/internal/dbhealth"
	"github.com/sortkey/sortkey/migrations"
)

// A search is a search for what is wrong in a database.
type search struct {
	begun time.Time
	done  chan struct{} // closed when the search has ended
}

// ended reports whether the search has ended.
func (s *search) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// counts are the numbers of findings, by rule and level.
type counts map[[2]string]int

// known contains findings without their details, which can have times.
type known map[dbhealth.Finding]bool

// findings returns the numbers of findings of the last search, and whether they are known. If
// that search is too old, a new one begins. findings waits for it until the timeout.
func (d *database) findings(timeout <-chan time.Time) (samples []sample, ok bool) {
	if d.o.FindingsEvery < 0 {
		return nil, true
	}
	d.mu.Lock()
	if d.search == nil || d.search.ended() && time.Since(d.search.begun) >= d.o.FindingsEvery {
		d.search = &search{begun: time.Now(), done: make(chan struct{})}
		go d.run(d.search)
	}
	last := d.search
	d.mu.Unlock()
	select {
	case <-last.done:
	case <-timeout:
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.counts == nil || !last.ended() && time.Since(last.begun) > findingsTimeout { // the driver ignores the context
		return nil, false
	}
	for key, n := range d.counts {
		samples = append(samples, sample{findingCount, float64(n), key[:]})
	}
	return samples, true
}

// run runs a search. If it fails, the findings are unknown until the next search.
func (d *database) run(s *search) {
	report, err := d.examine()
	d.mu.Lock()
	defer d.mu.Unlock()
	defer close(s.done)
	d.counts = nil
	if err != nil {
		d.o.Logger.Warn("findings of the database not read", "database", d.name, "error", err)
		return
	}
	before := d.known
	d.counts, d.known = counts{}, known{}
	for _, finding := range report.Findings {
		if !finding.Counts() {
			continue
		}
		d.counts[[2]string{finding.ID, string(finding.Level)}]++
		key := dbhealth.Finding{ID: finding.ID, Level: finding.Level, Subject: finding.Subject}
		d.known[key] = true
		if !before[key] && (finding.Level == dbhealth.Warning || finding.Level == dbhealth.Problem) {
			d.o.Logger.Warn("finding in the database", "database", d.name, "id", finding.ID, "severity", finding.Level,
				"subject", finding.Subject, "detail", finding.Detail, "remedy", finding.Remedy)
		}
	}
}

// examine runs the rules.
func (d *database) examine() (report *dbhealth.Report, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), findingsTimeout)
	defer cancel()
	defer recovered(&err)
	if err := migrations.CheckOwner(ctx, d.db, d.config()); err != nil {
		return nil, err
	}
	return dbhealth.New(d.db, dbhealth.Options{Config: d.config()}).Run(ctx)
}
