package gormplugin

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/idtype"
)

// The models have one relation of each kind. Their foreign keys are strings or a smaller
// integer.
type (
	hasMany struct {
		ID    idtype.Snowflake
		Items []stringItem `gorm:"foreignKey:OwnerID"`
	}
	hasOne struct {
		ID   idtype.Snowflake
		Item *stringItem `gorm:"foreignKey:OwnerID"`
	}
	stringItem struct {
		ID      idtype.Snowflake
		OwnerID string
	}
	belongsTo struct {
		ID      idtype.Snowflake
		OwnerID *string
		Owner   *order
	}
	byNumber struct {
		ID      idtype.Snowflake
		OwnerNo int32
		Owner   *numbered `gorm:"foreignKey:OwnerNo;references:Number"`
	}
	numbered struct {
		ID     int64 `gorm:"autoIncrement:false"`
		Number idtype.Snowflake
	}
	polymorphic struct {
		ID    idtype.Snowflake
		Notes []stringNote `gorm:"polymorphic:Owner"`
	}
	stringNote struct {
		ID        idtype.Snowflake
		OwnerID   string
		OwnerType string
	}
	embedding struct {
		ID idtype.Snowflake
		Embedded
		In Inner `gorm:"embedded;embeddedPrefix:in_"`
	}
	Embedded struct{ Name string }
	Inner    struct {
		OwnerID string
		Owner   *order
	}
	left struct {
		ID     idtype.Snowflake
		Rights []right `gorm:"many2many:left_rights"`
	}
	right     struct{ ID idtype.Sno }
	leftRight struct {
		LeftID  string     `gorm:"primaryKey"`
		RightID idtype.Sno `gorm:"primaryKey"`
	}
)

// If GORM would store another value in a foreign key, the first Create or Update of the
// model fails, even without an associated row.
func TestRelationsOfOtherTypes(t *testing.T) {
	db := openServer(t, &server{affected: 1}, For(snowflakes()), For(snos()))
	if err := db.SetupJoinTable(&left{}, "Rights", &leftRight{}); err != nil {
		t.Fatal(err)
	}
	id := idtype.Snowflake(7)
	for name, c := range map[string]struct {
		names []string // in the error
		runs  []*gorm.DB
	}{
		"has-many": {[]string{"hasMany.Items", "store hasMany.ID (idtype.Snowflake) in stringItem.OwnerID (string)", "declare stringItem.OwnerID as idtype.Snowflake, or as sql.Null[string] to keep a text column, or add <-:false to the gorm tag of hasMany.Items so that GORM doesn't save it: "}, []*gorm.DB{
			db.Create(&hasMany{}), db.Create(&hasMany{Items: []stringItem{{}}}), db.Create([]hasMany{{}, {}}), db.Create([]*hasMany{{ID: 1, Items: []stringItem{{}}}}),
			db.Save(&hasMany{ID: 1}), db.Save(&hasMany{ID: 1, Items: []stringItem{{}}}), db.Updates(&hasMany{ID: 1, Items: []stringItem{{}}}),
			db.Model(&hasMany{ID: 1}).Update("id", 2), db.Model(&hasMany{}).Create(map[string]any{"id": 7}), db.Omit("Items").Create(&hasMany{}),
			{Error: db.Model(&hasMany{ID: 1}).Association("Items").Append(&stringItem{})},
			{Error: db.Model(&hasMany{ID: 1}).Association("Items").Replace(&stringItem{})},
			{Error: db.Model(&[]hasMany{{ID: 1}}).Association("Items").Append(&stringItem{})},
			db.FirstOrCreate(&hasMany{}),
		}},
		"has-one": {[]string{"hasOne.Item", "stringItem.OwnerID", "hasOne.ID"}, []*gorm.DB{
			db.Create(&hasOne{}), db.Create(&hasOne{Item: &stringItem{}}), db.Updates(&hasOne{ID: 1, Item: &stringItem{}}),
			{Error: db.Model(&hasOne{ID: 1}).Association("Item").Append(&stringItem{})},
		}},
		"belongs-to": {[]string{"belongsTo.Owner", "belongsTo.OwnerID (*string)", "order.ID", "as sql.Null[string]"}, []*gorm.DB{
			db.Create(&belongsTo{}), db.Create(&belongsTo{Owner: &order{ID: id}}), db.Save(&belongsTo{ID: 1, Owner: &order{}}),
			{Error: db.Model(&belongsTo{ID: 1}).Association("Owner").Replace(&order{})},
		}},
		"belongs-to by another column": {[]string{"byNumber.Owner", "byNumber.OwnerNo (int32)", "numbered.Number", "declare byNumber.OwnerNo as idtype.Snowflake, or add <-:false "}, []*gorm.DB{db.Create(&byNumber{})}},
		"polymorphic": {[]string{"polymorphic.Notes", "stringNote.OwnerID", "polymorphic.ID"}, []*gorm.DB{
			db.Create(&polymorphic{}), db.Updates(&polymorphic{ID: 1, Notes: []stringNote{{}}}),
			{Error: db.Model(&polymorphic{ID: 1}).Association("Notes").Append(&stringNote{})},
		}},
		"embedded":  {[]string{"check relation embedding.In.Owner: ", "embedding.In.OwnerID", "order.ID"}, []*gorm.DB{db.Create(&embedding{})}},
		"many2many": {[]string{"left.Rights", "leftRight.LeftID", "left.ID"}, []*gorm.DB{db.Create(&left{}), db.Updates(&left{ID: 1, Rights: []right{{}}})}},
	} {
		for i, tx := range c.runs {
			if !errors.Is(tx.Error, gorm.ErrUnsupportedRelation) {
				t.Errorf("%s, %d: %v, want %v", name, i, tx.Error, gorm.ErrUnsupportedRelation)
				continue
			}
			for _, want := range append(c.names, "gormplugin: check relation ") {
				if !strings.Contains(tx.Error.Error(), want) {
					t.Errorf("%s, %d: %v, want %q in it", name, i, tx.Error, want)
				}
			}
		}
	}
}

type (
	plainID   int64
	plainUint uint64
	plainText string

	// A hasOf refers to its key of type K by foreign keys of type F.
	hasOf[K, F any] struct {
		ID    K           `gorm:"primaryKey"`
		Items []itemOf[F] `gorm:"foreignKey:OwnerID"`
	}
)

func refers[K, F any](db *gorm.DB) error { return db.Create(&hasOf[K, F]{}).Error }

// In most of these foreign keys, GORM would store another value without an error.
// integration_test/sqlite has the types that the plugin accepts, and the values that GORM stores.
func TestForeignKeysOfOtherTypes(t *testing.T) {
	type (
		snowflake = idtype.Snowflake
		sale      = idtype.SnowflakeOf[Sale]
		sno       = idtype.Sno
	)
	db := open(t, For(snowflakes()), For(snos()), For(&counter[plainID]{}), For(&counter[plainUint]{}))
	for i, err := range []error{
		refers[snowflake, string](db), refers[snowflake, plainText](db), refers[snowflake, *string](db), refers[snowflake, []byte](db), refers[snowflake, time.Time](db),
		refers[snowflake, int32](db), refers[snowflake, *int16](db), refers[snowflake, uint32](db), refers[snowflake, sql.NullInt32](db), refers[snowflake, bool](db), refers[snowflake, *bool](db),
		refers[snowflake, float64](db), refers[snowflake, *float32](db), refers[snowflake, sql.NullFloat64](db), refers[snowflake, sno](db), refers[snowflake, text[snowflake]](db),
		refers[*snowflake, string](db), refers[*snowflake, int32](db), refers[sql.Null[snowflake], string](db), refers[sql.Null[snowflake], *string](db),
		refers[optional[snowflake], string](db), refers[optional[snowflake], *string](db), refers[lineID, string](db), refers[lineID, *string](db), refers[*lineID, int32](db),
		refers[plainID, string](db), refers[plainID, int32](db), refers[plainUint, string](db),
		refers[text[snowflake], snowflake](db), refers[text[snowflake], int32](db), refers[text[snowflake], bool](db),
		refers[text[idtype.UID60], idtype.UID60](db), refers[text[idtype.UID60], *idtype.UID60](db), refers[text[idtype.Spread64], idtype.Spread64](db),
		refers[idtype.UID60, string](db), refers[idtype.Spread64, string](db), refers[idtype.SnowflakeSI, string](db), refers[idtype.SnowflakeSI, float64](db), refers[idtype.SnowflakeSI, float32](db),
		refers[sno, bool](db), refers[sno, int64](db), refers[sno, text[sno]](db), refers[sno, raw](db), refers[text[sno], sno](db),
		refers[raw, string](db), refers[raw, sql.Null[string]](db), refers[raw, [16]byte](db), refers[raw, optional[sno]](db),
		refers[sale, string](db), refers[sale, int32](db), refers[text[sale], sale](db), refers[idtype.UID60Of[Sale], string](db), refers[idtype.SnoOf[Shopper], bool](db),
	} {
		if !errors.Is(err, gorm.ErrUnsupportedRelation) {
			t.Errorf("%d: %v, want %v", i, err, gorm.ErrUnsupportedRelation)
		}
	}
}

// The plugin accepts statements on the associated model alone, and statements that store
// no foreign key.
func TestRelationsOfOtherTypesAllowOtherStatements(t *testing.T) {
	s := &server{affected: 1, columns: []string{"id", "owner_id"}, rows: [][]driver.Value{{int64(7), "7"}}}
	db := openServer(t, s, For(snowflakes()), For(snos()))
	if err := db.Create(&hasMany{}).Error; err == nil || len(s.ran) > 0 {
		t.Fatalf("ran %q, %v", s.ran, err)
	}
	for name, tx := range map[string]*gorm.DB{
		"an item alone": db.Create(&stringItem{OwnerID: "7"}),
		"its update":    db.Save(&stringItem{ID: 1, OwnerID: "7"}),
		"Find":          db.Find(&[]hasMany{}),
		"Preload":       db.Preload("Item").Find(&[]hasOne{}),
		"Delete":        db.Delete(&hasMany{ID: 1}),
		"no model":      db.Table("owners").Where("id = 1").Updates(map[string]any{"name": "a"}),
	} {
		if tx.Error != nil {
			t.Errorf("%s: %v", name, tx.Error)
		}
	}
	for _, q := range []string{"INSERT INTO `string_items`", "UPDATE `string_items`", "UPDATE `owners`", "DELETE FROM `has_manies`"} {
		if !strings.Contains(fmt.Sprint(s.ran), q) {
			t.Errorf("ran %q, want %q", s.ran, q)
		}
	}
}

// The models of relations that GORM reads but never saves.
type (
	readMany struct {
		ID    idtype.Snowflake
		Items []stringItem `gorm:"foreignKey:OwnerID;<-:false"`
		Notes []stringNote `gorm:"polymorphic:Owner;->"`
	}
	readOne struct {
		ID      idtype.Snowflake
		Item    *stringItem `gorm:"foreignKey:OwnerID;<-:false"`
		OwnerID string
		Owner   *order `gorm:"<-:false"`
	}
	readLeft struct {
		ID     idtype.Snowflake
		Rights []right `gorm:"many2many:read_left_rights;<-:false"`
	}
	readLeftRight struct {
		ReadLeftID string     `gorm:"primaryKey"`
		RightID    idtype.Sno `gorm:"primaryKey"`
	}
	createOnly struct {
		ID    idtype.Snowflake
		Items []stringItem `gorm:"foreignKey:OwnerID;<-:create"`
	}
	updateOnly struct {
		ID    idtype.Snowflake
		Items []stringItem `gorm:"foreignKey:OwnerID;<-:update"`
	}
	readHidden struct {
		ID idtype.Snowflake
		ReadEmbedded
		In SavedInner `gorm:"embedded;embeddedPrefix:in_"`
	}
	SavedInner struct {
		OwnerID idtype.Snowflake
		Owner   *order
	}
	ReadEmbedded struct {
		OwnerID string
		Owner   *order `gorm:"<-:false"`
	}
)

// A relation that GORM never saves can have a foreign key of any type.
func TestReadOnlyRelations(t *testing.T) {
	s := &server{affected: 1, columns: []string{"id", "owner_id"}, rows: [][]driver.Value{{int64(7), "7"}}}
	db := openServer(t, s, For(snowflakes()), For(snos()))
	if err := db.SetupJoinTable(&readLeft{}, "Rights", &readLeftRight{}); err != nil {
		t.Fatal(err)
	}
	items, notes := []stringItem{{}}, []stringNote{{}}
	one := readOne{Item: &stringItem{}, Owner: &order{}}
	for name, err := range map[string]error{
		"has-many":   db.Create(&readMany{Items: items, Notes: notes}).Error,
		"slice":      db.Create(&[]readMany{{Items: items, Notes: notes}, {}}).Error,
		"Save":       db.Save(&readMany{ID: 1, Items: items, Notes: notes}).Error,
		"FullSave":   db.Session(&gorm.Session{FullSaveAssociations: true}).Save(&readMany{ID: 1, Items: items, Notes: notes}).Error,
		"Select":     db.Select("Items", "Notes").Create(&readMany{Items: items, Notes: notes}).Error,
		"Append":     db.Model(&readMany{ID: 1}).Association("Items").Append(&stringItem{}),
		"Replace":    db.Model(&readMany{ID: 1}).Association("Items").Replace(&stringItem{}),
		"one":        db.Create(&one).Error,
		"Append one": db.Model(&readOne{ID: 1}).Association("Owner").Append(&order{}),
		"many2many":  db.Create(&readLeft{Rights: []right{{}}}).Error,
		"link":       db.Model(&readLeft{ID: 1}).Association("Rights").Append(&right{}),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, q := range s.ran {
		for _, table := range []string{"string_items", "string_notes", "orders", "rights"} {
			if strings.HasPrefix(q, "INSERT INTO `"+table) || strings.HasPrefix(q, "INSERT INTO `read_left_rights") {
				t.Errorf("ran %s", q)
			}
		}
	}
	if one.OwnerID != "" || one.Item.OwnerID != "" {
		t.Errorf("the foreign keys are %q and %q, want none", one.OwnerID, one.Item.OwnerID)
	}
	if got := fmt.Sprint(s.inserts()); !strings.Contains(got, "INSERT INTO `read_manies`") || !strings.Contains(got, "INSERT INTO `read_lefts`") {
		t.Errorf("ran %s", got)
	}

	// GORM saves the first two in one kind of statement. In the third, it uses the
	// permissions of another field of the same name.
	for want, err := range map[string]error{
		"add <-:false to the gorm tag of createOnly.Items":    db.Create(&createOnly{}).Error,
		"add <-:false to the gorm tag of updateOnly.Items":    db.Updates(&updateOnly{ID: 1, Items: items}).Error,
		"add <-:false to the gorm tag of readHidden.In.Owner": db.Create(&readHidden{ReadEmbedded: ReadEmbedded{Owner: &order{}}}).Error,
	} {
		if !errors.Is(err, gorm.ErrUnsupportedRelation) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %v with %q", err, gorm.ErrUnsupportedRelation, want)
		}
	}
}

// Models with keys of a plain type that a generator may generate, and models that refer
// to them by a smaller integer.
type (
	country struct {
		ID int64 `gorm:"autoIncrement;idgen:-"`
	}
	pair64 struct {
		ID     int64 `gorm:"primaryKey"`
		Region int64 `gorm:"primaryKey"`
	}
	tagged64 struct {
		ID     int64 `gorm:"primaryKey;idgen"`
		Region int64 `gorm:"primaryKey"`
	}
	minted64 struct {
		ID     int64
		Number int64 // not the key
	}
	shared64 struct {
		MintedID int64 `gorm:"primaryKey"`
		Minted   minted64
	}
	in32[T any] struct {
		ID      idtype.Snowflake
		OwnerID int32
		Owner   T
	}
	inRegion[T any] struct {
		ID      idtype.Snowflake
		OwnerID int32
		Region  int32
		Owner   T `gorm:"foreignKey:OwnerID,Region;references:ID,Region"`
	}
	byNumber32 struct {
		ID      idtype.Snowflake
		OwnerNo int32
		Owner   minted64 `gorm:"foreignKey:OwnerNo;references:Number"`
	}
	ofShared32 struct {
		ID      idtype.Snowflake
		OwnerID int32
		Owner   shared64 `gorm:"references:MintedID"`
	}
)

// A foreign key can be smaller than a key of a generator's type if the generator doesn't
// fill that key.
func TestRelationsOfKeysWithoutGenerator(t *testing.T) {
	numbers := &counter[int64]{make: func(n int64) int64 { return n }}
	db := open(t, For(snowflakes()), For(numbers))
	for name, err := range map[string]error{
		"tag":                 db.Create(&in32[country]{Owner: country{ID: 7}}).Error,
		"composite":           db.Create(&inRegion[pair64]{Owner: pair64{ID: 7, Region: 8}}).Error,
		"another column":      db.Create(&byNumber32{Owner: minted64{ID: 7, Number: 8}}).Error,
		"other generator":     open(t, For(snowflakes()), Named("special", numbers)).Create(&in32[minted64]{Owner: minted64{ID: 7}}).Error,
		"update of a country": db.Updates(&in32[country]{ID: 1, Owner: country{ID: 7}}).Error,
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"type":        db.Create(&in32[minted64]{}).Error,
		"tag":         db.Create(&inRegion[tagged64]{}).Error,
		"shared key":  db.Create(&ofShared32{}).Error,
		"name in tag": open(t, For(snowflakes()), Named("special", numbers)).Create(&in32[special64]{}).Error,
	} {
		if !errors.Is(err, gorm.ErrUnsupportedRelation) {
			t.Errorf("%s: %v, want %v", name, err, gorm.ErrUnsupportedRelation)
		}
	}
}

type special64 struct {
	ID int64 `gorm:"idgen:special"`
}

// Models whose foreign keys have the type F.
type (
	Shop          struct{ ID idtype.SnowflakeOf[Shop] }
	plainShop     struct{ ID idtype.Snowflake }
	ofShop[F any] struct {
		ID     idtype.Snowflake
		ShopID F
		Shop   *Shop
	}
	ofPlainShop[F any] struct {
		ID     idtype.Snowflake
		ShopID F
		Shop   *plainShop
	}
	ofCountry[F any] struct {
		ID        idtype.Snowflake
		CountryID F
		Country   *country
	}
	itemOf[F any] struct {
		ID        idtype.Snowflake
		OwnerID   F
		OwnerType string
	}
	manyOf[F any] struct {
		ID    idtype.SnowflakeOf[Shop]
		Items []itemOf[F] `gorm:"foreignKey:OwnerID"`
	}
	oneOf[F any] struct {
		ID   sql.Null[idtype.SnowflakeOf[Shop]]
		Item *itemOf[F] `gorm:"foreignKey:OwnerID"`
	}
	anyOf[F any] struct {
		ID    SaleKey
		Items []itemOf[F] `gorm:"polymorphic:Owner"`
	}
	selfOf[F any] struct {
		ID       idtype.SnowflakeOf[Shop]
		ParentID F
		Parent   *selfOf[F]
		Children []selfOf[F] `gorm:"foreignKey:ParentID"`
	}
	inEmbedded[F any] struct {
		ID idtype.Snowflake
		In Embeddable[F] `gorm:"embedded;embeddedPrefix:in_"`
	}
	Embeddable[F any] struct {
		ShopID F
		Shop   *Shop
	}
	readOf[F any] struct {
		ID     idtype.Snowflake
		ShopID F
		Shop   *Shop `gorm:"<-:false"`
	}
	shopLeft struct {
		ID     idtype.SnowflakeOf[Shop]
		Rights []rightOf `gorm:"many2many:links;joinForeignKey:LeftID;joinReferences:RightID"`
	}
	rightOf struct{ ID idtype.SnoOf[Shopper] }
	boolOf  struct {
		ID    idtype.SnoOf[Shopper]
		Items []itemOf[bool] `gorm:"foreignKey:OwnerID"`
	}
	linkOf[F any] struct {
		LeftID  idtype.SnowflakeOf[Shop] `gorm:"primaryKey"`
		RightID F                        `gorm:"primaryKey"`
	}
	// The parts of a composite key refer to a composite key.
	typedLine struct {
		SaleID idtype.SnowflakeOf[Sale]      `gorm:"primaryKey"`
		ID     idtype.SnowflakeOf[typedLine] `gorm:"primaryKey;idgen"`
		Sale   *Sale
	}
	ofLine[F any] struct {
		ID     idtype.Snowflake
		SaleID idtype.SnowflakeOf[Sale]
		LineID F
		Line   *typedLine `gorm:"foreignKey:SaleID,LineID;references:SaleID,ID"`
	}
	// The keys are in embedded structs.
	Model[M any] struct {
		ID idtype.SnowflakeOf[M] `gorm:"primaryKey"`
	}
	stock   struct{ Model[stock] }
	ofStock struct {
		*Model[ofStock]
		StockID idtype.SnowflakeOf[ofStock]
		Stock   *stock
	}
	// A shopFront shares the key of its shop.
	shopFront struct {
		ID   idtype.SnowflakeOf[Shop]
		Shop *Shop `gorm:"foreignKey:ID"`
	}
	frontedShop struct {
		ID    idtype.SnowflakeOf[Shop]
		Front *shopFront `gorm:"foreignKey:ID"`
	}
	ofFront[F any] struct {
		ID      idtype.Snowflake
		FrontID F
		Front   *shopFront
	}
)

// A foreign key that is another model's typed key is an error, because GORM would convert
// one to the other.
func TestRelationsOfOtherModels(t *testing.T) {
	type (
		shop     = idtype.SnowflakeOf[Shop]
		sale     = idtype.SnowflakeOf[Sale]
		shopper  = idtype.SnoOf[Shopper]
		plain    = idtype.Snowflake
		line     = idtype.SnowflakeOf[typedLine]
		plainKey = idtype.SnowflakeOf[plainShop]
	)
	db := openServer(t, &server{affected: 1}, For(snowflakes()), For(snos()))
	linked := func(left, link any) *gorm.DB {
		db := openServer(t, &server{affected: 1}, For(snowflakes()), For(snos()))
		if err := db.SetupJoinTable(left, "Rights", link); err != nil {
			t.Fatal(err)
		}
		return db.Create(left)
	}
	for want, txs := range map[string][]*gorm.DB{
		"": {
			db.Create(&ofShop[shop]{Shop: &Shop{}}), db.Create(&ofShop[*shop]{Shop: &Shop{}}), db.Create(&ofShop[sql.Null[shop]]{Shop: &Shop{}}),
			db.Create(&ofShop[plain]{Shop: &Shop{}}), db.Create(&ofShop[*plain]{Shop: &Shop{}}), db.Create(&ofShop[int64]{Shop: &Shop{}}),
			db.Create(&ofPlainShop[plain]{Shop: &plainShop{}}), db.Create(&ofPlainShop[plainKey]{Shop: &plainShop{}}), db.Create(&ofPlainShop[*plainKey]{}),
			db.Create(&ofCountry[idtype.SnowflakeOf[country]]{}),
			db.Create(&manyOf[shop]{Items: []itemOf[shop]{{}}}), db.Create(&manyOf[plain]{Items: []itemOf[plain]{{}}}), db.Create(&oneOf[*shop]{Item: &itemOf[*shop]{}}),
			db.Create(&anyOf[sale]{Items: []itemOf[sale]{{}}}), db.Create(&anyOf[plain]{Items: []itemOf[plain]{{}}}), db.Create(&anyOf[SaleKey]{}),
			db.Create(&selfOf[*shop]{Parent: &selfOf[*shop]{}, Children: []selfOf[*shop]{{}}}),
			db.Create(&inEmbedded[shop]{In: Embeddable[shop]{Shop: &Shop{}}}),
			db.Create(&readOf[sale]{Shop: &Shop{}}),
			linked(&shopLeft{Rights: []rightOf{{}}}, &linkOf[shopper]{}), linked(&shopLeft{Rights: []rightOf{{}}}, &linkOf[idtype.Sno]{}),
			openServer(t, &server{affected: 1}, For(snowflakes()), For(snos())).Create(&shopLeft{Rights: []rightOf{{}}}),
			db.Create(&ofLine[line]{Line: &typedLine{Sale: &Sale{}}}),
			db.Create(&shopFront{Shop: &Shop{}}), db.Create(&frontedShop{Front: &shopFront{}}), db.Create(&ofFront[shop]{Front: &shopFront{ID: 7}}),
			db.Create(&Sale{Shopper: &Shopper{}}), db.Create(&Shopper{Sales: []Sale{{}}}),
		},
		"ShopID has type idtype.SnowflakeOf[gormplugin.Sale], but it refers to Shop.ID of type idtype.SnowflakeOf[gormplugin.Shop]; declare ": {
			db.Create(&ofShop[sale]{}), db.Create(&ofShop[sale]{Shop: &Shop{}}), db.Create([]ofShop[sale]{{}}), db.Save(&ofShop[sale]{ID: 1}),
			db.Updates(&ofShop[sale]{ID: 1, Shop: &Shop{}}), {Error: db.Model(&ofShop[sale]{ID: 1}).Association("Shop").Append(&Shop{})},
			db.Model(&ofShop[sale]{}).Create(map[string]any{}), db.Create(&inEmbedded[sale]{}),
		},
		"ShopID has type *idtype.SnowflakeOf[gormplugin.Sale], but it refers to Shop.ID of":                          {db.Create(&ofShop[*sale]{})},
		"ShopID has type sql.Null[idtype.SnowflakeOf[gormplugin.Sale]], but ":                                        {db.Create(&ofShop[sql.Null[sale]]{})},
		"ShopID has type gormplugin.SaleKey, but it refers to Shop.ID of type idtype.SnowflakeOf[gormplugin.Shop]; ": {db.Create(&ofShop[SaleKey]{})},
		"ShopID has type idtype.UID60Of[gormplugin.Shop], but it refers to Shop.ID of type idtype.SnowflakeOf[":      {db.Create(&ofShop[idtype.UID60Of[Shop]]{})},
		"ShopID has type idtype.SnoOf[gormplugin.Shopper], but it refers to Shop.ID of":                              {db.Create(&ofShop[shopper]{})},
		"ShopID as idtype.Snowflake: ": {db.Create(&ofPlainShop[sale]{}), db.Create(&ofPlainShop[*shop]{}), db.Create(&ofPlainShop[idtype.UID60Of[plainShop]]{})},
		"ofStock.StockID has type idtype.SnowflakeOf[gormplugin.ofStock], but it refers to stock.Model.ID of type idtype.SnowflakeOf[gormplugin.stock]; declare ": {db.Create(&ofStock{Stock: &stock{}})},
		"CountryID as int64: ": {db.Create(&ofCountry[sale]{})},
		"OwnerID has type idtype.SnowflakeOf[gormplugin.Sale], but it refers to manyOf[idtype.SnowflakeOf[gormplugin.Sale]].ID of":                        {db.Create(&manyOf[sale]{}), db.Updates(&manyOf[sale]{ID: 1})},
		"].ID of type sql.Null[idtype.SnowflakeOf[gormplugin.Shop]]; declare ":                                                                            {db.Create(&oneOf[sale]{})},
		"OwnerID has type idtype.SnowflakeOf[gormplugin.Shop], but it refers to anyOf[idtype.SnowflakeOf[gormplugin.Shop]].ID of type gormplugin.SaleKey": {db.Create(&anyOf[shop]{})},
		"ParentID has type *idtype.SnowflakeOf[gormplugin.Sale], but it refers to selfOf[":                                                                {db.Create(&selfOf[*sale]{})},
		"RightID has type idtype.SnoOf[gormplugin.Ticket], but it refers to rightOf.ID of type idtype.SnoOf[gormplugin.Shopper]; declare ":                {linked(&shopLeft{}, &linkOf[idtype.SnoOf[Ticket]]{})},
		"LineID has type idtype.SnowflakeOf[gormplugin.Sale], but it refers to typedLine.ID of type idtype.SnowflakeOf[gormplugin.typedLine]; ":           {db.Create(&ofLine[sale]{})},
		"FrontID has type idtype.SnowflakeOf[gormplugin.shopFront], but it refers to shopFront.ID of type idtype.SnowflakeOf[gormplugin.Shop]; ":          {db.Create(&ofFront[idtype.SnowflakeOf[shopFront]]{})},
	} {
		for i, tx := range txs {
			switch {
			case want == "" && tx.Error == nil:
			case want == "", !errors.Is(tx.Error, gorm.ErrUnsupportedRelation), !strings.Contains(tx.Error.Error(), want),
				!strings.HasPrefix(tx.Error.Error(), "gormplugin: check relation "), strings.Contains(tx.Error.Error(), "github.com"):
				t.Errorf("%d: %v, want %v with %q", i, tx.Error, gorm.ErrUnsupportedRelation, want)
			}
		}
	}
	// The error suggests sql.Null[string] only for IDs that it can store.
	if err := db.Create(&bytesOwner{}).Error; !errors.Is(err, gorm.ErrUnsupportedRelation) || !strings.Contains(err.Error(), ".OwnerID as gormplugin.raw, or add <-:false ") {
		t.Errorf("bytes: %v", err)
	}
	// A Sno with a metabyte in a column that can't store it.
	if err := db.Create(&boolOf{}).Error; !errors.Is(err, gorm.ErrUnsupportedRelation) || !strings.Contains(err.Error(), "GORM can't store boolOf.ID (idtype.SnoOf[gormplugin.Shopper]) in itemOf[bool].OwnerID (bool) ") {
		t.Errorf("bool: %v", err)
	}
	const want = "gormplugin: check relation wrongShop.Shop: wrongShop.ShopID has type idtype.SnowflakeOf[gormplugin.Sale], " +
		"but it refers to Shop.ID of type idtype.SnowflakeOf[gormplugin.Shop]; declare wrongShop.ShopID as idtype.SnowflakeOf[gormplugin.Shop]: unsupported relations"
	if err := db.Create(&wrongShop{}).Error; err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
}

type bytesOwner struct {
	ID    raw
	Items []itemOf[string] `gorm:"foreignKey:OwnerID"`
}

type wrongShop struct {
	ID     idtype.Snowflake
	ShopID idtype.SnowflakeOf[Sale]
	Shop   *Shop
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
