package metrics

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/nodelease"
)

// A Source is a generator, a claim or a database whose metrics a [Collector] exports.
// [Generator], [Leased], [Keeper] and [Database] return Sources.
type Source struct {
	name    string // unique among the sources with a label
	label   string
	collect func(*scrape)
}

// A Collector exports the metrics of its sources. Register one Collector per registry:
// a registry rejects a second one, which describes the same metrics.
type Collector struct {
	sources []Source
}

var _ prometheus.Collector = (*Collector)(nil)

// NewCollector returns a collector of the sources. The metrics of a source have its
// name in a label. NewCollector panics if two generators, or two databases, have the
// same name, because their metrics would be equal, and if a name is not valid UTF-8.
func NewCollector(sources ...Source) *Collector {
	names := map[[2]string]bool{}
	for _, s := range sources {
		key := [2]string{s.label, s.name}
		switch {
		case s.collect == nil:
			panic("metrics: NewCollector got the zero Source; call Generator, Leased, Keeper or Database")
		case !utf8.ValidString(s.name):
			panic(fmt.Sprintf("metrics: the name %q is not valid UTF-8; give the source another name", s.name))
		case names[key]:
			panic(fmt.Sprintf("metrics: two sources have the label %s=%q; give each its own name", s.label, s.name))
		}
		names[key] = true
	}
	return &Collector{sources}
}

// Describe implements [prometheus.Collector].
func (c *Collector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, m := range all {
		descriptions <- m.desc
	}
}

// Collect implements [prometheus.Collector]. It is safe for concurrent use. If a source
// panics, the registry returns an error with its name, and the process continues.
func (c *Collector) Collect(metrics chan<- prometheus.Metric) {
	var sources sync.WaitGroup // a slow database doesn't delay the others
	for _, s := range c.sources {
		sources.Go(func() {
			var problem error
			to := &scrape{s.name, metrics}
			defer func() {
				if problem != nil {
					to.fail(fmt.Errorf("metrics: %s %q: %w", s.label, s.name, problem))
				}
			}()
			defer recovered(&problem)
			s.collect(to)
		})
	}
	sources.Wait()
}

// recovered, as a deferred call, turns a panic into an error.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
	}
}

// A scrape sends the metrics of a source to a registry.
type scrape struct {
	name    string
	metrics chan<- prometheus.Metric
}

// send sends a value of a metric, with the values of the labels after the first one.
func (s *scrape) send(m *metric, value float64, labels ...string) {
	p, err := prometheus.NewConstMetric(m.desc, m.kind, value, append([]string{s.name}, labels...)...)
	if err != nil {
		s.fail(err)
		return
	}
	s.metrics <- p
}

// sendSummary sends a summary without quantiles.
func (s *scrape) sendSummary(m *metric, count uint64, sum float64) {
	p, err := prometheus.NewConstSummary(m.desc, count, sum, nil, s.name)
	if err != nil {
		s.fail(err)
		return
	}
	s.metrics <- p
}

// fail makes the registry return an error beside the other metrics.
func (s *scrape) fail(err error) {
	s.metrics <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(err), err)
}

// Generator returns a source with the metrics of a generator from package idtype. The
// name is the value of the label generator, for example the generator's table. Pass only one
// of several generators that share a sequence, because they have the same counters. Use
// [Leased] for a generator from package nodelease.
func Generator(name string, g idtype.Monitored) Source {
	g.Stats() // panics here, not in a scrape, if g is nil or a zero value
	return Source{name: name, label: labelGenerator, collect: func(to *scrape) {
		sendStats(to, g.Stats())
		to.send(lifetime, g.Remaining().Seconds())
		to.send(ready, boolean(g.Ready() == nil))
	}}
}

// Leased returns a source with the metrics of a generator and of its claims. They are
// counted over all claims of the generator. The name is the value of the label
// generator. If the wrapped generator has no method Stats or Remaining, the metrics of that
// method are missing.
func Leased[T any](name string, g *nodelease.Generator[T]) Source {
	g.Keeper() // panics here, not in a scrape, if g is nil or a zero value
	return Source{name: name, label: labelGenerator, collect: func(to *scrape) {
		s := g.Stats()
		wrapped := g.Current()
		if _, ok := wrapped.(interface{ Stats() idtype.GeneratorStats }); ok {
			sendStats(to, s.GeneratorStats)
		}
		if _, ok := wrapped.(interface{ Remaining() time.Duration }); ok {
			to.send(lifetime, g.Remaining().Seconds())
		}
		to.send(ready, boolean(g.Ready() == nil))
		sendClaim(to, s.Claim, g.Keeper().Err())
		to.send(leaseLosses, float64(s.Losses))
		to.send(leaseReacquisitions, float64(s.Reacquisitions))
		sendRenewals(to, s.Renewals, s.Failures, s.RenewalTime)
	}}
}

// Keeper returns a source with the metrics of a single claim. The name is the value of
// the label generator. Pass the claim's generator to [Generator] under another name, or
// use [Leased].
func Keeper(name string, k *nodelease.Keeper) Source {
	k.Number() // panics here, not in a scrape, if k is nil or a zero value
	return Source{name: name, label: labelGenerator, collect: func(to *scrape) {
		s, err := k.Stats(), k.Err()
		to.send(ready, boolean(k.Ready() == nil))
		sendClaim(to, s, err)
		to.send(leaseLosses, boolean(err != nil && !errors.Is(err, nodelease.ErrClosed)))
		sendRenewals(to, s.Renewals, s.Failures, s.RenewalTime)
	}}
}

func sendStats(to *scrape, s idtype.GeneratorStats) {
	to.send(minted, float64(s.Minted))
	to.send(waits, float64(s.Waits))
	to.send(overflow, s.OverflowTime.Seconds())
	to.send(regressions, float64(s.ClockRegressions))
	to.send(tickTocks, float64(s.TickTocks))
}

func sendClaim(to *scrape, s nodelease.Stats, err error) {
	to.send(leaseHeld, boolean(err == nil))
	if err == nil {
		to.send(leaseNode, 1, s.Pool, strconv.Itoa(s.Number))
	}
	to.send(leaseLeft, s.Left.Seconds())
	to.send(leaseTerm, float64(s.Term))
	to.send(leaseSkew, s.Skew.Seconds())
}

func sendRenewals(to *scrape, renewals, failures uint64, took time.Duration) {
	to.sendSummary(leaseRenewals, renewals, took.Seconds())
	to.send(leaseRenewalFailures, float64(failures))
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
