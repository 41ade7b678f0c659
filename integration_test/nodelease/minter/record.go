package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/nodelease/internal/journal"
	"github.com/sortkey/sortkey/nodelease"
)

// errJournal: the journal can't be written.
var errJournal = errors.New("journal failure")

// A watched store records each grant in the journal before it returns it.
type watched struct {
	nodelease.Store
	p *program

	mu      sync.Mutex
	granted map[int64]time.Duration // by term and number: when the last granted call was sent
}

func (w *watched) Claim(ctx context.Context, pool nodelease.Pool, r nodelease.Request) (nodelease.Claim, error) {
	sent := time.Since(w.p.begun)
	c, err := w.Store.Claim(ctx, pool, r)
	if err != nil {
		return c, err
	}
	return c, w.note(c, r, sent)
}

func (w *watched) Renew(ctx context.Context, pool nodelease.Pool, held nodelease.Claim, r nodelease.Request) (nodelease.Claim, error) {
	sent := time.Since(w.p.begun)
	c, err := w.Store.Renew(ctx, pool, held, r)
	if err != nil {
		return c, err
	}
	if err := w.note(c, r, sent); err != nil {
		return c, err
	}
	w.p.tell(journal.Event{Event: journal.Renewed, Number: c.Number, Term: c.Term, Until: min(r.Until, c.Until)})
	return c, nil
}

func (w *watched) note(c nodelease.Claim, r nodelease.Request, sent time.Duration) error {
	w.mu.Lock()
	w.granted[c.Term<<16|int64(c.Number)] = sent
	w.mu.Unlock()
	ttl := r.TTL
	if c.TTL > 0 {
		ttl = min(ttl, c.TTL)
	}
	return w.p.journal.Append(journal.Record{
		Kind: journal.Granted, Number: c.Number, Term: c.Term, After: c.After, Until: min(r.Until, c.Until), TTL: ttl, Sent: sent,
	})
}

// sent returns when the last granted call of a term was sent.
func (w *watched) sent(number int, term int64) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.granted[term<<16|int64(number)]
}

// build returns the generator of a claim, and reports the start and the loss of the
// claim.
func (p *program) build(k *nodelease.Keeper, store *watched) (idtype.Generator[journal.ID], error) {
	stats := k.Stats()
	g, err := p.format.Build(p.lease(k), p.o.Clock)
	if err != nil {
		return nil, err
	}
	go func() {
		<-k.Lost()
		since := time.Since(p.begun) - store.sent(stats.Number, stats.Term)
		if err := k.Err(); !errors.Is(err, nodelease.ErrClosed) {
			e, s := told(journal.Lost, err), k.Stats()
			e.Number, e.Term, e.Since, e.Renewals, e.Failures = s.Number, s.Term, since, s.Renewals, s.Failures
			p.tell(e)
		}
	}()
	p.tell(journal.Event{Event: journal.Acquired, Number: stats.Number, Term: stats.Term, After: k.After(), Until: k.Until()})
	return &recorder{g, p, k, store, stats.Term}, nil
}

// A recorder records the IDs of a generator in the journal before it returns them.
type recorder struct {
	idtype.Generator[journal.ID]
	p     *program
	k     *nodelease.Keeper
	store *watched
	term  int64
}

func (r *recorder) Next() (journal.ID, error) {
	begun, sent := time.Since(r.p.begun), r.store.sent(r.k.Number(), r.term)
	id, err := r.Generator.Next()
	if err != nil {
		return id, err
	}
	return id, r.note(begun, sent, []journal.ID{id})
}

func (r *recorder) Fill(ctx context.Context, dst []journal.ID) (int, error) {
	begun, sent := time.Since(r.p.begun), r.store.sent(r.k.Number(), r.term)
	n, err := r.Generator.Fill(ctx, dst)
	if n > 0 {
		err = errors.Join(err, r.note(begun, sent, dst[:n]))
	}
	return n, err
}

func (r *recorder) note(begun, sent time.Duration, ids []journal.ID) error {
	minted := journal.Record{Kind: journal.Minted, Number: r.k.Number(), Term: r.term, After: r.k.After(), Sent: sent, Begun: begun}
	for _, id := range ids {
		minted.IDs = append(minted.IDs, id[:]...)
	}
	err := r.p.journal.Append(minted)
	if err != nil {
		return fmt.Errorf("%w: %w", errJournal, err)
	}
	r.p.minted += uint64(len(ids))
	return nil
}

// lease returns the claim, or with -deaf a lease that ignores its loss.
func (p *program) lease(k *nodelease.Keeper) idtype.Lease {
	if p.deaf {
		return deaf{k}
	}
	return k
}

// A deaf lease ignores the loss of its claim.
type deaf struct{ k *nodelease.Keeper }

func (l deaf) Number() int  { return l.k.Number() }
func (l deaf) After() int64 { return l.k.After() }
func (l deaf) Until() int64 { return math.MaxInt64 }

// Attach makes [nodelease.NewGenerator] accept the generator.
func (l deaf) Attach(layout string, minted func() int64) error { return l.k.Attach(layout, minted) }

func (l deaf) Err() error { return nil }
