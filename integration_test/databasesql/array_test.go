package databasesql

import (
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/sqltypes"
)

const arrayDDL = `create schema sortkey; create domain sortkey.number as bigint;
	create table baskets (bigints bigint[], uuids uuid[], texts text[], domains sortkey.number[])`

// A sqltypes.Array is stored in an array column, and read back, by all drivers.
func TestArrays(t *testing.T) {
	t.Parallel()
	filled.OneReused(t, func(t *testing.T, db *pgtest.DB) {
		t.Run("pq", func(t *testing.T) { arrays(t, open(t, "postgres", db.URL)) })
		for name, option := range options {
			pgtest.EachMode(t, func(t *testing.T, mode pgx.QueryExecMode) {
				t.Run(name, func(t *testing.T) { arrays(t, db.SQL(t, option, pgtest.Mode(mode))) })
			})
		}
	})
}

func arrays(t *testing.T, db *sql.DB) {
	order, customer := idtype.SnowflakeOf[idtest.Order](7), idtype.SnoOf[idtest.Customer]{5: 'c', 9: 1}
	ids := sqltypes.Array[idtype.Snowflake]{779300444248735744, 7}
	array(t, db, "bigints", ids)
	array(t, db, "bigints", sqltypes.Array[idtype.Spread64]{idtype.Must(idtype.ParseSpread64("cb54ecf2840a0015"))})
	array(t, db, "bigints", sqltypes.Array[idtype.SnowflakeOf[idtest.Order]]{order})
	array(t, db, "bigints", sqltypes.Array[sqltypes.Optional[idtype.Snowflake]]{{}, {ID: 7}})
	array(t, db, "uuids", sqltypes.Array[idtype.Sno]{{9: 1}, {}})
	array(t, db, "uuids", sqltypes.Array[idtype.SnoOf[idtest.Customer]]{customer})
	array(t, db, "texts", sqltypes.Array[sqltypes.Text[idtype.UID60]]{sqltypes.TextOf(idtype.Must(idtype.ParseUID60("NULL")))})
	array(t, db, "domains", ids)

	for literal, want := range map[string]error{"{{1},{2}}": idtype.ErrSyntax, "{1,NULL}": idtype.ErrNull, "{-1}": idtype.ErrRange} {
		got := slices.Clone(ids)
		err := db.QueryRow("select '" + literal + "'::bigint[]").Scan(&got)
		if !errors.Is(err, want) || !slices.Equal(got, ids) {
			t.Errorf("%s: got %v, %v, want %v and no change", literal, got, err, want)
		}
	}
}

func array[T sqltypes.ID](t *testing.T, db *sql.DB, column string, ids sqltypes.Array[T]) {
	t.Helper()
	for _, want := range []sqltypes.Array[T]{ids, {}, nil} {
		got := sqltypes.Array[T]{ids[0]}
		insert := fmt.Sprintf("insert into baskets (%s) values ($1) returning %[1]s", column)
		if err := db.QueryRow(insert, want).Scan(&got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%T in %s: got %v, %v, want %v", want, column, got, err, want)
		}
	}
	var n int
	query := fmt.Sprintf("select count(*) from baskets where %s = $1 and %[1]s[cardinality(%[1]s)] = any ($1)", column)
	if err := db.QueryRow(query, ids).Scan(&n); err != nil || n == 0 {
		t.Errorf("%T in %s as a parameter: %d rows, %v", ids, column, n, err)
	}
}
