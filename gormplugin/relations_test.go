package gormplugin

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/idtype"
)

// The models of relations of each kind, whose foreign keys are strings.
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

// A relation whose foreign key would be stored as another value is refused at
// the first Create or Update of its model, with the association or without.
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
		"has-many": {[]string{"hasMany.Items", "keep hasMany.ID (idtype.Snowflake) in stringItem.OwnerID (string)", "declare stringItem.OwnerID as idtype.Snowflake, or, to keep a column of text, as sql.Null[string]: "}, []*gorm.DB{
			db.Create(&hasMany{}), db.Create(&hasMany{Items: []stringItem{{}}}), db.Create([]hasMany{{}, {}}), db.Create([]*hasMany{{ID: 1, Items: []stringItem{{}}}}),
			db.Save(&hasMany{ID: 1}), db.Save(&hasMany{ID: 1, Items: []stringItem{{}}}), db.Updates(&hasMany{ID: 1, Items: []stringItem{{}}}),
			db.Model(&hasMany{ID: 1}).Update("id", 2), db.Model(&hasMany{}).Create(map[string]any{"id": 7}), db.Omit("Items").Create(&hasMany{}),
			{Error: db.Model(&hasMany{ID: 1}).Association("Items").Append(&stringItem{})},
			{Error: db.Model(&hasMany{ID: 1}).Association("Items").Replace(&stringItem{})},
			{Error: db.Model(&[]hasMany{{ID: 1}}).Association("Items").Append(&stringItem{})},
			{Error: gorm.G[hasMany](db).Create(t.Context(), &hasMany{})},
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
		"belongs-to by another column": {[]string{"byNumber.Owner", "byNumber.OwnerNo (int32)", "numbered.Number", "declare byNumber.OwnerNo as idtype.Snowflake: "}, []*gorm.DB{db.Create(&byNumber{})}},
		"polymorphic": {[]string{"polymorphic.Notes", "stringNote.OwnerID", "polymorphic.ID"}, []*gorm.DB{
			db.Create(&polymorphic{}), db.Updates(&polymorphic{ID: 1, Notes: []stringNote{{}}}),
			{Error: db.Model(&polymorphic{ID: 1}).Association("Notes").Append(&stringNote{})},
		}},
		"embedded":  {[]string{"embedding.Owner", "embedding.In.OwnerID", "order.ID"}, []*gorm.DB{db.Create(&embedding{})}},
		"many2many": {[]string{"left.Rights", "leftRight.LeftID", "left.ID"}, []*gorm.DB{db.Create(&left{}), db.Updates(&left{ID: 1, Rights: []right{{}}})}},
	} {
		for i, tx := range c.runs {
			if !errors.Is(tx.Error, gorm.ErrUnsupportedRelation) {
				t.Errorf("%s, %d: %v, want %v", name, i, tx.Error, gorm.ErrUnsupportedRelation)
				continue
			}
			for _, want := range append(c.names, "gormplugin: relate ") {
				if !strings.Contains(tx.Error.Error(), want) {
					t.Errorf("%s, %d: %v, want %q in it", name, i, tx.Error, want)
				}
			}
		}
	}
}

// Models beside such a relation are no concern of it, nor are statements that
// store nothing.
func TestRelationsOfOtherTypesLeaveAlone(t *testing.T) {
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
