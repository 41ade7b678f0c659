package guide

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/examples/guide"
	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/docs"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// The SQL of docs/public-ids.md gives the rows of a table public IDs with their times, and the plugin
// gives new rows one.
func TestPublicIDs(t *testing.T) {
	t.Parallel()
	migrated.One(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, `CREATE TABLE accounts (id bigserial PRIMARY KEY, email text, created_at timestamptz NOT NULL DEFAULT now());
			INSERT INTO accounts (email, created_at) SELECT n::text, timestamptz '2024-05-06 07:08:09.123Z' + n * interval '1 day' FROM generate_series(1, 3) n`)
		ctx, conn := t.Context(), db.Conn(t)
		g := db.GORM(t, nil)
		must(t, g.Use(gormplugin.New(gormplugin.For(idtype.Must(idtype.NewUUIDGenerator(idtype.UUIDConfig{}))))))
		created := &guide.Account{Email: "new"}
		for _, p := range docs.SQL(t, "public-ids", "public-column", "public-backfill", "public-index") {
			for _, s := range p.Statements() {
				_, err := conn.Exec(ctx, s)
				must(t, err)
			}
			if p.Name == "public-column" {
				must(t, g.Create(created).Error)
			}
		}
		if n := pgtest.Value[int](t, conn, "SELECT count(*) FROM accounts WHERE sortkey.uuid7_time(public_id) = date_trunc('milliseconds', created_at)"); n < 3 {
			t.Errorf("want public IDs with the times of 3 rows, got %d", n)
		}
		if got := pgtest.Value[bool](t, conn, "SELECT attnotnull FROM pg_attribute WHERE attrelid = 'accounts'::regclass AND attname = 'public_id'"); !got {
			t.Error("want a column that is NOT NULL")
		}
		text, err := json.Marshal(created)
		if err != nil || !strings.HasPrefix(string(text), `{"id":"acct_0`) || strings.Contains(string(text), `"ID"`) {
			t.Errorf("got the JSON %s, %v", text, err)
		}
		found, err := guide.AccountOf(ctx, g, created.PublicID.String())
		if err != nil || *found != *created {
			t.Errorf("got %+v, %v, want %+v", found, err, created)
		}
		if _, err := guide.AccountOf(ctx, g, "17"); err == nil {
			t.Error("want an error for a number")
		}
	})
}
