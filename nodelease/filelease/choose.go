package filelease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/internal/stores"
)

// lockPool waits until no other process chooses a number of the pool. It creates the pool's
// directory if it is missing. It returns an error if other users can change the pool.
func (s *Store) lockPool(ctx context.Context, p nodelease.Pool) (unlock func(), err error) {
	// Don't create s.dir: if it is missing, its volume may not be mounted.
	if err := trustDir(s.dir); err != nil {
		return nil, err
	}
	if err := os.Mkdir(s.path(p, ""), dirMode.Perm()); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	dir, err := openOwn(s.path(p, ""), os.O_RDONLY, dirMode)
	if err != nil {
		return nil, err
	}
	_ = dir.Close()
	if err := syncDir(s.dir); err != nil {
		return nil, err
	}
	for path := s.path(p, "pool"+lockSuffix); ; {
		lock, err := tryLock(path)
		if err != nil {
			return nil, err
		}
		if lock != nil {
			if ctx.Err() != nil {
				// A later call of the holder may have claimed a number and returned. This call would
				// repeat the claim, and then release it.
				_ = lock.Close()
				return nil, ctx.Err()
			}
			return func() { _ = lock.Close() }, nil
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// choose claims a number. The caller holds the lock of the pool.
func (s *Store) choose(p nodelease.Pool, r nodelease.Request) (nodelease.Claim, error) {
	if err := r.CheckSkew(time.Now()); err != nil {
		return nodelease.Claim{}, fmt.Errorf("filelease: claim a number of pool %q: %w", p.Name, err)
	}
	used, invalid, err := s.records(p)
	if err != nil {
		return nodelease.Claim{}, err
	}
	if c, ok, err := s.repeat(p, r); ok {
		return c, err
	}
	numbers := s.numbers
	if numbers == nil {
		for n := range p.Size {
			numbers = append(numbers, n)
		}
	}
	busy, reserved := &nodelease.BusyError{}, stores.Reserved(p)
	var candidates []record
	var reason error // why a number is invalid
	for _, n := range numbers {
		switch {
		case reserved[n]:
			busy.Reserved++
		case invalid[n] != nil:
			reason = invalid[n]
		default:
			rec := used[n]
			rec.number = n
			candidates = append(candidates, rec)
		}
	}
	// The numbers that were never used come first.
	slices.SortFunc(candidates, func(a, b record) int { return cmp.Or(cmp.Compare(a.Until, b.Until), cmp.Compare(a.number, b.number)) })
	for _, rec := range candidates {
		if c, ok, err := s.try(p, r, rec.number, busy); ok || err != nil {
			return c, err
		}
	}
	switch {
	case reason != nil && busy.Held+busy.Ahead > 0:
		return nodelease.Claim{}, fmt.Errorf("%w; another number is invalid: %v", busy, reason)
	case reason != nil:
		return nodelease.Claim{}, reason
	case busy.Held == 1 && len(candidates) == 1:
		holder := candidates[0].Holder
		return nodelease.Claim{}, fmt.Errorf("filelease: number %d is held by another process or Store of this machine, %q: %w", candidates[0].number, holder[:max(strings.LastIndexByte(holder, ' '), 0)], busy)
	}
	return nodelease.Claim{}, busy
}

// records returns the records of the numbers of the pool that have a file. For a file that is
// invalid, it returns the reason.
func (s *Store) records(p nodelease.Pool) (used map[int]record, invalid map[int]error, err error) {
	files, err := os.ReadDir(s.path(p, ""))
	if err != nil {
		return nil, nil, err
	}
	used, invalid = map[int]record{}, map[int]error{}
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), suffix)
		n, err := strconv.Atoi(name)
		if !ok || err != nil || strconv.Itoa(n) != name {
			continue
		}
		switch rec, err := s.read(p, n); {
		case err == nil:
			used[n] = rec
		case errors.Is(err, nodelease.ErrMisconfigured):
			invalid[n] = err
		default:
			return nil, nil, err
		}
	}
	return used, invalid, nil
}

// repeat renews and returns the holder's claim, if it has one.
func (s *Store) repeat(p nodelease.Pool, r nodelease.Request) (c nodelease.Claim, ok bool, err error) {
	s.mu.Lock()
	holds := maps.Clone(s.held)
	s.mu.Unlock()
	for k, h := range holds {
		if k.pool == p.Name && h.holder == r.Holder {
			// A claim that was renewed since isn't repeated: its nonce isn't "".
			c, err := s.renew(p, nodelease.Claim{Number: k.number, Term: h.term, Holder: h.holder}, r)
			if !errors.Is(err, nodelease.ErrSuperseded) {
				return c, true, err
			}
		}
	}
	return c, false, nil
}

// try claims a number if it is free and its high-water mark is before the holder's clock.
// Otherwise it counts the number in busy.
func (s *Store) try(p nodelease.Pool, r nodelease.Request, n int, busy *nodelease.BusyError) (c nodelease.Claim, ok bool, err error) {
	s.expire(p, n)
	lock, err := tryLock(s.numberPath(p, n, lockSuffix))
	if err != nil {
		return c, false, err
	}
	if lock == nil {
		busy.Held++
		return c, false, nil
	}
	defer func() {
		if !ok {
			_ = lock.Close()
		}
	}()
	// The number may have been released since the caller has read its record.
	rec, err := s.read(p, n)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return c, false, err
	}
	if err == nil && rec.Until >= r.Now {
		stores.CountAhead(busy, r.TimeToPass(rec.Until))
		return c, false, nil
	}
	rec = record{number: n, Size: p.Size, Layout: p.Layout, Record: rec.Claimed(r)}
	if err := s.write(p, rec); err != nil {
		return c, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[key{p.Name, n}] = &hold{
		term: rec.Term, holder: rec.Holder, lock: lock, expires: time.Now().Add(r.TTL),
		timer: time.AfterFunc(abandoned*r.TTL, func() { s.expire(p, n) }),
	}
	return rec.Claim(n, r.TTL, time.Now()), true, nil
}
