package gormtest

import (
	"errors"
	"slices"
	"testing"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/sqltypes"
)

// Save creates rows without an ID or with an unknown ID, and updates the others.
func (k *Kind) save(t *testing.T, g *database) {
	preset := k.ids(t, 3)
	one, two, four, five := &thing{Name: "one"}, &thing{Name: "two"}, &thing{Name: "selected"}, &thing{Name: "no hooks"}
	must(t, g.Save(one).Error)
	must(t, g.Save(&two).Error)
	// Without the plugin, GORM would omit the key from the INSERT.
	must(t, g.Select("Name").Save(four).Error)
	must(t, g.Session(&gorm.Session{SkipHooks: true}).Save(five).Error)
	want := map[*thing]ID{one: one.ID, four: four.ID, five: five.ID} // the IDs that were set before
	one.Name, two.Name, four.Name, five.Name = "existing", "existing in a slice", "existing in pointers", "existing in pointers by value"
	must(t, g.Save(one).Error)

	values := []thing{{Name: "slice 0"}, *two, {Name: "slice, preset", ID: preset[0]}, {Name: "slice 3"}}
	must(t, g.Save(&values).Error)
	want[&values[1]], want[&values[2]] = two.ID, preset[0]
	values[0].Name = "slice 0, existing"
	byValue := []thing{values[0], {Name: "slice by value"}}
	must(t, g.Save(byValue).Error)
	want[&byValue[0]] = values[0].ID
	pointers := []*thing{four, {Name: "pointers 1"}, {Name: "pointers, preset", ID: preset[1]}, {Name: "pointers 3"}}
	must(t, g.Save(&pointers).Error)
	more := []*thing{{Name: "pointers by value"}, five, {Name: "pointers by value, preset", ID: preset[2]}}
	must(t, g.Save(more).Error)

	for row, id := range want {
		equal(t, row.Name+" keeps its ID", row.ID, id)
	}
	k.agree(t, g, []thing{*one, values[1], values[2], values[3], byValue[0], byValue[1], *four, *pointers[1], *pointers[2], *pointers[3], *more[0], *five, *more[2]})
}

// FirstOrCreate creates a missing row with an ID, and returns the ID of an existing row.
func (k *Kind) firstOrCreate(t *testing.T, g *database) {
	ids := k.ids(t, 3)
	var zero ID
	var all []thing
	where := func(name string) *database { return g.Where("name = ?", name) }
	for name, c := range map[string]struct {
		tx    func() *database // sessions don't copy Attrs and Assign
		conds []any
		id    ID // ID of the created row; zero means any
	}{
		"struct":              {func() *database { return g }, []any{thing{Name: "struct"}}, zero},
		"pointer":             {func() *database { return g }, []any{&thing{Name: "pointer"}}, zero},
		"map":                 {func() *database { return g }, []any{map[string]any{"name": "map"}}, zero},
		"Where":               {func() *database { return g.Where(thing{Name: "Where"}) }, nil, zero},
		"Attrs":               {func() *database { return where("Attrs").Attrs(thing{Name: "Attrs"}) }, nil, zero},
		"Attrs, map":          {func() *database { return where("Attrs, map").Attrs(map[string]any{"name": "Attrs, map"}) }, nil, zero},
		"Assign":              {func() *database { return where("Assign").Assign(thing{Name: "Assign"}) }, nil, zero},
		"no hooks":            {func() *database { return g.Session(&gorm.Session{SkipHooks: true}) }, []any{thing{Name: "no hooks"}}, zero},
		"an ID in the struct": {func() *database { return g.Attrs(thing{Name: "an ID in the struct"}) }, []any{thing{ID: ids[0]}}, ids[0]},
		"an ID in a map":      {func() *database { return g.Attrs("name", "an ID in a map") }, []any{map[string]any{"id": ids[1]}}, ids[1]},
		"an ID in Attrs":      {func() *database { return g.Attrs(thing{ID: ids[2]}) }, []any{thing{Name: "an ID in Attrs"}}, ids[2]},
	} {
		var none, miss, hit, init thing
		affects(t, name+": FirstOrInit", c.tx().FirstOrInit(&none, c.conds...), 0)
		equal(t, name+": FirstOrInit", none, thing{c.id, name})
		affects(t, name, c.tx().FirstOrCreate(&miss, c.conds...), 1)
		if !c.id.IsZero() {
			equal(t, name, miss.ID, c.id)
		}
		must(t, c.tx().FirstOrCreate(&hit, c.conds...).Error)
		must(t, c.tx().FirstOrInit(&init, c.conds...).Error)
		equal(t, name+": found", []thing{hit, init}, []thing{miss, miss})
		all = append(all, miss)
	}
	k.agree(t, g, all)

	// Assign updates an existing row, which keeps its ID.
	changed := thing{}
	must(t, g.Where(thing{Name: "struct"}).Assign(thing{Name: "assigned"}).FirstOrCreate(&changed).Error)
	for i := range all {
		if all[i].Name == "struct" {
			all[i].Name = "assigned"
			equal(t, "Assign", changed, all[i])
		}
	}
	k.agree(t, g, all)
}

// After a rollback the structs keep their IDs, and can be inserted again.
func (k *Kind) transaction(t *testing.T, g *database) {
	failed := errors.New("failed on purpose")
	kept, dropped, inner, again := thing{Name: "kept"}, thing{Name: "dropped"}, thing{Name: "inner"}, thing{Name: "again"}
	must(t, g.Transaction(func(tx *database) error {
		must(t, tx.Create(&kept).Error)
		err := tx.Transaction(func(tx *database) error { // a savepoint
			must(t, tx.Create(&dropped).Error)
			return failed
		})
		fails(t, "savepoint", err, failed, "")
		must(t, tx.Transaction(func(tx *database) error { return tx.Create(&inner).Error }))
		must(t, tx.SavePoint("before").Error)
		must(t, tx.Create(&again).Error)
		must(t, tx.RollbackTo("before").Error)
		return nil
	}))
	if dropped.ID.IsZero() || again.ID.IsZero() {
		t.Errorf("after a rollback: IDs = %v and %v, want the generated IDs", dropped.ID, again.ID)
	}
	k.agree(t, g, []thing{kept, inner})

	id := again.ID
	fails(t, "transaction", g.Transaction(func(tx *database) error {
		must(t, tx.Create(&again).Error)
		return failed
	}), failed, "")
	k.agree(t, g, []thing{kept, inner})
	tx := g.Begin()
	must(t, tx.Create(&again).Error)
	must(t, tx.Commit().Error)
	equal(t, "after the rollbacks", again.ID, id)
	k.agree(t, g, []thing{kept, inner, again})
}

// A hooked row has hooks that record and use its ID.
type hookedOf[T sqltypes.ID] struct {
	ID    T
	Name  string
	Code  string            // set from the ID by BeforeSave
	Parts []hookedPartOf[T] `gorm:"foreignKey:HookedID"`

	Instead T   `gorm:"-"` // if not zero, the ID that BeforeCreate sets
	Saw     []T `gorm:"-"` // the IDs that the hooks saw, in order
}

type hookedPartOf[T sqltypes.ID] struct {
	ID       T
	HookedID T
	Saw      []T `gorm:"-"`
}

// A trace is a row that AfterCreate inserts.
type traceOf[T sqltypes.ID] struct {
	ID       T
	HookedID T
}

func (hookedOf[T]) TableName() string     { return "hooked" }
func (hookedPartOf[T]) TableName() string { return "hooked_parts" }
func (traceOf[T]) TableName() string      { return "traces" }

func (h *hookedOf[T]) BeforeSave(*gorm.DB) error {
	h.Saw = append(h.Saw, h.ID)
	h.Code = "code of " + h.ID.String()
	return nil
}

func (h *hookedOf[T]) BeforeCreate(*gorm.DB) error {
	h.Saw = append(h.Saw, h.ID)
	if !h.Instead.IsZero() {
		h.ID = h.Instead
	}
	return nil
}

// AfterCreate finds the row by its ID, on the same connection.
func (h *hookedOf[T]) AfterCreate(tx *gorm.DB) error {
	h.Saw = append(h.Saw, h.ID)
	var n int64
	if err := tx.Model(h).Where("id = ?", h.ID).Count(&n).Error; err != nil {
		return err
	}
	if n != 1 {
		return errors.New("AfterCreate found no row with the ID")
	}
	return tx.Create(&traceOf[T]{HookedID: h.ID}).Error
}

func (h *hookedOf[T]) AfterSave(*gorm.DB) error { h.Saw = append(h.Saw, h.ID); return nil }

func (p *hookedPartOf[T]) BeforeCreate(*gorm.DB) error {
	p.Saw = append(p.Saw, p.ID, p.HookedID)
	return nil
}

// Hooks see the IDs of the rows and may replace them, also without GORM's transaction, which
// begins in a callback.
func (k *Kind) hooks(t *testing.T, g *database) {
	set := k.ids(t, 4)
	for name, g := range map[string]*database{
		"transaction":             g,
		"no transaction":          with(t, g, gorm.Config{SkipDefaultTransaction: true}, bindings(t)...),
		"session, no transaction": g.Session(&gorm.Session{SkipDefaultTransaction: true}),
	} {
		for _, table := range []string{"hooked_parts", "hooked", "traces"} {
			must(t, g.Exec("delete from "+table).Error)
		}
		parts := func() []hookedPart { return make([]hookedPart, 2) }

		one := hooked{Name: "a", Parts: parts()}
		must(t, g.Create(&one).Error)
		replaced := hooked{Name: "b, replaced", Parts: parts(), Instead: set[0]}
		must(t, g.Create(&replaced).Error)
		slice := []hooked{{Name: "c"}, {Name: "d, replaced", Instead: set[1], Parts: parts()}, {Name: "e", Parts: parts()}, {Name: "f, set", ID: set[2]}}
		must(t, g.Create(&slice).Error)
		pointers := []*hooked{{Name: "g, replaced", Instead: set[3]}, {Name: "h"}}
		must(t, g.Create(pointers).Error)
		all := append([]hooked{one, replaced}, slice...)
		all = append(all, *pointers[0], *pointers[1])

		seen := map[ID]bool{}
		for _, h := range all {
			before := h.Saw[0]
			if h.Instead.IsZero() != (h.ID == before) || !h.Instead.IsZero() && h.ID != h.Instead || before.IsZero() || seen[before] {
				t.Errorf("%s: %s: got ID %v, the hooks saw %v, want a new ID, or %v", name, h.Name, h.ID, h.Saw, h.Instead)
			}
			seen[before] = true
			equal(t, name+": the hooks saw", h.Saw, []ID{before, before, h.ID, h.ID})
			equal(t, name+": code", h.Code, "code of "+before.String())
			for _, p := range h.Parts {
				equal(t, name+": the part's hook saw", append(p.Saw, p.HookedID), []ID{p.ID, h.ID, h.ID})
			}
		}

		// The rows equal the structs.
		for i := range all {
			h := &all[i]
			h.Instead, h.Saw = ID{}, nil
			slices.SortFunc(h.Parts, func(a, b hookedPart) int { return a.ID.Compare(b.ID) })
			for j := range h.Parts {
				h.Parts[j].Saw = nil
			}
			if h.Parts == nil {
				h.Parts = []hookedPart{} // as Preload sets it
			}
		}
		finds(t, name+": rows", g.Preload("Parts", func(g *database) *database { return g.Order("id") }).Order("name"), all...)
		counts(t, g, "hooked h join traces t on t.hooked_id = h.id", len(all))
	}

	// Without hooks the plugin still fills the IDs.
	rows := []hooked{{Name: "skipped a", Parts: make([]hookedPart, 1)}, {Name: "skipped b"}}
	must(t, g.Session(&gorm.Session{SkipHooks: true}).Create(&rows).Error)
	if rows[0].Saw != nil || rows[0].ID == rows[1].ID || rows[0].Parts[0].ID.IsZero() || rows[0].Parts[0].Saw != nil {
		t.Errorf("SkipHooks: got %+v", rows)
	}
	plucks(t, "SkipHooks", g.Model(&hooked{}).Where("name like 'skipped%' and code = ''").Order("name"), "id", rows[0].ID, rows[1].ID)
	plucks(t, "SkipHooks", g.Model(&hookedPart{}).Where("hooked_id = ?", rows[0].ID), "id", rows[0].Parts[0].ID)
}
