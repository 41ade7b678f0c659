package gormtest

import (
	"database/sql"
	"database/sql/driver"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"unsafe"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// An ID stands for an ID of the type that a test runs with. The tests have models with fields of
// type ID, so the compiler compiles them once and not per ID type. GORM gets a copy in which
// each model, and each value that holds an ID, has the Go type of the ID type under test:
// []thingOf[ID] becomes []thingOf[idtype.Sno]. After the call, a copying updates the test's
// values. GORM, the driver and the plugin never see an ID.
//
// The zero ID stands for the zero value of the ID type.
type ID struct{ value }

type value interface {
	fmt.Stringer
	encoding.TextAppender
	encoding.TextMarshaler
	json.Marshaler
	driver.Valuer
	GormDataType() string
}

// IsZero reports whether the ID is the zero value of its type.
func (id ID) IsZero() bool { return id.value == nil }

// String returns the text of the ID.
func (id ID) String() string {
	if id.value == nil {
		return "zero"
	}
	return id.value.String()
}

// Compare compares two IDs of the same type.
func (id ID) Compare(other ID) int {
	to := other.value
	if to == nil {
		to = reflect.Zero(reflect.TypeOf(id.value)).Interface().(value)
	}
	return int(reflect.ValueOf(id.value).MethodByName("Compare").Call([]reflect.Value{reflect.ValueOf(to)})[0].Int())
}

var typeID = reflect.TypeFor[ID]()

// A types has the Go types that stand for types with the ID in place of the ID type.
type types struct {
	mu       sync.Mutex
	real, of map[reflect.Type]reflect.Type // from the types with ID to the real ones, and the reverse
}

// add adds the types of two values. The second one has the ID type.
func (ts *types) add(withID, real reflect.Type) { ts.real[withID], ts.of[real] = real, withID }

// realOf returns the type that GORM gets for t.
func (ts *types) realOf(t reflect.Type) reflect.Type {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.lookUp(t)
}

func (ts *types) lookUp(t reflect.Type) reflect.Type {
	if real, ok := ts.real[t]; ok {
		return real
	}
	ts.real[t] = t // ends the recursion in a type that refers to itself
	real := t
	switch t.Kind() {
	case reflect.Pointer:
		if elem := ts.lookUp(t.Elem()); elem != t.Elem() {
			real = reflect.PointerTo(elem)
		}
	case reflect.Slice:
		if elem := ts.lookUp(t.Elem()); elem != t.Elem() {
			real = reflect.SliceOf(elem)
		}
	case reflect.Array:
		if elem := ts.lookUp(t.Elem()); elem != t.Elem() {
			real = reflect.ArrayOf(t.Len(), elem)
		}
	case reflect.Struct:
		if t.PkgPath() == "" || t.PkgPath() == typeID.PkgPath() {
			real = ts.structOf(t)
		}
	}
	if ts.real[t] = real; real != t {
		ts.of[real] = t
	}
	return real
}

// structOf is for the structs into which tests scan, which aren't registered.
func (ts *types) structOf(t reflect.Type) reflect.Type {
	changed := false
	var fields []reflect.StructField
	for f := range t.Fields() {
		real := ts.lookUp(f.Type)
		changed = changed || real != f.Type
		f.Type = real
		fields = append(fields, f)
	}
	if !changed {
		return t
	}
	return reflect.StructOf(fields)
}

// withID returns the type with ID for a type that GORM set in an interface.
func (ts *types) withID(t reflect.Type) reflect.Type {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if of, ok := ts.of[t]; ok {
		return of
	}
	if t.Kind() == reflect.Pointer {
		if of, ok := ts.of[t.Elem()]; ok {
			return reflect.PointerTo(of)
		}
	}
	return t
}

// A copying makes real values of a test's values, and copies changes back.
type copying struct {
	ts       *types
	pointers map[unsafe.Pointer]reflect.Value // of the real values, by the test's
	slices   map[unsafe.Pointer]reflect.Value // the test's slices, by the elements of the real ones
	back     map[unsafe.Pointer]reflect.Value // the test's pointers and maps, by the real ones
	made     []pair                           // in the order of their creation
}

// A pair is a pointer, slice or map of the test, and the real one.
type pair struct{ test, real reflect.Value }

// newCopying returns a copying that begins with the values of another one, which may be nil.
func newCopying(ts *types, of *copying) *copying {
	if of == nil {
		of = &copying{pointers: map[unsafe.Pointer]reflect.Value{}, slices: map[unsafe.Pointer]reflect.Value{}, back: map[unsafe.Pointer]reflect.Value{}}
	}
	return &copying{ts, maps.Clone(of.pointers), maps.Clone(of.slices), maps.Clone(of.back), slices.Clone(of.made)}
}

// real returns the real value of v.
func (c *copying) real(v any) any {
	switch v := v.(type) {
	case nil:
		return nil
	case *database:
		return v.real
	case func(*database) *database:
		return func(tx *gorm.DB) *gorm.DB { return v(&database{real: tx, types: c.ts}).real }
	case sql.NamedArg:
		v.Value = c.real(v.Value)
		return v
	case clause.Expr:
		v.Vars = c.reals(v.Vars)
		return v
	case clause.IN:
		v.Values = c.reals(v.Values)
		return v
	case clause.OrderBy:
		v.Expression, _ = c.real(v.Expression).(clause.Expression)
		return v
	}
	return c.make(reflect.ValueOf(v)).Interface()
}

func (c *copying) reals(vs []any) (reals []any) {
	for _, v := range vs {
		reals = append(reals, c.real(v))
	}
	return reals
}

// stays reports whether a value of type t is the same for GORM.
func (c *copying) stays(t reflect.Type) bool {
	for e := t; ; e = e.Elem() {
		switch e.Kind() {
		case reflect.Interface:
			return false
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			continue
		}
		return c.ts.realOf(t) == t
	}
}

func (c *copying) make(v reflect.Value) reflect.Value {
	t := v.Type()
	if c.stays(t) {
		return v
	}
	real := reflect.New(c.ts.realOf(t)).Elem()
	if t == typeID {
		if id := v.Interface().(ID); !id.IsZero() {
			real.Set(reflect.ValueOf(id.value))
		}
		return real
	}
	switch t.Kind() {
	case reflect.Interface:
		if !v.IsNil() {
			real.Set(reflect.ValueOf(c.real(v.Elem().Interface())))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			real.Field(i).Set(c.make(v.Field(i)))
		}
	case reflect.Array:
		for i := range v.Len() {
			real.Index(i).Set(c.make(v.Index(i)))
		}
	case reflect.Pointer:
		if v.IsNil() {
			break
		}
		if made, ok := c.pointers[v.UnsafePointer()]; ok && made.Type() == real.Type() {
			return made
		}
		real.Set(reflect.New(real.Type().Elem()))
		v = reflect.ValueOf(v.Interface())
		c.pointers[v.UnsafePointer()], c.back[real.UnsafePointer()] = real, v
		c.made = append(c.made, pair{v, real})
		real.Elem().Set(c.make(v.Elem()))
	case reflect.Slice:
		if v.IsNil() {
			break
		}
		v = reflect.ValueOf(v.Interface()) // GORM may change the variable that has the slice
		real.Set(reflect.MakeSlice(real.Type(), v.Len(), v.Len()))
		if v.Len() > 0 {
			c.slices[real.UnsafePointer()] = v
		}
		c.made = append(c.made, pair{v, real})
		for i := range v.Len() {
			real.Index(i).Set(c.make(v.Index(i)))
		}
	case reflect.Map:
		if v.IsNil() {
			break
		}
		v = reflect.ValueOf(v.Interface())
		real.Set(reflect.MakeMap(real.Type()))
		c.back[real.UnsafePointer()] = v
		c.made = append(c.made, pair{v, real})
		for key, elem := range v.Seq2() {
			real.SetMapIndex(key, c.make(elem))
		}
	}
	return real
}

// copyBack changes the test's values like the real ones.
func (c *copying) copyBack() {
	for i := range len(c.made) { // values that are added in the loop are complete
		p := c.made[i]
		switch p.real.Kind() {
		case reflect.Pointer:
			c.set(p.test.Elem(), p.real.Elem())
		case reflect.Slice:
			for i := range p.real.Len() {
				c.set(p.test.Index(i), p.real.Index(i))
			}
		case reflect.Map:
			p.test.Clear()
			for key, elem := range p.real.Seq2() {
				v := reflect.New(p.test.Type().Elem()).Elem()
				c.set(v, elem)
				p.test.SetMapIndex(key, v)
			}
		}
	}
}

// set sets v to the value with IDs for the real value.
func (c *copying) set(v, real reflect.Value) {
	t := v.Type()
	if c.stays(t) {
		v.Set(real)
		return
	}
	if t == typeID {
		id := ID{}
		if !real.IsZero() {
			id.value = real.Interface().(value)
		}
		v.Set(reflect.ValueOf(id))
		return
	}
	switch t.Kind() {
	case reflect.Interface:
		v.SetZero()
		if !real.IsNil() {
			elem := reflect.New(c.ts.withID(real.Elem().Type())).Elem()
			c.set(elem, real.Elem())
			v.Set(elem)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			c.set(v.Field(i), real.Field(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			c.set(v.Index(i), real.Index(i))
		}
	case reflect.Pointer:
		if real.IsNil() {
			v.SetZero()
			return
		}
		old, ok := c.back[real.UnsafePointer()]
		if ok && old.Type() == t {
			v.Set(old)
			return
		}
		v.Set(reflect.New(t.Elem()))
		c.back[real.UnsafePointer()] = reflect.ValueOf(v.Interface())
		c.set(v.Elem(), real.Elem())
	case reflect.Slice:
		if real.IsNil() {
			v.SetZero()
			return
		}
		if old, ok := c.slices[real.UnsafePointer()]; ok && real.Len() > 0 && real.Len() <= old.Len() && old.Type() == t {
			v.Set(old.Slice(0, real.Len()))
			return
		}
		fresh := reflect.MakeSlice(t, real.Len(), real.Len())
		for i := range real.Len() {
			c.set(fresh.Index(i), real.Index(i))
		}
		v.Set(fresh)
	case reflect.Map:
		if real.IsNil() {
			v.SetZero()
			return
		}
		if old, ok := c.back[real.UnsafePointer()]; ok && old.Type() == t {
			v.Set(old)
			return
		}
		fresh := reflect.MakeMap(t)
		for key, elem := range real.Seq2() {
			e := reflect.New(t.Elem()).Elem()
			c.set(e, elem)
			fresh.SetMapIndex(key, e)
		}
		v.Set(fresh)
	}
}
