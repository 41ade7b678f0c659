package rekey

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A fill describes a backfill action. Its first statement fills one batch and returns the
// number of rows that it has filled, and its second reports whether rows are left. That of references
// has a third one, which reports whether rows are left that refer to no row.
//
// Without Pages, batches follow the order of (time, old key). The parameters are the key of
// the last row, the last slot, the size of the batch and, with Moment, the time of the last
// row; see fillKeys. With Pages, the parameters are the first page and the one after the
// last.
type fill struct {
	Table  string `json:"table"`
	Rows   int64  `json:"rows"` // estimated
	Pages  bool   `json:"pages,omitempty"`
	Moment bool   `json:"moment,omitempty"`
}

// milliseconds renders the time of a row in Unix milliseconds.
func (k *key) milliseconds(alias string) string {
	if k.Times.Key != "" {
		return keyForms[k.Times.Key].milliseconds(k, alias+"."+k.root.old())
	}
	if !k.timed() {
		return fmt.Sprintf("%d::bigint", k.start().UnixMilli())
	}
	return "floor(extract(epoch FROM " + k.timeOf(alias) + ") * 1000)::bigint"
}

// timed reports whether the rows have times of their own outside of their keys.
func (k *key) timed() bool { return k.times != nil || k.Times.SQL != "" }

// start returns the time of rows without a time.
func (k *key) start() time.Time {
	if k.Times.Start.IsZero() {
		return time.UnixMilli(k.format.epochMS)
	}
	return k.Times.Start
}

// timeOf renders the time of a row. It can become infinite after expand.
func (k *key) timeOf(alias string) string {
	value, kind := "("+k.Times.SQL+")", "timestamptz" // only one relation has columns where it is used
	if k.times != nil {
		value, kind = k.times.Quoted, k.times.Type
		if alias != "" {
			value = alias + "." + value
		}
	}
	layout := "2006-01-02 15:04:05.999999+00"
	if kind == "timestamp" {
		layout = strings.TrimSuffix(layout, "+00")
	}
	return "(CASE WHEN isfinite(" + value + ") THEN " + value + " ELSE '" + k.start().UTC().Format(layout) + "'::" + kind + " END)"
}

// order renders the expressions that determine the order of IDs. The last one is the key.
func (k *key) order(alias string) []string {
	column := k.root.old()
	if alias != "" {
		column = alias + "." + column
	}
	switch {
	case k.byBytes():
		return []string{column + ` COLLATE "C"`}
	case k.timed():
		return []string{k.timeOf(alias), column}
	}
	return []string{column}
}

// momentType returns the type of the first expression of the order, or "" if that is the key.
func (k *key) momentType() string {
	switch {
	case k.times != nil:
		return k.times.Type
	case k.Times.SQL != "":
		return "timestamptz"
	}
	return ""
}

// needsIndex reports whether no index has the order.
func (k *key) needsIndex() bool { return k.momentType() != "" || k.byBytes() }

// fillKeys renders a batch of the backfill of a key. Each row gets a slot, which is a time
// unit and a sequence number in it: the first slot of the row's time unit, or the slot
// after the previous row's if that is later. So IDs have the order of the rows.
//
// The update sets references, too, if their keys are done.
func (m *model) fillKeys(k *key, done []*key) string {
	r, f := k.root.rel, k.format
	order := k.order("t")
	after := []string{"$1::text::" + k.root.Type}
	moment := "NULL::text"
	if k.byBytes() {
		after[0] += ` COLLATE "C"`
	}
	if kind := k.momentType(); kind != "" {
		after = []string{"$4::text::" + kind, after[0]}
		moment = order[0] + "::text"
	}
	id := k.idAt(fmt.Sprintf("to_timestamp((%d + slot / %d * %d) / 1000.0)", f.epochMS, f.perUnit, f.unitMS), fmt.Sprintf("(slot %% %d)::integer", f.perUnit))
	if f.pool == "" && !f.random {
		// Without node numbers, an ID of a time since expand could equal a new ID.
		id = fmt.Sprintf("CASE WHEN slot / %d * %d + %d < (SELECT floor(extract(epoch FROM started_at) * 1000) FROM %s) THEN %s ELSE %s END",
			f.perUnit, f.unitMS, f.epochMS, stateTable(), id, k.nextID(""))
	}
	// A row that programs referred to before the triggers saw it has its new key already.
	sets := []string{k.root.new() + " = coalesce((SELECT p.new_key::" + f.sqlType + " FROM " + pendingTable() + " p WHERE p.key = " + strconv.Itoa(k.n) +
		" AND p.old_key = s.k::text COLLATE \"C\"), s.id)"}
	for _, c := range r.columns {
		for _, other := range done {
			if c.key == other && !c.root && c.plain() {
				// If a program has changed the reference since the batch began, its trigger has set
				// the new key, and the lookup might not see the row that it refers to.
				sets = append(sets, c.new()+" = coalesce(t."+c.new()+", "+m.lookup(c, "t")+")")
			}
		}
	}
	return query("fill keys", values{"key": k.root.old(), "moment": moment, "ms": k.milliseconds("t"), "epoch": f.epochMS, "unit": f.unitMS, "per_unit": f.perUnit,
		"order": strings.Join(order, ", "), "table": r.Name, "fresh": k.root.new(), "after": strings.Join(after, ", "), "sets": strings.Join(sets, ", "), "id": id})
}

// equals renders the condition for the row of a key that a reference refers to, for aliases
// of both tables.
func (c *column) equals(k *key, root, reference string) string {
	return root + "." + k.root.old() + " = " + c.value(k, reference) + k.root.collate()
}

// lookup renders the new value of a reference. A reference without a foreign key can refer to
// a row that was deleted.
func (m *model) lookup(c *column, alias string) string {
	return c.newValue(alias, func(t target) string {
		root := t.key.root
		found := "(SELECT p." + root.new() + " FROM ONLY " + root.rel.Name + " p WHERE " + c.equals(t.key, "p", alias) + ")"
		if !m.loose(c) {
			return found
		}
		return "coalesce(" + found + ", (SELECT d.new_key::" + t.key.format.sqlType + " FROM " + pendingTable() + " d WHERE " + c.pair(t.key, "d", alias) + "))"
	})
}

// pair renders the condition for the pair of a reference's key.
func (c *column) pair(k *key, pending, reference string) string {
	return pending + ".key = " + strconv.Itoa(k.n) + " AND " + pending + ".old_key = (" + c.value(k, reference) + `)::text COLLATE "C"`
}

// loose reports whether a reference has no foreign key.
func (m *model) loose(c *column) bool {
	return !c.root && !slices.ContainsFunc(m.foreignKeys, func(f *foreignKey) bool { return f.Table == c.rel.OID && f.Columns[0] == c.Num })
}

// left renders a query for whether rows have no new key.
func (k *key) left() string {
	return "SELECT EXISTS (SELECT FROM ONLY " + k.root.rel.Name + " t WHERE t." + k.root.new() + " IS NULL)"
}

// fillInPlace renders a batch of the backfill of a key that keeps its values.
func (k *key) fillInPlace() string {
	c := k.root
	return query("fill in place", values{"table": c.rel.Name, "fresh": c.new(), "key": c.old()})
}

// fillReferences renders a batch of the backfill of a table's references, a query for whether
// rows are left, and one for whether rows are left that refer to no row. It leaves keys that are set.
func (m *model) fillReferences(r *relation) []string {
	var sets, missing, lost, complete []string
	for _, c := range r.columns {
		if c.root {
			continue
		}
		wrong := "t." + c.old() + " IS NOT NULL AND t." + c.new() + " IS NULL"
		sets = append(sets, c.new()+" = coalesce(t."+c.new()+", "+m.lookup(c, "t")+")")
		missing = append(missing, wrong)
		lost = append(lost, wrong+" AND "+m.lookup(c, "t")+" IS NULL")
		complete = append(complete, "(t."+c.old()+" IS NULL OR t."+c.new()+" IS NOT NULL)")
	}
	if len(sets) == 0 {
		return nil
	}
	wrong := strings.Join(missing, " OR ")
	exists := func(where string) string {
		return "SELECT EXISTS (SELECT FROM ONLY " + r.Name + " t WHERE " + where + ")"
	}
	return []string{
		query("fill references", values{"table": r.Name, "sets": strings.Join(sets, ", "), "wrong": wrong, "complete": strings.Join(complete, " AND ")}),
		exists(wrong), exists(strings.Join(lost, " OR ")),
	}
}

// settle renders the statements that correct the references to rows that differ from their pairs. Before the
// backfill, a transaction that refers to a row without seeing it chooses a pair for the row's key. If it commits
// after the backfill, the row has another new key, and its references get that one.
func (m *model) settle(k *key) []string {
	sql := []string{"SET LOCAL " + backfillSetting + " = 'on'"}
	if m.replicaRole {
		sql = append(sql, "SET LOCAL session_replication_role = 'replica'")
	}
	var updates []string
	for _, r := range m.relations {
		for _, c := range r.columns {
			for _, t := range c.targets {
				if c.root || t.key != k {
					continue
				}
				update := "UPDATE ONLY " + r.Name + " t SET " + c.new() + " = pair.fresh WHERE t." + c.new() + " = pair.stale AND " + c.value(k, "t") + k.root.collate() + " = pair.old"
				if t.where != "" {
					update += " AND " + t.meets("t")
				}
				updates = append(updates, update)
			}
		}
	}
	if updates == nil {
		return nil
	}
	return append(sql, "DO "+body(query("settle", values{"pending": pendingTable(), "table": k.root.rel.Name, "key": k.n, "old": k.root.old(), "new": k.root.new(),
		"old_type": k.root.Type, "new_type": k.format.sqlType, "collation": k.root.collate(), "updates": updates})))
}
