package gormplugin

import (
	"errors"
	"maps"
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
	if isAssociation {
		stmt.ReflectValue = distinct(stmt.ReflectValue)
	}
	alone := make([][]bool, 0, 4) // the rows that each key leaves alone
	isAny, isAll := false, true   // whether any key was generated, and all in all rows
	for j := range plan.keys {
		rows, err := plan.keys[j].fill(stmt)
		if err != nil {
			_ = db.AddError(err)
			return
		}
		alone = append(alone, rows)
		isAny = isAny || plan.keys[j].fills != nil && (rows == nil || slices.Contains(rows, false))
		isAll = isAll && rows == nil
	}
	_, upserts := stmt.Clauses[onConflict]
	switch {
	case upserts, empties(stmt), isAny && !isAll:
		m := newMade(stmt, plan, alone)
		m.isAssociation = isAssociation
		stmt.Clauses[madeClause] = clause.Clause{Expression: m}
	case !isAll:
		stmt.Clauses[madeClause] = clause.Clause{} // no key was generated
	}
}

// empties reports whether GORM empties the slice of rows, and appends the rows that the database
// returns.
func empties(stmt *gorm.Statement) bool {
	c, returns := stmt.Clauses[returning]
	r, _ := c.Expression.(clause.Returning)
	return returns && (len(r.Columns) == 0 || r.Columns[0].Name == "*")
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
	m.given = maps.Clone(stmt.Clauses)
	m.prepareUpsert(stmt, conflict)
	stmt.Clauses[madeClause] = clause.Clause{Expression: m}
}

// reconcile is the callback that runs after the INSERT. It sets generated keys to zero that the
// database refused or skipped, and fails if an upsert left out a row.
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
// no clause, which means all keys of the plan in all rows, or one without a made, which means none.
type made struct {
	plan *plan
	rows reflect.Value // the statement's, because RETURNING * empties its slice
	ids  [][]any       // per key and row: the generated ID, which a hook may replace, or nil

	given map[string]clause.Clause // of an upsert, before the plugin changed them

	saved         savedRows
	isAssociation bool // the statement saves an association of another one

	upsert upsert
}

// newMade lists the keys that the rows of a statement have now. Per key, it leaves out the rows
// that the plugin left alone.
func newMade(stmt *gorm.Statement, plan *plan, alone [][]bool) *made {
	m := &made{plan: plan, rows: stmt.ReflectValue, ids: make([][]any, len(plan.keys))}
	if m.rows.Kind() == reflect.Slice {
		m.rows = m.rows.Slice(0, m.rows.Len())
	}
	saved, _ := stmt.Settings.Load(savedKey{})
	m.saved, _ = saved.(savedRows)
	for j := range plan.keys {
		k := &plan.keys[j]
		for i := range count(m.rows) {
			isMade := k.fills != nil && (alone == nil || alone[j] == nil || !alone[j][i])
			if row := rowAt(m.rows, i); isMade && row.IsValid() {
				if m.ids[j] == nil {
					m.ids[j] = make([]any, count(m.rows))
				}
				m.ids[j][i] = k.id(stmt.Context, row)
			}
		}
	}
	return m
}

// Build implements [clause.Expression]. GORM doesn't call it.
func (*made) Build(clause.Builder) {}

// madeIn returns the generated keys of a statement.
func (p *planner) madeIn(stmt *gorm.Statement) *made {
	c, held := stmt.Clauses[madeClause]
	if m, ok := c.Expression.(*made); ok {
		return m
	}
	m := newMade(stmt, p.planFor(stmt.Schema), nil)
	if held {
		clear(m.ids)
	}
	return m
}

// reset sets a generated key to zero in all rows.
func (m *made) reset(stmt *gorm.Statement, key int) {
	for i, id := range m.ids[key] {
		if id != nil {
			m.plan.keys[key].reset(stmt.Context, rowAt(m.rows, i))
		}
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

// leave is the callback that runs after everything else. The caller may use the statement again,
// so it gets its clauses back.
func leave(db *gorm.DB) {
	stmt := db.Statement
	stmt.Settings.Delete(savedKey{})
	if m, ok := stmt.Clauses[madeClause].Expression.(*made); ok && m.given != nil {
		stmt.Clauses = m.given
	}
}

func (s savedRows) add(rows reflect.Value) {
	for i := range count(rows) {
		if row := rowAt(rows, i); row.CanAddr() {
			s[row.Addr().Interface()] = true
		}
	}
}

func (s savedRows) has(row reflect.Value) bool { return row.CanAddr() && s[row.Addr().Interface()] }
