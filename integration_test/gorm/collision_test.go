package gorm

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/sqltypes"
)

// A documented has a serial key and a public ID.
type documented[T sqltypes.ID] struct {
	ID       uint
	PublicID T `gorm:"idgen;uniqueIndex"`
	Name     string
}

func (documented[T]) TableName() string { return "documenteds" }

// A filing belongs to a documented.
type filing[T sqltypes.ID] struct {
	ID         T
	DocumentID uint
	Document   *documented[T]
}

func (filing[T]) TableName() string { return "filings" }

// A collision is a call that generates the ID of an existing row.
type collision[T any] struct {
	at   int // the number of the generated ID that is taken
	call func(tx *gorm.DB) error
	ids  func() []T // the generated IDs in the caller's values
	rows string     // the change of the number of rows per table, once the call succeeds
}

var collisionTables = []string{"companies", "people", "passports", "orders", "pictures", "tags", "person_tags", "clubs", "memberships", "contacts", "documenteds", "filings"}

// rowsOf returns all rows of the tables.
func rowsOf(t *testing.T, g *gorm.DB) map[string][]string {
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

// A generated ID that an existing row has is never that row's in another way: the call fails,
// changes nothing, and succeeds when it is repeated.
func (k of[T, P]) collisions(t *testing.T, g *gorm.DB) {
	taken := k.ids(t, 1)[0]
	at := -1 // the number of IDs to generate before the taken one
	repeating := idtype.MapGenerator(must1(t, k.NewGenerator), func(id T) T {
		if at == 0 {
			id = taken
		}
		at--
		return id
	})
	g = with(t, g, gorm.Config{TranslateError: true}, gormplugin.For(repeating))
	must(t, g.SetupJoinTable(k.blank(), "Clubs", &membership[T]{}))
	must(t, g.AutoMigrate(append(k.graphModels(), &contact[T]{}, &documented[T]{}, &filing[T]{})...))

	// All existing rows have the same ID.
	alice := k.newPerson(Person[T, P]{ID: taken, Name: "alice", Company: &company[T]{ID: taken, Name: "acme"}, Passport: &passport[T]{ID: taken, Number: "1"},
		Orders: []order[T]{{ID: taken, Item: "tea"}}, Pictures: []picture[T]{{ID: taken, File: "a"}}, Tags: []*tag[T]{{ID: taken, Name: "red"}}, Clubs: []*club[T]{{ID: taken, Name: "chess"}}})
	must(t, g.Create(alice).Error)
	must(t, g.Create(&contact[T]{ID: taken, Email: "alice", Team: "a"}).Error)
	must(t, g.Create(&documented[T]{PublicID: taken, Name: "alice"}).Error)
	must(t, g.Model(&membership[T]{}).Where("1 = 1").Update("id", taken).Error)

	for name, c := range k.collisionCases(g, alice) {
		t.Run(name, func(t *testing.T) {
			before := rowsOf(t, g)
			at = c.at
			fails(t, "taken ID", c.call(g), gorm.ErrDuplicatedKey, "")
			if at >= 0 {
				t.Error("the ID was not generated")
			}
			equal(t, "rows", rowsOf(t, g), before)
			equal(t, "IDs after the error", slices.DeleteFunc(c.ids(), T.IsZero), []T{})
			// In a transaction, the call is repeated after a savepoint.
			at = c.at
			must(t, g.Transaction(func(tx *gorm.DB) error {
				err := tx.Transaction(c.call)
				for i := 0; i < 2 && errors.Is(err, gorm.ErrDuplicatedKey); i++ {
					err = tx.Transaction(c.call)
				}
				return err
			}))
			if ids := c.ids(); slices.ContainsFunc(ids, T.IsZero) || slices.Contains(ids, taken) {
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

func (k of[T, P]) collisionCases(g *gorm.DB, alice P) map[string]collision[T] {
	in := func(n P) *Person[T, P] { return k.in(n) }
	acme, red := in(alice).Company, in(alice).Tags[0]
	byID := []clause.Column{{Name: "id"}}
	cases := map[string]collision[T]{}
	email := 0
	contacts := func(n int) []contact[T] {
		rows := make([]contact[T], n)
		for i := range rows {
			email++
			rows[i] = newContact[T](fmt.Sprint("c", email), "new")
		}
		return rows
	}
	idsOf := func(rows []contact[T]) func() []T {
		return func() (ids []T) {
			for _, r := range rows {
				ids = append(ids, r.ID)
			}
			return ids
		}
	}
	existing := newContact[T]("alice", "old")
	existing.ID, existing.Team, existing.Desk = in(alice).ID, "a", 0

	// One table.
	for name, conflict := range map[string]*clause.OnConflict{
		"plain":                {},
		"UpdateAll":            {UpdateAll: true},
		"UpdateAll by ID":      {Columns: byID, UpdateAll: true},
		"DoUpdates by ID":      {Columns: byID, DoUpdates: updateName},
		"DoUpdates where":      {Columns: byID, DoUpdates: updateName, Where: condition("contacts.name <> 'nobody'")},
		"DO NOTHING by ID":     {Columns: byID, DoNothing: true},
		"DO NOTHING":           {DoNothing: true},
		"UpdateAll by email":   {Columns: byEmail, UpdateAll: true},
		"DO NOTHING by email":  {Columns: byEmail, DoNothing: true},
		"UpdateAll, returning": {UpdateAll: true},
		"constraint":           {OnConstraint: "contacts_pkey", DoUpdates: updateName},
	} {
		if name == "constraint" && !isPostgres(g) {
			continue
		}
		with := func(tx *gorm.DB) *gorm.DB {
			switch name {
			case "plain":
				return tx
			case "UpdateAll, returning":
				tx = tx.Clauses(clause.Returning{})
			}
			return tx.Clauses(*conflict)
		}
		one, batch := contacts(1), contacts(3)
		cases[name+": one"] = collision[T]{0, func(tx *gorm.DB) error { return with(tx).Create(&one[0]).Error }, idsOf(one), "contacts 1"}
		cases[name+": slice"] = collision[T]{1, func(tx *gorm.DB) error { return with(tx).Create(&batch).Error }, func() []T { return idsOf(batch)() }, "contacts 3"}
		inBatches := contacts(3)
		cases[name+": batches"] = collision[T]{1, func(tx *gorm.DB) error { return with(tx).CreateInBatches(inBatches, 2).Error }, idsOf(inBatches), "contacts 3"}
		later := contacts(3) // the rows of the first batch can be created again with their IDs
		cases[name+": second batch"] = collision[T]{2, func(tx *gorm.DB) error { return with(tx).CreateInBatches(later, 2).Error }, func() []T { return idsOf(later[2:])() }, "contacts 3"}
		m := []map[string]any{{"email": name + "1", "name": "new", "team": name}, {"email": name + "2", "name": "new", "team": name, "desk": 1}}
		if name != "UpdateAll, returning" {
			cases[name+": maps"] = collision[T]{1, func(tx *gorm.DB) error { return with(tx).Model(&contact[T]{}).Create(m).Error }, func() (ids []T) {
				for _, m := range m {
					id, _ := m["id"].(T)
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
		cases["mixed: "+name] = collision[T]{1, func(tx *gorm.DB) error { return with(tx).Create(&mixed).Error },
			func() []T { return []T{mixed[0].ID, mixed[len(mixed)-1].ID} }, "contacts 2"}
	}
	saved, savedMixed := contacts(2), append(contacts(1), existing)
	cases["Save"] = collision[T]{1, func(tx *gorm.DB) error { return tx.Save(&saved).Error }, idsOf(saved), "contacts 2"}
	cases["mixed: Save"] = collision[T]{0, func(tx *gorm.DB) error { return tx.Save(&savedMixed).Error }, func() []T { return idsOf(savedMixed[:1])() }, "contacts 1"}

	// Associations.
	people := func(people ...Person[T, P]) (rows []P) {
		for _, p := range people {
			rows = append(rows, k.newPerson(p))
		}
		return rows
	}
	graph := func(name string, at int, rows string, people []P, related func(p *Person[T, P]) []T) {
		ids := func() (ids []T) {
			for _, n := range people {
				ids = append(append(ids, in(n).ID), related(in(n))...)
			}
			return ids
		}
		create := func(tx *gorm.DB) error {
			if len(people) == 1 {
				return tx.Create(people[0]).Error
			}
			return tx.Create(people).Error
		}
		cases[name] = collision[T]{at, create, ids, rows}
	}
	ofCompany := func(p *Person[T, P]) []T { return []T{p.Company.ID} }
	graph("belongs-to", 1, "companies 1, people 1", people(Person[T, P]{Name: "bob", Company: &company[T]{Name: "bob's"}}), ofCompany)
	graph("belongs-to of several", 2, "companies 2, people 2",
		people(Person[T, P]{Name: "bob", Company: &company[T]{Name: "bob's"}}, Person[T, P]{Name: "carol", Company: &company[T]{Name: "carol's"}}), ofCompany)
	graph("belongs-to, also existing", 2, "companies 1, people 2",
		people(Person[T, P]{Name: "bob", Company: acme}, Person[T, P]{Name: "carol", Company: &company[T]{Name: "carol's"}}), func(p *Person[T, P]) []T {
			if p.Company == acme {
				return nil
			}
			return ofCompany(p)
		})
	shared := &company[T]{Name: "shared"}
	graph("belongs-to, shared", 3, "companies 1, people 2", people(Person[T, P]{Name: "bob", Company: shared}, Person[T, P]{Name: "carol", Company: shared}), ofCompany)
	graph("the owner of an association", 0, "companies 1, people 1", people(Person[T, P]{Name: "bob", Company: &company[T]{Name: "bob's"}}), ofCompany)
	graph("has-one", 1, "people 1, passports 1", people(Person[T, P]{Name: "bob", Passport: &passport[T]{}}), func(p *Person[T, P]) []T { return []T{p.Passport.ID} })
	graph("has-many", 2, "people 1, orders 2", people(Person[T, P]{Name: "bob", Orders: []order[T]{{Item: "a"}, {Item: "b"}}}),
		func(p *Person[T, P]) []T { return []T{p.Orders[0].ID, p.Orders[1].ID} })
	graph("polymorphic", 1, "people 1, pictures 1", people(Person[T, P]{Name: "bob", Pictures: []picture[T]{{File: "b"}}}), func(p *Person[T, P]) []T { return []T{p.Pictures[0].ID} })
	graph("many2many", 2, "people 1, tags 2, person_tags 2", people(Person[T, P]{Name: "bob", Tags: []*tag[T]{{Name: "a"}, {Name: "b"}}}),
		func(p *Person[T, P]) []T { return []T{p.Tags[0].ID, p.Tags[1].ID} })
	graph("many2many, also existing", 1, "people 1, tags 1, person_tags 2", people(Person[T, P]{Name: "bob", Tags: []*tag[T]{red, {Name: "b"}}}), func(p *Person[T, P]) []T { return []T{p.Tags[1].ID} })
	graph("custom join table", 2, "people 1, clubs 1, memberships 1", people(Person[T, P]{Name: "bob", Clubs: []*club[T]{{Name: "c"}}}), func(p *Person[T, P]) []T { return []T{p.Clubs[0].ID} })
	graph("nested", 2, "people 1, orders 1, pictures 1", people(Person[T, P]{Name: "bob", Orders: []order[T]{{Item: "c", Pictures: []picture[T]{{File: "c"}}}}}),
		func(p *Person[T, P]) []T { return []T{p.Orders[0].ID, p.Orders[0].Pictures[0].ID} })

	full := people(Person[T, P]{Name: "bob", Company: &company[T]{Name: "full"}, Orders: []order[T]{{Item: "full"}}})
	cases["FullSaveAssociations"] = collision[T]{2, func(tx *gorm.DB) error {
		return tx.Session(&gorm.Session{FullSaveAssociations: true}).Create(full[0]).Error
	}, func() []T { return []T{in(full[0]).ID, in(full[0]).Company.ID, in(full[0]).Orders[0].ID} }, "companies 1, people 1, orders 1"}
	appended := &order[T]{Item: "appended"}
	cases["Association"] = collision[T]{0, func(tx *gorm.DB) error {
		return tx.Model(k.byID(in(alice).ID)).Association("Orders").Append(appended)
	}, func() []T { return []T{appended.ID} }, "orders 1"}
	changed := k.newPerson(Person[T, P]{ID: in(alice).ID, Name: "alice", Orders: []order[T]{{ID: in(alice).ID, Item: "tea"}, {Item: "milk"}}})
	cases["mixed: has-many of an existing row"] = collision[T]{0, func(tx *gorm.DB) error { return tx.Save(changed).Error }, func() []T { return []T{in(changed).Orders[1].ID} }, "orders 1"}

	// Public IDs.
	doc, docs := documented[T]{}, []documented[T]{{Name: "a"}, {Name: "b"}}
	cases["public ID"] = collision[T]{0, func(tx *gorm.DB) error { return tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&doc).Error }, func() []T { return []T{doc.PublicID} }, "documenteds 1"}
	cases["public ID, target"] = collision[T]{1, func(tx *gorm.DB) error {
		return tx.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "public_id"}}, UpdateAll: true}).Create(&docs).Error
	}, func() []T { return []T{docs[0].PublicID, docs[1].PublicID} }, "documenteds 2"}
	filings := []filing[T]{{Document: &documented[T]{}}, {Document: &documented[T]{}}}
	cases["public ID of a belongs-to"] = collision[T]{2, func(tx *gorm.DB) error { return tx.Create(&filings).Error },
		func() []T { return []T{filings[0].Document.PublicID, filings[1].Document.PublicID} }, "documenteds 2, filings 2"}
	return cases
}
