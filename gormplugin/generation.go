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
	spans []span        // the rows of each key in the plan; nil means all rows
	rows  reflect.Value // the statement's rows; invalid if they are the statement's ReflectValue
	// elements is a copy of the slice of rows, which a RETURNING * replaces; otherwise invalid.
	elements reflect.Value
	// ids has, per key and row, the generated ID, which a hook may replace. It is nil if the
	// statement had no ON CONFLICT that compares IDs before the hooks.
	ids [][]any

	// family is nil for a statement without associations that is no association itself.
	family *family
	nested bool // the statement saves an association

	*upsert // nil if the statement has no ON CONFLICT
}

// A family has the generations of a Create or an Update and of all associations that it
// saves, because they fail together.
type family struct {
	root        *gorm.Statement
	generations []*generation
	saved       map[any]bool // the rows that statements for associations have inserted
}

// familyKey is the key of the statement setting that holds a *family. Statements for
// associations inherit settings, but statements for join tables don't.
type familyKey struct{}

// generationClause is the name of the clause that holds a *generation. GORM ignores clauses
// that the dialect doesn't list. A clause costs less than a setting, and statements for
// associations don't inherit it. Most statements need none: without the clause, the plugin
// has generated all keys in all rows.
const generationClause = "sortkey:generation"

// Build implements [clause.Expression]. GORM doesn't call it.
func (*generation) Build(clause.Builder) {}

// generationOf returns the generation that a statement holds, or nil.
func generationOf(stmt *gorm.Statement) *generation {
	if len(stmt.Clauses) == 0 {
		return nil
	}
	g, _ := stmt.Clauses[generationClause].Expression.(*generation)
	return g
}

// store makes a statement hold a generation.
func (g *generation) store(stmt *gorm.Statement) {
	stmt.Clauses[generationClause] = clause.Clause{Expression: g}
}

// nothing is the generation of a statement in which the plugin generated no key.
var nothing = generation{plan: new(plan)}

// generated remembers the rows in which a Create filled the keys of a plan.
func (p *plan) generated(stmt *gorm.Statement, spans []span) {
	n, all, some := count(stmt.ReflectValue), len(spans) == len(p.keys), false
	for i := range spans {
		all = all && (p.keys[i].fills == nil || spans[i].isAll(n))
		some = some || spans[i].to > 0
	}
	conflicts := false
	if len(stmt.Clauses) > 0 {
		// The statement may be a clone of one that holds a generation.
		delete(stmt.Clauses, generationClause)
		_, conflicts = stmt.Clauses[onConflict]
		all = all && !returnsAll(stmt)
	}
	switch {
	case conflicts || p.associated || some && !all:
		g := p.generation(stmt, spans)
		g.enter(stmt)
		if conflict, _ := conflictOf(stmt); conflicts && g.compared(stmt, conflict) {
			g.copyIDs(stmt.Context)
		}
		g.store(stmt)
	case !some:
		nothing.store(stmt)
	}
}

func (p *plan) generation(stmt *gorm.Statement, spans []span) *generation {
	g := &generation{plan: p, rows: stmt.ReflectValue}
	if spans != nil {
		// A key without a span was not filled because another one failed.
		g.spans = make([]span, len(p.keys))
		copy(g.spans, spans)
	}
	if g.rows.Kind() == reflect.Slice {
		g.rows = g.rows.Slice(0, g.rows.Len())
		if returnsAll(stmt) {
			g.elements = reflect.AppendSlice(reflect.MakeSlice(g.rows.Type(), 0, g.rows.Len()), g.rows)
		}
	}
	return g
}

// returnsAll reports whether a statement has RETURNING *. GORM then replaces the rows of a slice
// by the returned ones, also if the call fails later.
func returnsAll(stmt *gorm.Statement) bool {
	c, ok := stmt.Clauses[returning]
	if !ok {
		return false
	}
	given, _ := c.Expression.(clause.Returning)
	return len(given.Columns) == 0 || len(given.Columns) == 1 && given.Columns[0].Name == "*"
}

// enter adds the generation to the family of its statement.
func (g *generation) enter(stmt *gorm.Statement) {
	v, inherited := stmt.Settings.Load(familyKey{})
	g.family, _ = v.(*family)
	g.nested = inherited
	if !inherited {
		if !g.plan.associated {
			return
		}
		g.family = &family{root: stmt}
		stmt.Settings.Store(familyKey{}, g.family)
	}
	g.family.generations = append(g.family.generations, g)
}

// finishCreate is the callback that runs after everything else in a Create.
func (p *planner) finishCreate(db *gorm.DB) {
	if g := generationOf(db.Statement); g != nil {
		g.finish(db)
	} else if db.Error != nil && db.Statement.Schema != nil {
		p.planFor(db.Statement.Schema).whole.reset(db.Statement)
	}
}

// finishUpdate is the callback that runs after everything else in an Update.
func finishUpdate(db *gorm.DB) {
	if g := generationOf(db.Statement); g != nil {
		g.finish(db)
	}
}

// finish resets the generated keys to zero if the call failed, so that a repeated call
// generates new ones: the database may have rejected the old ones because other rows have them.
func (g *generation) finish(db *gorm.DB) {
	stmt := db.Statement
	delete(stmt.Clauses, generationClause)
	if db.Error != nil && g.elements.IsValid() && stmt.ReflectValue.CanSet() {
		reflect.Copy(g.rows, g.elements)
		stmt.ReflectValue.Set(g.rows)
	}
	generations := []*generation{g}
	if g.family != nil {
		if g.family.root != stmt {
			return
		}
		stmt.Settings.Delete(familyKey{})
		generations = g.family.generations
	}
	if db.Error != nil {
		for _, g := range generations {
			g.reset(stmt)
		}
	}
}

// reset sets the generated keys to zero. In a map, it deletes them.
func (g *generation) reset(stmt *gorm.Statement) {
	rows := g.rows
	if !rows.IsValid() {
		rows = stmt.ReflectValue
	}
	for i := range count(rows) {
		row := rowAt(rows, i)
		for j := range g.plan.keys {
			if k := &g.plan.keys[j]; row.IsValid() && g.has(j, i) {
				k.reset(stmt.Context, row)
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
