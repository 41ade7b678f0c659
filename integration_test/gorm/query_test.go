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
	"gorm.io/gorm/logger"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/sqltypes"
)

// GORM finds rows by their IDs with every kind of condition.
func (k peopleOf[T, N]) query(t *testing.T, g *gorm.DB) {
	ada := k.newGraph()
	must(t, g.Create(ada).Error)
	a := k.in(ada)
	luigi, mary := k.in(&a.Team[0]), k.in(&a.Team[1])
	friend := k.in(a.Friends[0]).ID
	team := []T{luigi.ID, mary.ID}

	// One row by its ID, and no row by another ID.
	other := k.ids(t, 1)[0]
	for name, by := range map[string]func(id T) *gorm.DB{
		"condition":   func(id T) *gorm.DB { return g.Where("id = ?", id) },
		"pointer":     func(id T) *gorm.DB { return g.Where("id = ?", &id) },
		"named":       func(id T) *gorm.DB { return g.Where("id = @id", map[string]any{"id": id}) },
		"map":         func(id T) *gorm.DB { return g.Where(map[string]any{"id": id}) },
		"struct":      func(id T) *gorm.DB { return g.Where(k.byID(id)) },
		"foreign key": func(id T) *gorm.DB { return g.Where("id in (select person_id from passports where person_id = ?)", id) },
		"not":         func(id T) *gorm.DB { return g.Not("id <> ?", id) },
		"or":          func(id T) *gorm.DB { return g.Where("id = ?", id).Or("id = ?", id) },
		"tuple":       func(id T) *gorm.DB { return g.Where("(id, name) IN ?", [][]any{{id, "Ada"}}) },
		"comparison":  func(id T) *gorm.DB { return g.Where("id >= ? AND id <= ?", id, id) },
		"subquery": func(id T) *gorm.DB {
			return g.Where("id = (?)", g.Model(new(N)).Select("id").Where("id = ?", id))
		},
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
		"IN brackets": g.Where("id IN (?)", team),
		"not":         g.Where("manager_id = ?", a.ID).Not(map[string]any{"id": []T{a.ID}}),
		"Optional":    g.Where("manager_id = ?", luigi.ManagerID),
		"struct":      g.Where(k.newPerson(Person[T, N]{ManagerID: luigi.ManagerID})),
	} {
		var got []T
		if err := q.Model(new(N)).Order("name").Pluck("id", &got).Error; err != nil || !slices.Equal(got, team) {
			t.Errorf("%s: got %v, %v, want %v", name, got, err, team)
		}
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
	brass, cards, paper := a.Orders[1].ID, a.Orders[0].ID, luigi.Orders[0].ID
	for _, c := range []struct {
		tx   func() *gorm.DB
		left []T // in the order of the items
	}{
		{func() *gorm.DB { return g.Session(&gorm.Session{}) }, []T{brass, cards, paper}},
		{func() *gorm.DB { return g.Delete(&order[T]{}, brass) }, []T{cards, paper}},
		{func() *gorm.DB { return g.Delete(&order[T]{ID: paper}) }, []T{cards}},
		{func() *gorm.DB { return g.Delete(&order[T]{}, []T{cards, paper}) }, nil},
	} {
		var left []T
		must(t, c.tx().Error)
		must(t, g.Model(&order[T]{}).Order("item").Pluck("id", &left).Error)
		if !slices.Equal(left, c.left) {
			t.Errorf("orders %v are left, want %v", left, c.left)
		}
	}
}

// Conditions with NULL, lists, tuples and subqueries.
func (k peopleOf[T, N]) conditions(t *testing.T, g *gorm.DB) {
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
		"IN with a zero ID":        {g.Where("id IN ?", []T{zero, mary.ID}), []string{"Mary"}},
		"IN with NULL":             {g.Where("id IN ?", []*T{nil, &mary.ID}), []string{"Mary"}},
		"IN with Optionals":        {g.Where("id IN ?", []sqltypes.Optional[T]{{}, {ID: mary.ID}}), []string{"Mary"}},
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
func (k peopleOf[T, N]) loading(t *testing.T, g *gorm.DB) {
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
func (k peopleOf[T, N]) scanning(t *testing.T, g *gorm.DB) {
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

// gorm.G finds, changes and deletes rows by their IDs.
func (k peopleOf[T, N]) genericQuery(t *testing.T, g *gorm.DB) {
	ctx := t.Context()
	things := make([]thing[T], 7)
	for i := range things {
		things[i].Name = fmt.Sprint(i)
	}
	must(t, g.Create(&things).Error)
	must(t, g.Raw("select * from things order by id").Scan(&things).Error)
	a, b := things[2], things[4]

	q := gorm.G[thing[T]](g)
	for name, first := range map[string]func() (thing[T], error){
		"First":  func() (thing[T], error) { return q.Where("id = ?", a.ID).First(ctx) },
		"Take":   func() (thing[T], error) { return q.Where(&thing[T]{ID: a.ID}).Take(ctx) },
		"Last":   func() (thing[T], error) { return q.Where("id <= ?", a.ID).Last(ctx) },
		"map":    func() (thing[T], error) { return q.Where(map[string]any{"id": a.ID}).First(ctx) },
		"inline": func() (thing[T], error) { return q.Where(a.ID).First(ctx) },
		"Raw":    func() (thing[T], error) { return q.Raw("select * from things where id = ?", a.ID).First(ctx) },
	} {
		if got, err := first(); err != nil || got != a {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, a)
		}
	}
	for name, c := range map[string]struct {
		query gorm.ChainInterface[thing[T]]
		want  []thing[T]
	}{
		"IN":  {q.Where("id IN ?", []T{a.ID, b.ID}), []thing[T]{a, b}},
		"Not": {q.Not("id IN ?", []T{a.ID, b.ID}), append(slices.Clone(things[:2]), things[3], things[5], things[6])},
		"Or":  {q.Where("id = ?", a.ID).Or("id = ?", b.ID), []thing[T]{a, b}},
	} {
		got, err := c.query.Find(ctx)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, %v, want %v", name, got, err, c.want)
		}
	}
	var batches []thing[T]
	must(t, q.Where("id > ?", things[0].ID).FindInBatches(ctx, 2, func(data []thing[T], _ int) error {
		batches = append(batches, data...)
		return nil
	}))
	if !slices.Equal(batches, things[1:]) {
		t.Errorf("FindInBatches: got %v, want %v", batches, things[1:])
	}
	var ids []T
	must(t, q.Select("id").Order("id").Scan(ctx, &ids))
	if len(ids) != 7 || ids[0] != things[0].ID || ids[6] != things[6].ID {
		t.Errorf("Scan: got IDs %v of %v", ids, things)
	}

	// Updates and deletes affect only the matching rows.
	changed := func(what string, n int, err error) {
		t.Helper()
		if n != 1 || err != nil {
			t.Errorf("%s: %d rows, %v, want 1", what, n, err)
		}
	}
	n, err := q.Where("id = ?", a.ID).Update(ctx, "name", "a")
	changed("Update", n, err)
	n, err = q.Where(&thing[T]{ID: b.ID}).Updates(ctx, thing[T]{Name: "b"})
	changed("Updates", n, err)
	n, err = q.Where("id = ?", things[0].ID).Set(clause.Assignment{Column: clause.Column{Name: "name"}, Value: "set"}).Update(ctx)
	changed("Set", n, err)
	n, err = q.Where("id IN ?", []T{things[1].ID}).Delete(ctx)
	changed("Delete", n, err)
	must(t, q.Exec(ctx, "delete from things where id = ?", things[6].ID))
	things[2].Name, things[4].Name, things[0].Name = "a", "b", "set"
	k.agree(t, g, append([]thing[T]{things[0]}, things[2:6]...))

	// Associations.
	people := gorm.G[N](g)
	ada := k.newGraph()
	must(t, people.Create(ctx, ada))
	p := k.in(ada)
	found, err := people.Where("people.id = ?", p.ID).Joins(clause.LeftJoin.Association("Company"), nil).Joins(clause.LeftJoin.Association("Manager"), nil).
		Preload("Orders", func(q gorm.PreloadBuilder) error { q.Order("item"); return nil }).Preload("Orders.Pictures", nil).
		Preload("Tags", nil).Preload("Clubs", nil).Preload("Passport", nil).First(ctx)
	must(t, err)
	f := k.in(&found)
	if f.ID != p.ID || f.Company == nil || f.Company.ID != p.Company.ID || f.Manager == nil || k.in(f.Manager).ID != k.in(p.Manager).ID ||
		len(f.Orders) != 2 || !reflect.DeepEqual(f.Orders[1], p.Orders[0]) || len(f.Tags) != 2 || len(f.Clubs) != 1 || f.Passport == nil || *f.Passport != *p.Passport {
		t.Errorf("got %+v, want the IDs of %+v", f, p)
	}
	item := clause.Assignment{Column: clause.Column{Name: "item"}, Value: "assigned"}
	_, err = people.Where("id = ?", p.ID).Set(
		clause.Association{Association: "Orders", Type: clause.OpCreate, Set: []clause.Assignment{item}},
		clause.Association{Association: "Orders", Type: clause.OpCreate, Values: []any{&order[T]{Item: "value"}}},
		clause.Association{Association: "Clubs", Type: clause.OpCreate, Values: []any{&club[T]{Name: "value"}}},
	).Update(ctx)
	must(t, err)
	orders, err := gorm.G[order[T]](g).Where("person_id = ? and item in ?", p.ID, []string{"assigned", "value"}).Find(ctx)
	if err != nil || len(orders) != 2 || orders[0].ID.IsZero() || orders[1].ID.IsZero() || orders[0].ID == orders[1].ID {
		t.Errorf("got orders %+v, %v, want two with IDs", orders, err)
	}
	k.memberships(t, g, p.ID, 2)
}

// Prepared statements work with IDs repeatedly.
func (k of[T]) prepared(t *testing.T, g *gorm.DB) {
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

// The log shows an ID in the form of the database.
func (k of[T]) log(t *testing.T, g *gorm.DB) {
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

// GORM on a pgxpool.Pool returns all connections, which have the codec, to the pool.
func TestPool(t *testing.T) {
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		g := db.GORM(t, &gorm.Config{PrepareStmt: true, Logger: logger.Discard}, clients["pool"]...)
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

// A softly deleted row keeps its ID. Queries by ID don't find it. It can be restored.
func (k of[T]) softDelete(t *testing.T, g *gorm.DB) {
	ada := sender[T]{Name: "Ada", Letters: []letter[T]{{Code: "a"}, {Code: "b"}, {Code: "c"}, {Code: "d"}, {Code: "e"}, {Code: "f"}}}
	must(t, g.Create(&ada).Error)
	var ids []T
	for _, l := range ada.Letters {
		ids = append(ids, l.ID)
	}
	// rows returns the codes in the table, without GORM's condition for soft deletion.
	rows := func(where string) (codes []string) {
		must(t, g.Raw("select code from letters where "+where+" order by code").Scan(&codes).Error)
		return codes
	}
	state := func(what string, live, deleted []string) {
		t.Helper()
		if got := rows("deleted_at is null"); !slices.Equal(got, live) {
			t.Errorf("%s: not deleted: got %v, want %v", what, got, live)
		}
		if got := rows("deleted_at is not null"); !slices.Equal(got, deleted) {
			t.Errorf("%s: deleted: got %v, want %v", what, got, deleted)
		}
	}

	// Ways to delete.
	a := &ada.Letters[0]
	if tx := g.Delete(a); tx.Error != nil || tx.RowsAffected != 1 || !a.DeletedAt.Valid || a.ID != ids[0] {
		t.Errorf("Delete of a struct: %d rows, %v, %+v", tx.RowsAffected, tx.Error, a)
	}
	must(t, g.Delete(&letter[T]{}, ids[1]).Error)
	must(t, g.Where("id IN ?", ids[2:3]).Delete(&letter[T]{}).Error)
	state("Delete", []string{"d", "e", "f"}, []string{"a", "b", "c"})
	if n, err := gorm.G[letter[T]](g).Where("id = ?", ids[3]).Delete(t.Context()); err != nil || n != 1 {
		t.Errorf("G.Delete: %d rows, %v", n, err)
	}
	if tx := g.Delete(&letter[T]{}, ids[:5]); tx.Error != nil || tx.RowsAffected != 1 {
		t.Errorf("Delete of a list with deleted rows: %d rows, %v, want 1", tx.RowsAffected, tx.Error)
	}
	state("Delete by a slice", []string{"f"}, []string{"a", "b", "c", "d", "e"})

	// Queries.
	for name, q := range map[string]*gorm.DB{
		"all":       g,
		"slice":     g.Where(ids),
		"IN":        g.Where("id IN ?", ids),
		"or":        g.Where("id = ?", ids[0]).Or("id = ?", ids[5]).Or("id = ?", ids[1]),
		"struct":    g.Where(&letter[T]{SenderID: ada.ID}),
		"map":       g.Where(map[string]any{"id": ids}),
		"not":       g.Not("id = ?", ada.ID),
		"subquery":  g.Where("id IN (?)", g.Model(&letter[T]{}).Select("id")),
		"joined to": g.InnerJoins("Sender"),
	} {
		var found []letter[T]
		if err := q.Find(&found).Error; err != nil || len(found) != 1 || found[0].ID != ids[5] {
			t.Errorf("%s: got %+v, %v, want only f", name, found, err)
		}
	}
	if err := g.First(&letter[T]{}, ids[0]).Error; !errors.Is(err, gorm.ErrRecordNotFound) {
		t.Errorf("First of a deleted row: %v", err)
	}
	var count int64
	if err := g.Model(&letter[T]{}).Where("id IN ?", ids).Count(&count).Error; err != nil || count != 1 {
		t.Errorf("Count: got %d, %v, want 1", count, err)
	}
	if n := g.Model(&ada).Association("Letters").Count(); n != 1 {
		t.Errorf("Association: got %d, want 1", n)
	}
	for want, preload := range map[int]func(*gorm.DB) *gorm.DB{
		1: func(tx *gorm.DB) *gorm.DB { return tx },
		6: func(tx *gorm.DB) *gorm.DB { return tx.Unscoped() },
	} {
		var s sender[T]
		if err := g.Preload("Letters", preload).First(&s, ada.ID).Error; err != nil || len(s.Letters) != want {
			t.Errorf("Preload: got %d, %v, want %d", len(s.Letters), err, want)
		}
	}

	// The row still exists.
	var l letter[T]
	if err := g.Unscoped().First(&l, ids[1]).Error; err != nil || l.ID != ids[1] || l.Code != "b" || !l.DeletedAt.Valid || l.SenderID != ada.ID {
		t.Errorf("Unscoped: got %+v, %v", l, err)
	}
	again := letter[T]{ID: ids[1], Code: "again", SenderID: ada.ID}
	if err := g.Create(&again).Error; err == nil || again.ID != ids[1] {
		t.Errorf("Create with the ID of a deleted row: %v, %+v", err, again)
	}

	// An update restores the row, and so does Save of a struct that isn't deleted.
	must(t, g.Unscoped().Model(&l).Update("deleted_at", nil).Error)
	must(t, g.Unscoped().Model(&letter[T]{}).Where("id = ?", ids[2]).Update("deleted_at", gorm.DeletedAt{}).Error)
	saved := letter[T]{ID: ids[3], Code: "d", Kind: "saved", SenderID: ada.ID}
	must(t, g.Save(&saved).Error)
	state("restored", []string{"b", "c", "d", "f"}, []string{"a", "e"})
	var restored letter[T]
	if err := g.First(&restored, "id = ? and kind = ?", ids[3], "saved").Error; err != nil || restored.ID != ids[3] {
		t.Errorf("Save: got %+v, %v", restored, err)
	}

	// Unscoped deletes permanently.
	must(t, g.Unscoped().Delete(&letter[T]{}, ids[1:3]).Error)
	must(t, g.Unscoped().Delete(a).Error)
	state("Unscoped Delete", []string{"d", "f"}, []string{"e"})
	again = letter[T]{ID: ids[1], Code: "b", SenderID: ada.ID}
	must(t, g.Create(&again).Error)
	fresh := letter[T]{Code: "a", SenderID: ada.ID}
	must(t, g.Create(&fresh).Error)
	if again.ID != ids[1] || fresh.ID.IsZero() || slices.Contains(ids, fresh.ID) {
		t.Errorf("created again: got IDs %v and %v", again.ID, fresh.ID)
	}
	state("created again", []string{"a", "b", "d", "f"}, []string{"e"})

	// Joins don't find a deleted sender. Its letters stay.
	must(t, g.Delete(&ada).Error)
	l = letter[T]{}
	if err := g.Joins("Sender").First(&l, "letters.id = ?", ids[5]).Error; err != nil || l.Sender != nil || l.SenderID != ada.ID {
		t.Errorf("Joins with a deleted sender: got %+v, %v", l, err)
	}
	if err := g.InnerJoins("Sender").First(&l, "letters.id = ?", ids[5]).Error; !errors.Is(err, gorm.ErrRecordNotFound) {
		t.Errorf("InnerJoins with a deleted sender: %v", err)
	}
	l = letter[T]{}
	if err := g.Preload("Sender").First(&l, ids[5]).Error; err != nil || l.Sender != nil {
		t.Errorf("Preload of a deleted sender: got %+v, %v", l, err)
	}
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
	onClients(t, narrowClients, func(t *testing.T, g *gorm.DB) {
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
