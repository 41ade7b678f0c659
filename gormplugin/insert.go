package gormplugin

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

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
//
// A row with a generated ID is new. If another row has this ID, an ON CONFLICT must neither
// change that row nor skip the new one. Therefore the plugin inserts new rows without an
// ON CONFLICT that compares generated IDs, and the database rejects the ID.
type upsert struct {
	row reflect.Value // the struct of the only row; otherwise invalid
	// answers is the number of rows that RETURNING must return, because GORM assigns
	// rows to structs by their order. It is 0 if the plugin added no RETURNING, or if
	// the statement has a single row.
	answers int

	isNew []bool          // reports for each row whether it is new
	fresh []reflect.Value // the new rows: pointers to structs, or maps
	alone bool            // the new rows are inserted without ON CONFLICT
	// others is the copy of the statement that inserted the other rows. It is nil if there
	// were none.
	others *gorm.DB
	all    reflect.Value // the statement's ReflectValue; invalid if the statement still has it
	dest   any           // the statement's Dest
}

// separate is the callback that runs before the INSERT. If the statement has an ON CONFLICT,
// separate makes the structs get the IDs of the stored rows, and removes the ON CONFLICT from
// the new rows. If the statement has other rows, too, separate inserts them first.
func (p *planner) separate(db *gorm.DB) {
	stmt := db.Statement
	if _, conflicts := stmt.Clauses[onConflict]; db.Error != nil || stmt.Schema == nil || !conflicts {
		return
	}
	g := generationOf(stmt)
	if g == nil { // a hook has added the ON CONFLICT
		known := p.planFor(stmt.Schema)
		g = known.generation(stmt, nil)
		g.store(stmt)
	}
	conflict, known := conflictOf(stmt)
	g.upsert = g.prepareUpsert(stmt)
	if !known || !g.compared(stmt, conflict) {
		return
	}
	if g.ids == nil {
		g.copyIDs(stmt.Context)
	}
	others := g.divide(stmt, conflict)
	if len(g.fresh) == 0 || len(others) > 0 && db.DryRun {
		return
	}
	// The caller's DO NOTHING also skips rows with other existing values. In the statement for
	// an association, where GORM added it, it is for existing rows. A join table has no
	// family: its rows may exist, although they have new IDs.
	g.alone = g.nested || !isAnyKey(conflict)
	if len(others) > 0 {
		g.insertOthers(db, others)
	}
	if g.alone {
		delete(stmt.Clauses, onConflict)
	}
	if len(g.fresh) < count(stmt.ReflectValue) {
		g.all, g.dest = stmt.ReflectValue, stmt.Dest
		use(stmt, g.fresh)
	}
}

// prepareUpsert makes the structs of an upsert get the IDs of the stored rows.
func (g *generation) prepareUpsert(stmt *gorm.Statement) *upsert {
	u := new(upsert)
	if conflict, _ := conflictOf(stmt); g.plan.public && conflict.UpdateAll {
		keepPublicIDs(stmt, len(conflict.DoUpdates))
	}
	if row := only(stmt.ReflectValue); row.IsValid() && row.Kind() == reflect.Struct {
		u.row = row
	}
	if mayGetOtherIDs(stmt, g.plan) {
		added := returnIDs(stmt, g.plan)
		if added && !u.row.IsValid() && slices.Contains(stmt.BuildClauses, returning) {
			u.answers = stmt.ReflectValue.Len()
		}
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
	c.Builder = func(c clause.Clause, b clause.Builder) {
		stmt := b.(*gorm.Statement)
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

// compared reports whether ON CONFLICT compares a key of the plan, perhaps among others.
func (g *generation) compared(stmt *gorm.Statement, c clause.OnConflict) bool {
	return slices.ContainsFunc(g.plan.keys, func(k key) bool { return comparesID(stmt, c, k.field) })
}

// comparesID reports whether ON CONFLICT compares a column of IDs, perhaps among others.
func comparesID(stmt *gorm.Statement, c clause.OnConflict, f *schema.Field) bool {
	return isAnyKey(c) || targets(c, f) || f.PrimaryKey && c.OnConstraint != "" && c.OnConstraint == primaryKeyOf(stmt.Table)
}

// isAnyKey reports whether ON CONFLICT compares all unique keys.
func isAnyKey(c clause.OnConflict) bool {
	return c.DoNothing && len(c.Columns) == 0 && c.OnConstraint == ""
}

// primaryKeyOf returns the name that Postgres gives to the primary key of a table.
func primaryKeyOf(table string) string { return table[strings.LastIndexByte(table, '.')+1:] + "_pkey" }

// copyIDs remembers the IDs that the rows have now as the generated ones.
func (g *generation) copyIDs(ctx context.Context) {
	n := count(g.rows)
	g.ids = make([][]any, len(g.plan.keys))
	for j := range g.ids {
		g.ids[j] = make([]any, n)
		for i := range n {
			if row := rowAt(g.rows, i); row.IsValid() && g.has(j, i) {
				g.ids[j][i] = g.plan.keys[j].id(ctx, row)
			}
		}
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

// isGenerated reports whether a row still has the ID that the plugin generated.
func (g *generation) isGenerated(ctx context.Context, key, i int, row reflect.Value) bool {
	if !g.has(key, i) {
		return false
	}
	id := g.plan.keys[key].id(ctx, row)
	return id != nil && reflect.DeepEqual(id, g.ids[key][i])
}

// isFresh reports whether a row of a statement is new, so that it has a conflict only if its
// generated ID is another row's, or another unique column is.
func (g *generation) isFresh(stmt *gorm.Statement, conflict clause.OnConflict, i int, row reflect.Value) bool {
	isSet := func(f *schema.Field) bool { return (&key{field: f, index: -1}).id(stmt.Context, row) != nil }
	for j := range g.plan.keys {
		f := g.plan.keys[j].field
		if !comparesID(stmt, conflict, f) || !g.isGenerated(stmt.Context, j, i, row) {
			continue
		}
		// A row with a public ID is new for DO NOTHING if the database generates its primary key.
		if f.PrimaryKey || !isAnyKey(conflict) || !slices.ContainsFunc(stmt.Schema.PrimaryFields, isSet) {
			return true
		}
	}
	return false
}

// divide finds the new rows of a statement, and returns the others. It leaves out
// repetitions: rows of several owners may be the same.
func (g *generation) divide(stmt *gorm.Statement, conflict clause.OnConflict) (others []reflect.Value) {
	rows, seen := stmt.ReflectValue, map[any]bool{}
	g.isNew = make([]bool, count(rows))
	for i := range g.isNew {
		row := rowAt(rows, i)
		if !row.IsValid() {
			g.fresh = nil
			return nil // GORM fails
		}
		id := addressOf(row)
		// If an association refers back, the row of its owner has been inserted.
		inserted := g.family != nil && g.family.saved[id]
		if g.isNew[i] = !inserted && g.isFresh(stmt, conflict, i, row); g.isNew[i] && !seen[id] {
			seen[id] = true
			g.fresh = append(g.fresh, reference(row))
		}
	}
	for i, isNew := range g.isNew {
		if row := rowAt(rows, i); !isNew && !seen[addressOf(row)] {
			others = append(others, reference(row))
		}
	}
	return others
}

// reference returns a value that refers to a row.
func reference(row reflect.Value) reflect.Value {
	if row.Kind() == reflect.Struct && row.CanAddr() {
		return row.Addr()
	}
	return row
}

// addressOf returns a value that differs between rows. A struct without an address is the
// only row of its statement.
func addressOf(row reflect.Value) any {
	switch row = reference(row); row.Kind() {
	case reflect.Pointer:
		return row.Interface()
	case reflect.Map:
		return row.Pointer()
	}
	return nil
}

// use replaces the rows of a statement.
func use(stmt *gorm.Statement, rows []reflect.Value) {
	part := reflect.New(reflect.SliceOf(rows[0].Type()))
	part.Elem().Set(reflect.Append(part.Elem(), rows...))
	stmt.ReflectValue = part.Elem()
	switch stmt.Dest.(type) {
	case []map[string]any:
		stmt.Dest = part.Elem().Interface()
	case *[]map[string]any:
		stmt.Dest = part.Interface()
	}
}

// insertOthers inserts the rows that are not new, and logs the statement as GORM does.
func (g *generation) insertOthers(db *gorm.DB, rows []reflect.Value) {
	began := time.Now()
	tx := db.Session(&gorm.Session{Initialized: true})
	stmt := tx.Statement
	stmt.BuildClauses = db.Statement.BuildClauses
	use(stmt, rows)
	tx.Callback().Create().Get(createCallback)(tx)
	tx.Logger.Trace(stmt.Context, began, func() (string, int64) {
		sql, vars := stmt.SQL.String(), stmt.Vars
		if filter, ok := tx.Logger.(gorm.ParamsFilter); ok {
			sql, vars = filter.ParamsFilter(stmt.Context, sql, vars...)
		}
		return tx.Explain(sql, vars...), tx.RowsAffected
	}, tx.Error)
	g.others, db.Error = tx, tx.Error
}

// reconcile is the callback that runs after the INSERT. It fails if a generated ID is
// another row's, or if RETURNING returned too few rows. If the only row was not inserted,
// reconcile resets its generated ID to zero.
func reconcile(db *gorm.DB) {
	stmt := db.Statement
	g := generationOf(stmt)
	if g == nil || g.upsert == nil {
		return
	}
	conflict, _ := conflictOf(stmt)
	inserted := db.RowsAffected
	if g.others != nil {
		conflict, _ = conflictOf(g.others.Statement)
		db.RowsAffected += g.others.RowsAffected
		if stmt.Result != nil {
			stmt.Result.RowsAffected = db.RowsAffected
		}
	}
	if g.all.IsValid() {
		part := stmt.ReflectValue
		stmt.ReflectValue, stmt.Dest = g.all, g.dest
		if db.Error == nil && returnsAll(stmt) {
			g.returned(part)
		}
	}
	if db.Error != nil || db.DryRun {
		return
	}
	if g.nested {
		g.family.remember(g.rows)
	}
	if inserted < int64(len(g.fresh)) && !g.alone {
		g.checkTaken(db, inserted)
	}
	if g.answers > 0 && !conflict.DoNothing && db.RowsAffected != int64(g.answers) {
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

// remember adds rows to the rows that statements for associations have inserted.
func (f *family) remember(rows reflect.Value) {
	if f.saved == nil {
		f.saved = map[any]bool{}
	}
	for i := range count(rows) {
		f.saved[addressOf(rowAt(rows, i))] = true
	}
}

// returned puts the rows that RETURNING * has put into the parts of a statement into the
// statement's slice. fresh has the new rows. They have the statement's order if none
// is missing.
func (g *generation) returned(fresh reflect.Value) {
	if g.all.Kind() != reflect.Slice || !g.all.CanSet() || isMaps(g.dest) {
		return
	}
	var parts [2][]reflect.Value // the other rows, and the new ones
	for i := range fresh.Len() {
		parts[1] = append(parts[1], fresh.Index(i))
	}
	if g.others != nil {
		for rows, i := g.others.Statement.ReflectValue, 0; i < rows.Len(); i++ {
			parts[0] = append(parts[0], rows.Index(i))
		}
	}
	n := len(parts[0]) + len(parts[1])
	inOrder := n == len(g.isNew) && len(parts[1]) == len(g.fresh)
	rows := reflect.MakeSlice(g.all.Type(), 0, n)
	for i := range n {
		from := &parts[0]
		if inOrder && g.isNew[i] || len(parts[0]) == 0 {
			from = &parts[1]
		}
		row := (*from)[0]
		*from = (*from)[1:]
		if g.all.Type().Elem().Kind() == reflect.Struct {
			row = row.Elem()
		}
		rows = reflect.Append(rows, row)
	}
	g.all.Set(rows)
}

// checkTaken fails if the database skipped new rows because other rows have their IDs. Then
// the table has more rows with generated IDs than the statement inserted. Otherwise another
// value of the rows was the reason.
func (g *generation) checkTaken(db *gorm.DB, inserted int64) {
	stmt := db.Statement
	for j := range g.plan.keys {
		var ids []any
		k := &g.plan.keys[j]
		for i := range count(g.rows) {
			if row := rowAt(g.rows, i); g.isGenerated(stmt.Context, j, i, row) {
				ids = append(ids, k.id(stmt.Context, row))
			}
		}
		if len(ids) == 0 {
			continue
		}
		n, err := countIDs(db, k.field, ids)
		switch {
		case err != nil:
			_ = db.AddError(fmt.Errorf("gormplugin: find out whether another row has the generated %s of a row that ON CONFLICT skipped: %w", fieldName(k.field), err))
			return
		case n > inserted:
			_ = db.AddError(fmt.Errorf("gormplugin: create %s: ON CONFLICT skipped a row because another row has its generated %s; roll back, and create the rows again with new IDs: %w",
				modelName(stmt.Schema), k.field.DBName, gorm.ErrDuplicatedKey))
			return
		}
	}
}

// countIDs returns the number of rows with one of the IDs. It uses the statement's
// connection: a plugin may send queries to a replica, which may be behind.
func countIDs(db *gorm.DB, f *schema.Field, ids []any) (n int64, err error) {
	stmt := db.Statement
	query := db.Session(&gorm.Session{NewDB: true, DryRun: true}).Table(stmt.Table).Select("1").
		Where(clause.IN{Column: clause.Column{Name: f.DBName}, Values: ids}).Find(&[]map[string]any{})
	if query.Error != nil {
		return 0, query.Error
	}
	rows, err := stmt.ConnPool.QueryContext(stmt.Context, query.Statement.SQL.String(), query.Statement.Vars...)
	if err != nil {
		return 0, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		n++
	}
	return n, rows.Err()
}
