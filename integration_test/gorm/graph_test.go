package gorm

import (
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/sqltypes"
)

// The models of the tests below have one association of each kind. GORM derives column
// names from the names of Go types, which fails for generic types, so the tags name the
// columns. A many2many has no tag for that. So a struct N embeds the generic Person, which
// is exported because GORM ignores unexported embedded structs.

type (
	snowflakePerson struct {
		Person[idtype.Snowflake, snowflakePerson]
	}
	snowflakeSIPerson struct {
		Person[idtype.SnowflakeSI, snowflakeSIPerson]
	}
	uid60Person struct {
		Person[idtype.UID60, uid60Person]
	}
	spread64Person struct {
		Person[idtype.Spread64, spread64Person]
	}
	snoPerson struct{ Person[idtype.Sno, snoPerson] }
)

type company[T sqltypes.ID] struct {
	ID   T
	Name string
}

type Person[T sqltypes.ID, N any] struct {
	ID   T
	Name string

	CompanyID *T
	Company   *company[T] // belongs to

	Passport *passport[T] `gorm:"foreignKey:PersonID"` // has one
	Orders   []order[T]   `gorm:"foreignKey:PersonID"` // has many
	Pictures []picture[T] `gorm:"polymorphic:Owner"`   // polymorphic
	Detail   *detail[T]   `gorm:"foreignKey:ID"`       // has the same key

	ManagerID sqltypes.Optional[T]
	Manager   *N  // belongs to another person
	Team      []N `gorm:"foreignKey:ManagerID"`

	// A join table that GORM creates, and a join table with its own ID.
	Tags  []*tag[T]  `gorm:"many2many:person_tags;joinForeignKey:PersonID;joinReferences:TagID"`
	Clubs []*club[T] `gorm:"many2many:memberships;joinForeignKey:PersonID;joinReferences:ClubID"`
	// Both sides are people.
	Friends []*N `gorm:"many2many:friendships;joinForeignKey:PersonID;joinReferences:FriendID"`
}

type passport[T sqltypes.ID] struct {
	ID       T
	PersonID T
	Number   string
}

type order[T sqltypes.ID] struct {
	ID       T
	PersonID T
	Item     string
	Pictures []picture[T] `gorm:"polymorphic:Owner"`
}

type picture[T sqltypes.ID] struct {
	ID        T
	OwnerID   T
	OwnerType string
	File      string
}

type detail[T sqltypes.ID] struct {
	ID    T
	Notes string
}

type tag[T sqltypes.ID] struct {
	ID   T
	Name string
}

type club[T sqltypes.ID] struct {
	ID   T
	Name string
}

type membership[T sqltypes.ID] struct {
	ID       T
	PersonID T `gorm:"uniqueIndex:membership"`
	ClubID   T `gorm:"uniqueIndex:membership"`
	Role     string
}

func (company[T]) TableName() string    { return "companies" }
func (Person[T, N]) TableName() string  { return "people" }
func (passport[T]) TableName() string   { return "passports" }
func (order[T]) TableName() string      { return "orders" }
func (picture[T]) TableName() string    { return "pictures" }
func (detail[T]) TableName() string     { return "details" }
func (tag[T]) TableName() string        { return "tags" }
func (club[T]) TableName() string       { return "clubs" }
func (membership[T]) TableName() string { return "memberships" }

// generic returns the generic struct that a person embeds.
func (p *Person[T, N]) generic() *Person[T, N] { return p }

// in returns the generic struct in a person. It uses a type assertion, because a
// constraint that N embeds the struct would make N depend on T.
func (k of[T, N]) in(n *N) *Person[T, N] {
	return any(n).(interface{ generic() *Person[T, N] }).generic()
}

func (k of[T, N]) newPerson(p Person[T, N]) *N {
	n := new(N)
	*k.in(n) = p
	return n
}

func (k of[T, N]) named(name string) *N { return k.newPerson(Person[T, N]{Name: name}) }

func (k of[T, N]) byID(id T) *N { return k.newPerson(Person[T, N]{ID: id}) }

func (k of[T, N]) graphModels() []any {
	return []any{&company[T]{}, new(N), &passport[T]{}, &order[T]{}, &picture[T]{}, &detail[T]{}, &tag[T]{}, &club[T]{}, &membership[T]{}}
}

// newGraph returns a person with at least one association of each kind.
func (k of[T, N]) newGraph() *N {
	return k.newPerson(Person[T, N]{
		Name:     "Ada",
		Company:  &company[T]{Name: "Engines"},
		Passport: &passport[T]{Number: "1815"},
		Orders: []order[T]{
			{Item: "cards", Pictures: []picture[T]{{File: "cards.png"}}},
			{Item: "brass"},
		},
		Pictures: []picture[T]{{File: "portrait.png"}, {File: "house.png"}},
		Detail:   &detail[T]{Notes: "mathematician"},
		Manager:  k.named("Charles"),
		Team: []N{
			*k.newPerson(Person[T, N]{Name: "Luigi", Orders: []order[T]{{Item: "paper"}}}),
			*k.named("Mary"),
		},
		Tags:    []*tag[T]{{Name: "first"}, {Name: "poet"}},
		Clubs:   []*club[T]{{Name: "Royal"}},
		Friends: []*N{k.named("Michael"), k.named("Augustus")},
	})
}

// All associations of a graph get IDs. The foreign keys match the IDs, in the structs and
// in the rows.
func (k of[T, N]) graph(t *testing.T, g *gorm.DB) {
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

// An account and a profile have their owner's key. The account declares it itself. For the
// profile, the owner declares it.

type owner[T sqltypes.ID] struct {
	ID      T
	Name    string
	Profile *profile[T] `gorm:"foreignKey:ID"`
	Items   []item[T]   `gorm:"foreignKey:OwnerID"`
}

type item[T sqltypes.ID] struct {
	ID      T
	OwnerID T
}

type profile[T sqltypes.ID] struct {
	ID    T
	Notes string
}

type account[T sqltypes.ID] struct {
	OwnerID T `gorm:"primaryKey"`
	Owner   *owner[T]
	Balance int
}

func (owner[T]) TableName() string   { return "owners" }
func (item[T]) TableName() string    { return "items" }
func (profile[T]) TableName() string { return "profiles" }
func (account[T]) TableName() string { return "accounts" }

// A key that refers to another row is never generated.
func (k of[T, N]) sharedKey(t *testing.T, g *gorm.DB) {
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
