package gormplugin

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/idtype"
)

func TestUse(t *testing.T) {
	db := open(t, For(snowflakes()))
	if err := db.Use(New(For(snos()))); !errors.Is(err, gorm.ErrRegistered) {
		t.Errorf("twice: %v", err)
	}
	var none idtype.Generator[idtype.Snowflake]
	for want, bindings := range map[string][]Binding{
		"expected a generator in every For and Named, got nil":           {For(none)},
		"expected a generator in every For and Named, got nil: make one": {For((*idtype.SnowflakeGenerator)(nil))},
		"expected one generator for idtype.Snowflake, got two":           {For(snowflakes()), For(snos()), For(snowflakes())},
		`expected one generator named "a", got two`:                      {Named("a", snowflakes()), Named("a", snos())},
		`a tag can hold, got ""`:                                         {Named("", snowflakes())},
		`a tag can hold, got "-"`:                                        {Named("-", snowflakes())},
		`a tag can hold, got "IDGEN"`:                                    {Named("IDGEN", snowflakes())},
		`a tag can hold, got "a;b"`:                                      {Named("a;b", snowflakes())},
	} {
		db := open(t)
		err := db.Use(New(bindings...))
		if err == nil || !strings.HasPrefix(err.Error(), "gormplugin: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("error = %v, want %s", err, want)
		}
		// What was refused isn't half there.
		if db.Plugins[pluginName] != nil || db.Callback().Create().Get(fillCallback) != nil {
			t.Error("the plugin was registered all the same")
		}
	}
}

type unknownName struct {
	ID idtype.Snowflake `gorm:"idgen:oders"`
}

type wrongType struct {
	ID idtype.Snowflake `gorm:"idgen:snos"`
}

type unboundByTag struct {
	ID idtype.UID60 `gorm:"idgen"`
}

type unbound struct {
	ID   idtype.UID60
	Name string
}

type unboundPointer struct{ ID *idtype.UID60 }

type oddForm struct{ ID **idtype.Snowflake }

type sharedByMethod struct{ ID idtype.Snowflake }

func (sharedByMethod) IDGenerator() string { return "orders" }

type emptyTag struct {
	ID idtype.Snowflake `gorm:"idgen:"`
}

type unboundText struct {
	ID text[idtype.UID60]
}

type tagOnData struct {
	ID    idtype.Snowflake
	Other idtype.Snowflake `gorm:"idgen:orders"`
}

type emptyName struct{ ID idtype.Snowflake }

func (emptyName) IDGenerator() string { return "" }

type wrongMethod struct{ ID idtype.Snowflake }

func (wrongMethod) IDGenerator() (string, error) { return "", nil }

func TestModelErrors(t *testing.T) {
	s := &server{affected: 1}
	db := openServer(t, s, For(snowflakes()), Named("orders", snowflakes()), Named("snos", snos()))
	for want, values := range map[string][]any{
		`expected unknownName.ID to name a generator among ["orders" "snos"], got "oders": pass gormplugin.Named("oders", gen) to New`: {&unknownName{}, &[]unknownName{{}}, &unknownName{ID: 1}},
		`expected a generator for wrongType.ID, which is of type idtype.Snowflake, got "snos", which mints idtype.Sno: `:               {&wrongType{}},
		`expected a generator of idtype.UID60 for unbound.ID, got none: pass gormplugin.For(gen) to New`:                               {&unbound{}, &[]unbound{{ID: 1}, {}}, []*unbound{{}}, unbound{}},
		`expected a generator of idtype.UID60 for unboundByTag.ID, got none`:                                                           {&unboundByTag{}},
		`expected a generator of idtype.UID60 for unboundPointer.ID, got none`:                                                         {&unboundPointer{}},
		`expected a generator of idtype.UID60 for unboundText.ID, got none`:                                                            {&unboundText{}},
		`expected oddForm.ID to be of type T, *T or sql.Null[T] with T = idtype.Snowflake, got **idtype.Snowflake`:                     {&oddForm{}},
		`expected the tag idgen on a primary key, got it on tagOnData.Other`:                                                           {&tagOnData{}},
		`expected the name of a generator from emptyName.IDGenerator, which is asked once and of an empty model, got an empty one`:     {&emptyName{}},
		`expected wrongMethod.IDGenerator to be a func() string, got func() (string, error)`:                                           {&wrongMethod{}},
	} {
		for range 2 { // the plan is cached
			for _, v := range values {
				err := db.Create(v).Error
				if !errors.Is(err, ErrNoGenerator) || !strings.HasPrefix(err.Error(), "gormplugin: "+want) {
					t.Errorf("%T: error = %v, want %s", v, err, want)
				}
			}
		}
	}
	if err := db.Model(&unbound{}).Create(map[string]any{"name": "a"}).Error; !errors.Is(err, ErrNoGenerator) {
		t.Errorf("a map: %v", err)
	}
	if got := s.inserts(); len(got) > 0 {
		t.Errorf("inserted %q", got)
	}
	// A key that is set needs no generator, nor does one that is left out.
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
}

func TestEmptyTag(t *testing.T) {
	e := emptyTag{}
	create(t, open(t, For(snowflakes())), &e)
	if e.ID != 1 {
		t.Errorf("ID = %d", e.ID)
	}
}

// A method may be inherited: it doesn't say that a shared key is to be made up.
func TestSharedKeyWithMethod(t *testing.T) {
	type owner struct {
		ID    idtype.Snowflake
		Owned *sharedByMethod `gorm:"foreignKey:ID"`
	}
	db := open(t, For(snowflakes()), Named("orders", from(100)))
	o := owner{Owned: &sharedByMethod{}}
	create(t, db, &o)
	if o.ID != 1 || o.Owned.ID != 1 {
		t.Errorf("owner = %v, owned = %v", o, o.Owned)
	}
	if err := db.Create(&sharedByMethod{}).Error; !errors.Is(err, gorm.ErrPrimaryKeyRequired) {
		t.Errorf("error = %v", err)
	}
}

// Keys that the database makes are no business of the plugin's.
func TestOtherKeys(t *testing.T) {
	type serial struct {
		ID   uint
		Name string
	}
	type withDefault struct {
		ID   idtype.UID60 `gorm:"default:next_uid60()"`
		Name string
	}
	type keyless struct{ Name string }
	db := open(t, For(snowflakes()))
	wantSQL(t, create(t, db, &serial{}), "INSERT INTO `serials` (`name`) VALUES (\"\") RETURNING `id`")
	wantSQL(t, create(t, db, &withDefault{}), "INSERT INTO `with_defaults` (`name`) VALUES (\"\") RETURNING `id`")
	wantSQL(t, create(t, db, &keyless{}), "INSERT INTO `keylesses` (`name`) VALUES (\"\")")
	// But a generator that is bound to the type is for them too.
	db = open(t, For(&counter[uint]{make: func(n int64) uint { return uint(n) }}))
	u := serial{}
	wantSQL(t, create(t, db, &u), "INSERT INTO `serials` (`name`,`id`) VALUES (\"\",1) RETURNING `id`")
	if u.ID != 1 {
		t.Errorf("ID = %d", u.ID)
	}
}

func TestGeneratorErrors(t *testing.T) {
	s := &server{affected: 1}
	gen := snowflakes()
	gen.limit = 2
	db := openServer(t, s, For(gen))
	rows := make([]order, 5)
	err := db.Create(&rows).Error
	if !errors.Is(err, errUsedUp) || err.Error() != "gormplugin: expected an ID for order.ID, got none from its generator: used up" {
		t.Errorf("error = %v", err)
	}
	for _, r := range rows {
		if r.ID != 0 {
			t.Errorf("a row of a failed Create has %d", r.ID)
		}
	}
	if err := db.Create(&order{}).Error; !errors.Is(err, errUsedUp) {
		t.Errorf("error = %v", err)
	}
	if err := db.Model(&order{}).Create([]map[string]any{{}, {}}).Error; !errors.Is(err, errUsedUp) {
		t.Errorf("error = %v", err)
	}
	if len(s.ran) > 0 {
		t.Errorf("ran %q", s.ran)
	}
	// Blocks before the failure may be filled, but nothing is inserted.
	gen.limit = blockSize + 3
	many := make([]order, 2*blockSize)
	if err := db.Create(&many).Error; !errors.Is(err, errUsedUp) || many[2*blockSize-1].ID != 0 {
		t.Errorf("error = %v", err)
	}
	if len(s.ran) > 0 {
		t.Errorf("ran %q", s.ran)
	}
	// In an association it undoes what came before.
	gen.limit = gen.n + 2
	err = db.Create(&parent{Children: []child{{}, {}}}).Error
	if !errors.Is(err, errUsedUp) {
		t.Errorf("error = %v", err)
	}
	if want := []string{"BEGIN", "INSERT INTO `parents` (`id`,`boss_id`) VALUES (?,?)", "ROLLBACK"}; !slices.Equal(s.ran, want) {
		t.Errorf("ran %q, want %q", s.ran, want)
	}
}

// lazy gives fewer IDs than it was asked for.
type lazy struct{ *counter[idtype.Snowflake] }

func (l lazy) Fill(ctx context.Context, dst []idtype.Snowflake) (int, error) {
	return l.counter.Fill(ctx, dst[:len(dst)-1])
}

func TestGeneratorThatGivesTooFew(t *testing.T) {
	db := open(t, For(lazy{snowflakes()}))
	rows := make([]order, 3)
	if err := db.Create(&rows).Error; err == nil || !strings.Contains(err.Error(), "expected 3 IDs from Fill of gormplugin.lazy, got 2 and no error") {
		t.Errorf("error = %v", err)
	}
}
