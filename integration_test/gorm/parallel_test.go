package gorm

import (
	"fmt"
	"sync"
	"testing"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/gormplugin"
)

// Many goroutines share a database, and use each model for the first time at the same time.
// All IDs differ, and each row has the ID of its struct.
func (k of[T, N]) parallel(t *testing.T, g *gorm.DB) {
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
func (k of[T, N]) parallelFirstUse(t *testing.T, g *gorm.DB) {
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
