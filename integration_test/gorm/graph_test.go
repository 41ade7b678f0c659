package gorm

import (
	"database/sql"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/sqltypes"
)

// All associations of a graph get IDs. The foreign keys match the IDs, in the structs and
// in the rows.
func (k peopleOf[T, N]) graph(t *testing.T, g *gorm.DB) {
	ada := k.newGraph()
	must(t, g.Create(ada).Error)
	a := k.in(ada)

	// The structs.
	seen := map[T]string{}
	isNew := func(what string, id T) {
		t.Helper()
		if id.IsZero() || seen[id] != "" {
			t.Errorf("%s: got ID %v, want a new one; the ID is used by: %q", what, id, seen[id])
		}
		seen[id] = what
	}
	same := func(what string, got, want T) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
	isNew("person", a.ID)
	isNew("company", a.Company.ID)
	same("belongs to", *a.CompanyID, a.Company.ID)
	isNew("passport", a.Passport.ID)
	same("has one", a.Passport.PersonID, a.ID)
	for _, o := range a.Orders {
		isNew("order "+o.Item, o.ID)
		same("has many", o.PersonID, a.ID)
	}
	isNew("nested picture", a.Orders[0].Pictures[0].ID)
	same("nested polymorphic", a.Orders[0].Pictures[0].OwnerID, a.Orders[0].ID)
	for _, p := range a.Pictures {
		isNew("picture "+p.File, p.ID)
		same("polymorphic", p.OwnerID, a.ID)
	}
	same("shared key", a.Detail.ID, a.ID)
	manager := k.in(a.Manager).ID
	isNew("manager", manager)
	same("belongs to its own kind", a.ManagerID.ID, manager)
	for i := range a.Team {
		p := k.in(&a.Team[i])
		isNew("team "+p.Name, p.ID)
		same("has many of its own kind", p.ManagerID.ID, a.ID)
	}
	luigi := k.in(&a.Team[0])
	isNew("order of the team", luigi.Orders[0].ID)
	same("has many of the team", luigi.Orders[0].PersonID, luigi.ID)
	for _, v := range a.Tags {
		isNew("tag "+v.Name, v.ID)
	}
	isNew("club", a.Clubs[0].ID)
	for _, n := range a.Friends {
		p := k.in(n)
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
		var got int
		must(t, g.Raw("select count(*) from "+query).Scan(&got).Error)
		if got != want {
			t.Errorf("%s: got %d rows, want %d", query, got, want)
		}
	}
	var joins []membership[T]
	must(t, g.Find(&joins).Error)
	if len(joins) != 1 {
		t.Fatalf("got %d memberships, want 1", len(joins))
	}
	isNew("membership", joins[0].ID)

	// Existing rows keep their IDs if they are saved again, and each new row of the join
	// table gets an ID.
	grace := k.newPerson(Person[T, N]{Name: "Grace", Company: a.Company, Tags: a.Tags[:1], Clubs: a.Clubs, Manager: ada})
	company, tag, club := a.Company.ID, a.Tags[0].ID, a.Clubs[0].ID
	manager = a.ID
	must(t, g.Create(grace).Error)
	again := k.in(grace)
	isNew("further person", again.ID)
	same("existing company", *again.CompanyID, company)
	same("existing company's struct", again.Company.ID, company)
	same("existing tag", again.Tags[0].ID, tag)
	same("existing club", again.Clubs[0].ID, club)
	same("existing manager", again.ManagerID.ID, manager)
	must(t, g.Where("person_id = ?", again.ID).Find(&joins).Error)
	if len(joins) != 1 || joins[0].ClubID != club {
		t.Fatalf("got memberships %v, want one of club %v", joins, club)
	}
	isNew("further membership", joins[0].ID)

	// Append.
	must(t, g.Model(grace).Association("Orders").Append(&order[T]{Item: "later"}))
	isNew("later order", again.Orders[0].ID)
	same("later order's person", again.Orders[0].PersonID, again.ID)
	must(t, g.Model(grace).Association("Friends").Append(k.named("Later"), ada))
	isNew("later friend", k.in(again.Friends[0]).ID)
	if n := g.Model(grace).Association("Friends").Count(); n != 2 {
		t.Errorf("got %d friends, want 2", n)
	}
}

// A key that refers to another row is never generated.
func (k of[T]) sharedKey(t *testing.T, g *gorm.DB) {
	a := account[T]{Owner: &owner[T]{Name: "Ada"}}
	must(t, g.Create(&a).Error)
	if a.OwnerID != a.Owner.ID || a.OwnerID.IsZero() {
		t.Errorf("got account %v of owner %v, want the same ID", a.OwnerID, a.Owner.ID)
	}
	b := account[T]{}
	if err := g.Create(&b).Error; err == nil || !b.OwnerID.IsZero() {
		t.Errorf("account without an owner: got ID %v, %v, want no ID and an error of the foreign key", b.OwnerID, err)
	}

	o := owner[T]{Name: "Grace", Profile: &profile[T]{Notes: "admiral"}}
	must(t, g.Create(&o).Error)
	if o.Profile.ID != o.ID || o.ID.IsZero() {
		t.Errorf("got profile %v of owner %v, want the same ID", o.Profile.ID, o.ID)
	}
	p := profile[T]{Notes: "of nobody"}
	if err := g.Create(&p).Error; !errors.Is(err, gorm.ErrPrimaryKeyRequired) || !p.ID.IsZero() {
		t.Errorf("profile without an owner: got ID %v, %v, want no ID and %v", p.ID, err, gorm.ErrPrimaryKeyRequired)
	}

	for table, want := range map[string]T{"accounts.owner_id": a.OwnerID, "profiles.id": o.ID} {
		var ids []T
		name, column, _ := strings.Cut(table, ".")
		must(t, g.Table(name).Pluck(column, &ids).Error)
		if len(ids) != 1 || ids[0] != want {
			t.Errorf("%s: got %v, want only %v", table, ids, want)
		}
	}
}

// Updates and Save with FullSaveAssociations save new and existing associations.
func (k peopleOf[T, N]) saveAssociations(t *testing.T, g *gorm.DB) {
	ada := k.newGraph()
	must(t, g.Create(ada).Error)
	a := k.in(ada)
	// rows returns the number of rows of a table with an ID and a name.
	rows := func(table, name string, id T) (n int64) {
		t.Helper()
		must(t, g.Table(table).Where("id = ? and "+name, id).Count(&n).Error)
		return n
	}
	saved := func(what string, n int64, ids ...T) {
		t.Helper()
		for _, id := range ids {
			if id.IsZero() {
				t.Errorf("%s: got no ID", what)
			}
		}
		if n != 1 {
			t.Errorf("%s: got %d rows with the ID of the struct, want 1", what, n)
		}
	}

	// Existing associations are updated with FullSaveAssociations, new ones created.
	engines, first, tagged := a.Company.ID, a.Orders[0].ID, a.Tags[0].ID
	a.Company.Name, a.Orders[0].Item, a.Tags[0].Name = "Renamed", "renamed", "renamed"
	a.Orders = append(a.Orders, order[T]{Item: "new", Pictures: []picture[T]{{File: "new.png"}}})
	a.Tags = append(a.Tags, &tag[T]{Name: "new"})
	a.Clubs = append(a.Clubs, &club[T]{Name: "new"})
	a.Team = append(a.Team, *k.named("new"))
	must(t, g.Session(&gorm.Session{FullSaveAssociations: true}).Updates(ada).Error)
	if a.Company.ID != engines || a.Orders[0].ID != first || a.Tags[0].ID != tagged {
		t.Errorf("existing IDs became %v, %v, %v", a.Company.ID, a.Orders[0].ID, a.Tags[0].ID)
	}
	saved("company", rows("companies", "name = 'Renamed'", engines))
	saved("order", rows("orders", "item = 'renamed'", first))
	saved("tag", rows("tags", "name = 'renamed'", tagged))
	saved("new order", rows("orders", "item = 'new'", a.Orders[2].ID), a.Orders[2].ID)
	saved("its person", rows("people", "id = (select person_id from orders where item = 'new')", a.ID))
	saved("new nested picture", rows("pictures", "file = 'new.png'", a.Orders[2].Pictures[0].ID), a.Orders[2].Pictures[0].ID)
	saved("new tag", rows("tags", "name = 'new'", a.Tags[2].ID), a.Tags[2].ID)
	saved("new club", rows("clubs", "name = 'new'", a.Clubs[1].ID), a.Clubs[1].ID)
	saved("new in the team", rows("people", "name = 'new'", k.in(&a.Team[2]).ID), k.in(&a.Team[2]).ID)
	k.memberships(t, g, a.ID, 2)

	// Save does the same for a new row.
	grace := k.newPerson(Person[T, N]{Name: "Grace", Company: a.Company, Orders: []order[T]{{Item: "of Grace"}}, Clubs: a.Clubs})
	a.Company.Name = "Renamed again"
	must(t, g.Session(&gorm.Session{FullSaveAssociations: true}).Save(grace).Error)
	b := k.in(grace)
	saved("company", rows("companies", "name = 'Renamed again'", engines))
	saved("person", rows("people", "name = 'Grace'", b.ID), b.ID)
	saved("order of a new person", rows("orders", "item = 'of Grace'", b.Orders[0].ID), b.Orders[0].ID)
	k.memberships(t, g, b.ID, 2)
}

// memberships checks the number of a person's memberships, and that each has an ID.
func (k of[T]) memberships(t *testing.T, g *gorm.DB, person T, want int) {
	t.Helper()
	var joins []membership[T]
	must(t, g.Find(&joins, "person_id = ?", person).Error)
	if len(joins) != want {
		t.Errorf("got %d memberships, want %d", len(joins), want)
	}
	for _, j := range joins {
		if j.ID.IsZero() {
			t.Errorf("membership %+v has no ID", j)
		}
	}
}

// Association finds, counts, replaces and deletes associations by their IDs.
func (k peopleOf[T, N]) associations(t *testing.T, g *gorm.DB) {
	ada, grace := k.newGraph(), k.newGraph() // Grace's associations must not change
	must(t, g.Create([]*N{ada, grace}).Error)
	a, o := k.in(ada), k.in(grace)
	of := func(name string) *gorm.Association { return g.Model(ada).Association(name) }
	count := func(what, from string, want int) {
		t.Helper()
		var got int
		must(t, g.Raw("select count(*) from "+from).Scan(&got).Error)
		if got != want {
			t.Errorf("%s: got %d rows of %s, want %d", what, got, from, want)
		}
	}

	for name, want := range map[string]int64{"Company": 1, "Passport": 1, "Orders": 2, "Pictures": 2, "Detail": 1, "Manager": 1, "Team": 2, "Tags": 2, "Clubs": 1, "Friends": 2} {
		if got := of(name).Count(); got != want {
			t.Errorf("Count of %s: got %d, want %d", name, got, want)
		}
		if got := g.Model([]*N{ada, grace}).Association(name).Count(); got != 2*want {
			t.Errorf("Count of both's %s: got %d, want %d", name, got, 2*want)
		}
	}
	var (
		orders  []order[T]
		friends []N
		tags    []tag[T]
		firm    company[T]
	)
	if err := of("Orders").Find(&orders, "id = ?", a.Orders[1].ID); err != nil || len(orders) != 1 || orders[0].ID != a.Orders[1].ID {
		t.Errorf("Find of orders: got %v, %v", orders, err)
	}
	if err := of("Friends").Find(&friends); err != nil || len(friends) != 2 {
		t.Errorf("Find of friends: got %v, %v", friends, err)
	}
	if err := of("Tags").Find(&tags, []T{a.Tags[0].ID, o.Tags[0].ID}); err != nil || len(tags) != 1 || tags[0].ID != a.Tags[0].ID {
		t.Errorf("Find of tags: got %v, %v", tags, err)
	}
	if err := of("Company").Find(&firm); err != nil || firm.ID != a.Company.ID {
		t.Errorf("Find of the company: got %v, %v", firm, err)
	}

	// Belongs to.
	fresh := company[T]{Name: "fresh"}
	must(t, of("Company").Replace(&fresh))
	if fresh.ID.IsZero() || *a.CompanyID != fresh.ID {
		t.Errorf("Replace of the company: got %v and %v", fresh.ID, a.CompanyID)
	}
	count("Replace", "people p join companies c on c.id = p.company_id where p.name = 'Ada' and c.name = 'fresh'", 1)
	must(t, of("Company").Delete(&fresh))
	count("Delete", "people where name = 'Ada' and company_id is null", 1)
	must(t, of("Manager").Clear())
	count("Clear", "people where name = 'Ada' and manager_id is null", 1)
	count("Clear", "people where name = 'Ada' and company_id is not null and manager_id is not null", 1)

	// Has one and has many. Removed rows stay, with a NULL foreign key.
	must(t, of("Passport").Replace(&passport[T]{Number: "fresh"}))
	if a.Passport.ID.IsZero() || a.Passport.PersonID != a.ID {
		t.Errorf("Replace of the passport: got %+v", a.Passport)
	}
	count("Replace", "passports where person_id is null", 1)
	brass := a.Orders[1]
	must(t, of("Orders").Delete(&order[T]{ID: brass.ID}))
	if len(a.Orders) != 1 || a.Orders[0].ID == brass.ID {
		t.Errorf("Delete of an order: left %v", a.Orders)
	}
	count("Delete", "orders where person_id is null and item = 'brass'", 1)
	var gone order[T]
	if err := g.First(&gone, brass.ID).Error; err != nil || !gone.PersonID.IsZero() {
		t.Errorf("removed order: got %+v, %v, want no person", gone, err)
	}
	must(t, of("Orders").Replace([]order[T]{{Item: "silk"}, {ID: brass.ID, Item: "brass"}}))
	if len(a.Orders) != 2 || a.Orders[0].ID.IsZero() || a.Orders[1].ID != brass.ID || a.Orders[0].PersonID != a.ID || a.Orders[1].PersonID != a.ID {
		t.Errorf("Replace of the orders: got %+v", a.Orders)
	}
	count("Replace", "orders where person_id is null and item = 'cards'", 1)
	must(t, of("Pictures").Unscoped().Delete(a.Pictures[:1]))
	must(t, of("Orders").Unscoped().Clear())
	must(t, of("Team").Clear())
	count("Clear", "people where manager_id is null and name in ('Luigi', 'Mary')", 2)
	// Grace has 3 orders and 3 pictures, one of them of an order. The cards have no person.
	count("Unscoped", "orders", 3+1+1)
	count("Unscoped", "pictures", 3+2)

	// Many to many.
	poet := a.Tags[1]
	must(t, of("Tags").Delete(&tag[T]{ID: a.Tags[0].ID}))
	must(t, of("Tags").Append(&tag[T]{Name: "third"}, o.Tags[0]))
	if len(a.Tags) != 3 || a.Tags[0].ID != poet.ID || a.Tags[1].ID.IsZero() {
		t.Errorf("Append of tags: got %v", a.Tags)
	}
	must(t, of("Tags").Replace(poet))
	must(t, of("Clubs").Replace(&club[T]{Name: "new"}, o.Clubs[0]))
	must(t, of("Friends").Clear())
	for name, want := range map[string]int{"Tags": 1, "Clubs": 2, "Friends": 0} {
		if n := of(name).Count(); n != int64(want) {
			t.Errorf("%s: %d left, want %d", name, n, want)
		}
	}
	count("left", "person_tags", 2+1)
	count("left", "memberships", 1+2)
	count("left", "friendships", 2)
	count("the rows stay", "tags", 5)
	var ids []T
	must(t, g.Model(&membership[T]{}).Pluck("id", &ids).Error)
	slices.SortFunc(ids, T.Compare)
	if ids = slices.Compact(ids); len(ids) != 3 || slices.Contains(ids, *new(T)) {
		t.Errorf("IDs of memberships = %v, want 3", ids)
	}

	// Append gives IDs to new rows in every kind of association.
	image, pass, grown := picture[T]{File: "new"}, passport[T]{Number: "new"}, club[T]{Name: "grown"}
	for name, row := range map[string]any{
		"Orders": map[string]any{"item": "new"}, "Pictures": &image, "Passport": &pass, "Clubs": &grown, "Friends": k.named("new"), "Manager": k.named("chief"),
	} {
		must(t, g.Model(grace).Association(name).Append(row))
	}
	for _, row := range []string{
		"orders j on j.person_id = p.id and j.item = 'new'", "pictures j on j.owner_id = p.id and j.owner_type = 'people' and j.file = 'new'",
		"passports j on j.person_id = p.id and j.number = 'new'", "people j on j.id = p.manager_id and j.name = 'chief'",
		"memberships j on j.person_id = p.id join clubs c on c.id = j.club_id and c.name = 'grown'",
		"friendships j on j.person_id = p.id join people f on f.id = j.friend_id and f.name = 'new'",
	} {
		count("Append", "people p join "+row, 1)
	}
	for row, want := range map[string]T{"pictures where file = 'new'": image.ID, "passports where number = 'new'": pass.ID, "clubs where name = 'grown'": grown.ID} {
		var got []T
		must(t, g.Raw("select id from "+row).Scan(&got).Error)
		if !slices.Equal(got, []T{want}) {
			t.Errorf("Append: %s: IDs = %v, want %v as in the struct", row, got, want)
		}
	}
	for _, table := range []string{"orders", "pictures", "passports", "people", "clubs", "memberships"} {
		var zeros int64
		must(t, g.Table(table).Where("id = ?", *new(T)).Count(&zeros).Error)
		if zeros != 0 {
			t.Errorf("Append: a row of %s has no ID", table)
		}
	}
}

// Updates set foreign keys, also to NULL.
func (k peopleOf[T, N]) changes(t *testing.T, g *gorm.DB) {
	one, two := company[T]{Name: "one"}, company[T]{Name: "two"}
	must(t, g.Create([]*company[T]{&one, &two}).Error)
	boss, next := k.named("boss"), k.named("next")
	must(t, g.Create([]*N{boss, next}).Error)
	b, n := k.in(boss).ID, k.in(next).ID

	type change struct {
		do      func(ada *N, tx *gorm.DB) *gorm.DB
		company *T
		manager T // zero means NULL
	}
	in := k.in
	for name, c := range map[string]change{
		"struct": {func(_ *N, tx *gorm.DB) *gorm.DB {
			return tx.Updates(k.newPerson(Person[T, N]{CompanyID: &two.ID, ManagerID: sqltypes.OptionalOf(n)}))
		}, &two.ID, n},
		"struct with zeros": {func(_ *N, tx *gorm.DB) *gorm.DB {
			return tx.Updates(k.newPerson(Person[T, N]{Name: "x"}))
		}, &one.ID, b},
		"selected zeros": {func(_ *N, tx *gorm.DB) *gorm.DB {
			return tx.Select("CompanyID", "ManagerID").Updates(new(N))
		}, nil, *new(T)},
		"map": {func(_ *N, tx *gorm.DB) *gorm.DB {
			return tx.Updates(map[string]any{"company_id": two.ID, "manager_id": n})
		}, &two.ID, n},
		"map of pointers": {func(_ *N, tx *gorm.DB) *gorm.DB {
			return tx.Updates(map[string]any{"company_id": &two.ID, "manager_id": &n})
		}, &two.ID, n},
		"map of wrapped IDs": {func(_ *N, tx *gorm.DB) *gorm.DB {
			return tx.Updates(map[string]any{"CompanyID": sql.Null[T]{V: two.ID, Valid: true}, "ManagerID": sqltypes.OptionalOf(n)})
		}, &two.ID, n},
		"map of nil": {func(_ *N, tx *gorm.DB) *gorm.DB {
			return tx.Updates(map[string]any{"company_id": nil, "manager_id": nil})
		}, nil, *new(T)},
		"map of nil pointers": {func(_ *N, tx *gorm.DB) *gorm.DB {
			return tx.Updates(map[string]any{"company_id": (*T)(nil), "manager_id": (*T)(nil)})
		}, nil, *new(T)},
		"map of wrapped NULL": {func(_ *N, tx *gorm.DB) *gorm.DB {
			return tx.Updates(map[string]any{"company_id": sql.Null[T]{}, "manager_id": sqltypes.Optional[T]{}})
		}, nil, *new(T)},
		"Update":       {func(_ *N, tx *gorm.DB) *gorm.DB { return tx.Update("company_id", two.ID) }, &two.ID, b},
		"Update, nil":  {func(_ *N, tx *gorm.DB) *gorm.DB { return tx.Update("company_id", (*T)(nil)) }, nil, b},
		"UpdateColumn": {func(_ *N, tx *gorm.DB) *gorm.DB { return tx.UpdateColumn("manager_id", sqltypes.OptionalOf(n)) }, &one.ID, n},
		"UpdateColumns": {func(_ *N, tx *gorm.DB) *gorm.DB {
			return tx.UpdateColumns(k.newPerson(Person[T, N]{CompanyID: &two.ID}))
		}, &two.ID, b},
		"expression": {func(_ *N, tx *gorm.DB) *gorm.DB {
			return tx.Update("manager_id", gorm.Expr("CASE WHEN manager_id = ? THEN ? ELSE manager_id END", b, n))
		}, &one.ID, n},
		"subquery": {func(_ *N, tx *gorm.DB) *gorm.DB {
			return tx.Update("company_id", g.Model(&company[T]{}).Select("id").Where("id = ?", two.ID))
		}, &two.ID, b},
		"Save": {func(ada *N, _ *gorm.DB) *gorm.DB {
			in(ada).CompanyID, in(ada).ManagerID = nil, sqltypes.OptionalOf(n)
			return g.Save(ada)
		}, nil, n},
		"Save of associations": {func(ada *N, _ *gorm.DB) *gorm.DB {
			in(ada).Company, in(ada).Manager = &two, next
			return g.Save(ada)
		}, &two.ID, n},
	} {
		// Use separate variables, because GORM writes through the pointer of a foreign key.
		first, second := one.ID, one.ID
		ada := k.newPerson(Person[T, N]{Name: "Ada", CompanyID: &first, ManagerID: sqltypes.OptionalOf(b)})
		bob := k.newPerson(Person[T, N]{Name: "Bob", CompanyID: &second, ManagerID: sqltypes.OptionalOf(b)})
		must(t, g.Create([]*N{ada, bob}).Error)
		id := in(ada).ID
		if tx := c.do(ada, g.Model(k.byID(id))); tx.Error != nil || tx.RowsAffected != 1 {
			t.Errorf("%s: %d rows, %v", name, tx.RowsAffected, tx.Error)
		}
		for who, want := range map[T]change{id: c, in(bob).ID: {company: &one.ID, manager: b}} {
			q := g.Model(new(N)).Where("id = ?", who)
			if want.company == nil {
				q = q.Where("company_id IS NULL")
			} else {
				q = q.Where("company_id = ?", *want.company)
			}
			if want.manager.IsZero() {
				q = q.Where("manager_id IS NULL")
			} else {
				q = q.Where("manager_id = ?", want.manager)
			}
			var count int64
			if err := q.Count(&count).Error; err != nil || count != 1 {
				row := new(N)
				must(t, g.First(row, who).Error)
				t.Errorf("%s: got %+v, %v, want company %v and manager %v", name, in(row), err, want.company, want.manager)
			}
		}
		if in(ada).ID != id {
			t.Errorf("%s: the ID became %v, want %v", name, in(ada).ID, id)
		}
		must(t, g.Delete([]*N{ada, bob}).Error)
	}
}

// A subscriber has a serial key, a public ID, and a number from a named generator. A ticket
// number is an integer type without the methods of an ID.
type (
	subscriber struct {
		ID       uint
		PublicID typedSno         `gorm:"idgen;uniqueIndex;not null"`
		Ticket   ticket           `gorm:"idgen:tickets;not null"`
		Code     sqltypes.SnoText `gorm:"idgen;not null"`
		Email    string           `gorm:"unique"`
		Name     string
		Readings []reading `gorm:"foreignKey:OwnerID;references:PublicID"`
	}
	reading struct {
		ID      ticket
		OwnerID typedSno
	}
	ticket int64
)

// GormDataType keeps GORM from declaring a key as bigserial.
func (ticket) GormDataType() string { return "bigint" }

// The plugin fills a public ID beside a serial key, and the structs get the IDs of the
// stored rows.
func TestPublicIDs(t *testing.T) {
	onClients(t, wideClients, func(t *testing.T, g *gorm.DB) {
		gen := must1(t, idtest.Snowflake.NewGenerator)
		tickets := idtype.MapGenerator(gen, func(id idtype.Snowflake) ticket { return ticket(id) })
		must(t, g.Use(gormplugin.New(gormplugin.For(must1(t, idtest.Sno.NewGenerator)), gormplugin.For(tickets), gormplugin.Named("tickets", tickets))))
		models := []any{&subscriber{}, &reading{}}
		must(t, g.AutoMigrate(models...))
		if isPostgres(g) {
			checkColumns(t, g, map[string]map[string]string{"subscribers": {"public_id": "uuid", "ticket": "bigint", "code": "text"}, "readings": {"id": "bigint"}})
			r := pgtest.NewRecorder()
			must(t, g.Session(&gorm.Session{Logger: r}).AutoMigrate(models...))
			if got := r.With("ALTER"); len(got) > 0 {
				t.Errorf("the second AutoMigrate issued %q", got)
			}
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
		if must(t, g.First(&ofMap, "email = 'm'").Error); ofMap.PublicID != m["public_id"] || ofMap.Ticket != m["ticket"] {
			t.Errorf("from a map: stored %+v, the map has %v", ofMap, m)
		}

		// An upsert leaves the public ID of the existing row, and the struct gets it.
		onEmail := []clause.Column{{Name: "email"}}
		again := []subscriber{{Email: "a", Name: "again"}, {Email: "e", Name: "new"}}
		must(t, g.Clauses(clause.OnConflict{Columns: onEmail, UpdateAll: true}).Create(&again).Error)
		if again[0].ID != a.ID || again[0].PublicID != a.PublicID || again[0].Ticket != a.Ticket || again[0].Code != a.Code {
			t.Errorf("upsert: got %+v, want the IDs of %+v", again[0], a)
		}
		checkStored(t, g, again...)
		one := subscriber{Email: "a", Name: "third"}
		must(t, g.Clauses(clause.OnConflict{Columns: onEmail, DoUpdates: clause.AssignmentColumns([]string{"name"})}).Create(&one).Error)
		if checkStored(t, g, one); one.PublicID != a.PublicID {
			t.Errorf("upsert: got %+v, want the IDs of %+v", one, a)
		}
		skipped := subscriber{Email: "a"}
		must(t, g.Clauses(clause.OnConflict{DoNothing: true}).Create(&skipped).Error)
		if !reflect.DeepEqual(skipped, subscriber{Email: "a"}) {
			t.Errorf("DO NOTHING: got %+v, want no IDs", skipped)
		}

		// Save updates a row by its serial key, and a slice by an upsert.
		one.Name = "saved"
		must(t, g.Save(&one).Error)
		rows := []subscriber{one, {Email: "f"}}
		rows[0].Name = "saved again"
		must(t, g.Save(&rows).Error)
		if checkStored(t, g, rows...); rows[0].PublicID != a.PublicID {
			t.Errorf("Save: got %+v, want the IDs of %+v", rows[0], a)
		}
		if err := g.Model(&subscriber{ID: one.ID}).Updates(subscriber{Name: "updated"}).Error; err != nil {
			t.Error(err)
		}
		one.Name = "updated"
		checkStored(t, g, one)
		if err := g.Take(&subscriber{}, "public_id = ?", a.PublicID).Error; errors.Is(err, gorm.ErrRecordNotFound) {
			t.Error("no row with the public ID")
		}
		// An update stores zero, and generates no ID.
		for _, tx := range []*gorm.DB{g.Model(&subscriber{ID: one.ID}).Update("ticket", 0), g.Model(&subscriber{ID: one.ID}).Select("Code", "Ticket").Updates(subscriber{})} {
			var row subscriber
			if err := g.Take(&row, one.ID).Error; err != nil || tx.Error != nil || row.Ticket != 0 || row.PublicID != a.PublicID {
				t.Errorf("update: %+v, %v, %v, want no ticket", row, err, tx.Error)
			}
		}
	})
}

// checkStored checks that the table has the rows.
func checkStored(t *testing.T, g *gorm.DB, rows ...subscriber) {
	t.Helper()
	for _, want := range rows {
		var got subscriber
		want.Readings = nil
		if must(t, g.Take(&got, want.ID).Error); !reflect.DeepEqual(got, want) {
			t.Errorf("stored %+v, want %+v", got, want)
		}
	}
}
