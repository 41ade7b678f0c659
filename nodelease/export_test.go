package nodelease

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sortkey/sortkey/idtype"
)

// Copy returns a Keeper with the state of k, as in a copy of the process that has another
// clock and another connection to the store. Its trust window ends earlier than that of k, so that
// the two don't act at the same moment.
func (k *Keeper) Copy(store Store, o Options, earlier time.Duration) (*Keeper, error) {
	o, err := o.normal()
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	c := k.claim
	r := Request{Holder: k.holder, TTL: c.TTL, Now: k.asked, Until: k.until.Load(), Nonce: c.Nonce}
	other := newKeeper(store, k.pool, o, r, c, k.trusted.Add(-window(c.TTL)-earlier))
	other.claim.Sent, other.claim.Past = slices.Clone(c.Sent), slices.Clone(c.Past)
	return other.start(), nil
}

// ReadySuccessor returns the result of a call that waits for the claim after a lost one, although
// that claim is there already and the deadline is over.
func (g *Generator[T]) ReadySuccessor(ctx context.Context, lost *Keeper, deadline time.Time) error {
	old := &tenure[T]{keeper: lost, next: make(chan struct{})}
	close(old.next)
	_, err := g.successor(ctx, old, deadline)
	return err
}

// Copy returns a Generator with the claim of g; see [Keeper.Copy]. It builds a generator for
// the claim, which knows the time of the newest ID.
func (g *Generator[T]) Copy(store Store, o Options, earlier time.Duration, newest int64, build func(idtype.Lease) (idtype.Generator[T], error)) (*Generator[T], error) {
	o, err := o.normal()
	if err != nil {
		return nil, err
	}
	if err := g.Keeper().Err(); err != nil {
		return nil, err
	}
	k, err := g.Keeper().Copy(store, o, earlier)
	if err != nil {
		return nil, err
	}
	built, err := build(k)
	if err != nil {
		return nil, errors.Join(err, k.Close())
	}
	k.mu.Lock()
	minted := k.minted
	k.minted = func() int64 { return max(minted(), newest) }
	k.mu.Unlock()
	other := &Generator[T]{store: store, pool: g.pool, o: o, maxWait: g.maxWait, build: build, done: make(chan struct{})}
	other.current.Store(&tenure[T]{k, built, make(chan struct{})})
	other.closing, other.close = context.WithCancel(context.Background())
	go other.reacquireAfterLosses()
	return other, nil
}
