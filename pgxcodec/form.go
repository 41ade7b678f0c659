package pgxcodec

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/internal/typename"
	"github.com/sortkey/sortkey/sqltypes"
)

// A leaf is a Go type that holds one ID in one column: a type of package idtype such as
// a typed key, a struct that embeds one, sqltypes.Text of one, or sqltypes.SnoBytes.
type leaf struct {
	typ    reflect.Type
	base   reflect.Type // the base type, which has the same memory layout
	column *column
	of     *leaf // of sqltypes.Text, the leaf of the ID
	tagged bool  // all IDs have the metabyte meta
	meta   byte
}

// A form is a Go type that holds IDs: a leaf, or a pointer, a slice, a sql.Null etc. of
// another form.
type form struct {
	*leaf
	typ  reflect.Type
	same reflect.Type // typ with the leaf's base in place of the leaf; nil if its memory layout differs
	id   typeID       // of typ
	to   typeID       // of same
	many bool         // typ can hold several IDs
}

// A typeID identifies the type of a value in an interface. Comparing it takes less time
// than comparing a reflect.Type.
type typeID unsafe.Pointer

// A header is the memory of an any. Other packages depend on it too, for example
// google.golang.org/protobuf. TestHeader fails if a Go version changes it.
type header struct {
	id   typeID
	data unsafe.Pointer // the value itself if it is a pointer, and the address of the value otherwise
}

// in returns the T in a value of the type id, which must be a *T, a T, or have the memory
// layout of one of them. For a nil pointer it returns nil. ok is false if the value has
// another type. The caller must not change a T that isn't behind a pointer.
func in[T any](value any, id typeID) (p *T, ok bool) {
	h := (*header)(unsafe.Pointer(&value))
	if h.id != id {
		return nil, false
	}
	return (*T)(h.data), true
}

// view returns a value of type f.typ as a value of type f.same, without a copy.
func (f *form) view(value any) any {
	(*header)(unsafe.Pointer(&value)).id = f.to
	return value
}

func idOf(t reflect.Type) typeID { return idIn(reflect.Zero(t).Interface()) }

// idIn returns the typeID of a value.
func idIn(value any) typeID { return (*header)(unsafe.Pointer(&value)).id }

var forms sync.Map // from reflect.Type to *form, nil for a type that holds no ID

// formOf returns the form of a type, or nil if the type holds no ID.
func formOf(t reflect.Type) *form {
	if t == nil {
		return nil
	}
	if f, ok := forms.Load(t); ok {
		return f.(*form)
	}
	f := newForm(t)
	if f != nil {
		f.typ, f.id = t, idOf(t)
		if f.same != nil {
			f.to = idOf(f.same)
		}
	}
	forms.Store(t, f)
	return f
}

func newForm(t reflect.Type) *form {
	if t.Name() == "" {
		switch t.Kind() {
		case reflect.Pointer:
			return around(t.Elem(), reflect.PointerTo, false)
		case reflect.Slice:
			return around(t.Elem(), reflect.SliceOf, true)
		}
	}
	if l := leafOf(t); l != nil {
		return &form{leaf: l, same: l.base}
	}
	if isArray(t) {
		return around(t.Elem(), reflect.SliceOf, true) // the memory layout of the slice
	}
	if inner, many := argument(t); inner != nil {
		return around(inner, func(same reflect.Type) reflect.Type { return instances[instance{origin(t), same}] }, many)
	}
	if l := embedded(t); l != nil {
		return &form{leaf: l}
	}
	if origin(t) == textOrigin {
		if id := formOf(t.Field(0).Type); id != nil {
			return &form{leaf: &leaf{typ: t, column: &texts, of: id.leaf}}
		}
	}
	return nil
}

// around returns the form of a type that contains the type inner. same returns that type
// for another inner type.
func around(inner reflect.Type, same func(reflect.Type) reflect.Type, many bool) *form {
	f := formOf(inner)
	if f == nil {
		return nil
	}
	outer := &form{leaf: f.leaf, many: f.many || many}
	if f.same != nil {
		outer.same = same(f.same)
	}
	return outer
}

// An instance is a generic type with a type argument.
type instance struct {
	origin string
	of     reflect.Type
}

// instances are the generic types with IDs that have the same memory layout for all typed
// keys of a base type. A program can't create other instances from a reflect.Type.
var instances = map[instance]reflect.Type{}

func addInstances[V sqltypes.ID]() {
	addInstance[V, sql.Null[V]]()
	addInstance[V, sqltypes.Optional[V]]()
	addInstance[V, pgtype.FlatArray[V]]()
	addInstance[V, pgtype.Array[V]]()
	addInstance[V, pgtype.Range[V]]()
	addInstance[pgtype.Range[V], pgtype.Multirange[pgtype.Range[V]]]()
}

func addInstance[V, G any]() {
	g := reflect.TypeFor[G]()
	instances[instance{origin(g), reflect.TypeFor[V]()}] = g
}

// origin returns the name of a generic type without its type arguments, or "" if the type
// is not generic.
func origin(t reflect.Type) string {
	name, _, generic := strings.Cut(t.Name(), "[")
	if !generic {
		return ""
	}
	return t.PkgPath() + "." + name
}

var (
	nullOrigin     = origin(reflect.TypeFor[sql.Null[int]]())
	optionalOrigin = origin(reflect.TypeFor[sqltypes.OptionalSno]())
	textOrigin     = origin(reflect.TypeFor[sqltypes.SnoText]())
	flatOrigin     = origin(reflect.TypeFor[pgtype.FlatArray[int]]())
	arrayOrigin    = origin(reflect.TypeFor[pgtype.Array[int]]())
	idsOrigin      = origin(reflect.TypeFor[sqltypes.Array[idtype.Sno]]())
	rangeOrigin    = origin(reflect.TypeFor[pgtype.Range[int]]())
	multiOrigin    = origin(reflect.TypeFor[pgtype.Multirange[pgtype.Range[int]]]())
)

// isArray reports whether t is a sqltypes.Array.
func isArray(t reflect.Type) bool { return t.Kind() == reflect.Slice && origin(t) == idsOrigin }

// argument returns the type argument of a generic type that holds IDs, and nil for other
// types. many reports whether the type can hold several.
func argument(t reflect.Type) (inner reflect.Type, many bool) {
	switch origin(t) {
	case nullOrigin, optionalOrigin:
		return t.Field(0).Type, false
	case rangeOrigin:
		return t.Field(0).Type, true
	case flatOrigin, multiOrigin:
		return t.Elem(), true
	case arrayOrigin:
		return t.Field(0).Type.Elem(), true
	}
	return nil, false
}

// leaves are the leaves of the base types: without a model, and not in a struct.
var leaves = map[reflect.Type]*leaf{}

// leafOf returns the leaf of a type, or nil if it has none.
func leafOf(t reflect.Type) *leaf {
	if l := leaves[t]; l != nil {
		return l
	}
	switch {
	case t.PkgPath() == idtypePath:
		return typedLeaf(t)
	case origin(t) == textOrigin:
		if id := leafOf(t.Field(0).Type); id != nil && id.column != &texts && keepsText(id.typ) {
			l := *id
			l.typ, l.base, l.column, l.of = t, instances[instance{textOrigin, id.base}], &texts, id
			return &l
		}
	case t.Kind() == reflect.Struct && t.NumField() == 1 && t.Field(0).Anonymous:
		if id := leafOf(t.Field(0).Type); id != nil && !hasPgxMethods(t) && promotesColumn(t) {
			l := *id
			l.typ = t
			return &l
		}
	}
	return nil
}

var idtypePath = reflect.TypeFor[idtype.Sno]().PkgPath()

// typedLeaf returns the leaf of a typed key, or nil if the type isn't a typed key.
func typedLeaf(t reflect.Type) *leaf {
	var base reflect.Type
	zero := reflect.Zero(t).Interface()
	switch zero.(type) {
	case interface{ Untyped() idtype.Snowflake }:
		base = reflect.TypeFor[idtype.Snowflake]()
	case interface{ Untyped() idtype.SnowflakeSI }:
		base = reflect.TypeFor[idtype.SnowflakeSI]()
	case interface{ Untyped() idtype.UID60 }:
		base = reflect.TypeFor[idtype.UID60]()
	case interface{ Untyped() idtype.Spread64 }:
		base = reflect.TypeFor[idtype.Spread64]()
	case interface{ Untyped() idtype.Sno }:
		base = reflect.TypeFor[idtype.Sno]()
	default:
		return nil
	}
	l := &leaf{typ: t, base: base, column: leaves[base].column}
	if tag, ok := zero.(interface{ ModelMeta() (byte, bool) }); ok {
		l.meta, l.tagged = tag.ModelMeta()
	}
	return l
}

// hasPgxMethods reports whether pgx handles a type by methods of the type's own, such as
// TextValue.
func hasPgxMethods(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return slices.ContainsFunc(pgxInterfaces, p.Implements)
}

var pgxInterfaces = []reflect.Type{
	reflect.TypeFor[pgtype.TextValuer](),
	reflect.TypeFor[pgtype.BytesValuer](),
	reflect.TypeFor[pgtype.Int64Valuer](),
	reflect.TypeFor[pgtype.UUIDValuer](),
	reflect.TypeFor[pgtype.ArrayGetter](),
	reflect.TypeFor[pgtype.TextScanner](),
	reflect.TypeFor[pgtype.BytesScanner](),
	reflect.TypeFor[pgtype.Int64Scanner](),
	reflect.TypeFor[pgtype.UUIDScanner](),
	reflect.TypeFor[pgtype.ArraySetter](),
}

// A columnValue is an ID, as database/sql and GORM see it.
type columnValue interface {
	driver.Valuer
	GormDataType() string
}

// embedded returns the leaf that a struct embeds, for the check of column types. It returns
// nil if there is none, or if the struct stores it differently.
func embedded(t reflect.Type) *leaf {
	if t.Kind() != reflect.Struct {
		return nil
	}
	for _, f := range reflect.VisibleFields(t) {
		if !f.Anonymous {
			continue
		}
		if id := leafOf(f.Type); id != nil && embeddedBy(t, f.Index, id) {
			l := *id
			l.typ = t
			return &l
		}
	}
	return nil
}

func embeddedBy(t reflect.Type, index []int, id *leaf) (same bool) {
	defer func() {
		if recover() != nil {
			same = false // the struct's own Value method, or one behind a nil pointer
		}
	}()
	sample := id.sample()
	outer := reflect.New(t).Elem()
	// The field may have an unexported type.
	reflect.NewAt(id.typ, outer.FieldByIndex(index).Addr().UnsafePointer()).Elem().Set(sample)
	return sameValue(outer, sample)
}

func sameValue(outer, id reflect.Value) bool {
	o, ok := outer.Interface().(columnValue)
	i, isID := id.Interface().(columnValue)
	if !ok || !isID || o.GormDataType() != i.GormDataType() {
		return false
	}
	got, err := o.Value()
	want, _ := i.Value()
	return err == nil && got == want
}

// keepsText reports whether sqltypes.Text of a type stores the text of the type's base.
func keepsText(t reflect.Type) bool {
	return t.Kind() != reflect.Struct || promotesText(t) && keepsText(t.Field(0).Type)
}

// promotesColumn reports whether a struct has the methods of its embedded ID for columns.
// A method that the struct declares could treat any ID differently.
func promotesColumn(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return promoted(t.MethodByName("Value")) && promoted(t.MethodByName("GormDataType")) && promoted(t.MethodByName("IsZero")) && promoted(p.MethodByName("Scan"))
}

// promotesText reports whether a struct has the methods of its embedded ID for text.
func promotesText(t reflect.Type) bool {
	return promoted(t.MethodByName("AppendText")) && promoted(reflect.PointerTo(t).MethodByName("UnmarshalText"))
}

// promoted reports whether the compiler generated a method, for an embedded field. The
// callers name methods by constants: otherwise the linker keeps all methods of all types.
func promoted(m reflect.Method, ok bool) bool {
	if !ok {
		return false
	}
	f := runtime.FuncForPC(m.Func.Pointer())
	file, _ := f.FileLine(f.Entry())
	return file == "<autogenerated>"
}

// sample returns an ID of the leaf's type.
func (l *leaf) sample() reflect.Value {
	v := reflect.New(l.typ)
	if l.base.Size() == unsafe.Sizeof(int64(0)) {
		*(*int64)(v.UnsafePointer()) = 7
		return v.Elem()
	}
	id := (*idtype.Sno)(v.UnsafePointer())
	if id[9] = 7; l.tagged {
		id[5] = l.meta
	}
	return v.Elem()
}

// accepts reports whether the leaf can hold an ID: its model declares no metabyte, the ID
// has that metabyte, or the ID is zero.
func (l *leaf) accepts(id idtype.Sno) bool { return !l.tagged || id[5] == l.meta || id.IsZero() }

// rejection returns the error of the Value method of the leaf at p, or err if there is none.
func (l *leaf) rejection(p unsafe.Pointer, err error) error {
	if v, ok := reflect.NewAt(l.typ, p).Interface().(driver.Valuer); ok {
		if _, own := v.Value(); own != nil {
			return own
		}
	}
	return err
}

// scan calls the Scan method of the leaf at p.
func (l *leaf) scan(p unsafe.Pointer, src any) error {
	return reflect.NewAt(l.typ, p).Interface().(sql.Scanner).Scan(src)
}

// check returns an error if a value of the form contains an ID with a metabyte other
// than the model's. The plans made from a wire check each ID; this check is for the
// values that pgx takes apart. scanned means that the value comes from the server.
func (f *form) check(value any, scanned bool) error {
	if !f.tagged {
		return nil
	}
	return f.checkIn(reflect.ValueOf(value), scanned)
}

func (f *form) checkIn(v reflect.Value, scanned bool) (err error) {
	switch {
	case v.Type() != f.leaf.typ:
	case scanned:
		l := f.leaf
		if l.of != nil { // a sqltypes.Text
			l, v = l.of, v.FieldByName("ID")
		}
		return l.scan(reflect.New(l.typ).UnsafePointer(), v.Interface())
	default:
		_, err := v.Interface().(driver.Valuer).Value()
		return err
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return f.checkIn(v.Elem(), scanned)
		}
	case reflect.Slice:
		for i := 0; i < v.Len() && err == nil; i++ {
			err = f.checkIn(v.Index(i), scanned)
		}
	case reflect.Struct:
		if valid := v.FieldByName("Valid"); valid.IsValid() && !valid.Bool() {
			return nil // NULL
		}
		for i := 0; i < v.NumField() && err == nil; i++ {
			if formOf(v.Field(i).Type()) != nil {
				err = f.checkIn(v.Field(i), scanned)
			}
		}
	}
	return err
}

// alternatives returns the Go types for other columns, for errors.
func (l *leaf) alternatives() string {
	switch {
	case l.column == &byteas:
		return "idtype.Sno for uuid columns, sqltypes.SnoText for text columns"
	case l.of != nil:
		return fmt.Sprintf("%s for %s columns%s", typename.Of(l.of.typ), l.of.column.name, l.of.snoBytes())
	case l.typ == l.base:
		return "sqltypes." + l.typ.Name() + "Text for text columns" + l.snoBytes()
	}
	return "sqltypes.Text[" + typename.Of(l.typ) + "] for text columns" + l.snoBytes()
}

func (l *leaf) snoBytes() string {
	if l.column != &uuids {
		return ""
	}
	return ", sqltypes.SnoBytes for bytea columns"
}
