package gorm

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/sqltypes"
)

// Create fills zero keys and keeps keys that are set, in every kind of value that GORM accepts,
// with every way to create rows. Structs, maps and rows have the same IDs.
func (k of[T, P]) create(t *testing.T, g *gorm.DB) {
	ctx := t.Context()
	type way struct {
		create func(g *gorm.DB, v any) *gorm.DB // nil: the way doesn't accept the value
		size   int                              // of a batch
	}
	ways := map[string]way{
		"CreateInBatches": {func(g *gorm.DB, v any) *gorm.DB { return g.CreateInBatches(v, 2) }, 2},
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
		"G": {func(g *gorm.DB, v any) *gorm.DB {
			result := gorm.WithResult()
			switch v := v.(type) {
			case *thing[T]:
				err := gorm.G[thing[T]](g, result).Create(ctx, v)
				return &gorm.DB{Error: err, RowsAffected: result.RowsAffected}
			case *[]thing[T]:
				err := gorm.G[thing[T]](g).CreateInBatches(ctx, v, 2)
				return &gorm.DB{Error: err, RowsAffected: int64(len(*v))}
			}
			return nil
		}, 0},
	}
	for name, session := range map[string]gorm.Session{
		"Create":                   {},
		"SkipHooks":                {SkipHooks: true},
		"PrepareStmt":              {PrepareStmt: true},
		"SkipDefaultTransaction":   {SkipDefaultTransaction: true},
		"DisableNestedTransaction": {DisableNestedTransaction: true},
		"AllowGlobalUpdate":        {AllowGlobalUpdate: true, QueryFields: true},
		"Context":                  {Context: ctx},
		"CreateBatchSize":          {CreateBatchSize: 2},
	} {
		ways[name] = way{func(g *gorm.DB, v any) *gorm.DB { return g.Session(&session).Create(v) }, session.CreateBatchSize}
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
			affects(t, fmt.Sprintf("%s of %T", name, v), res, int64(len(after)))
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

// Models of table things whose keys the database may set.
type (
	optedOut[T sqltypes.ID] struct {
		ID   T `gorm:"idgen:-;default:(-)"`
		Name string
	}
	withDefault[T sqltypes.ID] struct {
		ID   T `gorm:"default:(-)"`
		Name string
	}
)

func (optedOut[T]) TableName() string    { return "things" }
func (withDefault[T]) TableName() string { return "things" }

// If the key is omitted or has the tag idgen:-, the database sets it. If the model declares a
// default, GORM reads the value back.
func (k of[T, P]) defaultKeys(t *testing.T, g *gorm.DB) {
	byDefault := k.ids(t, 1)[0]
	var zero T
	must(t, g.Exec(fmt.Sprintf("create table things (id %s primary key default '%s', name text)", k.Column, k.Stored(byDefault))).Error)
	// The generator has no IDs, so it fails if the plugin calls it.
	g = with(t, g, gorm.Config{}, gormplugin.For(noIDs[T]{}))
	var known, unbound withDefault[T]
	var unknown thing[T]
	row, rows, m := optedOut[T]{}, make([]optedOut[T], 1), map[string]any{"name": "a"}
	for name, c := range map[string]struct {
		tx    *gorm.DB
		value any
		key   *T
		want  T
	}{
		"Omit":                        {g.Omit("ID"), &known, &known.ID, byDefault},
		"Omit, default unknown":       {g.Omit("id"), &unknown, &unknown.ID, zero},
		"no generator, but a default": {with(t, g, gorm.Config{}), &unbound, &unbound.ID, byDefault},
		"opted out":                   {g, &row, &row.ID, byDefault},
		"opted out, slice":            {g, &rows, &rows[0].ID, byDefault},
		"a map, Omit":                 {g.Model(&thing[T]{}).Omit("ID"), m, &zero, zero},
	} {
		must(t, g.Exec("delete from things").Error)
		must(t, c.tx.Create(c.value).Error)
		equal(t, name, *c.key, c.want)
		plucks(t, name, g.Table("things"), "id", byDefault)
	}
	equal(t, "map with Omit", m, map[string]any{"name": "a"})
	// Without a default in the table, the result is an error or NULL.
	must(t, g.Exec("drop table things").Error)
	must(t, g.AutoMigrate(&thing[T]{}))
	one := thing[T]{Name: "a"}
	err := g.Omit("ID").Create(&one).Error
	if isPostgres(g) && (err == nil || !strings.Contains(err.Error(), "23502")) || !one.ID.IsZero() {
		t.Errorf("without a default: got ID %v, %v, want the database's error", one.ID, err)
	}
}

// Many goroutines share a database, and use each model for the first time at the same time.
// All IDs differ, and each row has the ID of its struct.
func (k of[T, P]) parallel(t *testing.T, g *gorm.DB) {
	pool, err := g.DB()
	must(t, err)
	pool.SetMaxOpenConns(8)
	if !isPostgres(g) {
		pool.SetMaxOpenConns(1) // SQLite allows one writer at a time
	}
	g = with(t, g, gorm.Config{}, bindings(t)...) // a new GORM has parsed no models

	const rounds = 2
	var (
		mu     sync.Mutex
		things []thing[T]
		people []*Person[T, P]
		owners []owner[T]
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

				steps := []any{&one, &slice, m, several, &o, ada, &alone}
				for i := range steps {
					step, tx := steps[(i+n)%len(steps)], g
					if isMap(step) {
						tx = g.Model(&thing[T]{})
					}
					if err := tx.Create(step).Error; err != nil {
						t.Errorf("%T: %v", step, err)
						return
					}
				}
				mu.Lock()
				things = append(append(append(append(things, one), slice...), collect[T](m)...), collect[T](several)...)
				people, owners = append(people, k.in(ada)), append(owners, o)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}

	k.agree(t, g, things)
	counts(t, g, "people p join companies c on c.id = p.company_id", 16*rounds)
	for _, p := range people {
		plucks(t, "company", g.Table("people").Where("id = ?", p.ID), "company_id", p.Company.ID)
	}
	counts(t, g, "owners o join profiles p on p.id = o.id", 16*rounds)
	for _, o := range owners {
		plucks(t, "profile", g.Table("profiles").Where("id = ?", o.ID), "id", o.Profile.ID)
	}
	// All IDs differ across tables, except in profiles and details, which share keys.
	const ids = `(select id from things union all select id from owners union all select id from items union all select id from people
		union all select id from companies union all select id from passports union all select id from orders
		union all select id from pictures union all select id from tags) ids`
	counts(t, g, ids, 16*rounds*(24+3+17))
	counts(t, g, "(select distinct id from "+ids+") ids", 16*rounds*(24+3+17))
}
