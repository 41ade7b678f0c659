package metrics

import (
	"errors"
	"fmt"
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
	collect func(send)
}

// A send sends a value of a metric, with the values of the labels after the first one.
type send func(m *metric, value float64, labels ...string)

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

// Collect implements [prometheus.Collector]. It is safe for concurrent use.
func (c *Collector) Collect(metrics chan<- prometheus.Metric) {
	var sources sync.WaitGroup // a slow database doesn't delay the others
	for _, s := range c.sources {
		sources.Go(func() {
			s.collect(func(m *metric, value float64, labels ...string) {
				metrics <- prometheus.MustNewConstMetric(m.desc, m.kind, value, append([]string{s.name}, labels...)...)
			})
		})
	}
	sources.Wait()
}

// Generator returns a source with the metrics of a generator from package idtype. The
// name is the value of the label generator, for example the generator's table. Pass only one
// of several generators that share a sequence, because they have the same counters. Use
// [Leased] for a generator from package nodelease.
func Generator(name string, g idtype.Monitored) Source {
	g.Stats() // panics here, not in a scrape, if g is nil or a zero value
	return Source{name: name, label: labelGenerator, collect: func(send send) {
		sendStats(send, g.Stats())
		send(lifetime, g.Remaining().Seconds())
		send(ready, boolean(g.Ready() == nil))
	}}
}

// A LeasedGenerator is a [nodelease.Generator] or a [nodelease.SnoGenerator].
type LeasedGenerator[T any] interface {
	Keeper() *nodelease.Keeper
	Current() idtype.Generator[T]
	Stats() nodelease.TotalStats
	Remaining() time.Duration
	Ready() error
}

// Leased returns a source with the metrics of a generator and of its claims. They are
// counted over all claims of the generator. The name is the value of the label
// generator. If the wrapped generator has no method Stats or Remaining, the metrics of that
// method are missing.
func Leased[T any](name string, g LeasedGenerator[T]) Source {
	g.Keeper() // panics here, not in a scrape, if g is nil or a zero value
	return Source{name: name, label: labelGenerator, collect: func(send send) {
		s := g.Stats()
		wrapped := g.Current()
		if _, ok := wrapped.(interface{ Stats() idtype.GeneratorStats }); ok {
			sendStats(send, s.GeneratorStats)
		}
		if _, ok := wrapped.(interface{ Remaining() time.Duration }); ok {
			send(lifetime, g.Remaining().Seconds())
		}
		send(ready, boolean(g.Ready() == nil))
		sendClaim(send, s.Claim, g.Keeper().Err())
		send(leaseLosses, float64(s.Losses))
		send(leaseReacquisitions, float64(s.Reacquisitions))
		sendRenewals(send, s.Renewals, s.Failures, s.RenewalTime)
	}}
}

// Keeper returns a source with the metrics of a single claim. The name is the value of
// the label generator. Pass the claim's generator to [Generator] under another name, or
// use [Leased].
func Keeper(name string, k *nodelease.Keeper) Source {
	k.Number() // panics here, not in a scrape, if k is nil or a zero value
	return Source{name: name, label: labelGenerator, collect: func(send send) {
		s, err := k.Stats(), k.Err()
		send(ready, boolean(k.Ready() == nil))
		sendClaim(send, s, err)
		send(leaseLosses, boolean(err != nil && !errors.Is(err, nodelease.ErrClosed)))
		sendRenewals(send, s.Renewals, s.Failures, s.RenewalTime)
	}}
}

func sendStats(send send, s idtype.GeneratorStats) {
	send(minted, float64(s.Minted))
	send(waits, float64(s.Waits))
	send(overflows, float64(s.SequenceOverflows))
	send(regressions, float64(s.ClockRegressions))
	send(tickTocks, float64(s.TickTocks))
}

func sendClaim(send send, s nodelease.Stats, err error) {
	send(leaseHeld, boolean(err == nil))
	send(leaseLeft, s.Left.Seconds())
	send(leaseNode, float64(s.Number))
	send(leaseTerm, float64(s.Term))
	send(leaseSkew, s.Skew.Seconds())
}

func sendRenewals(send send, renewals, failures uint64, took time.Duration) {
	send(leaseRenewals, float64(renewals))
	send(leaseRenewalFailures, float64(failures))
	send(leaseRenewalSeconds, took.Seconds())
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
