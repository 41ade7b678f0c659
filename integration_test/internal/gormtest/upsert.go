package gormtest

import (
	"maps"
	"slices"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

var (
	byEmail    = []clause.Column{{Name: "email"}}
	byPlace    = []clause.Column{{Name: "team"}, {Name: "desk"}}
	updateName = clause.AssignmentColumns([]string{"name"})
)

// If an upsert conflicts on another key than the ID, the struct gets the ID of the row, in
// every kind of value that Create accepts.
func (k *Kind) upsert(t *testing.T, g *database) {
	preset := k.ids(t, 1)[0]
	ways := map[string]clause.OnConflict{
		"DoUpdates":       {Columns: byEmail, DoUpdates: updateName},
		"UpdateAll":       {Columns: byEmail, UpdateAll: true},
		"two columns":     {Columns: byPlace, DoUpdates: updateName},
		"two columns all": {Columns: byPlace, UpdateAll: true},
		"Assignments":     {Columns: byEmail, DoUpdates: clause.Assignments(map[string]any{"name": clause.Column{Table: "excluded", Name: "name"}})},
		"true condition":  {Columns: byEmail, DoUpdates: updateName, Where: condition("contacts.name <> 'nobody'")},
	}
	if isPostgres(g) {
		ways["constraint"] = clause.OnConflict{OnConstraint: "uni_contacts_email", DoUpdates: updateName}
		ways["constraint all"] = clause.OnConflict{OnConstraint: "uni_contacts_email", UpdateAll: true}
	}
	for way, conflict := range ways {
		for mode, session := range map[string]gorm.Session{"": {}, ", prepared": {PrepareStmt: true}, ", no hooks": {SkipHooks: true}} {
			must(t, g.Exec("delete from contacts").Error)
			way := way + mode
			old := []contact{newContact("a", "old"), newContact("bb", "old"), newContact("ccc", "old")}
			must(t, g.Create(&old).Error)
			want := map[string]ID{}
			for _, c := range old {
				want[c.Email] = c.ID
			}
			tx := g.Session(&session).Clauses(conflict).Session(&gorm.Session{})

			rows := func(emails ...string) (rows []*contact) {
				for _, email := range emails {
					c := newContact(email, way)
					rows = append(rows, &c)
				}
				return rows
			}
			got := rows("a", "bb", "dddd")
			got[1].ID = preset // no row has this ID
			for _, c := range got {
				must(t, tx.Create(c).Error)
			}
			pointers := rows("ccc")
			if len(conflict.Where.Exprs) == 0 { // with a condition, the plugin adds RETURNING only for a single row
				values := []contact{newContact("eeeee", way), newContact("ccc", way), newContact("ffffff", way), newContact("a", way)}
				must(t, tx.Create(&values).Error)
				array := [2]contact{newContact("ccc", way), newContact("hhhhhhhh", way)}
				must(t, tx.Create(&array).Error)
				for i := range values {
					got = append(got, &values[i])
				}
				got = append(got, &array[0], &array[1])
				pointers = rows("bb", "ggggggg", "dddd")
				pointers[0].ID = preset
				inBatches := rows("a", "iiiiiiiii", "bb", "ccc", "jjjjjjjjjj")
				must(t, tx.CreateInBatches(&inBatches, 2).Error)
				got = append(got, inBatches...)
			}
			must(t, tx.Create(pointers).Error)
			got = append(got, pointers...)

			for _, c := range got { // the first struct of a new row has its ID
				if _, known := want[c.Email]; !known {
					want[c.Email] = c.ID
				}
			}
			ids, names := k.contacts(t, g)
			if !maps.Equal(ids, want) {
				t.Errorf("%s: IDs of the rows = %v, want %v", way, ids, want)
			}
			for _, c := range got {
				if c.ID != want[c.Email] || c.ID.IsZero() || names[c.Email] != way {
					t.Errorf("%s: contact %s: ID = %v in the struct, %v in the row with name %q", way, c.Email, c.ID, want[c.Email], names[c.Email])
				}
				// BeforeCreate sees the generated ID, AfterCreate the ID of the row.
				if session.SkipHooks {
					continue
				}
				if c.After != c.ID || c.Before.IsZero() {
					t.Errorf("%s: contact %s: BeforeCreate saw ID %v, AfterCreate saw %v, want %v", way, c.Email, c.Before, c.After, c.ID)
				}
			}
		}
	}
}

func condition(sql string) clause.Where {
	return clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: sql}}}
}

// If an ON CONFLICT changes no row, a generated ID is reset to zero, and an ID that was set
// stays.
func (k *Kind) upsertSkipped(t *testing.T, g *database) {
	preset := k.ids(t, 1)[0]
	old := newContact("a", "old")
	must(t, g.Create(&old).Error)
	want := map[string]ID{"a": old.ID}
	for way, conflict := range map[string]clause.OnConflict{
		"DO NOTHING":                  {DoNothing: true},
		"DO NOTHING by email":         {Columns: byEmail, DoNothing: true},
		"DO NOTHING by place":         {Columns: byPlace, DoNothing: true},
		"DO UPDATE where false":       {Columns: byEmail, DoUpdates: updateName, Where: condition("contacts.name <> 'old'")},
		"DO UPDATE of all, not there": {Columns: byPlace, UpdateAll: true, Where: condition("contacts.name = 'nobody'")},
	} {
		for mode, session := range map[string]gorm.Session{"": {}, ", prepared": {PrepareStmt: true}} {
			way := way + mode
			tx := g.Session(&session).Clauses(conflict).Session(&gorm.Session{})

			noID := func(what string, tx *database, c *contact) {
				t.Helper()
				if tx.Error != nil || tx.RowsAffected != 0 || !c.ID.IsZero() {
					t.Errorf("%s: %s: ID = %v, %d rows, %v, want no ID", way, what, c.ID, tx.RowsAffected, tx.Error)
				}
			}
			skipped := newContact("a", way)
			noID("struct", tx.Create(&skipped), &skipped)
			if skipped.Before.IsZero() || !skipped.After.IsZero() {
				t.Errorf("%s: BeforeCreate saw ID %v, AfterCreate saw %v, want an ID, then none", way, skipped.Before, skipped.After)
			}
			noID("the same struct again", tx.Create(&skipped), &skipped)
			// Generated code passes a single row as a slice.
			values, pointers, array := []contact{newContact("a", way)}, []*contact{{Email: "a", Team: "team of a", Desk: 1}}, [1]contact{newContact("a", way)}
			noID("slice", tx.Create(&values), &values[0])
			noID("pointers in batches", tx.CreateInBatches(pointers, 1), pointers[0])
			noID("array", tx.Create(&array), &array[0])
			// With RETURNING *, GORM empties the slice.
			first, emptied := &values[0], values
			noID("RETURNING *", tx.Clauses(clause.Returning{}).Create(&emptied), first)
			m := map[string]any{"email": "a", "team": "team of a", "desk": 1, "name": way}
			for _, rows := range []any{m, &m, []map[string]any{m}, &[]map[string]any{m}} { // maps keep their IDs
				if delete(m, "id"); conflict.DoNothing {
					if err := tx.Model(&contact{}).Create(rows).Error; err != nil || m["id"] == nil {
						t.Errorf("%s: %T: %v, %v", way, rows, m, err)
					}
				}
			}
			given := newContact("a", way)
			given.ID = preset
			must(t, tx.Create(&given).Error)
			equal(t, way+": the caller's ID", given.ID, preset)
			inserted := newContact(way, way)
			affects(t, way, tx.Create(&inserted), 1)
			want[way] = inserted.ID
			equal(t, way+": AfterCreate", inserted.After, inserted.ID)

			// In a batch the rows that are inserted have the IDs of their structs.
			batch := []*contact{{Email: way + " 0", Team: way}, {Email: "a", Team: "team of a", Desk: 1}, {Email: way + " 2", Team: way, Desk: 2}}
			affects(t, way, tx.Create(&batch), 2)
			want[batch[0].Email], want[batch[2].Email] = batch[0].ID, batch[2].ID
			if batch[1].ID == batch[0].ID || batch[1].ID == batch[2].ID {
				t.Errorf("%s: batch %v, %v and %v", way, batch[0].ID, batch[1].ID, batch[2].ID)
			}
			if ids, names := k.contacts(t, g); !maps.Equal(ids, want) || names["a"] != "old" || slices.Contains(slices.Collect(maps.Values(ids)), ID{}) {
				t.Errorf("%s: IDs of the rows = %v, name = %q, want %v and old", way, ids, names["a"], want)
			}
		}
	}
	dry := newContact("a", "dry")
	must(t, g.Session(&gorm.Session{DryRun: true}).Clauses(clause.OnConflict{DoNothing: true}).Create(&dry).Error)
	if dry.ID.IsZero() {
		t.Error("dry run: got no ID, want the generated one")
	}
}

// If an upsert finds an existing row, associations and join tables refer to that row.
func (k *Kind) upsertGraph(t *testing.T, g *database) {
	must(t, g.Exec("create unique index person_name on people (name)").Error)
	t.Cleanup(func() { // other tests use the tables, too
		if err := g.Exec("drop index person_name").Error; err != nil {
			t.Error(err)
		}
	})
	old := []*person{named("Ada"), named("Grace")}
	must(t, g.Create(old).Error)
	full := func(name string) *person {
		return newPerson(fields{Name: name, Company: &company{Name: "company of " + name}, Passport: &passport{Number: name},
			Tags: []*tag{{Name: "tag of " + name}}, Clubs: []*club{{Name: "club of " + name}}, Friends: []*person{named("friend of " + name)},
			Orders: []order{{Item: "order of " + name, Pictures: []picture{{File: name}}}, {Item: "2nd order of " + name}}})
	}
	upsert := g.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "name"}}, DoUpdates: clause.AssignmentColumns([]string{"name", "company_id"})}).Session(&gorm.Session{})
	people := []*person{full("Ada"), full("Mary"), full("Grace")}
	must(t, upsert.Create(people[0]).Error)
	must(t, upsert.Create(people[1:]).Error)
	equal(t, "upserts of existing rows", []ID{people[0].ID, people[2].ID}, []ID{old[0].ID, old[1].ID})
	for _, n := range people {
		p := n
		for _, join := range []string{
			"person_tags j on j.person_id = p.id join tags t on t.id = j.tag_id and t.name = 'tag of ' || p.name",
			"memberships j on j.person_id = p.id join clubs c on c.id = j.club_id and c.name = 'club of ' || p.name",
			"friendships j on j.person_id = p.id join people f on f.id = j.friend_id and f.name = 'friend of ' || p.name",
			"orders o on o.person_id = p.id join pictures i on i.owner_id = o.id and o.item = 'order of ' || i.file",
			"companies c on c.id = p.company_id and c.name = 'company of ' || p.name",
		} {
			plucks(t, join, g.Table("people p").Joins("join "+join).Where("p.id = ?", p.ID), "p.name", p.Name)
		}
		k.memberships(t, g, p.ID, 1)
		// The structs are the rows.
		equal(t, p.Name, []ID{*p.CompanyID, p.Passport.PersonID, p.Orders[0].PersonID}, []ID{p.Company.ID, p.ID, p.ID})
		plucks(t, p.Name, g.Model(&person{}).Where("id = ?", p.ID), "company_id", p.Company.ID)
		finds(t, p.Name, g.Where("person_id = ?", p.ID), *p.Passport)
		finds(t, p.Name, g.Preload("Pictures").Where("person_id = ?", p.ID).Order("item desc"), p.Orders[0], order{p.Orders[1].ID, p.ID, p.Orders[1].Item, []picture{}})
	}
}

// If an upsert skips a row, its associations may be new, and the reverse.
func (k *Kind) skippedGraph(t *testing.T, g *database) {
	old := newContact("a", "old")
	must(t, g.Create(&old).Error)
	nothing := g.Clauses(clause.OnConflict{DoNothing: true}).Session(&gorm.Session{})
	// A skipped contact has no ID for its calls.
	skipped := contact{Email: "a", Calls: []call{{About: "skipped"}}}
	fails(t, "call of a skipped contact", nothing.Create(&skipped).Error, nil, "")
	equal(t, "call of a skipped contact", skipped.ID, ID{})
	counts(t, g, "calls", 0)
	skipped = contact{Email: "a", Company: &company{Name: "new"}}
	must(t, nothing.Create(&skipped).Error)
	finds(t, "new company", g.Where("name = 'new'"), *skipped.Company)
	equal(t, "skipped contact", []ID{skipped.ID, *skipped.CompanyID}, []ID{{}, skipped.Company.ID})
	existing := newContact("dddd", "new")
	existing.Company = &company{ID: skipped.Company.ID}
	must(t, nothing.Create(&existing).Error)
	if existing.ID.IsZero() || existing.Company.ID != skipped.Company.ID {
		t.Errorf("got ID %v, company %v, want an ID, and %v", existing.ID, existing.Company.ID, skipped.Company.ID)
	}
}

// After an upsert, the struct has the ID of the row, even if a hook replaced the ID.
func (k *Kind) upsertAfterHook(t *testing.T, g *database) {
	ids := k.ids(t, 3)
	rows := []*contact{{Email: "a", Name: "0", Instead: ids[0]}, {Email: "a", Name: "1", Instead: ids[1]}, {Email: "a", Instead: ids[2]}, {Email: "b", Desk: 1, Instead: ids[2]}}
	update, nothing := clause.OnConflict{Columns: byEmail, UpdateAll: true}, clause.OnConflict{DoNothing: true}
	var got []ID
	for i, conflict := range []clause.OnConflict{update, update, nothing, nothing} {
		must(t, g.Clauses(conflict).Create(rows[i]).Error)
		got = append(got, rows[i].ID)
	}
	equal(t, "IDs", got, []ID{ids[0], ids[0], {}, ids[2]})
	finds(t, "rows", g.Order("email"), contact{ID: ids[0], Email: "a", Name: "1"}, contact{ID: ids[2], Email: "b", Desk: 1})
}

// If an upsert conflicts with a softly deleted row, the struct gets the ID of that row.
func (k *Kind) upsertOfDeleted(t *testing.T, g *database) {
	ada := sender{Name: "Ada"}
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
			old := letter{Code: "known", Kind: "old", SenderID: ada.ID}
			must(t, g.Create(&old).Error)
			must(t, g.Delete(&old).Error)
			letters := []letter{{Code: "known", Kind: "new", SenderID: ada.ID}}
			if batch {
				letters = []letter{{Code: "first", SenderID: ada.ID}, letters[0], {Code: "last", SenderID: ada.ID}}
				must(t, g.Clauses(c.conflict).Create(&letters).Error)
			} else {
				must(t, g.Clauses(c.conflict).Create(&letters[0]).Error)
			}
			equal(t, name, letters[len(letters)/2].ID, old.ID)
			for _, l := range letters {
				var row letter
				must(t, g.Unscoped().First(&row, "code = ?", l.Code).Error)
				if row.ID != l.ID || l.ID.IsZero() || row.Kind != l.Kind || row.DeletedAt.Valid != (l.Code == "known" && !c.revived) {
					t.Errorf("%s: got row %+v for struct %+v", name, row, l)
				}
			}
			must(t, g.Exec("delete from letters").Error)
		}
	}

	// If the row isn't changed, the struct gets no ID.
	old := letter{Code: "known", SenderID: ada.ID}
	must(t, g.Create(&old).Error)
	must(t, g.Delete(&old).Error)
	skipped := letter{Code: "known", SenderID: ada.ID}
	affects(t, "DoNothing", g.Clauses(clause.OnConflict{DoNothing: true}).Create(&skipped), 0)
	equal(t, "DoNothing", skipped.ID, ID{})
	// FirstOrCreate doesn't find the deleted row, and fails to create another one.
	fails(t, "FirstOrCreate", g.FirstOrCreate(&letter{}, letter{Code: "known", SenderID: ada.ID}).Error, nil, "")
	counts(t, g, "letters", 1)
}
