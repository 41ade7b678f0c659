package gorm

import (
	"database/sql"
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
func (k of[T, P]) query(t *testing.T, g *gorm.DB) {
	ada := k.newGraph()
	must(t, g.Create(ada).Error)
	a := k.in(ada)
	luigi, mary, charles := k.in(a.Team[0]), k.in(a.Team[1]), k.in(a.Manager)
	friend := k.in(a.Friends[0]).ID
	team := []T{luigi.ID, mary.ID}
	people := g.Model(k.blank()).Session(&gorm.Session{})
	var zero T

	// One row by its ID, and no row by another ID.
	other := k.ids(t, 1)[0]
	for name, by := range map[string]func(id T) *gorm.DB{
		"condition": func(id T) *gorm.DB { return people.Where("id = ?", id) },
		"pointer":   func(id T) *gorm.DB { return people.Where("id = ?", &id) },
		"named":     func(id T) *gorm.DB { return people.Where("id = @id", map[string]any{"id": id}) },
		"map":       func(id T) *gorm.DB { return people.Where(map[string]any{"id": id}) },
		"struct":    func(id T) *gorm.DB { return people.Where(k.byID(id)) },
		"foreign key": func(id T) *gorm.DB {
			return people.Where("id in (select person_id from passports where person_id = ?)", id)
		},
		"not":        func(id T) *gorm.DB { return people.Not("id <> ?", id) },
		"or":         func(id T) *gorm.DB { return people.Where("id = ?", id).Or("id = ?", id) },
		"tuple":      func(id T) *gorm.DB { return people.Where("(id, name) IN ?", [][]any{{id, "Ada"}}) },
		"comparison": func(id T) *gorm.DB { return people.Where("id >= ? AND id <= ?", id, id) },
		"subquery":   func(id T) *gorm.DB { return people.Where("id = (?)", people.Select("id").Where("id = ?", id)) },
	} {
		plucks(t, name, by(a.ID), "name", "Ada")
		plucks[string](t, name+", unknown ID", by(other), "name")
	}
	for name, first := range map[string]func(dest P) *gorm.DB{
		"First":           func(p P) *gorm.DB { return g.First(p, a.ID) },
		"First, in chain": func(p P) *gorm.DB { return g.Where("id = ?", a.ID).First(p) },
		"Take":            func(p P) *gorm.DB { return g.Take(p, "id = ?", a.ID) },
		"Find":            func(p P) *gorm.DB { return g.Find(p, a.ID) },
		"set":             func(p P) *gorm.DB { k.in(p).ID = a.ID; return g.First(p) },
	} {
		n := k.blank()
		if err := first(n).Error; err != nil || k.in(n).ID != a.ID || k.in(n).Name != "Ada" {
			t.Errorf("%s: got %+v, %v, want %v", name, k.in(n), err, a.ID)
		}
	}

	// Conditions with NULL, lists, tuples and subqueries.
	for name, c := range map[string]struct {
		tx   *gorm.DB
		want []string // names
	}{
		"IN brackets":              {people.Where("id IN (?)", team), []string{"Luigi", "Mary"}},
		"IN with a zero ID":        {people.Where("id IN ?", []T{zero, mary.ID}), []string{"Mary"}},
		"IN with NULL":             {people.Where("id IN ?", []*T{nil, &mary.ID}), []string{"Mary"}},
		"IN with Optionals":        {people.Where("id IN ?", []sqltypes.Optional[T]{{}, {ID: mary.ID}}), []string{"Mary"}},
		"NULL":                     {people.Where("manager_id IS NULL"), []string{"Augustus", "Charles", "Michael"}},
		"NULL of a map":            {people.Where(map[string]any{"manager_id": nil}), []string{"Augustus", "Charles", "Michael"}},
		"not NULL":                 {people.Not(map[string]any{"manager_id": nil}), []string{"Ada", "Luigi", "Mary"}},
		"not in a map":             {people.Where("manager_id = ?", a.ID).Not(map[string]any{"id": []T{a.ID}}), []string{"Luigi", "Mary"}},
		"equal to NULL":            {people.Where("manager_id = ?", (*T)(nil)), nil},
		"equal to a zero Optional": {people.Where("manager_id = ?", sqltypes.Optional[T]{}), nil},
		"Optional":                 {people.Where("manager_id = ?", luigi.ManagerID), []string{"Luigi", "Mary"}},
		"Null":                     {people.Where("manager_id = ?", sql.Null[T]{V: a.ID, Valid: true}), []string{"Luigi", "Mary"}},
		"structs":                  {people.Where([]P{k.byID(mary.ID)}), []string{"Mary"}},
		"struct with an Optional":  {people.Where(k.newPerson(Person[T, P]{ManagerID: luigi.ManagerID})), []string{"Luigi", "Mary"}},
		"struct's named fields":    {people.Where(k.newPerson(Person[T, P]{Name: "Mary", ManagerID: sqltypes.OptionalOf(a.ID)}), "manager_id"), []string{"Luigi", "Mary"}},
		"named argument":           {people.Where("id = @id OR manager_id = @id", sql.Named("id", a.ID)), []string{"Ada", "Luigi", "Mary"}},
		"named slice":              {people.Where("id IN @ids", map[string]any{"ids": team}), []string{"Luigi", "Mary"}},
		"named fields":             {people.Where("id = @ID OR manager_id = @ID", struct{ ID T }{a.ID}), []string{"Ada", "Luigi", "Mary"}},
		"expression":               {people.Where(clause.IN{Column: "id", Values: []any{luigi.ID, &mary.ID}}), []string{"Luigi", "Mary"}},
		"tuples":                   {people.Where("(id, manager_id) IN ?", [][]any{{luigi.ID, a.ID}, {mary.ID, charles.ID}}), []string{"Luigi"}},
		"subquery":                 {people.Where("id IN (?)", g.Model(&order[T]{}).Select("person_id").Where("person_id <> ?", a.ID)), []string{"Luigi"}},
		"subquery's source":        {people.Table("(?) as people", people.Where("manager_id = ?", a.ID)), []string{"Luigi", "Mary"}},
		"EXISTS":                   {people.Where("EXISTS (?)", g.Table("orders").Select("1").Where("orders.person_id = people.id AND people.id <> ?", a.ID)), []string{"Luigi"}},
	} {
		plucks(t, name, c.tx.Order("name"), "name", c.want...)
	}
	maryFirst := clause.OrderBy{Expression: clause.Expr{SQL: "CASE WHEN id = ? THEN 0 ELSE 1 END", Vars: []any{mary.ID}}}
	plucks(t, "order by ID", people.Where("id IN ?", team).Clauses(maryFirst), "name", "Mary", "Luigi")
	plucks(t, "Raw", g.Raw("select name from people where id in ? or id = ? order by name", team, charles.ID), "name", "Charles", "Luigi", "Mary")
	plucks(t, "Raw, named", g.Raw("select name from people where manager_id = @boss order by name", sql.Named("boss", &a.ID)), "name", "Luigi", "Mary")

	// Groups.
	type counted struct {
		PersonID T
		Orders   int
	}
	finds(t, "Group", g.Table("orders").Select("person_id, count(*) as orders").Group("person_id").
		Having("person_id IN ?", []T{a.ID, luigi.ID, charles.ID}).Order("orders"), counted{luigi.ID, 1}, counted{a.ID, 2})
	persons := []T{a.ID, luigi.ID}
	slices.SortFunc(persons, T.Compare)
	var distinct []T
	must(t, g.Model(&order[T]{}).Distinct("person_id").Pluck("person_id", &distinct).Error)
	slices.SortFunc(distinct, T.Compare)
	equal(t, "Distinct", distinct, persons)
	var count int64
	must(t, g.Model(&order[T]{}).Distinct("person_id").Count(&count).Error)
	equal(t, "Count of different IDs", count, 2)

	// A zero ID is no condition, and an update or delete needs a condition.
	for name, tx := range map[string]*gorm.DB{
		"Delete":            g.Delete(k.blank()),
		"Delete of a slice": g.Delete(&[]P{k.blank()}),
		"Update":            people.Update("name", "x"),
		"Updates":           g.Model(k.byID(zero)).Updates(map[string]any{"name": "x"}),
	} {
		fails(t, name+" by a zero ID", tx.Error, gorm.ErrMissingWhereClause, "")
	}
	if isPostgres(g) { // SQLite has no row locks
		must(t, g.Transaction(func(tx *gorm.DB) error {
			locking := clause.Locking{Strength: clause.LockingStrengthUpdate}
			must(t, tx.Clauses(locking).First(k.blank(), a.ID).Error)
			locking.Options = clause.LockingOptionsNoWait
			fails(t, "a locked row", g.Clauses(locking).First(k.blank(), a.ID).Error, nil, "")
			return g.Clauses(locking).First(k.blank(), mary.ID).Error
		}))
	}

	// Updates and deletes affect only the matching rows.
	affects(t, "Update", g.Model(k.byID(a.ID)).Update("name", "Ada L."), 1)
	affects(t, "Update, IN", people.Where("id IN ?", team).Update("manager_id", friend), 2)
	plucks(t, "after the updates", people.Where("name = ? or manager_id = ?", "Ada L.", friend).Order("name"), "name", "Ada L.", "Luigi", "Mary")
	affects(t, "Exec, slice", g.Exec("update people set manager_id = ? where id in ?", &charles.ID, team), 2)
	affects(t, "Exec, named", g.Exec("update people set company_id = @company where manager_id = @boss", map[string]any{"company": a.CompanyID, "boss": charles.ID}), 3)
	affects(t, "Exec, NULL", g.Exec("update people set company_id = ? where id = ?", (*T)(nil), mary.ID), 1)
	affects(t, "Exec, mixed", g.Exec("update people set company_id = ? where id in ? and manager_id = @boss", sqltypes.Optional[T]{}, team, sql.Named("boss", charles.ID)), 2)
	plucks(t, "after Exec", people.Where("company_id IS NULL AND manager_id = ?", charles.ID).Order("name"), "name", "Luigi", "Mary")
	cards, brass, paper := a.Orders[0].ID, a.Orders[1].ID, luigi.Orders[0].ID
	items := g.Model(&order[T]{}).Order("item").Session(&gorm.Session{})
	plucks(t, "orders", items, "id", brass, cards, paper)
	affects(t, "Delete by an ID", g.Delete(&order[T]{}, brass), 1)
	plucks(t, "Delete by an ID", items, "id", cards, paper)
	affects(t, "Delete of a struct", g.Delete(&order[T]{ID: paper}), 1)
	plucks(t, "Delete of a struct", items, "id", cards)
	again := []order[T]{{PersonID: luigi.ID, Item: "of Luigi"}, {PersonID: a.ID, Item: "of Ada"}}
	must(t, g.Create(&again).Error)
	affects(t, "Delete by a struct", g.Where(&order[T]{PersonID: luigi.ID}).Delete(&order[T]{}), 1)
	plucks(t, "Delete by a struct", items, "id", cards, again[1].ID)
	affects(t, "Delete of a slice", g.Delete(&again), 1)
	plucks(t, "Delete of a slice", items, "id", cards)
	affects(t, "Delete by a list", g.Delete(&order[T]{}, []T{cards, paper}), 1)
	plucks[T](t, "Delete by a list", items, "id")
}

// Preload and Joins load the associations that match their conditions.
func (k of[T, P]) loading(t *testing.T, g *gorm.DB) {
	ada := k.newGraph()
	must(t, g.Create(ada).Error)
	a := k.in(ada)
	mary, friend := k.in(a.Team[1]), k.in(a.Friends[1])
	brass := a.Orders[1].ID
	first := func(tx *gorm.DB, id T) *Person[T, P] {
		n := k.blank()
		must(t, tx.First(n, "people.id = ?", id).Error)
		return k.in(n)
	}

	// The numbers of Ada's orders, team members, friends, clubs, pictures and tags.
	for name, c := range map[string]struct {
		tx   *gorm.DB
		want [6]int
	}{
		"nothing":           {g, [6]int{}},
		"all":               {g.Preload(clause.Associations), [6]int{2, 2, 2, 1, 2, 2}},
		"text":              {g.Preload("Orders", "id = ?", brass), [6]int{1}},
		"slice":             {g.Preload("Orders", "id IN ?", []T{brass, mary.ID}), [6]int{1}},
		"not":               {g.Preload("Orders", "id NOT IN (?)", []T{brass}), [6]int{1}},
		"function":          {g.Preload("Orders", func(tx *gorm.DB) *gorm.DB { return tx.Where(&order[T]{ID: brass}) }), [6]int{1}},
		"of its own kind":   {g.Preload("Team", "id = ?", mary.ID), [6]int{0, 1}},
		"many to many":      {g.Preload("Friends", "id = ?", friend.ID), [6]int{0, 0, 1}},
		"own join table":    {g.Preload("Clubs", "id <> ?", a.Clubs[0].ID), [6]int{}},
		"polymorphic":       {g.Preload("Pictures", map[string]any{"id": a.Pictures[0].ID}), [6]int{0, 0, 0, 0, 1}},
		"another's ID":      {g.Preload("Orders", "person_id = ?", mary.ID), [6]int{}},
		"scope of a window": {g.Preload("Orders", func(tx *gorm.DB) *gorm.DB { return gormplugin.PageBefore("", *new(T))(tx).Limit(1) }), [6]int{1}},
	} {
		var people []P
		must(t, c.tx.Find(&people, []T{a.ID, friend.ID}).Error)
		equal(t, name, len(people), 2)
		for i := range people {
			p, want := k.in(people[i]), c.want
			if p.ID != a.ID {
				want = [6]int{}
			}
			equal(t, "Preload, "+name+": "+p.Name, [6]int{len(p.Orders), len(p.Team), len(p.Friends), len(p.Clubs), len(p.Pictures), len(p.Tags)}, want)
		}
	}
	p := first(g.Preload("Orders.Pictures").Preload("Company").Preload("Passport").Preload("Detail").Preload("Manager"), a.ID)
	equal(t, "Preload of single rows", []any{p.Company, p.Passport, p.Detail, k.in(p.Manager).ID}, []any{a.Company, a.Passport, a.Detail, k.in(a.Manager).ID})
	equal(t, "Preload of nested rows", len(p.Orders[0].Pictures)+len(p.Orders[1].Pictures), 1)
	p = first(g.Preload("Team", func(tx *gorm.DB) *gorm.DB { return tx.Order("name") }).Preload("Team.Orders", "item <> ?", "x").Preload("Team.Manager.Orders.Pictures"), a.ID)
	if len(p.Team) != 2 || len(k.in(p.Team[0]).Orders) != 1 || len(k.in(p.Team[1]).Orders) != 0 || len(k.in(k.in(p.Team[1]).Manager).Orders) != 2 {
		t.Errorf("nested Preload: got %+v", p)
	}
	people, err := gorm.G[P](g).Preload("Orders", func(db gorm.PreloadBuilder) error { db.Where("id = ?", brass); return nil }).Where("id = ?", a.ID).Find(t.Context())
	if err != nil || len(people) != 1 || len(k.in(people[0]).Orders) != 1 {
		t.Errorf("G.Preload: got %v, %v", people, err)
	}

	// Joins omits associations that don't match. InnerJoins omits the row, too.
	p = first(g.Joins("Company").Joins("Manager").Joins("Passport"), a.ID)
	equal(t, "Joins", []any{p.Company, p.Passport, k.in(p.Manager).Name}, []any{a.Company, a.Passport, "Charles"})
	nobody := any(*new(P))
	if p = first(g.Joins("Company").Joins("Manager"), friend.ID); p.Company != nil || any(p.Manager) != nobody || !p.ManagerID.IsZero() {
		t.Errorf("Joins without partners: got %+v", p)
	}
	own, other := a.Company.ID, mary.ID
	for name, c := range map[string]struct {
		tx   *gorm.DB
		want []*company[T] // of each row
	}{
		"struct":        {g.Joins("Company", g.Where(&company[T]{ID: own})), []*company[T]{a.Company}},
		"other struct":  {g.Joins("Company", g.Where(&company[T]{ID: other})), []*company[T]{nil}},
		"map":           {g.Joins("Company", g.Where(map[string]any{"id": []T{own, other}})), []*company[T]{a.Company}},
		"other map":     {g.Joins("Company", g.Where(map[string]any{"id": []T{other}})), []*company[T]{nil}},
		"text":          {g.Joins("Company", g.Where(`"Company"."id" = ?`, &own)), []*company[T]{a.Company}},
		"not":           {g.Joins("Company", g.Not(&company[T]{ID: own})), []*company[T]{nil}},
		"inner":         {g.InnerJoins("Company", g.Where(&company[T]{ID: own})), []*company[T]{a.Company}},
		"inner, other":  {g.InnerJoins("Company", g.Where(&company[T]{ID: other})), nil},
		"where":         {g.Joins("Company").Where(`"Company"."id" = ?`, own), []*company[T]{a.Company}},
		"where, other":  {g.Joins("Company").Where(`"Company"."id" <> ?`, own), nil},
		"SQL":           {g.Joins("join orders o on o.person_id = people.id and o.id = ?", brass), []*company[T]{nil}},
		"SQL, other":    {g.Joins("join orders o on o.person_id = people.id and o.id in ?", []T{own, other}), nil},
		"SQL, subquery": {g.Joins("join (?) o on o.person_id = people.id", g.Model(&order[T]{}).Where("id = ?", brass)), []*company[T]{nil}},
		"through":       {g.Joins("Manager").Joins("Manager.Company").Joins("Company"), []*company[T]{a.Company}},
	} {
		var people []P
		must(t, c.tx.Find(&people, "people.id = ?", a.ID).Error)
		var got []*company[T]
		for i := range people {
			equal(t, "Joins, "+name, k.in(people[i]).ID, a.ID)
			got = append(got, k.in(people[i]).Company)
		}
		equal(t, "Joins, "+name, got, c.want)
	}
}

// IDs can be scanned into every kind of destination.
func (k of[T, P]) scanning(t *testing.T, g *gorm.DB) {
	ada := k.newGraph()
	must(t, g.Create(ada).Error)
	a := k.in(ada)
	boss := k.in(a.Manager).ID
	// Ada has a manager, Charles has none.
	both := g.Model(k.blank()).Where("id IN ?", []T{a.ID, boss}).Order("name").Session(&gorm.Session{})
	plucks(t, "IDs", both, "id", a.ID, boss)
	plucks(t, "pointers", both, "id", &a.ID, &boss)
	plucks(t, "sql.Null", both, "manager_id", sql.Null[T]{V: boss, Valid: true}, sql.Null[T]{})
	plucks(t, "Optionals", both, "manager_id", sqltypes.OptionalOf(boss), sqltypes.Optional[T]{})
	// GORM treats the elements of both slices as T, so pointers don't accept NULL here.
	fails(t, "NULL into IDs", both.Pluck("manager_id", &[]T{}).Error, idtype.ErrNull, "")
	fails(t, "NULL into pointers", both.Pluck("manager_id", &[]*T{}).Error, idtype.ErrNull, "")

	// A single value. A Sno is an array, which GORM mistakes for a list of rows. A Sno in a
	// struct works.
	var (
		one    T
		opt    sqltypes.Optional[T]
		nobody sql.Null[T]
	)
	err := both.Select("manager_id").Where("name = ?", "Ada").Scan(&one).Error
	if isArray := reflect.TypeFor[T]().Kind() == reflect.Array; isArray && (err == nil || !one.IsZero()) || !isArray && (err != nil || one != boss) {
		t.Errorf("Scan into %T: got %v, %v", one, one, err)
	}
	must(t, both.Select("manager_id").Where("name = ?", "Ada").Scan(&opt).Error)
	must(t, g.Raw("select id from people where name = ?", "Ada").Row().Scan(&one))
	must(t, both.Select("manager_id").Where("name = ?", "Charles").Scan(&nobody).Error)
	equal(t, "Scan and Row", []any{opt.ID, one, nobody.Valid}, []any{boss, a.ID, false})

	// Structs of other fields.
	type pair struct {
		Who     T
		Manager *T
		Company sql.Null[T]
		Opt     sqltypes.Optional[T]
		Written sqltypes.Text[T]
	}
	var pairs []pair
	text := sqltypes.TextOf(a.ID)
	must(t, both.Select("id as who, manager_id as manager, company_id as company, manager_id as opt, ? as written", idtest.ColumnText(text)).Scan(&pairs).Error)
	equal(t, "Scan into structs", pairs, []pair{{a.ID, &boss, sql.Null[T]{V: a.Company.ID, Valid: true}, sqltypes.OptionalOf(boss), text}, {Who: boss, Written: text}})
	// GORM reads NULL as zero into a field that can't be NULL.
	finds(t, "NULL into a field", both.Select("manager_id"), struct{ ManagerID T }{boss}, struct{ ManagerID T }{})

	// A map gets the driver's value, not the Go type.
	stored := func(id T) any {
		if k.Column == "uuid" {
			return k.Stored(id)
		}
		v, err := id.Value()
		must(t, err)
		return v
	}
	var count int64
	for name, tx := range map[string]*gorm.DB{
		"model": g.Model(k.blank()).Order("name"),
		"table": g.Table("people").Order("name"),
		"Raw":   g.Raw("select * from people order by name"),
	} {
		var rows []map[string]any
		must(t, tx.Find(&rows).Error)
		if len(rows) != 6 || rows[0]["id"] != stored(a.ID) || rows[0]["manager_id"] != stored(boss) || rows[0]["company_id"] != stored(a.Company.ID) || rows[2]["manager_id"] != nil {
			t.Errorf("maps, %s: got %#v, want IDs such as %#v", name, rows, stored(a.ID))
		}
	}
	row := map[string]any{}
	must(t, g.Model(k.blank()).Take(&row, "id = ?", a.ID).Error)
	equal(t, "map", row["id"], stored(a.ID))
	plucks(t, "by the ID in a map", g.Model(k.blank()).Where(map[string]any{"id": row["id"]}), "name", "Ada")

	// Single rows and batches.
	rows, err := both.Rows()
	must(t, err)
	defer rows.Close()
	var scanned []T
	for rows.Next() {
		n := k.blank()
		must(t, g.ScanRows(rows, n))
		scanned = append(scanned, k.in(n).ID)
	}
	must(t, rows.Err())
	equal(t, "ScanRows", scanned, []T{a.ID, boss})
	var batch []P
	seen, batches := map[T]bool{}, 0
	must(t, g.FindInBatches(&batch, 2, func(tx *gorm.DB, _ int) error {
		batches++
		for i := range batch {
			seen[k.in(batch[i]).ID] = true
			k.in(batch[i]).Name += "."
		}
		return tx.Save(&batch).Error
	}).Error)
	must(t, g.Model(k.blank()).Where("name like ?", "%_.").Where("name not like ?", "%..").Count(&count).Error)
	equal(t, "FindInBatches: IDs, batches and saved rows", [3]int{len(seen), batches, int(count)}, [3]int{6, 3, 6})
}

// gorm.G finds, changes and deletes rows by their IDs.
func (k of[T, P]) genericQuery(t *testing.T, g *gorm.DB) {
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
		got, err := first()
		must(t, err)
		equal(t, name, got, a)
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
		must(t, err)
		equal(t, name, got, c.want)
	}
	var batches []thing[T]
	must(t, q.Where("id > ?", things[0].ID).FindInBatches(ctx, 2, func(data []thing[T], _ int) error {
		batches = append(batches, data...)
		return nil
	}))
	equal(t, "FindInBatches", batches, things[1:])
	var ids []T
	must(t, q.Select("id").Order("id").Scan(ctx, &ids))
	plucks(t, "Scan", g.Model(&thing[T]{}).Order("id"), "id", ids...)

	// Updates and deletes affect only the matching rows.
	for name, change := range map[string]func() (int, error){
		"Update":  func() (int, error) { return q.Where("id = ?", a.ID).Update(ctx, "name", "a") },
		"Updates": func() (int, error) { return q.Where(&thing[T]{ID: b.ID}).Updates(ctx, thing[T]{Name: "b"}) },
		"Set": func() (int, error) {
			return q.Where("id = ?", things[0].ID).Set(clause.Assignment{Column: clause.Column{Name: "name"}, Value: "set"}).Update(ctx)
		},
		"Delete": func() (int, error) { return q.Where("id IN ?", []T{things[1].ID}).Delete(ctx) },
	} {
		n, err := change()
		must(t, err)
		equal(t, name, n, 1)
	}
	must(t, q.Exec(ctx, "delete from things where id = ?", things[6].ID))
	things[2].Name, things[4].Name, things[0].Name = "a", "b", "set"
	k.agree(t, g, append([]thing[T]{things[0]}, things[2:6]...))

	// Associations.
	people := gorm.G[P](g)
	ada := k.newGraph()
	must(t, people.Create(ctx, &ada))
	p := k.in(ada)
	found, err := people.Where("people.id = ?", p.ID).Joins(clause.LeftJoin.Association("Company"), nil).Joins(clause.LeftJoin.Association("Manager"), nil).
		Preload("Orders", func(q gorm.PreloadBuilder) error { q.Order("item desc"); return nil }).Preload("Orders.Pictures", nil).
		Preload("Tags", nil).Preload("Clubs", nil).Preload("Passport", nil).First(ctx)
	must(t, err)
	f := k.in(found)
	p.Orders[1].Pictures = []picture[T]{} // as Preload sets it
	equal(t, "associations", []any{f.ID, f.Company, k.in(f.Manager).ID, f.Orders, len(f.Tags), f.Clubs, f.Passport},
		[]any{p.ID, p.Company, k.in(p.Manager).ID, p.Orders, 2, p.Clubs, p.Passport})
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
func (k of[T, P]) prepared(t *testing.T, g *gorm.DB) {
	p := g.Session(&gorm.Session{PrepareStmt: true})
	var all []thing[T]
	for i := range 3 {
		a, b, gone := thing[T]{Name: fmt.Sprint("a", i)}, thing[T]{Name: fmt.Sprint("b", i)}, thing[T]{}
		must(t, p.Create([]*thing[T]{&a, &b}).Error)
		must(t, p.Create(&gone).Error)
		finds(t, "IN", p.Order("name").Where("id IN ?", []T{b.ID, a.ID}), a, b)
		for _, id := range []any{a.ID, &a.ID, sql.Null[T]{V: a.ID, Valid: true}, sqltypes.OptionalOf(a.ID)} {
			finds(t, fmt.Sprintf("by a %T", id), p.Where("id = ?", id), a)
		}
		fails(t, "by NULL", p.Take(&thing[T]{}, "id = ?", (*T)(nil)).Error, gorm.ErrRecordNotFound, "")
		a.Name += "!"
		must(t, p.Save(&a).Error)
		must(t, p.Model(&b).Update("name", b.Name).Error)
		must(t, p.Delete(&thing[T]{}, gone.ID).Error)
		all = append(all, a, b)
	}
	must(t, p.Transaction(func(tx *gorm.DB) error {
		one := thing[T]{Name: "in a transaction"}
		must(t, tx.Create(&one).Error)
		all = append(all, one)
		return tx.First(&thing[T]{}, one.ID).Error
	}))
	k.agree(t, p, all)
}

// The log shows an ID in the form of the database. The logged statement can be run unchanged.
func (k of[T, P]) log(t *testing.T, g *gorm.DB) {
	logged := func(name, kind, want string, run func(g *gorm.DB) *gorm.DB) {
		t.Helper()
		r := pgtest.NewRecorder()
		must(t, run(g.Session(&gorm.Session{Logger: r})).Error)
		s := r.With(kind)
		if len(s) != 1 || !strings.Contains(s[0], want) {
			t.Errorf("%s: got %q, want %q in it", name, s, want)
		} else if isPostgres(g) && kind == "SELECT" {
			must(t, g.Exec(s[0]).Error)
		}
	}
	a, b := k.ids(t, 2)[0], k.ids(t, 2)[1]
	literal := func(id T) string {
		switch {
		case k.Column != "uuid":
			return k.Stored(id)
		case isPostgres(g):
			return "'" + k.Stored(id) + "'"
		}
		return `"` + k.Stored(id) + `"`
	}
	one, other := literal(a), literal(b)
	logged("Create", "INSERT", one, func(g *gorm.DB) *gorm.DB { return g.Create(&thing[T]{ID: a}) })
	for name, c := range map[string]struct {
		tx   *gorm.DB
		want string
	}{
		"ID":            {g.Where("id = ?", a), "id = " + one},
		"pointer":       {g.Where("id = ?", &a), "id = " + one},
		"nil pointer":   {g.Where("id = ?", (*T)(nil)), "id = NULL"},
		"Null":          {g.Where("id = ?", sql.Null[T]{V: b, Valid: true}), "id = " + other},
		"NULL":          {g.Where("id = ?", sql.Null[T]{}), "id = NULL"},
		"Optional":      {g.Where("id = ?", sqltypes.OptionalOf(b)), "id = " + other},
		"zero Optional": {g.Where("id = ?", sqltypes.Optional[T]{}), "id = NULL"},
		"IN":            {g.Where("id IN ?", []T{a, b}), "id IN (" + one + "," + other + ")"},
		"IN pointers":   {g.Where("id IN ?", []*T{&a, nil}), "id IN (" + one + ",NULL)"},
		"IN Optionals":  {g.Where("id IN ?", []sqltypes.Optional[T]{{ID: b}, {}}), "id IN (" + other + ",NULL)"},
		"inline":        {g.Where([]T{a, b}), "IN (" + one + "," + other + ")"},
		"map":           {g.Where(map[string]any{"id": []T{a, b}}), "IN (" + one + "," + other + ")"},
		"struct":        {g.Where(&thing[T]{ID: a}), "= " + one},
		"scope":         {g.Scopes(gormplugin.PageAfter("", b)), "> " + other},
	} {
		logged(name, "SELECT", c.want, func(g *gorm.DB) *gorm.DB { return c.tx.Session(&gorm.Session{Logger: g.Logger}).Find(&[]thing[T]{}) })
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
		finds(t, "by the ID", g.Where("id = ?", a.ID), a)
		sqlDB, err := g.DB()
		must(t, err)
		if s := sqlDB.Stats(); s.Idle != 0 || s.InUse != 0 {
			t.Errorf("got %+v, want all connections back in the pool", s)
		}
		// With the codec, storing a Sno as text by accident is an error.
		var text string
		fails(t, "as text", sqlDB.QueryRow("select $1::text", a.ID).Scan(&text), nil, "sqltypes.SnoText")
	})
}

// A softly deleted row keeps its ID. Queries by ID don't find it. It can be restored.
func (k of[T, P]) softDelete(t *testing.T, g *gorm.DB) {
	ada := sender[T]{Name: "Ada", Letters: []letter[T]{{Code: "a"}, {Code: "b"}, {Code: "c"}, {Code: "d"}, {Code: "e"}, {Code: "f"}}}
	must(t, g.Create(&ada).Error)
	var ids []T
	for _, l := range ada.Letters {
		ids = append(ids, l.ID)
	}
	// state compares the codes in the table, without GORM's condition for soft deletion.
	state := func(what string, live, deleted []string) {
		t.Helper()
		codes := g.Unscoped().Model(&letter[T]{}).Order("code").Session(&gorm.Session{})
		plucks(t, what+": not deleted", codes.Where("deleted_at is null"), "code", live...)
		plucks(t, what+": deleted", codes.Where("deleted_at is not null"), "code", deleted...)
	}

	// Ways to delete.
	a := &ada.Letters[0]
	affects(t, "Delete of a struct", g.Delete(a), 1)
	equal(t, "the struct", []any{a.ID, a.DeletedAt.Valid}, []any{ids[0], true})
	affects(t, "Delete", g.Delete(&letter[T]{}, ids[1]), 1)
	affects(t, "Delete by IN", g.Where("id IN ?", ids[2:3]).Delete(&letter[T]{}), 1)
	state("Delete", []string{"d", "e", "f"}, []string{"a", "b", "c"})
	n, err := gorm.G[letter[T]](g).Where("id = ?", ids[3]).Delete(t.Context())
	must(t, err)
	equal(t, "G.Delete", n, 1)
	affects(t, "Delete of a list with deleted rows", g.Delete(&letter[T]{}, ids[:5]), 1)
	state("Delete by a slice", []string{"f"}, []string{"a", "b", "c", "d", "e"})

	// Queries.
	letters := g.Model(&letter[T]{}).Session(&gorm.Session{})
	for name, q := range map[string]*gorm.DB{
		"all":       letters,
		"slice":     letters.Where(ids),
		"IN":        letters.Where("id IN ?", ids),
		"or":        letters.Where("id = ?", ids[0]).Or("id = ?", ids[5]).Or("id = ?", ids[1]),
		"struct":    letters.Where(&letter[T]{SenderID: ada.ID}),
		"map":       letters.Where(map[string]any{"id": ids}),
		"not":       letters.Not("id = ?", ada.ID),
		"subquery":  letters.Where("id IN (?)", letters.Select("id")),
		"joined to": letters.InnerJoins("Sender"),
	} {
		plucks(t, name, q, "letters.id", ids[5])
	}
	fails(t, "First of a deleted row", g.First(&letter[T]{}, ids[0]).Error, gorm.ErrRecordNotFound, "")
	var count int64
	must(t, letters.Where("id IN ?", ids).Count(&count).Error)
	equal(t, "Count and Association", [2]int64{count, g.Model(&ada).Association("Letters").Count()}, [2]int64{1, 1})
	for want, preload := range map[int]func(*gorm.DB) *gorm.DB{
		1: func(tx *gorm.DB) *gorm.DB { return tx },
		6: func(tx *gorm.DB) *gorm.DB { return tx.Unscoped() },
	} {
		var s sender[T]
		must(t, g.Preload("Letters", preload).First(&s, ada.ID).Error)
		equal(t, "Preload", len(s.Letters), want)
	}

	// The row still exists.
	var l letter[T]
	must(t, g.Unscoped().First(&l, ids[1]).Error)
	equal(t, "Unscoped", []any{l.ID, l.Code, l.DeletedAt.Valid, l.SenderID}, []any{ids[1], "b", true, ada.ID})
	again := letter[T]{ID: ids[1], Code: "again", SenderID: ada.ID}
	fails(t, "Create with the ID of a deleted row", g.Create(&again).Error, nil, "")
	equal(t, "Create with the ID of a deleted row", again.ID, ids[1])

	// An update restores the row, and so does Save of a struct that isn't deleted.
	must(t, g.Unscoped().Model(&l).Update("deleted_at", nil).Error)
	must(t, g.Unscoped().Model(&letter[T]{}).Where("id = ?", ids[2]).Update("deleted_at", gorm.DeletedAt{}).Error)
	saved := letter[T]{ID: ids[3], Code: "d", Kind: "saved", SenderID: ada.ID}
	must(t, g.Save(&saved).Error)
	state("restored", []string{"b", "c", "d", "f"}, []string{"a", "e"})
	plucks(t, "Save", letters.Where("kind = ?", "saved"), "id", ids[3])

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
	for name, q := range map[string]*gorm.DB{"Joins": g.Joins("Sender"), "Preload": g.Preload("Sender")} {
		l = letter[T]{}
		if err := q.First(&l, "letters.id = ?", ids[5]).Error; err != nil || l.Sender != nil || l.SenderID != ada.ID {
			t.Errorf("%s with a deleted sender: got %+v, %v", name, l, err)
		}
	}
	fails(t, "InnerJoins with a deleted sender", g.InnerJoins("Sender").First(&l, "letters.id = ?", ids[5]).Error, gorm.ErrRecordNotFound, "")
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
	onClients(t, postgresClients, func(t *testing.T, g *gorm.DB) {
		must(t, g.AutoMigrate(&basket{}))
		equal(t, "the second AutoMigrate", alterations(t, g, &basket{}), nil)
		type snowflakes = sqltypes.Array[idtype.Snowflake]
		owner := typedSno{5: 'c', 9: 7}
		want := []basket{{ID: 1}, {2, snowflakes{}, sqltypes.Array[typedSno]{}}, {3, snowflakes{7}, sqltypes.ArrayOf([]typedSno{owner})}, {4, snowflakes{7, 779300444248735744}, nil}}
		must(t, g.Create(&want).Error)
		finds(t, "all", g.Order("id"), want...)
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
			"no keys":                {g.Where("id = ANY (?)", snowflakes{}), nil},
			"a struct with an array": {g.Where(&basket{Items: snowflakes{7}}), []idtype.Snowflake{3}},
		} {
			plucks(t, name, c.tx.Model(&basket{}).Order("id"), "id", c.want...)
		}
		// Conditions in which GORM takes an Array for one value.
		fails(t, "IN", g.Where("id IN ?", snowflakes{1, 3}).Find(&[]basket{}).Error, nil, "")
		fails(t, "a list", g.Where(snowflakes{1, 3}).Find(&[]basket{}).Error, nil, "")
		must(t, g.Model(&basket{ID: 3}).Update("items", snowflakes{8, 9}).Error)
		want[2].Items = snowflakes{8, 9}
		finds(t, "after Update", g.Where("id = 3"), want[2])
		// A plain slice.
		g = g.Table("baskets").Session(&gorm.Session{})
		must(t, g.Create(&slice{ID: 10, Items: []idtype.Snowflake{}}).Error)
		plucks(t, "an empty slice", g.Where("id = 10"), "items IS NULL", true)
		fails(t, "a slice of one", g.Create(&slice{ID: 11, Items: []idtype.Snowflake{7}}).Error, nil, "")
		fails(t, "a slice of two", g.Create(&slice{ID: 11, Items: []idtype.Snowflake{7, 8}}).Error, nil, "")
		// Since Go 1.27, pgx scans a column into a slice. Before, that is an error.
		var read []slice
		if err := g.Find(&read, "id = 3").Error; err == nil && (len(read) != 1 || !slices.Equal(read[0].Items, want[2].Items)) {
			t.Errorf("reading into a slice: got %v, want an error or %v", read, want[2].Items)
		}
	})
}
