package gorm

import (
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/sqltypes"
)

// Create fills zero keys and keeps keys that are set, in every kind of value that GORM accepts,
// with every way to create rows. Structs, maps and rows have the same IDs.
func (k of[T]) create(t *testing.T, g *gorm.DB) {
	ctx := t.Context()
	inSession := func(s gorm.Session) func(*gorm.DB, any) *gorm.DB {
		return func(g *gorm.DB, v any) *gorm.DB { return g.Session(&s).Create(v) }
	}
	ways := map[string]struct {
		create func(g *gorm.DB, v any) *gorm.DB // nil: the way doesn't accept the value
		size   int                              // of a batch
	}{
		"Create":                   {func(g *gorm.DB, v any) *gorm.DB { return g.Create(v) }, 0},
		"SkipHooks":                {inSession(gorm.Session{SkipHooks: true}), 0},
		"PrepareStmt":              {inSession(gorm.Session{PrepareStmt: true}), 0},
		"SkipDefaultTransaction":   {inSession(gorm.Session{SkipDefaultTransaction: true}), 0},
		"DisableNestedTransaction": {inSession(gorm.Session{DisableNestedTransaction: true}), 0},
		"AllowGlobalUpdate":        {inSession(gorm.Session{AllowGlobalUpdate: true, QueryFields: true}), 0},
		"Context":                  {inSession(gorm.Session{Context: ctx}), 0},
		"CreateBatchSize":          {inSession(gorm.Session{CreateBatchSize: 2}), 2},
		"CreateInBatches":          {func(g *gorm.DB, v any) *gorm.DB { return g.CreateInBatches(v, 2) }, 2},
		"one transaction each": {func(g *gorm.DB, v any) *gorm.DB {
			return g.Session(&gorm.Session{SkipDefaultTransaction: true}).CreateInBatches(v, 2)
		}, 2},
		"Transaction": {func(g *gorm.DB, v any) (res *gorm.DB) {
			must(t, g.Transaction(func(tx *gorm.DB) error { res = tx.Create(v); return res.Error }))
			return res
		}, 0},
		"Save": {func(g *gorm.DB, v any) *gorm.DB {
			if isMap(v) {
				return nil
			}
			return g.Save(v)
		}, 0},
		"G": {func(g *gorm.DB, v any) (res *gorm.DB) {
			result := gorm.WithResult()
			res = g.Session(&gorm.Session{NewDB: true})
			switch v := v.(type) {
			case *thing[T]:
				_ = res.AddError(gorm.G[thing[T]](g, result).Create(ctx, v))
			case *[]thing[T]:
				_ = res.AddError(gorm.G[thing[T]](g).CreateInBatches(ctx, v, 2))
				result.RowsAffected = int64(len(*v))
			default:
				return nil
			}
			res.RowsAffected = result.RowsAffected
			return res
		}, 0},
	}
	set := k.ids(t, 20*len(ways))
	var all []thing[T]
	for name, way := range ways {
		n := 0
		row := func(preset bool) (r thing[T]) {
			r.Name = fmt.Sprint(name, " ", n)
			if n++; preset {
				r.ID, set = set[0], set[1:]
			}
			return r
		}
		ptr := func(preset bool) *thing[T] { r := row(preset); return &r }
		m := func(preset bool) map[string]any {
			r := row(preset)
			if !preset {
				return map[string]any{"name": r.Name}
			}
			return map[string]any{"name": r.Name, "id": r.ID}
		}
		p, q, made := ptr(false), ptr(false), m(false)
		r := pgtest.NewRecorder()
		statements := 0
		for _, v := range []any{
			ptr(false), ptr(true), &p,
			[]thing[T]{row(false), row(false), row(false)},
			&[]thing[T]{row(false), row(true), row(false), row(true), row(false)},
			&[2]thing[T]{row(false), row(true)},
			[]*thing[T]{ptr(true), ptr(false), ptr(false)}, &[]*thing[T]{ptr(false)}, &[2]*thing[T]{ptr(false), ptr(true)}, [2]*thing[T]{ptr(false), ptr(false)},
			[]**thing[T]{&q},
			m(false), &made, []map[string]any{m(false), m(false), m(true)}, &[]map[string]any{m(true), m(false)},
		} {
			if way.size > 0 && reflect.Indirect(reflect.ValueOf(v)).Kind() == reflect.Array {
				continue // GORM can't cut it into batches
			}
			before := collect[T](v)
			tx := g.Session(&gorm.Session{Logger: r})
			if isMap(v) {
				tx = tx.Model(&thing[T]{})
			}
			res := way.create(tx, v)
			if res == nil {
				continue
			}
			after := collect[T](v)
			if res.Error != nil || res.RowsAffected != int64(len(after)) {
				t.Errorf("%s of %T: %d rows, %v", name, v, res.RowsAffected, res.Error)
			}
			for i, b := range before {
				if !b.ID.IsZero() && after[i].ID != b.ID {
					t.Errorf("%s of %T: the ID %v became %v", name, v, b.ID, after[i].ID)
				}
			}
			all = append(all, after...)
			if way.size > 0 {
				statements += (len(after) + way.size - 1) / way.size
			}
		}
		if got := len(r.With("INSERT")); way.size > 0 && got != statements {
			t.Errorf("%s: %d statements, want %d", name, got, statements)
		}
	}
	k.agree(t, g, all)

	// The IDs of many rows are in the order of the rows.
	must(t, g.Exec("delete from things").Error)
	ids, next := k.ids(t, 900), 0
	many, want := make([]thing[T], 785), []thing[T]{}
	for i := range many {
		id := ids[next]
		if many[i].Name = fmt.Sprint(i); i%7 == 3 {
			id = ids[len(ids)-1-i/7]
			many[i].ID = id
		} else {
			next++
		}
		want = append(want, thing[T]{ID: id, Name: many[i].Name})
	}
	must(t, with(t, g, gormplugin.For(scripted(ids[:next]...))).Create(&many).Error)
	if !slices.Equal(many, want) {
		t.Errorf("many rows: got %v, want %v", many, want)
	}
	k.agree(t, g, many)

	// A dry run sets the IDs that are in the SQL. Rows can be inserted with these IDs.
	dry := []thing[T]{{Name: "dry 0"}, {Name: "dry 1"}}
	tx := g.Session(&gorm.Session{DryRun: true}).Create(&dry)
	built := []thing[T]{{Name: "built"}}
	text := tx.Dialector.Explain(tx.Statement.SQL.String(), tx.Statement.Vars...) + g.ToSQL(func(tx *gorm.DB) *gorm.DB { return tx.Create(&built) })
	dry = append(dry, built...)
	for _, d := range dry {
		if tx.Error != nil || d.ID.IsZero() || !strings.Contains(text, k.Stored(d.ID)) {
			t.Errorf("dry run: %v, ID %v, SQL %s", tx.Error, d.ID, text)
		}
	}
	k.agree(t, g, many)
	dried := slices.Clone(dry)
	if must(t, g.Create(&dry).Error); !slices.Equal(dry, dried) {
		t.Errorf("got %v, want the IDs of the dry run, %v", dry, dried)
	}
	k.agree(t, g, append(many, dry...))
}

func isMap(v any) bool { return strings.Contains(fmt.Sprintf("%T", v), "map[") }

// collect returns the rows in a value of Create.
func collect[T any](v any) (rows []thing[T]) {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Pointer:
		return collect[T](r.Elem().Interface())
	case reflect.Slice, reflect.Array:
		for i := range r.Len() {
			rows = append(rows, collect[T](r.Index(i).Interface())...)
		}
		return rows
	case reflect.Map:
		m := v.(map[string]any)
		id, _ := m["id"].(T)
		return []thing[T]{{id, m["name"].(string)}}
	}
	return []thing[T]{v.(thing[T])}
}

// Maps contain the ID under their own name for the key, or else under the column's name.
func (k of[T]) createMaps(t *testing.T, g *gorm.DB) {
	set := k.ids(t, 9)
	var zero T
	var want []thing[T]
	create := func(model any, key string, value any, rows ...map[string]any) {
		t.Helper()
		var before []T
		for _, row := range rows {
			id, _ := row[key].(T)
			before = append(before, id)
		}
		must(t, g.Model(model).Create(value).Error)
		for i, row := range rows {
			id, _ := row[key].(T)
			name, _ := row["name"].(string)
			if len(row) != 2 || id.IsZero() || !before[i].IsZero() && id != before[i] {
				t.Errorf("got map %v, want an ID under %q; it was %v before", row, key, before[i])
			}
			want = append(want, thing[T]{ID: id, Name: name})
		}
	}
	byValue := map[string]any{"name": "model by value"}
	create(thing[T]{}, "id", byValue, byValue)
	ofSlice := map[string]any{"name": "model is a slice"}
	create(&[]thing[T]{}, "id", ofSlice, ofSlice)

	// The key has the name of the column or the field, or a name that GORM converts to it.
	for n, key := range []string{"id", "ID", "Id"} {
		kept := map[string]any{"name": key + ", set", key: set[n]}
		create(&thing[T]{}, key, kept, kept)
		for i, empty := range []any{nil, zero, &zero, (*T)(nil), sql.Null[T]{}, sql.Null[T]{Valid: true}, sql.Null[T]{V: set[0]}, sqltypes.Optional[T]{}} {
			row := map[string]any{"name": fmt.Sprintf("%s, empty %d", key, i), key: empty}
			create(&thing[T]{}, key, row, row)
		}
		rows := []map[string]any{{"name": key + ", slice 0", key: zero}, {"name": key + ", slice 1", key: nil}}
		create(&thing[T]{}, key, rows, rows...)
		mixed := []map[string]any{{"name": key + ", mixed 0", key: set[3+n]}, {"name": key + ", mixed 1"}, {"name": key + ", mixed 2", key: nil}}
		create(&thing[T]{}, key, mixed, mixed[0], mixed[2])
		id, _ := mixed[1]["id"].(T)
		want = append(want, thing[T]{ID: id, Name: key + ", mixed 1"})
	}
	// An ID in another form is kept.
	for i, id := range []any{&set[6], sql.Null[T]{V: set[7], Valid: true}, sqltypes.OptionalOf(set[8])} {
		m := map[string]any{"name": fmt.Sprintf("form %d", i), "id": id}
		if must(t, g.Model(&thing[T]{}).Create(m).Error); !reflect.DeepEqual(m["id"], id) {
			t.Errorf("the ID %v of the caller's map became %v", id, m["id"])
		}
		want = append(want, thing[T]{ID: set[6+i], Name: m["name"].(string)})
	}
	if !zero.IsZero() {
		t.Errorf("the caller's variable became %v, want zero", zero)
	}
	// Nil maps are created.
	var made map[string]any
	must(t, g.Model(&thing[T]{}).Create(&made).Error)
	id, _ := made["id"].(T)
	want = append(want, thing[T]{ID: id})
	k.agree(t, g, want)
	several := make([]map[string]any, 2)
	must(t, g.Model(&thing[T]{}).Create(&several).Error)
	if a, _ := several[0]["id"].(T); a.IsZero() || a == several[1]["id"] {
		t.Errorf("nil maps became %v", several)
	}
}

// Without a model, the plugin doesn't know the key, and the database sets it.
func (k of[T]) createMapWithoutModel(t *testing.T, g *gorm.DB) {
	byDefault := k.ids(t, 1)[0]
	for _, table := range []string{"things", "others"} {
		must(t, g.Exec(fmt.Sprintf("create table %s (id %s default '%s', name text)", table, k.Column, k.Stored(byDefault))).Error)
	}
	row := map[string]any{"name": "a"}
	must(t, g.Table("things").Create(row).Error)
	if id, ok := row["id"]; ok {
		t.Errorf("map: ID = %v, want none", id)
	}
	k.agree(t, g, []thing[T]{{ID: byDefault, Name: "a"}})

	must(t, g.Exec("delete from things").Error)
	must(t, g.Table("things").Create([]map[string]any{{"name": "a"}, {"name": "b", "id": nil}}).Error)
	var nulls int
	must(t, g.Raw("select count(*) from things where id is null").Scan(&nulls).Error)
	if nulls != 2 {
		t.Errorf("got %d rows with NULL, want 2", nulls)
	}

	// With a model, the table may be another one.
	row = map[string]any{"name": "c"}
	must(t, g.Table("others").Model(&thing[T]{}).Create(row).Error)
	var ids []T
	must(t, g.Table("others").Where("name = 'c'").Pluck("id", &ids).Error)
	if len(ids) != 1 || ids[0] == byDefault || ids[0].IsZero() || ids[0] != row["id"] {
		t.Errorf("ID = %v in the map, %v in the table, want the same new ID", row["id"], ids)
	}
}

// If a key can't be filled, Create fails and inserts nothing.
func (k of[T]) createRefused(t *testing.T, g *gorm.DB) {
	set := k.ids(t, 4)
	for name, c := range map[string]struct {
		value any
		want  error
		text  string
	}{
		"a struct by value":                {thing[T]{Name: "x"}, gorm.ErrInvalidValue, "].ID: want a pointer to a gorm.thing["},
		"a struct by value in Save":        {thing[T]{Name: "x"}, gorm.ErrInvalidValue, ""},
		"an array by value":                {[2]thing[T]{{ID: set[0], Name: "x"}, {Name: "y"}}, gorm.ErrInvalidValue, "].ID: want a pointer to a gorm.thing["},
		"a nil element":                    {[]*thing[T]{{Name: "x"}, nil, {Name: "y"}}, gorm.ErrInvalidData, "slice data #1 is invalid"},
		"a nil element, by a pointer":      {&[]*thing[T]{nil}, gorm.ErrInvalidData, "slice data #0 is invalid"},
		"a nil pointer":                    {(*thing[T])(nil), gorm.ErrInvalidValue, ""},
		"an empty slice":                   {[]thing[T]{}, gorm.ErrEmptySlice, ""},
		"an empty slice, by a pointer":     {&[]*thing[T]{}, gorm.ErrEmptySlice, ""},
		"a nil map":                        {map[string]any(nil), gorm.ErrInvalidData, "].ID: the map is nil"},
		"a nil embedded struct, by a copy": {embedsPointer[T]{Name: "x"}, gorm.ErrInvalidValue, ".ID: want a pointer to a gorm.embedsPointer["},
	} {
		tx := g
		if isMap(c.value) {
			tx = g.Model(&thing[T]{})
		}
		err := tx.Create(c.value).Error
		if strings.HasSuffix(name, "Save") {
			err = g.Save(c.value).Error
		}
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v, want %v with %q", name, err, c.want, c.text)
		}
	}
	k.agree(t, g, nil)
	// A row with an ID need not be addressable.
	want := []thing[T]{{set[1], "a"}, {set[2], "b"}, {set[3], "c"}}
	must(t, g.Create(want[0]).Error)
	must(t, g.Create([2]thing[T]{want[1], want[2]}).Error)
	k.agree(t, g, want)
}

// gorm.G creates rows with IDs.
func (k of[T]) genericCreate(t *testing.T, g *gorm.DB) {
	ctx, preset := t.Context(), k.ids(t, 1)[0]
	things := gorm.G[thing[T]](g)
	// Without the plugin, GORM would omit the key from the INSERT.
	selected, omitted, inside := thing[T]{Name: "selected"}, thing[T]{}, thing[T]{Name: "inside"}
	must(t, things.Select("Name").Create(ctx, &selected))
	must(t, things.Omit("Name").Create(ctx, &omitted))
	must(t, g.Transaction(func(tx *gorm.DB) error { return gorm.G[thing[T]](tx).Create(ctx, &inside) }))
	all := []thing[T]{selected, inside}

	// GORM converts these to a map that it doesn't return.
	name := clause.Column{Name: "name"}
	for what, assigners := range map[string][]clause.Assigner{
		"Assignment":  {clause.Assignment{Column: name, Value: "Assignment"}},
		"Set":         {clause.Set{{Column: name, Value: "Set"}}},
		"Assignments": {clause.Assignments(map[string]any{"name": "Assignments"})},
		"with an ID":  {clause.Assignment{Column: clause.Column{Name: "id"}, Value: preset}, clause.Assignment{Column: name, Value: "with an ID"}},
	} {
		must(t, things.Set(assigners...).Create(ctx))
		row, err := things.Where("name = ?", what).First(ctx)
		if err != nil || row.ID.IsZero() || what == "with an ID" && row.ID != preset {
			t.Errorf("Set by %s: got %+v, %v", what, row, err)
		}
		all = append(all, row)
	}
	row, err := things.Where("name is null or name = ''").First(ctx)
	if err != nil || row.ID != omitted.ID || omitted.ID.IsZero() {
		t.Errorf("Omit: ID = %v in the struct, %v in the row, %v", omitted.ID, row.ID, err)
	}
	_, err = things.Where("id = ?", omitted.ID).Delete(ctx)
	must(t, err)

	// Another table.
	archived := thing[T]{Name: "archived"}
	must(t, things.Table("archive").Create(ctx, &archived))
	must(t, gorm.G[thing[T]](g).Table("archive").Omit("Name").CreateInBatches(ctx, &[]thing[T]{{}, {}, {}}, 2))
	must(t, gorm.G[thing[T]](g).Table("archive").Set(clause.Assignment{Column: name, Value: "set"}).Create(ctx))
	rows, err := things.Table("archive").Find(ctx)
	must(t, err)
	ids := map[T]string{}
	for _, r := range rows {
		ids[r.ID] = r.Name
	}
	if _, zero := ids[*new(T)]; len(ids) != 5 || zero || ids[archived.ID] != "archived" {
		t.Errorf("archive: got rows %v, want 5 and %+v among them", rows, archived)
	}
	k.agree(t, g, all)
}

// Composite keys.

type line[T sqltypes.ID] struct {
	OrderID T `gorm:"primaryKey"`
	ID      T `gorm:"primaryKey;idgen"`
	Name    string
}

type bothParts[T sqltypes.ID] struct {
	Left  T  `gorm:"primaryKey;idgen"`
	Right *T `gorm:"primaryKey;idgen"`
	Name  string
}

type noPart[T sqltypes.ID] struct {
	Left  T `gorm:"primaryKey"`
	Right T `gorm:"primaryKey"`
	Name  string
}

// A linePart belongs to an owner, whose ID is a part of its key.
type linePart[T sqltypes.ID] struct {
	OwnerID T `gorm:"primaryKey"`
	ID      T `gorm:"primaryKey;idgen"`
	Owner   *owner[T]
}

func (line[T]) TableName() string      { return "lines" }
func (bothParts[T]) TableName() string { return "both_parts" }
func (noPart[T]) TableName() string    { return "no_parts" }
func (linePart[T]) TableName() string  { return "line_parts" }

// In a composite key, the plugin fills the parts with a tag, and leaves the others unchanged.
func (k of[T]) compositeKeys(t *testing.T, g *gorm.DB) {
	set := k.ids(t, 4)
	var zero T

	lines := []line[T]{{Name: "a"}, {Name: "b", OrderID: set[0]}, {Name: "c", OrderID: set[0]}, {Name: "d", OrderID: set[1], ID: set[2]}}
	must(t, g.Create(&lines).Error)
	one := line[T]{Name: "e", OrderID: set[0]}
	must(t, g.Create(&one).Error)
	m := map[string]any{"name": "f", "order_id": set[0]}
	must(t, g.Model(&line[T]{}).Create(m).Error)
	id, _ := m["id"].(T)
	lines = append(lines, one, line[T]{Name: "f", OrderID: set[0], ID: id})
	seen := map[T]bool{}
	for i, want := range []T{zero, set[0], set[0], set[1], set[0], set[0]} {
		l := lines[i]
		if l.OrderID != want || l.ID.IsZero() || seen[l.ID] || i == 3 && l.ID != set[2] {
			t.Errorf("got line %+v, want a new ID, of order %v", l, want)
		}
		seen[l.ID] = true
	}
	rowsAre(t, g, lines)

	both := []bothParts[T]{{Name: "a"}, {Name: "b", Left: set[0]}, {Name: "c", Right: &set[1]}}
	must(t, g.Create(&both).Error)
	for _, b := range both {
		if b.Left.IsZero() || b.Right == nil || (*b.Right).IsZero() || b.Left == *b.Right {
			t.Errorf("got %+v, want two IDs", b)
		}
	}
	if both[1].Left != set[0] || *both[2].Right != set[1] {
		t.Errorf("got %v and %v, want %v and %v as they were set", both[1].Left, *both[2].Right, set[0], set[1])
	}
	rowsAre(t, g, both)

	none := []noPart[T]{{Name: "a"}, {Name: "b", Left: set[0]}, {Name: "c", Left: set[0], Right: set[1]}}
	want := slices.Clone(none)
	must(t, g.Create(&none).Error)
	if !slices.Equal(none, want) {
		t.Errorf("without tags: got %+v, want %+v", none, want)
	}
	rowsAre(t, g, want)

	parts := []linePart[T]{{Owner: &owner[T]{Name: "x"}}, {Owner: &owner[T]{ID: set[3], Name: "y"}}}
	must(t, g.Create(&parts).Error)
	for i := range parts {
		p := &parts[i]
		if p.OwnerID != p.Owner.ID || p.OwnerID.IsZero() || p.ID.IsZero() || p.ID == p.OwnerID {
			t.Errorf("got part %+v of owner %v, want the owner's ID and a new one", p, p.Owner.ID)
		}
		p.Owner = nil
	}
	var rows []linePart[T]
	must(t, g.Joins("join owners on owners.id = owner_id").Order("owners.name").Find(&rows).Error)
	if !slices.Equal(rows, parts) {
		t.Errorf("rows = %+v, structs = %+v", rows, parts)
	}
}

// Models of table things with all kinds of tags.

type (
	taggedThing[T sqltypes.ID] struct {
		ID   T `gorm:"idgen:tag"`
		Name string
	}
	otherType[T sqltypes.ID] struct {
		ID   T `gorm:"idgen:other"`
		Name string
	}
	noType[T sqltypes.ID] struct {
		ID   T `gorm:"idgen"`
		Name string
	}
	optedOut[T sqltypes.ID] struct {
		ID   T `gorm:"idgen:-"`
		Name string
	}
	optedOutToDefault[T sqltypes.ID] struct {
		ID   T `gorm:"idgen:-;default:(-)"`
		Name string
	}
	withDefault[T sqltypes.ID] struct {
		ID   T `gorm:"default:(-)"`
		Name string
	}
)

func (taggedThing[T]) TableName() string       { return "things" }
func (otherType[T]) TableName() string         { return "things" }
func (noType[T]) TableName() string            { return "things" }
func (optedOut[T]) TableName() string          { return "things" }
func (optedOutToDefault[T]) TableName() string { return "things" }
func (withDefault[T]) TableName() string       { return "things" }

// makeThings creates a thing in each of four ways.
func makeThings[M any](t *testing.T, g *gorm.DB, thing func(name string) M) {
	t.Helper()
	a, b, c := thing("a"), []M{thing("b")}, thing("c")
	must(t, g.Create(&a).Error)
	must(t, g.Create(b).Error)
	must(t, g.Create([]*M{&c}).Error)
	must(t, g.Model(new(M)).Create(map[string]any{"name": "d"}).Error)
}

// The tag selects the generator of a key. Without a name, the type selects it.
func (k of[T]) generatorSelection(t *testing.T, g *gorm.DB) {
	ids := k.ids(t, 12)
	byType, byTag, byOther := ids[:4], ids[4:8], ids[8:]
	for name, c := range map[string]struct {
		make func(g *gorm.DB)
		want []T
	}{
		"no tag":      {func(g *gorm.DB) { makeThings(t, g, func(s string) thing[T] { return thing[T]{Name: s} }) }, byType},
		"no name":     {func(g *gorm.DB) { makeThings(t, g, func(s string) noType[T] { return noType[T]{Name: s} }) }, byType},
		"default":     {func(g *gorm.DB) { makeThings(t, g, func(s string) withDefault[T] { return withDefault[T]{Name: s} }) }, byType},
		"tag":         {func(g *gorm.DB) { makeThings(t, g, func(s string) taggedThing[T] { return taggedThing[T]{Name: s} }) }, byTag},
		"another tag": {func(g *gorm.DB) { makeThings(t, g, func(s string) otherType[T] { return otherType[T]{Name: s} }) }, byOther},
	} {
		must(t, g.Exec("delete from things").Error)
		c.make(with(t, g, gormplugin.Named("tag", scripted(byTag...)), gormplugin.For(scripted(byType...)), gormplugin.Named("other", scripted(byOther...))))
		var got []T
		must(t, g.Model(&thing[T]{}).Order("name").Pluck("id", &got).Error)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

type parcel[T sqltypes.ID] struct {
	ID       T
	Name     string
	Weight   int
	SenderID *T
	Sender   *company[T]
	Labels   []label[T] `gorm:"foreignKey:ParcelID"`
}

type label[T sqltypes.ID] struct {
	ID       T
	ParcelID T
	Text     string
}

func (parcel[T]) TableName() string { return "parcels" }
func (label[T]) TableName() string  { return "labels" }

// Struct and row have the same ID with every Select, and with every Omit that keeps the key.
func (k of[T]) selectAndOmit(t *testing.T, g *gorm.DB) {
	type saved struct{ name, weight, sender, labels bool }
	for name, c := range map[string]struct {
		tx   *gorm.DB
		want saved
	}{
		"a field":                     {g.Select("Name"), saved{name: true}},
		"a column":                    {g.Select("weight"), saved{weight: true}},
		"a column of the table":       {g.Select("parcels.name"), saved{name: true}},
		"the key as well":             {g.Select("ID", "Name"), saved{name: true}},
		"a list":                      {g.Select([]string{"Name", "weight"}), saved{name: true, weight: true}},
		"all columns":                 {g.Select("*"), saved{true, true, true, true}},
		"all of the table":            {g.Select("parcels.*"), saved{name: true, weight: true}},
		"all columns but one":         {g.Select("*").Omit("Weight"), saved{name: true, sender: true, labels: true}},
		"associations":                {g.Select("SenderID", clause.Associations), saved{sender: true, labels: true}},
		"a field and its association": {g.Select("Name", "SenderID", "Sender"), saved{name: true, sender: true}},
		"an association alone":        {g.Select("Labels"), saved{labels: true}},
		"a column of an association":  {g.Select("Name", "Labels", "Labels.ParcelID"), saved{name: true, labels: true}},
		"but a field":                 {g.Omit("Weight"), saved{name: true, sender: true, labels: true}},
		"but a column":                {g.Omit("name"), saved{weight: true, sender: true, labels: true}},
		"but the associations":        {g.Omit(clause.Associations), saved{name: true, weight: true}},
		"but an association":          {g.Omit("Labels"), saved{name: true, weight: true, sender: true}},
		"but an association's column": {g.Omit("Labels.Text"), saved{true, true, true, true}},
	} {
		tx := c.tx.Session(&gorm.Session{})
		for _, table := range []string{"labels", "parcels", "companies"} {
			must(t, g.Exec("delete from "+table).Error)
		}
		parcels := make([]parcel[T], 3)
		for i := range parcels {
			parcels[i] = parcel[T]{Name: "a", Weight: 1, Sender: &company[T]{Name: "b"}, Labels: make([]label[T], 2)}
		}
		must(t, tx.Create(&parcels[0]).Error)
		rest := parcels[1:]
		must(t, tx.Create(&rest).Error)
		m := map[string]any{"name": "a", "weight": 1}
		must(t, tx.Model(&parcel[T]{}).Create(m).Error)
		id, _ := m["id"].(T)
		parcels = append(parcels, parcel[T]{ID: id})

		var rows []parcel[T]
		must(t, g.Preload(clause.Associations).Find(&rows).Error)
		byID := map[T]parcel[T]{}
		for _, r := range rows {
			byID[r.ID] = r
		}
		if len(rows) != 4 || len(byID) != 4 {
			t.Errorf("%s: got %d rows with %d IDs, want 4", name, len(rows), len(byID))
		}
		for i, p := range parcels {
			row, ok := byID[p.ID]
			want := c.want
			if i == 3 {
				want.sender, want.labels = false, false // the map has none
			}
			got := saved{row.Name != "", row.Weight != 0, row.Sender != nil, row.Labels != nil}
			if got.labels = len(row.Labels) == 2; !ok || p.ID.IsZero() || got != want {
				t.Errorf("%s: %d: got row %+v, want one with %v and %+v", name, i, row, p.ID, want)
			}
			if got.sender && (row.Sender.ID != p.Sender.ID || p.Sender.ID.IsZero()) {
				t.Errorf("%s: got sender %v, the struct's is %v", name, row.Sender.ID, p.Sender.ID)
			}
			for _, l := range p.Labels {
				if got.labels && (l.ParcelID != p.ID || !slices.ContainsFunc(row.Labels, func(r label[T]) bool { return r.ID == l.ID && !l.ID.IsZero() })) {
					t.Errorf("%s: got labels %+v, the struct's is %+v", name, row.Labels, l)
				}
			}
		}
	}
}

// If the key is omitted or has the tag idgen:-, the database sets it. If the model declares a
// default, GORM reads the value back.
func (k of[T]) defaultKeys(t *testing.T, g *gorm.DB) {
	ids := k.ids(t, 2)
	byDefault, set := ids[0], ids[1]
	var zero T
	must(t, g.Exec(fmt.Sprintf("create table things (id %s primary key default '%s', name text)", k.Column, k.Stored(byDefault))).Error)
	// The generator has no IDs, so it fails if the plugin calls it.
	g = with(t, g, gormplugin.For(scripted[T]()))
	unbound := with(t, g)
	for name, c := range map[string]struct {
		make        func() (T, error)
		row, result T
	}{
		"Omit of the field":           {known[T](g.Omit("ID")), byDefault, byDefault},
		"Omit of the column":          {known[T](g.Omit("id")), byDefault, byDefault},
		"Omit of the table's column":  {known[T](g.Omit("things.id")), byDefault, byDefault},
		"Select and Omit":             {known[T](g.Select("Name").Omit("ID")), byDefault, byDefault},
		"Omit and Select of the key":  {known[T](g.Select("ID", "Name").Omit("ID")), byDefault, byDefault},
		"Omit and Select *":           {known[T](g.Select("*").Omit("ID")), byDefault, byDefault},
		"Omit, default unknown":       {creating(g.Omit("ID"), &thing[T]{}, func(m *thing[T]) T { return m.ID }), byDefault, zero},
		"Omit of an ID that is set":   {creating(g.Omit("ID"), &withDefault[T]{ID: set}, func(m *withDefault[T]) T { return m.ID }), byDefault, byDefault},
		"no generator, but a default": {known[T](unbound), byDefault, byDefault},
		"opted out, default known":    {creating(g, &optedOutToDefault[T]{}, func(m *optedOutToDefault[T]) T { return m.ID }), byDefault, byDefault},
		"opted out, default, Select":  {creating(g.Select("Name"), &optedOutToDefault[T]{}, func(m *optedOutToDefault[T]) T { return m.ID }), byDefault, byDefault},
		"opted out, default, slice":   {creating(g, &[]optedOutToDefault[T]{{}}, func(m *[]optedOutToDefault[T]) T { return (*m)[0].ID }), byDefault, byDefault},
		"opted out, default, set":     {creating(g, &optedOutToDefault[T]{ID: set}, func(m *optedOutToDefault[T]) T { return m.ID }), set, set},
		"opted out":                   {creating(g, &optedOut[T]{}, func(m *optedOut[T]) T { return m.ID }), zero, zero},
		"opted out, set":              {creating(g, &optedOut[T]{ID: set}, func(m *optedOut[T]) T { return m.ID }), set, set},
		"opted out and omitted":       {creating(g.Omit("ID"), &optedOut[T]{}, func(m *optedOut[T]) T { return m.ID }), byDefault, zero},
		"a map, opted out":            {creating(g.Model(&optedOut[T]{}), &map[string]any{"name": "a"}, inMap[T]), byDefault, zero},
		"a map, Omit":                 {creating(g.Model(&thing[T]{}).Omit("ID"), &map[string]any{"name": "a"}, inMap[T]), byDefault, zero},
	} {
		must(t, g.Exec("delete from things").Error)
		got, err := c.make()
		var rows []T
		must(t, g.Model(&thing[T]{}).Pluck("id", &rows).Error)
		if err != nil || got != c.result || len(rows) != 1 || rows[0] != c.row {
			t.Errorf("%s: got %v and row %v, %v, want %v and row %v", name, got, rows, err, c.result, c.row)
		}
	}
	// Without a default in the table, the result is an error or NULL.
	must(t, g.Exec("drop table things").Error)
	must(t, g.AutoMigrate(&thing[T]{}))
	one := thing[T]{Name: "a"}
	err := g.Omit("ID").Create(&one).Error
	if isPostgres(g) && (err == nil || !strings.Contains(err.Error(), "23502")) || !one.ID.IsZero() {
		t.Errorf("without a default: got ID %v, %v, want the database's error", one.ID, err)
	}
}

// creating returns a function that creates value and returns its key.
func creating[M, T any](g *gorm.DB, value *M, key func(*M) T) func() (T, error) {
	return func() (T, error) {
		err := g.Create(value).Error
		return key(value), err
	}
}

// known returns creating for a model that declares the default.
func known[T sqltypes.ID](g *gorm.DB) func() (T, error) {
	return creating(g, &withDefault[T]{}, func(m *withDefault[T]) T { return m.ID })
}

func inMap[T any](m *map[string]any) T {
	id, _ := (*m)["id"].(T)
	return id
}

// Many goroutines share a database, and use each model for the first time at the same time.
// All IDs differ, and each row has the ID of its struct.
func (k peopleOf[T, N]) parallel(t *testing.T, g *gorm.DB) {
	pool, err := g.DB()
	must(t, err)
	pool.SetMaxOpenConns(8)
	if !isPostgres(g) {
		pool.SetMaxOpenConns(1) // SQLite allows one writer at a time
	}
	g = with(t, g, k.bind(t)) // a new GORM has parsed no models

	const rounds = 2
	var (
		mu     sync.Mutex
		things []thing[T]
		people = map[T]T{} // from people to companies
		owners = map[T]T{} // from owners to profiles
	)
	var wg sync.WaitGroup
	for n := range 16 {
		wg.Go(func() {
			for r := range rounds {
				name := func(kind string, i int) string { return fmt.Sprintf("%s %d of round %d of %d", kind, i, r, n) }
				one := thing[T]{Name: name("struct", 0)}
				slice := make([]thing[T], 20)
				for i := range slice {
					slice[i].Name = name("slice", i)
				}
				m := map[string]any{"name": name("map", 0)}
				several := []map[string]any{{"name": name("maps", 0)}, {"name": name("maps", 1)}}
				o := owner[T]{Name: "x", Profile: &profile[T]{}, Items: make([]item[T], 2)}
				ada := k.newGraph()
				k.in(ada).Clubs = nil // this GORM has no setup of their join table

				// A model that is also an association of other models.
				alone := picture[T]{OwnerType: "nobody"}

				steps := []func() error{
					func() error { return g.Create(&one).Error },
					func() error { return g.Create(&slice).Error },
					func() error { return g.Model(&thing[T]{}).Create(m).Error },
					func() error { return g.Model(&thing[T]{}).Create(several).Error },
					func() error { return g.Create(&o).Error },
					func() error { return g.Create(ada).Error },
					func() error { return g.Create(&alone).Error },
				}
				for i := range steps {
					if err := steps[(i+n)%len(steps)](); err != nil {
						t.Errorf("step %d: %v", (i+n)%len(steps), err)
						return
					}
				}
				mu.Lock()
				things = append(append(things, one), slice...)
				for _, m := range append(several, m) {
					id, _ := m["id"].(T)
					things = append(things, thing[T]{ID: id, Name: m["name"].(string)})
				}
				owners[o.ID] = o.Profile.ID
				people[k.in(ada).ID] = *k.in(ada).CompanyID
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}

	k.agree(t, g, things)
	for query, want := range map[string]map[T]T{
		"select p.id, c.id as other from people p join companies c on c.id = p.company_id": people,
		"select o.id, p.id as other from owners o join profiles p on p.id = o.id":          owners,
	} {
		var pairs []struct{ ID, Other T }
		must(t, g.Raw(query).Scan(&pairs).Error)
		for _, p := range pairs {
			if want[p.ID] != p.Other {
				t.Errorf("%s: got %v and %v, want %v", query, p.ID, p.Other, want[p.ID])
			}
		}
		if len(pairs) != 16*rounds || len(want) != len(pairs) {
			t.Errorf("%s: got %d rows for %d structs, want %d", query, len(pairs), len(want), 16*rounds)
		}
	}
	// All IDs differ across tables, except in profiles and details, which share keys.
	var total, distinct int
	must(t, g.Raw(`select count(*), count(distinct id) from (
		select id from things union all select id from owners union all select id from items union all select id from people
		union all select id from companies union all select id from passports union all select id from orders
		union all select id from pictures union all select id from tags) ids`).Row().Scan(&total, &distinct))
	if want := 16 * rounds * (24 + 3 + 17); total != want || distinct != want {
		t.Errorf("got %d rows with %d IDs, want %d", total, distinct, want)
	}
}

// The plugin makes the plan of a model while GORM may still parse related models. This is a
// dry run.
func (k peopleOf[T, N]) parallelFirstUse(t *testing.T, g *gorm.DB) {
	gen := must1(t, k.NewGenerator)
	for range 30 {
		g := with(t, g, gormplugin.For(gen)).Session(&gorm.Session{DryRun: true})
		start := make(chan struct{})
		var wg sync.WaitGroup
		for range 2 {
			// No two models have an association with the same model: GORM can't
			// parse such models concurrently.
			for _, value := range []any{k.newGraph(), &picture[T]{}, &passport[T]{}, &tag[T]{}, &company[T]{}, &owner[T]{}, &item[T]{}} {
				wg.Go(func() {
					<-start
					if err := g.Create(value).Error; err != nil {
						t.Errorf("%T: %v", value, err)
					}
				})
			}
		}
		close(start)
		wg.Wait()
	}
}
