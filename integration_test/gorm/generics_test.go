package gorm

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// gorm.G creates rows with IDs.
func (k of[T, N]) genericCreate(t *testing.T, g *gorm.DB) {
	ctx, preset := t.Context(), k.ids(t, 3)
	things := gorm.G[thing[T]](g)

	one, kept := thing[T]{Name: "one"}, thing[T]{Name: "set", ID: preset[0]}
	must(t, things.Create(ctx, &one))
	must(t, things.Create(ctx, &kept))
	result := gorm.WithResult()
	counted := thing[T]{Name: "counted"}
	must(t, gorm.G[thing[T]](g, result).Create(ctx, &counted))
	if result.RowsAffected != 1 {
		t.Errorf("WithResult: got %d rows, want 1", result.RowsAffected)
	}
	// Without the plugin, GORM would omit the key from the INSERT.
	selected, omitted := thing[T]{Name: "selected"}, thing[T]{}
	must(t, things.Select("Name").Create(ctx, &selected))
	must(t, things.Omit("Name").Create(ctx, &omitted))
	batch := []thing[T]{{Name: "batch 0"}, {Name: "batch 1", ID: preset[1]}, {Name: "batch 2"}, {Name: "batch 3"}, {Name: "batch 4"}}
	must(t, things.CreateInBatches(ctx, &batch, 2))
	if kept.ID != preset[0] || batch[1].ID != preset[1] {
		t.Errorf("IDs that were set became %v and %v", kept.ID, batch[1].ID)
	}
	var inside thing[T]
	must(t, g.Transaction(func(tx *gorm.DB) error {
		inside.Name = "inside"
		return gorm.G[thing[T]](tx).Create(ctx, &inside)
	}))
	all := append([]thing[T]{one, kept, counted, selected, inside}, batch...)

	// GORM converts these to a map that it doesn't return.
	name := clause.Column{Name: "name"}
	for what, assigners := range map[string][]clause.Assigner{
		"Assignment":  {clause.Assignment{Column: name, Value: "Assignment"}},
		"Set":         {clause.Set{{Column: name, Value: "Set"}}},
		"Assignments": {clause.Assignments(map[string]any{"name": "Assignments"})},
		"with an ID":  {clause.Assignment{Column: clause.Column{Name: "id"}, Value: preset[2]}, clause.Assignment{Column: name, Value: "with an ID"}},
	} {
		must(t, things.Set(assigners...).Create(ctx))
		row, err := things.Where("name = ?", what).First(ctx)
		if err != nil || row.ID.IsZero() || what == "with an ID" && row.ID != preset[2] {
			t.Errorf("Set by %s: got %+v, %v", what, row, err)
		}
		all = append(all, row)
	}
	row, err := things.Where("name is null or name = ''").First(ctx)
	if err != nil || row.ID != omitted.ID || omitted.ID.IsZero() {
		t.Errorf("Omit: ID = %v in the struct, %v in the row, %v", omitted.ID, row.ID, err)
	}
	_, err = things.Where("id = ?", omitted.ID).Delete(ctx)
	must(t, err)
	k.agree(t, g, all)

	// Another table.
	archived := thing[T]{Name: "archived"}
	must(t, things.Table("archive").Create(ctx, &archived))
	must(t, gorm.G[thing[T]](g).Table("archive").Omit("Name").CreateInBatches(ctx, &[]thing[T]{{}, {}, {}}, 2))
	must(t, gorm.G[thing[T]](g).Table("archive").Set(clause.Assignment{Column: name, Value: "set"}).Create(ctx))
	rows, err := things.Table("archive").Find(ctx)
	must(t, err)
	ids := map[T]string{}
	for _, r := range rows {
		ids[r.ID] = r.Name
	}
	if _, zero := ids[*new(T)]; len(ids) != 5 || zero || ids[archived.ID] != "archived" {
		t.Errorf("archive: got rows %v, want 5 and %+v among them", rows, archived)
	}
	k.agree(t, g, all)
}

// After an upsert by gorm.G, the structs have the IDs of the rows.
func (k of[T, N]) genericUpsert(t *testing.T, g *gorm.DB) {
	ctx := t.Context()
	old := []contact[T]{newContact[T]("a", "old"), newContact[T]("bb", "old")}
	must(t, gorm.G[contact[T]](g).CreateInBatches(ctx, &old, 10))
	upsert := gorm.G[contact[T]](g, clause.OnConflict{Columns: byEmail, DoUpdates: updateName})
	one := newContact[T]("a", "new")
	must(t, upsert.Create(ctx, &one))
	batch := []contact[T]{newContact[T]("ccc", "new"), newContact[T]("bb", "new"), newContact[T]("dddd", "new"), newContact[T]("a", "new")}
	must(t, upsert.CreateInBatches(ctx, &batch, 3))
	selected := newContact[T]("bb", "selected")
	must(t, upsert.Select("email", "team", "desk", "name").Create(ctx, &selected))
	nothing := gorm.G[contact[T]](g, clause.OnConflict{DoNothing: true})
	skipped, inserted := newContact[T]("a", "skipped"), newContact[T]("eeeee", "inserted")
	must(t, nothing.Create(ctx, &skipped))
	must(t, nothing.Create(ctx, &inserted))

	ids, names := k.contacts(t, g)
	for _, c := range append(batch, one, selected, inserted) {
		if c.ID != ids[c.Email] || c.ID.IsZero() {
			t.Errorf("contact %s: ID = %v in the struct, %v in the row", c.Email, c.ID, ids[c.Email])
		}
	}
	if ids["a"] != old[0].ID || ids["bb"] != old[1].ID || names["a"] != "new" || names["bb"] != "selected" || !skipped.ID.IsZero() {
		t.Errorf("got %v, %v, and ID %v for the skipped row, want none", ids, names, skipped.ID)
	}
}

// gorm.G finds, changes and deletes rows by their IDs.
func (k of[T, N]) genericQuery(t *testing.T, g *gorm.DB) {
	ctx := t.Context()
	things := make([]thing[T], 7)
	for i := range things {
		things[i].Name = fmt.Sprint(i)
	}
	must(t, g.Create(&things).Error)
	must(t, g.Raw("select * from things order by id").Scan(&things).Error)
	a, b := things[2], things[4]

	q := gorm.G[thing[T]](g)
	for name, first := range map[string]func() (thing[T], error){
		"First":  func() (thing[T], error) { return q.Where("id = ?", a.ID).First(ctx) },
		"Take":   func() (thing[T], error) { return q.Where(&thing[T]{ID: a.ID}).Take(ctx) },
		"Last":   func() (thing[T], error) { return q.Where("id <= ?", a.ID).Last(ctx) },
		"map":    func() (thing[T], error) { return q.Where(map[string]any{"id": a.ID}).First(ctx) },
		"inline": func() (thing[T], error) { return q.Where(a.ID).First(ctx) },
		"Raw":    func() (thing[T], error) { return q.Raw("select * from things where id = ?", a.ID).First(ctx) },
	} {
		if got, err := first(); err != nil || got != a {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, a)
		}
	}
	for name, c := range map[string]struct {
		query gorm.ChainInterface[thing[T]]
		want  []thing[T]
	}{
		"IN":  {q.Where("id IN ?", []T{a.ID, b.ID}), []thing[T]{a, b}},
		"Not": {q.Not("id IN ?", []T{a.ID, b.ID}), append(slices.Clone(things[:2]), things[3], things[5], things[6])},
		"Or":  {q.Where("id = ?", a.ID).Or("id = ?", b.ID), []thing[T]{a, b}},
	} {
		got, err := c.query.Find(ctx)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, %v, want %v", name, got, err, c.want)
		}
	}
	var batches []thing[T]
	must(t, q.Where("id > ?", things[0].ID).FindInBatches(ctx, 2, func(data []thing[T], _ int) error {
		batches = append(batches, data...)
		return nil
	}))
	if !slices.Equal(batches, things[1:]) {
		t.Errorf("FindInBatches: got %v, want %v", batches, things[1:])
	}
	var ids []T
	must(t, q.Select("id").Order("id").Scan(ctx, &ids))
	if len(ids) != 7 || ids[0] != things[0].ID || ids[6] != things[6].ID {
		t.Errorf("Scan: got IDs %v of %v", ids, things)
	}

	// Updates and deletes affect only the matching rows.
	changed := func(what string, n int, err error) {
		t.Helper()
		if n != 1 || err != nil {
			t.Errorf("%s: %d rows, %v, want 1", what, n, err)
		}
	}
	n, err := q.Where("id = ?", a.ID).Update(ctx, "name", "a")
	changed("Update", n, err)
	n, err = q.Where(&thing[T]{ID: b.ID}).Updates(ctx, thing[T]{Name: "b"})
	changed("Updates", n, err)
	n, err = q.Where("id = ?", things[0].ID).Set(clause.Assignment{Column: clause.Column{Name: "name"}, Value: "set"}).Update(ctx)
	changed("Set", n, err)
	n, err = q.Where("id IN ?", []T{things[1].ID}).Delete(ctx)
	changed("Delete", n, err)
	must(t, q.Exec(ctx, "delete from things where id = ?", things[6].ID))
	things[2].Name, things[4].Name, things[0].Name = "a", "b", "set"
	k.agree(t, g, append([]thing[T]{things[0]}, things[2:6]...))

	// Associations.
	people := gorm.G[N](g)
	ada := k.newGraph()
	must(t, people.Create(ctx, ada))
	p := k.in(ada)
	found, err := people.Where("people.id = ?", p.ID).Joins(clause.LeftJoin.Association("Company"), nil).Joins(clause.LeftJoin.Association("Manager"), nil).
		Preload("Orders", func(q gorm.PreloadBuilder) error { q.Order("item"); return nil }).Preload("Orders.Pictures", nil).
		Preload("Tags", nil).Preload("Clubs", nil).Preload("Passport", nil).First(ctx)
	must(t, err)
	f := k.in(&found)
	if f.ID != p.ID || f.Company == nil || f.Company.ID != p.Company.ID || f.Manager == nil || k.in(f.Manager).ID != k.in(p.Manager).ID ||
		len(f.Orders) != 2 || !reflect.DeepEqual(f.Orders[1], p.Orders[0]) || len(f.Tags) != 2 || len(f.Clubs) != 1 || f.Passport == nil || *f.Passport != *p.Passport {
		t.Errorf("got %+v, want the IDs of %+v", f, p)
	}
	item := clause.Assignment{Column: clause.Column{Name: "item"}, Value: "assigned"}
	_, err = people.Where("id = ?", p.ID).Set(
		clause.Association{Association: "Orders", Type: clause.OpCreate, Set: []clause.Assignment{item}},
		clause.Association{Association: "Orders", Type: clause.OpCreate, Values: []any{&order[T]{Item: "value"}}},
		clause.Association{Association: "Clubs", Type: clause.OpCreate, Values: []any{&club[T]{Name: "value"}}},
	).Update(ctx)
	must(t, err)
	orders, err := gorm.G[order[T]](g).Where("person_id = ? and item in ?", p.ID, []string{"assigned", "value"}).Find(ctx)
	if err != nil || len(orders) != 2 || orders[0].ID.IsZero() || orders[1].ID.IsZero() || orders[0].ID == orders[1].ID {
		t.Errorf("got orders %+v, %v, want two with IDs", orders, err)
	}
	k.memberships(t, g, p.ID, 2)
}
