package gormplugin

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/idtype"
)

type parent struct {
	ID       idtype.Snowflake
	Children []child
	Twin     *twin  `gorm:"foreignKey:ParentID"`
	Notes    []note `gorm:"polymorphic:Owner"`
	BossID   *idtype.Snowflake
	Boss     *parent
	Crew     []*parent `gorm:"foreignKey:BossID"`
	Tags     []label   `gorm:"many2many:parent_tags"`
	Friends  []*parent `gorm:"many2many:parent_friends"`
}

type child struct {
	ID       idtype.Snowflake
	ParentID idtype.Snowflake
	Parent   *parent
}

type twin struct {
	ID       idtype.Sno
	ParentID idtype.Snowflake
}

type note struct {
	ID        idtype.Snowflake
	OwnerID   idtype.Snowflake
	OwnerType string
}

type label struct {
	ID idtype.Sno `gorm:"idgen:labels"`
}

// inserted returns the table and the arguments of each INSERT that s received.
func inserted(s *server) (got []string) {
	for i, q := range s.ran {
		if !strings.HasPrefix(q, "INSERT") {
			continue
		}
		table := strings.Split(q, "`")[1]
		var args []string
		for _, a := range s.args[i] {
			switch v := a.Value.(type) {
			case int64:
				args = append(args, idtype.Snowflake(v).String())
			case string:
				args = append(args, v)
			default:
				args = append(args, "NULL")
			}
		}
		got = append(got, table+" "+strings.Join(args, " "))
	}
	return got
}

func wantInserted(t *testing.T, s *server, want ...string) {
	t.Helper()
	if got := inserted(s); !slices.Equal(got, want) {
		t.Errorf("inserted\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	s.ran, s.args = nil, nil
}

func snoText(n byte) string { return idtype.Sno{9: n}.UUID().String() }

func TestAssociations(t *testing.T) {
	s := &server{affected: 1}
	db := openServer(t, s, For(snowflakes()), For(snos()), Named("labels", snos()))

	p := parent{
		Children: []child{{}, {ID: 77}},
		Twin:     &twin{},
		Notes:    []note{{}, {}},
		Tags:     []label{{}, {}},
	}
	if err := db.Create(&p).Error; err != nil {
		t.Fatal(err)
	}
	wantInserted(t, s,
		"parents 1 NULL",
		"twins "+snoText(1)+" 1",
		"children 77 1", // new rows are inserted alone
		"children 2 1",
		"notes 3 1 parents 4 1 parents",
		"labels "+snoText(1)+" "+snoText(2),
		"parent_tags 1 "+snoText(1)+" 1 "+snoText(2))

	if err := db.Create(&[]child{{Parent: &parent{}}, {ParentID: 1}}).Error; err != nil {
		t.Fatal(err)
	}
	// The children get their IDs before the parent.
	wantInserted(t, s, "parents 7 NULL", "children 5 7 6 1")

	if err := db.Create(&parent{Boss: &parent{}, Crew: []*parent{{}, {}}, Friends: []*parent{{}, {ID: 1}}}).Error; err != nil {
		t.Fatal(err)
	}
	wantInserted(t, s,
		"parents 9 NULL",
		"parents 8 9",
		"parents 10 8 11 8",
		"parents 1 NULL",
		"parents 12 NULL",
		"parent_friends 8 12 8 1")

	// Existing rows keep their IDs.
	boss := parent{ID: 1}
	if err := db.Create(&parent{Boss: &boss, Tags: []label{{ID: idtype.Sno{9: 50}}}}).Error; err != nil {
		t.Fatal(err)
	}
	if boss.ID != 1 {
		t.Errorf("existing row: got ID %d, want 1", boss.ID)
	}
	wantInserted(t, s, "parents 1 NULL", "parents 13 1", "labels "+snoText(50), "parent_tags 13 "+snoText(50))
}

func TestNestedSelect(t *testing.T) {
	s := &server{affected: 1}
	db := openServer(t, s, For(snowflakes()), For(snos()), Named("labels", snos()))
	if err := db.Select("Children").Create(&parent{Children: []child{{}}, Twin: &twin{}}).Error; err != nil {
		t.Fatal(err)
	}
	wantInserted(t, s, "parents 1", "children 2 1")
}

type account struct {
	ID      idtype.Snowflake
	Profile *profile `gorm:"foreignKey:ID"`
}

type profile struct {
	ID   idtype.Snowflake
	Name string
}

type wallet struct {
	AccountID idtype.Snowflake `gorm:"primaryKey"`
	Account   *account
	Name      string
}

// If two tables share a key, it is generated in the table to which the other refers.
func TestSharedKeys(t *testing.T) {
	s := &server{affected: 1}
	gen := snowflakes()
	db := openServer(t, s, For(gen))

	// Before the account is parsed, GORM doesn't know that the profile has the account's key.
	if err := db.Create(&profile{}).Error; err != nil {
		t.Fatal(err)
	}
	wantInserted(t, s, "profiles 1 ")

	a := account{Profile: &profile{Name: "a"}}
	if err := db.Create(&a).Error; err != nil {
		t.Fatal(err)
	}
	wantInserted(t, s, "accounts 2", "profiles 2 a")
	if err := db.Create(&wallet{Account: &account{}, Name: "w"}).Error; err != nil {
		t.Fatal(err)
	}
	wantInserted(t, s, "accounts 3", "wallets 3 w")
	if err := db.Create(&[]wallet{{Account: &a, Name: "x"}}).Error; err != nil {
		t.Fatal(err)
	}
	wantInserted(t, s, "accounts 2", "profiles 2 a", "wallets 2 x")

	for _, v := range []any{&profile{}, &[]profile{{ID: 1}, {}}} {
		err := db.Create(v).Error
		if !errors.Is(err, gorm.ErrPrimaryKeyRequired) || !strings.Contains(err.Error(), "gormplugin: fill profile.ID: the key is zero") {
			t.Errorf("%T: error = %v", v, err)
		}
	}
	w := wallet{}
	if err := db.Create(&w).Error; err != nil || w.AccountID != 0 {
		t.Errorf("wallet without an account: got %+v, %v, want no ID", w, err)
	}
	if gen.n != 3 {
		t.Errorf("%d generated IDs, want 3", gen.n)
	}
}

type lease struct {
	ID    idtype.Snowflake
	Notes []note `gorm:"polymorphic:Owner"`
}

type ticket struct {
	ID idtype.Snowflake `gorm:"idgen"`
}

type tenant struct {
	ID     idtype.Snowflake
	Lease  *lease  `gorm:"foreignKey:ID"`
	Ticket *ticket `gorm:"foreignKey:ID"`
}

// A model's own relations don't affect whether its key is shared, in any order of the
// relations.
func TestSharedKeyWithRelations(t *testing.T) {
	for range 20 {
		db := open(t, For(snowflakes()))
		create(t, db, &lease{})
		create(t, db, &tenant{})
		if err := db.Create(&lease{}).Error; !errors.Is(err, gorm.ErrPrimaryKeyRequired) {
			t.Errorf("error = %v", err)
		}
	}
}

type parcel struct {
	LeaseID idtype.Snowflake `gorm:"primaryKey"`
	No      int              `gorm:"primaryKey"`
}

type estate struct {
	ID      idtype.Snowflake
	Parcels []parcel `gorm:"foreignKey:LeaseID"`
}

// A zero part of a composite key fails with ErrNoGenerator, before and after the owner is
// parsed.
func TestSharedPartOfKey(t *testing.T) {
	db := open(t, For(snowflakes()))
	for range 2 {
		if err := db.Create(&parcel{No: 1}).Error; !errors.Is(err, ErrNoGenerator) {
			t.Errorf("error = %v", err)
		}
		e := estate{Parcels: []parcel{{No: 1}, {No: 2}}}
		if create(t, db, &e); e.ID == 0 || e.Parcels[1].LeaseID != e.ID {
			t.Errorf("estate = %v", e)
		}
	}
}

// With a tag, a shared key is generated.
func TestSharedKeyWithTag(t *testing.T) {
	db := open(t, For(snowflakes()))
	create(t, db, &tenant{})
	v := ticket{}
	if create(t, db, &v); v.ID != 2 {
		t.Errorf("ID = %d", v.ID)
	}
}

type office struct {
	ID    idtype.Snowflake
	Extra struct {
		Vault *vault `gorm:"foreignKey:ID"`
	} `gorm:"embedded"`
}

type tower struct {
	ID    idtype.Snowflake
	Extra struct {
		Safe *safe `gorm:"foreignKey:ID"`
	} `gorm:"embedded"`
}

type safe struct {
	ID idtype.Snowflake
}

type vault struct {
	ID   idtype.Snowflake `gorm:"idgen:-"`
	Name string
}

// For a has-one in an embedded struct, GORM doesn't report whose key it is. A tag stops the
// plugin from generating it.
func TestSharedKeyOfEmbedded(t *testing.T) {
	s := &server{affected: 1}
	db := openServer(t, s, For(snowflakes()))
	var o office
	o.Extra.Vault = &vault{Name: "a"}
	if err := db.Create(&o).Error; err != nil {
		t.Fatal(err)
	}
	wantInserted(t, s, "offices 1", "vaults 1 a")
	alone := vault{}
	if err := db.Create(&alone).Error; err != nil || alone.ID != 0 {
		t.Errorf("vault without an office: got %+v, %v, want no ID", alone, err)
	}
	// Without a tag the key is generated.
	if err := db.Create(&tower{}).Error; err != nil {
		t.Fatal(err)
	}
	untold := safe{}
	if err := db.Create(&untold).Error; err != nil || untold.ID != 3 {
		t.Errorf("safe without a tower: got %+v, %v, want ID 3", untold, err)
	}
}

type person struct {
	ID     idtype.Snowflake
	Places []place `gorm:"many2many:stays"`
}

type place struct {
	ID idtype.Snowflake
}

type stay struct {
	ID       idtype.Sno
	PersonID idtype.Snowflake `gorm:"uniqueIndex:who_where"`
	PlaceID  idtype.Snowflake `gorm:"uniqueIndex:who_where"`
}

func TestCustomJoinTable(t *testing.T) {
	s := &server{affected: 1}
	db := openServer(t, s, For(snowflakes()), For(snos()))
	if err := db.SetupJoinTable(&person{}, "Places", &stay{}); err != nil {
		t.Fatal(err)
	}
	if err := db.Create(&person{Places: []place{{}, {}}}).Error; err != nil {
		t.Fatal(err)
	}
	wantInserted(t, s, "people 1", "places 2 3",
		"stays "+snoText(1)+" 1 2 "+snoText(2)+" 1 3")
}

// A visit is a row of a join table. Only the association determines that its key is foreign.
type visit struct {
	PersonID idtype.Snowflake `gorm:"primaryKey"`
	PlaceID  idtype.Snowflake
}

func TestCustomJoinTableWithForeignKey(t *testing.T) {
	for range 20 { // the order of the relations varies
		db := open(t, For(snowflakes()))
		if err := db.SetupJoinTable(&person{}, "Places", &visit{}); err != nil {
			t.Fatal(err)
		}
		v := visit{PlaceID: 1}
		if create(t, db, &v); v.PersonID != 0 {
			t.Errorf("visit = %v", v)
		}
	}
}

func TestAutomaticJoinTable(t *testing.T) {
	db, p := open(t), planner{bindings: []Binding{For(snowflakes()), For(snos()), Named("labels", snos())}}
	if err := db.Callback().Create().Before("*").Register(fillCallback, p.fill); err != nil {
		t.Fatal(err)
	}
	create(t, db, &parent{Tags: []label{{}}, Friends: []*parent{{}}})
	joins := 0
	for s, plan := range *p.plans.Load() {
		if plan.relations == unwatched {
			joins++
		}
		if !s.Relationships.Mux.TryLock() {
			t.Errorf("the relations of %s are locked", s.Name)
		}
	}
	if joins != 2 {
		t.Errorf("%d join tables, want 2", joins)
	}
}

type hidden struct {
	Embedded struct {
		AccountID idtype.Snowflake `gorm:"primaryKey"`
		Account   *account
	} `gorm:"embedded"`
	OtherID idtype.Snowflake
	Account *account `gorm:"foreignKey:OtherID"`
}

// Two relations have the same name: GORM has both, but finds only one by its name.
func TestHiddenRelation(t *testing.T) {
	h := hidden{}
	if create(t, open(t, For(snowflakes())), &h); h.Embedded.AccountID != 0 {
		t.Errorf("foreign key = %d, want 0", h.Embedded.AccountID)
	}
}

// A labeled model has a key with the name of a column in its join table.
type labeled struct {
	LabelID idtype.Snowflake `gorm:"primaryKey"`
	Labels  []label          `gorm:"many2many:labelings"`
}

func TestKeyNamedLikeJoinColumn(t *testing.T) {
	v := labeled{}
	if create(t, open(t, For(snowflakes()), Named("labels", snos())), &v); v.LabelID != 1 {
		t.Errorf("ID = %d", v.LabelID)
	}
}

// The types of automatic join tables are unnamed, but so are the types of some models.
func TestUnnamedModel(t *testing.T) {
	db := open(t, For(snowflakes()))
	m := struct {
		ID   idtype.Snowflake
		Note string `gorm:"-"`
	}{}
	wantSQL(t, create(t, db.Table("things"), &m), "INSERT INTO `things` (`id`) VALUES (1)")
	like := struct {
		ID   idtype.Snowflake `gorm:"primaryKey;idgen"`
		Part int              `gorm:"primaryKey"`
		Note string           `gorm:"-"`
	}{}
	wantSQL(t, create(t, db.Table("things"), &like), "INSERT INTO `things` (`id`,`part`) VALUES (2,0)")
	noTag := struct {
		ID    idtype.Snowflake
		Extra struct{} `gorm:"-"`
	}{}
	wantSQL(t, create(t, db.Table("things"), &noTag), "INSERT INTO `things` (`id`) VALUES (3)")
	withData := struct {
		ID    idtype.Snowflake `gorm:"primaryKey"`
		Name  string
		Extra struct{} `gorm:"-"`
	}{}
	wantSQL(t, create(t, db.Table("things"), &withData), "INSERT INTO `things` (`id`,`name`) VALUES (4,\"\")")
	embeds := struct {
		ID    idtype.Snowflake      `gorm:"primaryKey;idgen"`
		Part  int                   `gorm:"primaryKey"`
		Extra struct{ Name string } `gorm:"embedded"`
	}{}
	wantSQL(t, create(t, db.Table("things"), &embeds), "INSERT INTO `things` (`id`,`part`,`name`) VALUES (5,0,\"\")")
	wantSQL(t, create(t, db.Table("things"), &struct{}{}), "INSERT INTO `things` DEFAULT VALUES")
	// A named type may have the fields of a join table.
	type thing struct {
		ID    idtype.Snowflake `gorm:"primaryKey;idgen"`
		Part  int              `gorm:"primaryKey"`
		Extra struct{}         `gorm:"-"`
	}
	wantSQL(t, create(t, db, &thing{}), "INSERT INTO `things` (`id`,`part`) VALUES (6,0)")
	// This type has one key, and a join table has two.
	alone := struct {
		ID    idtype.Snowflake `gorm:"primaryKey"`
		Extra struct{}         `gorm:"-"`
	}{}
	wantSQL(t, create(t, db.Table("things"), &alone), "INSERT INTO `things` (`id`) VALUES (7)")
}
