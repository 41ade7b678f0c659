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

// The tests in integration_test/gorm run the statements.

// Rows with generated IDs are inserted after the others, and without an ON CONFLICT that
// compares their IDs.
func TestNewRows(t *testing.T) {
	type customer struct {
		ID          idtype.Snowflake
		Email, Name string
	}
	s := &server{affected: 2}
	db := openServer(t, s, For(from(100)))
	name := clause.AssignmentColumns([]string{"name"})
	onID := []clause.Column{{Name: "id"}}
	for what, c := range map[string]struct {
		conflict clause.OnConflict
		rows     func() any
		want     []string // what follows the columns
	}{
		"new":                   {clause.OnConflict{UpdateAll: true}, func() any { return &[]customer{{}, {}} }, []string{"new,new"}},
		"one":                   {clause.OnConflict{Columns: onID, DoNothing: true}, func() any { return &customer{} }, []string{"new"}},
		"set":                   {clause.OnConflict{Columns: onID, DoUpdates: name}, func() any { return &[]customer{{ID: 7}, {ID: 8}} }, []string{"7,8 (`id`) DO UPDATE SET `name`=`excluded`.`name`"}},
		"mixed":                 {clause.OnConflict{Columns: onID, DoUpdates: name}, func() any { return &[]customer{{}, {ID: 7}, {}} }, []string{"7 (`id`) DO UPDATE SET `name`=`excluded`.`name`", "new,new"}},
		"mixed pointers":        {clause.OnConflict{Columns: onID, DoNothing: true}, func() any { return []*customer{{ID: 7}, {}} }, []string{"7 (`id`) DO NOTHING", "new"}},
		"mixed array":           {clause.OnConflict{Columns: onID, DoNothing: true}, func() any { return &[2]customer{{}, {ID: 7}} }, []string{"7 (`id`) DO NOTHING", "new"}},
		"the primary key":       {clause.OnConflict{OnConstraint: "customers_pkey", DoUpdates: name}, func() any { return &customer{} }, []string{"new RETURNING `id`"}},
		"another constraint":    {clause.OnConflict{OnConstraint: "customers_email", DoUpdates: name}, func() any { return &customer{} }, []string{"new ON CONSTRAINT customers_email DO UPDATE SET `name`=`excluded`.`name` RETURNING `id`"}},
		"another column":        {clause.OnConflict{Columns: onEmail, DoNothing: true}, func() any { return &[]customer{{}, {ID: 7}} }, []string{"new,7 (`email`) DO NOTHING"}},
		"any column":            {clause.OnConflict{DoNothing: true}, func() any { return &[]customer{{}, {}} }, []string{"new,new DO NOTHING"}},
		"any column, mixed":     {clause.OnConflict{DoNothing: true}, func() any { return &[]customer{{}, {ID: 7}, {}} }, []string{"7 DO NOTHING", "new,new DO NOTHING"}},
		"a custom ON CONFLICT":  {clause.OnConflict{}, func() any { return &[]customer{{}, {ID: 7}} }, []string{"new,7 DO WHAT I MEAN"}},
		"the same row twice":    {clause.OnConflict{UpdateAll: true}, func() any { c := &customer{}; return []*customer{c, {}, c} }, []string{"new,new"}},
		"the same row, and set": {clause.OnConflict{Columns: onID, DoNothing: true}, func() any { c := &customer{}; return []*customer{c, {ID: 7}, c} }, []string{"7 (`id`) DO NOTHING", "new"}},
	} {
		s.ran, s.args = nil, nil
		var conflict clause.Expression = c.conflict
		if strings.HasPrefix(what, "a custom") {
			conflict = ownConflict{}
		}
		rows := c.rows()
		if err := db.Clauses(conflict).Create(rows).Error; err != nil {
			t.Errorf("%s: %v", what, err)
		}
		var got []string
		for i, q := range s.ran {
			if !strings.HasPrefix(q, "INSERT") {
				continue
			}
			var ids []string
			for j := 0; j < len(s.args[i]); j += 3 {
				id := idtype.Snowflake(s.args[i][j].Value.(int64)).String()
				if id != "7" && id != "8" {
					id = "new"
				}
				ids = append(ids, id)
			}
			_, after, _ := strings.Cut(q[strings.LastIndexByte(q, '?'):], ")")
			after = strings.Replace(after, " ON CONFLICT", "", 1)
			got = append(got, strings.Join(ids, ",")+after)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: inserted %q, want %q", what, got, c.want)
		}
	}
}

// A slice of maps is separated, too, and the same session can be used again.
func TestNewMaps(t *testing.T) {
	s := &server{affected: 1}
	db := openServer(t, s, For(snowflakes()))
	for _, pointer := range []bool{false, true} {
		maps := []map[string]any{{"id": nil}, {"id": idtype.Snowflake(7)}}
		var value any = maps
		if pointer {
			value = &maps
		}
		if tx := db.Model(&contact{}).Clauses(clause.OnConflict{UpdateAll: true}).Create(value); tx.Error != nil || tx.RowsAffected != 2 {
			t.Errorf("%d rows, %v", tx.RowsAffected, tx.Error)
		}
		if len(maps) != 2 || maps[0]["id"] == nil {
			t.Errorf("maps = %v", maps)
		}
	}
	if got := s.inserts(); len(got) != 4 || !strings.Contains(got[0], "ON CONFLICT") || strings.Contains(got[1], "ON CONFLICT") {
		t.Errorf("ran %q", got)
	}
}

// More rows than a block has can share an association.
func TestSharedAssociation(t *testing.T) {
	s := &server{affected: 1}
	db := openServer(t, s, For(snowflakes()))
	boss, crew := &parent{}, make([]*parent, 2*blockSize)
	for i := range crew {
		crew[i] = &parent{Boss: boss}
	}
	if err := db.Omit("Children").Create(crew).Error; err != nil {
		t.Fatal(err)
	}
	if got := inserted(s); got[0] != "parents "+boss.ID.String()+" NULL" || len(got) != 2 {
		t.Errorf("inserted %d times, first %s, want %v", len(got), got[0], boss.ID)
	}
}

// A row that refers back to its association has been saved by it.
func TestNewRowSavedByAssociation(t *testing.T) {
	s := &server{affected: 1}
	db := openServer(t, s, For(snowflakes()))
	boss := &parent{}
	boss.Crew = []*parent{{Boss: boss}}
	if err := db.Save(&boss.Crew).Error; err != nil {
		t.Fatal(err)
	}
	last := s.inserts()[len(s.inserts())-1]
	if !strings.Contains(last, "ON CONFLICT") {
		t.Errorf("ran %s, want ON CONFLICT", last)
	}
}

// A hook may replace a generated ID. Then it is the caller's.
type derived struct {
	ID   idtype.Snowflake
	Name string
}

func (d *derived) BeforeCreate(*gorm.DB) error { d.ID = 7; return nil }

func TestIDReplacedByHook(t *testing.T) {
	s := &server{affected: 1}
	db := openServer(t, s, For(snowflakes()))
	for _, rows := range []any{&derived{}, &[]derived{{}, {Name: "b"}}} {
		if err := db.Clauses(clause.OnConflict{UpdateAll: true}).Create(rows).Error; err != nil {
			t.Error(err)
		}
	}
	for _, q := range s.inserts() {
		if !strings.Contains(q, "ON CONFLICT (`id`) DO UPDATE") {
			t.Errorf("ran %s, want ON CONFLICT", q)
		}
	}
}

// A hook may also add the ON CONFLICT.
type hookedUpsert struct {
	ID   idtype.Snowflake
	Name string
}

func (*hookedUpsert) BeforeCreate(tx *gorm.DB) error {
	tx.Statement.AddClause(clause.OnConflict{UpdateAll: true})
	return nil
}

func TestConflictAddedByHook(t *testing.T) {
	s := &server{affected: 1}
	db := openServer(t, s, For(snowflakes()))
	rows := []hookedUpsert{{}, {ID: 7}}
	for _, rows := range []any{&hookedUpsert{}, &rows, &[]hookedUpsert{{}, {}}} {
		if err := db.Create(rows).Error; err != nil {
			t.Error(err)
		}
	}
	for i, conflicts := range []bool{false, true, false, false} {
		if q := s.inserts()[i]; strings.Contains(q, "ON CONFLICT") != conflicts {
			t.Errorf("ran %s, want ON CONFLICT: %t", q, conflicts)
		}
	}
}

// A hook may remove an ID, too. The row is then GORM's.
type hookedNil struct {
	ID   *idtype.Snowflake
	Name string
}

func (h *hookedNil) BeforeCreate(tx *gorm.DB) error {
	h.ID = nil
	tx.Statement.AddClause(clause.OnConflict{UpdateAll: true})
	return nil
}

func TestIDRemovedByHook(t *testing.T) {
	s := &server{affected: 1}
	db := openServer(t, s, For(snowflakes()))
	for _, tx := range []*gorm.DB{db, db.Clauses(clause.OnConflict{DoNothing: true})} {
		if err := tx.Create(&[]hookedNil{{}, {}}).Error; err != nil {
			t.Error(err)
		}
	}
	if got := s.inserts(); len(got) != 2 || !strings.Contains(got[0], "ON CONFLICT") {
		t.Errorf("ran %q", got)
	}
}

// A DryRun shows all rows in one statement.
func TestNewRowsInDryRun(t *testing.T) {
	db := open(t, For(snowflakes()))
	got := create(t, db.Clauses(clause.OnConflict{UpdateAll: true}), &[]derivedLike{{}, {ID: 7}})
	if !strings.Contains(got, "(1,\"\"),(7,\"\") ON CONFLICT") {
		t.Errorf("got %s", got)
	}
	got = create(t, db.Clauses(clause.OnConflict{UpdateAll: true}), &[]derivedLike{{}})
	if strings.Contains(got, "ON CONFLICT") {
		t.Errorf("got %s", got)
	}
}

type derivedLike struct {
	ID   idtype.Snowflake
	Name string
}

// If a Create fails, the keys of its associations are reset, too, in an Update and if the
// generator or a hook fails. Keys that were set stay.
func TestFailedAssociations(t *testing.T) {
	for _, fails := range []string{"children", "parent_tags", "boss", "commit"} {
		s := &server{affected: 1}
		gen := snowflakes()
		db := openServer(t, s, For(gen), For(snos()), Named("labels", snos()))
		refuse := func(tx *gorm.DB) {
			if tx.Statement.Table == fails || fails == "commit" && tx.Statement.Table == "parents" && tx.Statement.Schema.Name == "parent" {
				_ = tx.AddError(errors.ErrUnsupported)
			}
		}
		if err := db.Callback().Create().After("gorm:create").Before(reconcileCallback).Register("test:refuse", refuse); err != nil {
			t.Fatal(err)
		}
		if fails == "boss" {
			gen.limit = 1
		}
		p := &parent{Boss: &parent{}, Children: []child{{}, {ID: 77}}, Tags: []label{{}}, Notes: []note{{}}}
		if err := db.Create(p).Error; err == nil {
			t.Errorf("%s: no error", fails)
		}
		if p.ID != 0 || p.Boss.ID != 0 || p.Children[0].ID != 0 || p.Children[1].ID != 77 || p.Tags[0].ID != (idtype.Sno{}) || p.Notes[0].ID != 0 {
			t.Errorf("%s: parent = %+v, boss = %+v", fails, p, p.Boss)
		}
		if fails != "children" {
			continue
		}
		p = &parent{ID: 1, Boss: &parent{}, Children: []child{{}}}
		if err := db.Updates(p).Error; err == nil || p.ID != 1 || p.Boss.ID != 0 || p.Children[0].ID != 0 {
			t.Errorf("Updates: %v, parent = %+v, boss = %+v", err, p, p.Boss)
		}
	}
}

// If a generator fails, the rows that it has filled lose their IDs.
func TestFailedGenerator(t *testing.T) {
	gen := snowflakes()
	gen.limit = blockSize + 1
	db := open(t, For(gen))
	rows := make([]contact, 2*blockSize)
	rows[3].ID = 7
	if err := db.Create(&rows).Error; !errors.Is(err, errUsedUp) {
		t.Errorf("error = %v", err)
	}
	for i, r := range rows {
		if r.ID != 0 && i != 3 || i == 3 && r.ID != 7 {
			t.Fatalf("row %d has the ID %d", i, r.ID)
		}
	}
}

// With RETURNING *, GORM replaces the slice, also if the call fails then.
func TestFailedReturning(t *testing.T) {
	s := &server{columns: []string{"id"}, rows: [][]driver.Value{{int64(1)}}}
	db := openServer(t, s, For(snowflakes()))
	refuse := func(tx *gorm.DB) { _ = tx.AddError(errors.ErrUnsupported) }
	if err := db.Callback().Create().After("gorm:create").Before(reconcileCallback).Register("test:refuse", refuse); err != nil {
		t.Fatal(err)
	}
	for _, tx := range []*gorm.DB{db, db.Clauses(clause.OnConflict{UpdateAll: true})} {
		one, two := &contact{}, &contact{}
		rows := []*contact{one, two}
		if err := tx.Clauses(clause.Returning{}).Create(&rows).Error; err != errors.ErrUnsupported {
			t.Errorf("error = %v", err)
		}
		if len(rows) != 2 || rows[0] != one || rows[1] != two || one.ID != 0 || two.ID != 0 {
			t.Errorf("rows = %v, %v, %v", rows, one, two)
		}
	}
}

func TestSpan(t *testing.T) {
	for rows, all := range map[string]bool{"": true, "1": true, "111": true, "0": false, "0110": false, "101": false, "1001101": false, "110": false} {
		var s span
		for i, c := range rows {
			s.add(i, c == '1')
		}
		for i, c := range rows {
			if s.has(i) != (c == '1') {
				t.Errorf("%s: has(%d) = %t", rows, i, s.has(i))
			}
		}
		if s.isAll(len(rows)) != all || s.has(len(rows)) {
			t.Errorf("%s: isAll = %t, want %t", rows, s.isAll(len(rows)), all)
		}
	}
}
