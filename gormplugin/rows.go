package gormplugin

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/internal/typename"
)

// count returns the number of rows in a statement's ReflectValue.
func count(rows reflect.Value) int {
	switch rows.Kind() {
	case reflect.Slice, reflect.Array:
		return rows.Len()
	}
	return 1
}

// rowAt returns a row of a statement's ReflectValue: a struct, a map, or an invalid Value for
// a nil pointer. GORM's error for a nil pointer contains the index.
func rowAt(rows reflect.Value, i int) reflect.Value {
	switch rows.Kind() {
	case reflect.Slice, reflect.Array:
		rows = rows.Index(i)
		for rows.Kind() == reflect.Pointer {
			rows = rows.Elem()
		}
	}
	return rows
}

// distinct returns the rows of an association without repeated pointers: GORM lists a row as often
// as other rows refer to it.
func distinct(rows reflect.Value) reflect.Value {
	if rows.Kind() != reflect.Slice || rows.Type().Elem().Kind() != reflect.Pointer || rows.Len() < 2 {
		return rows
	}
	seen := make(map[any]bool, rows.Len())
	list := reflect.MakeSlice(rows.Type(), 0, rows.Len())
	for i := range rows.Len() {
		if row := rows.Index(i); !seen[row.Interface()] {
			seen[row.Interface()] = true
			list = reflect.Append(list, row)
		}
	}
	return list
}

// isInserted reports whether the statement inserts the key. If a Select leaves out the
// key, isInserted adds it: otherwise GORM would insert a row without the ID that the
// struct has.
func (k *key) isInserted(stmt *gorm.Statement) bool {
	if len(stmt.Selects) == 0 && len(stmt.Omits) == 0 {
		return true
	}
	columns, restricted := stmt.SelectAndOmitColumns(true, false)
	if selected, ok := columns[k.field.DBName]; ok {
		return selected
	}
	if restricted {
		// Clip, because sessions share the slice.
		stmt.Selects = append(slices.Clip(stmt.Selects), k.field.DBName)
	}
	return true
}

// isModel reports whether the rows of a statement are structs of its model, or maps. GORM rejects
// others.
func isModel(stmt *gorm.Statement) bool {
	t := stmt.ReflectValue.Type()
	if t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
		t = t.Elem()
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t == stmt.Schema.ModelType || t == reflect.TypeFor[map[string]any]()
}

// fill fills the key in all rows of the statement that lack it. It returns which rows it left
// alone, or nil if it filled all of them.
func (k *key) fill(stmt *gorm.Statement) (alone []bool, err error) {
	ctx, rows := stmt.Context, stmt.ReflectValue
	n := count(rows)
	if !isModel(stmt) || !k.isInserted(stmt) {
		return slices.Repeat([]bool{true}, n), nil
	}
	var b *block
	if k.fills != nil {
		b = k.fills.blocks.Get().(*block)
	}
	for i := range n {
		row, missing := rowAt(rows, i), false
		switch {
		case !row.IsValid(): // GORM rejects the statement
		case b == nil, row.Kind() == reflect.Struct && !row.CanAddr():
			err = k.refuse(ctx, row)
		case row.Kind() == reflect.Map:
			missing, err = k.fillMap(ctx, row, b)
		default:
			field := k.in(ctx, row)
			if missing = isMissing(field); missing {
				b.fields[b.n] = field
				b.n++
			}
			if b.n == blockSize {
				err = k.flush(ctx, b)
			}
		}
		if err != nil {
			return nil, err
		}
		if !missing && b != nil {
			if alone == nil {
				alone = make([]bool, n)
			}
			alone[i] = true
		}
	}
	if b != nil {
		err = k.flush(ctx, b)
		k.fills.blocks.Put(b) // not after a panic: it may hold fields
	}
	return alone, err
}

// flush generates IDs for the fields of a block, and empties the block.
func (k *key) flush(ctx context.Context, b *block) error {
	if b.n == 0 {
		return nil
	}
	fields := b.fields[:b.n]
	err := b.source.generate(ctx, b.n)
	if err == nil {
		for i, field := range fields {
			k.fills.put(field, b.ids.Index(i))
		}
	} else {
		err = fmt.Errorf("gormplugin: fill %s: generate an ID: %w", fieldName(k.field), err)
	}
	// A block in the pool must not keep the caller's rows alive.
	clear(fields)
	b.n = 0
	return err
}

// in returns the field of the key in an addressable row.
func (k *key) in(ctx context.Context, row reflect.Value) reflect.Value {
	if k.index >= 0 {
		return row.Field(k.index)
	}
	// ReflectValueOf allocates embedded structs behind nil pointers. Their key is zero.
	return k.field.ReflectValueOf(ctx, row)
}

// refuse returns an error if a row that can't be filled has no ID.
func (k *key) refuse(ctx context.Context, row reflect.Value) error {
	switch {
	case k.id(ctx, row) != nil:
		return nil
	case k.err != nil:
		return k.err
	}
	return fmt.Errorf("gormplugin: fill %s: want a pointer to a %s, got a value that can't be written to; pass &row: %w",
		fieldName(k.field), typename.Of(row.Type()), gorm.ErrInvalidValue)
}

// fillMap fills a map that lacks the key, and creates it first if it is nil.
func (k *key) fillMap(ctx context.Context, row reflect.Value, b *block) (missing bool, err error) {
	if row.IsNil() && row.CanSet() {
		row.Set(reflect.MakeMap(row.Type()))
	}
	m := row.Interface().(map[string]any)
	name, missing := k.entry(m)
	switch {
	case !missing:
		return false, nil
	case m == nil:
		return false, fmt.Errorf("gormplugin: fill %s: the map is nil; pass map[string]any{}: %w", fieldName(k.field), gorm.ErrInvalidData)
	}
	field := reflect.New(k.field.FieldType).Elem()
	b.fields[0], b.n = field, 1
	if err := k.flush(ctx, b); err != nil {
		return false, err
	}
	// The field's type, not the generator's: a struct around the ID may store it in
	// another form.
	m[name] = within(field, contentOf(field.Type())).Interface()
	return true, nil
}

// entry returns the name under which a map has the key, or else the column's, and reports
// whether the map has no ID there. GORM also accepts the name of the field.
func (k *key) entry(row map[string]any) (name string, missing bool) {
	name = k.field.DBName
	for n, v := range row {
		if k.field.Schema.LookUpField(n) != k.field {
			continue
		}
		if !isMissing(reflect.ValueOf(v)) {
			return n, false
		}
		// Use the same name: with another one, GORM would list the column twice.
		name = n
	}
	return name, true
}

// id returns the ID that a row has in the key, or nil if it has none.
func (k *key) id(ctx context.Context, row reflect.Value) any {
	var v reflect.Value
	switch {
	case row.Kind() == reflect.Map:
		m := row.Interface().(map[string]any)
		name, _ := k.entry(m)
		v = reflect.ValueOf(m[name])
	case k.index >= 0:
		v = row.Field(k.index)
	default:
		id, _ := k.field.ValueOf(ctx, row)
		v = reflect.ValueOf(id)
	}
	if isMissing(v) {
		return nil
	}
	return within(v, contentOf(v.Type())).Interface()
}

// reset sets the key of a row to zero. In a map, it deletes the key.
func (k *key) reset(ctx context.Context, row reflect.Value) {
	if row.Kind() != reflect.Map {
		k.in(ctx, row).SetZero()
		return
	}
	m := row.Interface().(map[string]any)
	if name, missing := k.entry(m); !missing {
		delete(m, name)
	}
}

// isMissing reports whether a value contains no ID: it is nil, zero, an invalid
// sql.Null, or a pointer, a sql.Null or a struct of one field that contains such a value.
func isMissing(v reflect.Value) bool {
	for v.IsValid() && !v.IsZero() {
		switch {
		case v.Kind() == reflect.Pointer:
			v = v.Elem()
		case v.Kind() != reflect.Struct:
			return false
		case v.NumField() == 1 && v.Field(0).CanInterface():
			v = v.Field(0)
		case v.NumField() == 2 && v.Type().PkgPath() == sqlPackage: // such as a sql.Null or a sql.NullString
			if !v.Field(1).Bool() {
				return true
			}
			v = v.Field(0)
		default:
			return false
		}
	}
	return true
}

// within returns the value of type t that v is, refers to or contains. No pointer may be nil.
func within(v reflect.Value, t reflect.Type) reflect.Value {
	for v.Type() != t {
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		} else {
			v = v.Field(0)
		}
	}
	return v
}

// slot returns the value of type id in a field that holds such IDs. It sets pointers on the way
// to new variables, because the caller may use the old ones, and makes a sql.Null valid.
func slot(field reflect.Value, id reflect.Type) reflect.Value {
	for field.Type() != id {
		if field.Kind() == reflect.Pointer {
			field.Set(reflect.New(field.Type().Elem()))
			field = field.Elem()
			continue
		}
		if field.NumField() == 2 { // a sql.Null: all other structs have one field
			field.Field(1).SetBool(true)
		}
		field = field.Field(0)
	}
	return field
}
