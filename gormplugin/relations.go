package gormplugin

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/internal/typename"
)

// checkUpdate is the callback that runs before an Update. An Update saves
// associations as a Create does, but generates no keys of its own.
func (p *planner) checkUpdate(db *gorm.DB) {
	s := db.Statement.Schema
	if db.Error != nil || s == nil {
		return
	}
	known, ok := p.related.Load(s)
	if !ok {
		known, _ = p.related.LoadOrStore(s, p.checkRelations(s))
	}
	if err, failed := known.(error); failed {
		_ = db.AddError(err)
	}
	if hasAssociations(s) {
		g := &generation{plan: &plan{associated: true}}
		g.enter(db.Statement)
		db.Statement.Clauses[generationClause] = clause.Clause{Expression: g}
	}
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
				case !p.carries(ref.ForeignKey, ref.PrimaryKey):
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
	if contentOf(key.FieldType).Kind() == reflect.String && fitsText(id.FieldType) {
		remedy += ", or as sql.Null[string] to keep a text column"
	}
	remedy += fmt.Sprintf(", or add <-:false to the gorm tag of %s so that GORM doesn't save it", fieldName(permitting(r)))
	return fmt.Errorf("gormplugin: check relation %s: GORM can't store %s (%s) in %s (%s) without changing the value or panicking; %s: %w",
		fieldName(r.Field), fieldName(id), typename.Of(id.FieldType), fieldName(key), typename.Of(key.FieldType), remedy, gorm.ErrUnsupportedRelation)
}

// fitsText reports whether a sql.Null[string] can store the ID in a field of type t.
func fitsText(t reflect.Type) bool {
	sample := sampleOf(idOf(t))
	value, err := driver.DefaultParameterConverter.ConvertValue(holding(t, sample).Interface())
	var text sql.Null[string]
	return err == nil && text.Scan(value) == nil && keeps(t, sample, text.V)
}

// carries reports whether an ID stays the same when GORM copies it to a foreign
// key. It tries a sample ID. If GORM fails with an error, carries returns true,
// because the user's statement will fail with that error too.
func (p *planner) carries(key, id *schema.Field) (carried bool) {
	if key.FieldType == id.FieldType || !p.hasID(id) {
		return true
	}
	sample := sampleOf(idOf(id.FieldType))
	if !sample.IsValid() {
		return true
	}
	defer func() {
		if recover() != nil {
			carried = false // GORM panics, for example if it copies a slice to an array of another length
		}
	}()
	ctx, row := context.Background(), reflect.New(key.Schema.ModelType)
	if key.Set(ctx, row, holding(id.FieldType, sample).Interface()) != nil {
		return true
	}
	stored, err := driver.DefaultParameterConverter.ConvertValue(key.ReflectValueOf(ctx, row).Interface())
	return err != nil || keeps(id.FieldType, sample, stored)
}

// keeps reports whether a stored value is an ID that was in a field of type t.
func keeps(t reflect.Type, id reflect.Value, stored any) bool {
	if n, ok := stored.(float64); ok && float64(int64(n)) == n {
		stored = int64(n) // the float is precise enough
	}
	// The text of an ID may also be the decimal number of another ID, so the type
	// has to read the value.
	for _, t := range []reflect.Type{contentOf(t), id.Type()} {
		back := reflect.New(t)
		if scanner, ok := back.Interface().(sql.Scanner); ok && scanner.Scan(stored) == nil && back.Elem().Equal(holding(t, id)) {
			return true
		}
	}
	if text, ok := stored.([]byte); ok {
		stored = string(text)
	}
	integer := reflect.TypeFor[int64]()
	return id.CanConvert(integer) && fmt.Sprint(stored) == fmt.Sprint(id.Convert(integer))
}

// hasID reports whether a field has an ID of package idtype, or is a key that a
// generator fills with an ID of another type, often int64. Keys of that type that
// no generator fills may be small numbers, which fit in smaller foreign keys.
func (p *planner) hasID(f *schema.Field) bool {
	if isID(f.FieldType) {
		return true
	}
	id := idOf(f.FieldType)
	return slices.ContainsFunc(p.bindings, func(b Binding) bool { return b.idType == id }) && p.fills(f)
}

// fills reports whether a generator is bound to a column by its tag or its type. It
// returns true for a key that GORM copies from another row, because a generator
// may fill that row's ID.
func (p *planner) fills(f *schema.Field) bool {
	tag, tagged := idgenTag(f)
	if f.PrimaryKey {
		if !tagged && len(f.Schema.PrimaryFields) > 1 {
			return false
		}
	} else if !isPublic(f) {
		return false
	}
	k := key{field: f}
	switch tag {
	case optOut:
		return false
	case "", byType:
		return p.byType(&k)
	}
	return p.named(&k, tag) == nil
}

// sampleOf returns an ID of type t that a smaller type can't hold: the integers are
// odd and need all their bits, and the texts of UID60 and Spread64 could be decimal
// integers. It returns an invalid Value if t is neither an ID nor an integer.
func sampleOf(t reflect.Type) reflect.Value {
	if base := untyped(t); base != t {
		return converted(sampleOf(base), t)
	}
	// An ID type of another package needs a sample here. Without one it is checked
	// as an integer of 64 bits, or not at all.
	for _, id := range []any{
		idtype.SnowflakeSI(1<<53 - 1), idtype.MustParseUID60("1234567892"), idtype.MustParseSpread64("9234567890120123"), idtype.MustParseSno("brpk4q72xwf2m63l"),
	} {
		if t == reflect.TypeOf(id) {
			return reflect.ValueOf(id)
		}
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int64, reflect.Uint, reflect.Uint64:
		return reflect.ValueOf(int64(779300444248735745)).Convert(t)
	}
	return reflect.Value{}
}

// converted returns an ID as type t, which is its type, a typed key of it, or its base
// type. The ID gets the metabyte that the model of t declares: samples and the bounds of
// time windows have none.
func converted(id reflect.Value, t reflect.Type) reflect.Value {
	if meta, ok := metaOf(t); ok {
		sno := id.Convert(reflect.TypeFor[idtype.Sno]()).Interface().(idtype.Sno)
		id = reflect.ValueOf(sno.WithMeta(meta))
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
