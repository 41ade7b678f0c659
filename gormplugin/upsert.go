package gormplugin

import (
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// The names of GORM's clauses.
const (
	onConflict = "ON CONFLICT"
	returning  = "RETURNING"
)

// An upsert has the state of an INSERT with ON CONFLICT.
type upsert struct {
	conflicts bool
	row       reflect.Value // the struct of the only row; otherwise invalid
	// ids has, per key of the plan, a slice of the IDs that the plugin generated in structs.
	// It is nil if ON CONFLICT compares none of the keys.
	ids []reflect.Value
	// answers is the number of rows that RETURNING must return, because GORM assigns
	// rows to structs by their order. It is 0 if the plugin added no RETURNING, or if
	// the statement has a single row.
	answers int
	separated
}

// prepareUpsert makes the structs of an upsert get the IDs of the stored rows.
func (g *generation) prepareUpsert(stmt *gorm.Statement) upsert {
	conflict, ok := conflictOf(stmt)
	if ok && g.plan.public && conflict.UpdateAll {
		keepPublicIDs(stmt, len(conflict.DoUpdates))
	}
	u := upsert{conflicts: true}
	if row := only(stmt.ReflectValue); row.IsValid() && row.Kind() == reflect.Struct {
		u.row = row
	}
	if mayGetOtherIDs(stmt, g.plan) {
		added := returnIDs(stmt, g.plan)
		if added && !u.row.IsValid() && slices.Contains(stmt.BuildClauses, returning) {
			u.answers = stmt.ReflectValue.Len()
		}
	}
	if ok && slices.ContainsFunc(g.plan.keys, func(k key) bool { return comparesID(stmt, conflict, k.field) }) {
		u.ids = g.copyIDs(stmt.Context)
	}
	return u
}

// conflictOf returns the statement's ON CONFLICT. ok is false for a clause of another
// type than GORM's.
func conflictOf(stmt *gorm.Statement) (conflict clause.OnConflict, ok bool) {
	conflict, ok = stmt.Clauses[onConflict].Expression.(clause.OnConflict)
	return conflict, ok
}

// keepPublicIDs makes an UpdateAll leave out the columns with an idgen tag, as it leaves
// out the primary key. GORM appends the columns to the caller's updates only when it
// builds the statement.
func keepPublicIDs(stmt *gorm.Statement, callers int) {
	c := stmt.Clauses[onConflict]
	c.Builder = func(c clause.Clause, _ clause.Builder) {
		conflict := c.Expression.(clause.OnConflict)
		updates := slices.Clip(conflict.DoUpdates[:callers])
		for _, a := range conflict.DoUpdates[callers:] {
			if !isPublic(stmt.Schema.LookUpField(a.Column.Name)) {
				updates = append(updates, a)
			}
		}
		conflict.DoUpdates = updates
		// As in GORM, which reads DoNothing again after the build.
		conflict.DoNothing = len(conflict.DoUpdates) == 0
		c.Builder, c.Expression = nil, conflict
		stmt.Clauses[onConflict] = c
		c.Build(stmt)
	}
	stmt.Clauses[onConflict] = c
}

// mayGetOtherIDs reports whether the rows of an upsert may have other IDs than the
// structs, and RETURNING can supply the IDs.
func mayGetOtherIDs(stmt *gorm.Statement, plan *plan) bool {
	conflict, ok := conflictOf(stmt)
	if !ok || conflict.DoNothing || !slices.ContainsFunc(plan.keys, func(k key) bool { return !targets(conflict, k.field) }) {
		return false
	}
	switch stmt.ReflectValue.Kind() {
	case reflect.Struct:
		return true
	case reflect.Slice, reflect.Array:
		// GORM matches rows to structs by their order, so no row must be missing.
		// To a slice of maps, GORM appends the returned rows.
		return (len(conflict.Where.Exprs) == 0 || stmt.ReflectValue.Len() <= 1) && !isMaps(stmt.Dest)
	}
	return false
}

// returnIDs adds the keys to the statement's RETURNING, and reports whether it added
// any column.
func returnIDs(stmt *gorm.Statement, plan *plan) bool {
	var columns []clause.Column
	c, ok := stmt.Clauses[returning]
	if given, isReturning := c.Expression.(clause.Returning); isReturning {
		// Clip, because GORM would append to the caller's slice.
		given.Columns = slices.Clip(given.Columns)
		c.Expression = given
		stmt.Clauses[returning] = c
	}
	if !ok {
		// GORM adds columns with defaults only to a statement without RETURNING.
		for _, f := range stmt.Schema.FieldsWithDefaultDBValue {
			if f.Readable {
				columns = append(columns, clause.Column{Name: f.DBName})
			}
		}
	}
	for _, k := range plan.keys {
		c := clause.Column{Name: k.field.DBName}
		if k.field.Readable && !slices.Contains(columns, c) {
			columns = append(columns, c)
		}
	}
	if len(columns) > 0 {
		// Dialects without RETURNING ignore the clause.
		stmt.AddClause(clause.Returning{Columns: columns})
	}
	return len(columns) > 0
}

func isMaps(dest any) bool {
	switch dest.(type) {
	case []map[string]any, *[]map[string]any:
		return true
	}
	return false
}

// targets reports whether ON CONFLICT compares a column, so that conflicting rows have the
// same ID in it.
func targets(c clause.OnConflict, f *schema.Field) bool {
	switch {
	case c.OnConstraint != "":
		return false
	case len(c.Columns) == 0:
		return c.UpdateAll && f.PrimaryKey // GORM adds the primary key
	}
	return slices.ContainsFunc(c.Columns, func(column clause.Column) bool { return column.Name == f.DBName })
}

// reconcile is the callback that runs after the INSERT. It fails if a generated ID is
// another row's, or if RETURNING returned too few rows. If the only row was not inserted,
// reconcile resets its generated ID to zero.
func reconcile(db *gorm.DB) {
	stmt := db.Statement
	g := generationOf(stmt)
	if g == nil || !g.conflicts {
		return
	}
	inserted := g.insertFresh(db)
	if db.Error != nil || db.DryRun {
		return
	}
	g.inserted = true
	if inserted < int64(len(g.fresh)) && !g.alone {
		g.checkTaken(db, inserted)
	}
	if g.answers > 0 && !g.nothing && db.RowsAffected != int64(g.answers) {
		// The structs after a missing row have their neighbors' IDs.
		_ = db.AddError(fmt.Errorf("gormplugin: upsert %s: want %d rows back, got %d, which can't be matched to the structs; create the rows one by one if a trigger can skip some: %w",
			modelName(stmt.Schema), g.answers, db.RowsAffected, gorm.ErrInvalidData))
	}
	if db.Error != nil || db.RowsAffected > 0 || !g.row.IsValid() {
		return
	}
	for j := range g.plan.keys {
		if g.has(j, 0) {
			g.plan.keys[j].reset(stmt.Context, g.row)
		}
	}
}
