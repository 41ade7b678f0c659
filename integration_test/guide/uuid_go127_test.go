//go:build go1.27

package guide

import (
	"testing"
	"uuid"

	"github.com/sortkey/sortkey/examples/guide"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/pgxcodec"
)

// The plugin fills keys of the standard library's type, which scan and convert from and to UUID in
// database/sql, in pgx, and in pgx with the codecs.
func TestStandardUUID(t *testing.T) {
	migrated.One(t, func(t *testing.T, db *pgtest.DB) {
		g := db.GORM(t, nil)
		plugin, err := guide.StandardKeys()
		must(t, err)
		must(t, g.Use(plugin))
		must(t, g.AutoMigrate(&guide.Receipt{}))
		set := guide.Receipt{ID: uuid.NewV4(), Amount: 1}
		made := []*guide.Receipt{{Amount: 2}, {Amount: 3}}
		must(t, g.Create(&set).Error)
		must(t, g.Create(made).Error)
		if id := idtype.UUID(made[0].ID); id.Version() != 7 || made[0].ID.Compare(made[1].ID) >= 0 {
			t.Errorf("expected UUIDs of version 7 in order, got %s and %s", made[0].ID, made[1].ID)
		}

		for _, r := range append(made, &set) {
			var read guide.Receipt
			must(t, g.First(&read, "id = ?", r.ID).Error)
			if read != *r {
				t.Errorf("GORM: expected %v, got %v", *r, read)
			}
			var standard uuid.UUID
			var ours idtype.UUID
			must(t, db.SQL(t).QueryRowContext(t.Context(), "SELECT id, id FROM receipts WHERE id = $1", r.ID).Scan(&standard, &ours))
			if standard != r.ID || uuid.UUID(ours) != r.ID {
				t.Errorf("database/sql: expected %s, got %s and %s", r.ID, standard, ours)
			}
			for _, codecs := range []bool{false, true} {
				conn := db.Conn(t)
				if codecs {
					must(t, pgxcodec.AfterConnect(t.Context(), conn))
				}
				var list []uuid.UUID
				must(t, conn.QueryRow(t.Context(), "SELECT id, id, array[id] FROM receipts WHERE id = $1", r.ID).Scan(&standard, &ours, &list))
				if standard != r.ID || uuid.UUID(ours) != r.ID || list[0] != r.ID {
					t.Errorf("pgx, codecs: %t: expected %s, got %s, %s and %s", codecs, r.ID, standard, ours, list)
				}
			}
		}
	})
}
