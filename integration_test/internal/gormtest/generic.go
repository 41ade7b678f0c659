package gormtest

import (
	"fmt"
	"slices"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/sortkey/sortkey/idtype"
)

// gorm.G creates, finds, changes and deletes rows by their IDs. The code doesn't depend on the ID
// type, and the compiler takes a second per model for gorm.G.
func (k *Kind) genericQuery(t *testing.T, g *DB) {
	type (
		thing = thingOf[idtype.Sno]
		order = orderOf[idtype.Sno]
		sno   = idtype.Sno
	)
	ctx := t.Context()
	things := make([]thing, 7)
	for i := range things {
		things[i].Name = fmt.Sprint(i)
	}
	must(t, g.Create(&things).Error)
	must(t, g.Raw("select * from things order by id").Scan(&things).Error)
	a, b := things[2], things[4]

	q := gorm.G[thing](g.real)
	for name, first := range map[string]func() (thing, error){
		"First":  func() (thing, error) { return q.Where("id = ?", a.ID).First(ctx) },
		"Take":   func() (thing, error) { return q.Where(&thing{ID: a.ID}).Take(ctx) },
		"Last":   func() (thing, error) { return q.Where("id <= ?", a.ID).Last(ctx) },
		"map":    func() (thing, error) { return q.Where(map[string]any{"id": a.ID}).First(ctx) },
		"inline": func() (thing, error) { return q.Where(a.ID).First(ctx) },
		"Raw":    func() (thing, error) { return q.Raw("select * from things where id = ?", a.ID).First(ctx) },
	} {
		got, err := first()
		must(t, err)
		equal(t, name, got, a)
	}
	for name, c := range map[string]struct {
		query gorm.ChainInterface[thing]
		want  []thing
	}{
		"IN":  {q.Where("id IN ?", []sno{a.ID, b.ID}), []thing{a, b}},
		"Not": {q.Not("id IN ?", []sno{a.ID, b.ID}), append(slices.Clone(things[:2]), things[3], things[5], things[6])},
		"Or":  {q.Where("id = ?", a.ID).Or("id = ?", b.ID), []thing{a, b}},
	} {
		got, err := c.query.Find(ctx)
		must(t, err)
		equal(t, name, got, c.want)
	}
	var batches []thing
	must(t, q.Where("id > ?", things[0].ID).FindInBatches(ctx, 2, func(data []thing, _ int) error {
		batches = append(batches, data...)
		return nil
	}))
	equal(t, "FindInBatches", batches, things[1:])
	var ids []sno
	must(t, q.Select("id").Order("id").Scan(ctx, &ids))
	plucks(t, "Scan", g.Model(&thing{}).Order("id"), "id", ids...)

	// Updates and deletes affect only the matching rows.
	for name, change := range map[string]func() (int, error){
		"Update":  func() (int, error) { return q.Where("id = ?", a.ID).Update(ctx, "name", "a") },
		"Updates": func() (int, error) { return q.Where(&thing{ID: b.ID}).Updates(ctx, thing{Name: "b"}) },
		"Set": func() (int, error) {
			return q.Where("id = ?", things[0].ID).Set(clause.Assignment{Column: clause.Column{Name: "name"}, Value: "set"}).Update(ctx)
		},
		"Delete": func() (int, error) { return q.Where("id IN ?", []sno{things[1].ID}).Delete(ctx) },
	} {
		n, err := change()
		must(t, err)
		equal(t, name, n, 1)
	}
	must(t, q.Exec(ctx, "delete from things where id = ?", things[6].ID))
	things[2].Name, things[4].Name, things[0].Name = "a", "b", "set"
	agree := func(want ...thing) {
		t.Helper()
		var withIDs []thingOf[ID]
		k.copy(&withIDs, want)
		k.agree(t, g, withIDs)
	}
	agree(append([]thing{things[0]}, things[2:6]...)...)

	// Create keeps IDs that are set.
	must(t, q.Exec(ctx, "delete from things"))
	set, result := k.ids(t, 2), gorm.WithResult()
	one, preset := thing{Name: "one"}, thing{Name: "set", ID: k.real(set[0]).(sno)}
	for _, row := range []*thing{&one, &preset} {
		must(t, gorm.G[thing](g.real, result).Create(ctx, row))
		equal(t, "rows of Create", result.RowsAffected, 1)
	}
	rows := []thing{{Name: "b"}, {Name: "c, set", ID: k.real(set[1]).(sno)}, {Name: "d"}}
	must(t, q.CreateInBatches(ctx, &rows, 2))
	equal(t, "IDs that were set", []sno{preset.ID, rows[1].ID}, []sno{k.real(set[0]).(sno), k.real(set[1]).(sno)})
	agree(append(rows, one, preset)...)

	// Associations.
	people := gorm.G[*snoPerson](g.real)
	ada := k.real(newGraph()).(*snoPerson)
	must(t, people.Create(ctx, &ada))
	p := ada
	found, err := people.Where("people.id = ?", p.ID).Joins(clause.LeftJoin.Association("Company"), nil).Joins(clause.LeftJoin.Association("Manager"), nil).
		Preload("Orders", func(q gorm.PreloadBuilder) error { q.Order("item desc"); return nil }).Preload("Orders.Pictures", nil).
		Preload("Tags", nil).Preload("Clubs", nil).Preload("Passport", nil).First(ctx)
	must(t, err)
	f := found
	p.Orders[1].Pictures = []pictureOf[sno]{} // as Preload sets it
	equal(t, "associations", []any{f.ID, f.Company, f.Manager.ID, f.Orders, len(f.Tags), f.Clubs, f.Passport},
		[]any{p.ID, p.Company, p.Manager.ID, p.Orders, 2, p.Clubs, p.Passport})
	item := clause.Assignment{Column: clause.Column{Name: "item"}, Value: "assigned"}
	_, err = people.Where("id = ?", p.ID).Set(
		clause.Association{Association: "Orders", Type: clause.OpCreate, Set: []clause.Assignment{item}},
		clause.Association{Association: "Orders", Type: clause.OpCreate, Values: []any{&order{Item: "value"}}},
		clause.Association{Association: "Clubs", Type: clause.OpCreate, Values: []any{&clubOf[sno]{Name: "value"}}},
	).Update(ctx)
	must(t, err)
	orders, err := gorm.G[order](g.real).Where("person_id = ? and item in ?", p.ID, []string{"assigned", "value"}).Find(ctx)
	if err != nil || len(orders) != 2 || orders[0].ID.IsZero() || orders[1].ID.IsZero() || orders[0].ID == orders[1].ID {
		t.Errorf("got orders %+v, %v, want two with IDs", orders, err)
	}
	k.memberships(t, g, ID{p.ID}, 2)
}
