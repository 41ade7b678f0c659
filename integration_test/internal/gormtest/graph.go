package gormtest

import (
	"database/sql"
	"errors"
	"slices"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/sqltypes"
)

// All associations of a graph get IDs. The foreign keys match the IDs, in the structs and
// in the rows.
func (k *Kind) graph(t *testing.T, g *database) {
	ada := newGraph()
	must(t, g.Create(ada).Error)
	a := ada

	// The structs.
	seen := map[ID]string{}
	isNew := func(what string, id ID) {
		t.Helper()
		if id.IsZero() || seen[id] != "" {
			t.Errorf("%s: got ID %v, want a new one; the ID is used by: %q", what, id, seen[id])
		}
		seen[id] = what
	}
	isNew("person", a.ID)
	isNew("company", a.Company.ID)
	equal(t, "belongs to", *a.CompanyID, a.Company.ID)
	isNew("passport", a.Passport.ID)
	equal(t, "has one", a.Passport.PersonID, a.ID)
	for _, o := range a.Orders {
		isNew("order "+o.Item, o.ID)
		equal(t, "has many", o.PersonID, a.ID)
	}
	isNew("nested picture", a.Orders[0].Pictures[0].ID)
	equal(t, "nested polymorphic", a.Orders[0].Pictures[0].OwnerID, a.Orders[0].ID)
	for _, p := range a.Pictures {
		isNew("picture "+p.File, p.ID)
		equal(t, "polymorphic", p.OwnerID, a.ID)
	}
	equal(t, "shared key", a.Detail.ID, a.ID)
	manager := a.Manager.ID
	isNew("manager", manager)
	equal(t, "belongs to its own kind", a.ManagerID.ID, manager)
	for i := range a.Team {
		p := a.Team[i]
		isNew("team "+p.Name, p.ID)
		equal(t, "has many of its own kind", p.ManagerID.ID, a.ID)
	}
	luigi := a.Team[0]
	isNew("order of the team", luigi.Orders[0].ID)
	equal(t, "has many of the team", luigi.Orders[0].PersonID, luigi.ID)
	for _, v := range a.Tags {
		isNew("tag "+v.Name, v.ID)
	}
	isNew("club", a.Clubs[0].ID)
	for _, n := range a.Friends {
		p := n
		isNew("friend "+p.Name, p.ID)
	}

	// The rows, by queries in which the database compares the IDs.
	for query, want := range map[string]int{
		"people": 6, "companies": 1, "passports": 1, "orders": 3, "pictures": 3, "details": 1, "tags": 2, "clubs": 1,
		"people p join companies c on c.id = p.company_id":                                                           1,
		"people p join passports x on x.person_id = p.id":                                                            1,
		"people p join orders o on o.person_id = p.id where p.name = 'Ada'":                                          2,
		"people p join orders o on o.person_id = p.id where p.name = 'Luigi'":                                        1,
		"people p join pictures x on x.owner_id = p.id and x.owner_type = 'people'":                                  2,
		"orders o join pictures x on x.owner_id = o.id and x.owner_type = 'orders'":                                  1,
		"people p join details d on d.id = p.id":                                                                     1,
		"people p join people m on m.id = p.manager_id where m.name = 'Charles' and p.name = 'Ada'":                  1,
		"people p join people m on m.id = p.manager_id where m.name = 'Ada'":                                         2,
		"people where manager_id is null":                                                                            3,
		"people p join person_tags j on j.person_id = p.id join tags t on t.id = j.tag_id":                           2,
		"people p join memberships j on j.person_id = p.id join clubs c on c.id = j.club_id":                         1,
		"people p join friendships j on j.person_id = p.id join people f on f.id = j.friend_id where p.name = 'Ada'": 2,
	} {
		counts(t, g, query, want)
	}
	isNew("membership", k.memberships(t, g, a.ID, 1)[0].ID)

	// Existing rows keep their IDs if they are saved again, and each new row of the join
	// table gets an ID.
	grace := newPerson(fields{Name: "Grace", Company: a.Company, Tags: a.Tags[:1], Clubs: a.Clubs, Manager: ada})
	company, tag, club := a.Company.ID, a.Tags[0].ID, a.Clubs[0].ID
	manager = a.ID
	must(t, g.Create(grace).Error)
	again := grace
	isNew("further person", again.ID)
	equal(t, "existing company", *again.CompanyID, company)
	equal(t, "existing company's struct", again.Company.ID, company)
	equal(t, "existing tag", again.Tags[0].ID, tag)
	equal(t, "existing club", again.Clubs[0].ID, club)
	equal(t, "existing manager", again.ManagerID.ID, manager)
	join := k.memberships(t, g, again.ID, 1)[0]
	isNew("further membership", join.ID)
	equal(t, "further membership", join.ClubID, club)

	// Append.
	must(t, g.Model(grace).Association("Orders").Append(&order{Item: "later"}))
	isNew("later order", again.Orders[0].ID)
	equal(t, "later order's person", again.Orders[0].PersonID, again.ID)
	must(t, g.Model(grace).Association("Friends").Append(named("Later"), ada))
	isNew("later friend", again.Friends[0].ID)
	equal(t, "friends", g.Model(grace).Association("Friends").Count(), 2)
}

// A key that refers to another row is never generated.
func (k *Kind) sharedKey(t *testing.T, g *database) {
	a := account{Owner: &owner{Name: "Ada"}}
	must(t, g.Create(&a).Error)
	if a.OwnerID != a.Owner.ID || a.OwnerID.IsZero() {
		t.Errorf("got account %v of owner %v, want the same ID", a.OwnerID, a.Owner.ID)
	}
	b := account{}
	if err := g.Create(&b).Error; err == nil || !b.OwnerID.IsZero() {
		t.Errorf("account without an owner: got ID %v, %v, want no ID and an error of the foreign key", b.OwnerID, err)
	}

	o := owner{Name: "Grace", Profile: &profile{Notes: "admiral"}}
	must(t, g.Create(&o).Error)
	if o.Profile.ID != o.ID || o.ID.IsZero() {
		t.Errorf("got profile %v of owner %v, want the same ID", o.Profile.ID, o.ID)
	}
	p := profile{Notes: "of nobody"}
	if err := g.Create(&p).Error; !errors.Is(err, gorm.ErrPrimaryKeyRequired) || !p.ID.IsZero() {
		t.Errorf("profile without an owner: got ID %v, %v, want no ID and %v", p.ID, err, gorm.ErrPrimaryKeyRequired)
	}

	plucks(t, "accounts", g.Table("accounts"), "owner_id", a.OwnerID)
	plucks(t, "profiles", g.Table("profiles"), "id", o.ID)
}

// Updates and Save with FullSaveAssociations save new and existing associations.
func (k *Kind) saveAssociations(t *testing.T, g *database) {
	ada := newGraph()
	must(t, g.Create(ada).Error)
	a := ada
	// saved checks that the only row with a name, or another column, has the ID of a struct.
	saved := func(table, name string, id ID) {
		t.Helper()
		if plucks(t, table, g.Table(table).Where(name), "id", id); id.IsZero() {
			t.Errorf("%s, %s: no ID", table, name)
		}
	}

	// Existing associations are updated with FullSaveAssociations, new ones created.
	engines, first, tagged := a.Company.ID, a.Orders[0].ID, a.Tags[0].ID
	a.Company.Name, a.Orders[0].Item, a.Tags[0].Name = "Renamed", "renamed", "renamed"
	a.Orders = append(a.Orders, order{Item: "new", Pictures: []picture{{File: "new.png"}}})
	a.Tags = append(a.Tags, &tag{Name: "new"})
	a.Clubs = append(a.Clubs, &club{Name: "new"})
	a.Team = append(a.Team, named("new"))
	must(t, g.Session(&gorm.Session{FullSaveAssociations: true}).Updates(ada).Error)
	saved("companies", "name = 'Renamed'", engines)
	saved("orders", "item = 'renamed'", first)
	saved("tags", "name = 'renamed'", tagged)
	equal(t, "existing IDs", []ID{a.Company.ID, a.Orders[0].ID, a.Tags[0].ID}, []ID{engines, first, tagged})
	saved("orders", "item = 'new'", a.Orders[2].ID)
	saved("people", "id = (select person_id from orders where item = 'new')", a.ID)
	saved("pictures", "file = 'new.png'", a.Orders[2].Pictures[0].ID)
	saved("tags", "name = 'new'", a.Tags[2].ID)
	saved("clubs", "name = 'new'", a.Clubs[1].ID)
	saved("people", "name = 'new'", a.Team[2].ID)
	k.memberships(t, g, a.ID, 2)

	// Save does the same for a new row.
	grace := newPerson(fields{Name: "Grace", Company: a.Company, Orders: []order{{Item: "of Grace"}}, Clubs: a.Clubs})
	a.Company.Name = "Renamed again"
	must(t, g.Session(&gorm.Session{FullSaveAssociations: true}).Save(grace).Error)
	b := grace
	saved("companies", "name = 'Renamed again'", engines)
	saved("people", "name = 'Grace'", b.ID)
	saved("orders", "item = 'of Grace'", b.Orders[0].ID)
	k.memberships(t, g, b.ID, 2)
}

// sharedAssociations saves rows that refer to the same new row by pointer. It is inserted once.
func (k *Kind) sharedAssociations(t *testing.T, g *database) {
	for i, save := range []func(people []*person) error{
		func(people []*person) error { return g.Create(people).Error },
		func(people []*person) error { return g.Save(people).Error },
		func(people []*person) error {
			return g.Session(&gorm.Session{FullSaveAssociations: true}).Save(people).Error
		},
		func(people []*person) error {
			boss := newPerson(fields{Name: "boss"})
			boss.Team = people
			return g.Create(boss).Error
		},
	} {
		firm, t1, t2, c, friend := &company{Name: "shared"}, &tag{Name: "shared"}, &tag{Name: "shared"}, &club{Name: "shared"}, named("shared")
		people := []*person{
			newPerson(fields{Name: "sharing", Company: firm, Tags: []*tag{t1, t2}, Clubs: []*club{c}, Friends: []*person{friend}}),
			newPerson(fields{Name: "sharing", Company: firm, Tags: []*tag{t2, t1}, Clubs: []*club{c}, Friends: []*person{friend}}),
		}
		must(t, save(people))
		counts(t, g, "companies where name = 'shared'", i+1)
		counts(t, g, "tags where name = 'shared'", 2*(i+1))
		counts(t, g, "clubs where name = 'shared'", i+1)
		counts(t, g, "people where name = 'shared'", i+1)
		counts(t, g, "people p join companies c on c.id = p.company_id where p.name = 'sharing' and c.name = 'shared'", 2*(i+1))
		counts(t, g, "person_tags j join people p on p.id = j.person_id where p.name = 'sharing'", 4*(i+1))
		for _, p := range people {
			equal(t, "company of a shared pointer", *p.CompanyID, firm.ID)
			equal(t, "shared club", k.memberships(t, g, p.ID, 1)[0].ClubID, c.ID)
			equal(t, "shared tags", g.Model(p).Association("Tags").Count(), 2)
			equal(t, "shared friend", g.Model(p).Association("Friends").Count(), 1)
		}
	}
}

// memberships returns a person's memberships, after it checked their number and IDs.
func (k *Kind) memberships(t *testing.T, g *database, person ID, want int) (joins []membership) {
	t.Helper()
	must(t, g.Find(&joins, "person_id = ?", person).Error)
	if len(joins) != want || slices.ContainsFunc(joins, func(j membership) bool { return j.ID.IsZero() }) {
		t.Fatalf("got memberships %+v, want %d with IDs", joins, want)
	}
	return joins
}

// Association finds, counts, replaces and deletes associations by their IDs.
func (k *Kind) associations(t *testing.T, g *database) {
	ada, grace := newGraph(), newGraph() // Grace's associations must not change
	must(t, g.Create([]*person{ada, grace}).Error)
	a, o := ada, grace
	of := func(name string) *association { return g.Model(ada).Association(name) }
	for name, want := range map[string]int64{"Company": 1, "Passport": 1, "Orders": 2, "Pictures": 2, "Detail": 1, "Manager": 1, "Team": 2, "Tags": 2, "Clubs": 1, "Friends": 2} {
		equal(t, name, of(name).Count(), want)
		equal(t, name+" of both", g.Model([]*person{ada, grace}).Association(name).Count(), 2*want)
	}
	var (
		orders  []order
		friends []*person
		tags    []tag
		firm    company
	)
	must(t, of("Orders").Find(&orders, "id = ?", a.Orders[1].ID))
	must(t, of("Friends").Find(&friends))
	must(t, of("Tags").Find(&tags, []ID{a.Tags[0].ID, o.Tags[0].ID}))
	must(t, of("Company").Find(&firm))
	equal(t, "Find", []any{orders, len(friends), tags, firm}, []any{a.Orders[1:], 2, []tag{*a.Tags[0]}, *a.Company})

	// Belongs to.
	fresh := company{Name: "fresh"}
	must(t, of("Company").Replace(&fresh))
	if fresh.ID.IsZero() || *a.CompanyID != fresh.ID {
		t.Errorf("Replace of the company: got %v and %v", fresh.ID, a.CompanyID)
	}
	counts(t, g, "people p join companies c on c.id = p.company_id where p.name = 'Ada' and c.name = 'fresh'", 1)
	must(t, of("Company").Delete(&fresh))
	counts(t, g, "people where name = 'Ada' and company_id is null", 1)
	must(t, of("Manager").Clear())
	counts(t, g, "people where name = 'Ada' and manager_id is null", 1)
	counts(t, g, "people where name = 'Ada' and company_id is not null and manager_id is not null", 1)

	// Has one and has many. Removed rows stay, with a NULL foreign key.
	must(t, of("Passport").Replace(&passport{Number: "fresh"}))
	if a.Passport.ID.IsZero() || a.Passport.PersonID != a.ID {
		t.Errorf("Replace of the passport: got %+v", a.Passport)
	}
	counts(t, g, "passports where person_id is null", 1)
	brass := a.Orders[1]
	must(t, of("Orders").Delete(&order{ID: brass.ID}))
	if len(a.Orders) != 1 || a.Orders[0].ID == brass.ID {
		t.Errorf("Delete of an order: left %v", a.Orders)
	}
	counts(t, g, "orders where person_id is null and item = 'brass'", 1)
	finds(t, "removed order", g.Where("id = ?", brass.ID), order{ID: brass.ID, Item: "brass"})
	must(t, of("Orders").Replace([]order{{Item: "silk"}, {ID: brass.ID, Item: "brass"}}))
	if len(a.Orders) != 2 || a.Orders[0].ID.IsZero() || a.Orders[1].ID != brass.ID || a.Orders[0].PersonID != a.ID || a.Orders[1].PersonID != a.ID {
		t.Errorf("Replace of the orders: got %+v", a.Orders)
	}
	counts(t, g, "orders where person_id is null and item = 'cards'", 1)
	must(t, of("Pictures").Unscoped().Delete(a.Pictures[:1]))
	must(t, of("Orders").Unscoped().Clear())
	must(t, of("Team").Clear())
	counts(t, g, "people where manager_id is null and name in ('Luigi', 'Mary')", 2)
	// Grace has 3 orders and 3 pictures, one of them of an order. The cards have no person.
	counts(t, g, "orders", 3+1+1)
	counts(t, g, "pictures", 3+2)

	// Many to many.
	poet := a.Tags[1]
	must(t, of("Tags").Delete(&tag{ID: a.Tags[0].ID}))
	must(t, of("Tags").Append(&tag{Name: "third"}, o.Tags[0]))
	if len(a.Tags) != 3 || a.Tags[0].ID != poet.ID || a.Tags[1].ID.IsZero() {
		t.Errorf("Append of tags: got %v", a.Tags)
	}
	must(t, of("Tags").Replace(poet))
	must(t, of("Clubs").Replace(&club{Name: "new"}, o.Clubs[0]))
	must(t, of("Friends").Clear())
	equal(t, "tags, clubs and friends that are left", [3]int64{of("Tags").Count(), of("Clubs").Count(), of("Friends").Count()}, [3]int64{1, 2, 0})
	counts(t, g, "person_tags", 2+1)
	counts(t, g, "memberships", 1+2)
	counts(t, g, "friendships", 2)
	counts(t, g, "tags", 5)
	var ids []ID
	must(t, g.Model(&membership{}).Pluck("id", &ids).Error)
	slices.SortFunc(ids, ID.Compare)
	if ids = slices.Compact(ids); len(ids) != 3 || slices.Contains(ids, ID{}) {
		t.Errorf("IDs of memberships = %v, want 3", ids)
	}

	// Append gives IDs to new rows in every kind of association.
	image, pass, grown := picture{File: "new"}, passport{Number: "new"}, club{Name: "grown"}
	for name, row := range map[string]any{
		"Orders": map[string]any{"item": "new"}, "Pictures": &image, "Passport": &pass, "Clubs": &grown, "Friends": named("new"), "Manager": named("chief"),
	} {
		must(t, g.Model(grace).Association(name).Append(row))
	}
	for _, row := range []string{
		"orders j on j.person_id = p.id and j.item = 'new'", "pictures j on j.owner_id = p.id and j.owner_type = 'people' and j.file = 'new'",
		"passports j on j.person_id = p.id and j.number = 'new'", "people j on j.id = p.manager_id and j.name = 'chief'",
		"memberships j on j.person_id = p.id join clubs c on c.id = j.club_id and c.name = 'grown'",
		"friendships j on j.person_id = p.id join people f on f.id = j.friend_id and f.name = 'new'",
	} {
		counts(t, g, "people p join "+row, 1)
	}
	for row, want := range map[string]ID{"pictures where file = 'new'": image.ID, "passports where number = 'new'": pass.ID, "clubs where name = 'grown'": grown.ID} {
		plucks(t, row, g.Raw("select id from "+row), "id", want)
	}
	for _, table := range []string{"orders", "pictures", "passports", "people", "clubs", "memberships"} {
		plucks[ID](t, "rows of "+table+" without an ID", g.Table(table).Where("id = ?", ID{}), "id")
	}
}

// Updates set foreign keys, also to NULL.
func (k *Kind) changes(t *testing.T, g *database) {
	one, two := company{Name: "one"}, company{Name: "two"}
	must(t, g.Create([]*company{&one, &two}).Error)
	boss, next := named("boss"), named("next")
	must(t, g.Create([]*person{boss, next}).Error)
	b, n := boss.ID, next.ID

	type change struct {
		do               func(ada *person, tx *database) *database
		company, manager ID // zero means NULL
	}
	updates := func(values any) func(*person, *database) *database {
		return func(_ *person, tx *database) *database { return tx.Updates(values) }
	}
	var null ID
	for name, c := range map[string]change{
		"struct":            {updates(newPerson(fields{CompanyID: &two.ID, ManagerID: sqltypes.OptionalOf(n)})), two.ID, n},
		"struct with zeros": {updates(newPerson(fields{Name: "x"})), one.ID, b},
		"selected zeros": {func(_ *person, tx *database) *database {
			return tx.Select("CompanyID", "ManagerID").Updates(&person{})
		}, null, null},
		"map":                 {updates(map[string]any{"company_id": two.ID, "manager_id": n}), two.ID, n},
		"map of pointers":     {updates(map[string]any{"company_id": &two.ID, "manager_id": &n}), two.ID, n},
		"map of wrapped IDs":  {updates(map[string]any{"CompanyID": sql.Null[ID]{V: two.ID, Valid: true}, "ManagerID": sqltypes.OptionalOf(n)}), two.ID, n},
		"map of nil":          {updates(map[string]any{"company_id": nil, "manager_id": nil}), null, null},
		"map of nil pointers": {updates(map[string]any{"company_id": (*ID)(nil), "manager_id": (*ID)(nil)}), null, null},
		"map of wrapped NULL": {updates(map[string]any{"company_id": sql.Null[ID]{}, "manager_id": sqltypes.Optional[ID]{}}), null, null},
		"Update":              {func(_ *person, tx *database) *database { return tx.Update("company_id", two.ID) }, two.ID, b},
		"Update, nil":         {func(_ *person, tx *database) *database { return tx.Update("company_id", (*ID)(nil)) }, null, b},
		"UpdateColumn":        {func(_ *person, tx *database) *database { return tx.UpdateColumn("manager_id", sqltypes.OptionalOf(n)) }, one.ID, n},
		"UpdateColumns": {func(_ *person, tx *database) *database {
			return tx.UpdateColumns(newPerson(fields{CompanyID: &two.ID}))
		}, two.ID, b},
		"expression": {func(_ *person, tx *database) *database {
			return tx.Update("manager_id", gorm.Expr("CASE WHEN manager_id = ? THEN ? ELSE manager_id END", b, n))
		}, one.ID, n},
		"subquery": {func(_ *person, tx *database) *database {
			return tx.Update("company_id", g.Model(&company{}).Select("id").Where("id = ?", two.ID))
		}, two.ID, b},
		"Save": {func(ada *person, _ *database) *database {
			ada.CompanyID, ada.ManagerID = nil, sqltypes.OptionalOf(n)
			return g.Save(ada)
		}, null, n},
		"Save of associations": {func(ada *person, _ *database) *database {
			ada.Company, ada.Manager = &two, next
			return g.Save(ada)
		}, two.ID, n},
	} {
		// Use separate variables, because GORM writes through the pointer of a foreign key.
		first, second := one.ID, one.ID
		ada := newPerson(fields{Name: "Ada", CompanyID: &first, ManagerID: sqltypes.OptionalOf(b)})
		bob := newPerson(fields{Name: "Bob", CompanyID: &second, ManagerID: sqltypes.OptionalOf(b)})
		must(t, g.Create([]*person{ada, bob}).Error)
		id := ada.ID
		affects(t, name, c.do(ada, g.Model(personBy(id))), 1)
		for who, want := range map[ID]change{id: c, bob.ID: {company: one.ID, manager: b}} {
			row := g.Model(&person{}).Where("id = ?", who).Session(&gorm.Session{})
			plucks(t, name, row, "company_id", sql.Null[ID]{V: want.company, Valid: !want.company.IsZero()})
			plucks(t, name, row, "manager_id", sql.Null[ID]{V: want.manager, Valid: !want.manager.IsZero()})
		}
		equal(t, name, ada.ID, id)
		must(t, g.Delete([]*person{ada, bob}).Error)
	}
}

// A subscriber has a serial key, a public ID, and a number from a named generator. A ticket
// number is an integer type without the methods of an ID.
type (
	subscriber struct {
		ID       uint
		PublicID typedSno                  `gorm:"idgen;uniqueIndex;not null"`
		Ticket   ticket                    `gorm:"idgen:tickets;not null"`
		Code     sqltypes.Text[idtype.Sno] `gorm:"idgen;not null"`
		Email    string                    `gorm:"unique"`
		Name     string
		Readings []reading `gorm:"foreignKey:OwnerID;references:PublicID"`
	}
	reading struct {
		ID      ticket
		OwnerID typedSno
	}
	// A bill refers to subscribers.
	bill struct {
		ID       ticket
		PayerID  *uint
		Payer    *subscriber
		Watchers []*subscriber `gorm:"many2many:watchers"`
	}
	ticket int64
)

// GormDataType keeps GORM from declaring a key as bigserial.
func (ticket) GormDataType() string { return "bigint" }

// The plugin fills a public ID beside a serial key, and the structs get the IDs of the
// stored rows.
func publicIDs(t *testing.T, g *database) {
	gen := must1(t, idtest.Snowflake.NewGenerator)
	tickets := idtype.MapGenerator(gen, func(id idtype.Snowflake) ticket { return ticket(id) })
	g.use(t, gormplugin.For(must1(t, idtest.Sno.NewGenerator)), gormplugin.For(tickets), gormplugin.Named("tickets", tickets))
	models := []any{&subscriber{}, &reading{}, &bill{}}
	must(t, g.AutoMigrate(models...))
	if isPostgres(g) {
		checkColumns(t, g, map[string]map[string]string{"subscribers": {"public_id": "uuid", "ticket": "bigint", "code": "text"}, "readings": {"id": "bigint"}})
		equal(t, "the second AutoMigrate", alterations(t, g, models...), nil)
	}

	a := subscriber{Email: "a", Name: "a", Readings: []reading{{}, {}}}
	must(t, g.Create(&a).Error)
	if a.ID == 0 || a.PublicID.IsZero() || a.PublicID.Untyped().Meta() != 'c' || a.Ticket == 0 || a.Code.IsZero() || a.Readings[1].ID == 0 || a.Readings[1].OwnerID != a.PublicID {
		t.Errorf("created %+v", a)
	}
	batch := []subscriber{{Email: "b"}, {Email: "c"}, {Email: "d"}}
	must(t, g.CreateInBatches(&batch, 2).Error)
	checkStored(t, g, append(batch, a)...)
	m := map[string]any{"email": "m"}
	must(t, g.Model(&subscriber{}).Create(m).Error)
	var ofMap subscriber
	must(t, g.First(&ofMap, "email = 'm'").Error)
	equal(t, "from a map", []any{ofMap.PublicID, ofMap.Ticket}, []any{m["public_id"], m["ticket"]})

	// An upsert leaves the public ID of the existing row, and the struct gets it.
	onEmail := []clause.Column{{Name: "email"}}
	again := []subscriber{{Email: "a", Name: "again"}, {Email: "e", Name: "new"}}
	must(t, g.Clauses(clause.OnConflict{Columns: onEmail, UpdateAll: true}).Create(&again).Error)
	equal(t, "upsert", again[0], subscriber{ID: a.ID, PublicID: a.PublicID, Ticket: a.Ticket, Code: a.Code, Email: "a", Name: "again"})
	checkStored(t, g, again...)
	one := subscriber{Email: "a", Name: "third"}
	must(t, g.Clauses(clause.OnConflict{Columns: onEmail, DoUpdates: clause.AssignmentColumns([]string{"name"})}).Create(&one).Error)
	equal(t, "upsert", one.PublicID, a.PublicID)
	checkStored(t, g, one)
	skipped := subscriber{Email: "a"}
	must(t, g.Clauses(clause.OnConflict{DoNothing: true}).Create(&skipped).Error)
	equal(t, "DO NOTHING", skipped, subscriber{Email: "a"})

	// Save updates a row by its serial key, and a slice by an upsert.
	one.Name = "saved"
	must(t, g.Save(&one).Error)
	rows := []subscriber{one, {Email: "f"}}
	rows[0].Name = "saved again"
	must(t, g.Save(&rows).Error)
	equal(t, "Save", rows[0].PublicID, a.PublicID)
	checkStored(t, g, rows...)
	must(t, g.Model(&subscriber{ID: one.ID}).Updates(subscriber{Name: "updated"}).Error)
	one.Name = "updated"
	checkStored(t, g, one)
	plucks(t, "by the public ID", g.Model(&subscriber{}).Where("public_id = ?", a.PublicID), "name", "updated")
	// An update stores zero, and generates no ID.
	must(t, g.Model(&subscriber{ID: one.ID}).Update("ticket", 0).Error)
	one.Ticket = 0
	checkStored(t, g, one)
	must(t, g.Model(&subscriber{ID: one.ID}).Update("ticket", 7).Error)
	must(t, g.Model(&subscriber{ID: one.ID}).Select("Code", "Ticket").Updates(subscriber{}).Error)
	one.Code = sqltypes.Text[idtype.Sno]{}
	checkStored(t, g, one)
	referredRows(t, g)
}

// A struct that refers to an existing row by its key gets no other public IDs, so that an update of
// the struct leaves the row's.
func referredRows(t *testing.T, g *database) {
	old := []subscriber{{Email: "r0"}, {Email: "r1"}}
	must(t, g.Create(&old).Error)
	by := func(i int) *subscriber { return &subscriber{ID: old[i].ID} }
	where := condition("subscribers.name <> 'nobody'")
	for name, refer := range map[string]func(rows []*subscriber) error{
		"belongs-to": func(rows []*subscriber) error {
			var bills []bill
			for _, row := range rows {
				bills = append(bills, bill{Payer: row})
			}
			return g.Create(&bills).Error
		},
		"many2many": func(rows []*subscriber) error { return g.Create(&bill{Watchers: rows}).Error },
		"Append": func(rows []*subscriber) error {
			var b bill
			must(t, g.Create(&b).Error)
			return g.Model(&b).Association("Watchers").Append(rows)
		},
		"DO NOTHING": func(rows []*subscriber) error {
			return g.Clauses(clause.OnConflict{DoNothing: true}).Create(rows).Error
		},
		"DO UPDATE, condition": func(rows []*subscriber) error {
			return g.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"name"}), Where: where}).Create(rows).Error
		},
	} {
		newRow := &subscriber{Email: "new, " + name}
		for _, rows := range [][]*subscriber{{by(0)}, {by(0), by(1)}, {by(1), newRow, by(0)}, {by(1), by(0), {Email: "last, " + name}}} {
			must(t, refer(rows))
			for i := range old {
				for _, row := range rows {
					if row.ID == old[i].ID {
						old[i].Name = name
						must(t, g.Model(row).Updates(subscriber{PublicID: row.PublicID, Ticket: row.Ticket, Code: row.Code, Name: name}).Error)
					}
				}
			}
			checkStored(t, g, old...)
		}
		plucks(t, name, g.Model(&subscriber{}).Where("email = ?", newRow.Email), "public_id", newRow.PublicID)
	}
	// A row that is not there yet keeps its public IDs.
	first := &subscriber{ID: old[1].ID + 1000, Email: "first"}
	must(t, g.Create(&bill{Payer: first}).Error)
	checkStored(t, g, *first)
}

// checkStored checks that the table has the rows.
func checkStored(t *testing.T, g *database, rows ...subscriber) {
	t.Helper()
	for _, want := range rows {
		want.Readings = nil
		finds(t, "stored", g.Where("id = ?", want.ID), want)
	}
}
