package gormplugin

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/internal/typename"
)

// wanted reports whether the statement inserts the key. If a Select leaves out the
// key, wanted adds it: otherwise GORM would insert a row without the ID that the
// struct has.
func (k *key) wanted(stmt *gorm.Statement) bool {
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

// fill fills the key in all rows of the statement that lack it, and adds these rows to filled.
func (k *key) fill(stmt *gorm.Statement, filled *span) error {
	t := stmt.ReflectValue.Type()
	if t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
		t = t.Elem()
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t != stmt.Schema.ModelType && t != reflect.TypeFor[map[string]any]() {
		return nil // GORM rejects the value
	}
	if k.fills == nil {
		return k.fillRows(stmt, filled, nil)
	}
	b := k.fills.blocks.Get().(*block)
	err := k.fillRows(stmt, filled, b)
	k.fills.blocks.Put(b) // not if the generator panics
	return err
}

// fillRows does the work of fill. The block is nil if no generator fills the key.
func (k *key) fillRows(stmt *gorm.Statement, filled *span, b *block) error {
	ctx, rows := stmt.Context, stmt.ReflectValue
	for i := range count(rows) {
		row := rowAt(rows, i)
		switch {
		case !row.IsValid():
			continue
		case row.Kind() == reflect.Map:
			missing, err := k.fillMap(ctx, row, b)
			if err != nil {
				return err
			}
			filled.add(i, missing)
			continue
		case b == nil || !row.CanAddr():
			if err := k.refuse(ctx, row); err != nil {
				return err
			}
			continue
		}
		field := k.in(ctx, row)
		missing := k.fills.isMissing(field)
		filled.add(i, missing)
		if !missing {
			continue
		}
		b.fields[b.n] = field
		if b.n++; b.n == blockSize {
			if err := k.flush(ctx, b); err != nil {
				return err
			}
		}
	}
	if b == nil {
		return nil
	}
	return k.flush(ctx, b)
}

// element returns the struct of a slice's element, which may be a pointer to it. For
// a nil pointer it returns an invalid Value. GORM's error then contains the index.
func element(rows reflect.Value, i int) reflect.Value {
	row := rows.Index(i)
	for row.Kind() == reflect.Pointer {
		row = row.Elem()
	}
	return row
}

// only returns the struct of a statement that creates a single row: rows itself, or
// the only element of a slice, which generated code passes for a single row. If the
// statement has more rows or none, only returns an invalid Value.
func only(rows reflect.Value) reflect.Value {
	switch rows.Kind() {
	case reflect.Struct:
		return rows
	case reflect.Slice, reflect.Array:
		if rows.Len() == 1 {
			return element(rows, 0)
		}
	}
	return reflect.Value{}
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
	_, zero := k.field.ValueOf(ctx, row)
	switch {
	case !zero:
		return nil
	case k.err != nil:
		return k.err
	}
	return fmt.Errorf("gormplugin: fill %s: want a pointer to a %s, got a value that can't be written to; pass &row: %w",
		fieldName(k.field), typename.Of(row.Type()), gorm.ErrInvalidValue)
}

// flush fills the fields of a block.
func (k *key) flush(ctx context.Context, b *block) error {
	if err := k.fills.flush(ctx, b); err != nil {
		return fmt.Errorf("gormplugin: fill %s: generate an ID: %w", fieldName(k.field), err)
	}
	return nil
}

// fillMap fills a map, and creates it first if it is nil.
func (k *key) fillMap(ctx context.Context, row reflect.Value, b *block) (filled bool, err error) {
	if row.IsNil() && row.CanSet() {
		row.Set(reflect.MakeMap(row.Type()))
	}
	m := row.Interface().(map[string]any)
	column, missing := k.entry(m)
	switch {
	case !missing:
		return false, nil
	case b == nil:
		return false, k.err
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
	m[column] = unpacked(field).Interface()
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

// isMissing reports whether a value contains no ID: it is nil, zero, an invalid
// sql.Null, or a pointer or a sql.Null that contains such a value.
func isMissing(v reflect.Value) bool {
	for v.IsValid() && !v.IsZero() {
		switch {
		case v.Kind() == reflect.Pointer:
			v = v.Elem()
		case isSQLNull(v.Type()):
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
