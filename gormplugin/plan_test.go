package gormplugin

import (
	"context"
	"database/sql"
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
		t.Errorf("second Use: got %v, want %v", err, gorm.ErrRegistered)
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

type emptyTag struct {
	ID idtype.Snowflake `gorm:"idgen:"`
}

type unboundText struct {
	ID text[idtype.UID60]
}

type unboundNull struct{ ID sql.Null[idtype.UID60] }

type unboundNullPointer struct{ ID *sql.Null[idtype.UID60] }

type unboundTextPointer struct{ ID *text[idtype.UID60] }

type unboundForm struct{ ID twiceText }

// twiceText wraps a column type in another struct.
type twiceText struct{ Twice }

type Twice = text[idtype.UID60]

type onlyNamed struct{ ID idtype.Sno }

type taggedSerial struct {
	ID uint `gorm:"idgen"`
}

type firstUnknown struct {
	Left  idtype.Snowflake `gorm:"primaryKey;idgen:oders"`
	Right idtype.Snowflake `gorm:"primaryKey;idgen:orders"`
}

type secondUnknown struct {
	Left  idtype.Snowflake `gorm:"primaryKey;idgen:orders"`
	Right idtype.Snowflake `gorm:"primaryKey;idgen:oders"`
}

func TestModelErrors(t *testing.T) {
	s := &server{affected: 1}
	db := openServer(t, s, For(snowflakes()), Named("snos", snos()), Named("orders", snowflakes()))
	for want, values := range map[string][]any{
		`fill unknownName.ID: want the name of a generator among ["orders" "snos"], got "oders"; pass gormplugin.Named("oders", gen) to New`:       {&unknownName{}, &[]unknownName{{}}, &unknownName{ID: 1}},
		`fill firstUnknown.Left: want the name of a generator`:                                                                                     {&firstUnknown{}},
		`fill secondUnknown.Right: want the name of a generator`:                                                                                   {&secondUnknown{}},
		`fill wrongType.ID of type idtype.Snowflake: generator "snos" generates idtype.Sno; `:                                                      {&wrongType{}},
		`fill unbound.ID: no generator is bound to type idtype.UID60; pass gormplugin.For(gen) to New`:                                             {&unbound{}, &[]unbound{{ID: 1}, {}}, []*unbound{{}}, unbound{}},
		`fill unboundByTag.ID: no generator is bound to type idtype.UID60;`:                                                                        {&unboundByTag{}, &unboundByTag{ID: 1}},
		`fill taggedSerial.ID: no generator is bound to type uint;`:                                                                                {&taggedSerial{}},
		`fill onlyNamed.ID: no generator is bound to type idtype.Sno;`:                                                                             {&onlyNamed{}},
		`fill unboundNull.ID: no generator is bound to type idtype.UID60;`:                                                                         {&unboundNull{}},
		`fill unboundNullPointer.ID: no generator is bound to type idtype.UID60;`:                                                                  {&unboundNullPointer{}},
		`fill unboundTextPointer.ID: no generator is bound to type idtype.UID60;`:                                                                  {&unboundTextPointer{}},
		`fill unboundForm.ID: no generator is bound to type idtype.UID60;`:                                                                         {&unboundForm{}},
		`fill unboundPointer.ID: no generator is bound to type idtype.UID60;`:                                                                      {&unboundPointer{}},
		`fill unboundText.ID: no generator is bound to type idtype.UID60;`:                                                                         {&unboundText{}},
		`fill oddForm.ID: want type T, *T or sql.Null[T], where T is idtype.Snowflake or a struct that contains only that, got **idtype.Snowflake`: {&oddForm{}},
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
}

// The plugin leaves keys alone that the database generates.
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
	type code struct {
		Code string `gorm:"primaryKey"`
	}
	type optedOutData struct {
		ID    idtype.Snowflake
		Other idtype.Snowflake `gorm:"idgen:-"`
	}
	db := open(t, For(snowflakes()))
	wantSQL(t, create(t, db, &serial{}), "INSERT INTO `serials` (`name`) VALUES (\"\") RETURNING `id`")
	wantSQL(t, create(t, db, &withDefault{}), "INSERT INTO `with_defaults` (`name`) VALUES (\"\") RETURNING `id`")
	wantSQL(t, create(t, db, &keyless{}), "INSERT INTO `keylesses` (`name`) VALUES (\"\")")
	wantSQL(t, create(t, db, &code{}), "INSERT INTO `codes` (`code`) VALUES (\"\")")
	wantSQL(t, create(t, db, &optedOutData{}), "INSERT INTO `opted_out_data` (`id`,`other`) VALUES (1,0)")
	// A generator that is bound to their type fills them.
	db = open(t, For(&counter[uint]{make: func(n int64) uint { return uint(n) }}))
	u := serial{}
	wantSQL(t, create(t, db, &u), "INSERT INTO `serials` (`name`,`id`) VALUES (\"\",1) RETURNING `id`")
	if u.ID != 1 {
		t.Errorf("ID = %d", u.ID)
	}
	u = serial{ID: 9}
	if create(t, db, &u); u.ID != 9 {
		t.Errorf("ID = %d, want 9 as set", u.ID)
	}
}

func TestGeneratorErrors(t *testing.T) {
	s := &server{affected: 1}
	gen := snowflakes()
	gen.limit = 2
	db := openServer(t, s, For(gen))
	rows := make([]order, 5)
	err := db.Create(&rows).Error
	if !errors.Is(err, errUsedUp) || err.Error() != "gormplugin: fill order.ID: generate an ID: used up" {
		t.Errorf("error = %v", err)
	}
	for _, r := range rows {
		if r.ID != 0 {
			t.Errorf("after a failed Create: ID = %d, want 0", r.ID)
		}
	}
	if err := db.Create(&order{}).Error; !errors.Is(err, errUsedUp) {
		t.Errorf("error = %v", err)
	}
	var m map[string]any
	for _, value := range []any{map[string]any{}, &m, []map[string]any{{}, {}}, &[]map[string]any{{}, {}}} {
		if err := db.Model(&order{}).Create(value).Error; !errors.Is(err, errUsedUp) {
			t.Errorf("%T: error = %v", value, err)
		}
	}
	// The struct is unchanged.
	type pointer struct{ ID *idtype.Snowflake }
	p := pointer{}
	if err := db.Create(&p).Error; !errors.Is(err, errUsedUp) || p.ID != nil {
		t.Errorf("ID = %v, error = %v", p.ID, err)
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
	// A failure in an association rolls back the earlier INSERTs.
	gen.limit = gen.n + 2
	err = db.Create(&parent{Children: []child{{}, {}}}).Error
	if !errors.Is(err, errUsedUp) {
		t.Errorf("error = %v", err)
	}
	if want := []string{"BEGIN", "INSERT INTO `parents` (`id`,`boss_id`) VALUES (?,?)", "ROLLBACK"}; !slices.Equal(s.ran, want) {
		t.Errorf("ran %q, want %q", s.ran, want)
	}
}

// A faltering generator fails once.
type faltering struct {
	*counter[idtype.Snowflake]
	failed bool
}

func (f *faltering) Fill(ctx context.Context, dst []idtype.Snowflake) (int, error) {
	if !f.failed {
		f.failed = true
		return 0, errUsedUp
	}
	return f.counter.Fill(ctx, dst)
}

// A Create fails even if only the first block gets no IDs.
func TestGeneratorFailsOnce(t *testing.T) {
	rows := make([]order, 2*blockSize)
	if err := open(t, For(&faltering{counter: snowflakes()})).Create(&rows).Error; !errors.Is(err, errUsedUp) {
		t.Errorf("error = %v, the first ID is %d", err, rows[0].ID)
	}
}

// After an error, no further ID is generated for the statement.
func TestNothingAfterError(t *testing.T) {
	gen, others := snowflakes(), snos()
	db := open(t, For(gen), Named("snos", others))
	failed := db.Session(&gorm.Session{})
	_ = failed.AddError(errUsedUp)
	if err := failed.Create(&order{}).Error; !errors.Is(err, errUsedUp) || gen.n != 0 {
		t.Errorf("error = %v, %d generated IDs, want 0", err, gen.n)
	}
	gen.n, gen.limit = 1, 1
	if err := db.Create(&bothTagged{}).Error; !errors.Is(err, errUsedUp) || others.n != 0 {
		t.Errorf("error = %v, %d generated IDs for the other part of the key, want 0", err, others.n)
	}
}

// A lazy generator returns one ID fewer than requested.
type lazy struct{ *counter[idtype.Snowflake] }

func (l lazy) Fill(ctx context.Context, dst []idtype.Snowflake) (int, error) {
	return l.counter.Fill(ctx, dst[:len(dst)-1])
}

func TestGeneratorReturnsTooFewIDs(t *testing.T) {
	db := open(t, For(lazy{snowflakes()}))
	rows := make([]order, 3)
	if err := db.Create(&rows).Error; err == nil || !strings.Contains(err.Error(), "gormplugin.lazy.Fill: want 3 IDs, got 2") {
		t.Errorf("error = %v", err)
	}
	// If no ID is missing, Fill is not called.
	create(t, db, &[]order{{ID: 1}, {ID: 2}})
}
