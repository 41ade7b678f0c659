// Package forms has an ent schema with a nullable key and lists of keys.
package forms

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"

	"github.com/sortkey/sortkey/examples/frameworks/key"
	"github.com/sortkey/sortkey/idtype"
)

// OrderIDs is a list of keys. ent's generator writes the type []key.OrderID with type
// arguments, which doesn't compile.
type OrderIDs []key.OrderID

// A Note is a row of the table notes.
type Note struct{ ent.Schema }

// Fields returns the fields of a Note.
func (Note) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("parent_id").GoType(idtype.Snowflake(0)).Optional().Nillable(),
		field.Int64("not_nillable").GoType(idtype.Snowflake(0)).Optional(),
		field.JSON("numbers", []idtype.Snowflake{}).Optional(),
		field.JSON("orders", OrderIDs{}).Optional(),
	}
}
