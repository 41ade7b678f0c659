package gormplugin

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/internal/typename"
)

// G adapts a scope for [gorm.DB.Scopes] to the generic interface of [gorm.G]:
//
//	gorm.G[Order](db).Scopes(gormplugin.G(gormplugin.PageBefore("", cursor))).Limit(20).Find(ctx)
//
// GORM's generic interface applies conditions in the order of the calls. Write an
// Or before the scope.
func G(scope func(*gorm.DB) *gorm.DB) func(*gorm.Statement) {
	return func(stmt *gorm.Statement) { scope(stmt.DB) }
}

// A Layout converts a time window to bounds of IDs. The layouts of package idtype
// implement it, except for the layout of Spread64, whose IDs don't sort by time.
type Layout[T any] interface {
	Range(from, to time.Time) (lo, hi T, err error)
}

// MintedBetween returns a scope for [gorm.DB.Scopes] that selects the rows whose ID
// was generated at or after from and before to. It compares the column with two
// bounds, so that the database can use an index on the column:
//
//	"orders"."id" >= lo AND "orders"."id" < hi
//
// An empty column means the model's primary key. A plain name is a column of the
// statement's table. In a name with a dot, the table comes before the dot. If from
// is zero, the window begins with the format's smallest value. If to is zero, it
// extends to the largest.
//
// The column can store IDs of the layout's type or typed keys of that type. The query
// fails if the layout rejects the window, if the column has another ID type, or if the
// column doesn't sort by time, such as decimal text. MintedBetween takes the column's
// type from the model. It can't check a query without a model, a column of another
// table, or a field of another type, such as an int64, a uuid.UUID or a string.
func MintedBetween[T any](layout Layout[T], column string, from, to time.Time) func(*gorm.DB) *gorm.DB {
	lo, hi, err := layout.Range(from, to)
	condition := between{columnOf(column), lo, hi, err}
	return func(db *gorm.DB) *gorm.DB {
		db = narrow(db, condition)
		if err != nil {
			_ = db.AddError(err)
		}
		return db
	}
}

// PageAfter returns a scope for [gorm.DB.Scopes] that selects the rows after a
// cursor, in the order of their IDs. The cursor is the last ID of the previous
// page:
//
//	db.Scopes(gormplugin.PageAfter("", cursor)).Limit(size).Find(&page)
//
// For a column of typed keys, the cursor can have the column's type or its base type. The
// query fails if the cursor is another model's ID.
//
// A zero cursor or a nil pointer selects the first page. Rows that are inserted or
// deleted between two queries don't shift the pages.
//
// For the column and its errors, see [MintedBetween]. PageAfter sets the order of the
// query. The query fails if it already has another Order.
func PageAfter[T interface{ IsZero() bool }](column string, cursor T) func(*gorm.DB) *gorm.DB {
	return page{columnOf(column), cursor, isNone(cursor), false}.scope
}

// PageBefore is [PageAfter] in descending order. It selects the rows before a
// cursor: the older rows, newest first, if the IDs sort by time. A zero cursor or a
// nil pointer selects the page with the largest IDs.
//
// For the first row of a page, use [gorm.DB.Take]. [gorm.DB.First] fails, because it
// sets its own order.
func PageBefore[T interface{ IsZero() bool }](column string, cursor T) func(*gorm.DB) *gorm.DB {
	return page{columnOf(column), cursor, isNone(cursor), true}.scope
}

func isNone[T interface{ IsZero() bool }](cursor T) bool {
	v := reflect.ValueOf(cursor)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() || cursor.IsZero()
}

func columnOf(name string) clause.Column {
	switch {
	case name == "":
		return clause.PrimaryColumn
	case strings.Contains(name, "."):
		return clause.Column{Name: name} // the dialect splits the name
	}
	return clause.Column{Table: clause.CurrentTable, Name: name}
}

// fieldOf returns the field of a column of the model's table, or nil if the column
// may belong to another table.
func fieldOf(s *schema.Schema, table string, c clause.Column) (*schema.Field, error) {
	switch {
	case s == nil:
		return nil, nil
	case c.Table == "":
		// The table is the part before the last dot.
		if i := strings.LastIndexByte(c.Name, '.'); i >= 0 && c.Name[:i] == table {
			return s.LookUpField(c.Name[i+1:]), nil
		}
		return nil, nil
	case c.Table != clause.CurrentTable:
		return nil, nil
	case c.Name != clause.PrimaryKey:
		return s.LookUpField(c.Name), nil
	case s.PrioritizedPrimaryField == nil:
		// GORM would use the first column.
		return nil, fmt.Errorf("gormplugin: find the key column of %s: the model has no single-column primary key; pass the name of a column: %w", modelName(s), gorm.ErrInvalidField)
	}
	return s.PrioritizedPrimaryField, nil
}

// compared returns an ID in the form that a column stores. If the statement's model
// doesn't have the column, it returns the ID unchanged.
func compared(builder clause.Builder, c clause.Column, id any) (any, error) {
	stmt, ok := builder.(*gorm.Statement)
	if !ok {
		return id, nil
	}
	field, err := fieldOf(stmt.Schema, stmt.Table, c)
	if err != nil || field == nil {
		return id, err
	}
	return stored(field, id)
}

// between is the condition of a time window. GORM builds it once the model is known.
type between struct {
	column clause.Column
	lo, hi any
	err    error // the layout's error; Build reports it if the query becomes a condition of another query
}

// NegationBuild implements Not. Without it, GORM would negate only the first comparison.
func (b between) NegationBuild(builder clause.Builder) {
	_, _ = builder.WriteString("NOT (")
	b.Build(builder)
	_ = builder.WriteByte(')')
}

func (b between) Build(builder clause.Builder) {
	lo, hi, err := b.bounds(builder)
	if err != nil {
		_ = builder.AddError(err)
		return
	}
	clause.Gte{Column: b.column, Value: lo}.Build(builder)
	_, _ = builder.WriteString(clause.AndWithSpace)
	clause.Lt{Column: b.column, Value: hi}.Build(builder)
}

// bounds returns the bounds of the window in the form that the column stores.
func (b between) bounds(builder clause.Builder) (lo, hi any, err error) {
	if err = b.err; err == nil {
		lo, err = compared(builder, b.column, b.lo)
	}
	if err == nil {
		hi, err = compared(builder, b.column, b.hi)
	}
	return lo, hi, err
}

// stored returns an ID in the form that a field stores. It fails if the field has
// IDs of another type, or if its form sorts differently from the IDs.
func stored(f *schema.Field, id any) (any, error) {
	t, form := contentOf(reflect.TypeOf(id)), contentOf(f.FieldType)
	if isID(form) && !sameKind(form, t) {
		return nil, fmt.Errorf("gormplugin: compare %s: want an ID of type %s, got %s; pass a cursor or a layout of the column's type, or name another column: %w",
			fieldName(f), typename.Of(identity(form)), typename.Of(identity(t)), gorm.ErrInvalidField)
	}
	if t == form || !isID(t) || dataType(form) == "" || dataType(form) == dataType(t) {
		return id, nil
	}
	// The text and the bytes of a Sno sort as the Sno does. The text of a number
	// doesn't sort as the number does.
	v := content(reflect.ValueOf(id))
	base := untyped(v.Type())
	if !wraps(form, base) || base != reflect.TypeFor[idtype.Sno]() && dataType(form) != dataType(base) {
		return nil, fmt.Errorf("gormplugin: compare %s: IDs of type %s in a column of type %s don't sort in their order; use a column of type %s: %w",
			fieldName(f), typename.Of(f.FieldType), dataType(form), dataType(base), gorm.ErrInvalidField)
	}
	return holding(form, v).Interface(), nil
}

// sameKind reports whether two types hold the same IDs. A typed key, or a type of the
// caller that embeds an ID, can be compared with its base type, but not with another
// model's key or another type that embeds the ID.
func sameKind(a, b reflect.Type) bool {
	a, b = identity(a), identity(b)
	return wraps(a, b) || wraps(b, a)
}

// identity returns the type of the ID in a type t: a type of package idtype, a typed key,
// or the caller's own type that embeds one.
func identity(t reflect.Type) reflect.Type {
	t = contentOf(t)
	for inner, ok := wrappedType(t); ok && !t.Field(0).Anonymous; inner, ok = wrappedType(t) {
		t = inner
	}
	return t
}

// dataType returns the column type that a type declares for GORM.
func dataType(t reflect.Type) string {
	if t, ok := reflect.New(t).Interface().(schema.GormDataTypeInterface); ok {
		return t.GormDataType()
	}
	return ""
}

// A page selects rows in the order of a column, beginning after a cursor.
type page struct {
	column     clause.Column
	cursor     any
	first      bool // there is no cursor
	descending bool
}

func (p page) scope(db *gorm.DB) *gorm.DB {
	db = db.Clauses() // returns a new statement if db is shared, for the errors below
	// Spread64 has negative IDs, so zero can't be a bound.
	if !p.first {
		db = narrow(db, p)
	}
	stmt := db.Statement
	s, table := modelOf(stmt)
	if err := p.check(s, table); err != nil {
		_ = db.AddError(err)
		return db
	}
	order, _ := stmt.Clauses["ORDER BY"].Expression.(clause.OrderBy)
	switch {
	case order.Expression == nil && len(order.Columns) == 0:
		db = db.Order(clause.OrderByColumn{Column: p.column, Desc: p.descending})
		if counts(db.Statement) {
			c := db.Statement.Clauses["ORDER BY"]
			c.Builder = orderUnlessCounted
			db.Statement.Clauses["ORDER BY"] = c
		}
		return db
	case order.Expression == nil && order.Columns[0].Desc == p.descending && nameOf(s, table, order.Columns[0].Column) == nameOf(s, table, p.column):
		return db
	}
	_ = db.AddError(errors.New("gormplugin: order page: the query already has an ORDER BY; remove Order, and use Take or Find instead of First, Last or FindInBatches, which add an order"))
	return db
}

// check compares the types of column and cursor. It also covers the first page, which
// has no condition.
func (p page) check(s *schema.Schema, table string) error {
	field, err := fieldOf(s, table, p.column)
	if t := reflect.TypeOf(p.cursor); err == nil && field != nil && t != nil {
		_, err = stored(field, reflect.Zero(contentOf(t)).Interface())
	}
	return err
}

func (p page) Build(builder clause.Builder) {
	cursor, err := compared(builder, p.column, p.cursor)
	if err != nil {
		_ = builder.AddError(err)
		return
	}
	if p.descending {
		clause.Lt{Column: p.column, Value: cursor}.Build(builder)
	} else {
		clause.Gt{Column: p.column, Value: cursor}.Build(builder)
	}
}

// orderUnlessCounted omits the order in a Count. GORM removes an order from a Count
// only if the order was there before it calls the scopes. A later query with the same
// statement keeps the order.
func orderUnlessCounted(c clause.Clause, builder clause.Builder) {
	if stmt, ok := builder.(*gorm.Statement); ok && counts(stmt) {
		return
	}
	c.Builder = nil
	c.Build(builder)
}

// counts reports whether a statement is a Count.
func counts(stmt *gorm.Statement) bool {
	_, number := stmt.Dest.(*int64)
	selected, _ := stmt.Clauses["SELECT"].Expression.(clause.Expr)
	return number && strings.HasPrefix(strings.ToUpper(selected.SQL), "COUNT(")
}

// modelOf returns the schema of a statement's model, and the name of its table. GORM
// calls scopes before it parses the model. If the statement has no model yet, the
// schema is nil.
func modelOf(stmt *gorm.Statement) (*schema.Schema, string) {
	model := stmt.Model
	if model == nil {
		model = stmt.Dest
	}
	parsed := gorm.Statement{DB: stmt.DB}
	if parsed.Parse(model) != nil {
		return nil, ""
	}
	return parsed.Schema, cmp.Or(stmt.Table, parsed.Table)
}

// nameOf returns a column's name in a form that is equal for equal columns.
func nameOf(s *schema.Schema, table string, c clause.Column) string {
	if s != nil && c.Table == s.Table {
		c.Table = clause.CurrentTable
	}
	if f, _ := fieldOf(s, table, c); f != nil {
		return f.DBName
	}
	if c.Table != "" && c.Table != clause.CurrentTable {
		return c.Table + "." + c.Name
	}
	return c.Name
}

// narrow combines a condition with all existing conditions by AND. After an Or, Where
// would combine it only with the last alternative.
func narrow(db *gorm.DB, condition clause.Expression) *gorm.DB {
	db = db.Where(condition)
	stmt := db.Statement
	c := stmt.Clauses["WHERE"]
	if w, ok := c.Expression.(clause.Where); ok {
		others := w.Exprs[:len(w.Exprs)-1]
		if slices.ContainsFunc(others, isOr) {
			c.Expression = clause.Where{Exprs: []clause.Expression{alternatives(others), condition}}
			stmt.Clauses["WHERE"] = c
		}
	}
	return db
}

func isOr(e clause.Expression) bool {
	_, ok := e.(clause.OrConditions)
	return ok
}

// alternatives are conditions in parentheses. They have the order in which GORM would
// write them without parentheses.
type alternatives []clause.Expression

func (a alternatives) Build(builder clause.Builder) {
	_ = builder.WriteByte('(')
	clause.Where{Exprs: slices.Clone(a)}.Build(builder) // sorts the copy
	_ = builder.WriteByte(')')
}
