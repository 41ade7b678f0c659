package gorm

import (
	"errors"
	"slices"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// A softly deleted row keeps its ID. Queries by ID don't find it. It can be restored.
func (k of[T, N]) softDelete(t *testing.T, g *gorm.DB) {
	ada := sender[T]{Name: "Ada", Letters: []letter[T]{{Code: "a"}, {Code: "b"}, {Code: "c"}, {Code: "d"}, {Code: "e"}, {Code: "f"}}}
	must(t, g.Create(&ada).Error)
	var ids []T
	for _, l := range ada.Letters {
		ids = append(ids, l.ID)
	}
	// rows returns the codes in the table, without GORM's condition for soft deletion.
	rows := func(where string) (codes []string) {
		must(t, g.Raw("select code from letters where "+where+" order by code").Scan(&codes).Error)
		return codes
	}
	state := func(what string, live, deleted []string) {
		t.Helper()
		if got := rows("deleted_at is null"); !slices.Equal(got, live) {
			t.Errorf("%s: not deleted: got %v, want %v", what, got, live)
		}
		if got := rows("deleted_at is not null"); !slices.Equal(got, deleted) {
			t.Errorf("%s: deleted: got %v, want %v", what, got, deleted)
		}
	}

	// Ways to delete.
	a := &ada.Letters[0]
	if tx := g.Delete(a); tx.Error != nil || tx.RowsAffected != 1 || !a.DeletedAt.Valid || a.ID != ids[0] {
		t.Errorf("Delete of a struct: %d rows, %v, %+v", tx.RowsAffected, tx.Error, a)
	}
	must(t, g.Delete(&letter[T]{}, ids[1]).Error)
	must(t, g.Where("id IN ?", ids[2:3]).Delete(&letter[T]{}).Error)
	state("Delete", []string{"d", "e", "f"}, []string{"a", "b", "c"})
	if n, err := gorm.G[letter[T]](g).Where("id = ?", ids[3]).Delete(t.Context()); err != nil || n != 1 {
		t.Errorf("G.Delete: %d rows, %v", n, err)
	}
	if tx := g.Delete(&letter[T]{}, ids[:5]); tx.Error != nil || tx.RowsAffected != 1 {
		t.Errorf("Delete of a list with deleted rows: %d rows, %v, want 1", tx.RowsAffected, tx.Error)
	}
	state("Delete by a slice", []string{"f"}, []string{"a", "b", "c", "d", "e"})

	// Queries.
	for name, q := range map[string]*gorm.DB{
		"all":       g,
		"slice":     g.Where(ids),
		"IN":        g.Where("id IN ?", ids),
		"or":        g.Where("id = ?", ids[0]).Or("id = ?", ids[5]).Or("id = ?", ids[1]),
		"struct":    g.Where(&letter[T]{SenderID: ada.ID}),
		"map":       g.Where(map[string]any{"id": ids}),
		"not":       g.Not("id = ?", ada.ID),
		"subquery":  g.Where("id IN (?)", g.Model(&letter[T]{}).Select("id")),
		"joined to": g.InnerJoins("Sender"),
	} {
		var found []letter[T]
		if err := q.Find(&found).Error; err != nil || len(found) != 1 || found[0].ID != ids[5] {
			t.Errorf("%s: got %+v, %v, want only f", name, found, err)
		}
	}
	if err := g.First(&letter[T]{}, ids[0]).Error; !errors.Is(err, gorm.ErrRecordNotFound) {
		t.Errorf("First of a deleted row: %v", err)
	}
	var count int64
	if err := g.Model(&letter[T]{}).Where("id IN ?", ids).Count(&count).Error; err != nil || count != 1 {
		t.Errorf("Count: got %d, %v, want 1", count, err)
	}
	if n := g.Model(&ada).Association("Letters").Count(); n != 1 {
		t.Errorf("Association: got %d, want 1", n)
	}
	for want, preload := range map[int]func(*gorm.DB) *gorm.DB{
		1: func(tx *gorm.DB) *gorm.DB { return tx },
		6: func(tx *gorm.DB) *gorm.DB { return tx.Unscoped() },
	} {
		var s sender[T]
		if err := g.Preload("Letters", preload).First(&s, ada.ID).Error; err != nil || len(s.Letters) != want {
			t.Errorf("Preload: got %d, %v, want %d", len(s.Letters), err, want)
		}
	}

	// The row still exists.
	var l letter[T]
	if err := g.Unscoped().First(&l, ids[1]).Error; err != nil || l.ID != ids[1] || l.Code != "b" || !l.DeletedAt.Valid || l.SenderID != ada.ID {
		t.Errorf("Unscoped: got %+v, %v", l, err)
	}
	again := letter[T]{ID: ids[1], Code: "again", SenderID: ada.ID}
	if err := g.Create(&again).Error; err == nil || again.ID != ids[1] {
		t.Errorf("Create with the ID of a deleted row: %v, %+v", err, again)
	}

	// An update restores the row, and so does Save of a struct that isn't deleted.
	must(t, g.Unscoped().Model(&l).Update("deleted_at", nil).Error)
	must(t, g.Unscoped().Model(&letter[T]{}).Where("id = ?", ids[2]).Update("deleted_at", gorm.DeletedAt{}).Error)
	saved := letter[T]{ID: ids[3], Code: "d", Kind: "saved", SenderID: ada.ID}
	must(t, g.Save(&saved).Error)
	state("restored", []string{"b", "c", "d", "f"}, []string{"a", "e"})
	var restored letter[T]
	if err := g.First(&restored, "id = ? and kind = ?", ids[3], "saved").Error; err != nil || restored.ID != ids[3] {
		t.Errorf("Save: got %+v, %v", restored, err)
	}

	// Unscoped deletes permanently.
	must(t, g.Unscoped().Delete(&letter[T]{}, ids[1:3]).Error)
	must(t, g.Unscoped().Delete(a).Error)
	state("Unscoped Delete", []string{"d", "f"}, []string{"e"})
	again = letter[T]{ID: ids[1], Code: "b", SenderID: ada.ID}
	must(t, g.Create(&again).Error)
	fresh := letter[T]{Code: "a", SenderID: ada.ID}
	must(t, g.Create(&fresh).Error)
	if again.ID != ids[1] || fresh.ID.IsZero() || slices.Contains(ids, fresh.ID) {
		t.Errorf("created again: got IDs %v and %v", again.ID, fresh.ID)
	}
	state("created again", []string{"a", "b", "d", "f"}, []string{"e"})

	// Joins don't find a deleted sender. Its letters stay.
	must(t, g.Delete(&ada).Error)
	l = letter[T]{}
	if err := g.Joins("Sender").First(&l, "letters.id = ?", ids[5]).Error; err != nil || l.Sender != nil || l.SenderID != ada.ID {
		t.Errorf("Joins with a deleted sender: got %+v, %v", l, err)
	}
	if err := g.InnerJoins("Sender").First(&l, "letters.id = ?", ids[5]).Error; !errors.Is(err, gorm.ErrRecordNotFound) {
		t.Errorf("InnerJoins with a deleted sender: %v", err)
	}
	l = letter[T]{}
	if err := g.Preload("Sender").First(&l, ids[5]).Error; err != nil || l.Sender != nil {
		t.Errorf("Preload of a deleted sender: got %+v, %v", l, err)
	}
}

// If an upsert conflicts with a softly deleted row, the struct gets the ID of that row.
func (k of[T, N]) upsertOfDeleted(t *testing.T, g *gorm.DB) {
	ada := sender[T]{Name: "Ada"}
	must(t, g.Create(&ada).Error)
	code := []clause.Column{{Name: "code"}}
	for name, c := range map[string]struct {
		conflict clause.OnConflict
		revived  bool
	}{
		"UpdateAll":                 {clause.OnConflict{Columns: code, UpdateAll: true}, true},
		"DoUpdates":                 {clause.OnConflict{Columns: code, DoUpdates: clause.AssignmentColumns([]string{"kind"})}, false},
		"DoUpdates with deleted_at": {clause.OnConflict{Columns: code, DoUpdates: clause.AssignmentColumns([]string{"kind", "deleted_at"})}, true},
	} {
		for _, batch := range []bool{false, true} {
			old := letter[T]{Code: "known", Kind: "old", SenderID: ada.ID}
			must(t, g.Create(&old).Error)
			must(t, g.Delete(&old).Error)
			letters := []letter[T]{{Code: "known", Kind: "new", SenderID: ada.ID}}
			if batch {
				letters = []letter[T]{{Code: "first", SenderID: ada.ID}, letters[0], {Code: "last", SenderID: ada.ID}}
				must(t, g.Clauses(c.conflict).Create(&letters).Error)
			} else {
				must(t, g.Clauses(c.conflict).Create(&letters[0]).Error)
			}
			if got := letters[len(letters)/2].ID; got != old.ID {
				t.Errorf("%s: ID = %v in the struct, %v in the row", name, got, old.ID)
			}
			for _, l := range letters {
				var row letter[T]
				must(t, g.Unscoped().First(&row, "code = ?", l.Code).Error)
				if row.ID != l.ID || l.ID.IsZero() || row.Kind != l.Kind || row.DeletedAt.Valid != (l.Code == "known" && !c.revived) {
					t.Errorf("%s: got row %+v for struct %+v", name, row, l)
				}
			}
			must(t, g.Exec("delete from letters").Error)
		}
	}

	// If the row isn't changed, the struct gets no ID.
	old := letter[T]{Code: "known", SenderID: ada.ID}
	must(t, g.Create(&old).Error)
	must(t, g.Delete(&old).Error)
	skipped := letter[T]{Code: "known", SenderID: ada.ID}
	if tx := g.Clauses(clause.OnConflict{DoNothing: true}).Create(&skipped); tx.Error != nil || tx.RowsAffected != 0 || !skipped.ID.IsZero() {
		t.Errorf("DoNothing: %d rows, %v, %+v", tx.RowsAffected, tx.Error, skipped)
	}
	// FirstOrCreate doesn't find the deleted row, and fails to create another one.
	created := letter[T]{}
	if err := g.FirstOrCreate(&created, letter[T]{Code: "known", SenderID: ada.ID}).Error; err == nil {
		t.Errorf("FirstOrCreate: got %+v, want the error of the unique key", created)
	}
	var n int64
	must(t, g.Unscoped().Model(&letter[T]{}).Count(&n).Error)
	if n != 1 {
		t.Errorf("got %d letters, want only the deleted one", n)
	}
}
