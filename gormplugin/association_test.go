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

// inserted are the SQL and arguments of the INSERTs that s saw.
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
		"children 2 1 77 1",
		"notes 3 1 parents 4 1 parents",
		"labels "+snoText(1)+" "+snoText(2),
		"parent_tags 1 "+snoText(1)+" 1 "+snoText(2))

	if err := db.Create(&[]child{{Parent: &parent{}}, {ParentID: 1}}).Error; err != nil {
		t.Fatal(err)
	}
	// The children have theirs before their parent does.
	wantInserted(t, s, "parents 7 NULL", "children 5 7 6 1")

	if err := db.Create(&parent{Boss: &parent{}, Crew: []*parent{{}, {}}, Friends: []*parent{{}, {ID: 1}}}).Error; err != nil {
		t.Fatal(err)
	}
	wantInserted(t, s,
		"parents 9 NULL",
		"parents 8 9",
		"parents 10 8 11 8",
		"parents 12 NULL 1 NULL",
		"parent_friends 8 12 8 1")

	// Existing rows are referred to, not renamed.
	boss := parent{ID: 1}
	if err := db.Create(&parent{Boss: &boss, Tags: []label{{ID: idtype.Sno{9: 50}}}}).Error; err != nil {
		t.Fatal(err)
	}
	if boss.ID != 1 {
		t.Errorf("an existing row became %d", boss.ID)
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

// A key that two tables share comes from the one that it refers to.
func TestSharedKeys(t *testing.T) {
	s := &server{affected: 1}
	gen := snowflakes()
	db := openServer(t, s, For(gen))

	// Before the account is parsed nothing tells that its key is a profile's.
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
		t.Errorf("a wallet of nobody: %+v, %v", w, err)
	}
	if gen.n != 3 {
		t.Errorf("%d IDs were minted", gen.n)
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

// Relations of the row's own say nothing of its key, in whatever order GORM
// gives them.
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

// A part of a composite key is no more left at zero than a whole one, whether
// its owner is known or not.
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

// A tag makes a key of its own of one that is shared.
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

// GORM doesn't say of a has-one in an embedded struct whose key it is: a tag does.
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
		t.Errorf("a vault of nobody: %+v, %v", alone, err)
	}
	// Without one the key is made up.
	if err := db.Create(&tower{}).Error; err != nil {
		t.Fatal(err)
	}
	untold := safe{}
	if err := db.Create(&untold).Error; err != nil || untold.ID != 3 {
		t.Errorf("a safe of nobody: %+v, %v", untold, err)
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

// visit is a join table with a key that only the association knows to be foreign.
type visit struct {
	PersonID idtype.Snowflake `gorm:"primaryKey"`
	PlaceID  idtype.Snowflake
}

func TestCustomJoinTableWithForeignKey(t *testing.T) {
	for range 20 { // the relations come in another order each time
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

// Two relations of one name: GORM knows both, but only one by its name.
func TestHiddenRelation(t *testing.T) {
	h := hidden{}
	if create(t, open(t, For(snowflakes())), &h); h.Embedded.AccountID != 0 {
		t.Errorf("the foreign key became %d", h.Embedded.AccountID)
	}
}

// labeled has a key with the name of a column in its join table.
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

// The types of automatic join tables have no name, but neither have some models.
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
	// And some with a name look like them otherwise.
	type thing struct {
		ID    idtype.Snowflake `gorm:"primaryKey;idgen"`
		Part  int              `gorm:"primaryKey"`
		Extra struct{}         `gorm:"-"`
	}
	wantSQL(t, create(t, db, &thing{}), "INSERT INTO `things` (`id`,`part`) VALUES (6,0)")
	// A join table has two keys.
	alone := struct {
		ID    idtype.Snowflake `gorm:"primaryKey"`
		Extra struct{}         `gorm:"-"`
	}{}
	wantSQL(t, create(t, db.Table("things"), &alone), "INSERT INTO `things` (`id`) VALUES (7)")
}
