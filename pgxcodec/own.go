package pgxcodec

import (
	"bytes"
	"database/sql"
	"database/sql/driver"
	"encoding"
	"fmt"
	"reflect"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/sqltypes"
)

// RegisterOwn registers the ID type T: a struct type of the caller, with an embedded
// type of package idtype as its only field:
//
//	type OrderID struct{ idtype.Snowflake }
//
// Such a type keeps the IDs of different tables apart and has all methods of the
// embedded type. (A type without a struct, such as type OrderID idtype.Snowflake, has
// none of the methods, and pgx treats it as a plain number.)
//
// A registered type, and [sqltypes.Text] of it, works wherever the types of package
// idtype do. An unregistered type goes through Value and Scan, which takes several
// times as long, and slices of it can't be arguments in the modes exec and
// simple_protocol. Columns that reject the embedded ID reject the struct in either
// case.
//
// RegisterOwn also calls [Register]. Call it for each connection, in the same place as
// AfterConnect. If two maps share their types, for example because Map.Copy made one
// from the other, the codecs of both maps handle T. If T is not such a struct,
// RegisterOwn returns an error that names the reason.
func RegisterOwn[T interface {
	sqltypes.ID
	encoding.BinaryAppender
}](m *pgtype.Map) error {
	var zero T
	var check error
	var add func(r *registry, alternatives string)
	if check = embeds(reflect.TypeFor[T]()); check == nil {
		switch column := zero.GormDataType(); column {
		case "bigint":
			check, add = checkOwn[T, bigintText[T]](), addBigint[T]
		case "uuid":
			check, add = checkOwn[T, uuidText[T]](), addUUID[T]
		default:
			check = fmt.Errorf("its column type is %q, want bigint or uuid", column)
		}
	}
	if check != nil {
		return fmt.Errorf("pgxcodec: register %v: %w; declare a struct that embeds one ID type of package idtype, has no other field, and keeps the methods of that type", reflect.TypeFor[T](), check)
	}
	r, whole := registryOf(m)
	alternatives := fmt.Sprintf("sqltypes.Text[%T] for text columns", zero)
	if zero.GormDataType() == "uuid" {
		alternatives += snoBytesToo
	}
	add(r, alternatives)
	if !whole {
		register(m, r)
		return nil
	}
	for _, c := range r.columns() {
		for _, v := range c.all() {
			if of := v.goType(); of == any(zero) || of == any(sqltypes.TextOf(zero)) {
				c.registerDefaults(m, v)
			}
		}
	}
	return nil
}

// embeds returns nil if t is a type of package idtype, or a struct with one embedded
// field of such a type or struct. Any other field would be lost in the database.
func embeds(t reflect.Type) error {
	switch t {
	case reflect.TypeFor[idtype.Snowflake](), reflect.TypeFor[idtype.SnowflakeSI](), reflect.TypeFor[idtype.UID60](), reflect.TypeFor[idtype.Spread64](), reflect.TypeFor[idtype.Sno]():
		return nil
	}
	if t.Kind() != reflect.Struct || t.NumField() != 1 || !t.Field(0).Anonymous {
		return fmt.Errorf("%v is not a struct with one embedded ID type", t)
	}
	return embeds(t.Field(0).Type)
}

// columnOfType returns the column for values of t: a registered type, a caller's
// struct that embeds an ID, or a pointer to, Null of, Optional of or Text of such a
// type. It returns nil for other types.
func (r *registry) columnOfType(t reflect.Type) *ownColumn {
	switch {
	case t == nil:
		return nil
	case t.Kind() == reflect.Pointer && t.Name() == "":
		return r.columnOfType(t.Elem())
	}
	if p := r.columnOf(reflect.Zero(t).Interface()); p != nil || t.Kind() != reflect.Struct {
		return p
	}
	switch name, _, _ := strings.Cut(t.Name(), "["); t.PkgPath() + "." + name {
	case "database/sql.Null", sqltypesPath + ".Optional":
		return r.columnOfType(t.Field(0).Type)
	case sqltypesPath + ".Text":
		of := t.Field(0).Type
		if p := r.columnOfType(of); p != nil {
			return &ownColumn{column: &r.text, alternatives: textAlternatives(of, p.column)}
		}
		return nil
	}
	id := embedded(t)
	if id == nil {
		return nil
	}
	p := r.columnOf(id)
	return &ownColumn{p.column, fmt.Sprintf("sqltypes.Text[%v] or %s", t, p.alternatives), true}
}

var sqltypesPath = reflect.TypeFor[sqltypes.SnoBytes]().PkgPath()

// A columnValue is an ID, as database/sql and GORM see it.
type columnValue interface {
	driver.Valuer
	GormDataType() string
}

// embedded returns a sample ID of the type that a struct embeds. It returns nil if
// the struct embeds no ID type, or stores the ID differently: with its own Value
// method, or in another column type for GORM.
func embedded(t reflect.Type) (id columnValue) {
	defer func() {
		if recover() != nil {
			id = nil // the struct's own Value method, which panics with only the ID set
		}
	}()
	for _, f := range reflect.VisibleFields(t) {
		// An ID type that has no sample here is not recognized in structs.
		for _, sample := range []columnValue{idtype.Snowflake(7), idtype.SnowflakeSI(7), idtype.UID60(7), idtype.Spread64(7), idtype.Sno{9: 7}} {
			if !f.Anonymous || f.Type != reflect.TypeOf(sample) {
				continue
			}
			v := reflect.New(t).Elem()
			v.FieldByIndex(f.Index).Set(reflect.ValueOf(sample))
			own, ok := v.Interface().(columnValue)
			if !ok || own.GormDataType() != sample.GormDataType() {
				return nil
			}
			got, err := own.Value()
			if want, _ := sample.Value(); err != nil || got != want {
				return nil
			}
			return sample
		}
	}
	return nil
}

// checkOwn compares the codec's encoding with that of the type's own methods, for the
// zero ID and one more, and reads both back.
func checkOwn[T plainID, W wire[T]]() error {
	var refused error
	samples := 0
	for _, sample := range []any{nil, int64(7), idtype.Sno{9: 7}.UUID()} {
		var id, back T
		s, ok := any(&id).(interface {
			sql.Scanner
			encoding.TextUnmarshaler
			encoding.BinaryUnmarshaler
		})
		if !ok {
			return fmt.Errorf("*%T lacks the method Scan, UnmarshalText or UnmarshalBinary", id)
		}
		if sample != nil {
			if refused = s.Scan(sample); refused != nil {
				continue // the sample is of the other column type
			}
			samples++
		}
		v, err := id.Value()
		if err != nil {
			return err
		}
		var w W
		b, err := w.put(nil, id)
		if err != nil {
			return err
		}
		if want := fmt.Append(nil, v); !bytes.Equal(b, want) {
			return fmt.Errorf("its Value method stores %q, but its text or binary form is %q", want, b)
		}
		if err := w.get(b, &back); err != nil {
			return err
		}
		if back != id {
			return fmt.Errorf("an ID written as %q is read back as %v", b, back)
		}
	}
	if samples == 0 {
		return refused
	}
	return nil
}
