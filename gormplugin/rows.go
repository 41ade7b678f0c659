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

// fill fills the key in all rows of the statement that lack it, and returns these rows.
func (k *key) fill(stmt *gorm.Statement) (filled span, err error) {
	ctx, rows := stmt.Context, stmt.ReflectValue
	if row := only(rows); row.IsValid() && row.Type() == stmt.Schema.ModelType {
		one, err := k.fillOne(ctx, row)
		filled.add(0, one)
		return filled, err
	}
	switch rows.Kind() {
	case reflect.Slice, reflect.Array:
		t := rows.Type().Elem()
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t == stmt.Schema.ModelType {
			return k.fillAll(ctx, rows)
		}
	}
	// GORM rejects values of other types than the model's.
	switch rows := stmt.Dest.(type) {
	case map[string]any:
		one, err := k.fillMap(ctx, rows)
		filled.add(0, one)
		return filled, err
	case *map[string]any:
		one, err := k.fillNewMap(ctx, rows)
		filled.add(0, one)
		return filled, err
	case []map[string]any:
		return k.fillMaps(ctx, rows)
	case *[]map[string]any:
		return k.fillMaps(ctx, *rows)
	}
	return filled, nil
}

func (k *key) fillOne(ctx context.Context, row reflect.Value) (bool, error) {
	if k.fills == nil || !row.CanAddr() {
		return false, k.refuse(ctx, row)
	}
	filled, err := k.fills.one(ctx, k.in(ctx, row))
	return filled, k.failed(err)
}

func (k *key) fillAll(ctx context.Context, rows reflect.Value) (span, error) {
	if k.fills != nil {
		return k.fills.rows(ctx, k, rows)
	}
	for i := range rows.Len() {
		if row := element(rows, i); row.IsValid() {
			if err := k.refuse(ctx, row); err != nil {
				return span{}, err
			}
		}
	}
	return span{}, nil
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

// failed wraps the error of a generator.
func (k *key) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("gormplugin: fill %s: generate an ID: %w", fieldName(k.field), err)
}

func (k *key) fillMaps(ctx context.Context, rows []map[string]any) (filled span, err error) {
	for i := range rows {
		one, err := k.fillNewMap(ctx, &rows[i])
		if err != nil {
			return filled, err
		}
		filled.add(i, one)
	}
	return filled, nil
}

// fillNewMap fills a map, and creates it first if it is nil.
func (k *key) fillNewMap(ctx context.Context, row *map[string]any) (bool, error) {
	if *row == nil {
		*row = map[string]any{}
	}
	return k.fillMap(ctx, *row)
}

func (k *key) fillMap(ctx context.Context, row map[string]any) (bool, error) {
	column, missing := k.entry(row)
	if !missing {
		return false, nil
	}
	switch {
	case k.fills == nil:
		return false, k.err
	case row == nil:
		return false, fmt.Errorf("gormplugin: fill %s: the map is nil; pass map[string]any{}: %w", fieldName(k.field), gorm.ErrInvalidData)
	}
	field := reflect.New(k.field.FieldType).Elem()
	if _, err := k.fills.one(ctx, field); err != nil {
		return false, k.failed(err)
	}
	// The field's type, not the generator's: a struct around the ID may store it in
	// another form.
	row[column] = unpacked(field).Interface()
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
