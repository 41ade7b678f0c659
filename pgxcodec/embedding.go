package pgxcodec

import (
	"database/sql/driver"
	"reflect"

	"github.com/sortkey/sortkey/idtype"
)

// embedded returns the leaf of a struct that embeds an ID by value and stores it as the ID
// does. It returns nil for other types. The codec calls Value and Scan of such a struct.
func embedded(t reflect.Type) *leaf {
	if t.Kind() != reflect.Struct {
		return nil
	}
	for _, f := range reflect.VisibleFields(t) {
		if !f.Anonymous {
			continue
		}
		if id := leafOf(f.Type); id != nil && storedAs(t, f.Index, id) {
			return &leaf{typ: t, pointer: reflect.PointerTo(t), column: id.column, of: id.of, uuid: id.uuid}
		}
	}
	return nil
}

// A columnValue is an ID, as database/sql and GORM see it.
type columnValue interface {
	driver.Valuer
	GormDataType() string
}

// storedAs reports whether a struct stores the ID in a field as the ID itself is stored. It
// compares their Value methods for one ID.
func storedAs(t reflect.Type, index []int, id *leaf) (same bool) {
	defer func() {
		if recover() != nil {
			same = false // the struct's own Value method, or an ID behind a nil pointer
		}
	}()
	outer := reflect.New(t).Elem()
	field := outer.FieldByIndex(index)
	if !field.CanSet() {
		return false // VisibleFields also has the exported fields of a field with an unexported type
	}
	field.Set(id.sample())
	o, ok := outer.Interface().(columnValue)
	i := field.Interface().(columnValue)
	if !ok || o.GormDataType() != i.GormDataType() {
		return false
	}
	got, err := o.Value()
	want, _ := i.Value()
	return err == nil && got == want
}

// sample returns an ID of the leaf's type.
func (l *leaf) sample() reflect.Value {
	v := reflect.New(l.typ).Elem()
	sno := idtype.Sno{9: 7}
	if l.tagged {
		sno[5] = l.meta
	}
	switch {
	case l.own():
		v.Field(0).Set(leafOf(v.Field(0).Type()).sample())
	case l.of != nil:
		v.Field(0).Set(l.of.sample())
	case l.column == &bigints:
		v.SetInt(7)
	case l.column == &uuids:
		reflect.Copy(v, reflect.ValueOf(sno))
	}
	return v
}
