package gorm

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
func (k of[T, P]) upsert(t *testing.T, g *gorm.DB) {
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
			old := []contact[T]{newContact[T]("a", "old"), newContact[T]("bb", "old"), newContact[T]("ccc", "old")}
			must(t, g.Create(&old).Error)
			want := map[string]T{}
			for _, c := range old {
				want[c.Email] = c.ID
			}
			tx := g.Session(&session).Clauses(conflict).Session(&gorm.Session{})

			rows := func(emails ...string) (rows []*contact[T]) {
				for _, email := range emails {
					c := newContact[T](email, way)
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
				values := []contact[T]{newContact[T]("eeeee", way), newContact[T]("ccc", way), newContact[T]("ffffff", way), newContact[T]("a", way)}
				must(t, tx.Create(&values).Error)
				array := [2]contact[T]{newContact[T]("ccc", way), newContact[T]("hhhhhhhh", way)}
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

			// gorm.G runs the same upserts.
			generic := gorm.G[contact[T]](g.Session(&session), conflict)
			viaG := rows("a", "bb")
			must(t, generic.Create(t.Context(), viaG[0]))
			must(t, generic.Select("email", "team", "desk", "name").Create(t.Context(), viaG[1]))
			batch := []contact[T]{newContact[T]("ccc", way), newContact[T]("dddd", way)}
			must(t, generic.CreateInBatches(t.Context(), &batch, 1))
			got = append(got, viaG[0], viaG[1], &batch[0], &batch[1])

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
				if c.after != c.ID || c.before.IsZero() {
					t.Errorf("%s: contact %s: BeforeCreate saw ID %v, AfterCreate saw %v, want %v", way, c.Email, c.before, c.after, c.ID)
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
func (k of[T, P]) upsertSkipped(t *testing.T, g *gorm.DB) {
	preset := k.ids(t, 1)[0]
	old := newContact[T]("a", "old")
	must(t, g.Create(&old).Error)
	want := map[string]T{"a": old.ID}
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

			noID := func(what string, tx *gorm.DB, c *contact[T]) {
				t.Helper()
				if tx.Error != nil || tx.RowsAffected != 0 || !c.ID.IsZero() {
					t.Errorf("%s: %s: ID = %v, %d rows, %v, want no ID", way, what, c.ID, tx.RowsAffected, tx.Error)
				}
			}
			skipped := newContact[T]("a", way)
			noID("struct", tx.Create(&skipped), &skipped)
			if skipped.before.IsZero() || !skipped.after.IsZero() {
				t.Errorf("%s: BeforeCreate saw ID %v, AfterCreate saw %v, want an ID, then none", way, skipped.before, skipped.after)
			}
			noID("the same struct again", tx.Create(&skipped), &skipped)
			again := newContact[T]("a", way)
			noID("G", &gorm.DB{Error: gorm.G[contact[T]](g.Session(&session), conflict).Create(t.Context(), &again)}, &again)
			// Generated code passes a single row as a slice.
			values, pointers, array := []contact[T]{newContact[T]("a", way)}, []*contact[T]{{Email: "a", Team: "team of a", Desk: 1}}, [1]contact[T]{newContact[T]("a", way)}
			noID("slice", tx.Create(&values), &values[0])
			noID("pointers in batches", tx.CreateInBatches(pointers, 1), pointers[0])
			noID("array", tx.Create(&array), &array[0])
			// With RETURNING *, GORM empties the slice.
			first, emptied := &values[0], values
			noID("RETURNING *", tx.Clauses(clause.Returning{}).Create(&emptied), first)
			m := map[string]any{"email": "a", "team": "team of a", "desk": 1, "name": way}
			for _, rows := range []any{m, &m, []map[string]any{m}, &[]map[string]any{m}} { // maps keep their IDs
				if delete(m, "id"); conflict.DoNothing {
					if err := tx.Model(&contact[T]{}).Create(rows).Error; err != nil || m["id"] == nil {
						t.Errorf("%s: %T: %v, %v", way, rows, m, err)
					}
				}
			}
			given := newContact[T]("a", way)
			given.ID = preset
			must(t, tx.Create(&given).Error)
			equal(t, way+": the caller's ID", given.ID, preset)
			inserted := newContact[T](way, way)
			affects(t, way, tx.Create(&inserted), 1)
			want[way] = inserted.ID
			equal(t, way+": AfterCreate", inserted.after, inserted.ID)

			// In a batch the rows that are inserted have the IDs of their structs.
			batch := []*contact[T]{{Email: way + " 0", Team: way}, {Email: "a", Team: "team of a", Desk: 1}, {Email: way + " 2", Team: way, Desk: 2}}
			affects(t, way, tx.Create(&batch), 2)
			want[batch[0].Email], want[batch[2].Email] = batch[0].ID, batch[2].ID
			if batch[1].ID == batch[0].ID || batch[1].ID == batch[2].ID {
				t.Errorf("%s: batch %v, %v and %v", way, batch[0].ID, batch[1].ID, batch[2].ID)
			}
			if ids, names := k.contacts(t, g); !maps.Equal(ids, want) || names["a"] != "old" || slices.Contains(slices.Collect(maps.Values(ids)), *new(T)) {
				t.Errorf("%s: IDs of the rows = %v, name = %q, want %v and old", way, ids, names["a"], want)
			}
		}
	}
	dry := newContact[T]("a", "dry")
	must(t, g.Session(&gorm.Session{DryRun: true}).Clauses(clause.OnConflict{DoNothing: true}).Create(&dry).Error)
	if dry.ID.IsZero() {
		t.Error("dry run: got no ID, want the generated one")
	}
}

// If an upsert finds an existing row, associations and join tables refer to that row.
func (k of[T, P]) upsertGraph(t *testing.T, g *gorm.DB) {
	must(t, g.AutoMigrate(k.graphModels()...))
	must(t, g.Exec("create unique index person_name on people (name)").Error)
	old := []P{k.named("Ada"), k.named("Grace")}
	must(t, g.Create(old).Error)
	full := func(name string) P {
		return k.newPerson(Person[T, P]{Name: name, Company: &company[T]{Name: "company of " + name}, Passport: &passport[T]{Number: name},
			Tags: []*tag[T]{{Name: "tag of " + name}}, Clubs: []*club[T]{{Name: "club of " + name}}, Friends: []P{k.named("friend of " + name)},
			Orders: []order[T]{{Item: "order of " + name, Pictures: []picture[T]{{File: name}}}, {Item: "2nd order of " + name}}})
	}
	upsert := g.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "name"}}, DoUpdates: clause.AssignmentColumns([]string{"name", "company_id"})}).Session(&gorm.Session{})
	people := []P{full("Ada"), full("Mary"), full("Grace")}
	must(t, upsert.Create(people[0]).Error)
	must(t, upsert.Create(people[1:]).Error)
	equal(t, "upserts of existing rows", []T{k.in(people[0]).ID, k.in(people[2]).ID}, []T{k.in(old[0]).ID, k.in(old[1]).ID})
	for _, n := range people {
		p := k.in(n)
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
		equal(t, p.Name, []T{*p.CompanyID, p.Passport.PersonID, p.Orders[0].PersonID}, []T{p.Company.ID, p.ID, p.ID})
		plucks(t, p.Name, g.Model(k.blank()).Where("id = ?", p.ID), "company_id", p.Company.ID)
		finds(t, p.Name, g.Where("person_id = ?", p.ID), *p.Passport)
		finds(t, p.Name, g.Preload("Pictures").Where("person_id = ?", p.ID).Order("item desc"), p.Orders[0], order[T]{p.Orders[1].ID, p.ID, p.Orders[1].Item, []picture[T]{}})
	}
}

// If an upsert skips a row, its associations may be new, and the reverse.
func (k of[T, P]) skippedGraph(t *testing.T, g *gorm.DB) {
	old := newContact[T]("a", "old")
	must(t, g.Create(&old).Error)
	nothing := g.Clauses(clause.OnConflict{DoNothing: true}).Session(&gorm.Session{})
	// A skipped contact has no ID for its calls.
	skipped := contact[T]{Email: "a", Calls: []call[T]{{About: "skipped"}}}
	fails(t, "call of a skipped contact", nothing.Create(&skipped).Error, nil, "")
	equal(t, "call of a skipped contact", skipped.ID, *new(T))
	counts(t, g, "calls", 0)
	skipped = contact[T]{Email: "a", Company: &company[T]{Name: "new"}}
	must(t, nothing.Create(&skipped).Error)
	finds(t, "new company", g.Where("name = 'new'"), *skipped.Company)
	equal(t, "skipped contact", []T{skipped.ID, *skipped.CompanyID}, []T{*new(T), skipped.Company.ID})
	existing := newContact[T]("dddd", "new")
	existing.Company = &company[T]{ID: skipped.Company.ID}
	must(t, nothing.Create(&existing).Error)
	if existing.ID.IsZero() || existing.Company.ID != skipped.Company.ID {
		t.Errorf("got ID %v, company %v, want an ID, and %v", existing.ID, existing.Company.ID, skipped.Company.ID)
	}
}

// After an upsert, the struct has the ID of the row, even if a hook replaced the ID.
func (k of[T, P]) upsertAfterHook(t *testing.T, g *gorm.DB) {
	ids := k.ids(t, 3)
	rows := []*contact[T]{{Email: "a", Name: "0", instead: ids[0]}, {Email: "a", Name: "1", instead: ids[1]}, {Email: "a", instead: ids[2]}, {Email: "b", Desk: 1, instead: ids[2]}}
	update, nothing := clause.OnConflict{Columns: byEmail, UpdateAll: true}, clause.OnConflict{DoNothing: true}
	var got []T
	for i, conflict := range []clause.OnConflict{update, update, nothing, nothing} {
		must(t, g.Clauses(conflict).Create(rows[i]).Error)
		got = append(got, rows[i].ID)
	}
	equal(t, "IDs", got, []T{ids[0], ids[0], *new(T), ids[2]})
	finds(t, "rows", g.Order("email"), contact[T]{ID: ids[0], Email: "a", Name: "1"}, contact[T]{ID: ids[2], Email: "b", Desk: 1})
}

// If an upsert conflicts with a softly deleted row, the struct gets the ID of that row.
func (k of[T, P]) upsertOfDeleted(t *testing.T, g *gorm.DB) {
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
			equal(t, name, letters[len(letters)/2].ID, old.ID)
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
	affects(t, "DoNothing", g.Clauses(clause.OnConflict{DoNothing: true}).Create(&skipped), 0)
	equal(t, "DoNothing", skipped.ID, *new(T))
	// FirstOrCreate doesn't find the deleted row, and fails to create another one.
	fails(t, "FirstOrCreate", g.FirstOrCreate(&letter[T]{}, letter[T]{Code: "known", SenderID: ada.ID}).Error, nil, "")
	counts(t, g, "letters", 1)
}
