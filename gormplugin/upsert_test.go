package gormplugin

import (
	"database/sql/driver"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/sortkey/sortkey/idtype"
)

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
		"a plain Create":                 {db, &contact{}, ""},
		"opted out":                      {db.Clauses(clause.OnConflict{Columns: onEmail, DoUpdates: updates}), &optedOut{}, ""},
	} {
		if _, got, _ := strings.Cut(create(t, c.tx, c.value), " RETURNING "); got != c.want {
			t.Errorf("%s: RETURNING %q, want %q", name, got, c.want)
		}
	}
	// Associations conflict on their primary keys, and so does Save of a slice.
	served := &server{affected: -1}
	db = openServer(t, served, For(snowflakes()), For(snos()), Named("labels", snos()))
	for _, tx := range []*gorm.DB{
		db.Create(&parent{Boss: &parent{}, Children: []child{{}}, Tags: []label{{}}}),
		db.Session(&gorm.Session{FullSaveAssociations: true}).Create(&parent{Boss: &parent{}, Children: []child{{}}}),
		db.Save(&[]contact{{ID: 1}, {}}),
	} {
		if got := strings.Join(served.ran, "\n"); tx.Error != nil || strings.Contains(got, "RETURNING") {
			t.Errorf("%v, ran %s", tx.Error, got)
		}
	}
}

// ownConflict is an ON CONFLICT clause that the plugin doesn't know.
type ownConflict struct{}

func (ownConflict) Name() string { return onConflict }

func (o ownConflict) MergeClause(c *clause.Clause) { c.Expression = o }

func (ownConflict) Build(b clause.Builder) { _, _ = b.WriteString("DO WHAT I MEAN") }

// The plugin doesn't append to the caller's slice of columns.
func TestUpsertKeepsReturning(t *testing.T) {
	columns := []clause.Column{{Name: "name"}, {Name: "email"}}
	db := open(t, For(snowflakes()))
	create(t, db.Clauses(clause.OnConflict{Columns: onEmail, UpdateAll: true}, clause.Returning{Columns: columns[:1]}), &contact{})
	if columns[1].Name != "email" {
		t.Errorf("the columns became %v", columns)
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
	type untouched struct {
		ID     idtype.Snowflake
		Ticket idtype.Snowflake `gorm:"idgen:-"`
		Name   string
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
		"all, opted out":       {clause.OnConflict{UpdateAll: true}, &untouched{ID: 1}, "(`id`) DO UPDATE SET `name`=`excluded`.`name`"},
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

// A Create is one INSERT with the rows in their order. No ON CONFLICT updates a row because it has
// a generated ID.
func TestNewRows(t *testing.T) {
	type customer struct {
		ID          idtype.Snowflake
		Email, Name string
	}
	s := &server{affected: -1}
	s.columns, s.rows = []string{"id"}, [][]driver.Value{{int64(9)}}
	db := openServer(t, s, For(from(100)))
	name := clause.AssignmentColumns([]string{"name"})
	onID := []clause.Column{{Name: "id"}}
	const (
		updates  = " DO UPDATE SET `name`=`excluded`.`name`"
		ifNotNew = " WHERE (`customers`.`id` = `excluded`.`id`) IS NOT TRUE"
	)
	either := clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "true OR false"}}}
	for what, c := range map[string]struct {
		conflict clause.OnConflict
		rows     func() any
		want     string // what follows the columns
	}{
		"new":                 {clause.OnConflict{UpdateAll: true}, func() any { return &[]customer{{}, {}} }, "new,new"},
		"new, by ID":          {clause.OnConflict{Columns: onID, DoUpdates: name}, func() any { return &[]customer{{}, {}} }, "new,new"},
		"one":                 {clause.OnConflict{Columns: onID, DoNothing: true}, func() any { return &customer{} }, "new (`id`) DO NOTHING"},
		"set":                 {clause.OnConflict{Columns: onID, DoUpdates: name}, func() any { return &[]customer{{ID: 7}, {ID: 8}} }, "7,8 (`id`)" + updates},
		"mixed":               {clause.OnConflict{Columns: onID, DoUpdates: name}, func() any { return &[]customer{{}, {ID: 7}, {}} }, "new,7,new (`id`)" + updates + " WHERE (`customers`.`id` IN (?,?)) IS NOT TRUE"},
		"mixed, condition":    {clause.OnConflict{Columns: onID, DoUpdates: name, Where: either}, func() any { return &[]customer{{}, {ID: 7}} }, "new,7 (`id`)" + updates + " WHERE (`customers`.`id` = ?) IS NOT TRUE AND (true OR false)"},
		"mixed pointers":      {clause.OnConflict{Columns: onID, DoNothing: true}, func() any { return []*customer{{ID: 7}, {}} }, "7,new (`id`) DO NOTHING"},
		"mixed array":         {clause.OnConflict{UpdateAll: true}, func() any { return &[2]customer{{}, {ID: 7}} }, "new,7 (`id`) DO UPDATE SET `email`=`excluded`.`email`,`name`=`excluded`.`name` WHERE (`customers`.`id` = ?) IS NOT TRUE"},
		"a constraint":        {clause.OnConflict{OnConstraint: "c", DoUpdates: name}, func() any { return &customer{} }, "new ON CONSTRAINT c" + updates + ifNotNew + "  RETURNING `id`"},
		"a constraint, mixed": {clause.OnConflict{OnConstraint: "c", DoUpdates: name, Where: either}, func() any { return &[]customer{{ID: 7}, {}} }, "7,new ON CONSTRAINT c" + updates + " WHERE (`customers`.`id` = ?) IS NOT TRUE AND (true OR false)"},
		"any target":          {clause.OnConflict{DoUpdates: name}, func() any { return &customer{} }, "new" + updates + ifNotNew + "  RETURNING `id`"},
		"another column":      {clause.OnConflict{Columns: onEmail, DoUpdates: name}, func() any { return &customer{} }, "new (`email`)" + updates + " RETURNING `id`"},
		"any column":          {clause.OnConflict{DoNothing: true}, func() any { return &[]customer{{}, {}} }, "new,new DO NOTHING"},
		"any column, mixed":   {clause.OnConflict{DoNothing: true}, func() any { return &[]customer{{}, {ID: 7}, {}} }, "new,7,new DO NOTHING"},
		"custom ON CONFLICT":  {clause.OnConflict{}, func() any { return &[]customer{{}, {ID: 7}} }, "new,7 DO WHAT I MEAN"},
		"the same row twice":  {clause.OnConflict{Columns: onID, DoNothing: true}, func() any { c := &customer{}; return []*customer{c, {}, c} }, "new,new,new (`id`) DO NOTHING"},
	} {
		s.ran, s.args = nil, nil
		var conflict clause.Expression = c.conflict
		if strings.HasPrefix(what, "custom") {
			conflict = ownConflict{}
		}
		rows := c.rows()
		if err := db.Clauses(conflict).Create(rows).Error; err != nil {
			t.Errorf("%s: %v", what, err)
		}
		q := s.inserts()
		if len(q) != 1 {
			t.Fatalf("%s: ran %q, want one INSERT", what, q)
		}
		_, values, _ := strings.Cut(q[0], " VALUES ")
		end := strings.LastIndex(values, "(?,?,?)") + len("(?,?,?)")
		var ids []string
		for j := range strings.Count(values, "(?,?,?)") {
			id := idtype.Snowflake(s.args[slices.Index(s.ran, q[0])][3*j].Value.(int64)).String()
			if id != "7" && id != "8" {
				id = "new"
			}
			ids = append(ids, id)
		}
		got := strings.Join(ids, ",") + strings.Replace(strings.TrimRight(values[end:], " "), " ON CONFLICT", "", 1)
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", what, got, c.want)
		}
	}
}

// On Postgres, the generated IDs are one argument.
func TestLiteral(t *testing.T) {
	type number int64
	for _, c := range []struct {
		ids  []any
		want string
	}{
		{[]any{idtype.Snowflake(1), idtype.Snowflake(20)}, `{"1","20"}`},
		{[]any{number(-7)}, `{"-7"}`},
		{[]any{idtype.UUID{15: 1}}, `{"00000000-0000-0000-0000-000000000001"}`},
		{[]any{`a"b\c`, "d,e}"}, `{"a\"b\\c","d,e}"}`},
		{[]any{[]byte{0, 255}}, `{"\\x00ff"}`},
	} {
		if got, ok := literal(c.ids); got != c.want || !ok {
			t.Errorf("%v: got %s, %t, want %s", c.ids, got, ok, c.want)
		}
	}
	if got, ok := literal([]any{1, [2]int{}}); ok {
		t.Errorf("got %s for an array of ints, want none", got)
	}
}

// Other dialects have no condition in their upserts.
func TestNewRowsWithoutReturning(t *testing.T) {
	db := openServer(t, &server{affected: 1}, For(snowflakes()))
	clauses := &db.Callback().Create().Clauses
	*clauses = slices.DeleteFunc(slices.Clone(*clauses), func(name string) bool { return name == returning })
	tx := db.Session(&gorm.Session{DryRun: true}).Clauses(clause.OnConflict{UpdateAll: true})
	if got := create(t, tx, &[]contact{{}, {ID: 7}}); strings.Contains(got, "WHERE") {
		t.Errorf("got %s", got)
	}
}

// If a row of a DO UPDATE is missing, it had a generated ID. The call fails, and a repeated call
// generates other IDs.
func TestTakenID(t *testing.T) {
	s := &server{affected: 1}
	db := openServer(t, s, For(snowflakes()))
	batch, m := []contact{{}, {ID: 70}, {}}, []map[string]any{{"email": "a"}, {"id": 70, "email": "b"}}
	for _, tx := range []*gorm.DB{db.Save(&batch), db.Model(&contact{}).Clauses(clause.OnConflict{UpdateAll: true}).Create(m)} {
		if !errors.Is(tx.Error, gorm.ErrDuplicatedKey) || tx.RowsAffected != 1 {
			t.Errorf("%d rows, %v", tx.RowsAffected, tx.Error)
		}
	}
	if !slices.Equal(batch, []contact{{}, {ID: 70}, {}}) || m[0]["id"] != nil || m[1]["id"] != 70 {
		t.Errorf("rows = %v, %v", batch, m)
	}
	// GORM has assigned the returned row to the first struct.
	s.columns, s.rows = []string{"id"}, [][]driver.Value{{int64(9)}}
	other := []contact{{ID: 70}, {}}
	tx := db.Clauses(clause.OnConflict{OnConstraint: "c", DoUpdates: clause.AssignmentColumns([]string{"name"})}).Create(&other)
	if !errors.Is(tx.Error, gorm.ErrDuplicatedKey) || !slices.Equal(other, []contact{{ID: 70}, {}}) {
		t.Errorf("rows = %v, %v", other, tx.Error)
	}
	// The caller's condition may be false.
	where := clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "true"}}}
	if err := db.Clauses(clause.OnConflict{UpdateAll: true, Where: where}).Create(&batch).Error; err != nil || batch[0].ID == 0 {
		t.Errorf("rows = %v, %v", batch, err)
	}
}

// Maps are inserted in one statement, too, and the caller's slice stays.
func TestUpsertOfMaps(t *testing.T) {
	s := &server{affected: -1}
	db := openServer(t, s, For(snowflakes()))
	for _, pointer := range []bool{false, true} {
		maps := []map[string]any{{"id": nil, "name": "a"}, {"id": idtype.Snowflake(7), "name": "b"}}
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
	if got := s.inserts(); len(got) != 2 || !strings.Contains(got[0], " WHERE (`contacts`.`id` = ?) IS NOT TRUE") {
		t.Errorf("ran %q", got)
	}
}

// With RETURNING *, GORM empties the slice. The struct of a skipped row gets no ID.
func TestSkippedRowOfEmptiedSlice(t *testing.T) {
	db := openServer(t, &server{columns: []string{"id"}}, For(snowflakes()))
	rows := []contact{{}}
	first := &rows[0]
	if err := db.Clauses(clause.OnConflict{DoNothing: true}, clause.Returning{}).Create(&rows).Error; err != nil || len(rows) != 0 || first.ID != 0 {
		t.Errorf("rows = %v, first = %v, %v", rows, first, err)
	}
}

// A moderated adds its own ON CONFLICT.
type moderated struct {
	ID    idtype.Snowflake
	Email string
}

func (*moderated) BeforeCreate(tx *gorm.DB) error {
	tx.Statement.AddClause(clause.OnConflict{Columns: onEmail, DoNothing: true})
	return nil
}

// The ON CONFLICT of an association stays if a row may exist, or if it is not GORM's.
func TestConflictOfAssociation(t *testing.T) {
	type forum struct {
		ID          idtype.Snowflake
		MemberID    uint
		Member      *member
		ModeratedID idtype.Snowflake
		Moderated   *moderated
	}
	s := &server{affected: 1, columns: []string{"id"}, rows: [][]driver.Value{{int64(9)}}}
	db := openServer(t, s, For(snowflakes()))
	for _, c := range []struct {
		row      forum
		conflict bool
	}{
		{forum{Member: &member{}}, false},
		{forum{Member: &member{ID: 5}}, true}, // its public ID is new
		{forum{Moderated: &moderated{}}, true},
	} {
		s.ran = nil
		if err := db.Create(&c.row).Error; err != nil {
			t.Error(err)
		}
		if got := s.inserts()[0]; strings.Contains(got, "forums") || strings.Contains(got, "ON CONFLICT") != c.conflict {
			t.Errorf("ran %s, want ON CONFLICT of the association: %t", got, c.conflict)
		}
	}
}

// If a DO NOTHING may have skipped a row that had its key before, the row's generated public ID is
// reset, and its key stays. The public ID of a row with a generated key stays.
func TestReferredRows(t *testing.T) {
	type part struct {
		Number   int              `gorm:"primaryKey;autoIncrement:false"`
		ID       idtype.Snowflake `gorm:"primaryKey;idgen"`
		PublicID idtype.Snowflake `gorm:"idgen"`
		Name     string
	}
	skip := clause.OnConflict{DoNothing: true}
	returnAll := clause.Returning{}
	for name, c := range map[string]struct {
		affected int64
		clauses  []clause.Expression
		keeps    string // the rows that keep their public IDs
	}{
		"one was skipped":        {2, []clause.Expression{skip}, "012"},
		"none was skipped":       {4, []clause.Expression{skip}, "0123"},
		"an update with a WHERE": {4, []clause.Expression{clause.OnConflict{UpdateAll: true, Where: clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "true"}}}}}, "012"},
		"all by an own clause":   {2, []clause.Expression{ownConflict{}}, "0123"},
		"RETURNING *":            {0, []clause.Expression{skip, returnAll}, "0123"},
	} {
		s := &server{affected: c.affected}
		db := openServer(t, s, For(from(100)))
		rows := []*part{{}, {Number: 1}, {ID: 8, PublicID: 6}, {Number: 3, ID: 9}}
		got, tx := "", db.Clauses(c.clauses...)
		all := slices.Clone(rows)
		if err := tx.Create(&rows).Error; err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for i, row := range all {
			if row.PublicID != 0 {
				got += string('0' + rune(i))
			}
			if row.ID == 0 || row.PublicID == 6 != (i == 2) {
				t.Errorf("%s: row %d is %+v", name, i, row)
			}
		}
		if got != c.keeps {
			t.Errorf("%s: rows %s keep their public IDs, want %s", name, got, c.keeps)
		}
	}
}

// The caller may use a statement again.
func TestStatementUsedAgain(t *testing.T) {
	s := &server{affected: 1}
	db := openServer(t, s, For(snowflakes()))
	tx := db.Clauses(clause.OnConflict{DoNothing: true}).Create(&parent{Boss: &parent{}})
	if err := tx.Create(&parent{}).Error; err != nil {
		t.Error(err)
	}
	if got := s.inserts(); len(got) != 3 || !strings.Contains(got[2], "ON CONFLICT DO NOTHING") {
		t.Errorf("ran %q, want the caller's ON CONFLICT", got)
	}
	// Neither a guard nor the lack of an ON CONFLICT stays.
	s.ran, s.affected = nil, -1
	upsert := clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"name"})}
	tx = db.Clauses(upsert)
	for _, rows := range []any{&contact{}, &contact{ID: 7}, []*contact{{}, {ID: 7}}, []*contact{{ID: 7}, {ID: 8}}} {
		if err := tx.Create(rows).Error; err != nil {
			t.Error(err)
		}
	}
	for i, got := range s.inserts() {
		parts := [][2]string{{"", "ON CONFLICT"}, {"ON CONFLICT", "WHERE"}, {"WHERE", ""}, {"ON CONFLICT", "WHERE"}}[i]
		if parts[0] != "" && !strings.Contains(got, parts[0]) || parts[1] != "" && strings.Contains(got, parts[1]) {
			t.Errorf("call %d: ran %s, want %q and not %q", i, got, parts[0], parts[1])
		}
	}
	s.affected = 1
	// The plugin resets the key of the second row alone.
	first, second := contact{ID: 7}, contact{}
	tx = db.Create(&first)
	s.refuse = func(string) error { return &pgError{"23505", "Key (id)=(1) already exists."} }
	if err := tx.Create(&second).Error; err == nil || first.ID != 7 || second.ID != 0 {
		t.Errorf("first = %v, second = %v, %v", first, second, err)
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
	s := &server{affected: -1}
	db := openServer(t, s, For(snowflakes()))
	for i, c := range []struct {
		rows     any
		conflict bool
	}{
		{&hookedUpsert{}, false},
		{&[]hookedUpsert{{}, {ID: 7}}, true},
		{&[]hookedUpsert{{ID: 7}, {ID: 8}}, true}, // no key was generated
		{&[]hookedUpsert{{}, {}}, false},
	} {
		if err := db.Create(c.rows).Error; err != nil {
			t.Error(err)
		}
		if q := s.inserts()[i]; strings.Contains(q, "ON CONFLICT") != c.conflict {
			t.Errorf("ran %s, want ON CONFLICT: %t", q, c.conflict)
		}
	}
}

// Statements that generate no key share nothing that they change.
func TestConcurrentUpserts(t *testing.T) {
	db := openServer(t, &server{affected: -1}, For(snowflakes()))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 20 {
				if err := db.Create(&hookedUpsert{ID: idtype.Snowflake(i + 1)}).Error; err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
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

// A DryRun shows all rows in one statement.
func TestNewRowsInDryRun(t *testing.T) {
	db := open(t, For(snowflakes()))
	got := create(t, db.Clauses(clause.OnConflict{UpdateAll: true}), &[]contact{{}, {ID: 7}})
	if !strings.Contains(got, "(1,\"\",\"\"),(7,\"\",\"\") ON CONFLICT") || !strings.Contains(got, "WHERE (`contacts`.`id` = 1) IS NOT TRUE") {
		t.Errorf("got %s", got)
	}
	got = create(t, db.Clauses(clause.OnConflict{UpdateAll: true}), &[]contact{{}})
	if strings.Contains(got, "ON CONFLICT") {
		t.Errorf("got %s", got)
	}
}

// The plugin remembers the rows whose key it didn't generate. Without such rows, it remembers
// nothing.
func TestMixedRows(t *testing.T) {
	for rows, all := range map[string]bool{"": true, "1": true, "111": true, "0": false, "0110": false, "101": false, "1001101": false, "110": false} {
		values, got := make([]order, len(rows)), []byte(strings.Repeat("0", len(rows)))
		for i, c := range rows {
			if c == '0' {
				values[i].ID = 70
			}
		}
		p, tx := statement(t, &values)
		p.fill(tx)
		for i, id := range p.madeIn(tx.Statement).ids[0] {
			if id == values[i].ID {
				got[i] = '1'
			}
		}
		if _, held := tx.Statement.Clauses[madeClause]; string(got) != rows || held == all {
			t.Errorf("%s: generated in %s, remembered: %t", rows, got, held)
		}
	}
}
