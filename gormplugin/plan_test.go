package gormplugin

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/sortkey/sortkey/idtype"
)

func TestUse(t *testing.T) {
	db := open(t, For(snowflakes()))
	if err := db.Use(New(For(snos()))); !errors.Is(err, gorm.ErrRegistered) {
		t.Errorf("second Use: got %v, want %v", err, gorm.ErrRegistered)
	}
	o := order{}
	if create(t, db, &o); o.ID != 1 {
		t.Errorf("after the second Use: ID %d, want 1 from the first plugin", o.ID)
	}
	if db.Plugins["sortkey"] == nil {
		t.Errorf("plugins = %v, want sortkey among them", db.Plugins)
	}
	if err := open(t).Use(New(Named("orders-2.EU_X:ü", snos()))); err != nil {
		t.Errorf("name with other characters: %v", err)
	}
	var none idtype.Generator[idtype.Snowflake]
	for want, bindings := range map[string][]Binding{
		"bind generator: For or Named got nil":                         {For(none)},
		"bind generator: For or Named got nil; create a generator":     {For((*idtype.SnowflakeGenerator)(nil))},
		"bind generator of idtype.Snowflake: the type already has one": {For(snowflakes()), For(snos()), For(snowflakes())},
		`bind generator "a": the name is already in use`:               {Named("a", snowflakes()), Named("a", snos())},
		`bind generator "": a struct tag can't contain`:                {Named("", snowflakes())},
		`bind generator "-": a struct tag can't contain`:               {Named("-", snowflakes())},
		`bind generator "IDGEN": a struct tag can't contain`:           {Named("IDGEN", snowflakes())},
		`bind generator "a;b": a struct tag can't contain`:             {Named("a;b", snowflakes())},
	} {
		db := open(t)
		err := db.Use(New(bindings...))
		if err == nil || !strings.HasPrefix(err.Error(), "gormplugin: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("error = %v, want %s", err, want)
		}
		// After an error nothing is registered.
		if db.Plugins[pluginName] != nil || db.Callback().Create().Get(fillCallback) != nil {
			t.Error("the plugin was registered despite the error")
		}
	}
	for _, c := range "; \t\n\"`\\" {
		if err := open(t).Use(New(Named("a"+string(c)+"b", snos()))); err == nil || !strings.Contains(err.Error(), "a struct tag can't contain this name") {
			t.Errorf("name with %q: error = %v", c, err)
		}
	}
}

// Use fails if GORM can't sort the callbacks, at the plugin's first callback or at a later
// one.
func TestUseWithConflictingCallbacks(t *testing.T) {
	for _, c := range []struct{ before, after string }{
		{"gorm:create", "gorm:after_create"},
		{"gorm:before_create", reconcileCallback},
	} {
		db := open(t)
		_ = db.Callback().Create().Before(c.before).After(c.after).Register("test:conflict", func(*gorm.DB) {})
		if err := db.Use(New(For(snos()))); err == nil || !strings.Contains(err.Error(), "conflicting callback") {
			t.Errorf("before %s and after %s: error = %v", c.before, c.after, err)
		}
	}
}

func TestManyDatabases(t *testing.T) {
	p := New(For(snowflakes()))
	for want := range 3 {
		db := open(t)
		if err := db.Use(p); err != nil {
			t.Fatal(err)
		}
		o := order{}
		create(t, db, &o)
		if o.ID != idtype.Snowflake(want+1) {
			t.Errorf("ID = %d", o.ID)
		}
	}
}

// Keys are set before the callbacks of other plugins run.
func TestCallbackOrder(t *testing.T) {
	db := openWith(t, &gorm.Config{DryRun: true}, For(snowflakes()))
	var seen []idtype.Snowflake
	look := func(db *gorm.DB) { seen = append(seen, db.Statement.Dest.(*order).ID) }
	create := db.Callback().Create()
	for _, err := range []error{
		create.Before("gorm:begin_transaction").Register("test:1", look),
		create.Before("gorm:before_create").Register("test:2", look),
		create.Register("test:3", look),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	db.Create(&order{})
	if !slices.Equal(seen, []idtype.Snowflake{1, 1, 1}) {
		t.Errorf("callbacks saw %v, want 1 each", seen)
	}
}

type (
	tagged struct {
		Key  idtype.Snowflake `gorm:"primaryKey;idgen:special"`
		Name string
	}
	// GORM doesn't trim the value of a tag.
	taggedWithSpace struct {
		ID idtype.Snowflake `gorm:"idgen: special"`
	}
	optedOutWithSpace struct {
		ID   idtype.Snowflake `gorm:"idgen: -"`
		Name string
	}
	optedOutData struct {
		ID    idtype.Snowflake
		Other idtype.Snowflake `gorm:"idgen:-"`
	}
	// The tag of an embedded struct is for its key.
	embedsTagged struct {
		B    Base `gorm:"embedded;idgen:special"`
		Name string
	}
	shadows struct {
		Base
		ID   idtype.Sno `gorm:"primaryKey"`
		Name string
	}
	textOfInteger struct{ ID text[idtype.Snowflake] }
	namedText     struct {
		ID text[idtype.Snowflake] `gorm:"idgen:special"`
	}
	serial struct {
		ID   uint
		Name string
	}
	withDefault struct {
		ID   idtype.UID60 `gorm:"default:next_uid60()"`
		Name string
	}
	keyless struct{ Name string }
	code    struct {
		Code string `gorm:"primaryKey"`
	}
	createOnlyKey struct {
		ID   idtype.Snowflake `gorm:"<-:create"`
		Name string
	}
	readOnlyKey struct {
		ID   idtype.Snowflake `gorm:"->"`
		Name string
	}
	// pair has the fields of a sql.Null, but is another type.
	pair struct {
		V     idtype.Snowflake
		Valid bool
	}
	opaque struct{ id idtype.Snowflake }
	// An alien has the method of a typed key, but another memory layout.
	alien [16]byte

	bothTagged struct {
		Left  idtype.Snowflake `gorm:"primaryKey;idgen"`
		Right idtype.Sno       `gorm:"primaryKey;idgen:snos"`
	}
	firstOptedOut struct {
		Left  idtype.Snowflake `gorm:"primaryKey;idgen:-"`
		Right idtype.Snowflake `gorm:"primaryKey;idgen"`
	}
	// A generator takes precedence over a default.
	generatedByDefault struct {
		ID   idtype.Snowflake `gorm:"default:next_id()"`
		Name string
	}
	byDefault struct {
		ID   idtype.Snowflake `gorm:"idgen:-;default:(-)"`
		Name string
	}
	bothPointers struct {
		Left  idtype.Snowflake  `gorm:"primaryKey;idgen"`
		Right *idtype.Snowflake `gorm:"primaryKey;idgen"`
	}
	// A part of the key is its owner's.
	partOfOwner struct {
		OwnerID idtype.Snowflake `gorm:"primaryKey"`
		ID      idtype.Snowflake `gorm:"primaryKey;idgen"`
		Owner   *order
	}
	secondByDefault struct {
		Left  idtype.Snowflake `gorm:"primaryKey"`
		Right idtype.Snowflake `gorm:"primaryKey;default:next_id()"`
	}
	partitioned struct {
		ID   idtype.Snowflake `gorm:"primaryKey"`
		Year int              `gorm:"primaryKey;autoIncrement:false"`
	}
	membership struct {
		GroupID idtype.Snowflake `gorm:"primaryKey"`
		UserID  idtype.Snowflake `gorm:"primaryKey"`
		Group   *group
	}
	group struct {
		ID idtype.Snowflake
	}
	// Two relations have the same name: GORM has both, but finds only one by its name.
	hidden struct {
		Embedded struct {
			AccountID idtype.Snowflake `gorm:"primaryKey"`
			Account   *account
		} `gorm:"embedded"`
		OtherID idtype.Snowflake
		Account *account `gorm:"foreignKey:OtherID"`
	}
	// A labeled model has a key with the name of a column in its join table.
	labeled struct {
		LabelID idtype.Snowflake `gorm:"primaryKey"`
		Labels  []label          `gorm:"many2many:labelings"`
	}
	// A named type may have the fields of a join table that GORM creates. The types of such
	// tables are unnamed, but so are the types of some models.
	likeJoinTable struct {
		ID    idtype.Snowflake `gorm:"primaryKey;idgen"`
		Part  int              `gorm:"primaryKey"`
		Extra struct{}         `gorm:"-"`
	}
	publicKeys struct {
		ID       idtype.Snowflake
		PublicID idtype.Sno `gorm:"idgen"`
		Name     string
	}
	// Only the field's own tag asks for a public ID.
	publicInner struct {
		Inner PublicInner      `gorm:"embedded;idgen:special"`
		Left  idtype.Snowflake `gorm:"idgen:-"`
		Read  idtype.Snowflake `gorm:"idgen;->"`
	}
	PublicInner struct {
		Key   idtype.Snowflake `gorm:"primaryKey"`
		Plain idtype.Snowflake
		Other idtype.Snowflake `gorm:"idgen"`
	}
	shadowedPublic struct {
		ID   idtype.Snowflake
		Code string
		Shadowed
	}
	Shadowed struct {
		Code  string `gorm:"idgen"`
		Other idtype.Snowflake
	}
)

func (pair) Value() (driver.Value, error)     { return "", nil }
func (pair) GormDataType() string             { return "text" }
func (o opaque) Value() (driver.Value, error) { return o.id.String(), nil }
func (opaque) GormDataType() string           { return "text" }
func (alien) Untyped() idtype.Sno             { return idtype.Sno{} }
func (alien) GormDataType() string            { return "bytea" }

// The plan of a model says which keys are filled, and from which generator. The tests in
// integration_test/gorm create rows in all kinds of values.
func TestPlans(t *testing.T) {
	things := func(db *gorm.DB) *gorm.DB { return db.Table("things") }
	selected := func(columns ...string) func(*gorm.DB) *gorm.DB {
		return func(db *gorm.DB) *gorm.DB { return db.Select(columns) }
	}
	omitted := func(column string) func(*gorm.DB) *gorm.DB {
		return func(db *gorm.DB) *gorm.DB { return db.Omit(column) }
	}
	six := idtype.Snowflake(6)
	const sno = `"32323232-3232-3232-3232-323232323233"` // the first
	for _, c := range []struct {
		tx   func(*gorm.DB) *gorm.DB // nil: the database
		row  any
		want string
	}{
		{nil, &order{}, "`orders` (`id`,`note`) VALUES (1,\"\")"},
		{nil, &tagged{}, "`taggeds` (`key`,`name`) VALUES (101,\"\")"},
		{nil, &taggedWithSpace{}, "`tagged_with_spaces` (`id`) VALUES (101)"},
		{nil, &optedOut{}, "`opted_outs` (`id`,`name`) VALUES (0,\"\")"},
		{nil, &optedOutWithSpace{}, "`opted_out_with_spaces` (`id`,`name`) VALUES (0,\"\")"},
		{nil, &optedOutData{}, "`opted_out_data` (`id`,`other`) VALUES (1,0)"},
		{nil, []*tagged{{}, {Key: 9}, {}}, "`taggeds` (`key`,`name`) VALUES (101,\"\"),(9,\"\"),(102,\"\")"},
		{func(db *gorm.DB) *gorm.DB { return db.Model(&tagged{}) }, map[string]any{"name": "a"}, "`taggeds` (`key`,`name`) VALUES (101,\"a\")"},
		{nil, &generatedByDefault{}, "`generated_by_defaults` (`name`,`id`) VALUES (\"\",1) RETURNING `id`"},
		{nil, &emptyTag{}, "`empty_tags` (`id`) VALUES (1)"},
		{nil, &embedsTagged{}, "`embeds_taggeds` (`id`,`name`) VALUES (101,\"\")"},
		{nil, &shadows{}, "`shadows` (`id`,`name`) VALUES (" + sno + ",\"\")"},
		{nil, &textOfInteger{}, "`text_of_integers` (`id`) VALUES (\"1\")"},
		{nil, &namedText{}, "`named_texts` (`id`) VALUES (\"101\")"},
		// Keys that the plugin leaves to the database or to the caller.
		{nil, &serial{}, "`serials` (`name`) VALUES (\"\") RETURNING `id`"},
		{nil, &withDefault{}, "`with_defaults` (`name`) VALUES (\"\") RETURNING `id`"},
		{nil, &keyless{}, "`keylesses` (`name`) VALUES (\"\")"},
		{nil, &code{}, "`codes` (`code`) VALUES (\"\")"},
		{nil, &keyed[pair]{}, "`` (`id`,`name`) VALUES (\"\",\"\")"},
		{nil, &keyed[opaque]{}, "`` (`id`,`name`) VALUES (\"0\",\"\")"},
		{nil, &keyed[alien]{}, "`` (`id`,`name`) VALUES (\"[0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0]\",\"\")"},
		{nil, &readOnlyKey{}, "`read_only_keys` (`name`) VALUES (\"\")"},
		{selected("Name"), &createOnlyKey{}, "`create_only_keys` (`id`,`name`) VALUES (1,\"\")"},
		{omitted("ID"), &generatedByDefault{}, "`generated_by_defaults` (`name`) VALUES (\"\") RETURNING `id`"},
		{omitted("id"), &generatedByDefault{}, "`generated_by_defaults` (`name`) VALUES (\"\") RETURNING `id`"},
		{omitted("generated_by_defaults.id"), &generatedByDefault{}, "`generated_by_defaults` (`name`) VALUES (\"\") RETURNING `id`"},
		{omitted("ID"), &generatedByDefault{ID: 9}, "`generated_by_defaults` (`name`) VALUES (\"\") RETURNING `id`"},
		{func(db *gorm.DB) *gorm.DB { return db.Select("Name").Omit("ID") }, &generatedByDefault{}, "`generated_by_defaults` (`name`) VALUES (\"\") RETURNING `id`"},
		{func(db *gorm.DB) *gorm.DB { return db.Select("ID", "Name").Omit("ID") }, &generatedByDefault{}, "`generated_by_defaults` (`name`) VALUES (\"\") RETURNING `id`"},
		{func(db *gorm.DB) *gorm.DB { return db.Select("*").Omit("ID") }, &generatedByDefault{}, "`generated_by_defaults` (`name`) VALUES (\"\") RETURNING `id`"},
		{omitted("ID"), &order{}, "`orders` (`note`) VALUES (\"\")"},
		{func(db *gorm.DB) *gorm.DB { return db.Model(&order{}).Omit("ID") }, map[string]any{"note": "a"}, "`orders` (`note`) VALUES (\"a\")"},
		{nil, &byDefault{}, "`by_defaults` (`name`) VALUES (\"\") RETURNING `id`"},
		{selected("Name"), &byDefault{}, "`by_defaults` (`name`) VALUES (\"\") RETURNING `id`"},
		{nil, &[]byDefault{{}}, "`by_defaults` (`name`) VALUES (\"\") RETURNING `id`"},
		{nil, &byDefault{ID: 9}, "`by_defaults` (`name`,`id`) VALUES (\"\",9) RETURNING `id`"},
		{nil, &optedOut{ID: 9}, "`opted_outs` (`id`,`name`) VALUES (9,\"\")"},
		{omitted("ID"), &optedOut{}, "`opted_outs` (`name`) VALUES (\"\")"},
		{func(db *gorm.DB) *gorm.DB { return db.Model(&optedOut{}) }, map[string]any{"name": "a"}, "`opted_outs` (`name`) VALUES (\"a\")"},
		// Composite keys: parts with a tag, and no key that GORM copies from another row.
		{nil, &line{}, "`lines` (`order_id`,`id`,`name`) VALUES (0,1,\"\")"},
		{nil, &[]line{{Name: "a"}, {OrderID: 5}, {OrderID: 5, ID: 9}}, "`lines` (`order_id`,`id`,`name`) VALUES (0,1,\"a\"),(5,2,\"\"),(5,9,\"\")"},
		{func(db *gorm.DB) *gorm.DB { return db.Model(&line{}) }, map[string]any{"name": "a", "order_id": 5}, "`lines` (`id`,`name`,`order_id`) VALUES (1,\"a\",5)"},
		{nil, &[]bothPointers{{}, {Left: 5}, {Right: &six}}, "`both_pointers` (`left`,`right`) VALUES (1,3),(5,4),(2,6)"},
		{nil, &[]partOfOwner{{Owner: &order{}}, {Owner: &order{ID: 7}}}, "`part_of_owners` (`owner_id`,`id`) VALUES (3,1),(7,2)"},
		{nil, &[]two{{}, {Left: 5}, {Left: 5, Right: 6}}, "`twos` (`left`,`right`) VALUES (0,0),(5,0),(5,6)"},
		{nil, &two{}, "`twos` (`left`,`right`) VALUES (0,0)"},
		{nil, &bothTagged{}, "`both_taggeds` (`left`,`right`) VALUES (1," + sno + ")"},
		{omitted("Left"), &bothTagged{}, "`both_taggeds` (`right`) VALUES (" + sno + ")"},
		{nil, &firstOptedOut{}, "`first_opted_outs` (`left`,`right`) VALUES (0,1)"},
		{nil, &secondByDefault{Left: 5}, "`second_by_defaults` (`left`) VALUES (5) RETURNING `right`"},
		{nil, &partitioned{ID: 5}, "`partitioneds` (`id`,`year`) VALUES (5,0)"},
		{nil, &membership{UserID: 7}, "`memberships` (`group_id`,`user_id`) VALUES (0,7)"},
		{nil, &membership{UserID: 7, Group: &group{}}, "`memberships` (`group_id`,`user_id`) VALUES (1,7)"},
		{nil, &hidden{}, "`hiddens` (`account_id`,`other_id`) VALUES (0,0)"},
		{nil, &labeled{}, "`labeleds` (`label_id`) VALUES (1)"},
		{nil, &likeJoinTable{}, "`like_join_tables` (`id`,`part`) VALUES (1,0)"},
		// Unnamed models.
		{things, &struct {
			ID   idtype.Snowflake
			Note string `gorm:"-"`
		}{}, "`things` (`id`) VALUES (1)"},
		{things, &struct {
			ID   idtype.Snowflake `gorm:"primaryKey;idgen"`
			Part int              `gorm:"primaryKey"`
			Note string           `gorm:"-"`
		}{}, "`things` (`id`,`part`) VALUES (1,0)"},
		{things, &struct {
			ID    idtype.Snowflake
			Extra struct{} `gorm:"-"`
		}{}, "`things` (`id`) VALUES (1)"},
		{things, &struct {
			ID    idtype.Snowflake `gorm:"primaryKey"`
			Name  string
			Extra struct{} `gorm:"-"`
		}{}, "`things` (`id`,`name`) VALUES (1,\"\")"},
		{things, &struct {
			ID    idtype.Snowflake      `gorm:"primaryKey;idgen"`
			Part  int                   `gorm:"primaryKey"`
			Extra struct{ Name string } `gorm:"embedded"`
		}{}, "`things` (`id`,`part`,`name`) VALUES (1,0,\"\")"},
		{things, &struct{}{}, "`things` DEFAULT VALUES"},
		{things, &struct { // a join table has two keys
			ID    idtype.Snowflake `gorm:"primaryKey"`
			Extra struct{}         `gorm:"-"`
		}{}, "`things` (`id`) VALUES (1)"},
		// Public IDs.
		{selected("Name"), &publicKeys{}, "`public_keys` (`id`,`public_id`,`name`) VALUES (1," + sno + ",\"\")"},
		{omitted("PublicID"), &publicKeys{}, "`public_keys` (`id`,`name`) VALUES (1,\"\")"},
		{nil, &publicInner{}, "`public_inners` (`key`,`plain`,`other`,`left`) VALUES (101,0,102,0)"},
		{nil, &shadowedPublic{}, "`shadowed_publics` (`id`,`code`,`other`) VALUES (1,\"\",0)"},
	} {
		db := open(t, For(snowflakes()), For(snos()), Named("special", from(100)), Named("snos", snos()), Named("labels", snos()))
		for range 2 { // the row has the IDs of the first INSERT
			tx := db
			if c.tx != nil {
				tx = c.tx(db)
			}
			got := create(t, tx, c.row)
			if rest, generic := strings.CutPrefix(c.want, "`` "); generic {
				c.want = got[len("INSERT INTO "):strings.Index(got, " (")] + " " + rest
			}
			wantSQL(t, got, "INSERT INTO "+c.want)
		}
	}
	// A generator that is bound to the type of a serial key fills it.
	db := open(t, For(&counter[uint]{make: func(n int64) uint { return uint(n) }}))
	wantSQL(t, create(t, db, &[]serial{{}, {ID: 9}}), "INSERT INTO `serials` (`name`,`id`) VALUES (\"\",1),(\"\",9) RETURNING `id`")
	// The statement doesn't change the list of the session.
	list := make([]string, 1, 4)
	list[0] = "Note"
	shared := open(t, For(snowflakes())).Select(list).Session(&gorm.Session{})
	for _, id := range []string{"1", "2"} {
		wantSQL(t, create(t, shared, &order{}), "INSERT INTO `orders` (`id`,`note`) VALUES ("+id+",\"\")")
	}
	if got := list[:2][1]; got != "" {
		t.Errorf("the list's next element became %q", got)
	}
}

type (
	account struct {
		ID      idtype.Snowflake
		Profile *profile `gorm:"foreignKey:ID"`
	}
	profile struct {
		ID   idtype.Snowflake
		Name string
	}
	wallet struct {
		AccountID idtype.Snowflake `gorm:"primaryKey"`
		Account   *account
		Name      string
	}
	lease struct {
		ID    idtype.Snowflake
		Notes []note `gorm:"polymorphic:Owner"`
	}
	ticket struct {
		ID idtype.Snowflake `gorm:"idgen"`
	}
	tenant struct {
		ID     idtype.Snowflake
		Lease  *lease  `gorm:"foreignKey:ID"`
		Ticket *ticket `gorm:"foreignKey:ID"`
	}
	parcel struct {
		LeaseID idtype.Snowflake `gorm:"primaryKey"`
		No      int              `gorm:"primaryKey"`
	}
	estate struct {
		ID      idtype.Snowflake
		Parcels []parcel `gorm:"foreignKey:LeaseID"`
	}
	// For a has-one in an embedded struct, GORM doesn't report whose key it is.
	office struct {
		ID    idtype.Snowflake
		Extra struct {
			Vault *vault `gorm:"foreignKey:ID"`
		} `gorm:"embedded"`
	}
	vault struct {
		ID   idtype.Snowflake `gorm:"idgen:-"`
		Name string
	}
	tower struct {
		ID    idtype.Snowflake
		Extra struct {
			Safe *safe `gorm:"foreignKey:ID"`
		} `gorm:"embedded"`
	}
	safe struct {
		ID idtype.Snowflake
	}
)

// A key that two tables share is generated in the table to which the other refers. GORM knows
// the other table once it has parsed both models. Each list has the rows of one database.
func TestSharedKeys(t *testing.T) {
	type step struct {
		row  any
		want any // the SQL, or an error
	}
	for range 20 { // the order of the relations varies
		for _, steps := range [][]step{
			{{&profile{}, "`profiles` (`id`,`name`) VALUES (1,\"\")"}, {&account{}, "`accounts` (`id`) VALUES (2)"},
				{&profile{}, gorm.ErrPrimaryKeyRequired}, {&[]profile{{ID: 1}, {}}, gorm.ErrPrimaryKeyRequired}, {&profile{ID: 7}, "`profiles` (`id`,`name`) VALUES (7,\"\")"}},
			{{&wallet{Account: &account{}}, "`wallets` (`account_id`,`name`) VALUES (1,\"\")"}, {&[]wallet{{Account: &account{ID: 7}}}, "`wallets` (`account_id`,`name`) VALUES (7,\"\")"},
				{&wallet{}, "`wallets` (`account_id`,`name`) VALUES (0,\"\")"}},
			// A model's own relations don't affect whether its key is shared.
			{{&lease{}, "`leases` (`id`) VALUES (1)"}, {&tenant{}, "`tenants` (`id`) VALUES (2)"}, {&lease{}, gorm.ErrPrimaryKeyRequired}},
			{{&tenant{}, "`tenants` (`id`) VALUES (1)"}, {&ticket{}, "`tickets` (`id`) VALUES (2)"}}, // with a tag, the key is generated
			{{&parcel{No: 1}, ErrNoGenerator}, {&estate{Parcels: []parcel{{No: 1}}}, "`estates` (`id`) VALUES (1)"}, {&parcel{No: 1}, ErrNoGenerator},
				{&parcel{LeaseID: 7, No: 1}, "`parcels` (`lease_id`,`no`) VALUES (7,1)"}},
			{{&office{}, "`offices` (`id`) VALUES (1)"}, {&vault{}, "`vaults` (`id`,`name`) VALUES (0,\"\")"}},
			{{&tower{}, "`towers` (`id`) VALUES (1)"}, {&safe{}, "`saves` (`id`) VALUES (2)"}}, // without the tag idgen:-
		} {
			db := open(t, For(snowflakes()))
			for _, s := range steps {
				tx := db.Create(s.row)
				if want, failed := s.want.(error); failed {
					if !errors.Is(tx.Error, want) || !strings.HasPrefix(tx.Error.Error(), "gormplugin: fill "+tx.Statement.Schema.Name+".") {
						t.Errorf("%T: error = %v, want %v", s.row, tx.Error, want)
					}
				} else if tx.Error != nil || sqlOf(tx) != "INSERT INTO "+s.want.(string) {
					t.Errorf("%T: %v, %s, want %s", s.row, tx.Error, sqlOf(tx), s.want)
				}
			}
		}
	}
}

type person struct {
	ID     idtype.Snowflake
	Places []place `gorm:"many2many:stays"`
}

type place struct {
	ID idtype.Snowflake
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
	for s, known := range p.plans.Range {
		if known.(*plan).relations == unwatched {
			joins++
		}
		if s := s.(*schema.Schema); !s.Relationships.Mux.TryLock() {
			t.Errorf("the relations of %s are locked", s.Name)
		}
	}
	if joins != 2 {
		t.Errorf("%d join tables, want 2", joins)
	}
}

// Models without a usable generator.

type (
	unknownName struct {
		ID idtype.Snowflake `gorm:"idgen:oders"`
	}
	wrongType struct {
		ID idtype.Snowflake `gorm:"idgen:snos"`
	}
	unboundByTag struct {
		ID idtype.UID60 `gorm:"idgen"`
	}
	emptyTag struct {
		ID idtype.Snowflake `gorm:"idgen:"`
	}
	unbound         = keyed[idtype.UID60]
	unboundEmbedded struct {
		*UIDKey
		Name string
	}
	UIDKey struct {
		ID idtype.UID60 `gorm:"primaryKey"`
	}
	taggedSerial struct {
		ID uint `gorm:"idgen"`
	}
	firstUnknown struct {
		Left  idtype.Snowflake `gorm:"primaryKey;idgen:oders"`
		Right idtype.Snowflake `gorm:"primaryKey;idgen:orders"`
	}
	secondUnknown struct {
		Left  idtype.Snowflake `gorm:"primaryKey;idgen:orders"`
		Right idtype.Snowflake `gorm:"primaryKey;idgen:oders"`
	}
	// twiceText wraps a column type in another struct.
	twiceText struct{ Twice }
	Twice     = text[idtype.UID60]
)

type (
	publicByOrder struct {
		ID    idtype.Snowflake
		Other idtype.Snowflake `gorm:"column:another;idgen:oders"`
	}
	publicOfWrongType struct {
		ID    idtype.Snowflake
		Other idtype.Snowflake `gorm:"idgen:snos"`
	}
	publicUnbound struct {
		ID    idtype.Snowflake
		Other *idtype.UID60 `gorm:"idgen"`
	}
	publicName struct {
		ID   idtype.Snowflake
		Name string `gorm:"idgen"`
	}
	publicForeign struct {
		ID      idtype.Snowflake
		OwnerID idtype.Snowflake `gorm:"idgen"`
		Owner   *order
	}
	publicParent struct {
		ID       idtype.Snowflake
		Children []publicChild `gorm:"foreignKey:ParentID"`
	}
	publicChild struct {
		ID       idtype.Snowflake
		ParentID idtype.Snowflake `gorm:"idgen"`
	}
	publicRelation struct {
		ID    idtype.Snowflake
		Owner *order `gorm:"idgen;foreignKey:ID"`
	}
)

type publicPair struct {
	ID       idtype.Snowflake
	PublicID idtype.Snowflake `gorm:"idgen"`
}

func TestModelErrors(t *testing.T) {
	s := &server{affected: 1}
	db := openServer(t, s, For(snowflakes()), Named("snos", snos()), Named("orders", snowflakes()))
	const noUID = "].ID: no generator is bound to type idtype.UID60; "
	for want, values := range map[string][]any{
		`fill unknownName.ID: want the name of a generator among ["orders" "snos"], got "oders"; pass gormplugin.Named("oders", gen) to New`: {&unknownName{}, &[]unknownName{{}}, &unknownName{ID: 1}},
		`fill firstUnknown.Left: want the name of a generator`:                                                                               {&firstUnknown{}},
		`fill secondUnknown.Right: want the name of a generator`:                                                                             {&secondUnknown{}},
		`fill wrongType.ID of type idtype.Snowflake: generator "snos" generates idtype.Sno; `:                                                {&wrongType{}},
		noUID + "pass gormplugin.For(gen) to New":                                                                                            {&unbound{}, &[]unbound{{ID: 1}, {}}, []*unbound{{}}, unbound{}},
		noUID: {&keyed[sql.Null[idtype.UID60]]{}, &keyed[*sql.Null[idtype.UID60]]{}, &keyed[*text[idtype.UID60]]{}, &keyed[twiceText]{}, &keyed[*idtype.UID60]{}, &keyed[text[idtype.UID60]]{}, &keyed[optional[idtype.UID60]]{}},
		`fill unboundEmbedded.UIDKey.ID: no generator is bound to type idtype.UID60;`:                                                                                           {&unboundEmbedded{}, &unboundEmbedded{UIDKey: &UIDKey{}}},
		`fill unboundByTag.ID: no generator is bound to type idtype.UID60;`:                                                                                                     {&unboundByTag{}, &unboundByTag{ID: 1}},
		`fill taggedSerial.ID: no generator is bound to type uint;`:                                                                                                             {&taggedSerial{}},
		`].ID: no generator is bound to type idtype.Sno;`:                                                                                                                       {&keyed[idtype.Sno]{}},
		`].ID: want type T, *T or sql.Null[T], where T is idtype.Snowflake or a struct that contains only that, got **idtype.Snowflake`:                                         {&keyed[**idtype.Snowflake]{}},
		`].ID: no generator is bound to type idtype.UID60Of[gormplugin.Sale] or idtype.UID60; `:                                                                                 {&keyed[idtype.UID60Of[Sale]]{}},
		`].ID: want type T, *T or sql.Null[T], where T is idtype.SnowflakeOf[gormplugin.Sale] or a struct that contains only that, got **idtype.SnowflakeOf[gormplugin.Sale]; `: {&keyed[**idtype.SnowflakeOf[Sale]]{}},
		"fill partitioned.ID: the only ID of a composite key is zero and has no idgen tag; set it, or tag it gorm:\"idgen\" ":                                                   {&partitioned{Year: 2024}},
		// Public IDs.
		`fill publicByOrder.Other: want the name of a generator among ["orders" "snos"], got "oders"`:                         {&publicByOrder{}},
		`fill publicOfWrongType.Other of type idtype.Snowflake: generator "snos" generates idtype.Sno;`:                       {&publicOfWrongType{}},
		`fill publicUnbound.Other: no generator is bound to type idtype.UID60;`:                                               {&publicUnbound{}},
		`fill publicName.Name: no generator is bound to type string;`:                                                         {&publicName{}},
		`fill publicForeign.OwnerID: the field has the tag idgen but is a foreign key, whose ID GORM copies from another row`: {&publicForeign{}},
		`fill publicRelation.Owner: no generator is bound to type gormplugin.order;`:                                          {&publicRelation{}},
	} {
		for range 2 { // the plan is cached
			for _, v := range values {
				err := db.Create(v).Error
				if !errors.Is(err, ErrNoGenerator) || !strings.HasPrefix(err.Error(), "gormplugin: fill ") || !strings.Contains(err.Error(), want) {
					t.Errorf("%T: error = %v, want %s", v, err, want)
				}
			}
		}
	}
	// A model with an error gets no IDs at all.
	second := secondUnknown{}
	if db.Create(&second); second.Left != 0 {
		t.Errorf("Left = %d, want 0, because Right has an error", second.Left)
	}
	if err := db.Create([]*unbound{{ID: 1}, nil}).Error; !errors.Is(err, gorm.ErrInvalidData) {
		t.Errorf("a nil element: %v, want GORM's error", err)
	}
	if err := db.Model(&unbound{}).Create(map[string]any{"name": "a"}).Error; !errors.Is(err, ErrNoGenerator) {
		t.Errorf("a map: %v", err)
	}
	if got := s.inserts(); len(got) > 0 {
		t.Errorf("inserted %q", got)
	}
	// A key that is set or omitted needs no generator.
	for _, tx := range []*gorm.DB{
		db.Create(&unbound{ID: 1}), db.Create(unbound{ID: 1}), db.Create([]unbound{{ID: 1}}), db.Omit("ID").Create(&unbound{Name: "a"}),
		db.Model(&unbound{}).Create(map[string]any{"id": 1}),
	} {
		if tx.Error != nil {
			t.Error(tx.Error)
		}
	}
	if got := s.inserts(); len(got) != 5 {
		t.Errorf("inserted %q", got)
	}
	// GORM reports that a column is a foreign key once it has parsed the owner.
	err := db.Create(&publicParent{Children: []publicChild{{}}}).Error
	if !errors.Is(err, ErrNoGenerator) || !strings.HasPrefix(err.Error(), "gormplugin: fill publicChild.ParentID: the field has the tag idgen but is a foreign key") {
		t.Errorf("a public ID that is a foreign key: %v", err)
	}
	if err := db.Create(publicPair{ID: 1}).Error; !errors.Is(err, gorm.ErrInvalidValue) || !strings.Contains(err.Error(), "publicPair.PublicID") {
		t.Errorf("a public ID that can't be written: %v", err)
	}
	// A generator of another model's keys doesn't fill a key.
	if err := open(t, For(idtype.GeneratorOf[idtype.SnowflakeOf[Sale]](from(100)))).Create(new(keyed[idtype.SnowflakeOf[Ticket]])).Error; !errors.Is(err, ErrNoGenerator) {
		t.Errorf("another model's generator: %v", err)
	}
}

// The generator of the type that is nearest to the key's fills it, in any order of the bindings.
func TestNearestGenerator(t *testing.T) {
	typed := For(idtype.GeneratorOf[idtype.SnowflakeOf[Sale]](from(100)))
	own := For(&counter[SaleKey]{make: func(n int64) SaleKey { return SaleKey{idtype.SnowflakeOf[Sale](200 + n)} }})
	texts := For(&counter[text[idtype.SnowflakeOf[Sale]]]{make: func(n int64) text[idtype.SnowflakeOf[Sale]] {
		return text[idtype.SnowflakeOf[Sale]]{idtype.SnowflakeOf[Sale](300 + n)}
	}})
	lines := For(&counter[lineID]{make: func(n int64) lineID { return lineID{idtype.Snowflake(400 + n)} }})
	base := For(snowflakes())
	for name, c := range map[string]struct {
		bindings []Binding
		row      any
		after    int64
	}{
		"typed":                       {[]Binding{base, texts, own, typed}, new(keyed[idtype.SnowflakeOf[Sale]]), 100},
		"typed, other order":          {[]Binding{typed, own, texts, base}, new(keyed[idtype.SnowflakeOf[Sale]]), 100},
		"base":                        {[]Binding{texts, own, base}, new(keyed[idtype.SnowflakeOf[Sale]]), 0},
		"another model's":             {[]Binding{typed, base}, new(keyed[idtype.SnowflakeOf[Ticket]]), 0},
		"pointer":                     {[]Binding{base, typed}, new(keyed[*idtype.SnowflakeOf[Sale]]), 100},
		"own":                         {[]Binding{base, typed, own}, new(keyed[SaleKey]), 200},
		"own without a generator":     {[]Binding{base, typed}, new(keyed[SaleKey]), 100},
		"own, base only":              {[]Binding{base}, new(keyed[SaleKey]), 0},
		"text":                        {[]Binding{base, typed, texts}, new(keyed[text[idtype.SnowflakeOf[Sale]]]), 300},
		"Null text without generator": {[]Binding{base, typed}, new(keyed[sql.Null[text[idtype.SnowflakeOf[Sale]]]]), 100},
		"own base type":               {[]Binding{lines, base}, new(keyed[lineID]), 400},
		"own base type, other order":  {[]Binding{base, For(&counter[idtype.Sno]{}), lines}, new(keyed[*lineID]), 400},
		"own base type, base only":    {[]Binding{base}, new(keyed[sql.Null[lineID]]), 0},
	} {
		db := open(t, c.bindings...)
		err := db.Create(c.row).Error
		key := reflect.ValueOf(c.row).Elem().Field(0)
		if id := within(key, idOf(key.Type())).Int(); err != nil || id-id%100 != c.after {
			t.Errorf("%s: %+v, %v, want an ID after %d", name, c.row, err, c.after)
		}
	}
}

// A key that is in pointers, sql.Nulls and structs is filled, unless one of them has an ID. A
// sql.Null that isn't valid has none.
func TestForms(t *testing.T) {
	type (
		OwnKey struct {
			ID *lineID `gorm:"primaryKey"`
		}
		embeds struct {
			*OwnKey
			Name string
		}
	)
	line := func(n int64) *lineID { return &lineID{idtype.Snowflake(n)} }
	sno := func(n byte) text[idtype.Sno] { return text[idtype.Sno]{idtype.Sno{9: n}} }
	null := func(n int64) sql.Null[lineID] { return sql.Null[lineID]{V: *line(n), Valid: true} }
	zero := line(0)
	for name, c := range map[string]struct{ rows, want any }{
		"pointers":       {&[]keyed[*lineID]{{}, {ID: line(9)}, {ID: zero}}, &[]keyed[*lineID]{{ID: line(1)}, {ID: line(9)}, {ID: line(2)}}},
		"Nulls":          {[]*keyed[sql.Null[lineID]]{{ID: sql.Null[lineID]{V: *line(9)}}, {ID: sql.Null[lineID]{Valid: true}}, {ID: null(9)}}, []*keyed[sql.Null[lineID]]{{ID: null(1)}, {ID: null(2)}, {ID: null(9)}}},
		"pointer to own": {&keyed[*ownText]{}, &keyed[*ownText]{ID: &ownText{sno(1)}}},
		"Null of text":   {&keyed[sql.Null[text[idtype.Sno]]]{}, &keyed[sql.Null[text[idtype.Sno]]]{ID: sql.Null[text[idtype.Sno]]{V: sno(1), Valid: true}}},
		"embedded":       {&embeds{}, &embeds{OwnKey: &OwnKey{ID: line(1)}}},
		"maps":           {[]map[string]any{{"id": zero}, {"ID": line(9)}, {"name": "x"}}, []map[string]any{{"id": *line(1)}, {"ID": line(9)}, {"name": "x", "id": *line(2)}}},
	} {
		db := open(t, For(snowflakes()), For(snos()))
		if name == "maps" {
			db = db.Model(&keyed[*lineID]{})
		}
		if err := db.Create(c.rows).Error; err != nil || !reflect.DeepEqual(c.rows, c.want) {
			t.Errorf("%s: %+v, %v, want %+v", name, c.rows, err, c.want)
		}
	}
	m := map[string]any{} // gets the ID itself
	if create(t, open(t, For(snowflakes())).Model(&keyed[sql.Null[lineID]]{}), m); m["id"] != *line(1) {
		t.Errorf("a map for a sql.Null: got %v", m)
	}
	if !zero.IsZero() {
		t.Errorf("the caller's variable became %v, want zero", zero)
	}
	for _, v := range []any{struct{ ID *idtype.Snowflake }{new(idtype.Snowflake)}, sql.NullInt64{Int64: 9}} {
		if !isMissing(reflect.ValueOf(v)) {
			t.Errorf("%T is not missing", v)
		}
	}
	for _, v := range []any{struct{ V, N int }{V: 9}, sql.RawBytes("9"), sql.Null[*lineID]{V: line(9), Valid: true}} {
		if isMissing(reflect.ValueOf(v)) {
			t.Errorf("%T is missing", v)
		}
	}
}

type namedShopper struct {
	ID   idtype.SnoOf[Shopper] `gorm:"idgen:special"`
	Name string
}

// The plugin creates a Sno with the metabyte that the model declares, with any generator.
func TestMetabyte(t *testing.T) {
	db := open(t, For(snos()), For(idtype.GeneratorOf[idtype.SnoOf[Ticket]](snos())), Named("special", snos()))
	shoppers := make([]Shopper, 2*blockSize)
	create(t, db, &shoppers)
	seen := map[idtype.SnoOf[Shopper]]bool{}
	for _, s := range shoppers {
		seen[s.ID] = true
		if s.ID.Untyped().Meta() != 's' {
			t.Fatalf("got %v with metabyte %d, want %d", s.ID, s.ID.Untyped().Meta(), 's')
		}
	}
	if len(seen) != len(shoppers)/2 { // the counter of the tests has 256 values
		t.Errorf("%d distinct IDs, want %d", len(seen), len(shoppers)/2)
	}
	named, maps, ticket := namedShopper{}, []map[string]any{{}}, Ticket{}
	create(t, db, &named)
	create(t, db.Model(&Shopper{}), maps)
	create(t, db, &ticket)
	if id, _ := maps[0]["id"].(idtype.SnoOf[Shopper]); named.ID.Untyped().Meta() != 's' || id.Untyped().Meta() != 's' || ticket.ID.Untyped().Meta() != 0 {
		t.Errorf("metabytes of %v, %v, %v: want %d, %d, 0", named.ID, maps[0], ticket.ID, 's', 's')
	}
	// A foreign key has it too.
	sale := Sale{Shopper: &Shopper{}}
	create(t, open(t, For(snos()), For(snowflakes())), &sale)
	if sale.ShopperID == nil || sale.ShopperID.Untyped().Meta() != 's' || *sale.ShopperID != sale.Shopper.ID {
		t.Errorf("foreign key %v, want %v", sale.ShopperID, sale.Shopper.ID)
	}
}

// The callback ignores values that don't match the model. GORM rejects them.
func TestUnknownDestinations(t *testing.T) {
	type view struct{ Note string }
	db := open(t, For(snowflakes()))
	fill, tx := db.Callback().Create().Get(fillCallback), db.Session(&gorm.Session{Initialized: true})
	if err := tx.Statement.Parse(&order{}); err != nil {
		t.Fatal(err)
	}
	type named map[string]any
	for _, dest := range []any{&view{}, &[]view{{}}, &[]*view{nil}, named{}, new(int), &[]int{1}, &[]any{1}} {
		tx.Statement.Dest, tx.Statement.ReflectValue = dest, reflect.Indirect(reflect.ValueOf(dest))
		if fill(tx); tx.Error != nil {
			t.Errorf("%T: %v", dest, tx.Error)
		}
	}
}

func TestContext(t *testing.T) {
	type ctxKey struct{}
	gen := snowflakes()
	db := open(t, For(gen))
	withValue := context.WithValue(context.Background(), ctxKey{}, 1)
	ctx, cancel := context.WithCancel(withValue)
	for _, ctx := range []context.Context{withValue, ctx} {
		for _, value := range []any{&order{}, &[]order{{}, {}}, map[string]any{}} {
			gen.ctx = nil
			before := gen.n
			create(t, db.WithContext(ctx).Model(&order{}), value)
			want := int64(1)
			if rows, ok := value.(*[]order); ok {
				want = int64(len(*rows))
			}
			if got := gen.n - before; got != want {
				t.Errorf("%T: %d generated IDs, want %d", value, got, want)
			}
			if gen.ctx == nil || gen.ctx.Value(ctxKey{}) != 1 {
				t.Errorf("%T: the generator got another context than the statement's", value)
			}
		}
	}
	db = db.WithContext(ctx)
	cancel()
	for _, value := range []any{&order{}, &[]order{{}, {}}} {
		if err := db.Create(value).Error; !errors.Is(err, context.Canceled) {
			t.Errorf("%T: error = %v", value, err)
		}
	}
	if err := db.Model(&order{}).Create(map[string]any{}).Error; !errors.Is(err, context.Canceled) {
		t.Errorf("a map: error = %v", err)
	}
}

func TestConcurrency(t *testing.T) {
	db := open(t, For(snowflakes()))
	ctx := t.Context()
	var mu sync.Mutex
	seen := map[idtype.Snowflake]bool{}
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 50 {
				rows := make([]keyed[idtype.Snowflake], 20)
				one, l := order{}, line{}
				m := map[string]any{}
				for _, tx := range []*gorm.DB{db.Create(&rows), db.WithContext(ctx).Create(&one), db.Create(&l), db.Model(&order{}).Create(m)} {
					if tx.Error != nil {
						t.Error(tx.Error)
						return
					}
				}
				ids := []idtype.Snowflake{}
				for _, r := range rows {
					ids = append(ids, r.ID)
				}
				mu.Lock()
				for _, id := range append(ids, one.ID, l.ID, m["id"].(idtype.Snowflake)) {
					if id == 0 || seen[id] {
						t.Errorf("ID %d is zero or a duplicate", id)
					}
					seen[id] = true
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

// The plugin makes the plan of a model while GORM may still parse related models.
func TestConcurrentFirstUse(t *testing.T) {
	for range 30 {
		db := open(t, For(snowflakes()), For(snos()), Named("labels", snos()))
		start := make(chan struct{})
		var wg sync.WaitGroup
		for range 2 {
			// No two models have an association with the same model: GORM can't parse such models
			// concurrently.
			graph := &parent{Boss: &parent{}, Twin: &twin{}, Notes: []note{{}}, Crew: []*parent{{}}, Tags: []label{{}}}
			for _, value := range []any{graph, &note{}, &twin{}, &label{}, &account{Profile: &profile{}}, &wallet{}, &order{}} {
				wg.Go(func() {
					<-start
					if err := db.Create(value).Error; err != nil {
						t.Errorf("%T: %v", value, err)
					}
				})
			}
		}
		close(start)
		wg.Wait()
	}
}

// The IDs of many rows are in the order of the rows.
func TestManyRows(t *testing.T) {
	rows, want := make([]order, 3*blockSize+17), []order{}
	next := idtype.Snowflake(0)
	for i := range rows {
		if i%7 == 3 {
			rows[i].ID = idtype.Snowflake(10_000 + i)
			want = append(want, rows[i])
			continue
		}
		next++
		want = append(want, order{ID: next})
	}
	db := open(t, For(snowflakes()))
	if create(t, db, &rows); !slices.Equal(rows, want) {
		t.Errorf("got %v, want %v", rows, want)
	}
	// The SQL of a dry run has the IDs of the structs, also in ToSQL.
	one := order{}
	text := db.ToSQL(func(tx *gorm.DB) *gorm.DB { return tx.Create(&one) })
	wantSQL(t, text, "INSERT INTO `orders` (`id`,`note`) VALUES ("+one.ID.String()+",\"\")")
}

// Concurrent calls lose no plan.
func TestConcurrentPlans(t *testing.T) {
	var p planner
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 50 {
				p.planFor(&schema.Schema{ModelType: reflect.TypeFor[order]()})
			}
		})
	}
	wg.Wait()
	got := 0
	for range p.plans.Range {
		got++
	}
	if got != 16*50 {
		t.Errorf("%d plans, want %d", got, 16*50)
	}
}

// GORM writes to a model's relations while the model is in use. The race detector checks
// that the plugin reads them under the lock.
func TestConcurrentParsing(t *testing.T) {
	for range 20 {
		db := open(t)
		tx := db.Session(&gorm.Session{Initialized: true})
		if err := tx.Statement.Parse(&profile{}); err != nil {
			t.Fatal(err)
		}
		p := planner{bindings: []Binding{For(snowflakes())}}
		var wg sync.WaitGroup
		parsed := make(chan struct{})
		wg.Go(func() {
			defer close(parsed)
			if err := (&gorm.Statement{DB: db}).Parse(&account{}); err != nil {
				t.Error(err)
			}
		})
		for end := false; p.planFor(tx.Statement.Schema).keys[0].err == nil; {
			select {
			case <-parsed:
				if end {
					t.Fatal("the account's relation never reached the profile")
				}
				end = true
			default:
				runtime.Gosched()
			}
		}
		wg.Wait()
	}
}
