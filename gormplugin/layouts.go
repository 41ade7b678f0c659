package gormplugin

import (
	"fmt"
	"reflect"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/internal/typename"
)

// A Layout converts a time window to bounds of IDs. The layouts of package idtype
// implement it, except for the layout of Spread64, whose IDs don't sort by time.
type Layout[T any] interface {
	Range(from, to time.Time) (lo, hi T, err error)
}

// boundsFor returns the bounds of a time window for the IDs in a field.
func boundsFor(stmt *gorm.Statement, f *schema.Field, from, to time.Time) (lo, hi any, err error) {
	switch untyped(idOf(f.FieldType)) {
	case reflect.TypeFor[idtype.Snowflake]():
		return boundsOf(stmt, f, idtype.DefaultSnowflakeLayout(), from, to)
	case reflect.TypeFor[idtype.SnowflakeSI]():
		return boundsOf[idtype.SnowflakeSI](stmt, f, nil, from, to)
	case reflect.TypeFor[idtype.Sno]():
		return boundsOf(stmt, f, idtype.SnoLayout{}, from, to)
	case reflect.TypeFor[idtype.UID60]():
		return boundsOf(stmt, f, idtype.UID60Layout{}, from, to)
	case reflect.TypeFor[idtype.UUID]():
		return boundsOf(stmt, f, idtype.UUIDLayout{}, from, to)
	}
	return boundsOf[any](stmt, f, nil, from, to)
}

// boundsOf returns the bounds in the layout that the key's model declares, that the generators of
// T have, or that is the default one of T, if any.
func boundsOf[T any](stmt *gorm.Statement, f *schema.Field, layout idtype.Layout[T], from, to time.Time) (lo, hi any, err error) {
	var bindings []Binding
	if key, typed := reflect.Zero(idOf(f.FieldType)).Interface().(interface{ ModelLayout() idtype.Layout[T] }); typed {
		layout = key.ModelLayout()
	} else if p, ok := stmt.Plugins[pluginName].(*Plugin); ok {
		bindings = p.bindings
	}
	var bound idtype.Layout[T]
	for _, b := range bindings {
		l := layoutOf[T](b)
		if l == nil {
			continue
		}
		if bound != nil && l.Fingerprint() != bound.Fingerprint() {
			return nil, nil, fmt.Errorf("gormplugin: select by time: the generators of %s have the layouts %q and %q; pass the layout of %s to CreatedBetweenIn: %w",
				typename.Of(reflect.TypeFor[T]()), bound.Fingerprint(), l.Fingerprint(), fieldName(f), gorm.ErrInvalidField)
		}
		bound, layout = l, l
	}
	if l, ok := layout.(Layout[T]); ok {
		return l.Range(from, to)
	}
	return nil, nil, fmt.Errorf("gormplugin: select by time: the layout of %s of type %s is unknown; if its IDs sort by time, pass their layout to CreatedBetweenIn: %w",
		fieldName(f), typename.Of(f.FieldType), gorm.ErrInvalidField)
}

// layoutOf returns the layout of the IDs of a generator of T, or of one made from it, or nil.
func layoutOf[T any](b Binding) idtype.Layout[T] {
	if b.idType == nil || untyped(idOf(b.idType)) != reflect.TypeFor[T]() {
		return nil
	}
	switch g := b.gen.(type) {
	case idtype.Generator[T]:
		return idtype.LayoutOf(g)
	case interface{ Source() idtype.Generator[T] }:
		return idtype.LayoutOf(g.Source())
	}
	return nil
}
