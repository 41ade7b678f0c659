package gorm

import (
	"slices"
	"testing"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/sqltypes"
)

type thing[T any] struct {
	ID   T
	Name string
}

func (thing[T]) TableName() string { return "things" }

// Models with one association of each kind. GORM derives column names from the names of Go
// types, which fails for generic types, so the tags name the columns. A many2many has no tag
// for that. So a struct per ID type embeds the generic Person, which is exported because GORM
// ignores unexported embedded structs. P is the pointer to that struct.

type (
	snowflakePerson struct {
		Person[idtype.Snowflake, *snowflakePerson]
	}
	snowflakeSIPerson struct {
		Person[idtype.SnowflakeSI, *snowflakeSIPerson]
	}
	uid60Person struct {
		Person[idtype.UID60, *uid60Person]
	}
	spread64Person struct {
		Person[idtype.Spread64, *spread64Person]
	}
	snoPerson            struct{ Person[idtype.Sno, *snoPerson] }
	typedSnowflakePerson struct {
		Person[idtype.SnowflakeOf[idtest.Order], *typedSnowflakePerson]
	}
	typedSnoPerson struct {
		Person[typedSno, *typedSnoPerson]
	}
	uuidPerson struct {
		Person[idtype.UUID, *uuidPerson]
	}
	typedUUIDPerson struct {
		Person[idtype.UUIDOf[idtest.Order], *typedUUIDPerson]
	}
	ownSnowflakePerson struct {
		Person[orderID, *ownSnowflakePerson]
	}
	ownSnoPerson struct {
		Person[customerID, *ownSnoPerson]
	}
)

type company[T sqltypes.ID] struct {
	ID   T
	Name string
}

type Person[T sqltypes.ID, P any] struct {
	ID   T
	Name string

	CompanyID *T
	Company   *company[T] // belongs to

	Passport *passport[T] `gorm:"foreignKey:PersonID"` // has one
	Orders   []order[T]   `gorm:"foreignKey:PersonID"` // has many
	Pictures []picture[T] `gorm:"polymorphic:Owner"`   // polymorphic
	Detail   *detail[T]   `gorm:"foreignKey:ID"`       // has the same key

	ManagerID sqltypes.Optional[T]
	Manager   P   // belongs to another person
	Team      []P `gorm:"foreignKey:ManagerID"`

	// A join table that GORM creates, and a join table with its own ID.
	Tags  []*tag[T]  `gorm:"many2many:person_tags;joinForeignKey:PersonID;joinReferences:TagID"`
	Clubs []*club[T] `gorm:"many2many:memberships;joinForeignKey:PersonID;joinReferences:ClubID"`
	// Both sides are people.
	Friends []P `gorm:"many2many:friendships;joinForeignKey:PersonID;joinReferences:FriendID"`
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
func (Person[T, P]) TableName() string  { return "people" }
func (passport[T]) TableName() string   { return "passports" }
func (order[T]) TableName() string      { return "orders" }
func (picture[T]) TableName() string    { return "pictures" }
func (detail[T]) TableName() string     { return "details" }
func (tag[T]) TableName() string        { return "tags" }
func (club[T]) TableName() string       { return "clubs" }
func (membership[T]) TableName() string { return "memberships" }

// generic returns the generic struct that a person embeds.
func (p *Person[T, P]) generic() *Person[T, P] { return p }

// in returns the generic struct in a person. It uses a type assertion, because a
// constraint that P has the method would make P depend on T.
func (k of[T, P]) in(n P) *Person[T, P] {
	return any(n).(interface{ generic() *Person[T, P] }).generic()
}

func (k of[T, P]) newPerson(p Person[T, P]) P {
	n := k.blank()
	*k.in(n) = p
	return n
}

func (k of[T, P]) named(name string) P { return k.newPerson(Person[T, P]{Name: name}) }

func (k of[T, P]) byID(id T) P { return k.newPerson(Person[T, P]{ID: id}) }

func (k of[T, P]) graphModels() []any {
	return []any{&company[T]{}, k.blank(), &passport[T]{}, &order[T]{}, &picture[T]{}, &detail[T]{}, &tag[T]{}, &club[T]{}, &membership[T]{}}
}

// newGraph returns a person with at least one association of each kind.
func (k of[T, P]) newGraph() P {
	return k.newPerson(Person[T, P]{
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
		Team: []P{
			k.newPerson(Person[T, P]{Name: "Luigi", Orders: []order[T]{{Item: "paper"}}}),
			k.named("Mary"),
		},
		Tags:    []*tag[T]{{Name: "first"}, {Name: "poet"}},
		Clubs:   []*club[T]{{Name: "Royal"}},
		Friends: []P{k.named("Michael"), k.named("Augustus")},
	})
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

// A contact has other unique keys than its ID. Its hooks record the ID.
type contact[T sqltypes.ID] struct {
	ID        T
	Email     string `gorm:"unique"`
	Team      string `gorm:"uniqueIndex:place"`
	Desk      int    `gorm:"uniqueIndex:place"`
	Name      string
	CompanyID *T
	Company   *company[T]
	Calls     []call[T] `gorm:"foreignKey:ContactID"`

	before, after T
	instead       T // if not zero, the ID that BeforeCreate sets
}

// A call requires a contact.
type call[T sqltypes.ID] struct {
	ID        T
	ContactID T `gorm:"not null"`
	About     string
}

func (contact[T]) TableName() string { return "contacts" }
func (call[T]) TableName() string    { return "calls" }

func (c *contact[T]) AfterCreate(*gorm.DB) error { c.after = c.ID; return nil }
func (c *contact[T]) BeforeCreate(*gorm.DB) error {
	c.before = c.ID
	if !c.instead.IsZero() {
		c.ID = c.instead
	}
	return nil
}

// The desk makes every contact differ in the unique key of two columns.
func newContact[T sqltypes.ID](email, name string) contact[T] {
	return contact[T]{Email: email, Name: name, Team: "team of " + email, Desk: len(email)}
}

// contacts returns the IDs and the names of the rows by email.
func (k of[T, P]) contacts(t *testing.T, g *gorm.DB) (ids map[string]T, names map[string]string) {
	t.Helper()
	ids, names = map[string]T{}, map[string]string{}
	var rows []contact[T]
	must(t, g.Find(&rows).Error)
	for _, r := range rows {
		ids[r.Email], names[r.Email] = r.ID, r.Name
	}
	return ids, names
}

type sender[T sqltypes.ID] struct {
	ID        T
	Name      string
	Letters   []letter[T] `gorm:"foreignKey:SenderID"`
	DeletedAt gorm.DeletedAt
}

type letter[T sqltypes.ID] struct {
	ID        T
	Code      string `gorm:"unique"`
	Kind      string
	SenderID  T
	Sender    *sender[T]
	DeletedAt gorm.DeletedAt
}

func (sender[T]) TableName() string { return "senders" }
func (letter[T]) TableName() string { return "letters" }

func (k of[T, P]) createTables(t *testing.T, g *gorm.DB) {
	t.Helper()
	must(t, g.SetupJoinTable(k.blank(), "Clubs", &membership[T]{}))
	must(t, g.AutoMigrate(slices.Concat(k.graphModels(), k.formModels(), []any{
		&thing[T]{}, &owner[T]{}, &profile[T]{}, &account[T]{}, &item[T]{}, // things and shared keys
		&contact[T]{}, &call[T]{}, // upserts
		&sender[T]{}, &letter[T]{}, // pages
		&hooked[T]{}, &hookedPart[T]{}, &trace[T]{},
	})...))
}
