package gormplugin

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"reflect"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/sortkey/sortkey/idtype"
)

// A ticketed has a serial key, and public IDs of several forms beside it.
type ticketed struct {
	ID       uint
	PublicID idtype.SnoOf[Shopper] `gorm:"idgen;unique"`
	Code     *idtype.Snowflake     `gorm:"idgen:codes"`
	Note     string
	Extra
}

type Extra struct {
	Ref sql.Null[idtype.Snowflake] `gorm:"idgen"`
}

func publicSno(n byte) idtype.SnoOf[Shopper] { return idtype.SnoOf[Shopper]{5: 's', 9: n} }

func publicGenerators() []Binding {
	return []Binding{For(snos()), For(snowflakes()), Named("codes", from(100))}
}

// A column with an idgen tag is filled in each form of row in which a key is.
func TestPublicIDs(t *testing.T) {
	code := func(n idtype.Snowflake) *idtype.Snowflake { return &n }
	row := func(n idtype.Snowflake) ticketed {
		return ticketed{PublicID: publicSno(byte(n)), Code: code(100 + n), Extra: Extra{sql.Null[idtype.Snowflake]{V: n, Valid: true}}}
	}
	one, two := row(1), row(2)
	set := ticketed{PublicID: publicSno(77), Code: code(78), Extra: Extra{sql.Null[idtype.Snowflake]{V: 79, Valid: true}}}
	ofMap := map[string]any{"PublicID": publicSno(1), "code": idtype.Snowflake(101), "ref": idtype.Snowflake(1), "note": "a"}
	for name, c := range map[string]struct{ rows, want any }{
		"struct":           {&ticketed{}, &one},
		"set":              {&ticketed{PublicID: set.PublicID, Code: set.Code, Extra: set.Extra}, &set},
		"slice":            {&[]ticketed{{}, set, {}}, &[]ticketed{one, set, two}},
		"slice of one":     {[]ticketed{{}}, []ticketed{one}},
		"pointers":         {[]*ticketed{{}, {}}, []*ticketed{&one, &two}},
		"array":            {&[2]ticketed{}, &[2]ticketed{one, two}},
		"map":              {map[string]any{"PublicID": nil, "note": "a"}, ofMap},
		"slice of one map": {[]map[string]any{{"PublicID": nil, "note": "a"}}, []map[string]any{ofMap}},
	} {
		create(t, open(t, publicGenerators()...).Model(&ticketed{}), c.rows)
		if !reflect.DeepEqual(c.rows, c.want) {
			t.Errorf("%s: got %+v, want %+v", name, c.rows, c.want)
		}
	}
	rows := make([]ticketed, 2*blockSize+1)
	gen := from(0)
	create(t, open(t, For(snos()), For(snowflakes()), Named("codes", gen)).Session(&gorm.Session{SkipHooks: true}), &rows)
	if *rows[2*blockSize].Code != 2*blockSize+1 || rows[2*blockSize].Ref.V != 2*blockSize+1 || gen.n != 2*blockSize+1 {
		t.Errorf("last row: %+v", rows[2*blockSize])
	}
}

// The database generates the serial key, and GORM reads it back.
func TestPublicIDBesideSerialKey(t *testing.T) {
	type account struct {
		ID       uint
		PublicID idtype.Snowflake `gorm:"idgen"`
	}
	s := &server{columns: []string{"id"}, rows: [][]driver.Value{{int64(41)}, {int64(42)}}}
	db := openServer(t, s, For(snowflakes()))
	rows := []account{{}, {}}
	if err := db.Create(&rows).Error; err != nil || rows[0] != (account{41, 1}) || rows[1] != (account{42, 2}) {
		t.Errorf("rows = %v, %v", rows, err)
	}
	if got, want := s.inserts()[0], "INSERT INTO `accounts` (`public_id`) VALUES (?),(?) RETURNING `id`"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	// An update never fills a column.
	for _, tx := range []*gorm.DB{
		db.Save(&account{ID: 7}), db.Model(&account{ID: 7}).Select("*").Updates(account{}), db.Model(&account{ID: 7}).Update("public_id", 0),
	} {
		if tx.Error != nil {
			t.Error(tx.Error)
		}
	}
	rows = []account{{}}
	if create(t, db, &rows); rows[0].PublicID != 4 {
		t.Errorf("PublicID = %d, want 4: Save inserts the row if it finds none, and updates generate nothing", rows[0].PublicID)
	}
}

func TestPublicIDSelectAndOmit(t *testing.T) {
	type account struct {
		ID       idtype.Snowflake
		PublicID idtype.Sno `gorm:"idgen"`
		Name     string
	}
	db := open(t, For(snowflakes()), For(snos()))
	wantSQL(t, create(t, db.Select("Name"), &account{}), "INSERT INTO `accounts` (`id`,`public_id`,`name`) VALUES (1,\"32323232-3232-3232-3232-323232323233\",\"\")")
	a := account{}
	wantSQL(t, create(t, db.Omit("PublicID"), &a), "INSERT INTO `accounts` (`id`,`name`) VALUES (2,\"\")")
	if !a.PublicID.IsZero() {
		t.Errorf("omitted column: %v", a.PublicID)
	}
}

// Only the field's own tag asks for an ID: the tag of an embedded struct is for its key.
func TestPublicIDTags(t *testing.T) {
	type Inner struct {
		Key   idtype.Snowflake `gorm:"primaryKey"`
		Plain idtype.Snowflake
		Other idtype.Snowflake `gorm:"idgen"`
	}
	type outer struct {
		Inner Inner            `gorm:"embedded;idgen:codes"`
		Left  idtype.Snowflake `gorm:"idgen:-"`
		Read  idtype.Snowflake `gorm:"idgen;->"`
	}
	type Shadowed struct {
		Code  string `gorm:"idgen"`
		Other idtype.Snowflake
	}
	type shadowing struct {
		ID   idtype.Snowflake
		Code string
		Shadowed
	}
	db := open(t, For(snowflakes()), Named("codes", from(100)))
	o := outer{}
	create(t, db, &o)
	if want := (outer{Inner: Inner{Key: 101, Other: 102}}); o != want {
		t.Errorf("got %+v, want %+v", o, want)
	}
	create(t, db, &shadowing{})
}

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

func TestPublicIDErrors(t *testing.T) {
	db := open(t, For(snowflakes()), Named("snos", snos()))
	for want, value := range map[string]any{
		`fill publicByOrder.Other: want the name of a generator among ["snos"], got "oders"`:                                  &publicByOrder{},
		`fill publicOfWrongType.Other of type idtype.Snowflake: generator "snos" generates idtype.Sno;`:                       &publicOfWrongType{},
		`fill publicUnbound.Other: no generator is bound to type idtype.UID60;`:                                               &publicUnbound{},
		`fill publicName.Name: no generator is bound to type string;`:                                                         &publicName{},
		`fill publicForeign.OwnerID: the field has the tag idgen but is a foreign key, whose ID GORM copies from another row`: &publicForeign{},
		`fill publicChild.ParentID: the field has the tag idgen but is a foreign key`:                                         &publicParent{Children: []publicChild{{}}},
		`fill publicRelation.Owner: no generator is bound to type gormplugin.order;`:                                          &publicRelation{},
	} {
		if err := db.Create(value).Error; !errors.Is(err, ErrNoGenerator) || !strings.HasPrefix(err.Error(), "gormplugin: "+want) {
			t.Errorf("%T: error = %v, want %s", value, err, want)
		}
	}
	gen := snowflakes()
	gen.limit = 1
	if err := open(t, For(gen)).Create(&publicPair{}).Error; !errors.Is(err, errUsedUp) || !strings.Contains(err.Error(), "fill publicPair.PublicID: generate an ID") {
		t.Errorf("error = %v", err)
	}
	if err := open(t, For(snowflakes())).Create(publicPair{ID: 1}).Error; !errors.Is(err, gorm.ErrInvalidValue) || !strings.Contains(err.Error(), "publicPair.PublicID") {
		t.Errorf("error = %v", err)
	}
}

type publicPair struct {
	ID       idtype.Snowflake
	PublicID idtype.Snowflake `gorm:"idgen"`
}

// A relation may refer to a public ID. The plugin checks that its foreign key can store it.
func TestPublicIDAsReference(t *testing.T) {
	type account struct {
		ID       uint
		PublicID int64 `gorm:"idgen;unique"`
	}
	type login struct {
		ID        uint
		AccountID int64
		Account   *account `gorm:"references:PublicID"`
	}
	type badLogin struct {
		ID        uint
		AccountID int32
		Account   *account `gorm:"references:PublicID"`
	}
	db := open(t, For(&counter[int64]{make: func(n int64) int64 { return n }}))
	l := login{Account: &account{}}
	if create(t, db.Omit("ID"), &l); l.AccountID == 0 || l.AccountID != l.Account.PublicID {
		t.Errorf("login = %+v, account = %+v", l, l.Account)
	}
	if err := db.Create(&badLogin{Account: &account{}}).Error; !errors.Is(err, gorm.ErrUnsupportedRelation) {
		t.Errorf("error = %v", err)
	}
}

type member struct {
	ID       uint
	PublicID idtype.Snowflake `gorm:"idgen;unique"`
	Email    string           `gorm:"unique"`
	Name     string
}

// An upsert doesn't change a public ID, unless the caller names the column, and reads it back
// if the rows may have another one.
func TestPublicIDUpserts(t *testing.T) {
	type bare struct {
		ID       idtype.Snowflake
		PublicID idtype.Snowflake `gorm:"idgen"`
	}
	db := open(t, For(snowflakes()))
	onPublic := []clause.Column{{Name: "public_id"}}
	named := clause.AssignmentColumns([]string{"name", "public_id"})
	for name, c := range map[string]struct {
		conflict clause.OnConflict
		value    any
		want     string // after the VALUES
	}{
		"all":                  {clause.OnConflict{Columns: onEmail, UpdateAll: true}, &member{}, "(`email`) DO UPDATE SET `email`=`excluded`.`email`,`name`=`excluded`.`name` RETURNING `id`,`public_id`"},
		"all, batch":           {clause.OnConflict{Columns: onEmail, UpdateAll: true}, &[]member{{}, {}}, "(`email`) DO UPDATE SET `email`=`excluded`.`email`,`name`=`excluded`.`name` RETURNING `id`,`public_id`"},
		"all, by primary key":  {clause.OnConflict{UpdateAll: true}, &member{}, "(`id`) DO UPDATE SET `email`=`excluded`.`email`,`name`=`excluded`.`name` RETURNING `id`,`public_id`"},
		"all, map":             {clause.OnConflict{Columns: onEmail, UpdateAll: true}, map[string]any{"name": "a"}, "(`email`) DO UPDATE SET `name`=`excluded`.`name` RETURNING `id`"},
		"all and a named one":  {clause.OnConflict{Columns: onEmail, UpdateAll: true, DoUpdates: named[1:]}, &member{}, "(`email`) DO UPDATE SET `public_id`=`excluded`.`public_id`,`email`=`excluded`.`email`,`name`=`excluded`.`name` RETURNING `id`,`public_id`"},
		"all, nothing else":    {clause.OnConflict{UpdateAll: true}, &bare{ID: 1}, "(`id`) DO NOTHING RETURNING `id`,`public_id`"},
		"a named column":       {clause.OnConflict{Columns: onEmail, DoUpdates: named[:1]}, &member{}, "(`email`) DO UPDATE SET `name`=`excluded`.`name` RETURNING `id`,`public_id`"},
		"the public ID, named": {clause.OnConflict{Columns: onEmail, DoUpdates: named[1:]}, &member{}, "(`email`) DO UPDATE SET `public_id`=`excluded`.`public_id` RETURNING `id`,`public_id`"},
		"by public ID":         {clause.OnConflict{Columns: onPublic, DoUpdates: named[:1]}, &member{PublicID: 1}, "(`public_id`) DO UPDATE SET `name`=`excluded`.`name` RETURNING `id`"},
		"nothing":              {clause.OnConflict{DoNothing: true}, &member{}, "DO NOTHING RETURNING `id`"},
	} {
		session := db.Clauses(c.conflict).Session(&gorm.Session{})
		for range 2 { // a statement doesn't change the clause of its session
			tx := session
			if name == "all, map" {
				tx = tx.Model(&member{})
			}
			if _, got, _ := strings.Cut(create(t, tx, c.value), " ON CONFLICT "); got != c.want {
				t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
			}
		}
	}
}

func TestPublicIDsOfStoredRows(t *testing.T) {
	s := &server{columns: []string{"id", "public_id"}, rows: [][]driver.Value{{int64(1), int64(501)}, {int64(2), int64(502)}}}
	db := openServer(t, s, For(snowflakes()))
	upsert := db.Clauses(clause.OnConflict{Columns: onEmail, UpdateAll: true}).Session(&gorm.Session{})
	batch := []*member{{Email: "a"}, {Email: "b"}}
	if err := upsert.Create(&batch).Error; err != nil || batch[0].PublicID != 501 || batch[1].PublicID != 502 || batch[1].ID != 2 {
		t.Errorf("batch = %v %v, %v", batch[0], batch[1], err)
	}
	s.rows = s.rows[:1]
	m := member{Email: "a"}
	if err := upsert.Create(&m).Error; err != nil || m.PublicID != 501 || m.ID != 1 {
		t.Errorf("member = %+v, %v", m, err)
	}
	if err := upsert.Create(&batch).Error; !errors.Is(err, gorm.ErrInvalidData) {
		t.Errorf("missing row: %v", err)
	}
	// A row that was not inserted has no generated ID.
	s.rows = nil
	nothing := db.Clauses(clause.OnConflict{DoNothing: true}).Session(&gorm.Session{})
	m, set := member{}, member{PublicID: 9}
	if err := errors.Join(nothing.Create(&m).Error, nothing.Create(&set).Error); err != nil || m.PublicID != 0 || set.PublicID != 9 {
		t.Errorf("skipped rows: %+v, %+v, %v", m, set, err)
	}
	// An UpdateAll with nothing to update does nothing, and may skip rows.
	pairs := []publicPair{{ID: 1}, {ID: 2}}
	if err := db.Save(&pairs).Error; err != nil {
		t.Errorf("Save: %v", err)
	}
	if got := s.ran[len(s.ran)-2]; !strings.Contains(got, "DO NOTHING") {
		t.Errorf("Save ran %s", got)
	}
}
