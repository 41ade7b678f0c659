package nodelease_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/leasetest"
)

// A model is a store of one kind. For zookeeper and file, a claim lasts as long as the session
// of its process, so its TTL in the leasetest.Store is endless.
//
//	postgres   a claim expires a TTL after its last renewal, by the store's clock
//	zookeeper  a session ends when the store hasn't heard from it for a session timeout, which
//	           also limits the TTL; a restart of the store renews all sessions
//	file       a session ends with its process, and a claim if it isn't renewed for ten TTLs; the
//	           TTL is limited to 3 s; the machine's wall clock is the store's
type model struct {
	leasetest.Store
	s       *simulation
	offset  time.Duration // error of the store's clock
	limit   time.Duration // of the TTL
	claims  map[int]*held
	written map[int]int64 // the highest mark of each number
	used    map[int]int64 // the time of the last ID of each number
}

// held is a claim of a session.
type held struct {
	pool    nodelease.Pool
	claim   nodelease.Claim
	session *session
	renewed time.Time
}

// A session is the connection of a process and its copies.
type session struct {
	members []*process
	heard   time.Time // the true time at which the store last heard from it
}

const (
	endless       = time.Hour // longer than a simulation
	maxFileTTL    = 3 * time.Second
	abandonedFile = 10 * maxFileTTL
)

func newModel(s *simulation) *model {
	m := &model{s: s, claims: map[int]*held{}, written: map[int]int64{}, used: map[int]int64{}, limit: s.ttl}
	switch s.kind {
	case "zookeeper":
		m.limit = max(time.Second, s.ttl*time.Duration(50+s.seed%100)/100)
	case "file":
		m.limit = min(s.ttl, maxFileTTL)
	}
	// The mutex of the simulation is held during calls of the Store.
	m.Clock = func() time.Time {
		switch s.kind {
		case "file":
			return s.all[0].m.now()
		case "zookeeper":
			return s.now().Add(m.offset)
		}
		return s.begun.Add(time.Duration(float64(s.now().Sub(s.begun)) * s.rate)).Add(m.offset)
	}
	return m
}

// observe updates the sessions, and ends the claims that lasted as long as sessions that have
// ended. After a gap, in which all machines were suspended, no session was heard from. The
// caller holds s.mu.
func (m *model) observe(gap bool) {
	if m.s.kind == "postgres" {
		return
	}
	now := m.s.now()
	for _, p := range m.s.all {
		own := p.session
		back := p.reconnected()
		if m.s.kind == "file" {
			back = time.Time{} // suspended or not, its lock is held
		} else if gap {
			back = time.Now()
		}
		if own.heard.IsZero() || !p.dead && !back.After(time.Now()) && back.Add(m.s.skipped).Sub(own.heard) <= m.limit {
			own.heard = now
		}
	}
	for _, n := range slices.Sorted(maps.Keys(m.claims)) {
		h := m.claims[n]
		if !m.alive(h.session) || m.s.kind == "file" && now.Sub(h.renewed) > 10*m.limit {
			// The mark stays.
			if err := m.Store.Release(context.Background(), h.pool, h.claim, h.claim.Until); err != nil {
				m.s.fail("end the claim of number %d: %v", n, err)
			}
			delete(m.claims, n)
		}
	}
	for _, p := range m.s.all {
		if !p.dead && !m.alive(p.session) && !p.reconnected().After(time.Now()) {
			p.session.heard = now // a new session
		}
	}
}

// alive reports whether a session lasts.
func (m *model) alive(own *session) bool {
	switch m.s.kind {
	case "zookeeper":
		return m.s.now().Sub(own.heard) <= m.limit
	case "file":
		return slices.ContainsFunc(own.members, func(p *process) bool { return !p.dead || p.closing })
	}
	return true
}

// heldByDead returns the count of claims of dead processes in sessions that last. The caller
// holds m.s.mu.
func (m *model) heldByDead() (n int) {
	for _, h := range m.claims {
		name := h.claim.Holder[:max(0, strings.LastIndexByte(h.claim.Holder, ' '))]
		if slices.ContainsFunc(m.s.all, func(p *process) bool { return p.dead && p.name == name }) {
			n++
		}
	}
	return n
}

// restarts restarts the store, which then renews all sessions.
func (m *model) restarts(at time.Time) {
	if m.s.kind == "zookeeper" {
		for _, p := range m.s.all {
			if m.alive(p.session) {
				p.session.heard = at.Add(m.s.skipped)
			}
		}
	}
}

// loseWrites makes the store forget the last writes. A copy that has lost its claim may then be the
// first to renew it. The caller holds s.mu.
func (m *model) loseWrites(lag time.Duration) {
	m.Store.LoseWrites(m.Clock().Add(-lag))
	clear(m.claims)
	for _, p := range m.s.all {
		for _, g := range p.grants {
			if g.twin {
				g.copied, g.copiedAt = true, time.Now()
			}
		}
	}
}

// request returns a request as the model grants it, and as it passes it to the Store.
func (m *model) request(r nodelease.Request) (granted, passed nodelease.Request) {
	if m.s.kind == "postgres" {
		return r, r
	}
	granted = r.LimitTTL(m.limit)
	passed = granted
	passed.TTL = endless
	return granted, passed
}

func (m *model) claim(own *session, p nodelease.Pool, r nodelease.Request) (nodelease.Claim, error) {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	m.observe(false)
	if !m.alive(own) {
		return nodelease.Claim{}, errKilled
	}
	granted, passed := m.request(r)
	c, err := m.Store.Claim(context.Background(), p, passed)
	if err != nil {
		return c, err
	}
	// A repeated call returns the same claim, even if it is late and the holder uses the claim.
	old := m.claims[c.Number]
	repeated := old != nil && old.claim.Term == c.Term && old.claim.Holder == c.Holder
	if used := m.used[c.Number]; !repeated && c.After < used {
		m.s.fail("number %d was granted to %q after %d, but has an ID for %d", c.Number, r.Holder, c.After, used)
	}
	m.granted(p, c, own)
	c.TTL = granted.TTL
	return c, nil
}

func (m *model) renew(own *session, p nodelease.Pool, c nodelease.Claim, r nodelease.Request) (nodelease.Claim, error) {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	m.observe(false)
	if !m.alive(own) {
		return nodelease.Claim{}, errKilled
	}
	granted, passed := m.request(r)
	got, err := m.Store.Renew(context.Background(), p, c, passed)
	if err != nil {
		return got, err
	}
	if h := m.claims[c.Number]; h != nil && h.claim.Term == got.Term && got.Until < h.claim.Until {
		m.s.fail("a renewal lowered the high-water mark of number %d from %d to %d", c.Number, h.claim.Until, got.Until)
	}
	m.granted(p, got, own)
	got.TTL = granted.TTL
	return got, nil
}

func (m *model) granted(p nodelease.Pool, c nodelease.Claim, own *session) {
	m.claims[c.Number] = &held{p, c, own, m.s.now()}
	m.written[c.Number] = max(m.written[c.Number], c.Until)
}

func (m *model) release(p nodelease.Pool, c nodelease.Claim, mark int64) error {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	m.observe(false)
	if h := m.claims[c.Number]; h != nil && h.claim.Term == c.Term && h.claim.Holder == c.Holder && c.Knows(h.claim.Nonce) {
		delete(m.claims, c.Number)
	}
	return m.Store.Release(context.Background(), p, c, mark)
}

// use notes an ID.
func (m *model) use(p *process, x minted) {
	if m.written[x.number] < x.at {
		m.s.fail("%s created %v for %d, after the high-water mark %d in the store", p.name, x.id, x.at, m.written[x.number])
	}
	m.used[x.number] = max(m.used[x.number], x.at)
}
