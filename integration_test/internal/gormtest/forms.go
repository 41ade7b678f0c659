package gormtest

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/internal/reflecttest"
	"github.com/sortkey/sortkey/internal/typename"
	"github.com/sortkey/sortkey/sqltypes"
)

// Models with keys in other forms than T, and in embedded structs. GORM ignores embedded
// structs that are unexported.

// A keyed has an ID of type F.
type keyed[F any] struct {
	ID   F      `gorm:"primaryKey"`
	Name string `gorm:"unique"`
	Note string
}

// Clients cache the parameter types of a statement, so each type has its own table.
func (keyed[F]) TableName() string { return tableOf("by_", (*F)(nil)) }

// tableOf returns the name of a table for the type that a pointer has. The name has at most 63
// characters in Postgres.
func tableOf(prefix string, pointer any) string {
	name := typename.OfValue(pointer)
	for _, cut := range []string{"idtype.", "sqltypes.", "sql.", "gormtest.", "idtest."} {
		name = strings.ReplaceAll(name, cut, "")
	}
	return prefix + strings.NewReplacer("[", "_", "]", "", "*", "ptr_").Replace(strings.ToLower(name[1:]))
}

// A KeyOf is an embedded key.
type KeyOf[T sqltypes.ID] struct {
	ID T `gorm:"primaryKey"`
}

// An OuterOf embeds a key.
type OuterOf[T sqltypes.ID] struct {
	*KeyOf[T]
	Note string
}

type (
	otherNameOf[T sqltypes.ID] struct {
		Number T      `gorm:"primaryKey;column:no"`
		Name   string `gorm:"unique"`
		Note   string
	}
	embedsValueOf[T sqltypes.ID] struct {
		KeyOf[T]
		Name string `gorm:"unique"`
		Note string
	}
	embedsPointerOf[T sqltypes.ID] struct {
		*KeyOf[T]
		Name string `gorm:"unique"`
		Note string
	}
	embedsNestedOf[T sqltypes.ID] struct {
		*OuterOf[T]
		Name string `gorm:"unique"`
	}
	// K is a Key or a pointer to one.
	embedsPrefixed[K any] struct {
		In   K      `gorm:"embedded;embeddedPrefix:in_"`
		Name string `gorm:"unique"`
		Note string
	}
	// A partKey has a composite key, and a column that the database fills.
	partKeyOf[T sqltypes.ID] struct {
		Region string `gorm:"primaryKey"`
		ID     T      `gorm:"primaryKey;idgen"`
		Name   string `gorm:"unique"`
		Note   string
		Count  int `gorm:"default:(length('ab'))"`
	}
)

func (otherNameOf[T]) TableName() string     { return "other_names" }
func (embedsValueOf[T]) TableName() string   { return "embeds_values" }
func (embedsPointerOf[T]) TableName() string { return "embeds_pointers" }
func (embedsNestedOf[T]) TableName() string  { return "embeds_nesteds" }
func (embedsPrefixed[K]) TableName() string  { return tableOf("prefixed_", (*K)(nil)) }
func (partKeyOf[T]) TableName() string       { return "part_keys" }

func (k *Kind) formModels() []any {
	type text = sqltypes.Text[ID]
	models := []any{&keyed[ID]{}, &keyed[*ID]{}, &keyed[sql.Null[ID]]{}, &keyed[sqltypes.Optional[ID]]{}, &keyed[*sqltypes.Optional[ID]]{},
		&keyed[text]{}, &keyed[*text]{}, &keyed[sqltypes.Optional[text]]{}, &keyed[wrapped[ID]]{}, &keyed[wrapped[text]]{},
		&otherName{}, &embedsValue{}, &embedsPointer{}, &embedsNested{}, &embedsPrefixed[Key]{}, &embedsPrefixed[*Key]{}, &partKey{}}
	if k.is(idtype.Sno{}) {
		models = append(models, &keyed[inBytes]{})
	}
	return models
}

// An inBytes stands for sqltypes.SnoBytes.
type inBytes struct{ ID ID }

func (v inBytes) IsZero() bool { return v.ID.IsZero() }

// A wrapped is a column type of the caller around another one.
type wrapped[F sqltypes.ID] struct{ Inner F }

func (w wrapped[F]) Value() (driver.Value, error) { return w.Inner.Value() }
func (w *wrapped[F]) Scan(src any) error          { return any(&w.Inner).(sql.Scanner).Scan(src) }
func (w wrapped[F]) IsZero() bool                 { return w.Inner.IsZero() }
func (w wrapped[F]) GormDataType() string         { return w.Inner.GormDataType() }

// The plugin fills keys in all forms, also in embedded structs. Rows are found by their IDs in
// these forms.
func (k *Kind) forms(t *testing.T, g *database) {
	type text = sqltypes.Text[ID]
	// In the order of the column.
	f := formed{t: t, g: g, k: k}
	for _, id := range k.ids(t, 5) {
		must(t, g.Create(&thing{ID: id}).Error)
	}
	must(t, g.Model(&thing{}).Order("id").Pluck("id", &f.ids).Error)
	if k.formWindow != nil {
		f.window = k.formWindow("", k.first.AddDate(1, 0, 1), k.first.AddDate(1, 0, 3))
	}

	f.keyedBy(&keyed[ID]{}, k.Column, func(id ID) any { return id })
	f.keyedBy(&keyed[*ID]{}, k.Column, func(id ID) any { return &id })
	f.keyedBy(&keyed[sql.Null[ID]]{}, k.Column, func(id ID) any { return sql.Null[ID]{V: id, Valid: true} })
	f.keyedBy(&keyed[sqltypes.Optional[ID]]{}, k.Column, func(id ID) any { return sqltypes.OptionalOf(id) })
	f.keyedBy(&keyed[*sqltypes.Optional[ID]]{}, k.Column, func(id ID) any { return &sqltypes.Optional[ID]{ID: id} })
	f.keyedBy(&keyed[text]{}, "text", func(id ID) any { return sqltypes.TextOf(id) })
	f.keyedBy(&keyed[*text]{}, "text", func(id ID) any { return &text{ID: id} })
	f.keyedBy(&keyed[sqltypes.Optional[text]]{}, "text", func(id ID) any { return sqltypes.OptionalOf(sqltypes.TextOf(id)) })
	f.keyedBy(&keyed[wrapped[ID]]{}, k.Column, func(id ID) any { return wrapped[ID]{id} })
	f.keyedBy(&keyed[wrapped[text]]{}, "text", func(id ID) any { return wrapped[text]{text{ID: id}} })
	if k.is(idtype.Sno{}) {
		f.keyedBy(&keyed[inBytes]{}, "bytea", func(id ID) any { return inBytes{id} })
	}
	f.fills(&otherName{}, k.Column, func(m any, id ID) { m.(*otherName).Number = id })
	f.fills(&embedsValue{}, k.Column, func(m any, id ID) { m.(*embedsValue).ID = id })
	f.fills(&embedsPointer{}, k.Column, func(m any, id ID) { m.(*embedsPointer).KeyOf = &Key{id} })
	f.fills(&embedsNested{}, k.Column, func(m any, id ID) { m.(*embedsNested).OuterOf = &Outer{KeyOf: &Key{id}} })
	f.fills(&embedsPrefixed[Key]{}, k.Column, func(m any, id ID) { m.(*embedsPrefixed[Key]).In.ID = id })
	f.fills(&embedsPrefixed[*Key]{}, k.Column, func(m any, id ID) { m.(*embedsPrefixed[*Key]).In = &Key{id} })
	f.modelOf(&partKey{}).upserts()
	plucks(t, "the default", g.Model(&partKey{}).Group("count"), "count", 2)

	// The plugin sets a new pointer instead of changing the caller's variable.
	var zero ID
	rows := []keyed[*ID]{{ID: &zero, Name: "x"}, {ID: &zero, Name: "y"}}
	must(t, g.Create(&rows).Error)
	if !zero.IsZero() || *rows[0].ID == *rows[1].ID {
		t.Errorf("two pointers to one zero ID: got %v and %v, want two IDs; the variable became %v", *rows[0].ID, *rows[1].ID, zero)
	}
	// A sql.Null that isn't valid has no ID.
	invalid := keyed[sql.Null[ID]]{ID: sql.Null[ID]{V: f.ids[0]}, Name: "invalid"}
	if must(t, g.Create(&invalid).Error); !invalid.ID.Valid || invalid.ID.V == f.ids[0] {
		t.Errorf("sql.Null that isn't valid: got %v, want a new ID", invalid.ID)
	}
}

// A formed has the arguments for a test of a form.
type formed struct {
	t      *testing.T
	g      *database
	k      *Kind
	ids    []ID
	window scope // from the second to the fourth ID; nil if IDs don't sort by time
}

// keyedBy tests a model with keys of the type that the function of returns, in a column of a type.
func (f formed) keyedBy(blank any, column string, of func(ID) any) {
	t, g := f.t, f.g
	t.Helper()
	set := func(row any, id ID) { reflect.ValueOf(row).Elem().FieldByName("ID").Set(reflect.ValueOf(of(id))) }
	m := f.fills(blank, column, set)
	must(t, g.Where("1 = 1").Delete(m.blank()).Error)
	var rows, ids []any
	for i, id := range f.ids {
		row := m.with("Name", string(rune('a'+i)))
		set(row, id)
		rows, ids = append(rows, row), append(ids, of(id))
	}
	must(t, g.Create(m.rows(rows...)).Error)
	form := reflect.TypeOf(ids[0])
	list := func(ids ...any) any { return reflecttest.Fill(reflect.SliceOf(form), ids...) }
	plucks(t, "IN", g.Model(m.blank()).Where("id IN ?", list(ids[:2]...)).Order("name"), "name", "a", "b")
	m.scopes()
	first, second := reflecttest.Ptr(ids[0]), reflecttest.Ptr(ids[1])
	if _, isScanner := first.(interface{ IsZero() bool }); !isScanner { // a pointer or a sql.Null
		return
	}
	// Scan and Pluck read lists from columns of any name.
	for what, read := range map[string]func(got any) *database{
		"Scan of id":            func(got any) *database { return g.Model(m.blank()).Select("id").Order("name").Scan(got) },
		"Scan of id as subject": func(got any) *database { return g.Model(m.blank()).Select("id as subject").Order("name").Scan(got) },
		"Pluck":                 func(got any) *database { return g.Model(m.blank()).Order("name").Pluck("id", got) },
	} {
		got := reflecttest.NewOf(list())
		must(t, read(got).Error)
		equal(t, what, reflecttest.Elem(got), list(ids...))
	}
	lists(t, g, listed{model: m.blank(), rows: m.rows(), keys: []any{ids[0], ids[1]}, pointer: first,
		isStruct: f.k.realKind(form) == reflect.Struct, isBytes: column == "bytea",
		two: list(ids[:2]...), pointers: reflecttest.SliceOf(first, second), one: list(ids[0]), zero: list(nil), none: list()})
	affects(t, "Delete by IN", g.Delete(m.blank(), "id IN ?", list(ids[1])), 1)
}

// fills creates rows of a model with a name and a key, by structs, slices, maps and upserts. The
// function set sets the key.
func (f formed) fills(blank any, column string, set func(row any, id ID)) model {
	t, g, ids := f.t, f.g, f.ids
	t.Helper()
	m := f.modelOf(blank)
	if isPostgres(g) || column != "bytea" {
		checkColumns(t, g, map[string]map[string]string{m.Table: {m.PrioritizedPrimaryField.DBName: column}})
	}
	equal(t, m.Table+": AutoMigrate", alterations(t, g, m.blank()), nil)
	one, first, second := m.with("Name", "a"), m.with("Name", "e"), m.with("Name", "f, set")
	slice := reflect.ValueOf(m.rows(m.with("Name", "b"), m.with("Name", "c, set"), m.with("Name", "d, zero"))).Elem()
	want := []any{one}
	for i := range slice.Len() {
		want = append(want, slice.Index(i).Addr().Interface())
	}
	want = append(want, first, second) // in the order of the names
	set(want[2], ids[0])
	set(want[3], ID{})
	set(second, ids[1])
	must(t, g.Create(one).Error)
	must(t, g.Create(slice.Addr().Interface()).Error)
	must(t, g.Create(m.pointers(first, second)).Error)
	found := reflecttest.NewOf(m.pointers())
	must(t, g.Order("name").Find(found).Error)
	equal(t, m.Table, reflecttest.Elem(found), m.pointers(want...))
	seen := map[ID]bool{}
	for i, row := range want {
		id := m.key(row)
		if id.IsZero() || seen[id] || i == 2 && id != ids[0] || i == 5 && id != ids[1] {
			t.Errorf("%s: row %d: got ID %v, want a new one, or the one that was set", m.Table, i, id)
		}
		seen[id] = true
	}

	// A map gets the ID in a form that is stored like the field.
	preset := m.blank()
	set(preset, ids[2])
	db := m.PrioritizedPrimaryField.DBName
	for name, value := range map[string]any{"g": nil, "h, set": m.form(preset)} {
		values := map[string]any{"name": name, db: value}
		must(t, g.Model(m.blank()).Create(values).Error)
		row := m.blank()
		must(t, g.Where("name = ?", name).Take(row).Error)
		if id, got := m.key(row), bare(values[db]); got != id || id.IsZero() || seen[id] || value != nil && id != ids[2] {
			t.Errorf("%s: ID = %v in the map, %v in the row, want the same, new or set", m.Table, got, id)
		}
	}
	m.upserts()
	return m
}

// upserts inserts rows with names that exist. The structs get the IDs of the rows.
func (m model) upserts() {
	t, g := m.t, m.g
	t.Helper()
	create := func(tx *database, note string, names ...string) (rows []any) {
		t.Helper()
		for _, name := range names {
			rows = append(rows, m.with("Name", "upsert "+name, "Note", note, "Region", "eu"))
		}
		if len(rows) == 1 {
			must(t, tx.Create(rows[0]).Error)
		} else {
			must(t, tx.Create(m.pointers(rows...)).Error)
		}
		return rows
	}
	agree := func(row any, name, note string) {
		t.Helper()
		stored := m.blank()
		must(t, g.Take(stored, "name = ? and note = ?", "upsert "+name, note).Error)
		if got, want := m.key(row), m.key(stored); got != want || got.IsZero() {
			t.Errorf("%s: %s: ID = %v in the struct, %v in the row", m.Table, name, got, want)
		}
	}
	first := m.key(create(g, "old", "a")[0])
	byName := []clause.Column{{Name: "name"}}
	upsert := g.Clauses(clause.OnConflict{Columns: byName, DoUpdates: clause.AssignmentColumns([]string{"note"})}).Session(&gorm.Session{})
	one := create(upsert, "one", "a")
	agree(one[0], "a", "one")
	batch := create(upsert, "batch", "b", "a", "c")
	for i, name := range []string{"b", "a", "c"} {
		agree(batch[i], name, "batch")
	}
	if m.key(one[0]) != first || m.key(batch[1]) != first {
		t.Errorf("%s: a: IDs = %v and %v, want %v", m.Table, m.key(one[0]), m.key(batch[1]), first)
	}
	nothing := g.Clauses(clause.OnConflict{DoNothing: true}).Session(&gorm.Session{})
	if skipped := create(nothing, "nothing", "a"); !m.hasZero(skipped[0]) {
		t.Errorf("%s: DO NOTHING left %+v, want no ID", m.Table, skipped[0])
	}
	agree(create(nothing, "inserted", "d")[0], "d", "inserted")
}

// A model is GORM's schema of a struct, whose key holds an ID in some form. Its rows are pointers
// to that struct.
type model struct {
	formed
	*schema.Schema
	typ reflect.Type // with ID
}

func (f formed) modelOf(blank any) model {
	f.t.Helper()
	stmt := gorm.Statement{DB: f.g.real}
	must(f.t, stmt.Parse(f.k.real(blank)))
	return model{f, stmt.Schema, reflect.TypeOf(blank).Elem()}
}

func (m model) blank() any { return reflect.New(m.typ).Interface() }

// rows returns a pointer to a slice of copies of the rows. pointers returns a slice of the rows.
func (m model) rows(rows ...any) any {
	list := reflect.New(reflect.SliceOf(m.typ))
	for _, row := range rows {
		list.Elem().Set(reflect.Append(list.Elem(), reflect.ValueOf(row).Elem()))
	}
	return list.Interface()
}

func (m model) pointers(rows ...any) any {
	return reflecttest.Fill(reflect.SliceOf(reflect.PointerTo(m.typ)), rows...)
}

// with returns a new row. The arguments are names and values of fields in turn. Names that the
// struct doesn't have are ignored.
func (m model) with(values ...string) any {
	m.t.Helper()
	row := m.blank()
	c := newCopying(m.k.types, nil)
	real := reflect.ValueOf(c.real(row))
	for i := 0; i < len(values); i += 2 {
		if field := m.LookUpField(values[i]); field != nil {
			must(m.t, field.Set(m.t.Context(), real, values[i+1]))
		}
	}
	c.copyBack()
	return row
}

// form returns the value of the row's key field. key returns the ID in it.
func (m model) form(row any) (form any) {
	v, _ := m.PrioritizedPrimaryField.ValueOf(m.t.Context(), reflect.ValueOf(m.k.real(row)))
	newCopying(m.k.types, nil).set(reflect.ValueOf(&form).Elem(), reflect.ValueOf(&v).Elem())
	return form
}

func (m model) key(row any) ID { return bare(m.form(row)) }

// hasZero reports whether the key of a row is the zero value of its type.
func (m model) hasZero(row any) bool {
	v := reflect.ValueOf(m.form(row))
	return !v.IsValid() || v.IsZero()
}

// bare returns the ID in a key of any form, and zero for nil.
func bare(v any) (id ID) {
	for r := reflect.ValueOf(v); r.IsValid(); {
		if r.Type() == typeID {
			return r.Interface().(ID)
		}
		if r.Kind() == reflect.Pointer {
			r = r.Elem()
		} else {
			r = r.Field(0) // of a sql.Null, or a struct around an ID
		}
	}
	return id
}

// A listed has keys of a form as arguments of conditions. The rows a to e have the keys.
type listed struct {
	model, rows                    any   // a pointer to the model, and one to a slice of it
	keys                           []any // of the rows a and b
	pointer                        any   // to the key of row a
	two, pointers, one, zero, none any   // lists: of the rows a and b, of row a, of a zero key, and of no key
	isStruct, isBytes              bool  // reports what GORM gets
}

// lists tests conditions with keys of a form. The forms that are structs fail, or have the
// meaning that the documentation of gormplugin gives.
func lists(t *testing.T, g *database, l listed) {
	t.Helper()
	two, all, rest := []string{"a", "b"}, []string{"a", "b", "c", "d", "e"}, []string{"c", "d", "e"}
	// Lists of structs are models without such a column. Zero models have no condition.
	asList, alone, negated, ofZeros := two, []string{"a"}, rest, []string{}
	if l.isStruct {
		asList, alone, negated, ofZeros = nil, nil, nil, all
	}
	cases := map[string]struct {
		tx   *database
		want []string // nil: an error
	}{
		"IN":                    {g.Where("id IN ?", l.two), two},
		"IN, pointers":          {g.Where("id IN ?", l.pointers), two},
		"IN, nothing":           {g.Where("id IN ?", l.none), []string{}},
		"NOT IN":                {g.Where("id NOT IN ?", l.two), rest},
		"Not":                   {g.Not("id IN ?", l.two), rest},
		"map":                   {g.Where(map[string]any{"id": l.two}), two},
		"Not of a map":          {g.Not(map[string]any{"id": l.two}), rest},
		"values":                {g.Where(l.keys), two},
		"one ID":                {g.Where(l.keys[0]), []string{"a"}},
		"one ID, pointer":       {g.Where(l.pointer), []string{"a"}},
		"a column and one ID":   {g.Where("id", l.keys[0]), []string{"a"}},
		"a column and a list":   {g.Where("id", l.two), nil},
		"a column, list of one": {g.Where("id", l.one), []string{"a"}},
		"a column, no list":     {g.Where("id", l.none), []string{}},
		"= and a list":          {g.Where("id = ?", l.two), nil},
		"Not, column and list":  {g.Not("id", l.two), nil},
		"an empty list":         {g.Where(l.none), all},
		"a list":                {g.Where(l.two), asList},
		"a list of one":         {g.Where(l.one), alone},
		"pointers":              {g.Where(l.pointers), asList},
		"Not of a list":         {g.Not(l.two), negated},
		"a list of zeros":       {g.Where(l.zero), ofZeros},
	}
	for name, q := range cases {
		var names []string
		err := q.tx.Model(l.model).Order("name").Pluck("name", &names).Error
		if l.isBytes && strings.HasPrefix(name, "one ID") {
			// GORM treats the value as a list of bytes. Some clients return an error.
			if len(names) > 0 {
				t.Errorf("%s: got %q", name, names)
			}
			continue
		}
		if (err != nil) != (q.want == nil) || err == nil && !slices.Equal(names, q.want) {
			t.Errorf("%T, %s: got %q, %v, want %q", l.keys[0], name, names, err, q.want)
		}
	}
	if tx := g.Find(l.rows, l.two); (tx.Error != nil) != l.isStruct || !l.isStruct && tx.RowsAffected != 2 {
		t.Errorf("%T, Find: %d rows, %v", l.keys[0], tx.RowsAffected, tx.Error)
	}
	if tx := g.Delete(l.model, l.one); (tx.Error != nil) != l.isStruct || !l.isStruct && tx.RowsAffected != 1 {
		t.Errorf("%T, Delete by a list: %d rows, %v", l.keys[0], tx.RowsAffected, tx.Error)
	}
}

// scopes selects rows after and before IDs, and in a time window, of the base type and in
// other forms. Columns of text sort like the IDs only for Snos.
func (m model) scopes() {
	t, ids := m.t, m.ids
	t.Helper()
	field := m.PrioritizedPrimaryField
	for name, c := range map[string]struct {
		scope scope
		want  string
	}{
		"after":        {m.k.after("", ids[1]), "cde"},
		"before":       {m.k.before(m.Table+".id", ids[2]), "ba"},
		"after one":    {m.k.after("id", sqltypes.OptionalOf(ids[2])), "de"},
		"after a text": {m.k.after("id", sqltypes.TextOf(ids[1])), "cde"},
		"window":       {m.window, "bc"},
	} {
		if c.scope == nil {
			continue
		}
		tx := m.g.Model(m.blank()).Scopes(c.scope)
		if field.DataType != "text" || ids[0].GormDataType() == "uuid" {
			plucks(t, fmt.Sprint(field.FieldType, " ", name), tx, "name", strings.Split(c.want, "")...)
		} else if name != "after a text" {
			fails(t, fmt.Sprint(field.FieldType, " ", name), tx.Find(reflecttest.NewOf(m.pointers())).Error, gorm.ErrInvalidField, "")
		}
	}
}
