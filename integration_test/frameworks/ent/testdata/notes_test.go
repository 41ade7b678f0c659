package uses

import (
	"errors"
	"slices"
	"testing"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/frameworks/ent/forms"
	"github.com/sortkey/sortkey/integration_test/frameworks/ent/testdata/notes"
	"github.com/sortkey/sortkey/integration_test/frameworks/ent/testdata/notes/note"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

func TestNotes(t *testing.T) {
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		ctx := t.Context()
		c := notes.NewClient(notes.Driver(entsql.OpenDB(dialect.Postgres, db.SQL(t))))
		must(t, c.Schema.Create(ctx))
		full, err := c.Note.Create().SetParentID(7).SetNotNillable(8).SetNumbers([]idtype.Snowflake{9, 10}).SetOrders(forms.OrderIDs{11, 12}).Save(ctx)
		must(t, err)
		got, err := c.Note.Get(ctx, full.ID)
		if err != nil || got.ParentID == nil || *got.ParentID != 7 || !slices.Equal(got.Numbers, full.Numbers) || !slices.Equal(got.Orders, full.Orders) {
			t.Errorf("expected %v, got %v, %v", full, got, err)
		}
		var text string
		must(t, db.SQL(t).QueryRowContext(ctx, "SELECT numbers::text || orders FROM notes").Scan(&text))
		if want := `["9", "10"]["ord_11", "ord_12"]`; text != want {
			t.Errorf("expected %s, got %s", want, text)
		}
		// NULL without Nillable: ent stores the row, but can't read it.
		empty, err := c.Note.Create().Save(ctx)
		must(t, err)
		if _, err := c.Note.Get(ctx, empty.ID); !errors.Is(err, idtype.ErrNull) {
			t.Errorf("expected %v, got %v", idtype.ErrNull, err)
		}
		got, err = c.Note.Query().Where(note.ParentIDIsNil()).Select(note.FieldID, note.FieldParentID, note.FieldOrders).Only(ctx)
		if err != nil || got.ID != empty.ID || got.ParentID != nil || got.Orders != nil {
			t.Errorf("expected %v, got %v, %v", empty, got, err)
		}
	})
}
