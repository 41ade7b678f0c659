package pgx

import (
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/sqltypes"
)

// The values of [idtest] round-trip, as with other drivers.
func TestValues(t *testing.T) {
	t.Parallel()
	filled.EachReused(t, func(t *testing.T, db *pgtest.DB) {
		pgtest.EachMode(t, func(t *testing.T, mode pgx.QueryExecMode) {
			conn := db.Conn(t, pgtest.Codec, pgtest.Mode(mode))
			idtest.Check(t, func(sql string, args ...any) idtest.Row { return conn.QueryRow(t.Context(), sql, args...) }, idtest.Postgres)
		})
	})
}

// TestTable tests each Go type in each of its column types and in domains over them,
// registered or not, in all modes: as a value, a pointer, NULL, a slice, a slice with
// NULL, and an empty slice.
func TestTable(t *testing.T) {
	pgtest.EachMode(t, func(t *testing.T, mode pgx.QueryExecMode) {
		t.Parallel()
		filled.OneReused(t, func(t *testing.T, db *pgtest.DB) {
			known, unknown := db.Conn(t, loaded, pgtest.Mode(mode)), db.Conn(t, unloaded, pgtest.Mode(mode))
			for _, domain := range domains {
				registered(t, known, true, domain)
				registered(t, unknown, false, domain)
			}
			for _, r := range rows() {
				t.Run(r.name(), func(t *testing.T) {
					r.check(t, known, r.column)
					r.check(t, known, domains[r.column])
					// Without the domain registered, pgx can't tell that the elements of its
					// array are padded.
					if pgtest.Thorough() && r.column != "char(40)" {
						r.check(t, unknown, domains[r.column])
					}
				})
			}
		})
	})
}

// A row is a Go type in one of its column types.
type row struct {
	holders
	column string // its base type
	ids    []any
	stored func(id any) string // the ID as text from the server
}

func rowOf[V sqltypes.ID](column string, ids []V, stored func(V) string) row {
	r := row{holdersOf[V](), column, nil, func(id any) string { return stored(id.(V)) }}
	for _, id := range ids {
		r.ids = append(r.ids, id)
	}
	return r
}

func (r row) name() string { return r.id.String() + " in " + r.column }

// A session is a table with a column of a row's type and a column of its array type.
type session struct {
	row
	*testing.T
	conn   *pgx.Conn
	table  string
	column string
	shown  string // an expression for the array's elements as text; NULL for an empty array
}

// open empties the table of a column type.
func (r row) open(t *testing.T, conn *pgx.Conn, column string) session {
	t.Helper()
	s := session{r, t, conn, tableOf(column), column, "(select array_agg(coalesce(x::text, '" + null + "') order by n) from unnest(ids) with ordinality u (x, n))"}
	if strings.HasPrefix(r.column, "char") {
		// Drop the padding of char(n).
		s.shown = strings.Replace(s.shown, "x::text", "rtrim(x::text)", 1)
	}
	s.exec("delete from {t}")
	return s
}

// sql replaces {t} in a statement with the session's table.
func (s session) sql(statement string) string {
	return strings.ReplaceAll(statement, "{t}", s.table)
}

func (s session) exec(sql string, args ...any) {
	s.Helper()
	if _, err := s.conn.Exec(s.Context(), s.sql(sql), args...); err != nil {
		s.Errorf("%s with %s: %v", sql, typesOf(args), err)
	}
}

// query scans one row. If that fails, it reports the types of the arguments.
func (s session) query(sql string, args []any, dst ...any) bool {
	s.Helper()
	err := s.conn.QueryRow(s.Context(), s.sql(sql), args...).Scan(dst...)
	if err != nil {
		s.Errorf("%s with %s into %s: %v", sql, typesOf(args), typesOf(dst), err)
	}
	return err == nil
}

// check tests all forms of the Go type in a column of the base type or of a domain over it.
func (r row) check(t *testing.T, conn *pgx.Conn, column string) {
	t.Helper()
	s := r.open(t, conn, column)
	first := s.two()[0]
	for _, id := range r.ids {
		s.scalars(id, id == first || isZero(id))
	}
	s.nulls()
	s.slices()
	s.search()
}

// scalars stores an ID as a value, or in all forms, and scans it into each form.
func (s session) scalars(id any, allForms bool) {
	values := s.forms(id)
	if !allForms {
		values = values[:1]
	}
	for _, in := range values {
		isNull := isZero(id) && strings.Contains(fmt.Sprintf("%T", in), "sqltypes.Optional[")
		want, pointer := sql.Null[string]{V: s.stored(id), Valid: true}, ptr(id)
		null, optional := fill(s.null, id, true), fill(s.optional, id)
		if isNull {
			want, pointer, null = sql.Null[string]{}, zero(reflect.TypeOf(pointer)), zero(s.null)
		}
		gotPointer, gotNull, gotOptional, got := newOf(pointer), newOf(null), newOf(optional), newOf(id)
		var shown sql.Null[string]
		statement, dst := "insert into {t} (id) values ($1) returning id, id, id, rtrim(id::text)", []any{gotPointer, gotNull, gotOptional, &shown}
		if !isNull { // a V can't hold NULL
			statement, dst = statement+", id", append(dst, got)
		}
		if !s.query(statement, []any{in}, dst...) {
			continue
		}
		if shown != want {
			s.Errorf("%T %v in %s: the server has %v, want %v", in, id, s.column, shown, want)
		}
		if !reflect.DeepEqual(elem(gotPointer), pointer) || elem(gotNull) != null || elem(gotOptional) != optional || !isNull && elem(got) != id {
			s.Errorf("%T %v through %s: %v, %v, %v, %v", in, id, s.column, elem(gotPointer), elem(gotNull), elem(gotOptional), elem(got))
		}
	}
}

// nulls stores NULL from all forms that can be NULL, and scans it.
func (s session) nulls() {
	id := s.ids[1]
	none, noNull, noOptional := zero(reflect.PointerTo(s.id)), zero(s.null), zero(s.optional)
	for _, in := range []any{nil, none, zero(reflect.PointerTo(reflect.TypeOf(none))), noNull, ptr(noNull), noOptional, ptr(noOptional), zero(reflect.PointerTo(s.optional))} {
		pointer, null, optional, isNull := ptr(ptr(id)), ptr(fill(s.null, id, true)), ptr(fill(s.optional, id)), false
		if !s.query("insert into {t} (id) values ($1) returning id, id, id, id is null", []any{in}, pointer, null, optional, &isNull) {
			continue
		}
		if elem(pointer) != none || elem(null) != noNull || elem(optional) != noOptional || !isNull {
			s.Errorf("%T as NULL in %s: %v, %v, %v, %v", in, s.column, elem(pointer), elem(null), elem(optional), isNull)
		}
	}
	v := ptr(id)
	err := s.conn.QueryRow(s.Context(), s.sql("insert into {t} (id) values (null) returning id")).Scan(v)
	if !errors.Is(err, idtype.ErrNull) || elem(v) != id || !strings.Contains(err.Error(), "(col: id)") {
		s.Errorf("NULL of %s into %T: %v, %v, want ErrNull, the column's name and no change", s.column, id, elem(v), err)
	}
}

// two returns two IDs that aren't zero, since an Optional stores zero as NULL.
func (r row) two() (ids []any) {
	for _, id := range r.ids {
		if !isZero(id) {
			ids = append(ids, id)
		}
	}
	return ids[:2:2]
}

// slices stores arrays and scans them.
func (s session) slices() {
	ids := s.two()
	first, second := ids[0], ids[1]
	one, two := s.stored(first), s.stored(second)
	pointers := s.pointers(ptr(first), nil, ptr(second), nil)
	var all []string
	for _, id := range s.ids {
		all = append(all, s.stored(id))
	}
	s.roundTrip(s.slice(s.ids...), all...)
	s.roundTrip(pointers, one, null, two, null)
	s.roundTrip(sliceOf(fill(s.null, first, true), nil, fill(s.null, second, true), nil), one, null, two, null)
	s.roundTrip(sliceOf(fill(s.optional, first), nil, fill(s.optional, second), nil), one, null, two, null)
	s.roundTrip(fill(s.array, s.ids...), all...)
	s.roundTrip(fill(s.optionals, fill(s.optional, first), nil), one, null)
	s.roundTrip(fill(s.array))
	s.roundTrip(zero(s.array))
	s.roundTrip(s.slice())
	s.roundTrip(s.pointers())
	s.roundTrip(zero(reflect.SliceOf(s.id)))
	s.roundTrip(zero(reflect.TypeOf(pointers)))
	s.roundTrip(s.pointers(nil, nil), null, null)

	// A []V can't hold NULL.
	before := ptr(s.slice(first))
	err := s.conn.QueryRow(s.Context(), s.sql("insert into {t} (ids) values ($1) returning ids"), pointers).Scan(before)
	if !errors.Is(err, idtype.ErrNull) || !reflect.DeepEqual(elem(before), s.slice(first)) {
		s.Errorf("%s[] with NULL into %T: %v, %v, want ErrNull and no change", s.column, elem(before), elem(before), err)
	}
}

// null stands for NULL among the texts of IDs.
const null = "<NULL>"

// roundTrip stores a slice and a pointer to it, and scans both results. It also checks the texts
// of the elements.
func (s session) roundTrip(value any, want ...string) {
	s.Helper()
	for _, in := range []any{value, ptr(value)} {
		var shown []string
		var isNull bool
		out := ptr(fill(reflect.TypeOf(value), nil)) // NULL must set it to nil
		if !s.query("insert into {t} (ids) values ($1) returning ids, ids is null, "+s.shown, []any{in}, out, &isNull, &shown) {
			continue
		}
		if !reflect.DeepEqual(elem(out), value) || isNull != reflect.ValueOf(value).IsNil() || !slices.Equal(shown, want) {
			s.Errorf("%T %v in %s[]: got %v, NULL: %v; the server has %v", in, value, s.column, elem(out), isNull, shown)
		}
	}
}

// search finds rows by ID, with the parameter in various places of a query.
func (s session) search() {
	s.exec("delete from {t}")
	s.exec("insert into {t} (id) select unnest($1::"+s.column+"[])", s.slice(s.ids...))
	s.exec("insert into {t} (id) values (null)")

	second, some := s.ids[1], s.slice(s.ids[1:3]...)
	for _, c := range []struct {
		where string
		arg   any
		want  []any
	}{
		{"true or $1::" + s.column + " is null", s.ids[0], s.ids},
		{"id = $1", second, s.ids[1:2]},
		{"id = $1", ptr(second), s.ids[1:2]},
		{"id = $1", fill(s.optional, second), s.ids[1:2]},
		{"id = $1", zero(reflect.PointerTo(s.id)), nil},
		{"id = $1::" + s.column, s.ids[2], s.ids[2:3]},
		{"id is not distinct from $1 and id is not null", second, s.ids[1:2]},
		{"id in ($1, $1)", second, s.ids[1:2]},
		{"id = any($1)", some, s.ids[1:3]},
		{"id = any($1)", ptr(some), s.ids[1:3]},
		{"id = any($1)", fill(s.array, s.ids[1:3]...), s.ids[1:3]},
		{"id = any($1)", s.pointers(ptr(second), nil, ptr(s.ids[2])), s.ids[1:3]},
		{"id = any($1)", s.slice(), nil},
		{"id = any($1)", zero(reflect.SliceOf(s.id)), nil},
		{"id = any($1::" + s.column + "[])", some, s.ids[1:3]},
		{"id in (select unnest($1::" + s.column + "[]))", some, s.ids[1:3]},
		{"id <> all($1)", s.slice(s.ids[1:]...), s.ids[:1]},
	} {
		collects(s.T, s.conn, rowTo(s.id), append([]any{}, c.want...), s.sql("select id from {t} where id is not null and ("+c.where+") order by n"), c.arg)
	}

	s.exec("update {t} set id = $1 where id = $2", s.ids[2], second)
	returns(s.T, s.conn, 2, s.sql("select count(*) from {t} where id = $1"), s.ids[2])
	s.exec("delete from {t} where id = any($1)", s.slice(s.ids...))
	returns(s.T, s.conn, 1, s.sql("select count(*) from {t}")) // the one with NULL
}

// rowTo scans one column into a value of a type.
func rowTo(t reflect.Type) pgx.RowToFunc[any] {
	return func(row pgx.CollectableRow) (any, error) {
		dst := reflect.New(t)
		err := row.Scan(dst.Interface())
		return dst.Elem().Interface(), err
	}
}
