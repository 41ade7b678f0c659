package gormplugin

import (
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// The names of GORM's clauses.
const (
	onConflict = "ON CONFLICT"
	returning  = "RETURNING"
	where      = "WHERE"
)

// madeUp is the setting with the keys that were filled in for a row that may
// turn out to exist.
type madeUp struct{}

type madeUpKeys struct {
	stmt *gorm.Statement // associations inherit settings, which aren't theirs
	keys []*key
}

// prepareUpsert sees to it that the structs of an upsert end up with the IDs
// that their rows have.
func prepareUpsert(stmt *gorm.Statement, plan *plan, filled []*key) {
	if len(filled) > 0 {
		stmt.Settings.Store(madeUp{}, madeUpKeys{stmt, filled})
	}
	conflict, ok := stmt.Clauses[onConflict].Expression.(clause.OnConflict)
	if !ok || len(plan.keys) == 0 || conflict.DoNothing || byPrimaryKey(stmt, conflict) {
		return
	}
	switch stmt.ReflectValue.Kind() {
	case reflect.Struct:
	case reflect.Slice, reflect.Array:
		// GORM matches rows by their order, so none may be missing. It
		// appends maps.
		if len(conflict.Where.Exprs) > 0 || isMaps(stmt.Dest) {
			return
		}
	default:
		return
	}
	var columns []clause.Column
	if _, ok := stmt.Clauses[returning]; !ok {
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
		return
	}
	v, _ := stmt.Settings.LoadAndDelete(madeUp{})
	made, ok := v.(madeUpKeys)
	if !ok || made.stmt != stmt || db.Error != nil || db.DryRun || db.RowsAffected > 0 {
		return
	}
	for _, k := range made.keys {
		k.in(stmt.Context, stmt.ReflectValue).SetZero()
	}
}
