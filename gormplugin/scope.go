package gormplugin

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// G adapts a scope for [gorm.DB.Scopes] to the generic interface of [gorm.G]:
//
//	gorm.G[Order](db).Scopes(gormplugin.G(gormplugin.PageBefore("", cursor))).Limit(20).Find(ctx)
func G(scope func(*gorm.DB) *gorm.DB) func(*gorm.Statement) {
	return func(stmt *gorm.Statement) { scope(stmt.DB) }
}

// CreatedBetween returns a scope for [gorm.DB.Scopes] that selects the rows whose ID
// was created at or after from and before to. It compares the column with two
// bounds, so that the database can use an index on the column:
//
//	"orders"."id" >= lo AND "orders"."id" < hi
//
// An empty column means the model's primary key. A plain name is a column of the
// statement's table. In a name with a dot, the table comes before the dot. If from
// is zero, the window begins with the format's smallest value. If to is zero, it
// extends to the largest.
//
// For typed keys, the bounds have the layout that the model of the key declares with
// IDLayout. For other IDs, they have the layout of the plugin's generators of the same type.
// If there are none, or none reports its layout, it is the default layout of the format. The
// query fails if two generators have different layouts, if the layout is unknown, if it
// rejects the window, or if the column doesn't sort by time, such as decimal text. For these
// cases, and for a query without a model, a column of another table, or a field of another
// type, such as an int64, pass the layout to [CreatedBetweenIn].
//
// A UUID of another version than 7 has no time. A window contains it by chance.
//
// Combine it by AND only: after a plain Or, GORM joins it with the last alternative alone.
// Write db.Where(db.Where(a).Or(b)) instead.
func CreatedBetween(column string, from, to time.Time) func(*gorm.DB) *gorm.DB {
	return window(column, func(stmt *gorm.Statement, f *schema.Field) (lo, hi any, err error) {
		if f == nil {
			return nil, nil, fmt.Errorf("gormplugin: select by time: the query has no model with the column %q; pass the layout of its IDs to CreatedBetweenIn: %w", column, gorm.ErrInvalidField)
		}
		return boundsFor(stmt, f, from, to)
	})
}

// CreatedBetweenIn is [CreatedBetween] for IDs of a given layout. The column can store IDs of
// the layout's type or typed keys of that type. The query fails if the column has another ID
// type. That can't be checked in a query without a model, for a column of another table, or
// for a field of another type, such as an int64, a uuid.UUID or a string.
func CreatedBetweenIn[T any](layout Layout[T], column string, from, to time.Time) func(*gorm.DB) *gorm.DB {
	return window(column, func(*gorm.Statement, *schema.Field) (lo, hi any, err error) { return layout.Range(from, to) })
}

// window returns the scope of a condition that an ID is in bounds.
func window(column string, bounds func(*gorm.Statement, *schema.Field) (lo, hi any, err error)) func(*gorm.DB) *gorm.DB {
	c := columnOf(column)
	return func(db *gorm.DB) *gorm.DB {
		return db.Where(byField{c, func(stmt *gorm.Statement, f *schema.Field) (clause.Expression, error) {
			lo, hi, err := bounds(stmt, f)
			if err == nil {
				lo, err = stored(f, lo)
			}
			if err == nil {
				hi, err = stored(f, hi)
			}
			return clause.Where{Exprs: []clause.Expression{clause.Gte{Column: c, Value: lo}, clause.Lt{Column: c, Value: hi}}}, err
		}})
	}
}

// PageAfter returns a scope for [gorm.DB.Scopes] that selects the rows after a
// cursor, in the order of their IDs. The cursor is the last ID of the previous
// page:
//
//	db.Scopes(gormplugin.PageAfter("", cursor)).Limit(size).Find(&page)
//
// For the column, see [CreatedBetween]. The cursor can have the type of the column, its
// base type, or a typed key of that type. The query fails if the cursor is an ID of
// another type or another model's ID. A zero cursor or a nil pointer selects the first
// page. Rows that are inserted or deleted between two queries don't shift the pages.
//
// PageAfter is a Where and an Order that replaces other orders of the query, also the
// order of First and Last. Don't combine it with
//   - a plain Or: GORM joins the condition with the last alternative alone. Write
//     db.Where(db.Where(a).Or(b)) instead.
//   - FindInBatches, which pages by itself
//   - Count: Postgres rejects a count with an order
func PageAfter[T interface{ IsZero() bool }](column string, cursor T) func(*gorm.DB) *gorm.DB {
	return page(column, cursor, false)
}

// PageBefore is [PageAfter] in descending order. It selects the rows before a
// cursor: the older rows, newest first, if the IDs sort by time. A zero cursor or a
// nil pointer selects the page with the largest IDs.
func PageBefore[T interface{ IsZero() bool }](column string, cursor T) func(*gorm.DB) *gorm.DB {
	return page(column, cursor, true)
}

func page(column string, cursor interface{ IsZero() bool }, descending bool) func(*gorm.DB) *gorm.DB {
	c := columnOf(column)
	after := func(_ *gorm.Statement, f *schema.Field) (clause.Expression, error) {
		id, err := stored(f, cursor)
		if descending {
			return clause.Lt{Column: c, Value: id}, err
		}
		return clause.Gt{Column: c, Value: id}, err
	}
	v := reflect.ValueOf(cursor)
	first := !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() || cursor.IsZero()
	order := clause.OrderBy{Columns: []clause.OrderByColumn{{Column: c, Desc: descending}}}
	ordered := func(_ *gorm.Statement, f *schema.Field) (_ clause.Expression, err error) {
		if first && v.IsValid() { // no condition checks the cursor's type
			_, err = stored(f, reflect.Zero(contentOf(v.Type())).Interface())
		}
		return order, err
	}
	return func(db *gorm.DB) *gorm.DB {
		if !first { // Spread64 has negative IDs, so zero can't be a bound
			db = db.Where(byField{c, after})
		}
		replacing := []clause.OrderByColumn{{Column: c, Desc: descending, Reorder: true}}
		return db.Order(clause.OrderBy{Columns: replacing, Expression: byField{c, ordered}})
	}
}

// A byField is an expression that depends on the field of a column. GORM builds it when it knows
// the model.
type byField struct {
	column clause.Column
	build  func(*gorm.Statement, *schema.Field) (clause.Expression, error)
}

// Build implements [clause.Expression].
func (e byField) Build(builder clause.Builder) {
	stmt := builder.(*gorm.Statement)
	f, err := fieldOf(stmt, e.column)
	if err == nil {
		var built clause.Expression
		if built, err = e.build(stmt, f); err == nil {
			built.Build(builder)
			return
		}
	}
	_ = builder.AddError(err)
}

// NegationBuild implements Not. Without it, GORM would negate only the first comparison.
func (e byField) NegationBuild(builder clause.Builder) {
	_, _ = builder.WriteString("NOT (")
	e.Build(builder)
	_ = builder.WriteByte(')')
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
func fieldOf(stmt *gorm.Statement, c clause.Column) (*schema.Field, error) {
	s := stmt.Schema
	switch {
	case s == nil:
		return nil, nil
	case c.Table == "":
		// The table is the part before the last dot.
		if i := strings.LastIndexByte(c.Name, '.'); i >= 0 && c.Name[:i] == stmt.Table {
			return s.LookUpField(c.Name[i+1:]), nil
		}
		return nil, nil
	case c.Name != clause.PrimaryKey:
		return s.LookUpField(c.Name), nil
	case s.PrioritizedPrimaryField == nil:
		// GORM would use the first column.
		return nil, fmt.Errorf("gormplugin: find the key column of %s: the model has no single-column primary key; pass the name of a column: %w", modelName(s), gorm.ErrInvalidField)
	}
	return s.PrioritizedPrimaryField, nil
}
