package gormplugin

import (
	"fmt"
	"reflect"
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
func G(scope func(*gorm.DB) *gorm.DB) func(*gorm.Statement) {
	return func(stmt *gorm.Statement) { scope(stmt.DB) }
}

// A Layout converts a time window to bounds of IDs. The layouts of package idtype
// implement it, except for the layout of Spread64, whose IDs don't sort by time.
type Layout[T any] interface {
	Range(from, to time.Time) (lo, hi T, err error)
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
	return between{columnOf(column), func(stmt *gorm.Statement, f *schema.Field) (lo, hi any, err error) {
		if f == nil {
			return nil, nil, fmt.Errorf("gormplugin: select by time: the query has no model with the column %q; pass the layout of its IDs to CreatedBetweenIn: %w", column, gorm.ErrInvalidField)
		}
		layout, err := layoutOf(stmt, f)
		if err != nil {
			return nil, nil, err
		}
		switch l := layout.(type) {
		case idtype.SnowflakeLayout:
			return bounds(l, from, to)
		case idtype.SnowflakeSILayout:
			return bounds(l, from, to)
		case idtype.SnoLayout:
			return bounds(l, from, to)
		case idtype.UID60Layout:
			return bounds(l, from, to)
		case idtype.UUIDLayout:
			return bounds(l, from, to)
		}
		return nil, nil, fmt.Errorf("gormplugin: select by time: the layout of %s of type %s is unknown; if its IDs sort by time, pass their layout to CreatedBetweenIn: %w",
			fieldName(f), typename.Of(f.FieldType), gorm.ErrInvalidField)
	}}.scope
}

// CreatedBetweenIn is [CreatedBetween] for IDs of a given layout. The column can store IDs of
// the layout's type or typed keys of that type. The query fails if the column has another ID
// type. That can't be checked in a query without a model, for a column of another table, or
// for a field of another type, such as an int64, a uuid.UUID or a string.
func CreatedBetweenIn[T any](layout Layout[T], column string, from, to time.Time) func(*gorm.DB) *gorm.DB {
	return between{columnOf(column), func(*gorm.Statement, *schema.Field) (lo, hi any, err error) { return bounds(layout, from, to) }}.scope
}

func bounds[T any](layout Layout[T], from, to time.Time) (lo, hi any, err error) {
	return layout.Range(from, to)
}

type (
	typed[T any]  interface{ ModelLayout() idtype.Layout[T] } // a typed key
	mapped[T any] interface{ Source() idtype.Generator[T] }   // a generator made of another one
)

// layoutOf returns the layout of the IDs in a column, or nil if it is unknown.
func layoutOf(stmt *gorm.Statement, f *schema.Field) (layout any, err error) {
	id := idOf(f.FieldType)
	base := untyped(id)
	switch key := reflect.Zero(id).Interface().(type) {
	case typed[idtype.Snowflake]:
		return key.ModelLayout(), nil
	case typed[idtype.SnowflakeSI]:
		return key.ModelLayout(), nil
	}
	var bindings []Binding
	if p, ok := stmt.Plugins[pluginName].(*Plugin); ok {
		bindings = p.bindings
	}
	for _, b := range bindings {
		l := b.layout()
		if l == nil || untyped(idOf(b.idType)) != base {
			continue
		}
		if layout != nil && fingerprint(l) != fingerprint(layout) {
			return nil, fmt.Errorf("gormplugin: select by time: the generators of %s have the layouts %q and %q; pass the layout of %s to CreatedBetweenIn: %w",
				typename.Of(base), fingerprint(layout), fingerprint(l), fieldName(f), gorm.ErrInvalidField)
		}
		layout = l
	}
	switch {
	case layout != nil:
	case base == reflect.TypeFor[idtype.Snowflake]():
		layout = idtype.DefaultSnowflakeLayout()
	case base == reflect.TypeFor[idtype.Sno]():
		layout = idtype.SnoLayout{}
	case base == reflect.TypeFor[idtype.UID60]():
		layout = idtype.UID60Layout{}
	case base == reflect.TypeFor[idtype.UUID]():
		layout = idtype.UUIDLayout{}
	}
	return layout, nil
}

// layout returns the layout of a generator's IDs if their type can have several layouts, and
// the generator reports it. Otherwise it returns nil.
func (b Binding) layout() any {
	switch g := b.gen.(type) {
	case idtype.Generator[idtype.Snowflake]:
		return idtype.LayoutOf(g)
	case mapped[idtype.Snowflake]:
		return idtype.LayoutOf(g.Source())
	case idtype.Generator[idtype.SnowflakeSI]:
		return idtype.LayoutOf(g)
	case mapped[idtype.SnowflakeSI]:
		return idtype.LayoutOf(g.Source())
	}
	return nil
}

func fingerprint(layout any) string {
	return layout.(interface{ Fingerprint() string }).Fingerprint()
}

// between is the condition of a time window. GORM builds it once the model is known.
type between struct {
	column clause.Column
	bounds func(*gorm.Statement, *schema.Field) (lo, hi any, err error)
}

func (b between) scope(db *gorm.DB) *gorm.DB { return db.Where(b) }

// NegationBuild implements Not. Without it, GORM would negate only the first comparison.
func (b between) NegationBuild(builder clause.Builder) {
	_, _ = builder.WriteString("NOT (")
	b.Build(builder)
	_ = builder.WriteByte(')')
}

func (b between) Build(builder clause.Builder) {
	stmt := builder.(*gorm.Statement)
	field, err := fieldOf(stmt, b.column)
	var lo, hi any
	if err == nil {
		lo, hi, err = b.bounds(stmt, field)
	}
	if err == nil {
		lo, err = stored(field, lo)
	}
	if err == nil {
		hi, err = stored(field, hi)
	}
	if err != nil {
		_ = builder.AddError(err)
		return
	}
	clause.Gte{Column: b.column, Value: lo}.Build(builder)
	_, _ = builder.WriteString(clause.AndWithSpace)
	clause.Lt{Column: b.column, Value: hi}.Build(builder)
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
	return page{columnOf(column), cursor, isNone(cursor), false}.scope
}

// PageBefore is [PageAfter] in descending order. It selects the rows before a
// cursor: the older rows, newest first, if the IDs sort by time. A zero cursor or a
// nil pointer selects the page with the largest IDs.
func PageBefore[T interface{ IsZero() bool }](column string, cursor T) func(*gorm.DB) *gorm.DB {
	return page{columnOf(column), cursor, isNone(cursor), true}.scope
}

func isNone[T interface{ IsZero() bool }](cursor T) bool {
	v := reflect.ValueOf(cursor)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() || cursor.IsZero()
}

// A page selects rows in the order of a column, beginning after a cursor.
type page struct {
	column     clause.Column
	cursor     any
	first      bool // there is no cursor
	descending bool
}

// A pageOrder is the ORDER BY of a page.
type pageOrder page

func (p page) scope(db *gorm.DB) *gorm.DB {
	// Spread64 has negative IDs, so zero can't be a bound.
	if !p.first {
		db = db.Where(p)
	}
	columns := []clause.OrderByColumn{{Column: p.column, Desc: p.descending, Reorder: true}}
	return db.Order(clause.OrderBy{Columns: columns, Expression: pageOrder(p)})
}

func (p page) Build(builder clause.Builder) {
	field, err := fieldOf(builder.(*gorm.Statement), p.column)
	cursor := p.cursor
	if err == nil {
		cursor, err = stored(field, cursor)
	}
	switch {
	case err != nil:
		_ = builder.AddError(err)
	case p.descending:
		clause.Lt{Column: p.column, Value: cursor}.Build(builder)
	default:
		clause.Gt{Column: p.column, Value: cursor}.Build(builder)
	}
}

func (o pageOrder) Build(builder clause.Builder) {
	field, err := fieldOf(builder.(*gorm.Statement), o.column)
	// The first page has no condition that would check the cursor's type.
	if t := reflect.TypeOf(o.cursor); err == nil && o.first && t != nil {
		_, err = stored(field, reflect.Zero(contentOf(t)).Interface())
	}
	if err != nil {
		_ = builder.AddError(err)
		return
	}
	clause.OrderBy{Columns: []clause.OrderByColumn{{Column: o.column, Desc: o.descending}}}.Build(builder)
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

// stored returns an ID in the form that a field stores. It fails if the field has
// IDs of another type, or if its form sorts differently from the IDs. Without a field, it
// returns the ID unchanged.
func stored(f *schema.Field, id any) (any, error) {
	if f == nil {
		return id, nil
	}
	t, form := contentOf(reflect.TypeOf(id)), contentOf(f.FieldType)
	if isID(form) && !sameKind(form, t) {
		return nil, fmt.Errorf("gormplugin: compare %s: want an ID of type %s, got %s; pass a cursor or a layout of the column's type, or name another column: %w",
			fieldName(f), typename.Of(identity(form)), typename.Of(identity(t)), gorm.ErrInvalidField)
	}
	if t == form || !isID(t) || dataType(form) == "" || dataType(form) == dataType(t) {
		return id, nil
	}
	// The text and the bytes of a Sno or a UUID sort as the ID does. The text of a number
	// doesn't sort as the number does.
	v := content(reflect.ValueOf(id))
	base := untyped(v.Type())
	if !wraps(form, base) || base.Kind() != reflect.Array && dataType(form) != dataType(base) {
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

// converted returns an ID as type t, which is its type, a typed key of it, or its base
// type. The ID gets the metabyte that the model of t declares: the bounds of time windows
// have none.
func converted(id reflect.Value, t reflect.Type) reflect.Value {
	if m := metaOf(t); m.declared {
		sno := id.Convert(reflect.TypeFor[idtype.Sno]()).Interface().(idtype.Sno)
		id = reflect.ValueOf(sno.WithMeta(m.meta))
	}
	return id.Convert(t)
}

// holding returns a value of type t that contains an ID. t is a type for which converted
// accepts the ID, or a pointer, a sql.Null, or a struct of one field around it.
func holding(t reflect.Type, id reflect.Value) reflect.Value {
	v := reflect.New(t).Elem()
	switch {
	case t == idOf(t):
		v.Set(converted(id, t))
	case t.Kind() == reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		v.Elem().Set(holding(t.Elem(), id))
	default:
		v.Field(0).Set(holding(t.Field(0).Type, id))
		if isSQLNull(t) {
			v.Field(1).SetBool(true)
		}
	}
	return v
}
