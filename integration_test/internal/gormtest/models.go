package gormtest

import (
	"database/sql"
	"slices"
	"testing"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/sqltypes"
)

type thingOf[T any] struct {
	ID   T
	Name string
}

func (thingOf[T]) TableName() string { return "things" }

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

type companyOf[T sqltypes.ID] struct {
	ID   T
	Name string
}

// A Person has an association of each kind.
type Person[T sqltypes.ID, P any] struct {
	ID   T
	Name string

	CompanyID *T
	Company   *companyOf[T] // belongs to

	Passport *passportOf[T] `gorm:"foreignKey:PersonID"` // has one
	Orders   []orderOf[T]   `gorm:"foreignKey:PersonID"` // has many
	Pictures []pictureOf[T] `gorm:"polymorphic:Owner"`   // polymorphic
	Detail   *detailOf[T]   `gorm:"foreignKey:ID"`       // has the same key

	ManagerID sqltypes.Optional[T]
	Manager   P   // belongs to another person
	Team      []P `gorm:"foreignKey:ManagerID"`

	// A join table that GORM creates, and a join table with its own ID.
	Tags  []*tagOf[T]  `gorm:"many2many:person_tags;joinForeignKey:PersonID;joinReferences:TagID"`
	Clubs []*clubOf[T] `gorm:"many2many:memberships;joinForeignKey:PersonID;joinReferences:ClubID"`
	// Both sides are people.
	Friends []P `gorm:"many2many:friendships;joinForeignKey:PersonID;joinReferences:FriendID"`
}

type passportOf[T sqltypes.ID] struct {
	ID       T
	PersonID T
	Number   string
}

type orderOf[T sqltypes.ID] struct {
	ID       T
	PersonID T
	Item     string
	Pictures []pictureOf[T] `gorm:"polymorphic:Owner"`
}

type pictureOf[T sqltypes.ID] struct {
	ID        T
	OwnerID   T
	OwnerType string
	File      string
}

type detailOf[T sqltypes.ID] struct {
	ID    T
	Notes string
}

type tagOf[T sqltypes.ID] struct {
	ID   T
	Name string
}

type clubOf[T sqltypes.ID] struct {
	ID   T
	Name string
}

type membershipOf[T sqltypes.ID] struct {
	ID       T
	PersonID T `gorm:"uniqueIndex:membership"`
	ClubID   T `gorm:"uniqueIndex:membership"`
	Role     string
}

func (companyOf[T]) TableName() string { return "companies" }

// TableName returns the table.
func (Person[T, P]) TableName() string    { return "people" }
func (passportOf[T]) TableName() string   { return "passports" }
func (orderOf[T]) TableName() string      { return "orders" }
func (pictureOf[T]) TableName() string    { return "pictures" }
func (detailOf[T]) TableName() string     { return "details" }
func (tagOf[T]) TableName() string        { return "tags" }
func (clubOf[T]) TableName() string       { return "clubs" }
func (membershipOf[T]) TableName() string { return "memberships" }

// A person is Ada, or one of her friends.
type person struct{ Person[ID, *person] }

type fields = Person[ID, *person]

func newPerson(f fields) *person { return &person{f} }

func named(name string) *person { return newPerson(fields{Name: name}) }

func personBy(id ID) *person { return newPerson(fields{ID: id}) }

func graphModels() []any {
	return []any{&company{}, &person{}, &passport{}, &order{}, &picture{}, &detail{}, &tag{}, &club{}, &membership{}}
}

// newGraph returns a person with at least one association of each kind.
func newGraph() *person {
	return newPerson(fields{
		Name:     "Ada",
		Company:  &company{Name: "Engines"},
		Passport: &passport{Number: "1815"},
		Orders: []order{
			{Item: "cards", Pictures: []picture{{File: "cards.png"}}},
			{Item: "brass"},
		},
		Pictures: []picture{{File: "portrait.png"}, {File: "house.png"}},
		Detail:   &detail{Notes: "mathematician"},
		Manager:  named("Charles"),
		Team: []*person{
			newPerson(fields{Name: "Luigi", Orders: []order{{Item: "paper"}}}),
			named("Mary"),
		},
		Tags:    []*tag{{Name: "first"}, {Name: "poet"}},
		Clubs:   []*club{{Name: "Royal"}},
		Friends: []*person{named("Michael"), named("Augustus")},
	})
}

// An account and a profile have their owner's key. The account declares it itself. For the
// profile, the owner declares it.

type ownerOf[T sqltypes.ID] struct {
	ID      T
	Name    string
	Profile *profileOf[T] `gorm:"foreignKey:ID"`
	Items   []itemOf[T]   `gorm:"foreignKey:OwnerID"`
}

type itemOf[T sqltypes.ID] struct {
	ID      T
	OwnerID T
}

type profileOf[T sqltypes.ID] struct {
	ID    T
	Notes string
}

type accountOf[T sqltypes.ID] struct {
	OwnerID T `gorm:"primaryKey"`
	Owner   *ownerOf[T]
	Balance int
}

func (ownerOf[T]) TableName() string   { return "owners" }
func (itemOf[T]) TableName() string    { return "items" }
func (profileOf[T]) TableName() string { return "profiles" }
func (accountOf[T]) TableName() string { return "accounts" }

// A contact has other unique keys than its ID. Its hooks record the ID.
type contactOf[T sqltypes.ID] struct {
	ID        T
	Email     string `gorm:"unique"`
	Team      string `gorm:"uniqueIndex:place"`
	Desk      int    `gorm:"uniqueIndex:place"`
	Name      string
	CompanyID *T
	Company   *companyOf[T]
	Calls     []callOf[T] `gorm:"foreignKey:ContactID"`

	Before  T `gorm:"-"` // the IDs that the hooks saw
	After   T `gorm:"-"`
	Instead T `gorm:"-"` // if not zero, the ID that BeforeCreate sets
}

// A call requires a contact.
type callOf[T sqltypes.ID] struct {
	ID        T
	ContactID T `gorm:"not null"`
	About     string
}

func (contactOf[T]) TableName() string { return "contacts" }
func (callOf[T]) TableName() string    { return "calls" }

func (c *contactOf[T]) AfterCreate(*gorm.DB) error { c.After = c.ID; return nil }
func (c *contactOf[T]) BeforeCreate(*gorm.DB) error {
	c.Before = c.ID
	if !c.Instead.IsZero() {
		c.ID = c.Instead
	}
	return nil
}

// The desk makes every contact differ in the unique key of two columns.
func newContact(email, name string) contact {
	return contact{Email: email, Name: name, Team: "team of " + email, Desk: len(email)}
}

// contacts returns the IDs and the names of the rows by email.
func (k *Kind) contacts(t *testing.T, g *database) (ids map[string]ID, names map[string]string) {
	t.Helper()
	ids, names = map[string]ID{}, map[string]string{}
	var rows []contact
	must(t, g.Find(&rows).Error)
	for _, r := range rows {
		ids[r.Email], names[r.Email] = r.ID, r.Name
	}
	return ids, names
}

type senderOf[T sqltypes.ID] struct {
	ID        T
	Name      string
	Letters   []letterOf[T] `gorm:"foreignKey:SenderID"`
	DeletedAt gorm.DeletedAt
}

type letterOf[T sqltypes.ID] struct {
	ID        T
	Code      string `gorm:"unique"`
	Kind      string
	SenderID  T
	Sender    *senderOf[T]
	DeletedAt gorm.DeletedAt
}

func (senderOf[T]) TableName() string { return "senders" }
func (letterOf[T]) TableName() string { return "letters" }

// The models with IDs.
type (
	thing         = thingOf[ID]
	company       = companyOf[ID]
	passport      = passportOf[ID]
	order         = orderOf[ID]
	picture       = pictureOf[ID]
	detail        = detailOf[ID]
	tag           = tagOf[ID]
	club          = clubOf[ID]
	membership    = membershipOf[ID]
	owner         = ownerOf[ID]
	item          = itemOf[ID]
	profile       = profileOf[ID]
	account       = accountOf[ID]
	contact       = contactOf[ID]
	call          = callOf[ID]
	sender        = senderOf[ID]
	letter        = letterOf[ID]
	hooked        = hookedOf[ID]
	hookedPart    = hookedPartOf[ID]
	trace         = traceOf[ID]
	optedOut      = optedOutOf[ID]
	withDefault   = withDefaultOf[ID]
	documented    = documentedOf[ID]
	filing        = filingOf[ID]
	forms         = formsOf[ID]
	otherName     = otherNameOf[ID]
	embedsValue   = embedsValueOf[ID]
	embedsPointer = embedsPointerOf[ID]
	embedsNested  = embedsNestedOf[ID]
	// Key has an ID.
	Key = KeyOf[ID]
	// Outer has an ID.
	Outer   = OuterOf[ID]
	partKey = partKeyOf[ID]
)

// modelTypes returns pointers to the types with ID, each followed by the one with an ID type.
func modelTypes[T sqltypes.ID]() []any {
	type (
		id   = sqltypes.Text[ID]
		text = sqltypes.Text[T]
	)
	return []any{
		(*ID)(nil), (*T)(nil),
		(*sql.Null[ID])(nil), (*sql.Null[T])(nil),
		(*sqltypes.Optional[ID])(nil), (*sqltypes.Optional[T])(nil),
		(*id)(nil), (*text)(nil),
		(*sqltypes.Optional[id])(nil), (*sqltypes.Optional[text])(nil),
		(*wrapped[ID])(nil), (*wrapped[T])(nil),
		(*wrapped[id])(nil), (*wrapped[text])(nil),
		(*thing)(nil), (*thingOf[T])(nil),
		(*company)(nil), (*companyOf[T])(nil),
		(*passport)(nil), (*passportOf[T])(nil),
		(*order)(nil), (*orderOf[T])(nil),
		(*picture)(nil), (*pictureOf[T])(nil),
		(*detail)(nil), (*detailOf[T])(nil),
		(*tag)(nil), (*tagOf[T])(nil),
		(*club)(nil), (*clubOf[T])(nil),
		(*membership)(nil), (*membershipOf[T])(nil),
		(*owner)(nil), (*ownerOf[T])(nil),
		(*item)(nil), (*itemOf[T])(nil),
		(*profile)(nil), (*profileOf[T])(nil),
		(*account)(nil), (*accountOf[T])(nil),
		(*contact)(nil), (*contactOf[T])(nil),
		(*call)(nil), (*callOf[T])(nil),
		(*sender)(nil), (*senderOf[T])(nil),
		(*letter)(nil), (*letterOf[T])(nil),
		(*hooked)(nil), (*hookedOf[T])(nil),
		(*hookedPart)(nil), (*hookedPartOf[T])(nil),
		(*trace)(nil), (*traceOf[T])(nil),
		(*optedOut)(nil), (*optedOutOf[T])(nil),
		(*withDefault)(nil), (*withDefaultOf[T])(nil),
		(*documented)(nil), (*documentedOf[T])(nil),
		(*filing)(nil), (*filingOf[T])(nil),
		(*forms)(nil), (*formsOf[T])(nil),
		(*otherName)(nil), (*otherNameOf[T])(nil),
		(*embedsValue)(nil), (*embedsValueOf[T])(nil),
		(*embedsPointer)(nil), (*embedsPointerOf[T])(nil),
		(*embedsNested)(nil), (*embedsNestedOf[T])(nil),
		(*Key)(nil), (*KeyOf[T])(nil),
		(*Outer)(nil), (*OuterOf[T])(nil),
		(*partKey)(nil), (*partKeyOf[T])(nil),
		(*patron[ID])(nil), (*patron[T])(nil),
		(*loan[ID])(nil), (*loan[T])(nil),
		(*keyed[ID])(nil), (*keyed[T])(nil),
		(*keyed[*ID])(nil), (*keyed[*T])(nil),
		(*keyed[sql.Null[ID]])(nil), (*keyed[sql.Null[T]])(nil),
		(*keyed[sqltypes.Optional[ID]])(nil), (*keyed[sqltypes.Optional[T]])(nil),
		(*keyed[*sqltypes.Optional[ID]])(nil), (*keyed[*sqltypes.Optional[T]])(nil),
		(*keyed[id])(nil), (*keyed[text])(nil),
		(*keyed[*id])(nil), (*keyed[*text])(nil),
		(*keyed[sqltypes.Optional[id]])(nil), (*keyed[sqltypes.Optional[text]])(nil),
		(*keyed[wrapped[ID]])(nil), (*keyed[wrapped[T]])(nil),
		(*keyed[wrapped[id]])(nil), (*keyed[wrapped[text]])(nil),
		(*embedsPrefixed[Key])(nil), (*embedsPrefixed[KeyOf[T]])(nil),
		(*embedsPrefixed[*Key])(nil), (*embedsPrefixed[*KeyOf[T]])(nil),
	}
}

func (k *Kind) createTables(t *testing.T, g *database) {
	t.Helper()
	must(t, g.SetupJoinTable(&person{}, "Clubs", &membership{}))
	must(t, g.AutoMigrate(slices.Concat(graphModels(), k.formModels(), []any{
		&thing{}, &owner{}, &profile{}, &account{}, &item{}, // things and shared keys
		&contact{}, &call{}, // upserts
		&documented{}, &filing{}, // collisions
		&sender{}, &letter{}, // pages
		&hooked{}, &hookedPart{}, &trace{},
	})...))
}
