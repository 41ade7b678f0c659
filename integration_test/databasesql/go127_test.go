//go:build go1.27

package databasesql

import (
	"database/sql"
	"reflect"
	"slices"
	"testing"
	"uuid"

	google "github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// Each UUID type is an argument and a result where the others are: Go's, google's, pgx's and
// ours.
func TestStandardUUID(t *testing.T) {
	t.Parallel()
	raw := [16]byte(idtype.Must(idtype.ParseUUID("019a3c5e-7b2d-7f00-8a1b-2c3d4e5f6071")))
	values := []any{
		uuid.UUID(raw), sql.Null[uuid.UUID]{V: raw, Valid: true}, google.UUID(raw), pgtype.UUID{Bytes: raw, Valid: true},
		idtype.UUID(raw), idtype.UUIDOf[idtest.Order](raw), sql.Null[idtype.UUID]{V: raw, Valid: true},
	}
	eachClient(t, func(t *testing.T, query func(sql string, args ...any) idtest.Row) {
		for _, argument := range values {
			for _, want := range values {
				result := reflect.New(reflect.TypeOf(want))
				if err := query("select $1::uuid", argument).Scan(result.Interface()); err != nil || result.Elem().Interface() != want {
					t.Errorf("%T as %T: got %v, %v", argument, want, result.Elem(), err)
				}
			}
		}
		var standard sql.Null[uuid.UUID]
		var ours sql.Null[idtype.UUID]
		if err := query("select null::uuid, null::uuid").Scan(&standard, &ours); err != nil || standard.Valid || ours.Valid {
			t.Errorf("NULL: got %v, %v, %v", standard, ours, err)
		}
	})
}

// Since Go 1.27, pgx scans the columns of database/sql into slices, of our types too.
func TestRowScanning(t *testing.T) {
	t.Parallel()
	sno := idtype.Must(idtype.ParseSno("2222222222222223"))
	eachClient(t, func(t *testing.T, query func(sql string, args ...any) idtest.Row) {
		var snowflakes []idtype.Snowflake
		var typed []idtype.SnowflakeOf[idtest.Order]
		var snos []*idtype.Sno
		var uuids []uuid.UUID
		err := query("select '{7,8}'::bigint[], '{7}'::bigint[], array[$1::uuid, null], array[$1::uuid]", sno).Scan(&snowflakes, &typed, &snos, &uuids)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(snowflakes, []idtype.Snowflake{7, 8}) || !slices.Equal(typed, []idtype.SnowflakeOf[idtest.Order]{7}) {
			t.Errorf("got %v, %v", snowflakes, typed)
		}
		if len(snos) != 2 || snos[0] == nil || *snos[0] != sno || snos[1] != nil || len(uuids) != 1 || uuids[0] != uuid.UUID(sno.UUID()) {
			t.Errorf("got %v, %v", snos, uuids)
		}
	})
}

// eachClient tests pgx and database/sql, with and without the codec, in all modes.
func eachClient(t *testing.T, f func(t *testing.T, query func(sql string, args ...any) idtest.Row)) {
	filled.OneReused(t, func(t *testing.T, db *pgtest.DB) {
		for name, option := range options {
			pgtest.EachMode(t, func(t *testing.T, mode pgx.QueryExecMode) {
				t.Run(name+", database/sql", func(t *testing.T) {
					pool := db.SQL(t, option, pgtest.Mode(mode))
					f(t, func(sql string, args ...any) idtest.Row { return pool.QueryRowContext(t.Context(), sql, args...) })
				})
				t.Run(name+", pgx", func(t *testing.T) {
					conn := db.Conn(t, option, pgtest.Mode(mode))
					f(t, func(sql string, args ...any) idtest.Row { return conn.QueryRow(t.Context(), sql, args...) })
				})
			})
		}
	})
}
