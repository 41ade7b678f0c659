package gorm

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/gormplugin"
)

// Rows are found by their IDs in all the ways that GORM has.
func TestQuery(t *testing.T) { each(t, slices.Sorted(maps.Keys(clients)), suite.query) }

func (k of[T, N]) query(t *testing.T, g *gorm.DB) {
	k.migrateGraph(t, g)
	ada := k.newGraph()
	must(t, g.Create(ada).Error)
	a := k.in(ada)
	luigi, mary := k.in(&a.Team[0]), k.in(&a.Team[1])
	friend := k.in(a.Friends[0]).ID
	team := []T{luigi.ID, mary.ID}

	// One row by its ID, and none by another.
	other := k.ids(t, 1)[0]
	for name, by := range map[string]func(id T) *gorm.DB{
		"inline":         func(id T) *gorm.DB { return g.Where(id) },
		"inline pointer": func(id T) *gorm.DB { return g.Where(&id) },
		"condition":      func(id T) *gorm.DB { return g.Where("id = ?", id) },
		"pointer":        func(id T) *gorm.DB { return g.Where("id = ?", &id) },
		"named":          func(id T) *gorm.DB { return g.Where("id = @id", map[string]any{"id": id}) },
		"map":            func(id T) *gorm.DB { return g.Where(map[string]any{"id": id}) },
		"struct":         func(id T) *gorm.DB { return g.Where(k.byID(id)) },
		"foreign key":    func(id T) *gorm.DB { return g.Where("id in (select person_id from passports where person_id = ?)", id) },
		"IN with one":    func(id T) *gorm.DB { return g.Where("id IN ?", []T{id}) },
		"not":            func(id T) *gorm.DB { return g.Not("id <> ?", id) },
		"or":             func(id T) *gorm.DB { return g.Where("id = ?", id).Or("id = ?", id) },
		"tuple":          func(id T) *gorm.DB { return g.Where("(id, name) IN ?", [][]any{{id, "Ada"}}) },
		"comparison":     func(id T) *gorm.DB { return g.Where("id >= ? AND id <= ?", id, id) },
		"subquery": func(id T) *gorm.DB {
			return g.Where("id = (?)", g.Model(new(N)).Select("id").Where("id = ?", id))
		},
		"slice of pointers": func(id T) *gorm.DB { return g.Where("id IN ?", []*T{&id}) },
	} {
		var n N
		got := k.in(&n)
		if err := by(a.ID).First(&n).Error; err != nil || got.ID != a.ID || got.Name != "Ada" {
			t.Errorf("%s: got %v %s, %v, want %v", name, got.ID, got.Name, err, a.ID)
		}
		var none []N
		if err := by(other).Find(&none).Error; err != nil || len(none) > 0 {
			t.Errorf("%s: an ID that no row has: got %d rows, %v", name, len(none), err)
		}
	}
	for name, first := range map[string]func(dest *N) *gorm.DB{
		"First": func(p *N) *gorm.DB { return g.First(p, a.ID) },
		"Take":  func(p *N) *gorm.DB { return g.Take(p, "id = ?", a.ID) },
		"Find":  func(p *N) *gorm.DB { return g.Find(p, a.ID) },
		"set":   func(p *N) *gorm.DB { k.in(p).ID = a.ID; return g.First(p) },
	} {
		var n N
		got := k.in(&n)
		if err := first(&n).Error; err != nil || got.Name != "Ada" {
			t.Errorf("%s: got %v %s, %v, want %v", name, got.ID, got.Name, err, a.ID)
		}
	}

	// Several.
	for name, q := range map[string]*gorm.DB{
		"inline":       g.Where(team),
		"IN":           g.Where("id IN ?", team),
		"IN brackets":  g.Where("id IN (?)", team),
		"map":          g.Where(map[string]any{"id": team}),
		"not":          g.Where("manager_id = ?", a.ID).Not(map[string]any{"id": []T{a.ID}}),
		"by a pointer": g.Where("id IN ?", []*T{&team[0], &team[1]}),
		"Optional":     g.Where("manager_id = ?", luigi.ManagerID),
		"struct":       g.Where(k.newPerson(Person[T, N]{ManagerID: luigi.ManagerID})),
	} {
		var got []T
		if err := q.Model(new(N)).Order("name").Pluck("id", &got).Error; err != nil || !slices.Equal(got, team) {
			t.Errorf("%s: got %v, %v, want %v", name, got, err, team)
		}
	}
	var found []N
	if err := g.Order("name").Find(&found, team).Error; err != nil || len(found) != 2 || k.in(&found[0]).ID != team[0] {
		t.Errorf("Find by a slice: got %v, %v", found, err)
	}

	// Associations.
	n := new(N)
	got := k.in(n)
	must(t, g.Preload("Orders.Pictures").Preload("Company").Preload("Passport").Preload("Pictures").Preload("Detail").
		Preload("Manager").Preload("Team.Orders").Preload("Tags").Preload("Clubs").Preload("Friends").First(n, a.ID).Error)
	if got.Company == nil || got.Passport == nil || got.Detail == nil || got.Manager == nil ||
		len(got.Orders) != 2 || len(got.Pictures) != 2 || len(got.Team) != 2 || len(got.Tags) != 2 || len(got.Clubs) != 1 || len(got.Friends) != 2 {
		t.Errorf("Preload: got %+v", got)
	} else if got.Company.ID != a.Company.ID || got.Passport.ID != a.Passport.ID || got.Detail.ID != a.ID || k.in(got.Manager).ID != k.in(a.Manager).ID {
		t.Errorf("Preload: got company %v, passport %v, detail %v, manager %v", got.Company.ID, got.Passport.ID, got.Detail.ID, k.in(got.Manager).ID)
	}
	n = new(N)
	got = k.in(n)
	must(t, g.Joins("Company").Joins("Manager").Joins("Passport").First(n, "people.id = ?", a.ID).Error)
	if got.Company == nil || got.Company.ID != a.Company.ID || got.Manager == nil || k.in(got.Manager).Name != "Charles" || got.Passport == nil || got.Passport.Number != "1815" {
		t.Errorf("Joins: got %+v", got)
	}
	n = new(N)
	got = k.in(n)
	must(t, g.Joins("Company").Joins("Manager").First(n, "people.id = ?", friend).Error)
	if got.Company != nil || got.Manager != nil || !got.ManagerID.IsZero() {
		t.Errorf("Joins without partners: got %+v", got)
	}

	// Updates and deletions touch the rows meant, and no others.
	must(t, g.Model(k.byID(a.ID)).Update("name", "Ada L.").Error)
	must(t, g.Model(new(N)).Where("id IN ?", team).Update("manager_id", friend).Error)
	var count int64
	must(t, g.Model(new(N)).Where("name = ? or manager_id = ?", "Ada L.", friend).Count(&count).Error)
	if count != 3 {
		t.Errorf("updates reached %d rows, want 3", count)
	}
	left := func() (ids []T) {
		must(t, g.Model(&order[T]{}).Order("item").Pluck("id", &ids).Error)
		return ids
	}
	brass, cards, paper := a.Orders[1].ID, a.Orders[0].ID, luigi.Orders[0].ID
	if got := left(); !slices.Equal(got, []T{brass, cards, paper}) {
		t.Fatalf("got orders %v", got)
	}
	must(t, g.Delete(&order[T]{}, brass).Error)
	if got := left(); !slices.Equal(got, []T{cards, paper}) {
		t.Errorf("Delete by ID left %v", got)
	}
	must(t, g.Delete(&order[T]{ID: paper}).Error)
	if got := left(); !slices.Equal(got, []T{cards}) {
		t.Errorf("Delete of a struct left %v", got)
	}
	must(t, g.Delete(&order[T]{}, []T{cards, paper}).Error)
	if got := left(); len(got) > 0 {
		t.Errorf("Delete by a slice left %v", got)
	}
}

// The log shows an ID as the database does.
func TestLog(t *testing.T) { each(t, opposites, suite.log) }

func (k of[T, N]) log(t *testing.T, g *gorm.DB) {
	must(t, g.AutoMigrate(&thing[T]{}))
	r := newRecorder()
	g = g.Session(&gorm.Session{Logger: r})
	a := thing[T]{Name: "a"}
	must(t, g.Create(&a).Error)
	must(t, g.Find(&[]thing[T]{}, "id in ?", []T{a.ID}).Error)
	for _, kind := range []string{"INSERT", "SELECT"} {
		if s := r.with(kind); len(s) != 1 || !strings.Contains(s[0], k.Stored(a.ID)) {
			t.Errorf("got %q, want ID %s in it", s, k.Stored(a.ID))
		}
	}
}

// A window of time finds the rows minted in it, through the key alone.
func TestMintedBetween(t *testing.T) { each(t, opposites, suite.window) }

func (k of[T, N]) window(t *testing.T, g *gorm.DB) {
	if k.Layout == nil {
		return // IDs that don't order by time
	}
	must(t, g.AutoMigrate(&thing[T]{}))
	start := k.First.AddDate(2, 0, 0)
	var want []T
	for n := -3; n <= 3; n++ {
		for _, highest := range []bool{false, true} {
			id, err := k.At(start.Add(time.Duration(n)*k.Unit), func(largest int) int {
				if highest {
					return largest
				}
				return 0
			})
			must(t, err)
			must(t, g.Create(&thing[T]{ID: id}).Error)
			if n >= -1 && n < 2 {
				want = append(want, id)
			}
		}
	}
	var got []T
	must(t, g.Model(&thing[T]{}).Scopes(gormplugin.MintedBetween(k.Layout, "id", start.Add(-k.Unit), start.Add(2*k.Unit))).
		Order("id").Pluck("id", &got).Error)
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
