package gormplugin

import (
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// The names of GORM's clauses.
const (
	onConflict = "ON CONFLICT"
	returning  = "RETURNING"
)

// upsert is the key of the statement setting that holds a pending.
type upsert struct{}

// A pending holds the data for the check after an INSERT with ON CONFLICT.
type pending struct {
	stmt *gorm.Statement // the statement itself: associations inherit its settings
	// generated are the keys that the plugin filled in the only row. They are reset to
	// zero if the statement affects no row.
	generated []*key
	row       reflect.Value
	// answers is the number of rows that RETURNING must return, because GORM assigns
	// rows to structs by their order. It is 0 if the plugin added no RETURNING, or if
	// the statement has a single row.
	answers int
}

// prepareUpsert makes the structs of an upsert get the IDs of the stored rows.
func prepareUpsert(stmt *gorm.Statement, plan *plan, filled []*key) {
	p := pending{stmt: stmt, generated: filled, row: only(stmt.ReflectValue)}
	if mayGetOtherIDs(stmt, plan) {
		added := returnIDs(stmt, plan)
		if added && !p.row.IsValid() && slices.Contains(stmt.BuildClauses, returning) {
			p.answers = stmt.ReflectValue.Len()
		}
	}
	if len(p.generated) > 0 || p.answers > 0 {
		stmt.Settings.Store(upsert{}, p)
	}
}

// mayGetOtherIDs reports whether the rows of an upsert may have other IDs than the
// structs, and RETURNING can supply the IDs.
func mayGetOtherIDs(stmt *gorm.Statement, plan *plan) bool {
	conflict, ok := stmt.Clauses[onConflict].Expression.(clause.OnConflict)
	if !ok || len(plan.keys) == 0 || conflict.DoNothing || byPrimaryKey(stmt, conflict) {
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

// byPrimaryKey reports whether ON CONFLICT applies to the primary key alone, so that
// conflicting rows have the same ID.
func byPrimaryKey(stmt *gorm.Statement, c clause.OnConflict) bool {
	if c.OnConstraint != "" {
		return false
	}
	if len(c.Columns) == 0 {
		return c.UpdateAll // then GORM adds the primary key
	}
	if len(c.Columns) != len(stmt.Schema.PrimaryFieldDBNames) {
		return false
	}
	for _, column := range c.Columns {
		if !slices.Contains(stmt.Schema.PrimaryFieldDBNames, column.Name) {
			return false
		}
	}
	return true
}

// reconcile is the callback that runs after the INSERT. If the only row was not
// inserted, reconcile resets its generated ID to zero. If RETURNING returned too few
// rows, it fails.
func reconcile(db *gorm.DB) {
	stmt := db.Statement
	if _, ok := stmt.Clauses[onConflict]; !ok {
		return // early: LoadAndDelete would allocate the map of settings
	}
	v, _ := stmt.Settings.LoadAndDelete(upsert{})
	p, _ := v.(pending)
	if p.stmt != stmt || db.Error != nil || db.DryRun {
		return
	}
	if p.answers > 0 && db.RowsAffected != int64(p.answers) {
		// The structs after a missing row have their neighbors' IDs.
		_ = db.AddError(fmt.Errorf("gormplugin: upsert %s: want %d rows back, got %d, which can't be matched to the structs; create the rows one by one if a trigger can skip some: %w",
			modelName(stmt.Schema), p.answers, db.RowsAffected, gorm.ErrInvalidData))
		return
	}
	if db.RowsAffected > 0 {
		return
	}
	for _, k := range p.generated {
		k.in(stmt.Context, p.row).SetZero()
	}
}
