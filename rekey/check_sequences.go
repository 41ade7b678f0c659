package rekey

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// sequenceUsers returns the names of the functions whose text names the sequence of a key.
func (m *model) sequenceUsers(c *column) (list []string) {
	if c.Sequence == "" {
		return nil
	}
	_, plain := splitColumn(c.Sequence)
	for _, f := range m.functions {
		if f.names(plain) {
			list = append(list, f.Name)
		}
	}
	return list
}

// checkSequences looks for functions that use the sequence of an old key.
func (m *model) checkSequences() {
	for _, k := range m.keys {
		if k.root == nil || k.root.Sequence == "" {
			continue
		}
		if users := m.sequenceUsers(k.root); len(users) > 0 {
			object, names := "sequence "+k.root.Sequence, strings.Join(users, ", ")
			if k.root.Identity != "" {
				m.problem(object, "is named by %s, and would be dropped with the identity column", "let the function use another sequence", names)
			} else {
				m.note(object, "is named by %s", "contract keeps it: drop it when no function needs it", names)
			}
		}
		for _, f := range m.functions {
			if f.names("pg_get_serial_sequence") && slices.ContainsFunc(m.uses(f), func(u use) bool { return u.relation == k.root.rel.Name }) {
				m.note("function "+f.Name, "names %s and calls pg_get_serial_sequence, which returns NULL after contract", "name a sequence that isn't dropped", k.root.rel.Name)
			}
		}
	}
}

// checkExhausted looks for sequences with few values left. Until contract, each new row needs an
// old key, also that of a program of the new version.
func (m *model) checkExhausted(ctx context.Context, db querier) error {
	for _, k := range m.moved() {
		if k.root == nil || k.root.Sequence == "" || !k.hasDefault() || !k.root.rel.Owned || slices.ContainsFunc(k.columns, func(c *column) bool { return baseTypes[c.Base] != "integer" }) {
			continue
		}
		var s struct {
			Increment, Min, Max, Last, Smallest int64
			Cycle, Called                       bool
		}
		err := readJSON(ctx, db, &s, query("sequence", map[string]string{"Column": k.root.Quoted, "Table": k.root.rel.Name, "Sequence": k.root.Sequence}), k.root.Sequence)
		if err != nil {
			return err
		}
		limit := k.maxOld()
		end, all := min(s.Max, limit), limit // of a sequence that counts up
		if s.Increment < 0 {
			end = max(s.Min, -limit)
		}
		left := (end - s.Last) / s.Increment
		if !s.Called && (end-s.Last)*s.Increment >= 0 {
			left++
		}
		if s.Cycle || left > all/10 {
			continue
		}
		// Count down from the smallest key.
		next := min(s.Smallest, 0) - 1
		remedy := fmt.Sprintf("ALTER SEQUENCE %s INCREMENT BY -1 MINVALUE %d RESTART WITH %d", k.root.Sequence, -limit, next)
		switch {
		case s.Increment > 0 && end < limit:
			remedy = fmt.Sprintf("ALTER SEQUENCE %s AS bigint MAXVALUE %d", k.root.Sequence, limit)
		case s.Increment < 0 || next <= -limit+all/10:
			remedy = "give the column another default until contract, such as a sequence with the values of deleted rows"
		}
		if left <= 0 {
			m.problem("sequence "+k.root.Sequence, "has no values left for old keys, and programs of both versions need them until contract", remedy)
		} else {
			m.note("sequence "+k.root.Sequence, "has only %d values left for old keys, and programs of both versions need them until contract. When it ends, more keys come from:", remedy, left)
		}
	}
	return nil
}
