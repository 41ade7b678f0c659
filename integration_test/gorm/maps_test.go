package gorm

import (
	"database/sql"
	"fmt"
	"testing"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/sqltypes"
)

// Rows created from maps get IDs. The map contains the ID under its own name for the key,
// or else under the column's name.
func (k of[T, N]) createMaps(t *testing.T, g *gorm.DB) {
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

	one := map[string]any{"name": "map"}
	create(&thing[T]{}, "id", one, one)
	pointer := map[string]any{"name": "pointer"}
	create(&thing[T]{}, "id", &pointer, pointer)
	several := []map[string]any{{"name": "slice 0"}, {"name": "slice 1"}, {"name": "slice 2, set", "id": set[0]}}
	create(&thing[T]{}, "id", several, several...)
	more := []map[string]any{{"name": "pointer to slice 0, set", "id": set[1]}, {"name": "pointer to slice 1"}}
	create(&thing[T]{}, "id", &more, more...)
	byValue := map[string]any{"name": "model by value"}
	create(thing[T]{}, "id", byValue, byValue)
	ofSlice := map[string]any{"name": "model is a slice"}
	create(&[]thing[T]{}, "id", ofSlice, ofSlice)

	// The key has the column's or the field's name, with an ID and without.
	for n, key := range []string{"id", "ID"} {
		kept := map[string]any{"name": key + ", set", key: set[2+n]}
		create(&thing[T]{}, key, kept, kept)
		for i, empty := range []any{nil, zero, &zero, (*T)(nil), sql.Null[T]{}, sql.Null[T]{Valid: true}, sqltypes.Optional[T]{}} {
			row := map[string]any{"name": fmt.Sprintf("%s, empty %d", key, i), key: empty}
			create(&thing[T]{}, key, row, row)
		}
		rows := []map[string]any{{"name": key + ", slice 0", key: zero}, {"name": key + ", slice 1", key: nil}}
		create(&thing[T]{}, key, rows, rows...)
	}
	for n, key := range []string{"id", "ID"} {
		mixed := []map[string]any{{"name": key + ", mixed 0", key: set[4+n]}, {"name": key + ", mixed 1"}, {"name": key + ", mixed 2", key: nil}}
		create(&thing[T]{}, key, mixed, mixed[0], mixed[2])
		id, _ := mixed[1]["id"].(T)
		want = append(want, thing[T]{ID: id, Name: key + ", mixed 1"})
	}

	// An ID in another form is kept.
	for i, id := range []any{&set[6], sql.Null[T]{V: set[7], Valid: true}, sqltypes.OptionalOf(set[8])} {
		name := fmt.Sprintf("form %d", i)
		must(t, g.Model(&thing[T]{}).Create(map[string]any{"name": name, "id": id}).Error)
		want = append(want, thing[T]{ID: set[6+i], Name: name})
	}
	if !zero.IsZero() {
		t.Errorf("the caller's variable became %v, want zero", zero)
	}

	// A nil map is created.
	var made map[string]any
	must(t, g.Model(&thing[T]{}).Create(&made).Error)
	id, _ := made["id"].(T)
	want = append(want, thing[T]{ID: id})
	k.agree(t, g, want)
}

// Without a model, the plugin doesn't know the key, and the database sets it.
func (k of[T, N]) createMapWithoutModel(t *testing.T, g *gorm.DB) {
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
