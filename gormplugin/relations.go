package gormplugin

import (
	"database/sql"
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/sortkey/sortkey/internal/typename"
)

// checkUpdate is the callback that runs before an Update. An Update saves
// associations as a Create does, but generates no keys of its own.
func (p *planner) checkUpdate(db *gorm.DB) {
	if db.Error != nil || db.Statement.Schema == nil {
		return
	}
	known := p.planFor(db.Statement.Schema)
	if known.relationErr != nil {
		_ = db.AddError(known.relationErr)
	}
	enter(db.Statement, known)
}

// checkRelations rejects relations of a model in which GORM would store a value other
// than the ID, or the ID of another model. For example, GORM converts an integer to a
// string as a rune, truncates it to a smaller integer, and converts one model's typed key
// to another's, without an error.
func (p *planner) checkRelations(s *schema.Schema) error {
	own := &s.Relationships
	for _, relations := range [][]*schema.Relationship{own.BelongsTo, own.HasOne, own.HasMany, own.Many2Many} {
		for _, r := range relations {
			if f := permitting(r); !f.Creatable && !f.Updatable {
				continue
			}
			for _, ref := range r.References {
				switch {
				case ref.PrimaryKey == nil: // the type of a polymorphic relation
				case ofAnotherModel(ref):
					return mistyped(r, ref)
				case !p.fits(ref.ForeignKey, ref.PrimaryKey):
					return misfit(r, ref)
				}
			}
		}
	}
	return nil
}

// permitting returns the field whose permissions decide whether GORM saves a
// relation. If relations share a name, for example in two embedded structs, GORM
// uses the last one.
func permitting(r *schema.Relationship) *schema.Field { return r.Schema.FieldsByName[r.Name] }

// ofAnotherModel reports whether a foreign key is a typed key of another model or of
// another base type than the key to which it refers. If that key has no model, the
// foreign key's model must be the one to which it refers.
func ofAnotherModel(ref *schema.Reference) bool {
	key, id := idOf(ref.ForeignKey.FieldType), idOf(ref.PrimaryKey.FieldType)
	base := untyped(key)
	switch {
	case key == base || key == id:
		return false
	case isID(id) && id != base:
		return true
	}
	// The type argument can't be read by reflection, but it is in the type's name.
	return typename.Of(key) != typename.Of(base)+"Of["+typename.Of(ref.PrimaryKey.Schema.ModelType)+"]"
}

// mistyped returns the error for a foreign key that is another model's typed key.
func mistyped(r *schema.Relationship, ref *schema.Reference) error {
	key, id := ref.ForeignKey, ref.PrimaryKey
	return fmt.Errorf("gormplugin: check relation %s: %s has type %s, but it refers to %s of type %s; declare %[2]s as %[6]s: %[7]w",
		fieldName(r.Field), fieldName(key), typename.Of(key.FieldType), fieldName(id), typename.Of(id.FieldType),
		typename.Of(contentOf(id.FieldType)), gorm.ErrUnsupportedRelation)
}

// misfit returns the error for a foreign key that can't store an ID.
func misfit(r *schema.Relationship, ref *schema.Reference) error {
	key, id := ref.ForeignKey, ref.PrimaryKey
	remedy := fmt.Sprintf("declare %s as %s", fieldName(key), typename.Of(contentOf(id.FieldType)))
	if columnType(key.FieldType) == "text" && columnType(id.FieldType) == "bigint" {
		remedy += ", or as sql.Null[string] to keep a text column"
	}
	remedy += fmt.Sprintf(", or add <-:false to the gorm tag of %s so that GORM doesn't save it", fieldName(permitting(r)))
	return fmt.Errorf("gormplugin: check relation %s: GORM can't store %s (%s) in %s (%s) without changing the value or failing; %s: %w",
		fieldName(r.Field), fieldName(id), typename.Of(id.FieldType), fieldName(key), typename.Of(key.FieldType), remedy, gorm.ErrUnsupportedRelation)
}

// fits reports whether a foreign key can hold an ID: it has the same type of ID, in the same
// column type. A foreign key without an ID type needs only the column type.
func (p *planner) fits(key, id *schema.Field) bool {
	if key.FieldType == id.FieldType || !p.hasID(id) {
		return true
	}
	k, i := contentOf(key.FieldType), contentOf(id.FieldType)
	got, want := columnType(k), columnType(i)
	switch {
	case isID(k) && isID(i):
		return untyped(idOf(k)) == untyped(idOf(i)) && got == want
	case want == "":
		return !isID(i)
	case got == "text" && want == "bigint":
		// GORM converts a number to a string as a rune, but these types convert it themselves.
		return isSQLNull(key.FieldType) || k == reflect.TypeFor[sql.NullString]()
	}
	// A Sno is stored as the text of a UUID.
	return got == want || got == "text" && want == "uuid" || got == "bytea" && want == "text"
}

// columnType returns the column type of a Go type as far as relations need it, or "".
func columnType(t reflect.Type) string {
	t = contentOf(t)
	if declared := dataType(t); declared != "" {
		return declared
	}
	if t.PkgPath() == sqlPackage && t.Kind() == reflect.Struct {
		t = t.Field(0).Type // such as a sql.NullInt64
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int64, reflect.Uint, reflect.Uint64:
		return "bigint"
	case reflect.String:
		return "text"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytea"
		}
	case reflect.Array: // such as a uuid.UUID
		if t.Size() == 16 && reflect.PointerTo(t).Implements(reflect.TypeFor[sql.Scanner]()) {
			return "uuid"
		}
	}
	return ""
}

// hasID reports whether a field has an ID of package idtype, or a generator fills it with an ID of
// another type, often int64. Keys of that type that no generator fills may be small numbers, which
// fit in smaller foreign keys. hasID also returns true for a key that GORM copies from another
// row, because a generator may fill that row's ID.
func (p *planner) hasID(f *schema.Field) bool {
	tag, tagged := idgenTag(f)
	switch {
	case isID(f.FieldType):
		return true
	case f.PrimaryKey && !tagged && len(f.Schema.PrimaryFields) > 1, !f.PrimaryKey && !isPublic(f):
		return false
	}
	return tag != optOut && p.bind(&key{field: f}, tag)
}
