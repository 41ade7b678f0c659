package gormtest

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/sqltypes"
)

// Create fills zero keys and keeps keys that are set, in every kind of value that GORM accepts,
// with every way to create rows. Structs, maps and rows have the same IDs.
func (k *Kind) create(t *testing.T, g *database) {
	ctx := t.Context()
	type way struct {
		create func(g *database, v any) *database // nil: the way doesn't accept the value
		size   int                                // of a batch
	}
	ways := map[string]way{
		"CreateInBatches": {func(g *database, v any) *database { return g.CreateInBatches(v, 2) }, 2},
		"one transaction each": {func(g *database, v any) *database {
			return g.Session(&gorm.Session{SkipDefaultTransaction: true}).CreateInBatches(v, 2)
		}, 2},
		"Transaction": {func(g *database, v any) (res *database) {
			must(t, g.Transaction(func(tx *database) error { res = tx.Create(v); return res.Error }))
			return res
		}, 0},
		"Save": {func(g *database, v any) *database {
			if isMap(v) {
				return nil
			}
			return g.Save(v)
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
		ways[name] = way{func(g *database, v any) *database { return g.Session(&session).Create(v) }, session.CreateBatchSize}
	}
	set := k.ids(t, 20*len(ways))
	var all []thing
	for name, way := range ways {
		n := 0
		row := func(preset bool) (r thing) {
			r.Name = fmt.Sprint(name, " ", n)
			if n++; preset {
				r.ID, set = set[0], set[1:]
			}
			return r
		}
		ptr := func(preset bool) *thing { r := row(preset); return &r }
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
			[]thing{row(false), row(false), row(false)},
			&[]thing{row(false), row(true), row(false), row(true), row(false)},
			&[2]thing{row(false), row(true)},
			[]*thing{ptr(true), ptr(false), ptr(false)}, &[]*thing{ptr(false)}, &[2]*thing{ptr(false), ptr(true)}, [2]*thing{ptr(false), ptr(false)},
			[]**thing{&q},
			m(false), &made, []map[string]any{m(false), m(false), m(true)}, &[]map[string]any{m(true), m(false)},
		} {
			if way.size > 0 && reflect.Indirect(reflect.ValueOf(v)).Kind() == reflect.Array {
				continue // GORM can't cut it into batches
			}
			before := collect(v)
			tx := g.Session(&gorm.Session{Logger: r})
			if isMap(v) {
				tx = tx.Model(&thing{})
			}
			res := way.create(tx, v)
			if res == nil {
				continue
			}
			after := collect(v)
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
func collect(v any) (rows []thing) {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Pointer:
		return collect(r.Elem().Interface())
	case reflect.Slice, reflect.Array:
		for i := range r.Len() {
			rows = append(rows, collect(r.Index(i).Interface())...)
		}
		return rows
	case reflect.Map:
		m := v.(map[string]any)
		id, _ := m["id"].(ID)
		return []thing{{id, m["name"].(string)}}
	}
	return []thing{v.(thing)}
}

// Models of table things whose keys the database may set.
type (
	optedOutOf[T sqltypes.ID] struct {
		ID   T `gorm:"idgen:-;default:(-)"`
		Name string
	}
	withDefaultOf[T sqltypes.ID] struct {
		ID   T `gorm:"default:(-)"`
		Name string
	}
)

func (optedOutOf[T]) TableName() string    { return "things" }
func (withDefaultOf[T]) TableName() string { return "things" }

// If the key is omitted or has the tag idgen:-, the database sets it. If the model declares a
// default, GORM reads the value back.
func (k *Kind) defaultKeys(t *testing.T, g *database) {
	byDefault := k.ids(t, 1)[0]
	var zero ID
	must(t, g.Exec(fmt.Sprintf("create table things (id %s primary key default '%s', name text)", k.Column, k.stored(byDefault))).Error)
	// The generator has no IDs, so it fails if the plugin calls it.
	g = with(t, g, gorm.Config{}, k.none)
	var known, unbound withDefault
	var unknown thing
	row, rows, m := optedOut{}, make([]optedOut, 1), map[string]any{"name": "a"}
	for name, c := range map[string]struct {
		tx    *database
		value any
		key   *ID
		want  ID
	}{
		"Omit":                        {g.Omit("ID"), &known, &known.ID, byDefault},
		"Omit, default unknown":       {g.Omit("id"), &unknown, &unknown.ID, zero},
		"no generator, but a default": {with(t, g, gorm.Config{}), &unbound, &unbound.ID, byDefault},
		"opted out":                   {g, &row, &row.ID, byDefault},
		"opted out, slice":            {g, &rows, &rows[0].ID, byDefault},
		"a map, Omit":                 {g.Model(&thing{}).Omit("ID"), m, &zero, zero},
	} {
		must(t, g.Exec("delete from things").Error)
		must(t, c.tx.Create(c.value).Error)
		equal(t, name, *c.key, c.want)
		plucks(t, name, g.Table("things"), "id", byDefault)
	}
	equal(t, "map with Omit", m, map[string]any{"name": "a"})
	// Without a default in the table, the result is an error or NULL.
	must(t, g.Exec("drop table things").Error)
	must(t, g.AutoMigrate(&thing{}))
	one := thing{Name: "a"}
	err := g.Omit("ID").Create(&one).Error
	if isPostgres(g) && (err == nil || !strings.Contains(err.Error(), "23502")) || !one.ID.IsZero() {
		t.Errorf("without a default: got ID %v, %v, want the database's error", one.ID, err)
	}
}

// Many goroutines share a database, and use each model for the first time at the same time.
// All IDs differ, and each row has the ID of its struct.
func (k *Kind) parallel(t *testing.T, g *database) {
	pool := must1(t, g.real.DB)
	pool.SetMaxOpenConns(8)
	if !isPostgres(g) {
		pool.SetMaxOpenConns(1) // SQLite allows one writer at a time
	}
	g = with(t, g, gorm.Config{}, bindings(t)...) // a new GORM has parsed no models

	const rounds = 2
	var (
		mu     sync.Mutex
		things []thing
		people []*person
		owners []owner
	)
	var wg sync.WaitGroup
	for n := range 16 {
		wg.Go(func() {
			for r := range rounds {
				name := func(kind string, i int) string { return fmt.Sprintf("%s %d of round %d of %d", kind, i, r, n) }
				one := thing{Name: name("struct", 0)}
				slice := make([]thing, 20)
				for i := range slice {
					slice[i].Name = name("slice", i)
				}
				m := map[string]any{"name": name("map", 0)}
				several := []map[string]any{{"name": name("maps", 0)}, {"name": name("maps", 1)}}
				o := owner{Name: "x", Profile: &profile{}, Items: make([]item, 2)}
				ada := newGraph()
				ada.Clubs = nil // this GORM has no setup of their join table

				// A model that is also an association of other models.
				alone := picture{OwnerType: "nobody"}

				steps := []any{&one, &slice, m, several, &o, ada, &alone}
				for i := range steps {
					step, tx := steps[(i+n)%len(steps)], g
					if isMap(step) {
						tx = g.Model(&thing{})
					}
					if err := tx.Create(step).Error; err != nil {
						t.Errorf("%T: %v", step, err)
						return
					}
				}
				mu.Lock()
				things = append(append(append(append(things, one), slice...), collect(m)...), collect(several)...)
				people, owners = append(people, ada), append(owners, o)
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
