package gorm

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// Save creates rows without an ID or with an unknown ID, and updates the others.
func (k of[T, N]) save(t *testing.T, g *gorm.DB) {
	preset := k.ids(t, 4)
	want := map[*thing[T]]T{} // the IDs that were set before

	one := &thing[T]{Name: "new"}
	must(t, g.Save(one).Error)
	want[one] = one.ID
	one.Name = "existing"
	must(t, g.Save(one).Error)
	two := &thing[T]{Name: "pointer to pointer"}
	must(t, g.Save(&two).Error)
	three := &thing[T]{Name: "preset", ID: preset[0]}
	must(t, g.Save(three).Error)
	want[three] = preset[0]
	// Without the plugin, GORM would omit the key from the INSERT.
	four := &thing[T]{Name: "selected"}
	must(t, g.Select("Name").Save(four).Error)
	five := &thing[T]{Name: "no hooks"}
	must(t, g.Session(&gorm.Session{SkipHooks: true}).Save(five).Error)

	two.Name = "existing in a slice"
	values := []thing[T]{{Name: "slice 0"}, *two, {Name: "slice, preset", ID: preset[1]}, {Name: "slice 3"}}
	must(t, g.Save(&values).Error)
	want[&values[1]], want[&values[2]] = two.ID, preset[1]
	values[0].Name = "slice 0, existing"
	byValue := []thing[T]{values[0], {Name: "slice by value"}}
	must(t, g.Save(byValue).Error)
	want[&byValue[0]] = values[0].ID

	four.Name = "existing in pointers"
	pointers := []*thing[T]{four, {Name: "pointers 1"}, {Name: "pointers, preset", ID: preset[2]}, {Name: "pointers 3"}}
	want[four] = four.ID
	must(t, g.Save(&pointers).Error)
	five.Name = "existing in pointers by value"
	want[five] = five.ID
	more := []*thing[T]{{Name: "pointers by value"}, five, {Name: "pointers by value, preset", ID: preset[3]}}
	must(t, g.Save(more).Error)

	for row, id := range want {
		if row.ID != id {
			t.Errorf("%s: got ID %v, want %v as before", row.Name, row.ID, id)
		}
	}
	k.agree(t, g, append([]thing[T]{*one, *three, values[1], values[2], values[3]},
		byValue[0], byValue[1], *four, *pointers[1], *pointers[2], *pointers[3], *more[0], *five, *more[2]))
	if err := g.Save(thing[T]{Name: "by value"}).Error; !errors.Is(err, gorm.ErrInvalidValue) {
		t.Errorf("struct by value: got %v, want %v", err, gorm.ErrInvalidValue)
	}
}

// FirstOrCreate creates a missing row with an ID, and returns the ID of an existing row.
func (k of[T, N]) firstOrCreate(t *testing.T, g *gorm.DB) {
	ids := k.ids(t, 3)
	var zero T
	var all []thing[T]
	for name, c := range map[string]struct {
		tx    func() *gorm.DB // sessions don't copy Attrs and Assign
		conds []any
		id    T // ID of the created row; zero means any
	}{
		"struct":              {func() *gorm.DB { return g }, []any{thing[T]{Name: "struct"}}, zero},
		"pointer":             {func() *gorm.DB { return g }, []any{&thing[T]{Name: "pointer"}}, zero},
		"map":                 {func() *gorm.DB { return g }, []any{map[string]any{"name": "map"}}, zero},
		"Where":               {func() *gorm.DB { return g.Where(thing[T]{Name: "Where"}) }, nil, zero},
		"Attrs":               {func() *gorm.DB { return g.Where("name = ?", "Attrs").Attrs(thing[T]{Name: "Attrs"}) }, nil, zero},
		"Attrs, map":          {func() *gorm.DB { return g.Where("name = ?", "Attrs, map").Attrs(map[string]any{"name": "Attrs, map"}) }, nil, zero},
		"Assign":              {func() *gorm.DB { return g.Where("name = ?", "Assign").Assign(thing[T]{Name: "Assign"}) }, nil, zero},
		"no hooks":            {func() *gorm.DB { return g.Session(&gorm.Session{SkipHooks: true}) }, []any{thing[T]{Name: "no hooks"}}, zero},
		"an ID in the struct": {func() *gorm.DB { return g.Attrs(thing[T]{Name: "an ID in the struct"}) }, []any{thing[T]{ID: ids[0]}}, ids[0]},
		"an ID in a map":      {func() *gorm.DB { return g.Attrs("name", "an ID in a map") }, []any{map[string]any{"id": ids[1]}}, ids[1]},
		"an ID in Attrs":      {func() *gorm.DB { return g.Attrs(thing[T]{ID: ids[2]}) }, []any{thing[T]{Name: "an ID in Attrs"}}, ids[2]},
	} {
		var none thing[T]
		if tx := c.tx().FirstOrInit(&none, c.conds...); tx.Error != nil || tx.RowsAffected != 0 || none.ID != c.id || none.Name != name {
			t.Errorf("%s: FirstOrInit gave %+v, %v, want ID %v", name, none, tx.Error, c.id)
		}
		var miss, hit, init thing[T]
		if tx := c.tx().FirstOrCreate(&miss, c.conds...); tx.Error != nil || tx.RowsAffected != 1 || miss.ID.IsZero() || !c.id.IsZero() && miss.ID != c.id {
			t.Errorf("%s: created %+v, %v, want ID %v", name, miss, tx.Error, c.id)
		}
		if err := c.tx().FirstOrCreate(&hit, c.conds...).Error; err != nil || hit != miss {
			t.Errorf("%s: found %+v, %v, want %+v", name, hit, err, miss)
		}
		if err := c.tx().FirstOrInit(&init, c.conds...).Error; err != nil || init != miss {
			t.Errorf("%s: FirstOrInit found %+v, %v, want %+v", name, init, err, miss)
		}
		all = append(all, miss)
	}
	k.agree(t, g, all)

	// Assign updates an existing row, which keeps its ID.
	changed := thing[T]{}
	must(t, g.Where(thing[T]{Name: "struct"}).Assign(thing[T]{Name: "assigned"}).FirstOrCreate(&changed).Error)
	for i := range all {
		if all[i].Name == "struct" {
			all[i].Name = "assigned"
			if changed != all[i] {
				t.Errorf("Assign: got %+v, want %+v", changed, all[i])
			}
		}
	}
	k.agree(t, g, all)
}

// Every row of every batch gets an ID.
func (k of[T, N]) batches(t *testing.T, g *gorm.DB) {
	preset := k.ids(t, 2)
	var all []thing[T]
	for name, create := range map[string]func(g *gorm.DB, rows any) *gorm.DB{
		"CreateInBatches": func(g *gorm.DB, rows any) *gorm.DB { return g.CreateInBatches(rows, 2) },
		"CreateBatchSize": func(g *gorm.DB, rows any) *gorm.DB {
			return g.Session(&gorm.Session{CreateBatchSize: 2}).Create(rows)
		},
		"one transaction each": func(g *gorm.DB, rows any) *gorm.DB {
			return g.Session(&gorm.Session{SkipDefaultTransaction: true}).CreateInBatches(rows, 2)
		},
	} {
		r := pgtest.NewRecorder()
		g := g.Session(&gorm.Session{Logger: r})
		named := func(kind string, n int) string { return fmt.Sprintf("%s, %s %d", name, kind, n) }

		values := make([]thing[T], 5)
		byValue := make([]thing[T], 5)
		pointers := make([]*thing[T], 5)
		maps := make([]map[string]any, 5)
		for i := range 5 {
			values[i].Name, byValue[i].Name = named("slice", i), named("by value", i)
			pointers[i] = &thing[T]{Name: named("pointers", i)}
			maps[i] = map[string]any{"name": named("maps", i)}
		}
		if name == "CreateInBatches" {
			values[1].ID, pointers[4].ID = preset[0], preset[1]
		}
		for _, rows := range []any{&values, byValue, pointers, maps} {
			tx := create(g.Model(&thing[T]{}), rows)
			if tx.Error != nil || tx.RowsAffected != 5 {
				t.Errorf("%s of %T: %d rows, %v", name, rows, tx.RowsAffected, tx.Error)
			}
		}
		one := thing[T]{Name: named("struct", 0)}
		must(t, create(g, &one).Error)
		if n := len(r.With("INSERT")); n != 3*4+1 {
			t.Errorf("%s: %d statements, want batches of 2", name, n)
		}
		if name == "CreateInBatches" && (values[1].ID != preset[0] || pointers[4].ID != preset[1]) {
			t.Errorf("%s: IDs that were set became %v, %v", name, values[1].ID, pointers[4].ID)
		}

		all = append(append(append(all, one), values...), byValue...)
		for i := range 5 {
			id, _ := maps[i]["id"].(T)
			all = append(all, *pointers[i], thing[T]{ID: id, Name: named("maps", i)})
		}
	}
	k.agree(t, g, all)
}

// Rows get IDs in sessions with any settings.
func (k of[T, N]) sessions(t *testing.T, g *gorm.DB) {
	var all []thing[T]
	for name, session := range map[string]gorm.Session{
		"default":                  {},
		"SkipHooks":                {SkipHooks: true},
		"PrepareStmt":              {PrepareStmt: true},
		"SkipDefaultTransaction":   {SkipDefaultTransaction: true},
		"DisableNestedTransaction": {DisableNestedTransaction: true},
		"AllowGlobalUpdate":        {AllowGlobalUpdate: true, QueryFields: true},
		"NewDB":                    {NewDB: true, Context: t.Context()},
	} {
		s := g.Session(&session)
		one := thing[T]{Name: name}
		must(t, s.Create(&one).Error)
		two := []*thing[T]{{Name: name + ", slice 0"}, {Name: name + ", slice 1"}}
		must(t, s.Create(two).Error)
		all = append(all, one, *two[0], *two[1])
	}
	k.agree(t, g, all)

	// A dry run sets the ID that is in the SQL.
	dry := thing[T]{Name: "dry"}
	tx := g.Session(&gorm.Session{DryRun: true}).Create(&dry)
	must(t, tx.Error)
	if sql := tx.Dialector.Explain(tx.Statement.SQL.String(), tx.Statement.Vars...); dry.ID.IsZero() || !strings.Contains(sql, k.Stored(dry.ID)) {
		t.Errorf("dry run: ID %v, SQL %s", dry.ID, sql)
	}
	built := []thing[T]{{Name: "built 0"}, {Name: "built 1"}}
	sql := g.ToSQL(func(tx *gorm.DB) *gorm.DB { return tx.Create(&built) })
	for _, b := range built {
		if b.ID.IsZero() || !strings.Contains(sql, k.Stored(b.ID)) {
			t.Errorf("ToSQL: ID %v, SQL %s", b.ID, sql)
		}
	}
	k.agree(t, g, all)
	// The row can be inserted with this ID.
	id := dry.ID
	must(t, g.Create(&dry).Error)
	if dry.ID != id {
		t.Errorf("got ID %v, want %v as in the dry run", dry.ID, id)
	}
	k.agree(t, g, append(all, dry))
}

// After a rollback the structs keep their IDs, and can be inserted again.
func (k of[T, N]) transaction(t *testing.T, g *gorm.DB) {
	failed := errors.New("failed on purpose")
	kept, dropped, inner, again := thing[T]{Name: "kept"}, thing[T]{Name: "dropped"}, thing[T]{Name: "inner"}, thing[T]{Name: "again"}
	must(t, g.Transaction(func(tx *gorm.DB) error {
		must(t, tx.Create(&kept).Error)
		err := tx.Transaction(func(tx *gorm.DB) error { // a savepoint
			must(t, tx.Create(&dropped).Error)
			return failed
		})
		if !errors.Is(err, failed) {
			t.Errorf("got %v, want %v", err, failed)
		}
		must(t, tx.Transaction(func(tx *gorm.DB) error { return tx.Create(&inner).Error }))
		must(t, tx.SavePoint("before").Error)
		must(t, tx.Create(&again).Error)
		must(t, tx.RollbackTo("before").Error)
		return nil
	}))
	if dropped.ID.IsZero() || again.ID.IsZero() {
		t.Errorf("after a rollback: IDs = %v and %v, want the generated IDs", dropped.ID, again.ID)
	}
	k.agree(t, g, []thing[T]{kept, inner})

	id := again.ID
	if err := g.Transaction(func(tx *gorm.DB) error {
		must(t, tx.Create(&again).Error)
		return failed
	}); !errors.Is(err, failed) {
		t.Errorf("got %v, want %v", err, failed)
	}
	k.agree(t, g, []thing[T]{kept, inner})
	tx := g.Begin()
	must(t, tx.Create(&again).Error)
	must(t, tx.Commit().Error)
	if again.ID != id {
		t.Errorf("got ID %v, want %v as before the rollbacks", again.ID, id)
	}
	k.agree(t, g, []thing[T]{kept, inner, again})
}

// Updates and Save with FullSaveAssociations save new and existing associations.
func (k of[T, N]) saveAssociations(t *testing.T, g *gorm.DB) {
	ada := k.newGraph()
	must(t, g.Create(ada).Error)
	a := k.in(ada)
	// rows returns the number of rows of a table with an ID and a name.
	rows := func(table, name string, id T) (n int64) {
		t.Helper()
		must(t, g.Table(table).Where("id = ? and "+name, id).Count(&n).Error)
		return n
	}
	saved := func(what string, n int64, ids ...T) {
		t.Helper()
		for _, id := range ids {
			if id.IsZero() {
				t.Errorf("%s: got no ID", what)
			}
		}
		if n != 1 {
			t.Errorf("%s: got %d rows with the ID of the struct, want 1", what, n)
		}
	}

	// Existing associations are updated with FullSaveAssociations, new ones created.
	engines, first, tagged := a.Company.ID, a.Orders[0].ID, a.Tags[0].ID
	a.Company.Name, a.Orders[0].Item, a.Tags[0].Name = "Renamed", "renamed", "renamed"
	a.Orders = append(a.Orders, order[T]{Item: "new", Pictures: []picture[T]{{File: "new.png"}}})
	a.Tags = append(a.Tags, &tag[T]{Name: "new"})
	a.Clubs = append(a.Clubs, &club[T]{Name: "new"})
	a.Team = append(a.Team, *k.named("new"))
	must(t, g.Session(&gorm.Session{FullSaveAssociations: true}).Updates(ada).Error)
	if a.Company.ID != engines || a.Orders[0].ID != first || a.Tags[0].ID != tagged {
		t.Errorf("existing IDs became %v, %v, %v", a.Company.ID, a.Orders[0].ID, a.Tags[0].ID)
	}
	saved("company", rows("companies", "name = 'Renamed'", engines))
	saved("order", rows("orders", "item = 'renamed'", first))
	saved("tag", rows("tags", "name = 'renamed'", tagged))
	saved("new order", rows("orders", "item = 'new'", a.Orders[2].ID), a.Orders[2].ID)
	saved("its person", rows("people", "id = (select person_id from orders where item = 'new')", a.ID))
	saved("new nested picture", rows("pictures", "file = 'new.png'", a.Orders[2].Pictures[0].ID), a.Orders[2].Pictures[0].ID)
	saved("new tag", rows("tags", "name = 'new'", a.Tags[2].ID), a.Tags[2].ID)
	saved("new club", rows("clubs", "name = 'new'", a.Clubs[1].ID), a.Clubs[1].ID)
	saved("new in the team", rows("people", "name = 'new'", k.in(&a.Team[2]).ID), k.in(&a.Team[2]).ID)
	k.memberships(t, g, a.ID, 2)

	// Save does the same for a new row.
	grace := k.newPerson(Person[T, N]{Name: "Grace", Company: a.Company, Orders: []order[T]{{Item: "of Grace"}}, Clubs: a.Clubs})
	a.Company.Name = "Renamed again"
	must(t, g.Session(&gorm.Session{FullSaveAssociations: true}).Save(grace).Error)
	b := k.in(grace)
	saved("company", rows("companies", "name = 'Renamed again'", engines))
	saved("person", rows("people", "name = 'Grace'", b.ID), b.ID)
	saved("order of a new person", rows("orders", "item = 'of Grace'", b.Orders[0].ID), b.Orders[0].ID)
	k.memberships(t, g, b.ID, 2)
}

// memberships checks the number of a person's memberships, and that each has an ID.
func (k of[T, N]) memberships(t *testing.T, g *gorm.DB, person T, want int) {
	t.Helper()
	var joins []membership[T]
	must(t, g.Find(&joins, "person_id = ?", person).Error)
	if len(joins) != want {
		t.Errorf("got %d memberships, want %d", len(joins), want)
	}
	for _, j := range joins {
		if j.ID.IsZero() {
			t.Errorf("membership %+v has no ID", j)
		}
	}
}
