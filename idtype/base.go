package idtype

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// A composer makes the IDs of a format from the numbers of its sequencer. Next copies it, so
// it holds no layout: with one, Next of Snowflake takes 12 % longer.
type composer[T any] interface {
	at(slot) T               // the ID of a slot's first number
	compose(dst []T, s slot) // the IDs of a run of numbers
}

// A base has what the generators with a sequencer have in common.
type base[T any, C composer[T]] struct {
	seq handle
	ids C
}

// Next returns one new ID; see [Generator].
func (g *base[T, C]) Next() (id T, err error) {
	s, err := g.seq.takeOne()
	if err != nil {
		return id, err
	}
	return g.ids.at(s), nil
}

// Fill writes len(dst) new IDs to dst, in order; see [Generator].
func (g *base[T, C]) Fill(ctx context.Context, dst []T) (int, error) {
	return fill(ctx, &g.seq, dst, g.ids.compose)
}

// Stats returns the counters of the generator.
func (g *base[T, C]) Stats() GeneratorStats { return g.seq.report() }

// Remaining returns the time until the end of the layout.
func (g *base[T, C]) Remaining() time.Duration { return g.seq.remaining() }

// Ready returns nil if the clock and the lease allow a call of Next now, at once or after a
// wait within MaxWait. Otherwise it returns the error of such a call, which wraps
// [ErrClockBackwards], [ErrTimeExhausted], [ErrLeaseNotRenewed] or [ErrLeaseLost]. Ready
// doesn't wait and creates no ID.
func (g *base[T, C]) Ready() error { return g.seq.ready() }

// A handle is a generator's access to its sequencer, which other generators may share.
type handle struct {
	*sequencer
	maxWait time.Duration
	stall   stall
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
	if o.Lease != nil {
		return o.Lease.Attach(cmp.Or(p.layout, p.sequence.layout), h.minted)
	}
	return nil
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
