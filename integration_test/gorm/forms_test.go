package gorm

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

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
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
func (keyed[F]) TableName() string { return tableOf[F]("by_") }

// tableOf returns the name of a table for a type, which has at most 63 characters in Postgres.
func tableOf[F any](prefix string) string {
	name := typename.OfValue((*F)(nil))
	for _, cut := range []string{"idtype.", "sqltypes.", "sql.", "gorm.", "idtest."} {
		name = strings.ReplaceAll(name, cut, "")
	}
	return prefix + strings.NewReplacer("[", "_", "]", "", "*", "ptr_").Replace(strings.ToLower(name[1:]))
}

type Key[T sqltypes.ID] struct {
	ID T `gorm:"primaryKey"`
}

type Outer[T sqltypes.ID] struct {
	*Key[T]
	Note string
}

type (
	otherName[T sqltypes.ID] struct {
		Number T      `gorm:"primaryKey;column:no"`
		Name   string `gorm:"unique"`
		Note   string
	}
	embedsValue[T sqltypes.ID] struct {
		Key[T]
		Name string `gorm:"unique"`
		Note string
	}
	embedsPointer[T sqltypes.ID] struct {
		*Key[T]
		Name string `gorm:"unique"`
		Note string
	}
	embedsNested[T sqltypes.ID] struct {
		*Outer[T]
		Name string `gorm:"unique"`
	}
	// K is a Key or a pointer to one.
	embedsPrefixed[K any] struct {
		In   K      `gorm:"embedded;embeddedPrefix:in_"`
		Name string `gorm:"unique"`
		Note string
	}
	// A partKey has a composite key, and a column that the database fills.
	partKey[T sqltypes.ID] struct {
		Region string `gorm:"primaryKey"`
		ID     T      `gorm:"primaryKey;idgen"`
		Name   string `gorm:"unique"`
		Note   string
		Count  int `gorm:"default:(length('ab'))"`
	}
)

func (otherName[T]) TableName() string      { return "other_names" }
func (embedsValue[T]) TableName() string    { return "embeds_values" }
func (embedsPointer[T]) TableName() string  { return "embeds_pointers" }
func (embedsNested[T]) TableName() string   { return "embeds_nesteds" }
func (embedsPrefixed[K]) TableName() string { return tableOf[K]("prefixed_") }
func (partKey[T]) TableName() string        { return "part_keys" }

func (k of[T, P]) formModels() []any {
	type text = sqltypes.Text[T]
	models := []any{&keyed[T]{}, &keyed[*T]{}, &keyed[sql.Null[T]]{}, &keyed[sqltypes.Optional[T]]{}, &keyed[*sqltypes.Optional[T]]{},
		&keyed[text]{}, &keyed[*text]{}, &keyed[sqltypes.Optional[text]]{}, &keyed[wrapped[T]]{}, &keyed[wrapped[text]]{},
		&otherName[T]{}, &embedsValue[T]{}, &embedsPointer[T]{}, &embedsNested[T]{}, &embedsPrefixed[Key[T]]{}, &embedsPrefixed[*Key[T]]{}, &partKey[T]{}}
	if _, isSno := any(*new(T)).(idtype.Sno); isSno {
		models = append(models, &keyed[sqltypes.SnoBytes]{})
	}
	return models
}

// A wrapped is a column type of the caller around another one.
type wrapped[F sqltypes.ID] struct{ Inner F }

func (w wrapped[F]) Value() (driver.Value, error) { return w.Inner.Value() }
func (w *wrapped[F]) Scan(src any) error          { return any(&w.Inner).(sql.Scanner).Scan(src) }
func (w wrapped[F]) IsZero() bool                 { return w.Inner.IsZero() }
func (w wrapped[F]) GormDataType() string         { return w.Inner.GormDataType() }

// The plugin fills keys in all forms, also in embedded structs. Rows are found by their IDs in
// these forms.
func (k of[T, P]) forms(t *testing.T, g *gorm.DB) {
	type text = sqltypes.Text[T]
	// In the order of the column.
	f := formed[T]{t: t, g: g}
	for _, id := range k.ids(t, 5) {
		must(t, g.Create(&thing[T]{ID: id}).Error)
	}
	must(t, g.Model(&thing[T]{}).Order("id").Pluck("id", &f.ids).Error)
	from, to := k.First.AddDate(1, 0, 1), k.First.AddDate(1, 0, 3)
	switch any(*new(T)).(type) {
	case orderID:
		f.window = gormplugin.CreatedBetweenIn(idtest.Snowflake.Layout, "", from, to)
	case customerID:
		f.window = gormplugin.CreatedBetweenIn(idtest.Sno.Layout, "", from, to)
	default:
		if k.Layout != nil {
			f.window = k.minted("", from, to)
		}
	}

	keyedBy(f, k.Column, func(id T) T { return id })
	keyedBy(f, k.Column, func(id T) *T { return &id })
	keyedBy(f, k.Column, func(id T) sql.Null[T] { return sql.Null[T]{V: id, Valid: true} })
	keyedBy(f, k.Column, sqltypes.OptionalOf[T])
	keyedBy(f, k.Column, func(id T) *sqltypes.Optional[T] { return &sqltypes.Optional[T]{ID: id} })
	keyedBy(f, "text", sqltypes.TextOf[T])
	keyedBy(f, "text", func(id T) *text { return &text{ID: id} })
	keyedBy(f, "text", func(id T) sqltypes.Optional[text] { return sqltypes.OptionalOf(sqltypes.TextOf(id)) })
	keyedBy(f, k.Column, func(id T) wrapped[T] { return wrapped[T]{id} })
	keyedBy(f, "text", func(id T) wrapped[text] { return wrapped[text]{text{ID: id}} })
	if snos, ok := any(f).(formed[idtype.Sno]); ok {
		keyedBy(snos, "bytea", sqltypes.SnoBytesOf)
	}
	fills(f, k.Column, func(m *otherName[T], id T) { m.Number = id })
	fills(f, k.Column, func(m *embedsValue[T], id T) { m.ID = id })
	fills(f, k.Column, func(m *embedsPointer[T], id T) { m.Key = &Key[T]{id} })
	fills(f, k.Column, func(m *embedsNested[T], id T) { m.Outer = &Outer[T]{Key: &Key[T]{id}} })
	fills(f, k.Column, func(m *embedsPrefixed[Key[T]], id T) { m.In.ID = id })
	fills(f, k.Column, func(m *embedsPrefixed[*Key[T]], id T) { m.In = &Key[T]{id} })
	upserts(f, modelOf[partKey[T], T](t, g))
	plucks(t, "the default", g.Model(&partKey[T]{}).Group("count"), "count", 2)

	// The plugin sets a new pointer instead of changing the caller's variable.
	var zero T
	rows := []keyed[*T]{{ID: &zero, Name: "x"}, {ID: &zero, Name: "y"}}
	must(t, g.Create(&rows).Error)
	if !zero.IsZero() || *rows[0].ID == *rows[1].ID {
		t.Errorf("two pointers to one zero ID: got %v and %v, want two IDs; the variable became %v", *rows[0].ID, *rows[1].ID, zero)
	}
	// A sql.Null that isn't valid has no ID.
	invalid := keyed[sql.Null[T]]{ID: sql.Null[T]{V: f.ids[0]}, Name: "invalid"}
	if must(t, g.Create(&invalid).Error); !invalid.ID.Valid || invalid.ID.V == f.ids[0] {
		t.Errorf("sql.Null that isn't valid: got %v, want a new ID", invalid.ID)
	}
}

// A formed has the arguments for a test of a form.
type formed[T sqltypes.ID] struct {
	t      *testing.T
	g      *gorm.DB
	ids    []T
	window scope // from the second to the fourth ID; nil if IDs don't sort by time
}

// keyedBy tests keys of type F in columns of a type.
func keyedBy[T sqltypes.ID, F any](f formed[T], column string, of func(T) F) {
	f.t.Helper()
	fills(f, column, func(m *keyed[F], id T) { m.ID = of(id) })
	must(f.t, f.g.Where("1 = 1").Delete(&keyed[F]{}).Error)
	var rows []keyed[F]
	var ids []F
	for i, id := range f.ids {
		ids = append(ids, of(id))
		rows = append(rows, keyed[F]{ID: of(id), Name: string(rune('a' + i))})
	}
	must(f.t, f.g.Create(&rows).Error)
	plucks(f.t, "IN", f.g.Model(&keyed[F]{}).Where("id IN ?", ids[:2]).Order("name"), "name", "a", "b")
	scopesOf(f, modelOf[keyed[F], T](f.t, f.g))
	if _, isScanner := any(&ids[0]).(interface{ IsZero() bool }); !isScanner { // a pointer or a sql.Null
		return
	}
	// Scan and Pluck read lists from columns of any name.
	for _, column := range []string{"id", "id as subject"} {
		var got []F
		must(f.t, f.g.Model(&keyed[F]{}).Select(column).Order("name").Scan(&got).Error)
		equal(f.t, "Scan of "+column, got, ids)
	}
	plucks(f.t, "Pluck", f.g.Model(&keyed[F]{}).Order("name"), "id", ids...)
	a, b := ids[0], ids[1]
	lists(f.t, f.g, listed{model: &keyed[F]{}, rows: new([]keyed[F]), keys: []any{a, b}, pointer: &a,
		two: []F{a, b}, pointers: []*F{&a, &b}, one: []F{a}, zero: make([]F, 1), none: []F{}})
	affects(f.t, "Delete by IN", f.g.Delete(&keyed[F]{}, "id IN ?", []F{b}), 1)
}

// fills creates rows of a model with a name and a key, by structs, slices, maps and upserts. The
// function set sets the key.
func fills[M any, T sqltypes.ID](f formed[T], column string, set func(*M, T)) {
	f.t.Helper()
	m := modelOf[M, T](f.t, f.g)
	slice := []M{*m.with("Name", "b"), *m.with("Name", "c, set"), *m.with("Name", "d, zero")}
	filled(f, m, column, set, &slice, []*M{&slice[0], &slice[1], &slice[2]})
	upserts(f, m)
}

// filled creates the rows. inSlice points to the rows of the slice.
func filled[P any, T sqltypes.ID](f formed[T], m model[P, T], column string, set func(P, T), slice any, inSlice []P) {
	t, g, ids := f.t, f.g, f.ids
	t.Helper()
	if isPostgres(g) || column != "bytea" {
		checkColumns(t, g, map[string]map[string]string{m.Table: {m.PrioritizedPrimaryField.DBName: column}})
	}
	equal(t, m.Table+": AutoMigrate", alterations(t, g, m.blank()), nil)
	one, first, second := m.with("Name", "a"), m.with("Name", "e"), m.with("Name", "f, set")
	set(inSlice[1], ids[0])
	set(inSlice[2], *new(T))
	set(second, ids[1])
	must(t, g.Create(one).Error)
	must(t, g.Create(slice).Error)
	must(t, g.Create([]P{first, second}).Error)
	want := append(append([]P{one}, inSlice...), first, second) // in the order of the names
	finds(t, m.Table, g.Order("name"), want...)
	seen := map[T]bool{}
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
		if id, got := m.key(row), bare[T](values[db]); got != id || id.IsZero() || seen[id] || value != nil && id != ids[2] {
			t.Errorf("%s: ID = %v in the map, %v in the row, want the same, new or set", m.Table, got, id)
		}
	}
}

// upserts inserts rows with names that exist. The structs get the IDs of the rows.
func upserts[P any, T sqltypes.ID](f formed[T], m model[P, T]) {
	t, g := f.t, f.g
	t.Helper()
	create := func(tx *gorm.DB, note string, names ...string) (rows []P) {
		t.Helper()
		for _, name := range names {
			rows = append(rows, m.with("Name", "upsert "+name, "Note", note, "Region", "eu"))
		}
		if len(rows) == 1 {
			must(t, tx.Create(rows[0]).Error)
		} else {
			must(t, tx.Create(&rows).Error)
		}
		return rows
	}
	agree := func(row P, name, note string) {
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

// A model is GORM's schema of a struct, whose key holds a T in some form. P is the pointer to
// that struct.
type model[P any, T sqltypes.ID] struct {
	*schema.Schema
	t     *testing.T
	blank func() P
}

func modelOf[M any, T sqltypes.ID](t *testing.T, g *gorm.DB) model[*M, T] {
	t.Helper()
	stmt := gorm.Statement{DB: g}
	must(t, stmt.Parse(new(M)))
	return model[*M, T]{stmt.Schema, t, func() *M { return new(M) }}
}

// with returns a new row. The arguments are names and values of fields in turn. Names that the
// struct doesn't have are ignored.
func (m model[P, T]) with(values ...string) P {
	m.t.Helper()
	row := m.blank()
	for i := 0; i < len(values); i += 2 {
		if field := m.LookUpField(values[i]); field != nil {
			must(m.t, field.Set(m.t.Context(), reflect.ValueOf(row), values[i+1]))
		}
	}
	return row
}

// form returns the value of the row's key field. key returns the ID in it.
func (m model[P, T]) form(row P) any {
	v, _ := m.PrioritizedPrimaryField.ValueOf(m.t.Context(), reflect.ValueOf(row))
	return v
}

func (m model[P, T]) key(row P) T { return bare[T](m.form(row)) }

// hasZero reports whether the key of a row is the zero value of its type.
func (m model[P, T]) hasZero(row P) bool {
	v := reflect.ValueOf(m.form(row))
	return !v.IsValid() || v.IsZero()
}

// bare returns the ID in a key of any form, and zero for nil.
func bare[T sqltypes.ID](v any) (id T) {
	for r := reflect.ValueOf(v); r.IsValid(); {
		if r.Type() == reflect.TypeFor[T]() {
			return r.Interface().(T)
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
}

// lists tests conditions with keys of a form. The forms that are structs fail, or have the
// meaning that the documentation of gormplugin gives.
func lists(t *testing.T, g *gorm.DB, l listed) {
	t.Helper()
	isStruct := reflect.TypeOf(l.keys[0]).Kind() == reflect.Struct
	_, isBytes := l.keys[0].(sqltypes.SnoBytes)
	two, all, rest := []string{"a", "b"}, []string{"a", "b", "c", "d", "e"}, []string{"c", "d", "e"}
	// Lists of structs are models without such a column. Zero models have no condition.
	asList, alone, negated, ofZeros := two, []string{"a"}, rest, []string{}
	if isStruct {
		asList, alone, negated, ofZeros = nil, nil, nil, all
	}
	cases := map[string]struct {
		tx   *gorm.DB
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
		if isBytes && strings.HasPrefix(name, "one ID") {
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
	if tx := g.Find(l.rows, l.two); (tx.Error != nil) != isStruct || !isStruct && tx.RowsAffected != 2 {
		t.Errorf("%T, Find: %d rows, %v", l.keys[0], tx.RowsAffected, tx.Error)
	}
	if tx := g.Delete(l.model, l.one); (tx.Error != nil) != isStruct || !isStruct && tx.RowsAffected != 1 {
		t.Errorf("%T, Delete by a list: %d rows, %v", l.keys[0], tx.RowsAffected, tx.Error)
	}
}

// scopesOf selects rows after and before IDs, and in a time window, of the base type and in
// other forms. Columns of text sort like the IDs only for Snos.
func scopesOf[P any, T sqltypes.ID](f formed[T], m model[P, T]) {
	t, ids := f.t, f.ids
	t.Helper()
	field := m.PrioritizedPrimaryField
	for name, c := range map[string]struct {
		scope scope
		want  string
	}{
		"after":        {gormplugin.PageAfter("", ids[1]), "cde"},
		"before":       {gormplugin.PageBefore(m.Table+".id", ids[2]), "ba"},
		"after one":    {gormplugin.PageAfter("id", sqltypes.OptionalOf(ids[2])), "de"},
		"after a text": {gormplugin.PageAfter("id", sqltypes.TextOf(ids[1])), "cde"},
		"window":       {f.window, "bc"},
	} {
		if c.scope == nil {
			continue
		}
		tx := f.g.Model(m.blank()).Scopes(c.scope)
		if field.DataType != "text" || ids[0].GormDataType() == "uuid" {
			plucks(t, fmt.Sprint(field.FieldType, " ", name), tx, "name", strings.Split(c.want, "")...)
		} else if name != "after a text" {
			fails(t, fmt.Sprint(field.FieldType, " ", name), tx.Find(&[]P{}).Error, gorm.ErrInvalidField, "")
		}
	}
}
