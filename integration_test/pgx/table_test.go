package pgx

import (
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/sqltypes"
)

// The values of [idtest] round-trip, as with other drivers.
func TestValues(t *testing.T) {
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, idtest.CreateTable())
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
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		createDomains(t, db)
		pgtest.EachMode(t, func(t *testing.T, mode pgx.QueryExecMode) {
			if mode == pgx.QueryExecModeCacheDescribe || mode == pgx.QueryExecModeDescribeExec {
				pgtest.ThoroughOnly(t) // for the codec, these modes are like cache_statement
			}
			t.Parallel()
			known, unknown := db.Conn(t, loaded, pgtest.Mode(mode)), db.Conn(t, unloaded, pgtest.Mode(mode))
			for _, domain := range domains {
				registered(t, known, true, domain)
				registered(t, unknown, false, domain)
			}
			for _, r := range rows() {
				t.Run(r.name(), func(t *testing.T) {
					r.check(t, known, r.columnType())
					r.check(t, known, domains[r.columnType()])
					// Without the domain registered, pgx can't tell that the elements of its
					// array are padded.
					if r.columnType() != "char(40)" {
						r.check(t, unknown, domains[r.columnType()])
					}
				})
			}
		})
	})
}

// A row is a Go type in one of its column types.
type row interface {
	name() string
	columnType() string
	// check tests all forms of the Go type in a column of the base type or of a
	// domain over it.
	check(t *testing.T, conn *pgx.Conn, column string)
	// copies does the same for COPY.
	copies(t *testing.T, conn *pgx.Conn, column string)
	// copyAllocations returns the number of allocations of a COPY of n rows.
	copyAllocations(t *testing.T, conn *pgx.Conn, n int) float64
	// json reads the Go type from JSON that the server makes of the column.
	json(t *testing.T, conn *pgx.Conn)
}

// An entry is the Go type V in a column.
type entry[V sqltypes.ID] struct {
	column string // its base type
	ids    []V
	stored func(V) string // the ID as text from the server
}

func (e entry[V]) name() string       { return fmt.Sprintf("%T in %s", *new(V), e.column) }
func (e entry[V]) columnType() string { return e.column }

// A session is a table with a column of an entry's type and a column of its array type.
type session[V sqltypes.ID] struct {
	entry[V]
	*testing.T
	conn   *pgx.Conn
	table  string
	column string
	shown  string // an expression for the array's elements as text; NULL for an empty array
}

// tables numbers the tables, because a statement prepared for a table doesn't fit
// another table of the same name.
var tables atomic.Int64

func (e entry[V]) open(t *testing.T, conn *pgx.Conn, column string) session[V] {
	t.Helper()
	s := session[V]{e, t, conn, fmt.Sprintf("t%d", tables.Add(1)), column, "(select array_agg(coalesce(x::text, '" + null + "') order by n) from unnest(ids) with ordinality u (x, n))"}
	if strings.HasPrefix(e.column, "char") {
		// Drop the padding of char(n).
		s.shown = strings.Replace(s.shown, "x::text", "rtrim(x::text)", 1)
	}
	s.exec("create temporary table {t} (n serial, id " + column + ", ids " + column + "[])")
	return s
}

// sql replaces {t} in a statement with the session's table.
func (s session[V]) sql(statement string) string {
	return strings.ReplaceAll(statement, "{t}", s.table)
}

func (s session[V]) exec(sql string, args ...any) {
	s.Helper()
	if _, err := s.conn.Exec(s.Context(), s.sql(sql), args...); err != nil {
		s.Errorf("%s with %s: %v", sql, typesOf(args), err)
	}
}

// query scans one row. If that fails, it reports the types of the arguments.
func (s session[V]) query(sql string, args []any, dst ...any) bool {
	s.Helper()
	err := s.conn.QueryRow(s.Context(), s.sql(sql), args...).Scan(dst...)
	if err != nil {
		s.Errorf("%s with %s into %s: %v", sql, typesOf(args), typesOf(dst), err)
	}
	return err == nil
}

func (e entry[V]) check(t *testing.T, conn *pgx.Conn, column string) {
	t.Helper()
	s := e.open(t, conn, column)
	first := s.two()[0]
	for _, id := range e.ids {
		s.scalars(id, id == first || id.IsZero())
	}
	s.nulls()
	s.slices()
	s.search()
}

// scalars stores an ID as a value, or in all forms, and scans it into each form.
func (s session[V]) scalars(id V, allForms bool) {
	values := forms(id)
	if !allForms {
		values = values[:1]
	}
	for _, in := range values {
		isNull := false
		switch in.(type) {
		case sqltypes.Optional[V], *sqltypes.Optional[V]:
			isNull = id.IsZero()
		}
		var v V
		var pointer *V
		var null sql.Null[V]
		var optional sqltypes.Optional[V]
		var shown sql.Null[string]
		statement, dst := "insert into {t} (id) values ($1) returning id, id, id, rtrim(id::text)", []any{&pointer, &null, &optional, &shown}
		if !isNull { // a V can't hold NULL
			statement, dst = statement+", id", append(dst, &v)
		}
		if !s.query(statement, []any{in}, dst...) {
			continue
		}
		want := sql.Null[string]{V: s.stored(id), Valid: true}
		if isNull {
			want = sql.Null[string]{}
		}
		if shown != want {
			s.Errorf("%T %v in %s: the server has %v, want %v", in, id, s.column, shown, want)
		}
		if isNull != (pointer == nil) || pointer != nil && *pointer != id || null != (sql.Null[V]{V: id, Valid: !isNull}) || optional.ID != id || !isNull && v != id {
			s.Errorf("%T %v through %s: %v, %v, %v, %v", in, id, s.column, pointer, null, optional, v)
		}
	}
}

// nulls stores NULL from all forms that can be NULL, and scans it.
func (s session[V]) nulls() {
	id := s.ids[1]
	for _, in := range []any{nil, (*V)(nil), (**V)(nil), sql.Null[V]{}, &sql.Null[V]{}, sqltypes.Optional[V]{}, &sqltypes.Optional[V]{}, (*sqltypes.Optional[V])(nil)} {
		pointer, null, optional, isNull := &id, sql.Null[V]{V: id, Valid: true}, sqltypes.OptionalOf(id), false
		if !s.query("insert into {t} (id) values ($1) returning id, id, id, id is null", []any{in}, &pointer, &null, &optional, &isNull) {
			continue
		}
		if pointer != nil || null != (sql.Null[V]{}) || !optional.IsZero() || !isNull {
			s.Errorf("%T as NULL in %s: %v, %v, %v, %v", in, s.column, pointer, null, optional, isNull)
		}
	}
	v := id
	err := s.conn.QueryRow(s.Context(), s.sql("insert into {t} (id) values (null) returning id")).Scan(&v)
	if !errors.Is(err, idtype.ErrNull) || v != id || !strings.Contains(err.Error(), "(col: id)") {
		s.Errorf("NULL of %s into %T: %v, %v, want ErrNull, the column's name and no change", s.column, v, v, err)
	}
}

// two returns two IDs that aren't zero, since an Optional stores zero as NULL.
func (s session[V]) two() (ids []V) {
	for _, id := range s.ids {
		if !id.IsZero() {
			ids = append(ids, id)
		}
	}
	return ids[:2:2]
}

// slices stores arrays and scans them.
func (s session[V]) slices() {
	ids := s.two()
	one, two := s.stored(ids[0]), s.stored(ids[1])
	pointers := []*V{&ids[0], nil, &ids[1], nil}
	var all []string
	for _, id := range s.ids {
		all = append(all, s.stored(id))
	}
	roundTrip(s, s.ids, all...)
	roundTrip(s, pointers, one, null, two, null)
	roundTrip(s, []sql.Null[V]{{V: ids[0], Valid: true}, {}, {V: ids[1], Valid: true}, {}}, one, null, two, null)
	roundTrip(s, []sqltypes.Optional[V]{{ID: ids[0]}, {}, {ID: ids[1]}, {}}, one, null, two, null)
	roundTrip(s, sqltypes.ArrayOf(s.ids), all...)
	roundTrip(s, sqltypes.Array[sqltypes.Optional[V]]{{ID: ids[0]}, {}}, one, null)
	roundTrip(s, sqltypes.Array[V]{})
	roundTrip(s, sqltypes.Array[V](nil))
	roundTrip(s, []V{})
	roundTrip(s, []*V{})
	roundTrip(s, []V(nil))
	roundTrip(s, []*V(nil))
	roundTrip(s, []*V{nil, nil}, null, null)

	// A []V can't hold NULL.
	before := []V{ids[0]}
	err := s.conn.QueryRow(s.Context(), s.sql("insert into {t} (ids) values ($1) returning ids"), pointers).Scan(&before)
	if !errors.Is(err, idtype.ErrNull) || len(before) != 1 || before[0] != ids[0] {
		s.Errorf("%s[] with NULL into %T: %v, %v, want ErrNull and no change", s.column, before, before, err)
	}
}

// null stands for NULL among the texts of IDs.
const null = "<NULL>"

// roundTrip stores a slice and a pointer to it, and scans both results. It also checks the texts
// of the elements.
func roundTrip[V sqltypes.ID, E any](s session[V], in []E, want ...string) {
	s.Helper()
	for _, in := range []any{in, &in} {
		var shown []string
		var isNull bool
		out := make([]E, 1) // NULL must set it to nil
		if !s.query("insert into {t} (ids) values ($1) returning ids, ids is null, "+s.shown, []any{in}, &out, &isNull, &shown) {
			continue
		}
		value := reflect.Indirect(reflect.ValueOf(in)).Interface()
		if !reflect.DeepEqual(any(out), value) || isNull != (out == nil) || !slices.Equal(shown, want) {
			s.Errorf("%T %v in %s[]: got %v, NULL: %v; the server has %v", in, value, s.column, out, isNull, shown)
		}
	}
}

// search finds rows by ID, with the parameter in various places of a query.
func (s session[V]) search() {
	s.exec("truncate {t}")
	s.exec("insert into {t} (id) select unnest($1::"+s.column+"[])", s.ids)
	s.exec("insert into {t} (id) values (null)")

	some := s.ids[1:3]
	var none *V
	for _, c := range []struct {
		where string
		arg   any
		want  []V
	}{
		{"true or $1::" + s.column + " is null", s.ids[0], s.ids},
		{"id = $1", s.ids[1], s.ids[1:2]},
		{"id = $1", &s.ids[1], s.ids[1:2]},
		{"id = $1", sqltypes.OptionalOf(s.ids[1]), s.ids[1:2]},
		{"id = $1", none, nil},
		{"id = $1::" + s.column, s.ids[2], s.ids[2:3]},
		{"id is not distinct from $1 and id is not null", s.ids[1], s.ids[1:2]},
		{"id in ($1, $1)", s.ids[1], s.ids[1:2]},
		{"id = any($1)", some, some},
		{"id = any($1)", &some, some},
		{"id = any($1)", sqltypes.ArrayOf(some), some},
		{"id = any($1)", []*V{&some[0], nil, &some[1]}, some},
		{"id = any($1)", []V{}, nil},
		{"id = any($1)", []V(nil), nil},
		{"id = any($1::" + s.column + "[])", some, some},
		{"id in (select unnest($1::" + s.column + "[]))", some, some},
		{"id <> all($1)", s.ids[1:], s.ids[:1]},
	} {
		collects(s.T, s.conn, pgx.RowTo, append([]V{}, c.want...), s.sql("select id from {t} where id is not null and ("+c.where+") order by n"), c.arg)
	}

	s.exec("update {t} set id = $1 where id = $2", s.ids[2], s.ids[1])
	returns(s.T, s.conn, 2, s.sql("select count(*) from {t} where id = $1"), s.ids[2])
	s.exec("delete from {t} where id = any($1)", s.ids)
	returns(s.T, s.conn, 1, s.sql("select count(*) from {t}")) // the one with NULL
}
