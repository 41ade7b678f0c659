package gormplugin

import (
	"context"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// A span lists rows of a statement by their indexes: from up to but not including to,
// except for the rows in without, which are in ascending order.
type span struct {
	from, to int
	without  []int
}

// add adds row i, or else remembers that it isn't in the span. Rows come in ascending
// order. It allocates only if rows with and without an ID are mixed.
func (s *span) add(i int, in bool) {
	switch {
	case in:
		s.to = i + 1
	case s.to == 0:
		s.from = i + 1
	default:
		s.without = append(s.without, i)
	}
}

func (s *span) has(i int) bool {
	if i < s.from || i >= s.to {
		return false
	}
	_, excluded := slices.BinarySearch(s.without, i)
	return !excluded
}

// isAll reports whether the span lists n rows.
func (s *span) isAll(n int) bool { return s.from == 0 && s.to == n && len(s.without) == 0 }

// A generation lists the keys that the plugin generated in the rows of a Create.
type generation struct {
	plan  *plan
	spans []span // the rows of each key in the plan; nil means all rows
	// ids has, per key and row, the generated ID, which a hook may replace. It is nil if the
	// statement had no ON CONFLICT before the hooks.
	ids [][]any
	// rows are the statement's, because a RETURNING * empties its slice. Without one, they may be
	// invalid.
	rows reflect.Value

	*upsert // nil until the INSERT, and if the plugin left the statement unchanged
}

// generationClause is the name of the clause that holds a *generation. GORM ignores clauses
// that the dialect doesn't list. A clause costs less than a setting, and statements for
// associations don't inherit it. Most statements need none: without the clause, the plugin
// has generated all keys in all rows.
const generationClause = "sortkey:generation"

// Build implements [clause.Expression]. GORM doesn't call it.
func (*generation) Build(clause.Builder) {}

// generation returns the generation of a statement.
func (p *planner) generation(stmt *gorm.Statement) *generation {
	if g, ok := stmt.Clauses[generationClause].Expression.(*generation); ok {
		return g
	}
	return &p.planFor(stmt.Schema).whole
}

// store makes a statement hold a generation.
func (g *generation) store(stmt *gorm.Statement) {
	stmt.Clauses[generationClause] = clause.Clause{Expression: g}
}

// generated remembers the rows in which a Create filled the keys of a plan.
func (p *plan) generated(stmt *gorm.Statement, spans []span) {
	n, all, some := count(stmt.ReflectValue), true, false
	for i := range spans {
		all = all && (p.keys[i].fills == nil || spans[i].isAll(n))
		some = some || spans[i].to > 0
	}
	_, conflicts := stmt.Clauses[onConflict]
	switch {
	case some && (conflicts || !all || returnsAll(stmt)):
		g := &generation{plan: p, spans: slices.Clone(spans)}
		g.keepRows(stmt)
		if conflicts {
			g.copyIDs(stmt)
		}
		g.store(stmt)
	case !some && len(spans) > 0:
		p.none.store(stmt)
	}
}

// keepRows remembers the rows of the statement.
func (g *generation) keepRows(stmt *gorm.Statement) {
	g.rows = stmt.ReflectValue
	if g.rows.Kind() == reflect.Slice {
		g.rows = g.rows.Slice(0, g.rows.Len())
	}
}

// returnsAll reports whether a statement has RETURNING *.
func returnsAll(stmt *gorm.Statement) bool {
	c, ok := stmt.Clauses[returning]
	if !ok {
		return false
	}
	given, _ := c.Expression.(clause.Returning)
	return len(given.Columns) == 0 || len(given.Columns) == 1 && given.Columns[0].Name == "*"
}

// copyIDs remembers the IDs that the rows have now as the generated ones.
func (g *generation) copyIDs(stmt *gorm.Statement) {
	n := count(stmt.ReflectValue)
	g.ids = make([][]any, len(g.plan.keys))
	for j := range g.ids {
		g.ids[j] = make([]any, n)
		for i := range n {
			if row := rowAt(stmt.ReflectValue, i); row.IsValid() && g.has(j, i) {
				g.ids[j][i] = g.plan.keys[j].id(stmt.Context, row)
			}
		}
	}
}

// has reports whether the plugin generated a key of the plan in a row.
func (g *generation) has(key, row int) bool {
	if g.spans == nil {
		return g.plan.keys[key].fills != nil
	}
	return g.spans[key].has(row)
}

// reset sets a generated key to zero in all rows. In a map, it deletes the key.
func (g *generation) reset(stmt *gorm.Statement, key int) {
	rows := g.rows
	if !rows.IsValid() {
		rows = stmt.ReflectValue
	}
	for i := range count(rows) {
		if row := rowAt(rows, i); row.IsValid() && g.has(key, i) {
			g.plan.keys[key].reset(stmt.Context, row)
		}
	}
}

func (k *key) reset(ctx context.Context, row reflect.Value) {
	if row.Kind() != reflect.Map {
		k.in(ctx, row).SetZero()
		return
	}
	m := row.Interface().(map[string]any)
	if name, missing := k.entry(m); !missing {
		delete(m, name)
	}
}

// id returns the ID that a row has in the key, or nil if it has none.
func (k *key) id(ctx context.Context, row reflect.Value) any {
	if row.Kind() == reflect.Map {
		m := row.Interface().(map[string]any)
		name, missing := k.entry(m)
		if missing {
			return nil
		}
		return m[name]
	}
	field := k.in(ctx, row)
	if isMissing(field) {
		return nil
	}
	return unpacked(field).Interface()
}

// A family connects a Create or an Update with the statements that save its associations.
type family struct {
	root  *gorm.Statement
	saved map[any]bool // the addresses of the rows that the statements for associations have saved
}

// familyKey is the key of the statement setting that holds a *family. Statements for
// associations inherit settings, but statements for join tables don't.
type familyKey struct{}

// enter makes a statement the root of a family, unless it has one.
func enter(stmt *gorm.Statement) {
	if _, inherited := stmt.Settings.Load(familyKey{}); !inherited {
		stmt.Settings.Store(familyKey{}, &family{root: stmt})
	}
}

// leave is the callback that runs after everything else. The caller may use the statement again.
func leave(db *gorm.DB) {
	if f := familyOf(db.Statement); f != nil && f.root == db.Statement {
		db.Statement.Settings.Delete(familyKey{})
	}
}

// familyOf returns the family of a statement, or nil.
func familyOf(stmt *gorm.Statement) *family {
	v, _ := stmt.Settings.Load(familyKey{})
	f, _ := v.(*family)
	return f
}

// savesAssociation reports whether a statement of the family saves an association.
func (f *family) savesAssociation(stmt *gorm.Statement) bool { return f != nil && f.root != stmt }

// hasSaved reports whether an association of the family has saved a row.
func (f *family) hasSaved(row reflect.Value) bool { return f != nil && f.saved[addressOf(row)] }

// addressOf returns a value that differs between rows. A struct without an address is the
// only row of its statement.
func addressOf(row reflect.Value) any {
	switch {
	case row.Kind() == reflect.Map:
		return row.Pointer()
	case row.CanAddr():
		return row.Addr().Interface()
	}
	return nil
}

// count returns the number of rows in a statement's ReflectValue.
func count(rows reflect.Value) int {
	switch rows.Kind() {
	case reflect.Slice, reflect.Array:
		return rows.Len()
	}
	return 1
}

// rowAt returns a row of a statement's ReflectValue: a struct, a map, or an invalid Value for
// a nil pointer.
func rowAt(rows reflect.Value, i int) reflect.Value {
	switch rows.Kind() {
	case reflect.Slice, reflect.Array:
		return element(rows, i)
	}
	return rows
}
