package gormplugin

import (
	"database/sql/driver"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// An upsert describes the result that an INSERT with ON CONFLICT must have.
type upsert struct {
	// complete reports whether every row must be inserted or updated.
	complete bool
	// guarded reports whether the update leaves rows with generated IDs alone.
	guarded bool
	// copies are copies of the rows of a guarded batch. If a row is missing, GORM assigns returned
	// rows to the wrong structs.
	copies []reflect.Value
	// reads reports whether an update leaves no struct without the public IDs of its row.
	reads bool
	// referred are the rows that had a primary key before, so that they may exist. It is nil for a
	// model without public IDs.
	referred []bool
}

// prepareUpsert keeps an ON CONFLICT from updating an existing row that has a generated ID, and
// makes the structs get the IDs of the rows that are updated.
func (m *made) prepareUpsert(stmt *gorm.Statement, conflict clause.OnConflict) {
	n, hasReturning := count(m.rows), slices.Contains(stmt.BuildClauses, returning)
	target, u := targetOf(stmt, conflict), &m.upsert
	u.referred = m.havePrimaryKeys(stmt)
	keepsIDs := true               // the rows keep the IDs of the structs
	var guards []clause.Expression // true for an existing row with a generated ID
	for j := range m.plan.keys {
		f, ids := m.plan.keys[j].field, m.current(stmt, j)
		isTarget := slices.Contains(target, f.DBName)
		switch {
		case len(ids) == 0:
		case len(ids) == n && (isTarget && !conflict.DoNothing || m.isGORMs(conflict, f)):
			// All rows are new, so that the database must reject an ID that another row has.
			delete(stmt.Clauses, onConflict)
			return
		case !conflict.DoNothing && (isTarget || target == nil) && hasReturning: // other dialects have no conditions
			guards = append(guards, hasOneOf(stmt, f, ids, len(ids) == n))
		}
		keepsIDs = keepsIDs && (conflict.DoNothing || isTarget)
	}
	mayOmit := conflict.DoNothing || len(conflict.Where.Exprs) > 0
	// GORM matches returned rows to structs by their order, so that no row may be missing. To a
	// slice of maps, it appends them.
	isMatched := n == 1 || n > 1 && !mayOmit
	added := !keepsIDs && isMatched && rowAt(m.rows, 0).Kind() == reflect.Struct && returnIDs(stmt, m.plan)
	u.reads = added && hasReturning || keepsIDs && !mayOmit
	u.guarded = len(guards) > 0
	u.complete = !mayOmit && (u.guarded || added && hasReturning && n > 1)
	if u.complete && u.guarded && n > 1 {
		for i := range n {
			if row := rowAt(m.rows, i); row.IsValid() { // otherwise GORM rejects the statement
				c := reflect.New(row.Type()).Elem()
				c.Set(row)
				u.copies = append(u.copies, c)
			}
		}
	}
	if u.guarded || conflict.UpdateAll && len(m.plan.public) > 0 {
		restrict(stmt, conflict, m.plan.public, guards)
	}
}

// current returns the IDs of a key that the rows still have, as the plugin generated them. It
// leaves out rows that an association has saved, because they refer to each other.
func (m *made) current(stmt *gorm.Statement, key int) (ids []any) {
	for i, id := range m.ids[key] {
		row := rowAt(m.rows, i)
		if id != nil && !m.saved.has(row) && reflect.DeepEqual(id, m.plan.keys[key].id(stmt.Context, row)) {
			ids = append(ids, id)
		}
	}
	return ids
}

// targetOf returns the columns that an ON CONFLICT compares: conflicting rows have the same IDs in
// them. It returns nil if the columns are unknown.
func targetOf(stmt *gorm.Statement, c clause.OnConflict) (columns []string) {
	switch {
	case c.OnConstraint != "":
		return nil
	case len(c.Columns) == 0 && c.UpdateAll:
		return stmt.Schema.PrimaryFieldDBNames // as in GORM
	}
	for _, column := range c.Columns {
		columns = append(columns, column.Name)
	}
	return columns
}

// isGORMs reports whether an ON CONFLICT is the one that GORM adds to statements that save
// associations, and is only for rows that had their key f before. The caller's own DO NOTHING also
// skips rows with other existing values. The rows of a join table may exist, although they have
// new IDs.
func (m *made) isGORMs(c clause.OnConflict, f *schema.Field) bool {
	isAny := c.DoNothing && len(c.Columns) == 0 && c.OnConstraint == ""
	return isAny && m.isAssociation && (f.PrimaryKey || !slices.Contains(m.upsert.referred, true))
}

// havePrimaryKeys returns the rows of a model with public IDs that have a primary key, or a part of
// one. It leaves out rows with a generated part.
func (m *made) havePrimaryKeys(stmt *gorm.Statement) (have []bool) {
	if len(m.plan.public) == 0 {
		return nil
	}
	have = make([]bool, count(m.rows))
	for i := range have {
		row, isNew := rowAt(m.rows, i), false
		if !row.IsValid() {
			continue // GORM rejects the statement
		}
		for _, f := range stmt.Schema.PrimaryFields {
			id := (&key{field: f, index: -1}).id(stmt.Context, row)
			j := slices.IndexFunc(m.plan.keys, func(k key) bool { return k.field == f })
			have[i] = have[i] || id != nil
			isNew = isNew || id != nil && j >= 0 && m.ids[j] != nil && reflect.DeepEqual(id, m.ids[j][i])
		}
		have[i] = have[i] && !isNew
	}
	return have
}

// hasOneOf returns the condition that an existing row has one of the generated IDs. all means
// that the statement has only rows with such IDs. On Postgres, the condition has at most one
// argument, because a statement can have 65,535.
func hasOneOf(stmt *gorm.Statement, f *schema.Field, ids []any, all bool) clause.Expression {
	column := clause.Column{Table: clause.CurrentTable, Name: f.DBName}
	if all {
		return clause.Eq{Column: column, Value: clause.Column{Table: "excluded", Name: f.DBName}}
	}
	if list, ok := literal(ids); ok && stmt.Name() == "postgres" {
		return clause.Expr{SQL: "? = ANY (?)", Vars: []any{column, list}}
	}
	return clause.IN{Column: column, Values: ids}
}

var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// literal returns the literal of a Postgres array. It reports false if database/sql doesn't know an
// ID's type.
func literal(ids []any) (string, bool) {
	elements := make([]string, len(ids))
	for i, id := range ids {
		v, err := driver.DefaultParameterConverter.ConvertValue(id)
		if err != nil {
			return "", false
		}
		if b, ok := v.([]byte); ok {
			v = fmt.Sprintf(`\x%x`, b)
		}
		elements[i] = `"` + escapes.Replace(fmt.Sprint(v)) + `"`
	}
	return "{" + strings.Join(elements, ",") + "}", true
}

// restrict makes a DO UPDATE leave out rows for which a guard is true. It makes an UpdateAll leave
// out the public IDs, like the primary key: GORM appends the columns of an UpdateAll to the
// caller's updates only when it builds the statement.
func restrict(stmt *gorm.Statement, given clause.OnConflict, public []string, guards []clause.Expression) {
	var where []clause.Expression
	for _, guard := range guards {
		where = append(where, clause.Expr{SQL: "(?) IS NOT TRUE", Vars: []any{guard}}) // also of NULL
	}
	if len(guards) > 0 && len(given.Where.Exprs) > 0 {
		where = append(where, clause.Expr{SQL: "(?)", Vars: []any{clause.AndConditions(given.Where)}})
	}
	c, callers := stmt.Clauses[onConflict], len(given.DoUpdates)
	c.Builder = func(c clause.Clause, b clause.Builder) {
		conflict := c.Expression.(clause.OnConflict)
		if conflict.UpdateAll {
			isPublic := func(a clause.Assignment) bool { return slices.Contains(public, a.Column.Name) }
			all := slices.DeleteFunc(slices.Clone(conflict.DoUpdates[callers:]), isPublic)
			conflict.DoUpdates = slices.Concat(conflict.DoUpdates[:callers], all)
			// As in GORM, which reads DoNothing again after the build.
			conflict.DoNothing = len(conflict.DoUpdates) == 0
		}
		if !conflict.DoNothing && len(where) > 0 {
			conflict.Where.Exprs = where
		}
		c.Builder, c.Expression = nil, conflict
		stmt.Clauses[onConflict] = c
		c.Build(b)
	}
	stmt.Clauses[onConflict] = c
}

// returnIDs adds the keys to the statement's RETURNING, and reports whether it added
// any column. Dialects without RETURNING ignore the clause.
func returnIDs(stmt *gorm.Statement, plan *plan) bool {
	var columns []clause.Column
	c, given := stmt.Clauses[returning]
	if r, ok := c.Expression.(clause.Returning); ok {
		// Clip, because GORM would append to the caller's slice.
		c.Expression = clause.Returning{Columns: slices.Clip(r.Columns)}
		stmt.Clauses[returning] = c
	}
	if !given {
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
		stmt.AddClause(clause.Returning{Columns: columns})
	}
	return len(columns) > 0
}

// finish fails if an upsert left out a row that it must not leave out. If it left out its only
// row, finish resets the row's keys. If a row may exist, finish resets its public IDs, unless the
// struct has the ones of the row.
func (m *made) finish(db *gorm.DB) {
	n, u := int64(count(m.rows)), m.upsert
	conflict, upserts := db.Statement.Clauses[onConflict].Expression.(clause.OnConflict)
	if m.isAssociation {
		m.saved.add(m.rows)
	}
	switch {
	case !upserts:
		return
	case u.complete && !conflict.DoNothing && db.RowsAffected < n:
		reason, remedy, err := "which can't be matched to the structs", "create the rows one by one if a trigger can skip some", gorm.ErrInvalidData
		if u.guarded {
			reason, remedy, err = "because another row has a generated ID, or a trigger skips rows", "roll back, and repeat the call for new IDs", gorm.ErrDuplicatedKey
		}
		_ = db.AddError(fmt.Errorf("gormplugin: upsert %s: want %d rows, got %d, %s; %s: %w", modelName(db.Statement.Schema), n, db.RowsAffected, reason, remedy, err))
		for i, c := range u.copies {
			rowAt(m.rows, i).Set(c)
		}
	case db.RowsAffected == 0 && n == 1 && rowAt(m.rows, 0).Kind() == reflect.Struct:
	case u.reads && !conflict.DoNothing, m.haveInserted(db, conflict), empties(db.Statement):
		return
	default:
		m.resetReferred(db.Statement)
		return
	}
	for j := range m.plan.keys {
		m.reset(db.Statement, j)
	}
}

// haveInserted reports whether a DO NOTHING is known to have inserted all rows. GORM counts a row
// for each struct in which a returned column was set, even if the database skipped it.
func (m *made) haveInserted(db *gorm.DB, conflict clause.OnConflict) bool {
	n := count(m.rows)
	_, returns := db.Statement.Clauses[returning]
	return conflict.DoNothing && db.RowsAffected == int64(n) && (n == 1 || !returns)
}

// resetReferred sets the generated public IDs of rows that may exist to zero: an existing row has
// others, and a later update of the struct would change them.
func (m *made) resetReferred(stmt *gorm.Statement) {
	for i, may := range m.upsert.referred {
		row := rowAt(m.rows, i)
		for j := range m.plan.keys {
			k := &m.plan.keys[j]
			if may && !k.field.PrimaryKey && m.ids[j] != nil && m.ids[j][i] != nil && row.Kind() == reflect.Struct {
				k.reset(stmt.Context, row)
			}
		}
	}
}
