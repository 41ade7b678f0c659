package idtype

import (
	"context"
	"time"
)

// A Generator creates IDs and never returns a duplicate. It is safe for concurrent use.
type Generator[T any] interface {
	// Next returns one new ID. If the sequence is full or the clock stepped back, Next
	// waits, for up to [Options.MaxWait].
	Next() (T, error)
	// Fill writes len(dst) new IDs to dst, in order, and waits as long as the format's
	// rate requires. It returns the number of IDs written, which is less than len(dst)
	// only if err is not nil. err can be the error of ctx.
	Fill(ctx context.Context, dst []T) (n int, err error)
}

// Monitored has the methods by which a generator is monitored. The generators of this
// package have them, and so do the results of [MapGenerator], [GeneratorOf] and
// [SnoGenerator.WithMeta] for a generator that has them.
type Monitored interface {
	// Stats returns the counters of the generator.
	Stats() GeneratorStats
	// Remaining returns the time until the end of the format.
	Remaining() time.Duration
	// Ready returns nil if a call of Next can succeed now, or its error otherwise. It
	// creates no ID.
	Ready() error
}

// Must returns v, and panics with err if err is not nil. Use it for generators and IDs in
// variables of a package:
//
//	var ids = idtype.Must(idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Worker: 3}))
//	var root = idtype.Must(idtype.ParseSno("brpk4q72xwf2m63l"))
func Must[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}

// Options are the options of generators with a node number. The zero value suits most programs.
type Options struct {
	// Clock returns the current time. The constructor and every call read it, one
	// goroutine at a time. If Clock is nil, the generator uses the system clocks: the
	// wall clock once per unit, and the monotonic clock in between. If a
	// [SnowflakeLayout] has fewer than 20 bits for node numbers and sequence, every call
	// reads the wall clock.
	//
	// A generator with a Clock shares its sequence with no other generator, so it can
	// repeat the IDs of a generator with the same node number.
	Clock func() time.Time
	// MaxWait limits the time that a call waits while the sequence is full, the clock is
	// behind the last ID, or the lease is not renewed. For Fill it limits the time in
	// which no call gets an ID. 0 means one second. If MaxWait is negative, calls fail
	// at once instead of waiting.
	//
	// If the clock is behind the last ID, NotBefore or the start of the lease by more
	// than the call may still wait, the call fails at once, even if the clock is about to
	// be set forward.
	MaxWait time.Duration
	// NotBefore is a time up to which an earlier run of the program may have created
	// IDs. The generator creates IDs only in later units, and so do the generators that
	// share its sequence. A constructor rejects a time that is more than MaxWait, and more
	// than a second, ahead. The zero Time sets no bound.
	NotBefore time.Time
	// Lease is a node number claimed for a limited time, for this generator only. If it
	// is nil, the generator keeps its configured number permanently.
	Lease Lease

	clock *clock // replaces Clock in tests, which also script waits
}

// GeneratorStats are the counters of a generator since its creation. Generators that share
// a sequence share the counters too: they count since the creation of the first one.
type GeneratorStats struct {
	Minted            uint64 // IDs created
	Waits             uint64 // waits of calls, for any reason; one Fill can wait several times
	SequenceOverflows uint64 // units with fewer sequence numbers than requested
	// OverflowTime is the total length of these units. Its growth per second is the share
	// of the time in which the generator is at the limit of its rate: 1 at most.
	OverflowTime     time.Duration
	ClockRegressions uint64 // steps of the clock back to an earlier unit
	TickTocks        uint64 // steps back that a Sno generator handled with its tick-tock bit instead of waiting
}
