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

// upsert is the setting with what is to be put right after the INSERT.
type upsert struct{}

type pending struct {
	stmt *gorm.Statement // associations inherit settings, which aren't theirs
	// madeUp are keys that were filled in for the only row, which may turn out
	// to exist.
	madeUp []*key
	row    reflect.Value
	// answers is how many rows RETURNING has to give, if it was added to get
	// the IDs of several; GORM goes by their order.
	answers int
}

// prepareUpsert sees to it that the structs of an upsert end up with the IDs
// that their rows have.
func prepareUpsert(stmt *gorm.Statement, plan *plan, filled []*key) {
	p := pending{stmt: stmt, madeUp: filled, row: only(stmt.ReflectValue)}
	if mayGetOtherIDs(stmt, plan) {
		added := returnIDs(stmt, plan)
		if added && !p.row.IsValid() && slices.Contains(stmt.BuildClauses, returning) {
			p.answers = stmt.ReflectValue.Len()
		}
	}
	if len(p.madeUp) > 0 || p.answers > 0 {
		stmt.Settings.Store(upsert{}, p)
	}
}

// mayGetOtherIDs reports whether rows may have other IDs than the structs of an
// upsert, and RETURNING can tell which.
func mayGetOtherIDs(stmt *gorm.Statement, plan *plan) bool {
	conflict, ok := stmt.Clauses[onConflict].Expression.(clause.OnConflict)
	if !ok || len(plan.keys) == 0 || conflict.DoNothing || byPrimaryKey(stmt, conflict) {
		return false
	}
	switch stmt.ReflectValue.Kind() {
	case reflect.Struct:
		return true
	case reflect.Slice, reflect.Array:
		// GORM matches rows by their order, so none may be missing. It
		// appends maps.
		return (len(conflict.Where.Exprs) == 0 || stmt.ReflectValue.Len() <= 1) && !isMaps(stmt.Dest)
	}
	return false
}

// returnIDs adds the keys to the statement's RETURNING, and reports whether
// there are any to add.
func returnIDs(stmt *gorm.Statement, plan *plan) bool {
	var columns []clause.Column
	c, ok := stmt.Clauses[returning]
	if given, isReturning := c.Expression.(clause.Returning); isReturning {
		// GORM would append to the caller's slice.
		given.Columns = slices.Clip(given.Columns)
		c.Expression = given
		stmt.Clauses[returning] = c
	}
	if !ok {
		// GORM adds these by itself only if there is no RETURNING.
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
		// Dialects without RETURNING ignore it.
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

// byPrimaryKey reports whether only rows with the same ID conflict.
func byPrimaryKey(stmt *gorm.Statement, c clause.OnConflict) bool {
	if c.OnConstraint != "" {
		return false
	}
	if len(c.Columns) == 0 {
		return c.UpdateAll // GORM puts the primary key there
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

// reconcile is the callback after the INSERT: an ID that was made up for a row
// that was not inserted is taken back.
func reconcile(db *gorm.DB) {
	stmt := db.Statement
	if _, ok := stmt.Clauses[onConflict]; !ok {
		return // without making room for settings
	}
	v, _ := stmt.Settings.LoadAndDelete(upsert{})
	p, _ := v.(pending)
	if p.stmt != stmt || db.Error != nil || db.DryRun {
		return
	}
	if p.answers > 0 && db.RowsAffected != int64(p.answers) {
		// The structs after a row that is missing have their neighbours' IDs.
		_ = db.AddError(fmt.Errorf("gormplugin: upsert %s: want %d rows back, got %d, which can't be matched to the structs; create the rows one by one if a trigger can skip some: %w",
			stmt.Schema.Name, p.answers, db.RowsAffected, gorm.ErrInvalidData))
		return
	}
	if db.RowsAffected > 0 {
		return
	}
	for _, k := range p.madeUp {
		k.in(stmt.Context, p.row).SetZero()
	}
}
