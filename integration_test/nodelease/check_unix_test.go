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

// late is how late a process may notice that nine tenths of the TTL are over: another
// TTL, since the machine may be busy. The tests of package nodelease check the exact
// time with a fake clock.
func late(ttl time.Duration) time.Duration { return ttl }

// A tenure summarizes the IDs of one process in one term of a number.
type tenure struct {
	number      int
	term        int64
	process     int
	after       int64
	ids         int
	first, last int64 // times of IDs, in Unix milliseconds
}

// A minted is an ID with the process that created it.
type minted struct {
	id      journal.ID
	process int32
}

// A collection has all IDs of a scenario's processes.
type collection struct {
	format   journal.Format
	ids      []minted
	tenures  map[[2]int64]*tenure // by number and term
	problems map[string]int       // counts by kind
	said     []string
}

// problem counts a problem, and keeps the texts of the first three of each kind.
func (c *collection) problem(kind, format string, args ...any) {
	if c.problems[kind]++; c.problems[kind] <= 3 {
		c.said = append(c.said, kind+": "+fmt.Sprintf(format, args...))
	}
}

// collect reads the journals of all processes and checks their IDs.
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

// read reads a journal and checks its IDs against its claims.
func (c *collection) read(process int, name string) error {
	granted := map[[2]int64]journal.Record{} // the last grant of each term
	previous := map[[2]int64]journal.ID{}
	err := journal.Read(name, func(e journal.Record) {
		key := [2]int64{int64(e.Number), e.Term}
		t := c.tenures[key]
		if t == nil {
			t = &tenure{number: e.Number, term: e.Term, process: process, after: e.After}
			c.tenures[key] = t
		}
		if t.process != process {
			c.problem("term with two processes", "processes %[3]d and %[4]d have term %[1]d of number %[2]d", e.Term, e.Number, t.process, process)
		}
		if t.after != e.After {
			c.problem("term with two starts", "term %d of number %d starts after %d, and after %d", e.Term, e.Number, t.after, e.After)
		}
		if e.Kind == journal.Granted {
			granted[key] = e
			return
		}
		grant := granted[key]
		if trusted := e.Begun - e.Sent; trusted > grant.TTL-grant.TTL/10+late(grant.TTL) {
			c.problem("trusted for too long", "process %d created IDs in term %d of number %d %v after it sent its last granted request", process, e.Term, e.Number, trusted)
		}
		for b := range slices.Chunk(e.IDs, len(journal.ID{})) {
			id := journal.ID(b)
			at, number := c.format.Decode(id)
			if number != e.Number {
				c.problem("wrong number", "process %d, which held number %d, created %x with number %d", process, e.Number, id, number)
			}
			if at <= e.After {
				c.problem("before the high-water mark", "process %d created %x in term %d of number %d with time %d, which isn't after %d", process, id, e.Term, e.Number, at, e.After)
			}
			if at > grant.Until {
				c.problem("beyond the high-water mark", "process %d created %x in term %d of number %d with time %d, which is after %d", process, id, e.Term, e.Number, at, grant.Until)
			}
			if p, ok := previous[key]; ok && c.format.Increasing && bytes.Compare(p[:], id[:]) >= 0 {
				c.problem("not increasing", "process %d created %x after %x", process, id, p)
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
		return nil // the process was killed before it created its journal
	}
	return err
}

// repeats looks for duplicate IDs.
func (c *collection) repeats() {
	slices.SortFunc(c.ids, func(a, b minted) int { return bytes.Compare(a.id[:], b.id[:]) })
	for i := 1; i < len(c.ids); i++ {
		if a, b := c.ids[i-1], c.ids[i]; a.id == b.id {
			at, number := c.format.Decode(a.id)
			c.problem("duplicate ID", "processes %[4]d and %[5]d created %[1]x with number %[2]d and time %[3]d", a.id, number, at, a.process, b.process)
		}
	}
}

// order checks that each term of a number starts after the IDs of all earlier terms.
func (c *collection) order() {
	var before *tenure // the last tenure of the same number that has IDs
	for _, t := range c.sorted() {
		if before != nil && before.number != t.number {
			before = nil
		}
		if before != nil && t.after < before.last {
			c.problem("high-water mark before earlier IDs", "term %d of number %d starts after %d, but term %d has an ID of time %d", t.term, t.number, t.after, before.term, before.last)
		}
		if t.ids == 0 {
			continue
		}
		if before != nil && t.first <= before.last {
			c.problem("overlapping terms", "term %d of number %d has an ID of time %d, but term %d has one of time %d", t.term, t.number, t.first, before.term, before.last)
		}
		before = t
	}
}

func (c *collection) sorted() []*tenure {
	return slices.SortedFunc(maps.Values(c.tenures), func(a, b *tenure) int {
		return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.term, b.term))
	})
}

// handovers counts how often a number passed from one process to another.
func (c *collection) handovers() (n int) {
	all := c.sorted()
	for i := 1; i < len(all); i++ {
		if all[i].number == all[i-1].number && all[i].process != all[i-1].process {
			n++
		}
	}
	return n
}

// with returns the tenures of a number in the order of their terms.
func (c *collection) with(number int) (of []*tenure) {
	for _, t := range c.sorted() {
		if t.number == number {
			of = append(of, t)
		}
	}
	return of
}
