package gormplugin

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/idtype"
)

func TestCreatedBetween(t *testing.T) {
	db := open(t, For(snowflakes()))
	layout := idtype.DefaultSnowflakeLayout()
	at := layout.Epoch
	from, to := at.Add(time.Millisecond), at.Add(3*time.Millisecond)
	var zero time.Time
	find := func(tx *gorm.DB) string { return sqlOf(tx.Find(&[]order{})) }
	for _, c := range []struct{ got, want string }{
		{find(db.Scopes(CreatedBetweenIn(layout, "id", from, to))), "SELECT * FROM `orders` WHERE `orders`.`id` >= 4194304 AND `orders`.`id` < 12582912"},
		{find(db.Scopes(CreatedBetweenIn(layout, "", from, to))), "SELECT * FROM `orders` WHERE `orders`.`id` >= 4194304 AND `orders`.`id` < 12582912"},
		{find(db.Scopes(CreatedBetweenIn(layout, "o.id", from, to))), "SELECT * FROM `orders` WHERE `o`.`id` >= 4194304 AND `o`.`id` < 12582912"},
		{find(db.Scopes(CreatedBetweenIn(layout, "", from, zero))), "SELECT * FROM `orders` WHERE `orders`.`id` >= 4194304 AND `orders`.`id` < 9223372036854775807"},
		{find(db.Scopes(CreatedBetweenIn(layout, "", zero, to))), "SELECT * FROM `orders` WHERE `orders`.`id` >= 0 AND `orders`.`id` < 12582912"},
		{find(CreatedBetweenIn(layout, "two words", from, to)(db)), "SELECT * FROM `orders` WHERE `orders`.`two words` >= 4194304 AND `orders`.`two words` < 12582912"},
		{find(db.Table("orders o").Scopes(CreatedBetweenIn(layout, "", from, to))), "SELECT * FROM orders o WHERE `o`.`id` >= 4194304 AND `o`.`id` < 12582912"},
		{find(db.Scopes(CreatedBetweenIn(layout, "", from, to)).Where("note = ?", "a")), "SELECT * FROM `orders` WHERE note = \"a\" AND `orders`.`id` >= 4194304 AND `orders`.`id` < 12582912"},
		{sqlOf(db.Scopes(CreatedBetweenIn(layout, "id", from, to)).Delete(&order{})), "DELETE FROM `orders` WHERE `orders`.`id` >= 4194304 AND `orders`.`id` < 12582912"},
		{sqlOf(db.Scopes(CreatedBetweenIn(idtype.SnoLayout{}, "sno", from, to)).Table("t").Find(&[]map[string]any{})), "SELECT * FROM `t` WHERE `t`.`sno` >= \"" +
			snoAt(t, from) + "\" AND `t`.`sno` < \"" + snoAt(t, to) + "\""},
	} {
		wantSQL(t, c.got, c.want)
	}
}

func TestPages(t *testing.T) {
	db := open(t, For(snowflakes()))
	layout := idtype.DefaultSnowflakeLayout()
	from, to := layout.Epoch.Add(time.Millisecond), layout.Epoch.Add(2*time.Millisecond)
	var first idtype.Snowflake
	seven := idtype.Snowflake(7)
	find := func(tx *gorm.DB) string { return sqlOf(tx.Limit(2).Find(&[]order{})) }
	for _, c := range []struct{ got, want string }{
		{find(db.Scopes(PageAfter("", idtype.Snowflake(7)))), "SELECT * FROM `orders` WHERE `orders`.`id` > 7 ORDER BY `orders`.`id` LIMIT 2"},
		{find(db.Scopes(PageAfter("", first))), "SELECT * FROM `orders` ORDER BY `orders`.`id` LIMIT 2"},
		{find(db.Scopes(PageBefore("", idtype.Snowflake(7)))), "SELECT * FROM `orders` WHERE `orders`.`id` < 7 ORDER BY `orders`.`id` DESC LIMIT 2"},
		{find(db.Scopes(PageBefore("", first))), "SELECT * FROM `orders` ORDER BY `orders`.`id` DESC LIMIT 2"},
		{find(db.Where("note = ?", "a").Scopes(PageAfter("o.id", first))), "SELECT * FROM `orders` WHERE note = \"a\" ORDER BY `o`.`id` LIMIT 2"},
		{find(db.Scopes(PageAfter("other", idtype.Spread64(-7)))), "SELECT * FROM `orders` WHERE `orders`.`other` > -7 ORDER BY `orders`.`other` LIMIT 2"},
		{find(db.Scopes(PageAfter("", (*idtype.Snowflake)(nil)))), "SELECT * FROM `orders` ORDER BY `orders`.`id` LIMIT 2"},
		{find(db.Scopes(PageAfter("", &seven))), "SELECT * FROM `orders` WHERE `orders`.`id` > 7 ORDER BY `orders`.`id` LIMIT 2"},
		{sqlOf(db.Scopes(PageAfter("left", seven)).Find(&[]two{})), "SELECT * FROM `twos` WHERE `twos`.`left` > 7 ORDER BY `twos`.`left`"},
		{find(db.Scopes(PageAfter("", new(idtype.Snowflake)))), "SELECT * FROM `orders` ORDER BY `orders`.`id` LIMIT 2"},
		{find(db.Scopes(PageAfter[interface{ IsZero() bool }]("", nil))), "SELECT * FROM `orders` ORDER BY `orders`.`id` LIMIT 2"},
		// The order of the page replaces earlier orders.
		{sqlOf(db.Scopes(PageAfter("", idtype.Snowflake(7))).First(&order{})), "SELECT * FROM `orders` WHERE `orders`.`id` > 7 ORDER BY `orders`.`id` LIMIT 1"},
		{sqlOf(db.Scopes(PageBefore("id", idtype.Snowflake(7))).First(&order{})), "SELECT * FROM `orders` WHERE `orders`.`id` < 7 ORDER BY `orders`.`id` DESC LIMIT 1"},
		{sqlOf(db.Scopes(PageBefore("", first)).Take(&order{})), "SELECT * FROM `orders` ORDER BY `orders`.`id` DESC LIMIT 1"},
		{sqlOf(db.Scopes(PageBefore("", seven)).Last(&order{})), "SELECT * FROM `orders` WHERE `orders`.`id` < 7 ORDER BY `orders`.`id` DESC LIMIT 1"},
		{sqlOf(db.Scopes(PageAfter("", first)).Last(&order{})), "SELECT * FROM `orders` ORDER BY `orders`.`id` LIMIT 1"},
		{sqlOf(db.Order("note desc").Scopes(PageBefore("", seven)).Take(&order{})), "SELECT * FROM `orders` WHERE `orders`.`id` < 7 ORDER BY `orders`.`id` DESC LIMIT 1"},
		{find(db.Order("note").Scopes(PageAfter("", seven))), "SELECT * FROM `orders` WHERE `orders`.`id` > 7 ORDER BY `orders`.`id` LIMIT 2"},
		{find(db.Scopes(PageAfter("other", seven)).Order("note")), "SELECT * FROM `orders` WHERE `orders`.`other` > 7 ORDER BY `orders`.`other` LIMIT 2"},
		{find(PageBefore("", seven)(db).Order("note")), "SELECT * FROM `orders` WHERE `orders`.`id` < 7 ORDER BY `orders`.`id` DESC,note LIMIT 2"},
		// Alternatives are in parentheses.
		{find(db.Where(db.Where("note = ?", "a").Or("note = ?", "b")).Scopes(PageAfter("", seven))), "SELECT * FROM `orders` WHERE (note = \"a\" OR note = \"b\") AND `orders`.`id` > 7 ORDER BY `orders`.`id` LIMIT 2"},
		{find(db.Where(db.Where("note = ?", "a").Or("note = ?", "b")).Scopes(CreatedBetweenIn(layout, "", from, to))), "SELECT * FROM `orders` WHERE (note = \"a\" OR note = \"b\") AND `orders`.`id` >= 4194304 AND `orders`.`id` < 8388608 LIMIT 2"},
		{sqlOf(db.Model(&order{}).Select("id").Scopes(PageBefore("", first)).Limit(1).Scan(new(int64))), "SELECT `id` FROM `orders` ORDER BY `orders`.`id` DESC LIMIT 1"},
		{find(db.Not(db.Scopes(CreatedBetweenIn(layout, "", from, to)))), "SELECT * FROM `orders` WHERE NOT (`orders`.`id` >= 4194304 AND `orders`.`id` < 8388608) LIMIT 2"},
		{find(db.Where("note = ?", "a").Or(db.Scopes(CreatedBetweenIn(layout, "", from, to)))), "SELECT * FROM `orders` WHERE note = \"a\" OR `orders`.`id` >= 4194304 AND `orders`.`id` < 8388608 LIMIT 2"},
	} {
		wantSQL(t, c.got, c.want)
	}
	// With a join, the argument selects the column of one of the tables.
	for column, want := range map[string]string{"": "`sales`.`id`", "id": "`sales`.`id`", "sales.id": "`sales`.`id`", "shopper_id": "`sales`.`shopper_id`",
		"sales.shopper_id": "`sales`.`shopper_id`", "Shopper.id": "`Shopper`.`id`"} {
		joined := db.Joins("Shopper").Session(&gorm.Session{})
		after, window := PageAfter(column, first), CreatedBetweenIn(layout, column, from, to)
		if strings.Contains(strings.ToLower(column), "shopper") {
			after, window = PageAfter(column, idtype.Sno{}), CreatedBetweenIn(idtype.SnoLayout{}, column, from, to)
		}
		_, page, _ := strings.Cut(sqlOf(joined.Scopes(after).Take(&Sale{})), " ORDER BY ")
		wantSQL(t, page, want+" LIMIT 1")
		if _, got, _ := strings.Cut(sqlOf(joined.Scopes(window).Take(&Sale{})), " WHERE "); !strings.HasPrefix(got, want+" >= ") {
			t.Errorf("window by %q: WHERE %s", column, got)
		}
	}
}

// A composite key is not one column.
func TestPageErrors(t *testing.T) {
	type noKey struct {
		Note string
		At   idtype.Snowflake
	}
	db := open(t, For(snowflakes()))
	shared := db.Model(&two{}).Session(&gorm.Session{})
	seven := idtype.Snowflake(7)
	for want, txs := range map[string][]*gorm.DB{
		"find the key column of two: the model has no single-column primary key": {
			db.Scopes(PageAfter("", seven)).Find(&[]two{}),
			db.Scopes(PageAfter("", idtype.Snowflake(0))).Find(&[]two{}),
			db.Model(&two{}).Scopes(PageAfter("", idtype.Snowflake(0))).Find(&[]map[string]any{}),
			PageBefore("", seven)(db).Find(&[]two{}),
			PageAfter("", idtype.Snowflake(0))(shared).Find(&[]two{}),
			db.Scopes(CreatedBetweenIn(idtype.DefaultSnowflakeLayout(), "", time.Time{}, time.Time{})).Find(&[]two{}),
		},
		"find the key column of noKey: the model has no single-column primary key": {
			db.Scopes(PageAfter("", seven)).Find(&[]noKey{}),
		},
	} {
		for i, tx := range txs {
			if tx.Error == nil || !strings.HasPrefix(tx.Error.Error(), "gormplugin: "+want) {
				t.Errorf("%d: error = %v, want %s", i, tx.Error, want)
			}
			// gorm.ErrInvalidValue is about pointers to structs.
			if !errors.Is(tx.Error, gorm.ErrInvalidField) || errors.Is(tx.Error, gorm.ErrInvalidValue) {
				t.Errorf("%d: error = %v", i, tx.Error)
			}
		}
	}
	if db.Error != nil || shared.Error != nil {
		t.Errorf("the shared databases keep the errors %v, %v", db.Error, shared.Error)
	}
}

type kinds struct {
	ID      idtype.Snowflake
	Pointer *idtype.Snowflake
	Null    sql.Null[idtype.Snowflake]
	Opt     optional[idtype.Snowflake]
	Line    lineID
	Lines   optional[lineID]
	UID     idtype.UID60
	Spread  idtype.Spread64
	Sno     idtype.Sno
	Text    text[idtype.Sno]
	Bytes   raw
	Mine    ownText
	PText   *text[idtype.Sno]
	Digits  text[idtype.Snowflake]
	Int     int64
	String  string
	At      time.Time
}

// Scopes accept IDs of the column's type in any form. They reject IDs of other types, which
// the database would compare as numbers.
func TestScopesOfOtherIDs(t *testing.T) {
	db, run := open(t, For(snowflakes())), openServer(t, &server{})
	seven, uid, spread := idtype.Snowflake(7), idtype.UID60(5000), idtype.Must(idtype.ParseSpread64("cb54ecf2840a0015"))
	sno := idtype.Must(idtype.ParseSno("brpk4q72xwf2m63l"))
	now := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	type scope = func(*gorm.DB) *gorm.DB
	both := func(column string) []scope {
		return []scope{PageAfter(column, uid), PageBefore(column, uid), PageAfter(column, idtype.UID60(0)), PageAfter(column, &uid), PageAfter(column, (*idtype.UID60)(nil)),
			PageAfter(column, optional[idtype.UID60]{uid}), PageAfter(column, sno), PageAfter(column, spread), PageBefore(column, now),
			CreatedBetweenIn(idtype.UID60Layout{}, column, now, now), CreatedBetweenIn(idtype.SnoLayout{}, column, now, time.Time{})}
	}
	for _, column := range []string{"", "id", "ID", "kinds.id", "pointer", "null", "opt", "line", "kinds.lines"} {
		for i, scope := range both(column) {
			for j, tx := range []*gorm.DB{
				db.Scopes(scope).Find(&[]kinds{}), db.Model(&kinds{}).Scopes(scope).Count(new(int64)), db.Scopes(scope).Delete(&kinds{}),
				db.Model(&kinds{}).Scopes(scope).Update("int", 1), db.Table("kinds AS kinds").Scopes(scope).Find(&[]kinds{}),
				db.Model(&kinds{}).Scopes(scope).Find(&[]map[string]any{}),
			} {
				if (i == 2 || i == 4) && (j == 2 || j == 3) {
					continue // the first page has no condition, and Delete and Update have no order
				}
				if err := tx.Error; !errors.Is(err, gorm.ErrInvalidField) || !strings.Contains(err.Error(), "gormplugin: compare kinds.") || !strings.Contains(err.Error(), ": want an ID of type ") {
					t.Errorf("column %q, %d, %d: %v", column, i, j, err)
				}
			}
			// gorm.G does this. The compiler takes a second per model for gorm.G.
			generic := func(tx *gorm.DB) *gorm.DB { G(scope)(tx.Statement); return tx }
			if err := run.Scopes(generic).Find(&[]kinds{}).Error; !errors.Is(err, gorm.ErrInvalidField) {
				t.Errorf("column %q, %d, G: %v", column, i, err)
			}
		}
	}
	err := db.Scopes(PageAfter("", uid)).Find(&[]kinds{}).Error
	if want := "gormplugin: compare kinds.ID: want an ID of type idtype.Snowflake, got idtype.UID60; pass a cursor or a layout of the column's type, or name another column: invalid field"; err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
	for i, scope := range []scope{
		PageAfter("line", otherLineID{1}), PageAfter("lines", otherLineID{1}), PageAfter("line", optional[otherLineID]{otherLineID{1}}),
		PageAfter("uid", seven), PageAfter("spread", seven), PageAfter("sno", seven), PageAfter("text", seven), PageAfter("bytes", seven),
		CreatedBetweenIn(idtype.SnowflakeLayout{}, "uid", now, now), CreatedBetweenIn(idtype.UID60Layout{}, "digits", now, now),
		CreatedBetweenIn(idtype.SnoLayout{}, "line", now, now),
		// the right ID type, stored as text
		PageAfter("digits", seven), PageAfter("digits", idtype.Snowflake(0)), CreatedBetweenIn(idtype.SnowflakeLayout{}, "digits", now, now),
	} {
		if err := db.Scopes(scope).Find(&[]kinds{}).Error; !errors.Is(err, gorm.ErrInvalidField) {
			t.Errorf("%d: %v", i, err)
		}
	}

	// These IDs are compared in the form of the column.
	layout := idtype.DefaultSnowflakeLayout()
	to := now.AddDate(0, 0, 1)
	lo, hi, err := layout.Range(now, to)
	snoLo, snoHi, snoErr := idtype.SnoLayout{}.Range(now, to)
	if err != nil || snoErr != nil {
		t.Fatal(err, snoErr)
	}
	textLo, textHi := text[idtype.Sno]{snoLo}, text[idtype.Sno]{snoHi}
	for name, c := range map[string]struct {
		scope scope
		want  any
	}{
		"itself":                      {PageAfter("", seven), seven},
		"pointer":                     {PageAfter("pointer", &seven), &seven},
		"Null":                        {PageAfter("null", seven), seven},
		"an Optional":                 {PageAfter("id", optional[idtype.Snowflake]{seven}), optional[idtype.Snowflake]{seven}},
		"ID for an Optional":          {PageBefore("opt", seven), seven},
		"text of the number":          {PageAfter("id", text[idtype.Snowflake]{seven}), seven},
		"its own text":                {PageAfter("digits", text[idtype.Snowflake]{seven}), text[idtype.Snowflake]{seven}},
		"own type":                    {PageAfter("line", lineID{7}), lineID{7}},
		"ID for an own type":          {PageAfter("line", seven), seven},
		"own type for an ID":          {PageAfter("id", lineID{7}), lineID{7}},
		"own type for an Optional":    {PageAfter("lines", lineID{7}), lineID{7}},
		"Optional own type for an ID": {PageAfter("opt", optional[lineID]{lineID{7}}), optional[lineID]{lineID{7}}},
		"Sno as text":                 {PageAfter("text", sno), text[idtype.Sno]{sno}},
		"Sno as bytes":                {PageBefore("kinds.bytes", &sno), raw{sno}},
		"text as Sno":                 {PageAfter("sno", text[idtype.Sno]{sno}), sno},
		"an integer":                  {PageAfter("int", seven), seven},
		"a string":                    {PageAfter("string", sno), sno},
		"a time":                      {PageAfter("at", now), now},
		"an unknown column":           {PageAfter("nothing", uid), uid},
		"another table":               {PageAfter("others.id", uid), uid},
		"name with two dots":          {PageAfter("a.b.id", uid), uid},
		"window of an own type":       {CreatedBetweenIn(layout, "line", now, to), []any{lo, hi}},
		"window of Nulls":             {CreatedBetweenIn(layout, "null", now, to), []any{lo, hi}},
		"window of integers":          {CreatedBetweenIn(layout, "int", now, to), []any{lo, hi}},
		"window of texts":             {CreatedBetweenIn(idtype.SnoLayout{}, "kinds.text", now, to), []any{textLo, textHi}},
		"window of text pointers":     {CreatedBetweenIn(idtype.SnoLayout{}, "PText", now, to), []any{textLo, textHi}},
		"window of own texts":         {CreatedBetweenIn(idtype.SnoLayout{}, "mine", now, to), []any{ownText{textLo}, ownText{textHi}}},
	} {
		stmt := db.Scopes(c.scope).Find(&[]kinds{}).Statement
		want, isList := c.want.([]any)
		if !isList {
			want = []any{c.want}
		}
		if stmt.Error != nil || !slices.Equal(stmt.Vars, want) {
			t.Errorf("%s: %v, %v, want %v", name, stmt.Vars, stmt.Error, c.want)
		}
	}
	// With an alias, only the alias refers to the model's table.
	for _, cursor := range []idtype.UID60{0, uid} {
		if err := db.Table("others AS k").Scopes(PageAfter("k.id", cursor)).Find(&[]kinds{}).Error; !errors.Is(err, gorm.ErrInvalidField) {
			t.Errorf("an alias: %v", err)
		}
	}
	for name, tx := range map[string]*gorm.DB{
		"table name despite an alias": db.Table("others AS k").Scopes(PageAfter("kinds.id", uid)).Find(&[]kinds{}),
		"no model":                    db.Table("kinds").Scopes(PageAfter("id", uid)).Find(&[]map[string]any{}),
	} {
		if tx.Error != nil {
			t.Errorf("%s: %v", name, tx.Error)
		}
	}
	// The scope is called before GORM knows the model, as in Preload.
	if err := PageAfter("", uid)(db).Find(&[]kinds{}).Error; !errors.Is(err, gorm.ErrInvalidField) {
		t.Errorf("scope called directly: %v", err)
	}
	if err := db.Where(db.Scopes(PageAfter("", uid))).Find(&[]kinds{}).Error; !errors.Is(err, gorm.ErrInvalidField) {
		t.Errorf("scope in a group: %v", err)
	}
}

// Preload accepts a scope as a condition.
func TestScopesOfPreload(t *testing.T) {
	s := &server{columns: []string{"id"}, rows: [][]driver.Value{{int64(1)}}}
	db := openServer(t, s, For(snowflakes()), For(snos()), Named("labels", snos()))
	db.Preload("Children", PageAfter("", idtype.Snowflake(7))).Find(&[]parent{}) // the rows don't matter
	if got := s.ran[len(s.ran)-1]; !strings.HasSuffix(got, " AND `children`.`id` > ? ORDER BY `children`.`id`") {
		t.Errorf("ran %q", s.ran)
	}
	backwards := CreatedBetweenIn(idtype.DefaultSnowflakeLayout(), "", time.UnixMilli(2e12), time.UnixMilli(1e12))
	if err := db.Preload("Children", backwards).Find(&[]parent{}).Error; !errors.Is(err, idtype.ErrRange) {
		t.Errorf("reversed window: %v", err)
	}
}

// The scopes work in GORM's generic interface.
func TestScopesOfG(t *testing.T) {
	s := &server{columns: []string{"id"}}
	db := openServer(t, s, For(snowflakes()))
	layout := idtype.DefaultSnowflakeLayout()
	from, to := layout.Epoch, layout.Epoch.Add(time.Millisecond)
	if _, err := gorm.G[order](db).Scopes(G(CreatedBetweenIn(layout, "", from, to)), G(PageBefore("", idtype.Snowflake(7)))).Find(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantSQL(t, s.ran[0], "SELECT * FROM `orders` WHERE `orders`.`id` >= ? AND `orders`.`id` < ? AND `orders`.`id` < ? ORDER BY `orders`.`id` DESC")
	// Methods for one row return the first row of the page.
	page := gorm.G[order](db).Scopes(G(PageBefore("", idtype.Snowflake(7))))
	for order, find := range map[string]func(context.Context) (order, error){" DESC LIMIT ?": page.Take, " DESC,`orders`.`id` LIMIT ?": page.First} {
		if _, err := find(t.Context()); !errors.Is(err, gorm.ErrRecordNotFound) {
			t.Error(err)
		}
		wantSQL(t, s.ran[len(s.ran)-1], "SELECT * FROM `orders` WHERE `orders`.`id` < ? ORDER BY `orders`.`id`"+order)
	}
}

func snoAt(t *testing.T, at time.Time) string {
	id, err := idtype.SnoLayout{}.Floor(at)
	if err != nil {
		t.Fatal(err)
	}
	return id.UUID().String()
}

func TestCreatedBetweenErrors(t *testing.T) {
	s := &server{}
	db := openServer(t, s, For(snowflakes()))
	now := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	backwards := CreatedBetweenIn(idtype.DefaultSnowflakeLayout(), "", now, now.Add(-time.Hour))
	note := db.Model(&order{}).Where(db.Where("note <> 'a'").Or("note = 'b'")).Session(&gorm.Session{})
	rows, generic := []order{}, gorm.G[order](db).Scopes(G(backwards))
	_, findErr := generic.Find(t.Context())
	_, deleteErr := generic.Delete(t.Context())
	_, rowsErr := db.Model(&order{}).Scopes(backwards).Rows()
	for i, err := range []error{
		db.Scopes(backwards).Find(&rows).Error, backwards(db).Find(&rows).Error, db.Scopes(backwards).First(&order{}).Error, rowsErr, findErr, deleteErr,
		db.Model(&order{}).Scopes(backwards).Count(new(int64)).Error, db.Model(&order{}).Scopes(backwards).Pluck("id", &[]int64{}).Error,
		db.Scopes(backwards).FindInBatches(&rows, 2, func(*gorm.DB, int) error { return nil }).Error,
		// GORM copies the conditions of a query, but not its error.
		db.Where(db.Scopes(backwards)).Find(&rows).Error, db.Not(db.Scopes(backwards)).Find(&rows).Error, db.Where("note = ?", "a").Or(db.Scopes(backwards)).Find(&rows).Error,
		db.Model(&order{}).Scopes(backwards).Update("note", "z").Error, note.Scopes(backwards).Update("note", "z").Error,
		db.Scopes(backwards).Delete(&order{}).Error, note.Scopes(backwards).Delete(&order{}).Error, db.Unscoped().Scopes(backwards).Delete(&order{}).Error,
		db.Where(db.Scopes(backwards)).Delete(&order{}).Error, db.Not(db.Scopes(backwards)).Delete(&order{}).Error,
	} {
		if !errors.Is(err, idtype.ErrRange) {
			t.Errorf("%d: error = %v, want %v", i, err, idtype.ErrRange)
		}
	}
	for _, q := range s.ran {
		if q != "BEGIN" && q != "ROLLBACK" {
			t.Errorf("ran %q", q)
		}
	}
	if err := db.Scopes(CreatedBetweenIn(idtype.SnowflakeSILayout{}, "", now, now)).Find(&[]order{}).Error; !errors.Is(err, idtype.ErrConfig) {
		t.Errorf("error = %v", err)
	}
	// The shared database doesn't keep the error.
	if db.Error != nil {
		t.Errorf("db.Error = %v", db.Error)
	}
	if err := db.Scopes(CreatedBetweenIn(idtype.DefaultSnowflakeLayout(), "", now, now)).Table("t").Find(&[]map[string]any{}).Error; !errors.Is(err, gorm.ErrModelValueRequired) {
		t.Errorf("primary key without a model: got %v, want %v", err, gorm.ErrModelValueRequired)
	}
}

type typedKinds struct {
	ID      idtype.SnowflakeOf[Sale]
	Pointer *idtype.SnowflakeOf[Sale]
	Null    sql.Null[idtype.SnowflakeOf[Sale]]
	Opt     optional[idtype.SnowflakeOf[Sale]]
	Own     SaleKey
	Base    idtype.Snowflake
	Digits  text[idtype.SnowflakeOf[Sale]]
	Sno     idtype.SnoOf[Shopper]
	Text    text[idtype.SnoOf[Shopper]]
	Plain   text[idtype.Sno]
}

// Scopes accept a column's own typed keys and those without a model.
func TestScopesOfTypedKeys(t *testing.T) {
	db := open(t, For(snowflakes()))
	seven, sale := idtype.Snowflake(7), idtype.SnowflakeOf[Sale](7)
	sno := idtype.Must(idtype.ParseSno("brpk4q72xwf2m63l")).WithMeta('s')
	shopper := idtype.SnoOf[Shopper](sno)
	from, to := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2024, 1, 2, 0, 0, 0, 0, time.UTC)
	lo, hi, err := idtype.DefaultSnowflakeLayout().Range(from, to)
	snoLo, snoHi, snoErr := idtype.SnoLayout{}.Range(from, to)
	if err != nil || snoErr != nil {
		t.Fatal(err, snoErr)
	}
	type scope = func(*gorm.DB) *gorm.DB
	for name, c := range map[string]struct {
		scope scope
		want  []any
	}{
		"typed":                     {PageAfter("", sale), []any{sale}},
		"base":                      {PageBefore("id", seven), []any{seven}},
		"pointer":                   {PageAfter("pointer", &sale), []any{&sale}},
		"base for a pointer":        {PageAfter("pointer", seven), []any{seven}},
		"Null":                      {PageAfter("null", sale), []any{sale}},
		"Optional":                  {PageAfter("opt", optional[idtype.SnowflakeOf[Sale]]{sale}), []any{optional[idtype.SnowflakeOf[Sale]]{sale}}},
		"typed for a base":          {PageAfter("base", sale), []any{sale}},
		"typed for an own":          {PageAfter("own", sale), []any{sale}},
		"base for an own":           {PageAfter("own", seven), []any{seven}},
		"own for a typed":           {PageAfter("", SaleKey{sale}), []any{SaleKey{sale}}},
		"Sno":                       {PageAfter("sno", shopper), []any{shopper}},
		"base for a Sno":            {PageAfter("sno", sno), []any{sno}},
		"text":                      {PageAfter("text", shopper), []any{text[idtype.SnoOf[Shopper]]{shopper}}},
		"base for a text":           {PageAfter("text", &sno), []any{text[idtype.SnoOf[Shopper]]{shopper}}},
		"typed for a text of bases": {PageAfter("plain", shopper), []any{text[idtype.Sno]{sno}}},
		"window":                    {CreatedBetweenIn(idtype.DefaultSnowflakeLayout(), "", from, to), []any{lo, hi}},
		"window of Snos":            {CreatedBetweenIn(idtype.SnoLayout{}, "sno", from, to), []any{snoLo, snoHi}},
		// With another metabyte than the model's, the bounds would have no text.
		"window of texts": {CreatedBetweenIn(idtype.SnoLayout{}, "text", from, to), []any{
			text[idtype.SnoOf[Shopper]]{idtype.SnoOf[Shopper](snoLo.WithMeta('s'))}, text[idtype.SnoOf[Shopper]]{idtype.SnoOf[Shopper](snoHi.WithMeta('s'))}}},
	} {
		stmt := db.Scopes(c.scope).Find(&[]typedKinds{}).Statement
		if stmt.Error != nil || !slices.Equal(stmt.Vars, c.want) {
			t.Errorf("%s: %v, %v, want %v", name, stmt.Vars, stmt.Error, c.want)
		}
	}
	for want, scopes := range map[string][]scope{
		"typedKinds.ID: want an ID of type idtype.SnowflakeOf[gormplugin.Sale], got idtype.SnowflakeOf[gormplugin.Ticket]; pass a cursor ": {
			PageAfter("", idtype.SnowflakeOf[Ticket](7)), PageBefore("id", idtype.SnowflakeOf[Ticket](0)), PageBefore("", new(idtype.SnowflakeOf[Ticket]))},
		"want an ID of type idtype.SnowflakeOf[gormplugin.Sale], got idtype.UID60Of[gormplugin.Sale]; ": {PageAfter("", idtype.UID60Of[Sale](5000)), PageAfter("pointer", idtype.UID60Of[Sale](0))},
		"want an ID of type idtype.SnowflakeOf[gormplugin.Sale], got idtype.UID60; ":                    {PageAfter("null", idtype.UID60(5000)), CreatedBetweenIn(idtype.UID60Layout{}, "opt", from, to)},
		"want an ID of type idtype.SnowflakeOf[gormplugin.Sale], got idtype.Sno; ":                      {CreatedBetweenIn(idtype.SnoLayout{}, "", from, to)},
		"want an ID of type gormplugin.SaleKey, got idtype.SnowflakeOf[gormplugin.Ticket]; ":            {PageAfter("own", idtype.SnowflakeOf[Ticket](7))},
		"want an ID of type idtype.SnoOf[gormplugin.Shopper], got idtype.SnoOf[gormplugin.Ticket]; ":    {PageAfter("sno", idtype.SnoOf[Ticket](sno)), PageAfter("text", idtype.SnoOf[Ticket](sno))},
		"typedKinds.Digits: IDs of type gormplugin.text[idtype.SnowflakeOf[gormplugin.Sale]] in a column of type text don't sort in their order; use a column of type bigint": {
			PageAfter("digits", sale), PageAfter("digits", seven), CreatedBetweenIn(idtype.DefaultSnowflakeLayout(), "digits", from, to)},
	} {
		for i, scope := range scopes {
			if err := db.Scopes(scope).Find(&[]typedKinds{}).Error; !errors.Is(err, gorm.ErrInvalidField) || !strings.Contains(err.Error(), want) {
				t.Errorf("%d: %v, want %s", i, err, want)
			}
		}
	}
}
