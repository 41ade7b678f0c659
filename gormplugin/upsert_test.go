package gormplugin

import (
	"database/sql/driver"
	"errors"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/sortkey/sortkey/idtype"
)

type contact = contactOf[idtype.Snowflake]

type contactOf[ID any] struct {
	ID    ID
	Email string `gorm:"unique"`
	Name  string
}

var onEmail = []clause.Column{{Name: "email"}}

func TestUpsertReturning(t *testing.T) {
	type counted struct {
		ID    idtype.Snowflake
		Email string
		Count int `gorm:"default:next_count()"`
		Size  int `gorm:"default:next_size()"`
		Hash  int `gorm:"default:next_hash();->:false;<-:create"`
	}
	type hiddenKey struct {
		ID    idtype.Snowflake `gorm:"->:false;<-:create"`
		Email string
	}
	type numbered struct {
		ID    idtype.Snowflake `gorm:"default:next_id()"`
		Email string
	}
	where := clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "true"}}}
	updates := clause.AssignmentColumns([]string{"name"})
	db := open(t, For(snowflakes()), Named("snos", snos()))
	for name, c := range map[string]struct {
		tx    *gorm.DB
		value any
		want  string // the list after RETURNING
	}{
		"another key":                    {db.Clauses(clause.OnConflict{Columns: onEmail, DoUpdates: updates}), &contact{}, "`id`"},
		"another key, all":               {db.Clauses(clause.OnConflict{Columns: onEmail, UpdateAll: true}), &contact{}, "`id`"},
		"another key, batch":             {db.Clauses(clause.OnConflict{Columns: onEmail, UpdateAll: true}), &[]contact{{}, {}}, "`id`"},
		"a constraint":                   {db.Clauses(clause.OnConflict{OnConstraint: "c", DoUpdates: updates}), &contact{}, "`id`"},
		"a constraint, all":              {db.Clauses(clause.OnConflict{OnConstraint: "c", UpdateAll: true}), &contact{}, "`id`"},
		"half the primary key":           {db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, UpdateAll: true}), &line{}, ""},
		"with a condition":               {db.Clauses(clause.OnConflict{Columns: onEmail, DoUpdates: updates, Where: where}), &contact{}, "`id`"},
		"defaults":                       {db.Clauses(clause.OnConflict{Columns: onEmail, UpdateAll: true}), &counted{}, "`count`,`size`,`id`"},
		"defaults, RETURNING given":      {db.Clauses(clause.OnConflict{Columns: onEmail, UpdateAll: true}, clause.Returning{Columns: onEmail}), &counted{}, "`email`,`id`"},
		"key with a default":             {db.Clauses(clause.OnConflict{Columns: onEmail, UpdateAll: true}), &numbered{}, "`id`"},
		"write-only key":                 {db.Clauses(clause.OnConflict{Columns: onEmail, UpdateAll: true}), &hiddenKey{}, ""},
		"no conflict target":             {db.Clauses(clause.OnConflict{DoUpdates: updates}), &contact{}, "`id`"},
		"other columns than the key":     {db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}, {Name: "name"}}, DoUpdates: updates}), &line{}, ""},
		"composite key":                  {db.Clauses(clause.OnConflict{OnConstraint: "c", DoUpdates: updates}), &bothTagged{}, "`left`,`right`"},
		"array":                          {db.Clauses(clause.OnConflict{Columns: onEmail, UpdateAll: true}), &[2]contact{}, "`id`"},
		"custom ON CONFLICT":             {db.Clauses(ownConflict{}), &contact{}, ""},
		"RETURNING given":                {db.Clauses(clause.OnConflict{Columns: onEmail, UpdateAll: true}, clause.Returning{Columns: []clause.Column{{Name: "name"}}}), &contact{}, "`name`,`id`"},
		"RETURNING * given":              {db.Clauses(clause.OnConflict{Columns: onEmail, UpdateAll: true}, clause.Returning{}), &contact{}, "*"},
		"the primary key":                {db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: updates}), &contact{}, ""},
		"the primary key, all":           {db.Clauses(clause.OnConflict{UpdateAll: true}), &contact{}, ""},
		"DO NOTHING":                     {db.Clauses(clause.OnConflict{Columns: onEmail, DoNothing: true}), &contact{}, ""},
		"batch, with a condition":        {db.Clauses(clause.OnConflict{Columns: onEmail, DoUpdates: updates, Where: where}), &[]contact{{}, {}}, ""},
		"slice of one, with a condition": {db.Clauses(clause.OnConflict{Columns: onEmail, DoUpdates: updates, Where: where}), &[]*contact{{}}, "`id`"},
		"a map":                          {db.Model(&contact{}).Clauses(clause.OnConflict{Columns: onEmail, DoUpdates: updates}), map[string]any{}, ""},
		"maps":                           {db.Model(&contact{}).Clauses(clause.OnConflict{Columns: onEmail, DoUpdates: updates}), []map[string]any{{}}, ""},
		"pointer to maps":                {db.Model(&contact{}).Clauses(clause.OnConflict{Columns: onEmail, DoUpdates: updates}), &[]map[string]any{{}}, ""},
		"opted out":                      {db.Clauses(clause.OnConflict{Columns: onEmail, DoUpdates: updates}), &optedOut{}, ""},
	} {
		if _, got, _ := strings.Cut(create(t, c.tx, c.value), " RETURNING "); got != c.want {
			t.Errorf("%s: RETURNING %q, want %q", name, got, c.want)
		}
	}
}

// ownConflict is an ON CONFLICT clause that the plugin doesn't know.
type ownConflict struct{}

func (ownConflict) Name() string                   { return onConflict }
func (o ownConflict) MergeClause(c *clause.Clause) { c.Expression = o }
func (ownConflict) Build(b clause.Builder)         { _, _ = b.WriteString("DO WHAT I MEAN") }

func TestUpsertSetsStoredIDs(t *testing.T) {
	t.Run("base", upsertSetsStoredIDs[idtype.Snowflake])
	t.Run("typed", upsertSetsStoredIDs[idtype.SnowflakeOf[Sale]])
}

func upsertSetsStoredIDs[ID numeric](t *testing.T) {
	type contact = contactOf[ID]
	s := &server{columns: []string{"id"}}
	db := openServer(t, s, For(snowflakes()))
	upsert := db.Clauses(clause.OnConflict{Columns: onEmail, UpdateAll: true}).Session(&gorm.Session{})

	s.rows = [][]driver.Value{{int64(500)}}
	c := contact{Email: "a"}
	if err := upsert.Create(&c).Error; err != nil || c.ID != 500 {
		t.Errorf("contact = %+v, %v", c, err)
	}
	s.rows = [][]driver.Value{{int64(2)}, {int64(500)}, {int64(4)}}
	batch := []*contact{{Email: "b"}, {Email: "a"}, {Email: "c"}}
	if err := upsert.Create(&batch).Error; err != nil || batch[0].ID != 2 || batch[1].ID != 500 || batch[2].ID != 4 {
		t.Errorf("batch = %v %v %v, %v", batch[0], batch[1], batch[2], err)
	}
	// A trigger skipped a row, and the plugin can't tell which one.
	s.rows = [][]driver.Value{{int64(500)}, {int64(4)}}
	if err := upsert.Create(&[]contact{{}, {}, {}}).Error; !errors.Is(err, gorm.ErrInvalidData) || !strings.HasPrefix(err.Error(), "gormplugin: upsert contactOf[idtype.Snowflake") || !strings.Contains(err.Error(), "]: want 3 rows back, got 2") {
		t.Errorf("missing row: %v", err)
	}
	// The update's condition was false.
	s.rows = nil
	c = contact{Email: "a"}
	if err := upsert.Create(&c).Error; err != nil || c.ID != 0 {
		t.Errorf("contact = %+v, %v", c, err)
	}
}

// The row count matters only if the plugin added RETURNING to get the IDs.
func TestUpsertThatSkipsRows(t *testing.T) {
	type hiddenKey struct {
		ID    idtype.Snowflake `gorm:"->:false;<-:create"`
		Email string           `gorm:"unique"`
	}
	type counted struct {
		ID    idtype.Snowflake `gorm:"idgen:-"`
		Email string           `gorm:"unique"`
		Count int              `gorm:"default:next_count()"`
	}
	s := &server{affected: 1, columns: []string{"count"}, rows: [][]driver.Value{{int64(1)}}}
	db := openServer(t, s, For(snowflakes()))
	updates := clause.AssignmentColumns([]string{"email"})
	where := clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "true"}}}
	for name, tx := range map[string]*gorm.DB{
		"a condition":    db.Clauses(clause.OnConflict{Columns: onEmail, DoUpdates: updates, Where: where}).Create(&[]contact{{}, {}}),
		"write-only key": db.Clauses(clause.OnConflict{Columns: onEmail, DoUpdates: updates}).Create(&[]hiddenKey{{}, {}}),
		"opted out":      db.Clauses(clause.OnConflict{Columns: onEmail, DoUpdates: updates}).Create(&[]counted{{}, {}}),
		"a map":          db.Model(&contact{}).Clauses(clause.OnConflict{Columns: onEmail, DoUpdates: updates}).Create(map[string]any{"email": "a", "name": "b"}),
		"maps":           db.Model(&contact{}).Clauses(clause.OnConflict{Columns: onEmail, DoUpdates: updates}).Create([]map[string]any{{"email": "a"}, {"email": "b"}}),
	} {
		if tx.Error != nil || tx.RowsAffected != 1 {
			t.Errorf("%s: %d rows, %v", name, tx.RowsAffected, tx.Error)
		}
	}
}

// A database without RETURNING may report another row count.
func TestUpsertWithoutReturning(t *testing.T) {
	s := &server{affected: 4}
	db := openServer(t, s, For(snowflakes()))
	clauses := &db.Callback().Create().Clauses
	*clauses = slices.DeleteFunc(slices.Clone(*clauses), func(name string) bool { return name == returning })
	batch := []contact{{}, {}}
	if err := db.Clauses(clause.OnConflict{Columns: onEmail, UpdateAll: true}).Create(&batch).Error; err != nil || batch[1].ID != 2 {
		t.Errorf("batch = %+v, %v, ran %q", batch, err, s.ran)
	}
}

// The plugin doesn't append to the caller's slice of columns.
func TestUpsertKeepsReturning(t *testing.T) {
	columns := []clause.Column{{Name: "name"}, {Name: "email"}}
	db := open(t, For(snowflakes()))
	create(t, db.Clauses(clause.OnConflict{Columns: onEmail, UpdateAll: true}, clause.Returning{Columns: columns[:1]}), &contact{})
	if columns[1].Name != "email" {
		t.Errorf("the columns became %v", columns)
	}
}

func TestDoNothing(t *testing.T) {
	t.Run("base", doNothing[idtype.Snowflake])
	t.Run("typed", doNothing[idtype.SnowflakeOf[Sale]])
}

func doNothing[ID numeric](t *testing.T) {
	type contact = contactOf[ID]
	s := &server{affected: 0}
	db := openServer(t, s, For(snowflakes()), Named("snos", snos()))
	nothing := db.Clauses(clause.OnConflict{DoNothing: true}).Session(&gorm.Session{})

	c := contact{}
	if err := nothing.Create(&c).Error; err != nil || c.ID != 0 {
		t.Errorf("skipped row: got %+v, %v, want no ID", c, err)
	}
	c = contact{ID: 9}
	if err := nothing.Create(&c).Error; err != nil || c.ID != 9 {
		t.Errorf("skipped row with an ID: got %+v, %v, want ID 9", c, err)
	}
	e := embedsPrefixedPointer{}
	if err := nothing.Create(&e).Error; err != nil || e.B.ID != 0 {
		t.Errorf("embedded key: got %+v, %v, want no ID", e.B, err)
	}
	slice, pointers, given := []contact{{}}, []*contact{{}}, []contact{{ID: 9}}
	array := [1]contact{}
	for _, rows := range []any{&slice, pointers, &given, &array, contact{ID: 9}} {
		if err := nothing.Create(rows).Error; err != nil {
			t.Errorf("%T: %v", rows, err)
		}
	}
	if slice[0].ID != 0 || pointers[0].ID != 0 || given[0].ID != 9 || array[0].ID != 0 {
		t.Errorf("slices of one: got %+v, %+v, %+v, %+v, want an ID only in the third", slice, pointers[0], given, array)
	}
	b := bothTagged{}
	if err := nothing.Create(&b).Error; err != nil || b != (bothTagged{}) {
		t.Errorf("composite key: got %v, %v, want no IDs", b, err)
	}
	batch := []contact{{}, {}}
	if err := nothing.Create(&batch).Error; err != nil || batch[0].ID == 0 {
		t.Errorf("batch: got %v, %v, want IDs", batch, err)
	}
	m := map[string]any{}
	for _, value := range []any{m, &m, []map[string]any{m}, &[]map[string]any{m}} {
		clear(m)
		if err := nothing.Model(&contact{}).Create(value).Error; err != nil || m["id"] == nil {
			t.Errorf("%T: %v, %v", value, m, err)
		}
	}
	s.affected = 1
	c = contact{}
	if err := nothing.Create(&c).Error; err != nil || c.ID == 0 {
		t.Errorf("inserted row: got %+v, %v, want an ID", c, err)
	}
	// Without ON CONFLICT, the plugin ignores the row count.
	s.affected = 0
	if err := db.Create(&c).Error; err != nil || c.ID == 0 {
		t.Errorf("plain Create: got %+v, %v, want an ID", c, err)
	}
	c = contact{}
	if err := nothing.Session(&gorm.Session{DryRun: true}).Create(&c).Error; err != nil || c.ID == 0 {
		t.Errorf("dry run: got %+v, %v, want an ID", c, err)
	}
}

// If the row of an association is skipped, the parent keeps its ID, and the reverse.
func TestDoNothingWithAssociations(t *testing.T) {
	type city struct {
		ID   idtype.Snowflake
		Name string
	}
	type inhabitant struct {
		ID     idtype.Snowflake
		CityID idtype.Snowflake
		City   *city
	}
	s := &server{affected: 1}
	db := openServer(t, s, For(snowflakes()))
	skip := func(tx *gorm.DB) {
		if tx.Statement.Schema.Name == "city" {
			tx.RowsAffected = 0
		}
	}
	if err := db.Callback().Create().After("gorm:create").Before(reconcileCallback).Register("test:skip", skip); err != nil {
		t.Fatal(err)
	}
	v := inhabitant{City: &city{}}
	if err := db.Clauses(clause.OnConflict{DoNothing: true}).Create(&v).Error; err != nil {
		t.Fatal(err)
	}
	if v.ID != 1 || v.City.ID != 0 || v.CityID != 0 {
		t.Errorf("inhabitant = %+v, city = %+v", v, v.City)
	}
	v = inhabitant{City: &city{ID: 9}}
	if err := db.Clauses(clause.OnConflict{DoNothing: true}).Create(&v).Error; err != nil || v.ID == 0 || v.City.ID != 9 || v.CityID != 9 {
		t.Errorf("inhabitant = %+v, city = %+v, %v", v, v.City, err)
	}
	// In a batch, the plugin can't tell which city was skipped.
	batch := []inhabitant{{City: &city{}}, {City: &city{}}}
	if err := db.Create(&batch).Error; err != nil || batch[0].CityID == 0 || batch[0].CityID != batch[0].City.ID {
		t.Errorf("inhabitant = %+v, city = %+v, %v", batch[0], batch[0].City, err)
	}
}

// If the database rejects the rows, they lose their generated IDs, with every kind of ON
// CONFLICT, so that a repeated call generates new ones.
func TestRejectedRows(t *testing.T) {
	t.Run("base", rejectedRows[idtype.Snowflake])
	t.Run("typed", rejectedRows[idtype.SnowflakeOf[Sale]])
}

func rejectedRows[ID numeric](t *testing.T) {
	type contact = contactOf[ID]
	s := &server{columns: []string{"id"}}
	db := openServer(t, s, For(snowflakes()))
	refuse := func(tx *gorm.DB) { _ = tx.AddError(errors.ErrUnsupported) }
	if err := db.Callback().Create().After("gorm:create").Before(reconcileCallback).Register("test:refuse", refuse); err != nil {
		t.Fatal(err)
	}
	upsert := clause.OnConflict{Columns: onEmail, UpdateAll: true}
	for _, tx := range []*gorm.DB{db, db.Clauses(upsert), db.Clauses(clause.OnConflict{UpdateAll: true}), db.Clauses(clause.OnConflict{DoNothing: true})} {
		tx = tx.Session(&gorm.Session{})
		c, set, batch := contact{}, contact{ID: 1}, []contact{{}, {ID: 2}, {}, {ID: 3}}
		m, maps := map[string]any{"ID": nil}, []map[string]any{nil, {"id": ID(4)}, {}}
		for _, value := range []any{&c, &set, &batch} {
			if err := tx.Create(value).Error; err != errors.ErrUnsupported {
				t.Errorf("%T: error = %v", value, err)
			}
		}
		for _, value := range []any{m, &m, maps, &maps} {
			if err := tx.Model(&contact{}).Create(value).Error; err != errors.ErrUnsupported {
				t.Errorf("%T: error = %v", value, err)
			}
		}
		if c.ID != 0 || set.ID != 1 || !slices.Equal(batch, []contact{{}, {ID: 2}, {}, {ID: 3}}) {
			t.Errorf("contacts = %+v, %+v, batch = %+v", c, set, batch)
		}
		if len(m) != 0 || len(maps[0]) != 0 || maps[1]["id"] != ID(4) || len(maps[2]) != 0 {
			t.Errorf("map = %v, maps = %v", m, maps)
		}
	}
}

// Children don't refer to a row that was not inserted.
func TestDoNothingWithChildren(t *testing.T) {
	db := openServer(t, &server{affected: 0}, For(snowflakes()), For(snos()), Named("labels", snos()))
	v := parent{Children: []child{{}}}
	if err := db.Clauses(clause.OnConflict{DoNothing: true}).Create(&v).Error; err != nil || v.ID != 0 || v.Children[0].ParentID != 0 {
		t.Errorf("parent = %d, its child's parent = %d, %v", v.ID, v.Children[0].ParentID, err)
	}
}
