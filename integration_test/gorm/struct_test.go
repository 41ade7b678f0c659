package gorm

import (
	"database/sql"
	"encoding/json"
	"reflect"
	"testing"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/sqltypes"
)

// Structs that embed an ID.
type (
	orderID    struct{ idtype.Snowflake }
	customerID struct{ idtype.Sno }
)

type buyer struct {
	ID        customerID
	Name      string
	Purchases []purchase
}

type purchase struct {
	ID         orderID
	BuyerID    customerID
	ReplacesID *orderID
	ParentID   sqltypes.Optional[orderID]
	Code       sqltypes.Text[customerID]
}

type (
	optionalPurchase struct {
		ID   *orderID
		Text string
	}
	optionalBuyer struct {
		ID   sql.Null[customerID]
		Text string
	}
)

// Structs that embed an ID work like the ID: they have the same columns, and are filled
// and found in the same way.
func TestStructs(t *testing.T) { onClients(t, testStructs) }

func testStructs(t *testing.T, g *gorm.DB) {
	snos, err := idtype.NewSnoGenerator(idtype.SnoConfig{Meta: 'c'})
	must(t, err)
	must(t, g.Use(gormplugin.New(gormplugin.For(must1(t, idtest.Snowflake.NewGenerator)), gormplugin.For(snos))))
	must(t, g.AutoMigrate(&buyer{}, &purchase{}))
	if isPostgres(g) {
		for table, columns := range map[string]map[string]string{
			"buyers":    {"id": "uuid"},
			"purchases": {"id": "bigint", "buyer_id": "uuid", "replaces_id": "bigint", "parent_id": "bigint", "code": "text"},
		} {
			for column, want := range columns {
				var got string
				must(t, g.Raw("select data_type from information_schema.columns where table_name = ? and column_name = ?", table, column).Scan(&got).Error)
				if got != want {
					t.Errorf("%s.%s is %s, want %s", table, column, got, want)
				}
			}
		}
	}

	ada := buyer{Name: "Ada", Purchases: make([]purchase, 3)}
	must(t, g.Create(&ada).Error)
	first, second := &ada.Purchases[0], &ada.Purchases[1]
	second.ReplacesID, second.ParentID, second.Code = &first.ID, sqltypes.OptionalOf(first.ID), sqltypes.TextOf(ada.ID)
	must(t, g.Save(second).Error)
	if ada.ID.IsZero() || ada.ID.Meta() != 'c' || first.ID.IsZero() || first.ID == second.ID || first.BuyerID != ada.ID {
		t.Errorf("created %+v", ada)
	}

	var found buyer
	must(t, g.Preload("Purchases", func(g *gorm.DB) *gorm.DB { return g.Order("id") }).First(&found, "id = ?", ada.ID).Error)
	if !reflect.DeepEqual(found, ada) {
		t.Errorf("found %+v, want %+v", found, ada)
	}
	for name, find := range map[string]*gorm.DB{
		"slice":    g.Where("id IN ?", []orderID{first.ID, second.ID}),
		"struct":   g.Where(&purchase{BuyerID: ada.ID}).Where("id <= ?", second.ID),
		"map":      g.Where(map[string]any{"buyer_id": ada.ID}).Not("id > ?", second.ID),
		"optional": g.Where("id = ? or parent_id = ?", first.ID, sqltypes.OptionalOf(first.ID)),
		"text":     g.Where("id = ? or code = ?", first.ID, sqltypes.TextOf(ada.ID)),
	} {
		var orders []purchase
		if err := find.Order("id").Find(&orders).Error; err != nil || !reflect.DeepEqual(orders, ada.Purchases[:2]) {
			t.Errorf("by %s: %+v, %v", name, orders, err)
		}
	}

	// Pointers to structs and sql.Null of them.
	must(t, g.AutoMigrate(&optionalPurchase{}, &optionalBuyer{}))
	purchases, buyers := make([]optionalPurchase, 3), []optionalBuyer{{}, {ID: sql.Null[customerID]{V: ada.ID, Valid: true}}}
	must(t, g.Create(&purchases).Error)
	must(t, g.Create(&buyers).Error)
	if p := purchases; p[0].ID == nil || p[2].ID == nil || p[0].ID.Snowflake == 0 || p[0].ID.Snowflake >= p[2].ID.Snowflake {
		t.Errorf("created %+v", purchases)
	}
	if b := buyers; !b[0].ID.Valid || b[0].ID.V.Meta() != 'c' || b[1].ID.V != ada.ID {
		t.Errorf("created %+v", buyers)
	}
	var foundPurchases []optionalPurchase
	must(t, g.Order("id").Find(&foundPurchases).Error)
	var foundBuyers []optionalBuyer
	must(t, g.Where("id IN ?", []sql.Null[customerID]{buyers[0].ID, buyers[1].ID}).Find(&foundBuyers).Error)
	if !reflect.DeepEqual(foundPurchases, purchases) || len(foundBuyers) != 2 {
		t.Errorf("found %+v and %+v, want %+v and %+v", foundPurchases, foundBuyers, purchases, buyers)
	}

	// JSON.
	b, err := json.Marshal(ada)
	must(t, err)
	var back buyer
	if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(back, ada) {
		t.Errorf("JSON %s: got %+v, %v", b, back, err)
	}
	must(t, g.Delete(&buyer{}, "id = ?", customerID{}).Error)
	must(t, g.Delete(second).Error)
	var n int64
	must(t, g.Model(&purchase{}).Count(&n).Error)
	if n != 2 {
		t.Errorf("%d purchases are left, want 2", n)
	}
}
