package idtest

import (
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/internal/reflecttest"
	"github.com/sortkey/sortkey/sqltypes"
)

// A Type is a [Kind] of some Go type.
type Type interface {
	TypeName() string
	Cases(n int) []Case
	checkRefused(t *testing.T, q Query)
	checkNull(t *testing.T, q Query)
}

// Types lists all ID types.
var Types = []Type{Snowflake, SnowflakeSI, UID60, Spread64, Sno, OrderID, OrderSI, VisitID, VisitKey, VisitSno, CustomerID, UUID, VisitUUID, OrderUUID}

// TypeName returns the name of the Go type.
func (k Kind[T]) TypeName() string { return k.Name }

// A Query runs a statement that returns one row, with some driver.
type Query func(sql string, args ...any) Row

// A Row is the result of a [Query], such as *sql.Row and pgx.Row.
type Row interface{ Scan(dest ...any) error }

// A Dialect holds the differences between databases.
type Dialect struct {
	// Shown returns an expression for a column's value as text.
	Shown func(column string) string
}

// Postgres is the dialect of Postgres.
var Postgres = Dialect{func(column string) string { return `cast("` + column + `" as text)` }}

// SQLite is the dialect of SQLite.
var SQLite = Dialect{func(column string) string {
	if column == "bytea" {
		return `case when "bytea" is not null then '\x' || lower(hex("bytea")) end`
	}
	return Postgres.Shown(column)
}}

// CreateTable returns the statement that creates the table for Check. The table has one
// column per column type.
func CreateTable() string {
	var columns []string
	for _, c := range Columns {
		columns = append(columns, fmt.Sprintf("%q %s", c, c))
	}
	return "create table forms (" + strings.Join(columns, ", ") + ")"
}

// Check tests all ID types with one driver: values are stored correctly and read back,
// and scanning a value that isn't an ID fails.
func Check(t *testing.T, q Query, d Dialect) {
	for _, typ := range Types {
		t.Run(typ.TypeName(), func(t *testing.T) {
			for _, c := range typ.Cases(3) {
				c.check(t, q, d)
			}
			typ.checkRefused(t, q)
			typ.checkNull(t, q)
		})
	}
}

// check stores a value, checks the stored text, and finds the row by the value.
func (c Case) check(t *testing.T, q Query, d Dialect) {
	t.Helper()
	what := fmt.Sprintf("%T %v in %s", c.Value, text(c.Value), c.Column)

	returned := reflecttest.NewOf(c.Value)
	var stored sql.Null[string]
	err := q(fmt.Sprintf(`insert into forms (%[1]q) values ($1) returning %[1]q, %[2]s`, c.Column, d.Shown(c.Column)), c.Value).
		Scan(returned, &stored)
	switch {
	case err != nil:
		t.Errorf("%s: insert: %v", what, err)
		return
	case stored != c.Stored:
		t.Errorf("%s: stored %v, want %v", what, stored, c.Stored)
	case !reflect.DeepEqual(reflecttest.Elem(returned), c.Value):
		t.Errorf("%s: insert returned %v", what, text(reflecttest.Elem(returned)))
	}

	found := reflecttest.NewOf(c.Value)
	err = q(fmt.Sprintf(`delete from forms where %[1]q is not distinct from $1 returning %[1]q`, c.Column), c.Value).
		Scan(found)
	if err != nil || !reflect.DeepEqual(reflecttest.Elem(found), c.Value) {
		t.Errorf("%s: delete found %v, %v", what, text(reflecttest.Elem(found)), err)
	}
}

// text dereferences pointers, for messages.
func text(v any) any {
	for r := reflect.ValueOf(v); r.Kind() == reflect.Pointer && !r.IsNil(); r = r.Elem() {
		v = r.Elem().Interface()
	}
	return v
}

// put stores a literal, or null, and returns the row to scan it from.
func put(q Query, column, literal string) Row {
	return q(fmt.Sprintf(`insert into forms (%[1]q) values (%[2]s) returning %[1]q`, column, literal))
}

// checkRefused scans values that aren't IDs. The error must wrap the sentinel, through
// any wrapping by the driver, and the destination must stay unchanged.
func (k Kind[T]) checkRefused(t *testing.T, q Query) {
	before := k.Edges[1]
	for stored, want := range k.Refused {
		literal := "'" + stored + "'"
		keeps(t, q, k.Column, literal, before, want)
		keeps(t, q, k.Column, literal, sqltypes.OptionalOf(before), want)
		fails(t, q, k.Column, literal, new(sql.Null[T]), want)
		fails(t, q, k.Column, literal, new(*T), want)
	}
	for _, literal := range []string{"''", "'no ID'"} {
		keeps(t, q, "text", literal, sqltypes.TextOf(before), idtype.ErrSyntax)
	}
}

// checkNull scans NULL into types that can't hold it.
func (k Kind[T]) checkNull(t *testing.T, q Query) {
	before := k.Edges[1]
	keeps(t, q, k.Column, "null", before, idtype.ErrNull)
	keeps(t, q, "text", "null", sqltypes.TextOf(before), idtype.ErrNull)
	if sno, ok := any(before).(idtype.Sno); ok {
		keeps(t, q, "bytea", "null", sqltypes.SnoBytesOf(sno), idtype.ErrNull)
	}
}

// keeps is fails for a destination that must stay unchanged.
func keeps[D any](t *testing.T, q Query, column, literal string, before D, want error) {
	t.Helper()
	dest := before
	fails(t, q, column, literal, &dest, want)
	if !reflect.DeepEqual(dest, before) {
		t.Errorf("%s into %T: got %v, want no change", literal, dest, dest)
	}
}

// fails checks that scanning a literal fails with want.
func fails(t *testing.T, q Query, column, literal string, dest any, want error) {
	t.Helper()
	if err := put(q, column, literal).Scan(dest); !errors.Is(err, want) {
		t.Errorf("%s into %T: got %v, want %v", literal, dest, err, want)
	}
}
