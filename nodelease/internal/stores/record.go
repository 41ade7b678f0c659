// Package stores has the parts that several lease stores share: the state of a number, and calls
// that end with their context.
package stores

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/sortkey/sortkey/nodelease"
)

// A Record is the state of a number, as stores keep it in JSON.
type Record struct {
	Term   int64  `json:"term"`
	Holder string `json:"holder"` // "" if the number was released, or never used
	Nonce  string `json:"nonce"`  // of the last renewal; "" before it
	After  int64  `json:"after"`  // in Unix milliseconds, as Until
	Until  int64  `json:"until"`  // the high-water mark
}

// Claimed returns the record after a holder has claimed the number.
func (m Record) Claimed(r nodelease.Request) Record {
	return Record{Term: m.Term + 1, Holder: r.Holder, After: m.Until, Until: max(m.Until, r.Until)}
}

// Renewed returns the record after a renewal.
func (m Record) Renewed(r nodelease.Request) Record {
	m.Until, m.Nonce = max(m.Until, r.Until), r.Nonce
	return m
}

// Released returns the record after a release.
func (m Record) Released(highWaterMark int64) Record {
	m.Holder, m.Until = "", max(highWaterMark, m.After)
	return m
}

// Claim returns the claim of the number's holder. now is the time of the store's clock.
func (m Record) Claim(number int, ttl time.Duration, now time.Time) nodelease.Claim {
	return nodelease.Claim{Number: number, Term: m.Term, Holder: m.Holder, After: m.After, Until: m.Until, TTL: ttl, Time: now, Nonce: m.Nonce}
}

// Of reports whether the number is held, with the term and the holder of a claim.
func (m Record) Of(c nodelease.Claim) bool {
	return m.Holder != "" && m.Term == c.Term && m.Holder == c.Holder
}

// Check returns an error that wraps [nodelease.ErrSuperseded] if a claim is over, or if a copy
// of its holder has renewed it.
func (m Record) Check(c nodelease.Claim) error {
	if !m.Of(c) {
		now := "released"
		if m.Holder != "" {
			now = fmt.Sprintf("held by %q", m.Holder)
		}
		return fmt.Errorf("the number is %s in term %d; claim another: %w", now, m.Term, nodelease.ErrSuperseded)
	}
	if !c.Knows(m.Nonce) {
		return fmt.Errorf("a copy of this process has renewed the claim; claim another: %w", nodelease.ErrSuperseded)
	}
	return nil
}

// Validate returns an error if no claim can follow the record, which people may edit.
func (m Record) Validate() error {
	if m.Term < 1 || m.Term == math.MaxInt64 || m.After < 0 || m.Until < m.After {
		return errors.New("want a term from 1, and times with 0 <= after <= until")
	}
	return nil
}

// CheckLayout returns an error if a pool was created with another size or layout. The store
// and the pool are the beginning of its text.
func CheckLayout(pool string, p nodelease.Pool, size int, layout string) error {
	if size == p.Size && layout == p.Layout {
		return nil
	}
	return fmt.Errorf("%s: created with %d numbers and layout %q, but this program has %d and %q; use the same size and layout, or another pool name: %w",
		pool, size, layout, p.Size, p.Layout, nodelease.ErrPoolMismatch)
}

// Reserved returns the numbers in Pool.Reserved.
func Reserved(p nodelease.Pool) map[int]bool {
	reserved := make(map[int]bool, len(p.Reserved))
	for _, n := range p.Reserved {
		reserved[n] = true
	}
	return reserved
}

// CountAhead counts a free number whose high-water mark the clock passes after the time left.
func CountAhead(busy *nodelease.BusyError, left time.Duration) {
	if busy.Ahead == 0 || left < busy.RetryAfter {
		busy.RetryAfter = left
	}
	busy.Ahead++
}
