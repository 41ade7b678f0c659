// Package entshop has an ent schema with typed keys.
package entshop

import (
	"context"
	"reflect"

	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/mixin"

	"github.com/sortkey/sortkey/examples/frameworks/key"
)

// Keys are the generators. The program sets them before its first insert.
var Keys key.Generators

// A Key is a mixin with the field id and a hook that fills it before an insert.
type Key[T interface{ IsZero() bool }] struct {
	mixin.Schema
	ID   ent.Field
	Next func() (T, error)
}

// Fields returns the field of the key.
func (k Key[T]) Fields() []ent.Field { return []ent.Field{k.ID} }

// Hooks returns the hook. ent calls it for each row of CreateBulk.
func (k Key[T]) Hooks() []ent.Hook {
	return []ent.Hook{func(next ent.Mutator) ent.Mutator {
		return ent.MutateFunc(func(ctx context.Context, m ent.Mutation) (ent.Value, error) {
			if m.Op().Is(ent.OpCreate) {
				row := m.(interface {
					ID() (T, bool)
					SetID(T)
				})
				if id, _ := row.ID(); id.IsZero() {
					id, err := k.Next()
					if err != nil {
						return nil, err
					}
					row.SetID(id)
				}
			}
			return next.Mutate(ctx, m)
		})
	}}
}

// named makes ent's generator write the alias key.name. By default it writes the alias's
// type with its type arguments, which doesn't compile.
func named[F ent.Field](f F, name string) F {
	info, path := f.Descriptor().Info, reflect.TypeFor[key.Order]().PkgPath()
	info.Ident, info.PkgPath, info.PkgName = "key."+name, path, "key"
	info.RType.Ident, info.RType.PkgPath, info.RType.Name = "key."+name, path, name
	return f
}

// A Customer is a row of the table customers.
type Customer struct{ ent.Schema }

// Mixin returns the key.
func (Customer) Mixin() []ent.Mixin {
	return []ent.Mixin{Key[key.CustomerID]{
		ID:   named(field.UUID("id", key.CustomerID{}), "CustomerID"),
		Next: func() (key.CustomerID, error) { return Keys.Customers.Next() },
	}}
}

// Fields returns the fields besides the key.
func (Customer) Fields() []ent.Field { return []ent.Field{field.String("name")} }

// Edges returns the relations.
func (Customer) Edges() []ent.Edge { return []ent.Edge{edge.To("orders", Order.Type)} }

// An Order is a row of the table orders.
type Order struct{ ent.Schema }

// Mixin returns the key. Without the annotation, ent's migrations make the column an
// identity column.
func (Order) Mixin() []ent.Mixin {
	no := false
	return []ent.Mixin{Key[key.OrderID]{
		ID:   named(field.Int64("id").GoType(key.OrderID(0)).Annotations(entsql.Annotation{Incremental: &no}), "OrderID"),
		Next: func() (key.OrderID, error) { return Keys.Orders.Next() },
	}}
}

// Fields returns the fields besides the key.
func (Order) Fields() []ent.Field {
	return []ent.Field{
		named(field.UUID("customer_id", key.CustomerID{}), "CustomerID"),
		named(field.Int64("replaces_id").GoType(key.OrderID(0)).Optional().Nillable(), "OrderID"), // nil is NULL
		field.Int64("total"),
	}
}

// Edges returns the relations.
func (Order) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("customer", Customer.Type).Ref("orders").Field("customer_id").Unique().Required(),
		edge.To("replacement", Order.Type).From("replaces").Field("replaces_id").Unique(),
	}
}
