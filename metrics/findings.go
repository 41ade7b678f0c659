package metrics

import (
	"context"
	"time"

	"github.com/sortkey/sortkey/internal/dbhealth"
	"github.com/sortkey/sortkey/migrations"
)

// A findings is a search for what is wrong in a database.
type findings struct {
	begun time.Time
	done  chan struct{} // closed when the search has ended

	counts map[[2]string]int             // of findings, by rule and level
	seen   map[dbhealth.Finding]struct{} // without details, which can have times
}

// findingSamples returns the number of findings of the last search. If it is too old, a new
// search begins, for which it waits until the timeout.
func (d *database) findingSamples(timeout <-chan time.Time) (samples []sample) {
	if d.o.FindingsEvery < 0 {
		return nil
	}
	d.mu.Lock()
	if d.running == nil && (d.findings == nil || time.Since(d.findings.begun) >= d.o.FindingsEvery) {
		d.running = &findings{begun: time.Now(), done: make(chan struct{}), counts: map[[2]string]int{}, seen: map[dbhealth.Finding]struct{}{}}
		go d.search(d.running)
	}
	running := d.running
	d.mu.Unlock()
	if running != nil {
		select {
		case <-running.done:
		case <-timeout:
		}
	}
	d.mu.Lock()
	last := d.findings
	d.mu.Unlock()
	if last == nil {
		return nil
	}
	for key, n := range last.counts {
		samples = append(samples, sample{findingCount, float64(n), key[:]})
	}
	return samples
}

// search runs the rules. If that fails, the findings are unknown until the next search.
func (d *database) search(f *findings) {
	ctx, cancel := context.WithTimeout(context.Background(), findingsTimeout)
	defer cancel()
	var report *dbhealth.Report
	err := migrations.CheckOwner(ctx, d.db, d.config())
	if err == nil {
		report, err = dbhealth.New(d.db, dbhealth.Options{Config: d.config()}).Run(ctx)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	defer close(f.done)
	last := d.findings
	d.running, d.findings = nil, nil
	if err != nil {
		d.o.Logger.Warn("findings of the database not read", "database", d.name, "error", err)
		return
	}
	d.findings = f
	for _, rule := range dbhealth.Rules() {
		for _, level := range []dbhealth.Level{dbhealth.Warning, dbhealth.Problem} {
			f.counts[[2]string{rule.ID, string(level)}] = 0
		}
	}
	for _, finding := range report.Findings {
		if !finding.Counts() {
			continue
		}
		f.counts[[2]string{finding.ID, string(finding.Level)}]++
		key := dbhealth.Finding{ID: finding.ID, Level: finding.Level, Subject: finding.Subject}
		f.seen[key] = struct{}{}
		known := false
		if last != nil {
			_, known = last.seen[key]
		}
		if !known && (finding.Level == dbhealth.Warning || finding.Level == dbhealth.Problem) {
			d.o.Logger.Warn("finding in the database", "database", d.name, "id", finding.ID, "severity", finding.Level,
				"subject", finding.Subject, "detail", finding.Detail, "remedy", finding.Remedy)
		}
	}
}
