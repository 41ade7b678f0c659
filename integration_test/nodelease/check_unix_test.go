//go:build unix

package nodelease

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/sortkey/sortkey/integration_test/nodelease/internal/journal"
)

// late is by how much a process may notice too late that nine tenths of the TTL
// are over: another TTL, since this machine may have other things to do. The exact
// time is for the tests of package nodelease, whose time is fake.
func late(ttl time.Duration) time.Duration { return ttl }

// A tenure is what one process minted in one term of a number.
type tenure struct {
	number      int
	term        int64
	process     int
	after       int64
	ids         int
	first, last int64 // times of IDs, in Unix milliseconds
}

// A minted ID, and by which process.
type minted struct {
	id      journal.ID
	process int32
}

// A collection is all that the processes of a scenario have minted.
type collection struct {
	format   journal.Format
	ids      []minted
	tenures  map[[2]int64]*tenure // by number and term
	problems map[string]int       // of a kind, and how many
	said     []string
}

// problem keeps the first few of each kind.
func (c *collection) problem(kind, format string, args ...any) {
	if c.problems[kind]++; c.problems[kind] <= 3 {
		c.said = append(c.said, kind+": "+fmt.Sprintf(format, args...))
	}
}

// collect reads the journals of all processes, and checks what was minted.
func collect(format journal.Format, journals []string) (*collection, error) {
	c := &collection{format: format, tenures: map[[2]int64]*tenure{}, problems: map[string]int{}}
	for process, name := range journals {
		if err := c.read(process, name); err != nil {
			return nil, err
		}
	}
	c.repeats()
	c.order()
	return c, nil
}

// read reads a journal, and checks it against itself.
func (c *collection) read(process int, name string) error {
	granted := map[[2]int64]journal.Record{} // last
	previous := map[[2]int64]journal.ID{}
	err := journal.Read(name, func(e journal.Record) {
		key := [2]int64{int64(e.Number), e.Term}
		t := c.tenures[key]
		if t == nil {
			t = &tenure{number: e.Number, term: e.Term, process: process, after: e.After}
			c.tenures[key] = t
		}
		if t.process != process {
			c.problem("a term of two processes", "term %d of number %d is of process %d, and of %d", e.Term, e.Number, t.process, process)
		}
		if t.after != e.After {
			c.problem("a term with two high-water marks", "term %d of number %d begins after %d, and after %d", e.Term, e.Number, t.after, e.After)
		}
		if e.Kind == journal.Granted {
			granted[key] = e
			return
		}
		grant := granted[key]
		if trusted := e.Begun - e.Sent; trusted > grant.TTL-grant.TTL/10+late(grant.TTL) {
			c.problem("trusted for too long", "process %d minted in term %d of number %d %v after it asked for the renewal that it was granted last", process, e.Term, e.Number, trusted)
		}
		for b := range slices.Chunk(e.IDs, len(journal.ID{})) {
			id := journal.ID(b)
			at, number := c.format.Decode(id)
			if number != e.Number {
				c.problem("another number", "process %d, which held number %d, minted %x with number %d", process, e.Number, id, number)
			}
			if at <= e.After {
				c.problem("before the high-water mark", "process %d minted %x in term %d of number %d, of %d, which isn't after %d", process, id, e.Term, e.Number, at, e.After)
			}
			if at > grant.Until {
				c.problem("beyond the high-water mark", "process %d minted %x in term %d of number %d, of %d, granted was up to %d", process, id, e.Term, e.Number, at, grant.Until)
			}
			if p, ok := previous[key]; ok && c.format.Increasing && bytes.Compare(p[:], id[:]) >= 0 {
				c.problem("not increasing", "process %d minted %x after %x", process, id, p)
			}
			previous[key] = id
			if t.ids++; t.ids == 1 {
				t.first, t.last = at, at
			}
			t.first, t.last = min(t.first, at), max(t.last, at)
			c.ids = append(c.ids, minted{id, int32(process)})
		}
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was killed before it began
	}
	return err
}

// repeats looks for IDs that there are twice.
func (c *collection) repeats() {
	slices.SortFunc(c.ids, func(a, b minted) int { return bytes.Compare(a.id[:], b.id[:]) })
	for i := 1; i < len(c.ids); i++ {
		if a, b := c.ids[i-1], c.ids[i]; a.id == b.id {
			at, number := c.format.Decode(a.id)
			c.problem("an ID twice", "%x, with number %d, of %d, by processes %d and %d", a.id, number, at, a.process, b.process)
		}
	}
}

// order expects each term of a number to begin after all that came before it.
func (c *collection) order() {
	var before *tenure // with IDs: the last one of the same number
	for _, t := range c.sorted() {
		if before != nil && before.number != t.number {
			before = nil
		}
		if before != nil && t.after < before.last {
			c.problem("a high-water mark behind IDs", "term %d of number %d was to begin after %d, but term %d had minted at %d", t.term, t.number, t.after, before.term, before.last)
		}
		if t.ids == 0 {
			continue
		}
		if before != nil && t.first <= before.last {
			c.problem("terms that overlap", "term %d of number %d began at %d, but term %d had minted at %d", t.term, t.number, t.first, before.term, before.last)
		}
		before = t
	}
}

func (c *collection) sorted() []*tenure {
	return slices.SortedFunc(maps.Values(c.tenures), func(a, b *tenure) int {
		return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.term, b.term))
	})
}

// handovers is how often a number went from one process to another.
func (c *collection) handovers() (n int) {
	all := c.sorted()
	for i := 1; i < len(all); i++ {
		if all[i].number == all[i-1].number && all[i].process != all[i-1].process {
			n++
		}
	}
	return n
}

// with gives the tenures of a number, by term.
func (c *collection) with(number int) (of []*tenure) {
	for _, t := range c.sorted() {
		if t.number == number {
			of = append(of, t)
		}
	}
	return of
}
