package idtype

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"
)

// A handle is a generator's access to its sequencer, which other generators may share.
type handle struct {
	*sequencer
	maxWait time.Duration
	stall   stall
}

// A number identifies sequences of this process that could create the same ID. Different
// numbers never do.
type number struct {
	layout string
	node   int64 // 0 if layouts can divide the bits below the time; see spec.low
}

// sequencers holds the shared sequencers of this process. It keeps them forever, so that a
// generator also continues one that was dropped. A sequencer has less than 1 kB.
//
// A number has several sequencers if it is a Sno's, one for each range of its sequence, or if
// layouts divide the bits below its time, one for each node number.
var sequencers struct {
	sync.Mutex
	of map[number][]*sequencer
}

// init gives the generator its sequencer. Generators of a number share one if they use the
// system clock and no lease. init returns an error if the clock or a start bound is past
// the end of the format, or if the clock is before the epoch.
//
// If claim isn't nil, it returns the node number. init calls it after all steps that can
// fail, except the lease's Attach. alone means that the generator will not share.
func (h *handle) init(p spec, o Options, claim func(alone bool) (node int64, err error)) error {
	h.maxWait = min(cmp.Or(o.MaxWait, defaultMaxWait), unending-1)
	c := systemClock(o.Clock)
	if o.clock != nil {
		c = *o.clock
	}
	wall, _ := c.read()
	if _, err := p.line.unit(wall); err != nil {
		return err
	}
	bound, err := p.line.bound(o.NotBefore, "NotBefore")
	if err != nil {
		return err
	}
	// A far bound would also keep the other generators of the node number from creating IDs.
	if within := max(h.maxWait, defaultMaxWait); bound >= 0 && p.line.time(bound).Sub(wall) > within {
		return fmt.Errorf("idtype: start %s generator after NotBefore %s: the clock is at %s, more than %v before; check the system time and NotBefore, or raise MaxWait: %w",
			p.line.format, stamp(o.NotBefore), stamp(wall), within, ErrClockBackwards)
	}
	if o.Lease != nil {
		after, err := p.line.bound(time.UnixMilli(o.Lease.After()), "Lease.After")
		if err != nil {
			return err
		}
		bound = max(bound, after)
	}
	alone := o.Clock != nil || o.clock != nil || o.Lease != nil || p.random != nil && p.random.own
	if h.sequencer, err = sequencerOf(p, c, o.Lease, alone, claim); err != nil {
		return err
	}
	h.startAfter(bound)
	if l, ok := o.Lease.(LeaseAttacher); ok {
		return l.Attach(cmp.Or(p.layout, p.number.layout), h.minted)
	}
	return nil
}

// sequencerOf returns the sequencer for a new generator.
func sequencerOf(p spec, c clock, l Lease, alone bool, claim func(bool) (int64, error)) (*sequencer, error) {
	sequencers.Lock()
	defer sequencers.Unlock()
	if claim != nil {
		var err error
		if p.number.node, err = claim(alone); err != nil {
			return nil, err
		}
	}
	if alone {
		return newSequencer(p, c, l), nil
	}
	from, to := p.bits()
	for _, s := range sequencers.of[p.number] {
		switch first, last := s.bits(); {
		case first == from && last == to:
			return s, nil
		case first <= to && from <= last:
			return nil, overlapError(p, s)
		}
	}
	s := newSequencer(p, c, nil)
	if sequencers.of == nil {
		sequencers.of = map[number][]*sequencer{}
	}
	sequencers.of[p.number] = append(sequencers.of[p.number], s)
	return s, nil
}

// overlapError returns the error for a generator that could create IDs of another one, but
// can't continue its sequence.
func overlapError(p spec, s *sequencer) error {
	if p.ticks {
		return &configError{fmt.Sprintf("idtype: use sequence numbers %d to %d of Sno partition %d: a generator of this process uses %d to %d; set the same SequenceMin and SequenceMax to share them, or ranges that don't overlap",
			p.min, p.max, p.number.node, s.min, s.max)}
	}
	return &configError{fmt.Sprintf("idtype: start %s generator with the layout %q: a generator of this process with the layout %q creates the same IDs; use one layout for both, or node numbers whose bits differ",
		p.line.format, p.layout, s.layout)}
}

// panicZero panics because the generator is the zero value.
func panicZero() {
	panic("idtype: the generator is a zero value; create it with its constructor, such as NewSnowflakeGenerator")
}

// use returns the handle, or panics if its generator is the zero value.
func (h *handle) use() *handle {
	if h.sequencer == nil {
		panicZero()
	}
	return h
}

// takeOne takes a single number.
func (h *handle) takeOne() (slot, error) {
	if got, ok := h.use().takeFast(); ok {
		return got, nil
	}
	c := call{by: h, begun: -1}
	got, _, err := h.take(context.Background(), &c, 1)
	return got, err
}

// fill fills dst with IDs. compose makes IDs from a run of numbers.
func fill[T any](ctx context.Context, h *handle, dst []T, compose func([]T, slot)) (n int, err error) {
	h.use()
	// A single ID uses the fast path, as in Next: a caller with a context uses Fill
	// instead of Next.
	if len(dst) == 1 && ctx.Err() == nil {
		if got, ok := h.takeFast(); ok {
			compose(dst, got)
			return 1, nil
		}
	}
	c := call{by: h, begun: -1, patient: true}
	for n < len(dst) {
		got, count, err := h.take(ctx, &c, len(dst)-n)
		if err != nil {
			return n, err
		}
		compose(dst[n:n+count], got)
		n += count
	}
	return n, nil
}

// series fills dst with id, id+step, id+2*step, and so on.
func series[T ~int64](dst []T, id, step T) {
	if len(dst) == 1 {
		dst[0] = id
		return
	}
	longSeries(dst, id, step)
}

// longSeries is not inlined, because its loop takes 1.7 times as long if it crosses a
// cache line. At the start of a function, which is aligned, the loop doesn't cross one.
//
//go:noinline
func longSeries[T ~int64](dst []T, id, step T) {
	for i := range dst {
		dst[i] = id
		id += step
	}
}
