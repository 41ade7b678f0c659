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

// A row with a generated ID is new. If another row has this ID, an ON CONFLICT must neither
// change that row nor skip the new one. Therefore the plugin inserts new rows without an
// ON CONFLICT that compares generated IDs, and the database rejects the ID.

// trackTime is the name of a setting that GORM deletes when it builds an INSERT.
const trackTime = "gorm:update_track_time"

// separated has the rows of a statement, separated by whether their IDs are new.
type separated struct {
	fresh []reflect.Value // the new rows: pointers to structs, or maps
	alone bool            // the new rows are inserted without ON CONFLICT
	// nothing reports whether the ON CONFLICT is DO NOTHING. An UpdateAll may become one.
	nothing bool
	// began is set if the new rows are inserted after the others, which began then.
	began     time.Time
	replaced  bool          // the statement has a part of the rows
	all       reflect.Value // the statement's ReflectValue
	dest      any           // the statement's Dest
	trackTime bool
	inserted  bool // the rows are in the database
}

// copyIDs returns the IDs that the plugin generated in structs. Hooks may replace them.
func (g *generation) copyIDs(ctx context.Context) []reflect.Value {
	ids, n := make([]reflect.Value, len(g.spans)), count(g.rows)
	for j := range g.spans {
		k := &g.plan.keys[j]
		for i := g.spans[j].from; i < g.spans[j].to; i++ {
			row := rowAt(g.rows, i)
			if !g.has(j, i) || row.Kind() != reflect.Struct || isMissing(k.in(ctx, row)) {
				continue
			}
			id := content(k.in(ctx, row))
			if !ids[j].IsValid() {
				ids[j] = reflect.MakeSlice(reflect.SliceOf(id.Type()), n, n)
			}
			ids[j].Index(i).Set(id)
		}
	}
	return ids
}

// late returns the generation of a statement to which a hook has added the ON CONFLICT. It
// takes the IDs that the rows have now for the generated ones.
func (g *generation) late(stmt *gorm.Statement) *generation {
	spans, n := g.spans, count(stmt.ReflectValue)
	if spans == nil {
		spans = make([]span, len(g.plan.keys))
		for j := range spans {
			if g.has(j, 0) {
				spans[j].to = n
			}
		}
	}
	with := g.plan.generation(stmt, spans)
	with.family, with.nested = g.family, g.nested
	with.upsert = with.prepareUpsert(stmt)
	stmt.Clauses[generationClause] = clause.Clause{Expression: with}
	return with
}

// isGenerated reports whether a row has the ID that the plugin generated.
func (g *generation) isGenerated(ctx context.Context, key, i int, row reflect.Value) bool {
	if !g.has(key, i) {
		return false
	}
	if row.Kind() == reflect.Map {
		return true // there are no hooks for maps
	}
	field := g.plan.keys[key].in(ctx, row)
	return !isMissing(field) && reflect.DeepEqual(content(field).Interface(), g.ids[key].Index(i).Interface())
}

// isFresh reports whether a row of a statement is new, so that it has a conflict only if its
// generated ID is another row's, or another unique column is.
func (g *generation) isFresh(stmt *gorm.Statement, conflict clause.OnConflict, i int, row reflect.Value) bool {
	for j := range g.plan.keys {
		f := g.plan.keys[j].field
		if !comparesID(stmt, conflict, f) || !g.isGenerated(stmt.Context, j, i, row) {
			continue
		}
		// A row with a public ID is new for DO NOTHING if the database generates its primary key.
		if f.PrimaryKey || !isAnyKey(conflict) ||
			!slices.ContainsFunc(stmt.Schema.PrimaryFields, func(f *schema.Field) bool { return isSet(stmt.Context, f, row) }) {
			return true
		}
	}
	return false
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

// isSet reports whether a row has a value in a field.
func isSet(ctx context.Context, f *schema.Field, row reflect.Value) bool {
	if row.Kind() == reflect.Map {
		_, missing := (&key{field: f}).entry(row.Interface().(map[string]any))
		return !missing
	}
	_, zero := f.ValueOf(ctx, row)
	return !zero
}

// separate is the callback that runs before the INSERT. It removes an ON CONFLICT from new
// rows. If the statement has other rows, too, separate leaves the new rows to insertFresh.
func separate(db *gorm.DB) {
	stmt := db.Statement
	g := generationOf(stmt)
	conflict, known := conflictOf(stmt)
	if db.Error != nil || g == nil || !known {
		return
	}
	if !g.conflicts {
		g = g.late(stmt)
	}
	if g.ids == nil {
		return
	}
	fresh, others := g.divide(stmt, conflict)
	if len(fresh) == 0 {
		return
	}
	g.fresh, g.all, g.dest = fresh, stmt.ReflectValue, stmt.Dest
	// The caller's DO NOTHING also skips rows with other existing values. In the statement for
	// an association, where GORM added it, it is for existing rows. A join table has no
	// family: its rows may exist, although they have new IDs.
	g.alone = g.nested || !isAnyKey(conflict)
	switch {
	case len(others) > 0 && db.DryRun:
	case len(others) > 0:
		g.began = time.Now()
		_, g.trackTime = stmt.Settings.Load(trackTime)
		g.use(stmt, others)
	default:
		if g.alone {
			delete(stmt.Clauses, onConflict)
		}
		if len(fresh) < count(stmt.ReflectValue) {
			g.use(stmt, fresh)
		}
	}
}

// divide returns the new rows of a statement, and the others. It leaves out repetitions: rows
// of several owners may be the same.
func (g *generation) divide(stmt *gorm.Statement, conflict clause.OnConflict) (fresh, others []reflect.Value) {
	rows, seen := stmt.ReflectValue, map[uintptr]bool{}
	saved := g.family.saved()
	isNew := make([]bool, count(rows))
	for i := range isNew {
		row := rowAt(rows, i)
		if !row.IsValid() {
			return nil, nil // GORM fails
		}
		p := pointer(row)
		if isNew[i] = !saved[p] && g.isFresh(stmt, conflict, i, row); isNew[i] && !seen[p] {
			seen[p] = true
			fresh = append(fresh, reference(row))
		}
	}
	for i := range isNew {
		if row := rowAt(rows, i); !isNew[i] && !seen[pointer(row)] {
			others = append(others, reference(row))
		}
	}
	return fresh, others
}

// saved returns the rows that the statements for associations have inserted. If an
// association refers back, the row of its owner is among them.
func (f *family) saved() map[uintptr]bool {
	if f == nil {
		return nil
	}
	rows := map[uintptr]bool{}
	for _, g := range f.generations {
		for i := range count(g.rows) {
			if row := rowAt(g.rows, i); g.inserted && row.IsValid() {
				rows[pointer(row)] = true
			}
		}
	}
	return rows
}

// reference returns a value that refers to a row.
func reference(row reflect.Value) reflect.Value {
	if row.Kind() == reflect.Struct && row.CanAddr() {
		return row.Addr()
	}
	return row
}

// pointer returns the address of a row, or 0 if it has none.
func pointer(row reflect.Value) uintptr {
	if row = reference(row); row.Kind() == reflect.Struct {
		return 0
	}
	return row.Pointer()
}

// use replaces the rows of a statement.
func (g *generation) use(stmt *gorm.Statement, rows []reflect.Value) {
	part := reflect.New(reflect.SliceOf(rows[0].Type()))
	part.Elem().Set(reflect.Append(part.Elem(), rows...))
	g.replaced, stmt.ReflectValue = true, part.Elem()
	switch stmt.Dest.(type) {
	case []map[string]any:
		stmt.Dest = part.Elem().Interface()
	case *[]map[string]any:
		stmt.Dest = part.Interface()
	}
}

// insertFresh inserts the new rows, if others were inserted before, and gives the statement
// all rows back. It returns the number of new rows that were inserted.
func (g *generation) insertFresh(db *gorm.DB) (inserted int64) {
	stmt := db.Statement
	conflict, _ := conflictOf(stmt)
	g.nothing, inserted = conflict.DoNothing, db.RowsAffected
	if !g.replaced {
		return inserted
	}
	parts := []reflect.Value{stmt.ReflectValue}
	if !g.began.IsZero() && db.Error == nil {
		g.log(db)
		others := db.RowsAffected
		stmt.SQL.Reset()
		stmt.Vars, db.RowsAffected = nil, 0
		if g.alone {
			delete(stmt.Clauses, onConflict)
		}
		if g.trackTime {
			stmt.Settings.Store(trackTime, true)
		}
		g.use(stmt, g.fresh)
		db.Callback().Create().Get(createCallback)(db)
		inserted = db.RowsAffected
		db.RowsAffected += others
		if stmt.Result != nil {
			stmt.Result.RowsAffected = db.RowsAffected
		}
		parts = append(parts, stmt.ReflectValue)
	}
	stmt.ReflectValue, stmt.Dest = g.all, g.dest
	if db.Error == nil {
		g.returned(stmt, parts)
	}
	return inserted
}

// log logs the INSERT of the rows that are not new, as GORM logs a statement.
func (g *generation) log(db *gorm.DB) {
	db.Logger.Trace(db.Statement.Context, g.began, func() (string, int64) {
		sql, vars := db.Statement.SQL.String(), db.Statement.Vars
		if filter, ok := db.Logger.(gorm.ParamsFilter); ok {
			sql, vars = filter.ParamsFilter(db.Statement.Context, sql, vars...)
		}
		return db.Explain(sql, vars...), db.RowsAffected
	}, db.Error)
}

// returned gives the statement the rows that RETURNING has put into its parts. GORM appends
// maps. With RETURNING *, it replaces structs.
func (g *generation) returned(stmt *gorm.Statement, parts []reflect.Value) {
	all := g.all
	if all.Kind() != reflect.Slice || !all.CanSet() {
		return
	}
	if isMaps(g.dest) {
		n := all.Len() - len(g.fresh)
		for _, part := range parts {
			all.Set(reflect.AppendSlice(all, part.Slice(n, part.Len())))
			n = len(g.fresh)
		}
		return
	}
	if !returnsAll(stmt) {
		return
	}
	// In the order of the statement, if no row is missing.
	first, last, isFresh := parts[0], parts[len(parts)-1], map[uintptr]bool{}
	for _, row := range g.fresh {
		isFresh[row.Pointer()] = true
	}
	inOrder := len(parts) > 1 && last.Len() == len(g.fresh) && first.Len()+last.Len() == all.Len()
	rows := reflect.MakeSlice(all.Type(), 0, all.Len())
	for i := range all.Len() {
		from := &first
		if inOrder && isFresh[pointer(rowAt(all, i))] || first.Len() == 0 {
			from = &last
		}
		if from.Len() == 0 {
			break
		}
		row := from.Index(0)
		if all.Type().Elem().Kind() == reflect.Struct {
			row = row.Elem()
		}
		rows, *from = reflect.Append(rows, row), from.Slice(1, from.Len())
	}
	all.Set(rows)
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
			row := rowAt(g.rows, i)
			if !g.isGenerated(stmt.Context, j, i, row) {
				continue
			}
			if row.Kind() == reflect.Map {
				m := row.Interface().(map[string]any)
				name, _ := k.entry(m)
				ids = append(ids, m[name])
			} else {
				id, _ := k.field.ValueOf(stmt.Context, row)
				ids = append(ids, id)
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
