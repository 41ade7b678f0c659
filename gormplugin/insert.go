package gormplugin

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/sortkey/sortkey/internal/pgerror"
)

// The names of GORM's clauses.
const (
	onConflict = "ON CONFLICT"
	returning  = "RETURNING"
)

// An upsert is the state of an INSERT with ON CONFLICT.
type upsert struct {
	// complete reports whether every row must be inserted or updated. GORM assigns the rows that
	// RETURNING returns to structs by their order.
	complete bool
	// guards are the conditions that an existing row has a generated ID. The update leaves such
	// a row alone.
	guards []clause.Expression
	// copies are copies of the structs of a batch with guards: GORM may assign returned rows to the
	// wrong structs.
	copies []reflect.Value
}

// prepare is the callback that runs before the INSERT. If the statement has an ON CONFLICT,
// prepare keeps it from changing a row because that has a generated ID, and makes the structs
// get the IDs of the rows that are updated.
func (p *planner) prepare(db *gorm.DB) {
	stmt := db.Statement
	conflict, ok := conflictOf(stmt)
	if !ok || db.Error != nil || stmt.Schema == nil {
		return
	}
	g := *p.generation(stmt) // a copy, because statements may share it
	if len(g.plan.keys) == 0 {
		return
	}
	g.keepRows(stmt)
	if g.ids == nil { // a hook has added the ON CONFLICT
		g.copyIDs(stmt)
	}
	g.upsert = new(upsert)
	n, hasReturning := count(stmt.ReflectValue), slices.Contains(stmt.BuildClauses, returning)
	for j := range g.plan.keys {
		f, ids := g.plan.keys[j].field, g.current(stmt, j)
		switch {
		case len(ids) == 0:
		case len(ids) == n && isForExisting(stmt, conflict, f):
			// All rows are new, so that the database must reject an ID that another row has.
			delete(stmt.Clauses, onConflict)
			return
		case mayUpdateBy(conflict, f) && hasReturning: // other dialects have no conditions
			g.guards = append(g.guards, hasOneOf(f, ids, len(ids) == n))
		}
	}
	added := mayGetOtherIDs(stmt, g.plan) && returnIDs(stmt, g.plan)
	g.complete = !conflict.DoNothing && len(conflict.Where.Exprs) == 0 && (len(g.guards) > 0 || added && hasReturning && n > 1)
	if len(g.guards) > 0 || g.plan.public && conflict.UpdateAll {
		g.build(stmt, len(conflict.DoUpdates))
	}
	if g.complete && len(g.guards) > 0 && n > 1 {
		g.copyRows()
	}
	g.store(stmt)
}

// copyRows copies the structs of the statement.
func (g *generation) copyRows() {
	for i := range count(g.rows) {
		var c reflect.Value
		if row := rowAt(g.rows, i); row.CanSet() {
			c = reflect.New(row.Type()).Elem()
			c.Set(row)
		}
		g.copies = append(g.copies, c)
	}
}

// conflictOf returns the statement's ON CONFLICT. ok is false for a clause of another
// type than GORM's.
func conflictOf(stmt *gorm.Statement) (conflict clause.OnConflict, ok bool) {
	conflict, ok = stmt.Clauses[onConflict].Expression.(clause.OnConflict)
	return conflict, ok
}

// isForExisting reports whether an ON CONFLICT is only for rows that had their key f before.
func isForExisting(stmt *gorm.Statement, c clause.OnConflict, f *schema.Field) bool {
	if !c.DoNothing {
		return targets(c, f)
	}
	// GORM adds a DO NOTHING to statements that save associations. The caller's also skips rows
	// with other existing values. A join table isn't in a family: its rows may exist, although
	// they have new IDs.
	isGORMs := isAnyKey(c) && familyOf(stmt).savesAssociation(stmt)
	return isGORMs && (f.PrimaryKey || !hasPrimaryKeys(stmt))
}

// isAnyKey reports whether ON CONFLICT compares all unique keys, and does nothing.
func isAnyKey(c clause.OnConflict) bool {
	return c.DoNothing && len(c.Columns) == 0 && c.OnConstraint == ""
}

// mayUpdateBy reports whether a DO UPDATE may change a row because it has the same key f.
func mayUpdateBy(c clause.OnConflict, f *schema.Field) bool {
	isUnknown := c.OnConstraint != "" || len(c.Columns) == 0 && !c.UpdateAll
	return !c.DoNothing && (isUnknown || targets(c, f))
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

// hasPrimaryKeys reports whether a row of a statement has a primary key, or a part of one.
func hasPrimaryKeys(stmt *gorm.Statement) bool {
	for i := range count(stmt.ReflectValue) {
		for _, f := range stmt.Schema.PrimaryFields {
			if row := rowAt(stmt.ReflectValue, i); row.IsValid() && (&key{field: f, index: -1}).id(stmt.Context, row) != nil {
				return true
			}
		}
	}
	return false
}

// current returns the IDs of a key that the rows still have, as the plugin generated them. It
// leaves out rows that an association has saved, because they refer to each other.
func (g *generation) current(stmt *gorm.Statement, key int) (ids []any) {
	f := familyOf(stmt)
	for i := range count(stmt.ReflectValue) {
		row := rowAt(stmt.ReflectValue, i)
		if !row.IsValid() || !g.has(key, i) || f.hasSaved(row) {
			continue
		}
		if id := g.plan.keys[key].id(stmt.Context, row); id != nil && reflect.DeepEqual(id, g.ids[key][i]) {
			ids = append(ids, id)
		}
	}
	return ids
}

// hasOneOf returns the condition that an existing row has one of the generated IDs. all means
// that the statement has only rows with such IDs.
func hasOneOf(f *schema.Field, ids []any, all bool) clause.Expression {
	column := clause.Column{Table: clause.CurrentTable, Name: f.DBName}
	if all { // one argument per ID could be too many
		return clause.Eq{Column: column, Value: clause.Column{Table: "excluded", Name: f.DBName}}
	}
	return clause.IN{Column: column, Values: ids}
}

// build makes a DO UPDATE leave out the rows with generated IDs, and an UpdateAll the columns
// with an idgen tag, as it leaves out the primary key. GORM appends the columns to the caller's
// updates only when it builds the statement.
func (u *upsert) build(stmt *gorm.Statement, callers int) {
	c := stmt.Clauses[onConflict]
	c.Builder = func(c clause.Clause, b clause.Builder) {
		stmt := b.(*gorm.Statement)
		conflict := c.Expression.(clause.OnConflict)
		if conflict.UpdateAll {
			updates := slices.Clip(conflict.DoUpdates[:callers])
			for _, a := range conflict.DoUpdates[callers:] {
				if !isPublic(stmt.Schema.LookUpField(a.Column.Name)) {
					updates = append(updates, a)
				}
			}
			// As in GORM, which reads DoNothing again after the build.
			conflict.DoUpdates, conflict.DoNothing = updates, len(updates) == 0
		}
		if !conflict.DoNothing && len(u.guards) > 0 {
			conflict.Where = clause.Where{Exprs: []clause.Expression{unless{u.guards, conflict.Where}}}
		}
		c.Builder, c.Expression = nil, conflict
		stmt.Clauses[onConflict] = c
		c.Build(stmt)
	}
	stmt.Clauses[onConflict] = c
}

// An unless is a condition that is true if no guard is, and the caller's condition is.
type unless struct {
	guards []clause.Expression
	given  clause.Where
}

// Build implements [clause.Expression].
func (u unless) Build(b clause.Builder) {
	for i, guard := range u.guards {
		if i > 0 {
			_, _ = b.WriteString(" AND ")
		}
		_ = b.WriteByte('(')
		guard.Build(b)
		_, _ = b.WriteString(") IS NOT TRUE") // also of NULL
	}
	if len(u.given.Exprs) > 0 {
		_, _ = b.WriteString(" AND (")
		u.given.Build(b)
		_ = b.WriteByte(')')
	}
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

// reconcile is the callback that runs after the INSERT. It sets generated keys to zero that no
// row of the statement has: refused ones, and the key of a single row that was skipped. It fails
// if an upsert left out a row.
func (p *planner) reconcile(db *gorm.DB) {
	stmt := db.Statement
	if stmt.Schema == nil || db.DryRun {
		return
	}
	if db.Error != nil {
		if stmt.SQL.Len() > 0 { // otherwise an earlier statement failed
			p.generation(stmt).resetRefused(db)
		}
		return
	}
	if f := familyOf(stmt); f.savesAssociation(stmt) {
		f.remember(stmt.ReflectValue)
	}
	if g := p.generation(stmt); g.upsert != nil {
		g.finish(db)
	}
}

// resetRefused resets the generated keys that the database refused, because other rows have
// them, so that a repeated call generates new ones. Other IDs stay: the rows may have been
// stored, although the call failed.
func (g *generation) resetRefused(db *gorm.DB) {
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
	for j := range g.plan.keys {
		name := g.plan.keys[j].field.DBName
		if !known || slices.Contains(columns, name) || slices.Contains(columns, `"`+strings.ReplaceAll(name, `"`, `""`)+`"`) {
			g.reset(db.Statement, j)
		}
	}
}

// finish fails if the statement left out a row that it must not leave out. If it left out its
// only row, finish resets the row's keys.
func (g *generation) finish(db *gorm.DB) {
	stmt := db.Statement
	n := int64(count(stmt.ReflectValue))
	switch conflict, _ := conflictOf(stmt); {
	case g.complete && !conflict.DoNothing && db.RowsAffected < n:
		reason, remedy, err := "which can't be matched to the structs", "create the rows one by one if a trigger can skip some", gorm.ErrInvalidData
		if len(g.guards) > 0 {
			reason, remedy, err = "because another row has a generated ID, or a trigger skips rows", "roll back, and repeat the call for new IDs", gorm.ErrDuplicatedKey
		}
		_ = db.AddError(fmt.Errorf("gormplugin: upsert %s: want %d rows, got %d, %s; %s: %w", modelName(stmt.Schema), n, db.RowsAffected, reason, remedy, err))
		for i, c := range g.copies {
			if c.IsValid() {
				rowAt(g.rows, i).Set(c)
			}
		}
	case db.RowsAffected == 0 && only(g.rows).Kind() == reflect.Struct:
	default:
		return
	}
	for j := range g.plan.keys {
		g.reset(stmt, j)
	}
}

// remember adds rows to the rows that statements for associations have saved.
func (f *family) remember(rows reflect.Value) {
	if f.saved == nil {
		f.saved = map[any]bool{}
	}
	for i := range count(rows) {
		f.saved[addressOf(rowAt(rows, i))] = true
	}
}
