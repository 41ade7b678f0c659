package gormplugin

import (
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/internal/typename"
)

// ErrNoGenerator means that no generator can fill a column: none is bound to the column's
// type or has the name in its tag, or the named generator generates another type.
var ErrNoGenerator = errors.New("no generator for the column")

// A plan lists the keys that a Create fills for a model.
type plan struct {
	keys        []key
	err         error      // a tag names an unusable generator, or there is a relationErr
	relationErr error      // a foreign key can't store an ID
	public      bool       // a key is not a primary key
	associated  bool       // the model has relations of its own
	relations   int        // the number of relations that the model had when the plan was made, or unwatched
	whole, none generation // of all keys in all rows, and of no key
}

// unwatched marks the plan of a join table that GORM creates. The association sets
// all its keys, and GORM writes to its relations without a lock.
const unwatched = -1

// A key is a column to fill: a primary key, a part of one, or another column with an
// idgen tag, such as a public ID.
type key struct {
	field *schema.Field
	index int     // index of the field in the model, or -1 if it is in an embedded struct
	fills *filler // nil if no generator fills the key
	err   error   // the error for a zero key, if fills is nil

	layoutErr error // the key's type reads another layout than the generator's
}

// resolve returns the plan of a model. The caller holds the lock of s.Relationships.
func (p *planner) resolve(s *schema.Schema) *plan {
	r := &s.Relationships
	plan := &plan{relations: len(r.Relations), associated: len(r.BelongsTo)+len(r.HasOne)+len(r.HasMany)+len(r.Many2Many) > 0}
	plan.relationErr = p.checkRelations(s)
	plan.err = plan.relationErr
	for _, f := range candidates(s) {
		if plan.err != nil {
			break
		}
		var k *key
		if k, plan.err = p.classify(s, f); k != nil {
			plan.keys = append(plan.keys, *k)
			plan.public = plan.public || !f.PrimaryKey
		}
	}
	return plan
}

// candidates returns the fields of a model that a Create may fill: the primary keys, and
// the other columns with an idgen tag.
func candidates(s *schema.Schema) []*schema.Field {
	fields := slices.Clone(s.PrimaryFields)
	for _, f := range s.Fields {
		// GORM ignores a field if an outer field has the same column.
		shadowed := f.DBName != "" && s.FieldsByDBName[f.DBName] != f
		if isPublic(f) && !shadowed {
			fields = append(fields, f)
		}
	}
	return fields
}

// isPublic reports whether a field is not a primary key and has an idgen tag of its own.
func isPublic(f *schema.Field) bool {
	// TagSettings may include the tag of the struct that embeds the field, which is meant
	// for the primary key.
	_, own := schema.ParseTagSetting(f.Tag.Get("gorm"), ";")[tagKey]
	return own && !f.PrimaryKey
}

// classify returns a column of a model to fill, or nil if a Create leaves the column
// alone. It fails if the column has a wrong tag.
func (p *planner) classify(s *schema.Schema, f *schema.Field) (*key, error) {
	tag, tagged := idgenTag(f)
	switch {
	case tag == optOut, !f.Creatable:
		return nil, nil
	case !f.PrimaryKey && (isForeign(s, f) || isShared(s, f)):
		return nil, fmt.Errorf("gormplugin: fill %s: the field has the tag idgen but is a foreign key, whose ID GORM copies from another row; remove the tag: %w",
			fieldName(f), ErrNoGenerator)
	case isForeign(s, f):
		return nil, nil
	}
	k := &key{field: f, index: -1}
	if index := f.StructField.Index; len(index) == 1 {
		k.index = index[0]
	}
	switch {
	case tagged && tag != "" && tag != byType:
		if err := p.named(k, tag); err != nil {
			return nil, err
		}
	case tagged:
		if !p.byType(k) {
			return nil, p.missing(f)
		}
	case len(s.PrimaryFields) > 1:
		if f != loneID(s) {
			return nil, nil
		}
		k.err = fmt.Errorf("gormplugin: fill %s: the only ID of a composite key is zero and has no idgen tag; set it, or tag it gorm:\"idgen\" for the generator of its type, idgen:name for a named one, or idgen:- to leave it alone: %w",
			fieldName(f), ErrNoGenerator)
	case isShared(s, f):
		k.err = fmt.Errorf("gormplugin: fill %s: the key is zero, and another model declares it as a foreign key; create the row through that model, set the key, or tag it idgen or idgen:-: %w",
			fieldName(f), gorm.ErrPrimaryKeyRequired)
	case p.byType(k):
	case isID(f.FieldType) && !f.HasDefaultValue:
		k.err = p.missing(f)
	default:
		return nil, nil
	}
	if k.layoutErr != nil {
		return nil, fmt.Errorf("gormplugin: fill %s: %w", fieldName(f), k.layoutErr)
	}
	return k, nil
}

// named binds the key to the generator with this name.
func (p *planner) named(k *key, name string) error {
	var names []string
	for _, b := range p.bindings {
		switch {
		case !b.named:
			continue
		case b.name != name:
			names = append(names, b.name)
			continue
		}
		if k.use(b) {
			return nil
		}
		return fmt.Errorf("gormplugin: fill %s of type %s: generator %q generates %s; name another generator, or change the field's type: %w",
			fieldName(k.field), typename.Of(k.field.FieldType), name, typename.Of(b.idType), ErrNoGenerator)
	}
	slices.Sort(names)
	return fmt.Errorf("gormplugin: fill %s: want the name of a generator among %q, got %q; pass gormplugin.Named(%[3]q, gen) to New: %w",
		fieldName(k.field), names, name, ErrNoGenerator)
}

// byType binds the key to the generator of the field's type, and reports whether there
// is one.
func (p *planner) byType(k *key) bool {
	return k.use(slices.DeleteFunc(slices.Clone(p.bindings), func(b Binding) bool { return b.named })...)
}

// use binds the key to the generator of the type that is nearest to the field's. It
// reports whether there is one.
func (k *key) use(bindings ...Binding) bool {
	for path, id := range idsIn(k.field.FieldType) {
		for _, generated := range []reflect.Type{id, untyped(id)} {
			if i := slices.IndexFunc(bindings, func(b Binding) bool { return b.idType == generated }); i >= 0 {
				k.fills = bindings[i].filler(path, id)
				if typed, ok := reflect.Zero(id).Interface().(interface{ CheckGenerator(any) error }); ok {
					k.layoutErr = typed.CheckGenerator(bindings[i].gen)
				}
				return true
			}
		}
	}
	return false
}

// idsIn returns the types of the IDs that a field of type t can hold, nearest first, each
// with the path to the ID. They are t itself, the type behind t's pointer or in its
// sql.Null, and the types in structs of one field.
func idsIn(t reflect.Type) iter.Seq2[[]step, reflect.Type] {
	return func(yield func([]step, reflect.Type) bool) {
		var path []step
		for nullable := false; yield(slices.Clone(path), t); {
			inner, wrapped := wrappedType(t)
			switch {
			case wrapped:
				path, t = append(path, firstField), inner
			case !nullable && t.Kind() == reflect.Pointer:
				path, t, nullable = append(path, pointee), t.Elem(), true
			case !nullable && isSQLNull(t):
				path, t, nullable = append(path, nullV), t.Field(0).Type, true
			default:
				return
			}
		}
	}
}

// missing returns the error for a key whose type has no generator.
func (p *planner) missing(f *schema.Field) error {
	id := idOf(f.FieldType)
	base, name := untyped(id), typename.Of(id)
	if slices.ContainsFunc(p.bindings, func(b Binding) bool { return !b.named && (b.idType == id || b.idType == base) }) {
		return fmt.Errorf("gormplugin: fill %s: want type T, *T or sql.Null[T], where T is %s or a struct that contains only that, got %s; change the field's type, or set the ID yourself: %w",
			fieldName(f), name, typename.Of(f.FieldType), ErrNoGenerator)
	}
	if base != id {
		name += " or " + typename.Of(base)
	}
	return fmt.Errorf("gormplugin: fill %s: no generator is bound to type %s; pass gormplugin.For(gen) to New, set the ID yourself, or tag the field gorm:\"idgen:-\": %w",
		fieldName(f), name, ErrNoGenerator)
}

// fieldName returns the name of a field for errors.
func fieldName(f *schema.Field) string { return modelName(f.Schema) + "." + f.BindName() }

// modelName returns the name of a model for errors.
func modelName(s *schema.Schema) string {
	if !strings.HasSuffix(s.Name, "]") {
		return s.Name
	}
	// GORM's name of a generic type has the import paths of its type arguments.
	_, name, _ := strings.Cut(typename.Of(s.ModelType), ".")
	return name
}

// idgenTag returns the field's idgen tag. GORM copies the tags of an embedded
// struct to its fields.
func idgenTag(f *schema.Field) (tag string, tagged bool) {
	tag, tagged = f.TagSettings[tagKey]
	return strings.TrimSpace(tag), tagged
}

// isJoinTable reports whether t is a struct type that GORM created for a
// many2many: an unnamed type with two or more keys and one ignored field.
func isJoinTable(t reflect.Type) bool {
	last := t.NumField() - 1
	if t.Name() != "" || last < 2 || t.Field(last).Tag != `gorm:"-"` || t.Field(last).Type.Kind() != reflect.Struct {
		return false
	}
	for i := range last {
		if !strings.Contains(string(t.Field(i).Tag), "primaryKey") {
			return false
		}
	}
	return true
}

// isForeign reports whether GORM copies the key from a row to which this row
// belongs. The caller holds the lock of s.Relationships.
func isForeign(s *schema.Schema, f *schema.Field) bool {
	belongs := func(r *schema.Relationship) bool {
		return r.Type == schema.BelongsTo && slices.ContainsFunc(r.References, func(ref *schema.Reference) bool {
			return ref.ForeignKey.DBName == f.DBName
		})
	}
	for name, r := range s.Relationships.Relations {
		// Relations of other models may still be written to.
		if !fromOutside(name) && belongs(r) {
			return true
		}
	}
	// Relations has one entry per name. BelongsTo also has the relations that share
	// a name, for example in two embedded structs.
	return slices.ContainsFunc(s.Relationships.BelongsTo, belongs)
}

// isShared reports whether the key is the foreign key of a has-one or has-many of
// another model that was parsed. The caller holds the lock of s.Relationships.
func isShared(s *schema.Schema, f *schema.Field) bool {
	for name, r := range s.Relationships.Relations {
		if fromOutside(name) && slices.ContainsFunc(r.References, func(ref *schema.Reference) bool {
			return ref.OwnPrimaryKey && ref.ForeignKey.DBName == f.DBName
		}) {
			return true
		}
	}
	return false
}

// fromOutside reports whether a relation is another model's. GORM's names of such
// relations begin with an underscore. The names of a model's own relations are
// names of exported fields.
func fromOutside(relation string) bool { return strings.HasPrefix(relation, "_") }

// loneID returns the only part of a composite key that is an ID and not a foreign
// key, if no part has a tag. The tag was probably forgotten, for example in the
// key of a partitioned table.
func loneID(s *schema.Schema) (lone *schema.Field) {
	for _, f := range s.PrimaryFields {
		if _, tagged := idgenTag(f); tagged {
			return nil
		}
		if !isID(f.FieldType) || f.HasDefaultValue || isForeign(s, f) {
			continue
		}
		if lone != nil {
			return nil
		}
		lone = f
	}
	return lone
}

var (
	idPackage  = reflect.TypeFor[idtype.Snowflake]().PkgPath()
	sqlPackage = reflect.TypeFor[sql.NullBool]().PkgPath()
)

// isID reports whether a key of type t holds one of package idtype's IDs.
func isID(t reflect.Type) bool { return idOf(t).PkgPath() == idPackage }

// idOf returns the type of the ID in a key of type t.
func idOf(t reflect.Type) (id reflect.Type) {
	for _, id = range idsIn(contentOf(t)) {
		continue
	}
	return id
}

// untyped returns the base type of a typed key, for example idtype.Snowflake for an
// idtype.SnowflakeOf. It returns other types unchanged.
func untyped(t reflect.Type) reflect.Type {
	// Types of other packages may have the method too, for example a struct that embeds a
	// typed key. Only in package idtype it means an equal memory layout.
	if m, ok := t.MethodByName("Untyped"); ok && t.PkgPath() == idPackage {
		return m.Type.Out(0)
	}
	return t
}

// A modelMeta is the metabyte that a model declares with IDMeta, if it does.
type modelMeta struct {
	meta     byte
	declared bool
}

// metaOf returns the metabyte that the model of a typed key declares. Other types have none.
func metaOf(t reflect.Type) (m modelMeta) {
	if key, ok := reflect.Zero(t).Interface().(interface{ ModelMeta() (byte, bool) }); ok {
		m.meta, m.declared = key.ModelMeta()
	}
	return m
}

// content returns the ID in a value. No pointer to the ID may be nil.
func content(v reflect.Value) reflect.Value {
	for id := idOf(v.Type()); v.Type() != id; {
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		} else {
			v = v.Field(0)
		}
	}
	return v
}

// contentOf returns the type to which a pointer type t points, and the T of a
// sql.Null[T]. It returns other types unchanged.
func contentOf(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if isSQLNull(t) {
		t = t.Field(0).Type
	}
	return t
}

// unpacked returns the value behind a pointer or in a sql.Null, of the type that
// contentOf returns. No pointer may be nil.
func unpacked(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if isSQLNull(v.Type()) {
		v = v.Field(0)
	}
	return v
}

func isSQLNull(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.PkgPath() == sqlPackage && t.NumField() == 2 && t.Field(0).Name == "V"
}

// wrappedType returns the type of the only field of a struct type, such as a column
// type of package sqltypes.
func wrappedType(t reflect.Type) (reflect.Type, bool) {
	if t.Kind() != reflect.Struct || t.NumField() != 1 || !t.Field(0).IsExported() {
		return nil, false
	}
	return t.Field(0).Type, true
}

// wraps reports whether t is the type inner, a typed key of it, or wraps one of them in
// structs of one field.
func wraps(t, inner reflect.Type) bool {
	for _, t := range idsIn(t) {
		if t == inner || untyped(t) == inner {
			return true
		}
	}
	return false
}
