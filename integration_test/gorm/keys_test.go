package gorm

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/glebarez/sqlite"
	pgdriver "gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/sqltypes"
)

// with returns GORM on the same database, with the plugin and other generators.
func with(t *testing.T, g *gorm.DB, bindings ...gormplugin.Binding) *gorm.DB {
	t.Helper()
	return withConfig(t, g, gorm.Config{}, bindings...)
}

func withConfig(t *testing.T, g *gorm.DB, config gorm.Config, bindings ...gormplugin.Binding) *gorm.DB {
	t.Helper()
	pool, err := g.DB()
	must(t, err)
	var dialector gorm.Dialector = sqlite.Dialector{Conn: pool}
	if isPostgres(g) {
		dialector = pgdriver.New(pgdriver.Config{Conn: pool})
	}
	config.Logger = g.Logger
	other, err := gorm.Open(dialector, &config)
	must(t, err)
	must(t, other.Use(gormplugin.New(bindings...)))
	return other
}

// A script is a generator that returns a list of IDs, and fails after the last one.
type script[T any] struct{ ids []T }

func scripted[T any](ids ...T) *script[T] { return &script[T]{ids} }

var errUsedUp = errors.New("the script has no further ID")

func (s *script[T]) Next() (T, error) {
	var id [1]T
	_, err := s.Fill(context.Background(), id[:])
	return id[0], err
}

func (s *script[T]) Fill(_ context.Context, dst []T) (int, error) {
	n := copy(dst, s.ids)
	s.ids = s.ids[n:]
	if n < len(dst) {
		return n, errUsedUp
	}
	return n, nil
}

// Models with keys in other forms than T, and in embedded structs. GORM ignores embedded
// structs that are unexported.

type Key[T sqltypes.ID] struct {
	ID T `gorm:"primaryKey"`
}

type Outer[T sqltypes.ID] struct {
	*Key[T]
	Note string
}

type (
	pointerKey[T sqltypes.ID] struct {
		ID   *T
		Name string
	}
	nullKey[T sqltypes.ID] struct {
		ID   sql.Null[T]
		Name string
	}
	optionalKey[T sqltypes.ID] struct {
		ID   sqltypes.Optional[T]
		Name string
	}
	textKey[T sqltypes.ID] struct {
		ID   sqltypes.Text[T]
		Name string
	}
	nestedKey[T sqltypes.ID] struct {
		ID   sqltypes.Optional[sqltypes.Text[T]]
		Name string
	}
	namedText[T sqltypes.ID] struct {
		ID   sqltypes.Text[T] `gorm:"idgen:text"`
		Name string
	}
	bytesKey struct {
		ID   sqltypes.SnoBytes
		Name string
	}
	otherName[T sqltypes.ID] struct {
		Number T `gorm:"primaryKey;column:no"`
		Name   string
	}
	embedsValue[T sqltypes.ID] struct {
		Key[T]
		Name string
	}
	embedsPointer[T sqltypes.ID] struct {
		*Key[T]
		Name string
	}
	embedsNested[T sqltypes.ID] struct {
		*Outer[T]
		Name string
	}
	embedsPrefixed[T sqltypes.ID] struct {
		In   Key[T] `gorm:"embedded;embeddedPrefix:in_"`
		Name string
	}
	embedsPrefixedPointer[T sqltypes.ID] struct {
		In   *Key[T] `gorm:"embedded;embeddedPrefix:in_"`
		Name string
	}
)

func (pointerKey[T]) TableName() string            { return "pointer_keys" }
func (nullKey[T]) TableName() string               { return "null_keys" }
func (optionalKey[T]) TableName() string           { return "optional_keys" }
func (textKey[T]) TableName() string               { return "text_keys" }
func (nestedKey[T]) TableName() string             { return "nested_keys" }
func (namedText[T]) TableName() string             { return "named_texts" }
func (otherName[T]) TableName() string             { return "other_names" }
func (embedsValue[T]) TableName() string           { return "embeds_values" }
func (embedsPointer[T]) TableName() string         { return "embeds_pointers" }
func (embedsNested[T]) TableName() string          { return "embeds_nesteds" }
func (embedsPrefixed[T]) TableName() string        { return "embeds_prefixeds" }
func (embedsPrefixedPointer[T]) TableName() string { return "embeds_prefixed_pointers" }

// The plugin fills keys in all forms, also in embedded structs.
func (k of[T, N]) keyForms(t *testing.T, g *gorm.DB) {
	ids := k.ids(t, 3)
	testKey(t, g, ids, func(m *pointerKey[T], id T) { m.ID = &id })
	testKey(t, g, ids, func(m *nullKey[T], id T) { m.ID = sql.Null[T]{V: id, Valid: true} })
	testKey(t, g, ids, func(m *optionalKey[T], id T) { m.ID = sqltypes.OptionalOf(id) })
	testKey(t, g, ids, func(m *textKey[T], id T) { m.ID = sqltypes.TextOf(id) })
	testKey(t, g, ids, func(m *nestedKey[T], id T) { m.ID = sqltypes.OptionalOf(sqltypes.TextOf(id)) })
	if snos, ok := any(ids).([]idtype.Sno); ok {
		testKey(t, g, snos, func(m *bytesKey, id idtype.Sno) { m.ID = sqltypes.SnoBytesOf(id) })
	}
	testKey(t, g, ids, func(m *otherName[T], id T) { m.Number = id })
	testKey(t, g, ids, func(m *embedsValue[T], id T) { m.ID = id })
	testKey(t, g, ids, func(m *embedsPointer[T], id T) { m.Key = &Key[T]{id} })
	testKey(t, g, ids, func(m *embedsNested[T], id T) { m.Outer = &Outer[T]{Key: &Key[T]{id}} })
	testKey(t, g, ids, func(m *embedsPrefixed[T], id T) { m.In.ID = id })
	testKey(t, g, ids, func(m *embedsPrefixedPointer[T], id T) { m.In = &Key[T]{id} })

	// The plugin sets a new pointer instead of changing the caller's variable.
	var zero T
	rows := []pointerKey[T]{{ID: &zero, Name: "x"}, {ID: &zero, Name: "y"}}
	must(t, g.Create(&rows).Error)
	if !zero.IsZero() || *rows[0].ID == *rows[1].ID {
		t.Errorf("two pointers to one zero ID: got %v and %v, want two IDs; the variable became %v", *rows[0].ID, *rows[1].ID, zero)
	}
	// A named generator fills the forms of its IDs as well.
	named := with(t, g, gormplugin.Named("text", scripted(ids[0])))
	n := namedText[T]{Name: "x"}
	must(t, named.Create(&n).Error)
	rowsAre(t, g, []namedText[T]{{ID: sqltypes.TextOf(ids[0]), Name: "x"}})
}

// testKey creates rows of a model with a name and a key. The function set sets the key.
func testKey[M any, T sqltypes.ID](t *testing.T, g *gorm.DB, ids []T, set func(*M, T)) {
	t.Helper()
	m := modelOf[M, T](t, g)
	named := func(name string) M { return *m.with("Name", name) }
	one := named("a")
	must(t, g.Create(&one).Error)
	slice := []M{named("b"), named("c, set"), named("d, zero")}
	set(&slice[1], ids[0])
	set(&slice[2], *new(T))
	must(t, g.Create(&slice).Error)
	first, second := named("e"), named("f, set")
	set(&second, ids[1])
	must(t, g.Create([]*M{&first, &second}).Error)
	want := append(append([]M{one}, slice...), first, second) // in the order of the names
	rowsAre(t, g, want)
	seen := map[T]bool{}
	for i := range want {
		id := m.key(&want[i])
		if id.IsZero() || seen[id] || i == 2 && id != ids[0] || i == 5 && id != ids[1] {
			t.Errorf("%s: row %d: got ID %v, want a new one, or the one that was set", m.Table, i, id)
		}
		seen[id] = true
	}

	// A map gets the ID in a form that is stored like the field.
	var preset M
	set(&preset, ids[2])
	column := m.PrioritizedPrimaryField.DBName
	for name, value := range map[string]any{"g": nil, "h, set": m.form(&preset)} {
		values := map[string]any{"name": name, column: value}
		must(t, g.Model(new(M)).Create(values).Error)
		var row M
		must(t, g.Where("name = ?", name).Take(&row).Error)
		if id, got := m.key(&row), bare[T](values[column]); got != id || id.IsZero() || seen[id] || value != nil && id != ids[2] {
			t.Errorf("%s: ID = %v in the map, %v in the row, want the same, new or set", m.Table, got, id)
		}
	}
}

// A model is GORM's schema of M, whose key holds a T in some form.
type model[M any, T sqltypes.ID] struct {
	*schema.Schema
	t *testing.T
}

func modelOf[M any, T sqltypes.ID](t *testing.T, g *gorm.DB) model[M, T] {
	t.Helper()
	stmt := gorm.Statement{DB: g}
	must(t, stmt.Parse(new(M)))
	return model[M, T]{stmt.Schema, t}
}

// with returns a new M. The arguments are names and values of fields in turn. Names that M
// doesn't have are ignored.
func (m model[M, T]) with(values ...string) *M {
	m.t.Helper()
	row := new(M)
	for i := 0; i < len(values); i += 2 {
		if field := m.LookUpField(values[i]); field != nil {
			must(m.t, field.Set(m.t.Context(), reflect.ValueOf(row), values[i+1]))
		}
	}
	return row
}

// form returns the value of the row's key field. key returns the ID in it.
func (m model[M, T]) form(row *M) any {
	v, _ := m.PrioritizedPrimaryField.ValueOf(m.t.Context(), reflect.ValueOf(row))
	return v
}

func (m model[M, T]) key(row *M) T { return bare[T](m.form(row)) }

// bare returns the ID in a key of any form.
func bare[T sqltypes.ID](v any) T {
	switch v := v.(type) {
	case nil:
		return *new(T)
	case T:
		return v
	case *T:
		if v == nil {
			return *new(T)
		}
		return *v
	case sql.Null[T]:
		return v.V
	case sqltypes.Optional[T]:
		return v.ID
	case sqltypes.Text[T]:
		return v.ID
	case sqltypes.Optional[sqltypes.Text[T]]:
		return v.ID.ID
	case sqltypes.SnoBytes:
		return any(v.ID).(T)
	}
	panic(fmt.Sprintf("no ID in a %T", v))
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
func (k of[T, N]) compositeKeys(t *testing.T, g *gorm.DB) {
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

// rowsAre compares a table with structs, in the order of their names.
func rowsAre[M any](t *testing.T, g *gorm.DB, want []M) {
	t.Helper()
	var rows []M
	must(t, g.Order("name").Find(&rows).Error)
	if !reflect.DeepEqual(rows, want) {
		t.Errorf("%T: rows = %+v, structs = %+v", rows, rows, want)
	}
}

// Models of table things with all kinds of tags.

type (
	taggedThing[T sqltypes.ID] struct {
		ID   T `gorm:"idgen:tag"`
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
func (k of[T, N]) generatorSelection(t *testing.T, g *gorm.DB) {
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
func (k of[T, N]) selectAndOmit(t *testing.T, g *gorm.DB) {
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
func (k of[T, N]) defaultKeys(t *testing.T, g *gorm.DB) {
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
