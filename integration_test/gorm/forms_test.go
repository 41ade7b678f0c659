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
	embedsPrefixed[T sqltypes.ID] struct {
		In   Key[T] `gorm:"embedded;embeddedPrefix:in_"`
		Name string `gorm:"unique"`
		Note string
	}
	embedsPrefixedPointer[T sqltypes.ID] struct {
		In   *Key[T] `gorm:"embedded;embeddedPrefix:in_"`
		Name string  `gorm:"unique"`
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

func (otherName[T]) TableName() string             { return "other_names" }
func (embedsValue[T]) TableName() string           { return "embeds_values" }
func (embedsPointer[T]) TableName() string         { return "embeds_pointers" }
func (embedsNested[T]) TableName() string          { return "embeds_nesteds" }
func (embedsPrefixed[T]) TableName() string        { return "embeds_prefixeds" }
func (embedsPrefixedPointer[T]) TableName() string { return "embeds_prefixed_pointers" }
func (partKey[T]) TableName() string               { return "part_keys" }

func (k of[T]) formModels() []any {
	type text = sqltypes.Text[T]
	models := []any{&keyed[T]{}, &keyed[*T]{}, &keyed[sql.Null[T]]{}, &keyed[sqltypes.Optional[T]]{}, &keyed[*sqltypes.Optional[T]]{},
		&keyed[text]{}, &keyed[*text]{}, &keyed[sqltypes.Optional[text]]{}, &keyed[wrapped[T]]{}, &keyed[wrapped[text]]{},
		&otherName[T]{}, &embedsValue[T]{}, &embedsPointer[T]{}, &embedsNested[T]{}, &embedsPrefixed[T]{}, &embedsPrefixedPointer[T]{}, &partKey[T]{}}
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
func (k of[T]) forms(t *testing.T, g *gorm.DB) {
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
	fills(f, k.Column, func(m *embedsPrefixed[T], id T) { m.In.ID = id })
	fills(f, k.Column, func(m *embedsPrefixedPointer[T], id T) { m.In = &Key[T]{id} })
	upserts[partKey[T]](f)
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
	scopesOf[F](f)
	if _, isScanner := any(&ids[0]).(interface{ IsZero() bool }); isScanner { // not a pointer or a sql.Null
		lists(f, ids)
	}
}

// fills creates rows of a model with a name and a key, by structs, slices, maps and upserts. The
// function set sets the key.
func fills[M any, T sqltypes.ID](f formed[T], column string, set func(*M, T)) {
	t, g, ids := f.t, f.g, f.ids
	t.Helper()
	m := modelOf[M, T](t, g)
	if isPostgres(g) || column != "bytea" {
		checkColumns(t, g, map[string]map[string]string{m.Table: {m.PrioritizedPrimaryField.DBName: column}})
	}
	equal(t, m.Table+": AutoMigrate", alterations(t, g, new(M)), nil)
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
	db := m.PrioritizedPrimaryField.DBName
	for name, value := range map[string]any{"g": nil, "h, set": m.form(&preset)} {
		values := map[string]any{"name": name, db: value}
		must(t, g.Model(new(M)).Create(values).Error)
		var row M
		must(t, g.Where("name = ?", name).Take(&row).Error)
		if id, got := m.key(&row), bare[T](values[db]); got != id || id.IsZero() || seen[id] || value != nil && id != ids[2] {
			t.Errorf("%s: ID = %v in the map, %v in the row, want the same, new or set", m.Table, got, id)
		}
	}
	upserts[M](f)
}

// upserts inserts rows with names that exist. The structs get the IDs of the rows.
func upserts[M any, T sqltypes.ID](f formed[T]) {
	t, g := f.t, f.g
	t.Helper()
	m := modelOf[M, T](t, g)
	create := func(tx *gorm.DB, note string, names ...string) (rows []*M) {
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
	agree := func(row *M, name, note string) {
		t.Helper()
		stored := new(M)
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

// hasZero reports whether the key of a row is the zero value of its type.
func (m model[M, T]) hasZero(row *M) bool {
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

// lists tests conditions with IDs of a form. The forms that are structs fail, or have the
// meaning that the documentation of gormplugin gives.
func lists[T sqltypes.ID, F any](f formed[T], ids []F) {
	t, g := f.t, f.g
	t.Helper()
	a, b := ids[0], ids[1]
	isStruct := reflect.TypeFor[F]().Kind() == reflect.Struct
	_, isBytes := any(a).(sqltypes.SnoBytes)
	two, all, rest := []string{"a", "b"}, []string{"a", "b", "c", "d", "e"}, []string{"c", "d", "e"}
	// Lists of structs are models without such a column. Zero models have no condition.
	listed, alone, negated, ofZeros := two, []string{"a"}, rest, []string{}
	if isStruct {
		listed, alone, negated, ofZeros = nil, nil, nil, all
	}
	cases := map[string]struct {
		tx   *gorm.DB
		want []string // nil: an error
	}{
		"IN":                    {g.Where("id IN ?", []F{a, b}), two},
		"IN, pointers":          {g.Where("id IN ?", []*F{&a, &b}), two},
		"IN, nothing":           {g.Where("id IN ?", []F{}), []string{}},
		"NOT IN":                {g.Where("id NOT IN ?", []F{a, b}), rest},
		"Not":                   {g.Not("id IN ?", []F{a, b}), rest},
		"map":                   {g.Where(map[string]any{"id": []F{a, b}}), two},
		"Not of a map":          {g.Not(map[string]any{"id": []F{a, b}}), rest},
		"values":                {g.Where([]any{a, b}), two},
		"one ID":                {g.Where(a), []string{"a"}},
		"one ID, pointer":       {g.Where(&a), []string{"a"}},
		"a column and one ID":   {g.Where("id", a), []string{"a"}},
		"a column and a list":   {g.Where("id", []F{a, b}), nil},
		"a column, list of one": {g.Where("id", []F{a}), []string{"a"}},
		"a column, no list":     {g.Where("id", []F{}), []string{}},
		"= and a list":          {g.Where("id = ?", []F{a, b}), nil},
		"Not, column and list":  {g.Not("id", []F{a, b}), nil},
		"an empty list":         {g.Where([]F{}), all},
		"a list":                {g.Where([]F{a, b}), listed},
		"a list of one":         {g.Where([]F{a}), alone},
		"pointers":              {g.Where([]*F{&a, &b}), listed},
		"Not of a list":         {g.Not([]F{a, b}), negated},
		"a list of zeros":       {g.Where(make([]F, 1)), ofZeros},
	}
	for name, q := range cases {
		var names []string
		err := q.tx.Model(&keyed[F]{}).Order("name").Pluck("name", &names).Error
		if isBytes && strings.HasPrefix(name, "one ID") {
			// GORM treats the value as a list of bytes. Some clients return an error.
			if len(names) > 0 {
				t.Errorf("%s: got %q", name, names)
			}
			continue
		}
		if (err != nil) != (q.want == nil) || err == nil && !slices.Equal(names, q.want) {
			t.Errorf("%T, %s: got %q, %v, want %q", a, name, names, err, q.want)
		}
	}
	var rows []keyed[F]
	if err := g.Find(&rows, []F{a, b}).Error; (err != nil) != isStruct || err == nil && len(rows) != 2 {
		t.Errorf("%T, Find: %v, %v", a, rows, err)
	}
	// Scan and Pluck read lists from columns of any name.
	for _, column := range []string{"id", "id as subject"} {
		var got []F
		must(t, g.Model(&keyed[F]{}).Select(column).Order("name").Scan(&got).Error)
		equal(t, "Scan of "+column, got, ids)
	}
	plucks(t, "Pluck", g.Model(&keyed[F]{}).Order("name"), "id", ids...)
	if tx := g.Delete(&keyed[F]{}, []F{a}); (tx.Error != nil) != isStruct || !isStruct && tx.RowsAffected != 1 {
		t.Errorf("%T, Delete by a list: %d rows, %v", a, tx.RowsAffected, tx.Error)
	}
	affects(t, "Delete by IN", g.Delete(&keyed[F]{}, "id IN ?", []F{b}), 1)
}

// scopesOf selects rows after and before IDs, and in a time window, of the base type and in
// other forms. Columns of text sort like the IDs only for Snos.
func scopesOf[F any, T sqltypes.ID](f formed[T]) {
	t, g, ids := f.t, f.g, f.ids
	t.Helper()
	field := modelOf[keyed[F], T](t, g).PrioritizedPrimaryField
	scopes := map[string]struct {
		scope scope
		want  string
	}{
		"after":        {gormplugin.PageAfter("", ids[1]), "cde"},
		"before":       {gormplugin.PageBefore(keyed[F]{}.TableName()+".id", ids[2]), "ba"},
		"after one":    {gormplugin.PageAfter("id", sqltypes.OptionalOf(ids[2])), "de"},
		"after a text": {gormplugin.PageAfter("id", sqltypes.TextOf(ids[1])), "cde"},
	}
	if f.window != nil {
		scopes["window"] = struct {
			scope scope
			want  string
		}{f.window, "bc"}
	}
	for name, c := range scopes {
		tx := g.Model(&keyed[F]{}).Scopes(c.scope)
		if field.DataType != "text" || ids[0].GormDataType() == "uuid" {
			plucks(t, fmt.Sprint(field.FieldType, " ", name), tx, "name", strings.Split(c.want, "")...)
		} else if name != "after a text" {
			fails(t, fmt.Sprint(field.FieldType, " ", name), tx.Find(&[]keyed[F]{}).Error, gorm.ErrInvalidField, "")
		}
	}
}
