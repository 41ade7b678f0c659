package gormplugin

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/sortkey/sortkey/internal/typename"
)

// ErrNoGenerator means that no generator can fill a column: none is bound to the column's
// type or has the name in its tag, or the named generator generates another type.
var ErrNoGenerator = errors.New("no generator for the column")

// A plan lists the keys that a Create fills for a model.
type plan struct {
	keys        []key
	err         error    // a tag names an unusable generator, or there is a relationErr
	relationErr error    // a foreign key can't store an ID
	public      []string // the columns that have an idgen tag and are not in the primary key
	associated  bool     // the model has relations of its own
	relations   int      // the number of relations that the model had when the plan was made, or unwatched
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

// A planner caches the plan of each model of a database.
type planner struct {
	bindings []Binding
	plans    sync.Map // *schema.Schema to *plan
}

// planFor returns the plan of a model.
func (p *planner) planFor(s *schema.Schema) *plan {
	v, _ := p.plans.Load(s)
	known, _ := v.(*plan)
	if known == nil && isJoinTable(s.ModelType) {
		known = &plan{relations: unwatched}
		p.plans.Store(s, known)
	}
	if known != nil && known.relations == unwatched {
		return known
	}
	// A model parsed since then may have added a relation that shares this model's key.
	s.Relationships.Mux.RLock()
	defer s.Relationships.Mux.RUnlock()
	if known == nil || known.relations != len(s.Relationships.Relations) {
		known = p.resolve(s)
		p.plans.Store(s, known)
	}
	return known
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
		if !f.PrimaryKey {
			plan.public = append(plan.public, f.DBName)
		}
		var k *key
		if k, plan.err = p.classify(s, f); k != nil {
			plan.keys = append(plan.keys, *k)
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
	case tagged:
		if !p.bind(k, tag) {
			return nil, p.unbound(f, tag)
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
	case p.bind(k, ""):
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

// bind binds the key to the generator of this name, or to one without a name if the name is "".
// The generator's type is the nearest one to the field's. bind reports whether there is one.
func (p *planner) bind(k *key, name string) bool {
	for id := range idsIn(k.field.FieldType) {
		for _, generated := range []reflect.Type{id, untyped(id)} {
			for _, b := range p.bindings {
				if b.name != name || b.idType != generated {
					continue
				}
				k.fills = b.filler(k.field.FieldType, id)
				if typed, ok := reflect.Zero(id).Interface().(interface{ CheckGenerator(any) error }); ok {
					k.layoutErr = typed.CheckGenerator(b.gen)
				}
				return true
			}
		}
	}
	return false
}

// unbound returns the error for a key for which bind finds no generator of this name.
func (p *planner) unbound(f *schema.Field, name string) error {
	if name == "" {
		return p.missing(f)
	}
	var names []string
	for _, b := range p.bindings {
		if b.name == name {
			return fmt.Errorf("gormplugin: fill %s of type %s: generator %q generates %s; name another generator, or change the field's type: %w",
				fieldName(f), typename.Of(f.FieldType), name, typename.Of(b.idType), ErrNoGenerator)
		}
		if b.named {
			names = append(names, b.name)
		}
	}
	slices.Sort(names)
	return fmt.Errorf("gormplugin: fill %s: want the name of a generator among %q, got %q; pass gormplugin.Named(%[3]q, gen) to New: %w",
		fieldName(f), names, name, ErrNoGenerator)
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

// idgenTag returns the name in the field's idgen tag, or "" for the generator of its type. GORM
// copies the tags of an embedded struct to its fields.
func idgenTag(f *schema.Field) (name string, tagged bool) {
	name, tagged = f.TagSettings[tagKey]
	if name = strings.TrimSpace(name); name == noName {
		name = ""
	}
	return name, tagged
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
