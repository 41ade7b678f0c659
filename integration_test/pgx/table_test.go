package pgx

import (
	"errors"
	"reflect"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// Each type goes into its column and back, in all modes, whatever holds it.
func TestValues(t *testing.T) {
	pgtest.Each(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, idtest.CreateTable())
		pgtest.EachMode(t, func(t *testing.T, mode pgx.QueryExecMode) {
			conn := db.Conn(t, pgtest.Codec, pgtest.Mode(mode))
			idtest.Check(t, func(sql string, args ...any) idtest.Row { return conn.QueryRow(t.Context(), sql, args...) }, idtest.Postgres)
		})
	})
}

// Slices are arrays, in all modes.
func TestArrays(t *testing.T) {
	pgtest.Each(t, func(t *testing.T, db *pgtest.DB) {
		pgtest.EachMode(t, func(t *testing.T, mode pgx.QueryExecMode) {
			eachType(t, db, suite.arrays, pgtest.Mode(mode))
		})
	})
}

func (k of[T]) arrays(t *testing.T, conn *pgx.Conn) {
	ctx, r := t.Context(), idtest.Rand(t.Name())
	table := "create temporary table " + k.Name + " (n serial, id " + k.Column + ", ids " + k.Column + "[])"
	if _, err := conn.Exec(ctx, table); err != nil {
		t.Fatal(err)
	}

	ids := append([]T{}, k.Edges...)
	for range 100 {
		ids = append(ids, k.Random(r))
	}
	pointers := []*T{&ids[1], nil, &ids[2], nil}
	stored := func(ids []T) []string {
		texts := []string{}
		for _, id := range ids {
			texts = append(texts, k.Stored(id))
		}
		return texts
	}

	// Into an array and back. What the server shows is what was meant.
	store := func(in, out any, texts any, wantTexts any) {
		t.Helper()
		err := conn.QueryRow(ctx, "insert into "+k.Name+" (ids) values ($1) returning ids, ids::text[]", in).Scan(out, texts)
		if err != nil {
			t.Errorf("%T: %v", in, err)
			return
		}
		if got := reflect.ValueOf(out).Elem().Interface(); !reflect.DeepEqual(got, in) {
			t.Errorf("%T: got %v, want %v", in, got, in)
		}
		if got := reflect.ValueOf(texts).Elem().Interface(); !reflect.DeepEqual(got, wantTexts) {
			t.Errorf("%T: the server has %v, want %v", in, got, wantTexts)
		}
	}
	store(ids, new([]T), new([]string), stored(ids))
	store([]T{}, new([]T), new([]string), []string{})
	store([]T(nil), new([]T), new([]string), []string(nil))
	one, two := k.Stored(ids[1]), k.Stored(ids[2])
	store(pointers, new([]*T), new([]*string), []*string{&one, nil, &two, nil})
	store([]*T{}, new([]*T), new([]*string), []*string{})
	store([]*T(nil), new([]*T), new([]*string), []*string(nil))

	// NULL has no place in a []T.
	out := []T{ids[3]}
	err := conn.QueryRow(ctx, "insert into "+k.Name+" (ids) values ($1) returning ids", pointers).Scan(&out)
	if !errors.Is(err, idtype.ErrNull) || len(out) != 1 || out[0] != ids[3] {
		t.Errorf("an array with NULL into %T: got %v, %v, want %v and no change", out, out, err, idtype.ErrNull)
	}

	// As the argument of unnest and of any.
	if _, err := conn.Exec(ctx, "insert into "+k.Name+" (id) select unnest($1::"+k.Column+"[])", ids); err != nil {
		t.Fatal(err)
	}
	rows, _ := conn.Query(ctx, "select id from "+k.Name+" where id is not null order by n")
	if got, err := pgx.CollectRows(rows, pgx.RowTo[T]); err != nil || !reflect.DeepEqual(got, ids) {
		t.Errorf("unnest: got %v, %v, want %v", got, err, ids)
	}
	for _, c := range []struct {
		arg  any
		want []T
	}{
		{ids[1:4], ids[1:4]},
		{[]*T{&ids[2], nil, &ids[3]}, ids[2:4]},
		{[]T{}, nil},
		{[]T(nil), nil},
		{&[]T{ids[0]}, ids[:1]},
	} {
		rows, _ := conn.Query(ctx, "select id from "+k.Name+" where id = any($1) order by n", c.arg)
		if got, err := pgx.CollectRows(rows, pgx.RowTo[T]); err != nil || len(got) != len(c.want) || len(got) > 0 && !reflect.DeepEqual(got, c.want) {
			t.Errorf("= any(%T): got %v, %v, want %v", c.arg, got, err, c.want)
		}
	}
}
