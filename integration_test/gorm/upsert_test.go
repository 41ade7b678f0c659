package gorm

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/sortkey/sortkey/sqltypes"
)

var (
	byEmail    = []clause.Column{{Name: "email"}}
	byPlace    = []clause.Column{{Name: "team"}, {Name: "desk"}}
	updateName = clause.AssignmentColumns([]string{"name"})
)

// If an upsert conflicts on another key than the ID, the struct gets the ID of the row, in
// every kind of value that Create accepts.
func (k of[T]) upsert(t *testing.T, g *gorm.DB) {
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

			one := newContact[T]("a", way)
			must(t, tx.Create(&one).Error)
			again := newContact[T]("bb", way)
			again.ID = preset // no row has this ID
			must(t, tx.Create(&again).Error)
			inserted := newContact[T]("dddd", way)
			must(t, tx.Create(&inserted).Error)
			want["dddd"] = inserted.ID
			got := []*contact[T]{&one, &again, &inserted}

			if len(conflict.Where.Exprs) == 0 { // with a condition, the plugin adds RETURNING only for a single row
				values := []contact[T]{newContact[T]("eeeee", way), newContact[T]("ccc", way), newContact[T]("ffffff", way), newContact[T]("a", way)}
				must(t, tx.Create(&values).Error)
				want["eeeee"], want["ffffff"] = values[0].ID, values[2].ID
				pointers := make([]*contact[T], 0, 3)
				for _, email := range []string{"bb", "ggggggg", "dddd"} {
					c := newContact[T](email, way)
					pointers = append(pointers, &c)
				}
				pointers[0].ID = preset
				must(t, tx.Create(pointers).Error)
				want["ggggggg"] = pointers[1].ID
				array := [2]contact[T]{newContact[T]("ccc", way), newContact[T]("hhhhhhhh", way)}
				must(t, tx.Create(&array).Error)
				want["hhhhhhhh"] = array[1].ID
				inBatches := []contact[T]{newContact[T]("a", way), newContact[T]("iiiiiiiii", way), newContact[T]("bb", way), newContact[T]("ccc", way), newContact[T]("jjjjjjjjjj", way)}
				must(t, tx.CreateInBatches(&inBatches, 2).Error)
				want["iiiiiiiii"], want["jjjjjjjjjj"] = inBatches[1].ID, inBatches[4].ID
				got = append(got, pointers...)
				for _, rows := range [][]contact[T]{values, array[:], inBatches} {
					for i := range rows {
						got = append(got, &rows[i])
					}
				}
			} else {
				slice := []*contact[T]{{Email: "ccc", Name: way, Team: "team of ccc", Desk: 3}}
				must(t, tx.Create(&slice).Error)
				got = append(got, slice...)
			}

			// gorm.G runs the same upserts.
			generic := gorm.G[contact[T]](g.Session(&session), conflict)
			viaG, selected, batch := newContact[T]("a", way), newContact[T]("bb", way), []contact[T]{newContact[T]("ccc", way), newContact[T]("dddd", way)}
			must(t, generic.Create(t.Context(), &viaG))
			must(t, generic.Select("email", "team", "desk", "name").Create(t.Context(), &selected))
			must(t, generic.CreateInBatches(t.Context(), &batch, 1))
			got = append(got, &viaG, &selected, &batch[0], &batch[1])

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
func (k of[T]) upsertSkipped(t *testing.T, g *gorm.DB) {
	preset := k.ids(t, 3)
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

			skipped := newContact[T]("a", way)
			res := tx.Create(&skipped)
			if res.Error != nil || res.RowsAffected != 0 || !skipped.ID.IsZero() {
				t.Errorf("%s: skipped row: ID = %v, %d rows, %v, want no ID", way, skipped.ID, res.RowsAffected, res.Error)
			}
			if skipped.before.IsZero() || !skipped.after.IsZero() {
				t.Errorf("%s: BeforeCreate saw ID %v, AfterCreate saw %v, want an ID, then none", way, skipped.before, skipped.after)
			}
			// A second Create of the same struct has the same result.
			if err := tx.Create(&skipped).Error; err != nil || !skipped.ID.IsZero() {
				t.Errorf("%s: skipped again: ID = %v, %v, want none", way, skipped.ID, err)
			}
			again := newContact[T]("a", way)
			if err := gorm.G[contact[T]](g.Session(&session), conflict).Create(t.Context(), &again); err != nil || !again.ID.IsZero() {
				t.Errorf("%s: skipped by G: ID = %v, %v, want none", way, again.ID, err)
			}
			// Generated code passes a single row as a slice.
			values, pointers := []contact[T]{newContact[T]("a", way)}, []*contact[T]{{Email: "a", Team: "team of a", Desk: 1}}
			must(t, tx.Create(&values).Error)
			must(t, tx.CreateInBatches(pointers, 1).Error)
			if id := values[0].ID; !id.IsZero() || !pointers[0].ID.IsZero() {
				t.Errorf("%s: skipped slices of one: IDs = %v and %v, want none", way, id, pointers[0].ID)
			}
			// With RETURNING *, GORM empties the slice.
			first, emptied := &values[0], values
			if err := tx.Clauses(clause.Returning{}).Create(&emptied).Error; err != nil || !first.ID.IsZero() {
				t.Errorf("%s: RETURNING *: ID = %v, %v, want none", way, first.ID, err)
			}
			array := [1]contact[T]{newContact[T]("a", way)}
			if err := tx.Create(&array).Error; err != nil || !array[0].ID.IsZero() {
				t.Errorf("%s: array: ID = %v, %v, want none", way, array[0].ID, err)
			}
			m := map[string]any{"email": "a", "team": "team of a", "desk": 1, "name": way}
			for _, rows := range []any{m, &m, []map[string]any{m}, &[]map[string]any{m}} { // maps keep their IDs
				if delete(m, "id"); conflict.DoNothing {
					if err := tx.Model(&contact[T]{}).Create(rows).Error; err != nil || m["id"] == nil {
						t.Errorf("%s: %T: %v, %v", way, rows, m, err)
					}
				}
			}
			given := newContact[T]("a", way)
			given.ID = preset[0]
			if err := tx.Create(&given).Error; err != nil || given.ID != preset[0] {
				t.Errorf("%s: the caller's ID became %v, %v, want %v", way, given.ID, err, preset[0])
			}
			inserted := newContact[T](way, way)
			res = tx.Create(&inserted)
			want[way] = inserted.ID
			if res.Error != nil || res.RowsAffected != 1 || inserted.ID.IsZero() || inserted.after != inserted.ID {
				t.Errorf("%s: inserted with ID %v, %d rows, %v", way, inserted.ID, res.RowsAffected, res.Error)
			}

			// In a batch the rows that are inserted have the IDs of their structs.
			batch := []*contact[T]{{Email: way + " 0", Team: way}, {Email: "a", Team: "team of a", Desk: 1}, {Email: way + " 2", Team: way, Desk: 2}}
			res = tx.Create(&batch)
			want[batch[0].Email], want[batch[2].Email] = batch[0].ID, batch[2].ID
			if res.Error != nil || res.RowsAffected != 2 || batch[0].ID.IsZero() || batch[2].ID.IsZero() || batch[1].ID == batch[0].ID || batch[1].ID == batch[2].ID {
				t.Errorf("%s: batch %v, %v and %v, %d rows, %v", way, batch[0].ID, batch[1].ID, batch[2].ID, res.RowsAffected, res.Error)
			}
			if ids, names := k.contacts(t, g); !maps.Equal(ids, want) || names["a"] != "old" {
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

// If an upsert finds an existing row, the associations refer to that row.
func (k of[T]) upsertGraph(t *testing.T, g *gorm.DB) {
	old := []contact[T]{newContact[T]("a", "old"), newContact[T]("bb", "old")}
	must(t, g.Create(&old).Error)
	full := func(email string) contact[T] {
		c := newContact[T](email, "graph")
		c.Company, c.Detail = &company[T]{Name: "company of " + email}, &remark[T]{Text: "of " + email}
		c.Calls = []call[T]{{About: email + " 0"}, {About: email + " 1"}}
		return c
	}
	upsert := g.Clauses(clause.OnConflict{Columns: byEmail, DoUpdates: clause.AssignmentColumns([]string{"name", "company_id"})}).Session(&gorm.Session{})
	one := full("a")
	must(t, upsert.Create(&one).Error)
	batch := []contact[T]{full("ccc"), full("bb")}
	must(t, upsert.Create(&batch).Error)
	if one.ID != old[0].ID || batch[1].ID != old[1].ID {
		t.Errorf("got IDs %v and %v, want %v and %v", one.ID, batch[1].ID, old[0].ID, old[1].ID)
	}
	for _, c := range append(batch, one) {
		var row contact[T]
		must(t, g.Preload("Company").Preload("Detail").Preload("Calls", func(g *gorm.DB) *gorm.DB { return g.Order("about") }).
			First(&row, "email = ?", c.Email).Error)
		if row.ID != c.ID || len(row.Calls) != 2 || row.Detail == nil || row.Company == nil {
			t.Errorf("%s: got row %+v, want all of %+v", c.Email, row, c)
			continue
		}
		if *row.Detail != *c.Detail || *row.Company != *c.Company || *row.CompanyID != c.Company.ID || !slices.Equal(row.Calls, c.Calls) {
			t.Errorf("%s: got row %+v, want %+v", c.Email, row, c)
		}
		for _, call := range c.Calls {
			if call.ContactID != c.ID || call.ID.IsZero() {
				t.Errorf("%s: call %+v, want one of contact %v", c.Email, call, c.ID)
			}
		}
	}

	// A skipped contact has no ID for its calls.
	skipped := contact[T]{Email: "a", Calls: []call[T]{{About: "skipped"}}}
	if err := g.Clauses(clause.OnConflict{DoNothing: true}).Create(&skipped).Error; err == nil || !skipped.ID.IsZero() {
		t.Errorf("call of a skipped contact: got ID %v, %v, want no ID and an error", skipped.ID, err)
	}
	var n int64
	must(t, g.Model(&call[T]{}).Count(&n).Error)
	if n != 6 {
		t.Errorf("got %d calls, want 6", n)
	}
	// The company may be new if its contact is skipped, and the reverse.
	skipped = contact[T]{Email: "a", Company: &company[T]{Name: "new"}}
	must(t, g.Clauses(clause.OnConflict{DoNothing: true}).Create(&skipped).Error)
	must(t, g.Model(&company[T]{}).Where("name = 'new' and id = ?", skipped.Company.ID).Count(&n).Error)
	if n != 1 || !skipped.ID.IsZero() || *skipped.CompanyID != skipped.Company.ID {
		t.Errorf("got ID %v, company %v in %d rows, want none, and a new company", skipped.ID, skipped.Company.ID, n)
	}
	existing := newContact[T]("dddd", "new")
	existing.Company = &company[T]{ID: skipped.Company.ID}
	must(t, g.Clauses(clause.OnConflict{DoNothing: true}).Create(&existing).Error)
	if existing.ID.IsZero() || existing.Company.ID != skipped.Company.ID {
		t.Errorf("got ID %v, company %v, want an ID, and %v", existing.ID, existing.Company.ID, skipped.Company.ID)
	}
}

// Join tables also refer to the existing rows.
func (k peopleOf[T, N]) upsertJoins(t *testing.T, g *gorm.DB) {
	must(t, g.AutoMigrate(k.graphModels()...))
	must(t, g.Exec("create unique index person_name on people (name)").Error)
	old := []*N{k.named("Ada"), k.named("Grace")}
	must(t, g.Create(old).Error)
	full := func(name string) *N {
		return k.newPerson(Person[T, N]{Name: name, Tags: []*tag[T]{{Name: "tag of " + name}}, Clubs: []*club[T]{{Name: "club of " + name}},
			Friends: []*N{k.named("friend of " + name)}, Orders: []order[T]{{Item: "order of " + name, Pictures: []picture[T]{{File: name}}}}})
	}
	upsert := g.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "name"}}, DoUpdates: updateName}).Session(&gorm.Session{})
	people := []*N{full("Ada"), full("Mary"), full("Grace")}
	must(t, upsert.Create(people[0]).Error)
	must(t, upsert.Create(people[1:]).Error)
	if got := []T{k.in(people[0]).ID, k.in(people[2]).ID}; got[0] != k.in(old[0]).ID || got[1] != k.in(old[1]).ID {
		t.Errorf("got IDs %v, want %v and %v", got, k.in(old[0]).ID, k.in(old[1]).ID)
	}
	for _, n := range people {
		p := k.in(n)
		for _, query := range []string{
			"person_tags j on j.person_id = p.id join tags t on t.id = j.tag_id and t.name = 'tag of ' || p.name",
			"memberships j on j.person_id = p.id join clubs c on c.id = j.club_id and c.name = 'club of ' || p.name",
			"friendships j on j.person_id = p.id join people f on f.id = j.friend_id and f.name = 'friend of ' || p.name",
			"orders o on o.person_id = p.id join pictures i on i.owner_id = o.id and o.item = 'order of ' || i.file",
		} {
			var got int
			must(t, g.Raw("select count(*) from people p join "+query+" where p.id = ? and p.name = ?", p.ID, p.Name).Scan(&got).Error)
			if got != 1 {
				t.Errorf("%s: got %d rows of %s, want 1", p.Name, got, query)
			}
		}
		k.memberships(t, g, p.ID, 1)
	}
}

// A reviewed row has a hook that replaces the ID. An upsert may replace it again.
type reviewed[T sqltypes.ID] struct {
	ID   T
	Code string `gorm:"unique"`
	Name string

	replacement T
}

func (reviewed[T]) TableName() string { return "reviewed" }

func (r *reviewed[T]) BeforeCreate(*gorm.DB) error {
	if !r.replacement.IsZero() {
		r.ID = r.replacement
	}
	return nil
}

// After an upsert, the struct has the ID of the row, even if a hook replaced the ID.
func (k of[T]) upsertAfterHook(t *testing.T, g *gorm.DB) {
	ids := k.ids(t, 3)
	var last T
	for i, c := range []struct {
		conflict clause.OnConflict
		code     string
		want     T
	}{
		{clause.OnConflict{Columns: []clause.Column{{Name: "code"}}, UpdateAll: true}, "a", ids[0]},
		{clause.OnConflict{Columns: []clause.Column{{Name: "code"}}, UpdateAll: true}, "a", ids[0]},
		{clause.OnConflict{DoNothing: true}, "a", last},
		{clause.OnConflict{DoNothing: true}, "b", ids[2]},
	} {
		r := reviewed[T]{Code: c.code, Name: fmt.Sprint(i), replacement: ids[min(i, 2)]}
		must(t, g.Clauses(c.conflict).Create(&r).Error)
		if r.ID != c.want {
			t.Errorf("%d: got ID %v, want %v", i, r.ID, c.want)
		}
	}
	var rows []reviewed[T]
	must(t, g.Order("code").Find(&rows).Error)
	if len(rows) != 2 || rows[0].ID != ids[0] || rows[0].Name != "1" || rows[1].ID != ids[2] {
		t.Errorf("got rows %+v, want IDs %v and %v", rows, ids[0], ids[2])
	}
}

// If an upsert conflicts with a softly deleted row, the struct gets the ID of that row.
func (k of[T]) upsertOfDeleted(t *testing.T, g *gorm.DB) {
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
