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
)

// G makes of a scope of [gorm.DB.Scopes] one that [gorm.G] takes, which calls it
// at its place among the conditions: an Or belongs before it.
//
//	gorm.G[Order](db).Scopes(gormplugin.G(gormplugin.PageBefore("", cursor))).Limit(20).Find(ctx)
func G(scope func(*gorm.DB) *gorm.DB) func(*gorm.Statement) {
	return func(stmt *gorm.Statement) { scope(stmt.DB) }
}

// A Layout turns a window of time into bounds of IDs. The layouts of package
// idtype do, except for Spread64's, whose IDs don't order by time.
type Layout[T any] interface {
	Range(from, to time.Time) (lo, hi T, err error)
}

// MintedBetween is a scope for [gorm.DB.Scopes]: the rows whose ID was minted
// from one instant to before another. It compares the column itself with two
// bounds, so that an index on it serves:
//
//	"orders"."id" >= lo AND "orders"."id" < hi
//
// An empty column means the model's primary key, a plain name a column of the
// statement's table, and one with a dot a column of the table before it. A
// zero from or to leaves that side open, to the format's smallest and largest
// value. A window that the layout refuses is the query's error, as is a column
// whose form, such as decimal text, doesn't order by time.
//
// A column that holds IDs of another type is an error, too. The model tells its
// type: nothing is checked without a model, for a column of another table, and
// for a field of another type, such as an int64, a uuid.UUID or a string.
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

// PageAfter is a scope for [gorm.DB.Scopes]: the rows after a cursor, which is
// the last ID of the page before, in the order of their IDs. Those of a zero
// cursor, or of a nil pointer, begin with the smallest. Pages of a size,
// whatever is inserted and deleted meanwhile, are
//
//	db.Scopes(gormplugin.PageAfter("", cursor)).Limit(size).Find(&page)
//
// The column is that of [MintedBetween], and so are the errors. The order is
// the pages' own: another Order before is an error.
func PageAfter[T interface{ IsZero() bool }](column string, cursor T) func(*gorm.DB) *gorm.DB {
	return page{columnOf(column), cursor, isNone(cursor), false}.scope
}

// PageBefore is [PageAfter] backwards: the rows before a cursor, which for IDs
// that order by time are the older ones, the newest of them first. Those of a
// zero cursor begin with the largest ID. [gorm.DB.First] has an order of its own,
// which is an error: the first of them is found by Take.
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
		return clause.Column{Name: name} // the dialect splits it
	}
	return clause.Column{Table: clause.CurrentTable, Name: name}
}

// fieldOf is the field of a column, if the statement's table is the model's. It
// is nil if the column may be another table's.
func fieldOf(s *schema.Schema, table string, c clause.Column) (*schema.Field, error) {
	switch {
	case s == nil:
		return nil, nil
	case c.Table == "":
		// A name with a dot has its table before the last one.
		if i := strings.LastIndexByte(c.Name, '.'); i >= 0 && c.Name[:i] == table {
			return s.LookUpField(c.Name[i+1:]), nil
		}
		return nil, nil
	case c.Table != clause.CurrentTable:
		return nil, nil
	case c.Name != clause.PrimaryKey:
		return s.LookUpField(c.Name), nil
	case s.PrioritizedPrimaryField == nil:
		// GORM would take the first column.
		return nil, fmt.Errorf("gormplugin: find the key column of %s: the model has no primary key of one column; pass the name of a column: %w", s.Name, gorm.ErrInvalidField)
	}
	return s.PrioritizedPrimaryField, nil
}

// compared returns an ID in the form that a column stores, as far as the
// statement's model tells it.
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

// between is the condition of a window. It is built when the model is known.
type between struct {
	column clause.Column
	lo, hi any
	err    error // of a query that becomes a condition of another one
}

// NegationBuild is for Not: GORM would negate the first comparison alone.
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

// bounds are those of the window as the column stores IDs.
func (b between) bounds(builder clause.Builder) (lo, hi any, err error) {
	if err = b.err; err == nil {
		lo, err = compared(builder, b.column, b.lo)
	}
	if err == nil {
		hi, err = compared(builder, b.column, b.hi)
	}
	return lo, hi, err
}

// stored returns an ID in the form that a field stores. It fails if the field
// has IDs of another type, or doesn't order as they do.
func stored(f *schema.Field, id any) (any, error) {
	t, form := contentOf(reflect.TypeOf(id)), contentOf(f.FieldType)
	if isID(form) && !sameKind(form, t) {
		return nil, fmt.Errorf("gormplugin: compare %s: want an ID of type %v, got %v; pass a cursor or a layout of the column's type, or name another column: %w",
			fieldName(f), identity(form), identity(t), gorm.ErrInvalidField)
	}
	if t == form || !isID(t) || dataType(form) == "" || dataType(form) == dataType(t) {
		return id, nil
	}
	// The text and the bytes of a Sno order as it does, the text of a number doesn't.
	v := content(reflect.ValueOf(id))
	if !wraps(form, v.Type()) || v.Type() != reflect.TypeFor[idtype.Sno]() && dataType(form) != dataType(v.Type()) {
		return nil, fmt.Errorf("gormplugin: compare %s: a %v in a column of type %s doesn't sort in the order of its IDs; use a column of type %s: %w",
			fieldName(f), f.FieldType, dataType(form), dataType(v.Type()), gorm.ErrInvalidField)
	}
	return holding(form, v).Interface(), nil
}

// sameKind reports whether two types hold the same IDs. A type of the caller's
// own that embeds an ID goes with that, and not with another such type.
func sameKind(a, b reflect.Type) bool {
	a, b = identity(a), identity(b)
	return wraps(a, b) || wraps(b, a)
}

// identity is the type of the ID in a type t: one of package idtype, or one of
// the caller's own that embeds it.
func identity(t reflect.Type) reflect.Type {
	t = contentOf(t)
	for inner, ok := wrappedType(t); ok && !t.Field(0).Anonymous; inner, ok = wrappedType(t) {
		t = inner
	}
	return t
}

// dataType is the column type that a type asks GORM for.
func dataType(t reflect.Type) string {
	if t, ok := reflect.New(t).Interface().(schema.GormDataTypeInterface); ok {
		return t.GormDataType()
	}
	return ""
}

// A page is a scope: rows in the order of a column, from a cursor on.
type page struct {
	column     clause.Column
	cursor     any
	first      bool // there is no cursor
	descending bool
}

func (p page) scope(db *gorm.DB) *gorm.DB {
	db = db.Clauses() // a statement of its own, if db is shared, for the errors below
	// IDs of Spread64 are negative as well: a zero cursor is no bound.
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

// check is for the first page, too, whose cursor is no condition.
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

// orderUnlessCounted leaves the order out of a Count, which takes out only those
// that it finds before it calls scopes. A query that follows it keeps the order.
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

// modelOf is the schema of a statement whose scopes are run, which is before
// GORM parses the model, and the name of its table. It may not be known yet.
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

// nameOf is a column's name, for comparing it to another.
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

// narrow adds a condition to all that there are. After an Or, Where alone would
// add it to the last of the alternatives.
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

// alternatives are conditions in parentheses, in the order that GORM gives
// them without.
type alternatives []clause.Expression

func (a alternatives) Build(builder clause.Builder) {
	_ = builder.WriteByte('(')
	clause.Where{Exprs: slices.Clone(a)}.Build(builder) // which sorts them
	_ = builder.WriteByte(')')
}
