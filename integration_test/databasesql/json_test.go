package databasesql

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// One ID of a JSON document is read as a string, with and without the codec.
func TestPartOfJSON(t *testing.T) {
	t.Parallel()
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		for _, option := range []pgtest.Option{pgtest.Config(func(*pgx.ConnConfig) {}), pgtest.Codec} {
			pgtest.EachMode(t, func(t *testing.T, mode pgx.QueryExecMode) {
				var text string
				row := db.SQL(t, option, pgtest.Mode(mode)).QueryRow(`select '{"owner": "ord_7"}'::jsonb ->> 'owner'`)
				if err := row.Scan(&text); err != nil {
					t.Fatal(err)
				}
				if id, err := idtype.Parse[idtype.SnowflakeOf[idtest.Order]](text); err != nil || id != 7 {
					t.Errorf("%q: %v, %v", text, id, err)
				}
			})
		}
	})
}
