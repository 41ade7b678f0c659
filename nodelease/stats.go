package nodelease

import (
	"errors"
	"time"

	"github.com/sortkey/sortkey/idtype"
)

// TotalStats holds the counters of a [Generator] since its creation, summed over all of its
// claims, and the state of the current claim.
type TotalStats struct {
	// GeneratorStats has the counters of the wrapped generators. They stay 0 if the
	// generators have no method Stats() idtype.GeneratorStats.
	idtype.GeneratorStats
	Claim          Stats         // the current claim; its Renewals and Failures count from its start
	Losses         uint64        // claims lost
	Reacquisitions uint64        // numbers claimed after a loss
	Renewals       uint64        // successful renewals
	Failures       uint64        // failed renewals
	RenewalTime    time.Duration // total duration of the successful renewals
}

// addClaim adds the counters of a claim whose number was lost or is still held.
func (s *TotalStats) addClaim(k *Keeper) {
	claim := k.Stats()
	s.Claim = claim
	s.Renewals += claim.Renewals
	s.Failures += claim.Failures
	s.RenewalTime += claim.RenewalTime
	if err := k.Err(); err != nil && !errors.Is(err, ErrClosed) {
		s.Losses++
	}
}

// addIDs adds the counters of a wrapped generator.
func (s *TotalStats) addIDs(generator any) {
	g, ok := generator.(interface{ Stats() idtype.GeneratorStats })
	if !ok {
		return
	}
	more := g.Stats()
	s.Minted += more.Minted
	s.Waits += more.Waits
	s.SequenceOverflows += more.SequenceOverflows
	s.OverflowTime += more.OverflowTime
	s.ClockRegressions += more.ClockRegressions
	s.TickTocks += more.TickTocks
}

// maxEarlier is the number of earlier tenures whose generators are kept: a call that began
// before a loss can still change the counters of its generator.
const maxEarlier = 8

// Stats returns the counters of the generator and the state of the current claim.
func (g *Generator[T]) Stats() TotalStats {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.past
	for _, t := range g.earlier {
		s.addIDs(t.generator)
	}
	t := g.now()
	s.addClaim(t.keeper)
	s.addIDs(t.generator)
	return s
}

// Remaining returns the time until the end of the wrapped generator's format, or 0 if that
// generator has no method Remaining() time.Duration.
func (g *Generator[T]) Remaining() time.Duration {
	if r, ok := g.Current().(interface{ Remaining() time.Duration }); ok {
		return r.Remaining()
	}
	return 0
}
