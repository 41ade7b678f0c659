package gorm

import (
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/sqltypes"
)

// GORM finds rows by their IDs with every kind of condition.
func (k of[T, N]) query(t *testing.T, g *gorm.DB) {
	ada := k.newGraph()
	must(t, g.Create(ada).Error)
	a := k.in(ada)
	luigi, mary := k.in(&a.Team[0]), k.in(&a.Team[1])
	friend := k.in(a.Friends[0]).ID
	team := []T{luigi.ID, mary.ID}

	// One row by its ID, and no row by another ID.
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
			t.Errorf("%s: unknown ID: got %d rows, %v, want none", name, len(none), err)
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

	// Updates and deletes affect only the matching rows.
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

// Conditions with NULL, lists, tuples and subqueries.
func (k of[T, N]) conditions(t *testing.T, g *gorm.DB) {
	ada := k.newGraph()
	must(t, g.Create(ada).Error)
	a := k.in(ada)
	luigi, mary, charles := k.in(&a.Team[0]), k.in(&a.Team[1]), k.in(a.Manager)
	team := []T{luigi.ID, mary.ID}
	var zero T

	for name, c := range map[string]struct {
		tx   *gorm.DB
		want []string // names
	}{
		"NULL":                     {g.Where("manager_id IS NULL"), []string{"Augustus", "Charles", "Michael"}},
		"NULL of a map":            {g.Where(map[string]any{"manager_id": nil}), []string{"Augustus", "Charles", "Michael"}},
		"not NULL":                 {g.Not(map[string]any{"manager_id": nil}), []string{"Ada", "Luigi", "Mary"}},
		"equal to NULL":            {g.Where("manager_id = ?", (*T)(nil)), nil},
		"equal to a zero Optional": {g.Where("manager_id = ?", sqltypes.Optional[T]{}), nil},
		"IN nothing":               {g.Where("id IN ?", []T{}), nil},
		"IN with a zero ID":        {g.Where("id IN ?", []T{zero, mary.ID}), []string{"Mary"}},
		"IN with NULL":             {g.Where("id IN ?", []*T{nil, &mary.ID}), []string{"Mary"}},
		"IN with Optionals":        {g.Where("id IN ?", []sqltypes.Optional[T]{{}, {ID: mary.ID}}), []string{"Mary"}},
		"NOT IN":                   {g.Where("id NOT IN ?", []T{a.ID, charles.ID, luigi.ID}), []string{"Augustus", "Mary", "Michael"}},
		"Null":                     {g.Where("manager_id = ?", sql.Null[T]{V: a.ID, Valid: true}), []string{"Luigi", "Mary"}},
		"structs":                  {g.Where([]N{*k.byID(mary.ID)}), []string{"Mary"}},
		"struct's named fields":    {g.Where(k.newPerson(Person[T, N]{Name: "Mary", ManagerID: sqltypes.OptionalOf(a.ID)}), "manager_id"), []string{"Luigi", "Mary"}},
		"named argument":           {g.Where("id = @id OR manager_id = @id", sql.Named("id", a.ID)), []string{"Ada", "Luigi", "Mary"}},
		"named slice":              {g.Where("id IN @ids", map[string]any{"ids": team}), []string{"Luigi", "Mary"}},
		"named fields":             {g.Where("id = @ID OR manager_id = @ID", struct{ ID T }{a.ID}), []string{"Ada", "Luigi", "Mary"}},
		"expression":               {g.Where(clause.IN{Column: "id", Values: []any{luigi.ID, &mary.ID}}), []string{"Luigi", "Mary"}},
		"tuples":                   {g.Where("(id, manager_id) IN ?", [][]any{{luigi.ID, a.ID}, {mary.ID, charles.ID}}), []string{"Luigi"}},
		"subquery":                 {g.Where("id IN (?)", g.Model(&order[T]{}).Select("person_id").Where("person_id <> ?", a.ID)), []string{"Luigi"}},
		"subquery's source":        {g.Table("(?) as people", g.Model(new(N)).Where("manager_id = ?", a.ID)), []string{"Luigi", "Mary"}},
		"EXISTS":                   {g.Where("EXISTS (?)", g.Table("orders").Select("1").Where("orders.person_id = people.id AND people.id <> ?", a.ID)), []string{"Luigi"}},
		"order by ID":              {g.Where("id IN ?", team).Clauses(clause.OrderBy{Expression: clause.Expr{SQL: "CASE WHEN id = ? THEN 0 ELSE 1 END", Vars: []any{mary.ID}}}), []string{"Mary", "Luigi"}},
		"Raw":                      {g.Raw("select * from people where id in ? or id = ? order by name", team, charles.ID), []string{"Charles", "Luigi", "Mary"}},
		"Raw, named":               {g.Raw("select * from people where manager_id = @boss order by name", sql.Named("boss", &a.ID)), []string{"Luigi", "Mary"}},
	} {
		if name != "order by ID" && !strings.HasPrefix(name, "Raw") {
			c.tx = c.tx.Order("name")
		}
		var people []N
		var got []string
		err := c.tx.Find(&people).Error
		for i := range people {
			got = append(got, k.in(&people[i]).Name)
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, c.want)
		}
	}

	// Groups.
	type counted struct {
		PersonID T
		Orders   int
	}
	var groups []counted
	must(t, g.Model(&order[T]{}).Select("person_id, count(*) as orders").Group("person_id").
		Having("person_id IN ?", []T{a.ID, luigi.ID, charles.ID}).Order("orders").Find(&groups).Error)
	if want := []counted{{luigi.ID, 1}, {a.ID, 2}}; !slices.Equal(groups, want) {
		t.Errorf("Group: got %v, want %v", groups, want)
	}
	var persons []T
	must(t, g.Model(&order[T]{}).Distinct("person_id").Pluck("person_id", &persons).Error)
	if len(persons) != 2 || !slices.Contains(persons, a.ID) || !slices.Contains(persons, luigi.ID) {
		t.Errorf("Distinct: got %v, want %v and %v", persons, a.ID, luigi.ID)
	}
	var count int64
	must(t, g.Model(&order[T]{}).Distinct("person_id").Count(&count).Error)
	if count != 2 {
		t.Errorf("Count of different IDs: got %d, want 2", count)
	}

	// Exec.
	for _, c := range []struct {
		name string
		tx   *gorm.DB
		want int64
	}{
		{"slice", g.Exec("update people set manager_id = ? where id in ?", &charles.ID, team), 2},
		{"named", g.Exec("update people set company_id = @company where manager_id = @boss", map[string]any{"company": a.CompanyID, "boss": charles.ID}), 3},
		{"NULL", g.Exec("update people set company_id = ? where id = ?", (*T)(nil), mary.ID), 1},
		{"mixed", g.Exec("update people set company_id = ? where id in ? and manager_id = @boss", sqltypes.Optional[T]{}, team, sql.Named("boss", charles.ID)), 2},
	} {
		if c.tx.Error != nil || c.tx.RowsAffected != c.want {
			t.Errorf("Exec, %s: got %d rows, %v, want %d", c.name, c.tx.RowsAffected, c.tx.Error, c.want)
		}
	}
	must(t, g.Model(new(N)).Where("company_id IS NULL AND manager_id = ?", charles.ID).Count(&count).Error)
	if count != 2 {
		t.Errorf("Exec: got %d rows without a company, want 2", count)
	}

	// A zero ID is no condition, and an update or delete needs a condition.
	for name, c := range map[string]*gorm.DB{
		"Delete":            g.Delete(new(N)),
		"Delete of a slice": g.Delete(&[]N{*new(N)}),
		"Update":            g.Model(new(N)).Update("name", "x"),
		"Updates":           g.Model(k.byID(zero)).Updates(map[string]any{"name": "x"}),
	} {
		if !errors.Is(c.Error, gorm.ErrMissingWhereClause) {
			t.Errorf("%s by a zero ID: got %d rows, %v, want %v", name, c.RowsAffected, c.Error, gorm.ErrMissingWhereClause)
		}
	}
	// Structs with a key or other fields are conditions.
	if tx := g.Where(&order[T]{PersonID: luigi.ID}).Delete(&order[T]{}); tx.Error != nil || tx.RowsAffected != 1 {
		t.Errorf("Delete by a struct: got %d rows, %v, want 1", tx.RowsAffected, tx.Error)
	}
	if tx := g.Delete(&a.Orders); tx.Error != nil || tx.RowsAffected != 2 {
		t.Errorf("Delete of a slice: got %d rows, %v, want 2", tx.RowsAffected, tx.Error)
	}

	if !isPostgres(g) {
		return // SQLite has no row locks
	}
	must(t, g.Transaction(func(tx *gorm.DB) error {
		must(t, tx.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}).First(new(N), a.ID).Error)
		now := g.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate, Options: clause.LockingOptionsNoWait})
		if err := now.First(new(N), a.ID).Error; err == nil {
			t.Error("the row isn't locked")
		}
		return g.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate, Options: clause.LockingOptionsNoWait}).First(new(N), mary.ID).Error
	}))
}

// Preload and Joins load the associations that match their conditions.
func (k of[T, N]) loading(t *testing.T, g *gorm.DB) {
	ada := k.newGraph()
	must(t, g.Create(ada).Error)
	a := k.in(ada)
	mary, friend := k.in(&a.Team[1]), k.in(a.Friends[1])
	brass := a.Orders[1].ID

	// The numbers of Ada's orders, team members, friends, clubs and pictures.
	for name, c := range map[string]struct {
		tx   *gorm.DB
		want [5]int
	}{
		"nothing":           {g, [5]int{}},
		"all":               {g.Preload(clause.Associations), [5]int{2, 2, 2, 1, 2}},
		"text":              {g.Preload("Orders", "id = ?", brass), [5]int{1}},
		"slice":             {g.Preload("Orders", "id IN ?", []T{brass, mary.ID}), [5]int{1}},
		"not":               {g.Preload("Orders", "id NOT IN (?)", []T{brass}), [5]int{1}},
		"function":          {g.Preload("Orders", func(tx *gorm.DB) *gorm.DB { return tx.Where(&order[T]{ID: brass}) }), [5]int{1}},
		"of its own kind":   {g.Preload("Team", "id = ?", mary.ID), [5]int{0, 1}},
		"many to many":      {g.Preload("Friends", "id = ?", friend.ID), [5]int{0, 0, 1}},
		"own join table":    {g.Preload("Clubs", "id <> ?", a.Clubs[0].ID), [5]int{}},
		"polymorphic":       {g.Preload("Pictures", map[string]any{"id": a.Pictures[0].ID}), [5]int{0, 0, 0, 0, 1}},
		"another's ID":      {g.Preload("Orders", "person_id = ?", mary.ID), [5]int{}},
		"scope of a window": {g.Preload("Orders", func(tx *gorm.DB) *gorm.DB { return gormplugin.PageBefore("", *new(T))(tx).Limit(1) }), [5]int{1}},
	} {
		var people []N
		if err := c.tx.Find(&people, []T{a.ID, friend.ID}).Error; err != nil || len(people) != 2 {
			t.Errorf("Preload, %s: got %d, %v, want 2", name, len(people), err)
			continue
		}
		for i := range people {
			p := k.in(&people[i])
			if got := [5]int{len(p.Orders), len(p.Team), len(p.Friends), len(p.Clubs), len(p.Pictures)}; p.ID == a.ID && got != c.want || p.ID != a.ID && got != [5]int{} {
				t.Errorf("Preload, %s: %s has %v, want %v for Ada", name, p.Name, got, c.want)
			}
		}
	}
	n := new(N)
	must(t, g.Preload("Team", func(tx *gorm.DB) *gorm.DB { return tx.Order("name") }).Preload("Team.Orders", "item <> ?", "x").
		Preload("Team.Manager.Orders.Pictures").First(n, a.ID).Error)
	if p := k.in(n); len(p.Team) != 2 || len(k.in(&p.Team[0]).Orders) != 1 || len(k.in(&p.Team[1]).Orders) != 0 || len(k.in(k.in(&p.Team[1]).Manager).Orders) != 2 {
		t.Errorf("nested Preload: got %+v", p)
	}
	var g1 []N
	var err error
	if g1, err = gorm.G[N](g).Preload("Orders", func(db gorm.PreloadBuilder) error { db.Where("id = ?", brass); return nil }).Where("id = ?", a.ID).Find(t.Context()); err != nil || len(g1) != 1 || len(k.in(&g1[0]).Orders) != 1 {
		t.Errorf("G.Preload: got %v, %v", g1, err)
	}

	// Joins omits associations that don't match. InnerJoins omits the row, too.
	own, other := a.Company.ID, mary.ID
	for name, c := range map[string]struct {
		tx      *gorm.DB
		rows    int
		company bool
	}{
		"struct":        {g.Joins("Company", g.Where(&company[T]{ID: own})), 1, true},
		"other struct":  {g.Joins("Company", g.Where(&company[T]{ID: other})), 1, false},
		"map":           {g.Joins("Company", g.Where(map[string]any{"id": []T{own, other}})), 1, true},
		"other map":     {g.Joins("Company", g.Where(map[string]any{"id": []T{other}})), 1, false},
		"text":          {g.Joins("Company", g.Where(`"Company"."id" = ?`, &own)), 1, true},
		"not":           {g.Joins("Company", g.Not(&company[T]{ID: own})), 1, false},
		"inner":         {g.InnerJoins("Company", g.Where(&company[T]{ID: own})), 1, true},
		"inner, other":  {g.InnerJoins("Company", g.Where(&company[T]{ID: other})), 0, false},
		"where":         {g.Joins("Company").Where(`"Company"."id" = ?`, own), 1, true},
		"where, other":  {g.Joins("Company").Where(`"Company"."id" <> ?`, own), 0, false},
		"SQL":           {g.Joins("join orders o on o.person_id = people.id and o.id = ?", brass), 1, false},
		"SQL, other":    {g.Joins("join orders o on o.person_id = people.id and o.id in ?", []T{own, other}), 0, false},
		"SQL, subquery": {g.Joins("join (?) o on o.person_id = people.id", g.Model(&order[T]{}).Where("id = ?", brass)), 1, false},
		"through":       {g.Joins("Manager").Joins("Manager.Company").Joins("Company"), 1, true},
	} {
		var people []N
		if err := c.tx.Find(&people, "people.id = ?", a.ID).Error; err != nil || len(people) != c.rows {
			t.Errorf("Joins, %s: got %d rows, %v, want %d", name, len(people), err, c.rows)
			continue
		}
		for i := range people {
			p := k.in(&people[i])
			if p.ID != a.ID || (p.Company != nil) != c.company || c.company && p.Company.ID != own {
				t.Errorf("Joins, %s: got %v with company %+v, want %v", name, p.ID, p.Company, c.company)
			}
		}
	}
}

// IDs can be scanned into every kind of destination.
func (k of[T, N]) scanning(t *testing.T, g *gorm.DB) {
	ada := k.newGraph()
	must(t, g.Create(ada).Error)
	a := k.in(ada)
	boss := k.in(a.Manager).ID
	// Ada has a manager, Charles has none.
	both := func() *gorm.DB { return g.Model(new(N)).Where("id IN ?", []T{a.ID, boss}).Order("name") }

	var (
		ids       []T
		pointers  []*T
		nulls     []sql.Null[T]
		optionals []sqltypes.Optional[T]
	)
	must(t, both().Pluck("id", &ids).Error)
	must(t, both().Pluck("id", &pointers).Error)
	must(t, both().Pluck("manager_id", &nulls).Error)
	must(t, both().Pluck("manager_id", &optionals).Error)
	if !slices.Equal(ids, []T{a.ID, boss}) {
		t.Errorf("Pluck: got %v, want %v and %v", ids, a.ID, boss)
	}
	if len(pointers) != 2 || *pointers[0] != a.ID || *pointers[1] != boss {
		t.Errorf("Pluck of pointers: got %v, want %v and %v", pointers, a.ID, boss)
	}
	if !slices.Equal(nulls, []sql.Null[T]{{V: boss, Valid: true}, {}}) {
		t.Errorf("Pluck of sql.Null: got %v, want %v and NULL", nulls, boss)
	}
	if !slices.Equal(optionals, []sqltypes.Optional[T]{{ID: boss}, {}}) {
		t.Errorf("Pluck of Optionals: got %v, want %v and none", optionals, boss)
	}
	// GORM treats the elements of both slices as T, so pointers don't accept NULL here.
	for _, dest := range []any{&ids, &pointers} {
		if err := both().Pluck("manager_id", dest).Error; !errors.Is(err, idtype.ErrNull) {
			t.Errorf("Pluck of NULL into %T: got %v, want %v", dest, err, idtype.ErrNull)
		}
	}

	// A single value. A Sno is an array, which GORM mistakes for a list of rows. A Sno in a
	// struct works.
	var (
		one T
		opt sqltypes.Optional[T]
	)
	err := both().Select("manager_id").Where("name = ?", "Ada").Scan(&one).Error
	if isArray := reflect.TypeFor[T]().Kind() == reflect.Array; isArray && (err == nil || !one.IsZero()) || !isArray && (err != nil || one != boss) {
		t.Errorf("Scan into %T: got %v, %v", one, one, err)
	}
	if err := both().Select("manager_id").Where("name = ?", "Ada").Scan(&opt).Error; err != nil || opt.ID != boss {
		t.Errorf("Scan into %T: got %v, %v, want %v", opt, opt, err, boss)
	}
	if err := g.Raw("select id from people where name = ?", "Ada").Row().Scan(&one); err != nil || one != a.ID {
		t.Errorf("Row: got %v, %v, want %v", one, err, a.ID)
	}
	var nobody sql.Null[T]
	if err := both().Select("manager_id").Where("name = ?", "Charles").Scan(&nobody).Error; err != nil || nobody.Valid {
		t.Errorf("Scan of NULL: got %v, %v", nobody, err)
	}

	// Structs of other fields.
	type pair struct {
		Who     T
		Manager *T
		Company sql.Null[T]
		Opt     sqltypes.Optional[T]
		Written sqltypes.Text[T]
	}
	var pairs []pair
	must(t, both().Select("id as who, manager_id as manager, company_id as company, manager_id as opt, ? as written", idtest.ColumnText(sqltypes.TextOf(a.ID))).Scan(&pairs).Error)
	if len(pairs) != 2 || pairs[0].Who != a.ID || *pairs[0].Manager != boss || pairs[0].Company.V != a.Company.ID || pairs[0].Opt.ID != boss || pairs[0].Written.ID != a.ID ||
		pairs[1].Who != boss || pairs[1].Manager != nil || pairs[1].Company.Valid || !pairs[1].Opt.IsZero() {
		t.Errorf("Scan into structs: got %+v", pairs)
	}
	// GORM reads NULL as zero into a field that can't be NULL.
	var zeros []struct{ ManagerID T }
	if err := both().Select("manager_id").Find(&zeros).Error; err != nil || len(zeros) != 2 || zeros[0].ManagerID != boss || !zeros[1].ManagerID.IsZero() {
		t.Errorf("NULL into a field: got %v, %v, want %v and zero", zeros, err, boss)
	}

	// A map gets the driver's value, not the Go type.
	stored := func(id T) any {
		if k.Column == "uuid" {
			return k.Stored(id)
		}
		v, err := id.Value()
		must(t, err)
		return v
	}
	for name, tx := range map[string]*gorm.DB{
		"model": g.Model(new(N)),
		"table": g.Table("people"),
		"Raw":   g.Raw("select * from people order by name"),
	} {
		if name != "Raw" {
			tx = tx.Order("name")
		}
		var rows []map[string]any
		must(t, tx.Find(&rows).Error)
		if len(rows) != 6 || rows[0]["id"] != stored(a.ID) || rows[0]["manager_id"] != stored(boss) || rows[0]["company_id"] != stored(a.Company.ID) || rows[2]["manager_id"] != nil {
			t.Errorf("maps, %s: got %#v, want IDs such as %#v", name, rows, stored(a.ID))
		}
	}
	row := map[string]any{}
	if err := g.Model(new(N)).Take(&row, "id = ?", a.ID).Error; err != nil || row["id"] != stored(a.ID) {
		t.Errorf("map: got %v, %v", row, err)
	}
	// The value in the map finds the row.
	var count int64
	must(t, g.Model(new(N)).Where(map[string]any{"id": row["id"]}).Count(&count).Error)
	if count != 1 {
		t.Errorf("by the ID in a map: got %d rows, want 1", count)
	}

	// Single rows and batches.
	rows, err := both().Rows()
	must(t, err)
	defer rows.Close()
	var scanned []T
	for rows.Next() {
		n := new(N)
		must(t, g.ScanRows(rows, n))
		scanned = append(scanned, k.in(n).ID)
	}
	must(t, rows.Err())
	if !slices.Equal(scanned, []T{a.ID, boss}) {
		t.Errorf("ScanRows: got %v, want %v and %v", scanned, a.ID, boss)
	}
	var batch []N
	seen, batches := map[T]bool{}, 0
	must(t, g.FindInBatches(&batch, 2, func(tx *gorm.DB, _ int) error {
		batches++
		for i := range batch {
			seen[k.in(&batch[i]).ID] = true
			k.in(&batch[i]).Name += "."
		}
		return tx.Save(&batch).Error
	}).Error)
	must(t, g.Model(new(N)).Where("name like ?", "%_.").Where("name not like ?", "%..").Count(&count).Error)
	if len(seen) != 6 || batches != 3 || count != 6 {
		t.Errorf("FindInBatches: got %d IDs in %d batches, and saved %d rows, want 6, 3 and 6", len(seen), batches, count)
	}
}

// Updates set foreign keys, also to NULL.
func (k of[T, N]) changes(t *testing.T, g *gorm.DB) {
	one, two := company[T]{Name: "one"}, company[T]{Name: "two"}
	must(t, g.Create([]*company[T]{&one, &two}).Error)
	boss, next := k.named("boss"), k.named("next")
	must(t, g.Create([]*N{boss, next}).Error)
	b, n := k.in(boss).ID, k.in(next).ID

	type change struct {
		do      func(ada *N, tx *gorm.DB) *gorm.DB
		company *T
		manager T // zero means NULL
	}
	in := k.in
	for name, c := range map[string]change{
		"struct": {func(_ *N, tx *gorm.DB) *gorm.DB {
			return tx.Updates(k.newPerson(Person[T, N]{CompanyID: &two.ID, ManagerID: sqltypes.OptionalOf(n)}))
		}, &two.ID, n},
		"struct with zeros": {func(_ *N, tx *gorm.DB) *gorm.DB {
			return tx.Updates(k.newPerson(Person[T, N]{Name: "x"}))
		}, &one.ID, b},
		"selected zeros": {func(_ *N, tx *gorm.DB) *gorm.DB {
			return tx.Select("CompanyID", "ManagerID").Updates(new(N))
		}, nil, *new(T)},
		"map": {func(_ *N, tx *gorm.DB) *gorm.DB {
			return tx.Updates(map[string]any{"company_id": two.ID, "manager_id": n})
		}, &two.ID, n},
		"map of pointers": {func(_ *N, tx *gorm.DB) *gorm.DB {
			return tx.Updates(map[string]any{"company_id": &two.ID, "manager_id": &n})
		}, &two.ID, n},
		"map of wrapped IDs": {func(_ *N, tx *gorm.DB) *gorm.DB {
			return tx.Updates(map[string]any{"CompanyID": sql.Null[T]{V: two.ID, Valid: true}, "ManagerID": sqltypes.OptionalOf(n)})
		}, &two.ID, n},
		"map of nil": {func(_ *N, tx *gorm.DB) *gorm.DB {
			return tx.Updates(map[string]any{"company_id": nil, "manager_id": nil})
		}, nil, *new(T)},
		"map of nil pointers": {func(_ *N, tx *gorm.DB) *gorm.DB {
			return tx.Updates(map[string]any{"company_id": (*T)(nil), "manager_id": (*T)(nil)})
		}, nil, *new(T)},
		"map of wrapped NULL": {func(_ *N, tx *gorm.DB) *gorm.DB {
			return tx.Updates(map[string]any{"company_id": sql.Null[T]{}, "manager_id": sqltypes.Optional[T]{}})
		}, nil, *new(T)},
		"Update":       {func(_ *N, tx *gorm.DB) *gorm.DB { return tx.Update("company_id", two.ID) }, &two.ID, b},
		"Update, nil":  {func(_ *N, tx *gorm.DB) *gorm.DB { return tx.Update("company_id", (*T)(nil)) }, nil, b},
		"UpdateColumn": {func(_ *N, tx *gorm.DB) *gorm.DB { return tx.UpdateColumn("manager_id", sqltypes.OptionalOf(n)) }, &one.ID, n},
		"UpdateColumns": {func(_ *N, tx *gorm.DB) *gorm.DB {
			return tx.UpdateColumns(k.newPerson(Person[T, N]{CompanyID: &two.ID}))
		}, &two.ID, b},
		"expression": {func(_ *N, tx *gorm.DB) *gorm.DB {
			return tx.Update("manager_id", gorm.Expr("CASE WHEN manager_id = ? THEN ? ELSE manager_id END", b, n))
		}, &one.ID, n},
		"subquery": {func(_ *N, tx *gorm.DB) *gorm.DB {
			return tx.Update("company_id", g.Model(&company[T]{}).Select("id").Where("id = ?", two.ID))
		}, &two.ID, b},
		"Save": {func(ada *N, _ *gorm.DB) *gorm.DB {
			in(ada).CompanyID, in(ada).ManagerID = nil, sqltypes.OptionalOf(n)
			return g.Save(ada)
		}, nil, n},
		"Save of associations": {func(ada *N, _ *gorm.DB) *gorm.DB {
			in(ada).Company, in(ada).Manager = &two, next
			return g.Save(ada)
		}, &two.ID, n},
	} {
		// Use separate variables, because GORM writes through the pointer of a foreign key.
		first, second := one.ID, one.ID
		ada := k.newPerson(Person[T, N]{Name: "Ada", CompanyID: &first, ManagerID: sqltypes.OptionalOf(b)})
		bob := k.newPerson(Person[T, N]{Name: "Bob", CompanyID: &second, ManagerID: sqltypes.OptionalOf(b)})
		must(t, g.Create([]*N{ada, bob}).Error)
		id := in(ada).ID
		if tx := c.do(ada, g.Model(k.byID(id))); tx.Error != nil || tx.RowsAffected != 1 {
			t.Errorf("%s: %d rows, %v", name, tx.RowsAffected, tx.Error)
		}
		for who, want := range map[T]change{id: c, in(bob).ID: {company: &one.ID, manager: b}} {
			q := g.Model(new(N)).Where("id = ?", who)
			if want.company == nil {
				q = q.Where("company_id IS NULL")
			} else {
				q = q.Where("company_id = ?", *want.company)
			}
			if want.manager.IsZero() {
				q = q.Where("manager_id IS NULL")
			} else {
				q = q.Where("manager_id = ?", want.manager)
			}
			var count int64
			if err := q.Count(&count).Error; err != nil || count != 1 {
				row := new(N)
				must(t, g.First(row, who).Error)
				t.Errorf("%s: got %+v, %v, want company %v and manager %v", name, in(row), err, want.company, want.manager)
			}
		}
		if in(ada).ID != id {
			t.Errorf("%s: the ID became %v, want %v", name, in(ada).ID, id)
		}
		must(t, g.Delete([]*N{ada, bob}).Error)
	}
}

// Association finds, counts, replaces and deletes associations by their IDs.
func (k of[T, N]) associations(t *testing.T, g *gorm.DB) {
	ada, grace := k.newGraph(), k.newGraph() // Grace's associations must not change
	must(t, g.Create([]*N{ada, grace}).Error)
	a, o := k.in(ada), k.in(grace)
	of := func(name string) *gorm.Association { return g.Model(ada).Association(name) }
	count := func(what, from string, want int) {
		t.Helper()
		var got int
		must(t, g.Raw("select count(*) from "+from).Scan(&got).Error)
		if got != want {
			t.Errorf("%s: got %d rows of %s, want %d", what, got, from, want)
		}
	}

	for name, want := range map[string]int64{"Company": 1, "Passport": 1, "Orders": 2, "Pictures": 2, "Detail": 1, "Manager": 1, "Team": 2, "Tags": 2, "Clubs": 1, "Friends": 2} {
		if got := of(name).Count(); got != want {
			t.Errorf("Count of %s: got %d, want %d", name, got, want)
		}
		if got := g.Model([]*N{ada, grace}).Association(name).Count(); got != 2*want {
			t.Errorf("Count of both's %s: got %d, want %d", name, got, 2*want)
		}
	}
	var (
		orders  []order[T]
		friends []N
		tags    []tag[T]
		firm    company[T]
	)
	if err := of("Orders").Find(&orders, "id = ?", a.Orders[1].ID); err != nil || len(orders) != 1 || orders[0].ID != a.Orders[1].ID {
		t.Errorf("Find of orders: got %v, %v", orders, err)
	}
	if err := of("Friends").Find(&friends); err != nil || len(friends) != 2 {
		t.Errorf("Find of friends: got %v, %v", friends, err)
	}
	if err := of("Tags").Find(&tags, []T{a.Tags[0].ID, o.Tags[0].ID}); err != nil || len(tags) != 1 || tags[0].ID != a.Tags[0].ID {
		t.Errorf("Find of tags: got %v, %v", tags, err)
	}
	if err := of("Company").Find(&firm); err != nil || firm.ID != a.Company.ID {
		t.Errorf("Find of the company: got %v, %v", firm, err)
	}

	// Belongs to.
	fresh := company[T]{Name: "fresh"}
	must(t, of("Company").Replace(&fresh))
	if fresh.ID.IsZero() || *a.CompanyID != fresh.ID {
		t.Errorf("Replace of the company: got %v and %v", fresh.ID, a.CompanyID)
	}
	count("Replace", "people p join companies c on c.id = p.company_id where p.name = 'Ada' and c.name = 'fresh'", 1)
	must(t, of("Company").Delete(&fresh))
	count("Delete", "people where name = 'Ada' and company_id is null", 1)
	must(t, of("Manager").Clear())
	count("Clear", "people where name = 'Ada' and manager_id is null", 1)
	count("Clear", "people where name = 'Ada' and company_id is not null and manager_id is not null", 1)

	// Has one and has many. Removed rows stay, with a NULL foreign key.
	must(t, of("Passport").Replace(&passport[T]{Number: "fresh"}))
	if a.Passport.ID.IsZero() || a.Passport.PersonID != a.ID {
		t.Errorf("Replace of the passport: got %+v", a.Passport)
	}
	count("Replace", "passports where person_id is null", 1)
	brass := a.Orders[1]
	must(t, of("Orders").Delete(&order[T]{ID: brass.ID}))
	if len(a.Orders) != 1 || a.Orders[0].ID == brass.ID {
		t.Errorf("Delete of an order: left %v", a.Orders)
	}
	count("Delete", "orders where person_id is null and item = 'brass'", 1)
	var gone order[T]
	if err := g.First(&gone, brass.ID).Error; err != nil || !gone.PersonID.IsZero() {
		t.Errorf("removed order: got %+v, %v, want no person", gone, err)
	}
	must(t, of("Orders").Replace([]order[T]{{Item: "silk"}, {ID: brass.ID, Item: "brass"}}))
	if len(a.Orders) != 2 || a.Orders[0].ID.IsZero() || a.Orders[1].ID != brass.ID || a.Orders[0].PersonID != a.ID || a.Orders[1].PersonID != a.ID {
		t.Errorf("Replace of the orders: got %+v", a.Orders)
	}
	count("Replace", "orders where person_id is null and item = 'cards'", 1)
	must(t, of("Pictures").Unscoped().Delete(a.Pictures[:1]))
	must(t, of("Orders").Unscoped().Clear())
	must(t, of("Team").Clear())
	count("Clear", "people where manager_id is null and name in ('Luigi', 'Mary')", 2)
	// Grace has 3 orders and 3 pictures, one of them of an order. The cards have no person.
	count("Unscoped", "orders", 3+1+1)
	count("Unscoped", "pictures", 3+2)

	// Many to many.
	poet := a.Tags[1]
	must(t, of("Tags").Delete(&tag[T]{ID: a.Tags[0].ID}))
	must(t, of("Tags").Append(&tag[T]{Name: "third"}, o.Tags[0]))
	if len(a.Tags) != 3 || a.Tags[0].ID != poet.ID || a.Tags[1].ID.IsZero() {
		t.Errorf("Append of tags: got %v", a.Tags)
	}
	must(t, of("Tags").Replace(poet))
	must(t, of("Clubs").Replace(&club[T]{Name: "new"}, o.Clubs[0]))
	must(t, of("Friends").Clear())
	for name, want := range map[string]int{"Tags": 1, "Clubs": 2, "Friends": 0} {
		if n := of(name).Count(); n != int64(want) {
			t.Errorf("%s: %d left, want %d", name, n, want)
		}
	}
	count("left", "person_tags", 2+1)
	count("left", "memberships", 1+2)
	count("left", "friendships", 2)
	count("the rows stay", "tags", 5)
	var ids []T
	must(t, g.Model(&membership[T]{}).Pluck("id", &ids).Error)
	slices.SortFunc(ids, T.Compare)
	if ids = slices.Compact(ids); len(ids) != 3 || slices.Contains(ids, *new(T)) {
		t.Errorf("IDs of memberships = %v, want 3", ids)
	}

	// Append gives IDs to new rows in every kind of association.
	image, pass, grown := picture[T]{File: "new"}, passport[T]{Number: "new"}, club[T]{Name: "grown"}
	for name, row := range map[string]any{
		"Orders": map[string]any{"item": "new"}, "Pictures": &image, "Passport": &pass, "Clubs": &grown, "Friends": k.named("new"), "Manager": k.named("chief"),
	} {
		must(t, g.Model(grace).Association(name).Append(row))
	}
	for _, row := range []string{
		"orders j on j.person_id = p.id and j.item = 'new'", "pictures j on j.owner_id = p.id and j.owner_type = 'people' and j.file = 'new'",
		"passports j on j.person_id = p.id and j.number = 'new'", "people j on j.id = p.manager_id and j.name = 'chief'",
		"memberships j on j.person_id = p.id join clubs c on c.id = j.club_id and c.name = 'grown'",
		"friendships j on j.person_id = p.id join people f on f.id = j.friend_id and f.name = 'new'",
	} {
		count("Append", "people p join "+row, 1)
	}
	for row, want := range map[string]T{"pictures where file = 'new'": image.ID, "passports where number = 'new'": pass.ID, "clubs where name = 'grown'": grown.ID} {
		var got []T
		must(t, g.Raw("select id from "+row).Scan(&got).Error)
		if !slices.Equal(got, []T{want}) {
			t.Errorf("Append: %s: IDs = %v, want %v as in the struct", row, got, want)
		}
	}
	for _, table := range []string{"orders", "pictures", "passports", "people", "clubs", "memberships"} {
		var zeros int64
		must(t, g.Table(table).Where("id = ?", *new(T)).Count(&zeros).Error)
		if zeros != 0 {
			t.Errorf("Append: a row of %s has no ID", table)
		}
	}
}

// Prepared statements work with IDs repeatedly.
func (k of[T, N]) prepared(t *testing.T, g *gorm.DB) {
	p := g.Session(&gorm.Session{PrepareStmt: true})
	var all []thing[T]
	for i := range 3 {
		a, b, gone := thing[T]{Name: fmt.Sprint("a", i)}, thing[T]{Name: fmt.Sprint("b", i)}, thing[T]{}
		must(t, p.Create([]*thing[T]{&a, &b}).Error)
		must(t, p.Create(&gone).Error)
		var found []thing[T]
		if err := p.Order("name").Find(&found, "id IN ?", []T{b.ID, a.ID}).Error; err != nil || !slices.Equal(found, []thing[T]{a, b}) {
			t.Errorf("Find: got %v, %v, want %v and %v", found, err, a, b)
		}
		for _, id := range []any{a.ID, &a.ID, sql.Null[T]{V: a.ID, Valid: true}, sqltypes.OptionalOf(a.ID)} {
			var one thing[T]
			if err := p.Take(&one, "id = ?", id).Error; err != nil || one != a {
				t.Errorf("Take by a %T: got %v, %v, want %v", id, one, err, a)
			}
		}
		if err := p.Take(&thing[T]{}, "id = ?", (*T)(nil)).Error; !errors.Is(err, gorm.ErrRecordNotFound) {
			t.Errorf("Take by NULL: %v", err)
		}
		a.Name += "!"
		must(t, p.Save(&a).Error)
		must(t, p.Model(&b).Update("name", b.Name).Error)
		must(t, p.Delete(&thing[T]{}, gone.ID).Error)
		all = append(all, a, b)
	}
	k.agree(t, p, all)
	must(t, p.Transaction(func(tx *gorm.DB) error {
		one := thing[T]{Name: "in a transaction"}
		must(t, tx.Create(&one).Error)
		all = append(all, one)
		return tx.First(&thing[T]{}, one.ID).Error
	}))
	k.agree(t, g, all)
}

// GORM on a pgxpool.Pool returns all connections, which have the codec, to the pool.
func TestPool(t *testing.T) {
	pgtest.Each(t, func(t *testing.T, db *pgtest.DB) {
		g := db.GORM(t, &gorm.Config{PrepareStmt: true}, clients["pool"]...)
		must(t, g.Use(gormplugin.New(gormplugin.For(must1(t, idtest.Sno.NewGenerator)))))
		must(t, g.AutoMigrate(&thing[idtype.Sno]{}))
		a := thing[idtype.Sno]{Name: "a"}
		must(t, g.Create(&a).Error)
		var found thing[idtype.Sno]
		if err := g.First(&found, a.ID).Error; err != nil || found != a {
			t.Errorf("got %v, %v, want %v", found, err, a)
		}
		sqlDB, err := g.DB()
		must(t, err)
		if s := sqlDB.Stats(); s.Idle != 0 || s.InUse != 0 {
			t.Errorf("got %+v, want all connections back in the pool", s)
		}
		// With the codec, storing a Sno as text by accident is an error.
		var text string
		if err := sqlDB.QueryRow("select $1::text", a.ID).Scan(&text); err == nil || !strings.Contains(err.Error(), "sqltypes.SnoText") {
			t.Errorf("as text: got %q, %v, want an error that names sqltypes.SnoText", text, err)
		}
	})
}

// The log shows an ID in the form of the database.
func (k of[T, N]) log(t *testing.T, g *gorm.DB) {
	r := pgtest.NewRecorder()
	g = g.Session(&gorm.Session{Logger: r})
	a := thing[T]{Name: "a"}
	must(t, g.Create(&a).Error)
	must(t, g.Find(&[]thing[T]{}, "id in ?", []T{a.ID}).Error)
	for _, kind := range []string{"INSERT", "SELECT"} {
		if s := r.With(kind); len(s) != 1 || !strings.Contains(s[0], k.Stored(a.ID)) {
			t.Errorf("got %q, want ID %s in it", s, k.Stored(a.ID))
		}
	}

	// The logged statement can be run unchanged.
	b := k.ids(t, 1)[0]
	literal := func(id T) string {
		switch {
		case k.Column != "uuid":
			return k.Stored(id)
		case isPostgres(g):
			return "'" + k.Stored(id) + "'"
		}
		return `"` + k.Stored(id) + `"`
	}
	one, other := literal(a.ID), literal(b)
	for name, c := range map[string]struct {
		tx   *gorm.DB
		want string
	}{
		"ID":            {g.Where("id = ?", a.ID), "id = " + one},
		"pointer":       {g.Where("id = ?", &a.ID), "id = " + one},
		"nil pointer":   {g.Where("id = ?", (*T)(nil)), "id = NULL"},
		"Null":          {g.Where("id = ?", sql.Null[T]{V: b, Valid: true}), "id = " + other},
		"NULL":          {g.Where("id = ?", sql.Null[T]{}), "id = NULL"},
		"Optional":      {g.Where("id = ?", sqltypes.OptionalOf(b)), "id = " + other},
		"zero Optional": {g.Where("id = ?", sqltypes.Optional[T]{}), "id = NULL"},
		"IN":            {g.Where("id IN ?", []T{a.ID, b}), "id IN (" + one + "," + other + ")"},
		"IN pointers":   {g.Where("id IN ?", []*T{&a.ID, nil}), "id IN (" + one + ",NULL)"},
		"IN Optionals":  {g.Where("id IN ?", []sqltypes.Optional[T]{{ID: b}, {}}), "id IN (" + other + ",NULL)"},
		"inline":        {g.Where([]T{a.ID, b}), "IN (" + one + "," + other + ")"},
		"map":           {g.Where(map[string]any{"id": []T{a.ID, b}}), "IN (" + one + "," + other + ")"},
		"struct":        {g.Where(&thing[T]{ID: a.ID}), "= " + one},
		"scope":         {g.Scopes(gormplugin.PageAfter("", b)), "> " + other},
	} {
		r := pgtest.NewRecorder()
		must(t, c.tx.Session(&gorm.Session{Logger: r}).Find(&[]thing[T]{}).Error)
		s := r.With("SELECT")
		if len(s) != 1 || !strings.Contains(s[0], c.want) {
			t.Errorf("%s: got %q, want %q in it", name, s, c.want)
			continue
		}
		if isPostgres(g) {
			must(t, g.Exec(s[0]).Error)
		}
	}
}
