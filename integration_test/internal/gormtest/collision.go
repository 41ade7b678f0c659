package gormtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/sortkey/sortkey/sqltypes"
)

// A documented has a serial key and a public ID.
type documentedOf[T sqltypes.ID] struct {
	ID       uint
	PublicID T `gorm:"idgen;uniqueIndex"`
	Name     string
}

func (documentedOf[T]) TableName() string { return "documenteds" }

// A filing belongs to a documented.
type filingOf[T sqltypes.ID] struct {
	ID         T
	DocumentID uint
	Document   *documentedOf[T]
}

func (filingOf[T]) TableName() string { return "filings" }

// A collision is a call that generates the ID of an existing row.
type collision[ID any] struct {
	at   int // the number of the generated ID that is taken
	call func(tx *database) error
	ids  func() []ID // the generated IDs in the caller's values
	rows string      // the change of the number of rows per table, once the call succeeds
}

var collisionTables = []string{"companies", "people", "passports", "orders", "pictures", "tags", "person_tags", "clubs", "memberships", "contacts", "documenteds", "filings"}

// rowsOf returns all rows of the tables.
func rowsOf(t *testing.T, g *database) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, table := range collisionTables {
		var rows []map[string]any
		must(t, g.Table(table).Find(&rows).Error)
		for _, r := range rows {
			all[table] = append(all[table], fmt.Sprint(r))
		}
		slices.Sort(all[table])
	}
	return all
}

// If an existing row has a generated ID, the call fails, changes nothing, and succeeds when it is
// repeated.
func (k *Kind) collisions(t *testing.T, g *database) {
	taken := k.ids(t, 1)[0]
	at := -1 // the number of IDs to generate before the taken one
	repeating := k.mapped(t, func(id ID) ID {
		if at == 0 {
			id = taken
		}
		at--
		return id
	})
	g = with(t, g, gorm.Config{TranslateError: true}, repeating)
	must(t, g.SetupJoinTable(&person{}, "Clubs", &membership{}))

	// All existing rows have the same ID.
	alice := newPerson(fields{ID: taken, Name: "alice", Company: &company{ID: taken, Name: "acme"}, Passport: &passport{ID: taken, Number: "1"},
		Orders: []order{{ID: taken, Item: "tea"}}, Pictures: []picture{{ID: taken, File: "a"}}, Tags: []*tag{{ID: taken, Name: "red"}}, Clubs: []*club{{ID: taken, Name: "chess"}}})
	must(t, g.Create(alice).Error)
	must(t, g.Create(&contact{ID: taken, Email: "alice", Team: "a"}).Error)
	must(t, g.Create(&documented{PublicID: taken, Name: "alice"}).Error)
	must(t, g.Model(&membership{}).Where("1 = 1").Update("id", taken).Error)

	for name, c := range k.collisionCases(g, alice) {
		t.Run(name, func(t *testing.T) {
			before := rowsOf(t, g)
			at = c.at
			fails(t, "taken ID", c.call(g), gorm.ErrDuplicatedKey, "")
			if at >= 0 {
				t.Error("the ID was not generated")
			}
			equal(t, "rows", rowsOf(t, g), before)
			if slices.Contains(c.ids(), taken) {
				t.Errorf("IDs after the error: got %v, want none of %v", c.ids(), taken)
			}
			// In a transaction, the call is repeated after a savepoint. Only refused keys are generated again.
			at = 0
			must(t, g.Transaction(func(tx *database) error {
				err := tx.Transaction(c.call)
				for i := 0; i < 2 && errors.Is(err, gorm.ErrDuplicatedKey); i++ {
					err = tx.Transaction(c.call)
				}
				return err
			}))
			if ids := c.ids(); slices.ContainsFunc(ids, ID.IsZero) || slices.Contains(ids, taken) {
				t.Errorf("repeated call: IDs %v", ids)
			}
			after := rowsOf(t, g)
			var added []string
			for _, table := range collisionTables {
				// No existing row changes, except for names.
				if n := len(after[table]) - len(before[table]); n != 0 {
					added = append(added, fmt.Sprintf("%s %d", table, n))
				}
				if name != "Association" && !strings.HasPrefix(name, "mixed") {
					for _, row := range before[table] {
						if !slices.Contains(after[table], row) {
							t.Errorf("repeated call: row %s of %s is gone, got %v", row, table, after[table])
						}
					}
				}
			}
			equal(t, "added rows", strings.Join(added, ", "), c.rows)
		})
	}
}

func (k *Kind) collisionCases(g *database, alice *person) map[string]collision[ID] {
	byID := []clause.Column{{Name: "id"}}
	cases := map[string]collision[ID]{}
	email := 0
	contacts := func(n int) []contact {
		rows := make([]contact, n)
		for i := range rows {
			email++
			rows[i] = newContact(fmt.Sprint("c", email), "new")
		}
		return rows
	}
	idsOf := func(rows []contact) func() []ID {
		return func() (ids []ID) {
			for _, r := range rows {
				ids = append(ids, r.ID)
			}
			return ids
		}
	}
	existing := newContact("alice", "old")
	existing.ID, existing.Team, existing.Desk = alice.ID, "a", 0

	// One table.
	for name, conflict := range map[string]*clause.OnConflict{
		"plain":                {},
		"UpdateAll":            {UpdateAll: true},
		"UpdateAll by ID":      {Columns: byID, UpdateAll: true},
		"DoUpdates by ID":      {Columns: byID, DoUpdates: updateName},
		"DoUpdates where":      {Columns: byID, DoUpdates: updateName, Where: condition("contacts.name <> 'nobody'")},
		"UpdateAll by email":   {Columns: byEmail, UpdateAll: true},
		"DO NOTHING by email":  {Columns: byEmail, DoNothing: true},
		"UpdateAll, returning": {UpdateAll: true},
		"constraint":           {OnConstraint: "contacts_pkey", DoUpdates: updateName},
	} {
		// With RETURNING *, GORM empties the slice of a refused INSERT on SQLite, whose driver returns the
		// error only with the rows.
		if (name == "constraint" || name == "UpdateAll, returning") && !isPostgres(g) {
			continue
		}
		with := func(tx *database) *database {
			switch name {
			case "plain":
				return tx
			case "UpdateAll, returning":
				tx = tx.Clauses(clause.Returning{})
			}
			return tx.Clauses(*conflict)
		}
		one, batch := contacts(1), contacts(3)
		cases[name+": one"] = collision[ID]{0, func(tx *database) error { return with(tx).Create(&one[0]).Error }, idsOf(one), "contacts 1"}
		cases[name+": slice"] = collision[ID]{1, func(tx *database) error { return with(tx).Create(&batch).Error }, func() []ID { return idsOf(batch)() }, "contacts 3"}
		inBatches := contacts(3)
		cases[name+": batches"] = collision[ID]{1, func(tx *database) error { return with(tx).CreateInBatches(inBatches, 2).Error }, idsOf(inBatches), "contacts 3"}
		later := contacts(3) // the rows of the first batch keep their IDs
		cases[name+": second batch"] = collision[ID]{2, func(tx *database) error { return with(tx).CreateInBatches(later, 2).Error }, idsOf(later), "contacts 3"}
		m := []map[string]any{{"email": name + "1", "name": "new", "team": name}, {"email": name + "2", "name": "new", "team": name, "desk": 1}}
		if name != "UpdateAll, returning" {
			cases[name+": maps"] = collision[ID]{1, func(tx *database) error { return with(tx).Model(&contact{}).Create(m).Error }, func() (ids []ID) {
				for _, m := range m {
					id, _ := m["id"].(ID)
					ids = append(ids, id)
				}
				return ids
			}, "contacts 2"}
		}
		if name == "plain" || strings.HasSuffix(name, "email") || strings.HasSuffix(name, "where") {
			continue
		}
		mixed := append(contacts(1), existing)
		mixed = append(mixed, contacts(1)...)
		cases["mixed: "+name] = collision[ID]{1, func(tx *database) error { return with(tx).Create(&mixed).Error },
			func() []ID { return []ID{mixed[0].ID, mixed[len(mixed)-1].ID} }, "contacts 2"}
	}
	saved, savedMixed := contacts(2), append(contacts(1), existing)
	cases["Save"] = collision[ID]{1, func(tx *database) error { return tx.Save(&saved).Error }, idsOf(saved), "contacts 2"}
	cases["mixed: Save"] = collision[ID]{0, func(tx *database) error { return tx.Save(&savedMixed).Error }, func() []ID { return idsOf(savedMixed[:1])() }, "contacts 1"}

	// Associations.
	people := func(people ...fields) (rows []*person) {
		for _, p := range people {
			rows = append(rows, newPerson(p))
		}
		return rows
	}
	graph := func(name string, at int, rows string, people []*person, related func(p *person) []ID) {
		ids := func() (ids []ID) {
			for _, n := range people {
				ids = append(append(ids, n.ID), related(n)...)
			}
			return ids
		}
		create := func(tx *database) error {
			if len(people) == 1 {
				return tx.Create(people[0]).Error
			}
			return tx.Create(people).Error
		}
		cases[name] = collision[ID]{at, create, ids, rows}
	}
	ofCompany := func(p *person) []ID { return []ID{p.Company.ID} }
	graph("belongs-to", 1, "companies 1, people 1", people(fields{Name: "bob", Company: &company{Name: "bob's"}}), ofCompany)
	graph("belongs-to of several", 2, "companies 2, people 2",
		people(fields{Name: "bob", Company: &company{Name: "bob's"}}, fields{Name: "carol", Company: &company{Name: "carol's"}}), ofCompany)
	graph("the owner of an association", 0, "companies 1, people 1", people(fields{Name: "bob", Company: &company{Name: "bob's"}}), ofCompany)
	graph("has-one", 1, "people 1, passports 1", people(fields{Name: "bob", Passport: &passport{}}), func(p *person) []ID { return []ID{p.Passport.ID} })
	graph("has-many", 2, "people 1, orders 2", people(fields{Name: "bob", Orders: []order{{Item: "a"}, {Item: "b"}}}),
		func(p *person) []ID { return []ID{p.Orders[0].ID, p.Orders[1].ID} })
	graph("polymorphic", 1, "people 1, pictures 1", people(fields{Name: "bob", Pictures: []picture{{File: "b"}}}), func(p *person) []ID { return []ID{p.Pictures[0].ID} })
	graph("many2many", 2, "people 1, tags 2, person_tags 2", people(fields{Name: "bob", Tags: []*tag{{Name: "a"}, {Name: "b"}}}),
		func(p *person) []ID { return []ID{p.Tags[0].ID, p.Tags[1].ID} })
	graph("custom join table", 1, "people 1, clubs 1, memberships 1", people(fields{Name: "bob", Clubs: []*club{{Name: "c"}}}), func(p *person) []ID { return []ID{p.Clubs[0].ID} })
	graph("nested", 2, "people 1, orders 1, pictures 1", people(fields{Name: "bob", Orders: []order{{Item: "c", Pictures: []picture{{File: "c"}}}}}),
		func(p *person) []ID { return []ID{p.Orders[0].ID, p.Orders[0].Pictures[0].ID} })

	full := people(fields{Name: "bob", Company: &company{Name: "full"}, Orders: []order{{Item: "full"}}})
	cases["FullSaveAssociations"] = collision[ID]{2, func(tx *database) error {
		return tx.Session(&gorm.Session{FullSaveAssociations: true}).Create(full[0]).Error
	}, func() []ID { return []ID{full[0].ID, full[0].Company.ID, full[0].Orders[0].ID} }, "companies 1, people 1, orders 1"}
	appended := &order{Item: "appended"}
	cases["Association"] = collision[ID]{0, func(tx *database) error {
		return tx.Model(personBy(alice.ID)).Association("Orders").Append(appended)
	}, func() []ID { return []ID{appended.ID} }, "orders 1"}
	changed := newPerson(fields{ID: alice.ID, Name: "alice", Orders: []order{{ID: alice.ID, Item: "tea"}, {Item: "milk"}}})
	cases["mixed: has-many of an existing row"] = collision[ID]{0, func(tx *database) error { return tx.Save(changed).Error }, func() []ID { return []ID{changed.Orders[1].ID} }, "orders 1"}

	// Public IDs.
	doc, docs := documented{}, []documented{{Name: "a"}, {Name: "b"}}
	cases["public ID"] = collision[ID]{0, func(tx *database) error { return tx.Create(&doc).Error }, func() []ID { return []ID{doc.PublicID} }, "documenteds 1"}
	cases["public ID, target"] = collision[ID]{1, func(tx *database) error {
		return tx.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "public_id"}}, UpdateAll: true}).Create(&docs).Error
	}, func() []ID { return []ID{docs[0].PublicID, docs[1].PublicID} }, "documenteds 2"}
	filings := []filing{{Document: &documented{}}, {Document: &documented{}}}
	cases["public ID of a belongs-to"] = collision[ID]{2, func(tx *database) error { return tx.Create(&filings).Error },
		func() []ID { return []ID{filings[0].Document.PublicID, filings[1].Document.PublicID} }, "documenteds 2, filings 2"}
	return cases
}

// A DO NOTHING skips a row whose generated ID another row has, as it skips other rows. Nothing
// else changes.
func (k *Kind) skippedCollisions(t *testing.T, g *database) {
	ids := k.ids(t, 2)
	taken, at := ids[0], -1
	g = with(t, g, gorm.Config{}, k.mapped(t, func(id ID) ID {
		if at == 0 {
			id = taken
		}
		at--
		return id
	}))
	must(t, g.Create(&contact{ID: taken, Email: "alice", Team: "a"}).Error)
	want := rowsOf(t, g)["contacts"]
	for name, conflict := range map[string]clause.OnConflict{
		"DO NOTHING":          {DoNothing: true},
		"DO NOTHING by ID":    {Columns: []clause.Column{{Name: "id"}}, DoNothing: true},
		"a false condition":   {UpdateAll: true, Columns: byEmail, Where: condition("false")},
		"DO UPDATE, mixed":    {UpdateAll: true, Where: condition("contacts.email <> 'nobody'")},
		"DO NOTHING by email": {Columns: byEmail, DoNothing: true},
	} {
		one := newContact("alice", name)
		one.Team, one.Desk = "a", 0
		at = 0
		if strings.HasSuffix(name, "by email") || strings.HasPrefix(name, "a false") { // the ID is compared first
			at = 1
		}
		rows := []contact{one}
		if strings.HasSuffix(name, "mixed") {
			rows = append(rows, contact{ID: ids[1], Email: "bob", Team: "b"})
		}
		tx := g.Clauses(conflict).Create(&rows)
		affects(t, name, tx, int64(len(rows)-1))
		if len(rows) == 1 {
			equal(t, name+": ID", rows[0].ID, ID{})
		}
		must(t, g.Exec("delete from contacts where email = 'bob'").Error)
		equal(t, name+": rows", rowsOf(t, g)["contacts"], want)
	}
}
