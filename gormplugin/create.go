package gormplugin

import (
	"errors"
	"iter"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/sortkey/sortkey/internal/pgerror"
)

// The names of clauses. GORM ignores madeClause, which holds a *made, because no dialect lists it.
// A clause costs less than a setting, and statements for associations don't inherit it.
const (
	onConflict = "ON CONFLICT"
	returning  = "RETURNING"
	madeClause = "sortkey:made"
)

// fill is the callback that runs before everything else in a Create.
func (p *planner) fill(db *gorm.DB) {
	stmt := db.Statement
	if db.Error != nil || stmt.Schema == nil {
		return
	}
	delete(stmt.Clauses, madeClause) // the statement may be a clone
	plan := p.planFor(stmt.Schema)
	if plan.err != nil {
		_ = db.AddError(plan.err)
		return
	}
	isAssociation := enter(stmt, plan)
	_, upserts := stmt.Clauses[onConflict]
	_, returns := stmt.Clauses[returning]
	var m *made
	if upserts || returns {
		m = newMade(stmt, plan)
		m.isAssociation = isAssociation
	}
	for j := range plan.keys {
		alone, err := plan.keys[j].fill(stmt)
		if err != nil {
			_ = db.AddError(err)
			return
		}
		if alone != nil {
			if m == nil {
				m = newMade(stmt, plan)
			}
			m.alone[j] = alone
		}
	}
	if upserts {
		m.copyIDs(stmt)
	}
	if m != nil {
		stmt.Clauses[madeClause] = clause.Clause{Expression: m}
	}
}

// prepare is the callback that runs before the INSERT.
func (p *planner) prepare(db *gorm.DB) {
	stmt := db.Statement
	// The clause may have another type than GORM's.
	conflict, ok := stmt.Clauses[onConflict].Expression.(clause.OnConflict)
	if !ok || db.Error != nil || stmt.Schema == nil {
		return
	}
	m := p.madeIn(stmt)
	if m.ids == nil { // a hook has added the ON CONFLICT
		m.copyIDs(stmt)
	}
	m.prepareUpsert(stmt, conflict)
	stmt.Clauses[madeClause] = clause.Clause{Expression: m}
}

// reconcile is the callback that runs after the INSERT. It resets the generated keys that no row
// of the table has.
func (p *planner) reconcile(db *gorm.DB) {
	stmt := db.Statement
	m, ok := stmt.Clauses[madeClause].Expression.(*made)
	switch {
	case stmt.Schema == nil, db.DryRun:
	case db.Error == nil && ok:
		m.finish(db)
	case db.Error != nil && stmt.SQL.Len() > 0: // otherwise an earlier statement failed
		p.madeIn(stmt).resetRefused(db)
	}
}

// A made lists the keys that the plugin generated in the rows of a statement. Most statements hold
// none, which means all keys of the plan in all rows.
type made struct {
	plan  *plan
	rows  reflect.Value // the statement's, because RETURNING * empties its slice
	alone [][]bool      // per key: the rows that the plugin left alone; nil: none
	ids   [][]any       // per key and row: the generated ID, which a hook may replace; nil if there is no ON CONFLICT

	saved         savedRows
	isAssociation bool // the statement saves an association of another one

	upsert upsert
}

func newMade(stmt *gorm.Statement, plan *plan) *made {
	rows := stmt.ReflectValue
	if rows.Kind() == reflect.Slice {
		rows = rows.Slice(0, rows.Len())
	}
	saved, _ := stmt.Settings.Load(savedKey{})
	m := &made{plan: plan, rows: rows, alone: make([][]bool, len(plan.keys))}
	m.saved, _ = saved.(savedRows)
	return m
}

// Build implements [clause.Expression]. GORM doesn't call it.
func (*made) Build(clause.Builder) {}

// madeIn returns the generated keys of a statement.
func (p *planner) madeIn(stmt *gorm.Statement) *made {
	if m, ok := stmt.Clauses[madeClause].Expression.(*made); ok {
		return m
	}
	return newMade(stmt, p.planFor(stmt.Schema))
}

// with returns the rows in which the plugin generated a key of the plan, with their indexes.
func (m *made) with(key int) iter.Seq2[int, reflect.Value] {
	return func(yield func(int, reflect.Value) bool) {
		for i := range count(m.rows) {
			row := rowAt(m.rows, i)
			isMade := m.plan.keys[key].fills != nil && (m.alone[key] == nil || !m.alone[key][i])
			if isMade && row.IsValid() && !yield(i, row) {
				return
			}
		}
	}
}

// copyIDs remembers the IDs that the rows have now as the generated ones.
func (m *made) copyIDs(stmt *gorm.Statement) {
	m.ids = make([][]any, len(m.plan.keys))
	for j := range m.ids {
		m.ids[j] = make([]any, count(m.rows))
		for i, row := range m.with(j) {
			m.ids[j][i] = m.plan.keys[j].id(stmt.Context, row)
		}
	}
}

// reset sets a generated key to zero in all rows.
func (m *made) reset(stmt *gorm.Statement, key int) {
	for _, row := range m.with(key) {
		m.plan.keys[key].reset(stmt.Context, row)
	}
}

// resetRefused resets the generated keys that the database refused, because other rows have
// them, so that a repeated call generates new ones. Other IDs stay: the rows may have been
// stored, although the call failed.
func (m *made) resetRefused(db *gorm.DB) {
	err := db.Error
	if t, ok := db.Dialector.(gorm.ErrorTranslator); ok {
		err = errors.Join(err, t.Translate(err))
	}
	if !errors.Is(err, gorm.ErrDuplicatedKey) && pgerror.State(err) != "23505" {
		return
	}
	// Postgres names the columns: Key (id)=(1) already exists. Another database's error and
	// a translated one don't.
	_, list, _ := strings.Cut(pgerror.Detail(err), "(")
	list, _, known := strings.Cut(list, ")=(")
	columns := strings.Split(list, ", ")
	for j := range m.plan.keys {
		name := m.plan.keys[j].field.DBName
		if !known || slices.Contains(columns, name) || slices.Contains(columns, `"`+strings.ReplaceAll(name, `"`, `""`)+`"`) {
			m.reset(db.Statement, j)
		}
	}
}

// savedRows contains pointers to the rows that the statements for the associations of a Create or
// an Update have saved.
type savedRows map[any]bool

// savedKey is the key of the setting that holds the savedRows. Statements for associations inherit
// settings, but statements for join tables don't.
type savedKey struct{}

// enter reports whether a statement saves an association of another one. If not, and if its model
// has associations, enter adds empty savedRows.
func enter(stmt *gorm.Statement, plan *plan) (isAssociation bool) {
	_, isAssociation = stmt.Settings.Load(savedKey{})
	if !isAssociation && plan.associated {
		stmt.Settings.Store(savedKey{}, savedRows{})
	}
	return isAssociation
}

// leave is the callback that runs after everything else. The caller may use the statement again.
func leave(db *gorm.DB) { db.Statement.Settings.Delete(savedKey{}) }

func (s savedRows) add(rows reflect.Value) {
	for i := range count(rows) {
		if row := rowAt(rows, i); row.CanAddr() {
			s[row.Addr().Interface()] = true
		}
	}
}

func (s savedRows) has(row reflect.Value) bool { return row.CanAddr() && s[row.Addr().Interface()] }
