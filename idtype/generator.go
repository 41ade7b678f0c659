package idtype

import (
	"context"
	"time"
)

// A Generator mints IDs and never the same one twice. It may be used by
// several goroutines at once.
type Generator[T any] interface {
	// Next mints one ID. It waits where the format's rate or a clock that
	// stepped back demand it, for [Options.MaxWait] at the longest.
	Next() (T, error)
	// Fill mints len(dst) IDs in order, for as long as that takes at the
	// format's rate. It gives the number it minted: fewer than len(dst) only
	// with an error, which may be that of ctx.
	Fill(ctx context.Context, dst []T) (n int, err error)
}

// Options are what all generators can be told. The zero value is what most
// programs want.
type Options struct {
	// Clock gives the time. Nil means the system's, of which a generator
	// reads the wall clock once a unit if it can, and for the rest the monotonic
	// clock. A Clock of the caller's is read by the constructor and in each call, by
	// one goroutine at a time.
	Clock func() time.Time
	// MaxWait bounds how long a call waits while the sequence is full, the
	// clock is behind the last ID, or a lease isn't renewed; for a Fill, how long
	// it waits while nobody gets anything. 0 means one second; a negative value
	// means not to wait but to fail at once.
	//
	// If the clock is further behind the last ID, NotBefore or the start of the
	// lease than a call may still wait, the call fails at once, even if somebody is
	// about to step the clock forward.
	MaxWait time.Duration
	// NotBefore is a time that may have been used already, by an earlier run
	// of the program: the generator mints in later units only. Zero means that
	// there is none.
	NotBefore time.Time
	// Lease is a node number that was claimed for a time, for this generator
	// alone. Nil means that the configured number is its for ever.
	Lease Lease

	clock *clock // set by tests, instead of Clock: waits are scripted too
}

// GeneratorStats count what a generator has done since it was made.
type GeneratorStats struct {
	Minted            uint64 // IDs
	Waits             uint64 // times that a call had to wait, for whatever reason
	SequenceOverflows uint64 // units of time whose sequence numbers didn't suffice
	ClockRegressions  uint64 // times that the clock was seen to step back, by a unit or more
	TickTocks         uint64 // times that a Sno generator went on in the other half of its IDs, instead of waiting
}

// report adds what was minted in the present unit to the stats.
func (s *sequencer) report() GeneratorStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	used := s.used(s.word.Load())
	stats.Minted += uint64(used.end - used.begin)
	return stats
}

// remaining is how long the format's time still lasts.
func (s *sequencer) remaining() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	wall, _ := s.clock.read()
	return max(s.line.end().Add(time.Millisecond).Sub(wall), 0)
}
