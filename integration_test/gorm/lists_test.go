package gorm

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/integration_test/internal/sqlitetest"
	"github.com/sortkey/sortkey/internal/typename"
	"github.com/sortkey/sortkey/sqltypes"
)

type listed[T any] struct {
	ID   T
	Name string
}

// Clients cache the parameter types of a statement, so each ID type has its own table.
func (listed[T]) TableName() string {
	return strings.ReplaceAll("listed "+typename.OfValue(*new(T)), ".", " ")
}

// onClients runs a test with the clients of Postgres and on SQLite.
func onClients(t *testing.T, f func(t *testing.T, g *gorm.DB)) {
	for _, client := range everyClient {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			if client == "SQLite" {
				f(t, sqlitetest.Open(t))
				return
			}
			pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
				f(t, db.GORM(t, &gorm.Config{Logger: logger.Discard}, clients[client]...))
			})
		})
	}
}

// A list of IDs is a condition in the forms that the documentation of gormplugin shows. The
// other forms fail, or have the documented meaning.
func TestListsAsConditions(t *testing.T) {
	onClients(t, func(t *testing.T, g *gorm.DB) {
		a, b, c := idtype.Snowflake(7), idtype.Snowflake(8), idtype.Snowflake(9)
		x, y, z := idtype.Sno{9: 7}, idtype.Sno{9: 8}, idtype.Sno{9: 9}
		lists(t, g, false, a, b, c)
		lists(t, g, false, x, y, z)
		lists(t, g, false, typedSnowflake(a), typedSnowflake(b), typedSnowflake(c))
		lists(t, g, false, typedSno(x.WithMeta('c')), typedSno(y.WithMeta('c')), typedSno(z.WithMeta('c')))
		lists(t, g, true, sqltypes.OptionalOf(a), sqltypes.OptionalOf(b), sqltypes.OptionalOf(c))
		lists(t, g, true, sqltypes.OptionalOf(x), sqltypes.OptionalOf(y), sqltypes.OptionalOf(z))
		lists(t, g, true, sqltypes.TextOf(a), sqltypes.TextOf(b), sqltypes.TextOf(c))
		lists(t, g, true, sqltypes.TextOf(x), sqltypes.TextOf(y), sqltypes.TextOf(z))
		lists(t, g, true, sqltypes.SnoBytesOf(x), sqltypes.SnoBytesOf(y), sqltypes.SnoBytesOf(z))
		lists(t, g, true, orderID{a}, orderID{b}, orderID{c})
		lists(t, g, true, customerID{x}, customerID{y}, customerID{z})
	})
}

// lists tests the conditions with three IDs of a type, which may be a struct.
func lists[T any](t *testing.T, g *gorm.DB, isStruct bool, a, b, c T) {
	t.Helper()
	must(t, g.AutoMigrate(&listed[T]{}))
	must(t, g.Create([]listed[T]{{a, "a"}, {b, "b"}, {c, "c"}}).Error)
	two, all := []string{"a", "b"}, []string{"a", "b", "c"}
	_, isBytes := any(a).(sqltypes.SnoBytes)
	for name, q := range map[string]struct {
		tx   *gorm.DB
		want []string // nil: an error
	}{
		"IN":                    {g.Where("id IN ?", []T{a, b}), two},
		"IN, pointers":          {g.Where("id IN ?", []*T{&a, &b}), two},
		"IN, nothing":           {g.Where("id IN ?", []T{}), []string{}},
		"NOT IN":                {g.Where("id NOT IN ?", []T{c}), two},
		"Not":                   {g.Not("id IN ?", []T{c}), two},
		"map":                   {g.Where(map[string]any{"id": []T{a, b}}), two},
		"Not of a map":          {g.Not(map[string]any{"id": []T{c}}), two},
		"values":                {g.Where([]any{a, b}), two},
		"one ID":                {g.Where(a), []string{"a"}},
		"one ID, pointer":       {g.Where(&a), []string{"a"}},
		"a column and one ID":   {g.Where("id", a), []string{"a"}},
		"a column and a list":   {g.Where("id", []T{a, b}), nil},
		"a column, list of one": {g.Where("id", []T{a}), []string{"a"}},
		"a column, no list":     {g.Where("id", []T{}), []string{}},
		"= and a list":          {g.Where("id = ?", []T{a, b}), nil},
		"Not, column and list":  {g.Not("id", []T{a, b}), nil},

		"a list":          {g.Where([]T{a, b}), two},
		"a list of one":   {g.Where([]T{a}), []string{"a"}},
		"pointers":        {g.Where([]*T{&a, &b}), two},
		"Not of a list":   {g.Not([]T{c}), two},
		"a list of zeros": {g.Where(make([]T, 1)), []string{}},
		"an empty list":   {g.Where([]T{}), all},
	} {
		if isStruct {
			switch name {
			case "a list", "a list of one", "pointers", "Not of a list":
				q.want = nil
			case "a list of zeros":
				q.want = all
			}
		}
		var names []string
		err := q.tx.Model(&listed[T]{}).Order("name").Pluck("name", &names).Error
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
	var rows []listed[T]
	if err := g.Find(&rows, []T{a, b}).Error; (err != nil) != isStruct || err == nil && len(rows) != 2 {
		t.Errorf("%T, Find: %v, %v", a, rows, err)
	}
	for name, c := range map[string]struct {
		tx   *gorm.DB
		want int64
	}{
		"a list": {g.Delete(&listed[T]{}, []T{a}), 1},
		"IN":     {g.Delete(&listed[T]{}, "id IN ?", []T{b}), 1},
	} {
		if refused := isStruct && name == "a list"; (c.tx.Error != nil) != refused || !refused && c.tx.RowsAffected != c.want {
			t.Errorf("%T, Delete by %s: %d rows, %v", a, name, c.tx.RowsAffected, c.tx.Error)
		}
	}
}

// Scan and Pluck read lists of IDs from columns of any name.
func TestListsOfForms(t *testing.T) {
	onClients(t, func(t *testing.T, g *gorm.DB) {
		id := sqltypes.TextOf(idtype.Sno{9: 7})
		must(t, g.AutoMigrate(&listed[sqltypes.SnoText]{}))
		must(t, g.Create(&listed[sqltypes.SnoText]{id, "a"}).Error)
		for _, column := range []string{"id", "id as subject"} {
			query := fmt.Sprintf("select %s from %s", column, g.Statement.Quote(listed[sqltypes.SnoText]{}.TableName()))
			var ids []sqltypes.SnoText
			if err := g.Raw(query).Scan(&ids).Error; err != nil || !slices.Equal(ids, []sqltypes.SnoText{id}) {
				t.Errorf("%s: %v, %v", query, ids, err)
			}
			var one sqltypes.OptionalSnoText
			if err := g.Raw(query).Scan(&one).Error; err != nil || one.ID != id {
				t.Errorf("%s: %v, %v", query, one, err)
			}
		}
		var ids []sqltypes.SnoText
		if err := g.Model(&listed[sqltypes.SnoText]{}).Pluck("id", &ids).Error; err != nil || !slices.Equal(ids, []sqltypes.SnoText{id}) {
			t.Errorf("Pluck: %v, %v", ids, err)
		}
	})
}

// An array column needs a Go type with Value and Scan: GORM stores a plain slice as a list of
// values, and an empty slice as NULL.
func TestArrays(t *testing.T) {
	type basket struct {
		ID     idtype.Snowflake
		Items  sqltypes.Array[idtype.Snowflake]
		Owners sqltypes.Array[typedSno]
	}
	type slice struct {
		ID    idtype.Snowflake
		Items []idtype.Snowflake `gorm:"type:bigint[]"`
	}
	onClients(t, func(t *testing.T, g *gorm.DB) {
		if !isPostgres(g) {
			return
		}
		must(t, g.AutoMigrate(&basket{}))
		r := pgtest.NewRecorder()
		must(t, g.Session(&gorm.Session{Logger: r}).AutoMigrate(&basket{}))
		if len(r.With("SELECT")) == 0 || len(r.With("ALTER")) > 0 {
			t.Errorf("the second AutoMigrate issued %q", r.With("ALTER"))
		}
		type snowflakes = sqltypes.Array[idtype.Snowflake]
		owner := typedSno{5: 'c', 9: 7}
		want := []basket{{ID: 1}, {2, snowflakes{}, sqltypes.Array[typedSno]{}}, {3, snowflakes{7}, sqltypes.ArrayOf([]typedSno{owner})}, {4, snowflakes{7, 779300444248735744}, nil}}
		must(t, g.Create(&want).Error)
		var found []basket
		if err := g.Order("id").Find(&found).Error; err != nil || !reflect.DeepEqual(found, want) {
			t.Errorf("got %v, %v, want %v", found, err, want)
		}
		for name, c := range map[string]struct {
			tx   *gorm.DB
			want []idtype.Snowflake
		}{
			"an ID in the array":     {g.Where("? = ANY (items)", idtype.Snowflake(7)), []idtype.Snowflake{3, 4}},
			"the array":              {g.Where("items = ?", snowflakes{7}), []idtype.Snowflake{3}},
			"an array as parameter":  {g.Where("id = ANY (?)", snowflakes{1, 3}), []idtype.Snowflake{1, 3}},
			"an empty one":           {g.Where("items = ?", snowflakes{}), []idtype.Snowflake{2}},
			"arrays that have it":    {g.Where("items @> ?", snowflakes{779300444248735744}), []idtype.Snowflake{4}},
			"a map with an array":    {g.Where(map[string]any{"items": snowflakes{7}}), []idtype.Snowflake{3}},
			"an ID in the uuids":     {g.Where("? = ANY (owners)", owner), []idtype.Snowflake{3}},
			"no keys":                {g.Where("id = ANY (?)", snowflakes{}), []idtype.Snowflake{}},
			"a struct with an array": {g.Where(&basket{Items: snowflakes{7}}), []idtype.Snowflake{3}},
		} {
			var ids []idtype.Snowflake
			if err := c.tx.Model(&basket{}).Order("id").Pluck("id", &ids).Error; err != nil || !slices.Equal(ids, c.want) {
				t.Errorf("%s: got %v, %v, want %v", name, ids, err, c.want)
			}
		}
		// Conditions in which GORM takes an Array for one value.
		for name, tx := range map[string]*gorm.DB{"IN": g.Where("id IN ?", snowflakes{1, 3}), "a list": g.Where(snowflakes{1, 3})} {
			if err := tx.Find(&[]basket{}).Error; err == nil {
				t.Errorf("%s: no error", name)
			}
		}
		must(t, g.Model(&basket{ID: 3}).Update("items", snowflakes{8, 9}).Error)
		var one basket
		if must(t, g.Take(&one, 3).Error); !slices.Equal(one.Items, snowflakes{8, 9}) {
			t.Errorf("after Update: %v", one)
		}
		// A plain slice.
		g = g.Table("baskets")
		must(t, g.Create(&slice{ID: 10, Items: []idtype.Snowflake{}}).Error)
		var isNull bool
		must(t, g.Select("items IS NULL").Where("id = 10").Scan(&isNull).Error)
		if !isNull {
			t.Error("empty slice: not stored as NULL")
		}
		for _, items := range [][]idtype.Snowflake{{7}, {7, 8}} {
			if err := g.Create(&slice{ID: 11, Items: items}).Error; err == nil {
				t.Errorf("stored the plain slice %v, want an error", items)
			}
		}
		if err := g.Find(&[]slice{}, "id = 3").Error; err == nil {
			t.Error("read into a plain slice, want an error")
		}
	})
}
