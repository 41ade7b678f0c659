package gormplugin

import (
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/idtype"
)

func TestMintedBetween(t *testing.T) {
	db := open(t, For(snowflakes()))
	layout := idtype.DefaultSnowflakeLayout()
	at := layout.Epoch
	from, to := at.Add(time.Millisecond), at.Add(3*time.Millisecond)
	var zero time.Time
	find := func(tx *gorm.DB) string { return sqlOf(tx.Find(&[]order{})) }
	for got, want := range map[string]string{
		find(db.Scopes(MintedBetween(layout, "id", from, to))):                      "SELECT * FROM `orders` WHERE `orders`.`id` >= 4194304 AND `orders`.`id` < 12582912",
		find(db.Scopes(MintedBetween(layout, "", from, to))):                        "SELECT * FROM `orders` WHERE `orders`.`id` >= 4194304 AND `orders`.`id` < 12582912",
		find(db.Scopes(MintedBetween(layout, "o.id", from, to))):                    "SELECT * FROM `orders` WHERE `o`.`id` >= 4194304 AND `o`.`id` < 12582912",
		find(db.Scopes(MintedBetween(layout, "", from, zero))):                      "SELECT * FROM `orders` WHERE `orders`.`id` >= 4194304 AND `orders`.`id` < 9223372036854775807",
		find(db.Scopes(MintedBetween(layout, "", zero, to))):                        "SELECT * FROM `orders` WHERE `orders`.`id` >= 0 AND `orders`.`id` < 12582912",
		find(MintedBetween(layout, "two words", from, to)(db)):                      "SELECT * FROM `orders` WHERE `orders`.`two words` >= 4194304 AND `orders`.`two words` < 12582912",
		find(db.Table("orders o").Scopes(MintedBetween(layout, "", from, to))):      "SELECT * FROM orders o WHERE `o`.`id` >= 4194304 AND `o`.`id` < 12582912",
		find(db.Scopes(MintedBetween(layout, "", from, to)).Where("note = ?", "a")): "SELECT * FROM `orders` WHERE note = \"a\" AND (`orders`.`id` >= 4194304 AND `orders`.`id` < 12582912)",
		sqlOf(db.Scopes(MintedBetween(layout, "id", from, to)).Delete(&order{})):    "DELETE FROM `orders` WHERE `orders`.`id` >= 4194304 AND `orders`.`id` < 12582912",
		sqlOf(db.Scopes(MintedBetween(idtype.SnoLayout{}, "sno", from, to)).Table("t").Find(&[]map[string]any{})): "SELECT * FROM `t` WHERE `t`.`sno` >= \"" +
			snoAt(t, from) + "\" AND `t`.`sno` < \"" + snoAt(t, to) + "\"",
	} {
		wantSQL(t, got, want)
	}
}

func TestPages(t *testing.T) {
	db := open(t, For(snowflakes()))
	layout := idtype.DefaultSnowflakeLayout()
	from, to := layout.Epoch.Add(time.Millisecond), layout.Epoch.Add(2*time.Millisecond)
	var first idtype.Snowflake
	find := func(tx *gorm.DB) string { return sqlOf(tx.Limit(2).Find(&[]order{})) }
	for got, want := range map[string]string{
		find(db.Scopes(PageAfter("", idtype.Snowflake(7)))):                                             "SELECT * FROM `orders` WHERE `orders`.`id` > 7 ORDER BY `orders`.`id` LIMIT 2",
		find(db.Scopes(PageAfter("", first))):                                                           "SELECT * FROM `orders` ORDER BY `orders`.`id` LIMIT 2",
		find(db.Scopes(PageBefore("", idtype.Snowflake(7)))):                                            "SELECT * FROM `orders` WHERE `orders`.`id` < 7 ORDER BY `orders`.`id` DESC LIMIT 2",
		find(db.Scopes(PageBefore("", first))):                                                          "SELECT * FROM `orders` ORDER BY `orders`.`id` DESC LIMIT 2",
		find(db.Where("note = ?", "a").Scopes(PageAfter("o.id", first))):                                "SELECT * FROM `orders` WHERE note = \"a\" ORDER BY `o`.`id` LIMIT 2",
		find(db.Scopes(PageAfter("other", idtype.Spread64(-7)))):                                        "SELECT * FROM `orders` WHERE `orders`.`other` > -7 ORDER BY `orders`.`other` LIMIT 2",
		find(db.Or("note = ?", "a").Or("note = ?", "b").Scopes(PageAfter("", idtype.Snowflake(7)))):     "SELECT * FROM `orders` WHERE (note = \"a\" OR note = \"b\") AND `orders`.`id` > 7 ORDER BY `orders`.`id` LIMIT 2",
		find(db.Where("note = ?", "a").Or("note = ?", "b").Scopes(MintedBetween(layout, "", from, to))): "SELECT * FROM `orders` WHERE (note = \"a\" OR note = \"b\") AND (`orders`.`id` >= 4194304 AND `orders`.`id` < 8388608) LIMIT 2",
	} {
		wantSQL(t, got, want)
	}
}

// The scopes serve the generic interface as well.
func TestScopesOfG(t *testing.T) {
	s := &server{columns: []string{"id"}}
	db := openServer(t, s, For(snowflakes()))
	layout := idtype.DefaultSnowflakeLayout()
	from, to := layout.Epoch, layout.Epoch.Add(time.Millisecond)
	if _, err := gorm.G[order](db).Scopes(MintedBetween(layout, "", from, to).G, PageBefore("", idtype.Snowflake(7)).G).Find(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantSQL(t, s.ran[0], "SELECT * FROM `orders` WHERE (`orders`.`id` >= ? AND `orders`.`id` < ?) AND `orders`.`id` < ? ORDER BY `orders`.`id` DESC")
	if _, err := gorm.G[order](db).Scopes(MintedBetween(layout, "", to, from).G).Find(t.Context()); !errors.Is(err, idtype.ErrRange) || len(s.ran) > 1 {
		t.Errorf("a window backwards: %v, ran %q", err, s.ran)
	}
}

func snoAt(t *testing.T, at time.Time) string {
	id, err := idtype.SnoLayout{}.Floor(at)
	if err != nil {
		t.Fatal(err)
	}
	return id.UUID().String()
}

func TestMintedBetweenErrors(t *testing.T) {
	db := open(t, For(snowflakes()))
	now := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	backwards := MintedBetween(idtype.DefaultSnowflakeLayout(), "", now, now.Add(-time.Hour))
	for _, tx := range []*gorm.DB{db.Scopes(backwards), backwards(db)} {
		tx = tx.Find(&[]order{})
		if !errors.Is(tx.Error, idtype.ErrRange) || tx.Statement.SQL.Len() > 0 {
			t.Errorf("error = %v, SQL = %q", tx.Error, tx.Statement.SQL.String())
		}
	}
	if err := db.Scopes(MintedBetween(idtype.SnowflakeSILayout{}, "", now, now)).Find(&[]order{}).Error; !errors.Is(err, idtype.ErrRange) {
		t.Errorf("error = %v", err)
	}
	// The database itself isn't marked by the failure.
	if db.Error != nil {
		t.Errorf("db.Error = %v", db.Error)
	}
	if err := db.Scopes(MintedBetween(idtype.DefaultSnowflakeLayout(), "", now, now)).Table("t").Find(&[]map[string]any{}).Error; !errors.Is(err, gorm.ErrModelValueRequired) {
		t.Errorf("the primary key of no model: %v", err)
	}
}
