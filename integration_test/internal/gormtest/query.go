package gormtest

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/sqltypes"
)

// GORM finds rows by their IDs with every kind of condition.
func (k *Kind) query(t *testing.T, g *database) {
	ada := newGraph()
	must(t, g.Create(ada).Error)
	a := ada
	luigi, mary, charles := a.Team[0], a.Team[1], a.Manager
	friend := a.Friends[0].ID
	team := []ID{luigi.ID, mary.ID}
	people := g.Model(&person{}).Session(&gorm.Session{})
	var zero ID

	// One row by its ID, and no row by another ID.
	other := k.ids(t, 1)[0]
	for name, by := range map[string]func(id ID) *database{
		"condition": func(id ID) *database { return people.Where("id = ?", id) },
		"pointer":   func(id ID) *database { return people.Where("id = ?", &id) },
		"named":     func(id ID) *database { return people.Where("id = @id", map[string]any{"id": id}) },
		"map":       func(id ID) *database { return people.Where(map[string]any{"id": id}) },
		"struct":    func(id ID) *database { return people.Where(personBy(id)) },
		"foreign key": func(id ID) *database {
			return people.Where("id in (select person_id from passports where person_id = ?)", id)
		},
		"not":        func(id ID) *database { return people.Not("id <> ?", id) },
		"or":         func(id ID) *database { return people.Where("id = ?", id).Or("id = ?", id) },
		"tuple":      func(id ID) *database { return people.Where("(id, name) IN ?", [][]any{{id, "Ada"}}) },
		"comparison": func(id ID) *database { return people.Where("id >= ? AND id <= ?", id, id) },
		"subquery":   func(id ID) *database { return people.Where("id = (?)", people.Select("id").Where("id = ?", id)) },
	} {
		plucks(t, name, by(a.ID), "name", "Ada")
		plucks[string](t, name+", unknown ID", by(other), "name")
	}
	for name, first := range map[string]func(dest *person) *database{
		"First":           func(p *person) *database { return g.First(p, a.ID) },
		"First, in chain": func(p *person) *database { return g.Where("id = ?", a.ID).First(p) },
		"Take":            func(p *person) *database { return g.Take(p, "id = ?", a.ID) },
		"Find":            func(p *person) *database { return g.Find(p, a.ID) },
		"set":             func(p *person) *database { p.ID = a.ID; return g.First(p) },
	} {
		n := &person{}
		if err := first(n).Error; err != nil || n.ID != a.ID || n.Name != "Ada" {
			t.Errorf("%s: got %+v, %v, want %v", name, n, err, a.ID)
		}
	}

	// Conditions with NULL, lists, tuples and subqueries.
	for name, c := range map[string]struct {
		tx   *database
		want []string // names
	}{
		"IN brackets":              {people.Where("id IN (?)", team), []string{"Luigi", "Mary"}},
		"IN with a zero ID":        {people.Where("id IN ?", []ID{zero, mary.ID}), []string{"Mary"}},
		"IN with NULL":             {people.Where("id IN ?", []*ID{nil, &mary.ID}), []string{"Mary"}},
		"IN with Optionals":        {people.Where("id IN ?", []sqltypes.Optional[ID]{{}, {ID: mary.ID}}), []string{"Mary"}},
		"NULL":                     {people.Where("manager_id IS NULL"), []string{"Augustus", "Charles", "Michael"}},
		"NULL of a map":            {people.Where(map[string]any{"manager_id": nil}), []string{"Augustus", "Charles", "Michael"}},
		"not NULL":                 {people.Not(map[string]any{"manager_id": nil}), []string{"Ada", "Luigi", "Mary"}},
		"not in a map":             {people.Where("manager_id = ?", a.ID).Not(map[string]any{"id": []ID{a.ID}}), []string{"Luigi", "Mary"}},
		"equal to NULL":            {people.Where("manager_id = ?", (*ID)(nil)), nil},
		"equal to a zero Optional": {people.Where("manager_id = ?", sqltypes.Optional[ID]{}), nil},
		"Optional":                 {people.Where("manager_id = ?", luigi.ManagerID), []string{"Luigi", "Mary"}},
		"Null":                     {people.Where("manager_id = ?", sql.Null[ID]{V: a.ID, Valid: true}), []string{"Luigi", "Mary"}},
		"structs":                  {people.Where([]*person{personBy(mary.ID)}), []string{"Mary"}},
		"struct with an Optional":  {people.Where(newPerson(fields{ManagerID: luigi.ManagerID})), []string{"Luigi", "Mary"}},
		"struct's named fields":    {people.Where(newPerson(fields{Name: "Mary", ManagerID: sqltypes.OptionalOf(a.ID)}), "manager_id"), []string{"Luigi", "Mary"}},
		"named argument":           {people.Where("id = @id OR manager_id = @id", sql.Named("id", a.ID)), []string{"Ada", "Luigi", "Mary"}},
		"named slice":              {people.Where("id IN @ids", map[string]any{"ids": team}), []string{"Luigi", "Mary"}},
		"named fields":             {people.Where("id = @ID OR manager_id = @ID", struct{ ID ID }{a.ID}), []string{"Ada", "Luigi", "Mary"}},
		"expression":               {people.Where(clause.IN{Column: "id", Values: []any{luigi.ID, &mary.ID}}), []string{"Luigi", "Mary"}},
		"tuples":                   {people.Where("(id, manager_id) IN ?", [][]any{{luigi.ID, a.ID}, {mary.ID, charles.ID}}), []string{"Luigi"}},
		"subquery":                 {people.Where("id IN (?)", g.Model(&order{}).Select("person_id").Where("person_id <> ?", a.ID)), []string{"Luigi"}},
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
		PersonID ID
		Orders   int
	}
	finds(t, "Group", g.Table("orders").Select("person_id, count(*) as orders").Group("person_id").
		Having("person_id IN ?", []ID{a.ID, luigi.ID, charles.ID}).Order("orders"), counted{luigi.ID, 1}, counted{a.ID, 2})
	persons := []ID{a.ID, luigi.ID}
	slices.SortFunc(persons, ID.Compare)
	var distinct []ID
	must(t, g.Model(&order{}).Distinct("person_id").Pluck("person_id", &distinct).Error)
	slices.SortFunc(distinct, ID.Compare)
	equal(t, "Distinct", distinct, persons)
	var count int64
	must(t, g.Model(&order{}).Distinct("person_id").Count(&count).Error)
	equal(t, "Count of different IDs", count, 2)

	// A zero ID is no condition, and an update or delete needs a condition.
	for name, tx := range map[string]*database{
		"Delete":            g.Delete(&person{}),
		"Delete of a slice": g.Delete(&[]*person{{}}),
		"Update":            people.Update("name", "x"),
		"Updates":           g.Model(personBy(zero)).Updates(map[string]any{"name": "x"}),
	} {
		fails(t, name+" by a zero ID", tx.Error, gorm.ErrMissingWhereClause, "")
	}
	if isPostgres(g) { // SQLite has no row locks
		must(t, g.Transaction(func(tx *database) error {
			locking := clause.Locking{Strength: clause.LockingStrengthUpdate}
			must(t, tx.Clauses(locking).First(&person{}, a.ID).Error)
			locking.Options = clause.LockingOptionsNoWait
			fails(t, "a locked row", g.Clauses(locking).First(&person{}, a.ID).Error, nil, "")
			return g.Clauses(locking).First(&person{}, mary.ID).Error
		}))
	}

	// Updates and deletes affect only the matching rows.
	affects(t, "Update", g.Model(personBy(a.ID)).Update("name", "Ada L."), 1)
	affects(t, "Update, IN", people.Where("id IN ?", team).Update("manager_id", friend), 2)
	plucks(t, "after the updates", people.Where("name = ? or manager_id = ?", "Ada L.", friend).Order("name"), "name", "Ada L.", "Luigi", "Mary")
	affects(t, "Exec, slice", g.Exec("update people set manager_id = ? where id in ?", &charles.ID, team), 2)
	affects(t, "Exec, named", g.Exec("update people set company_id = @company where manager_id = @boss", map[string]any{"company": a.CompanyID, "boss": charles.ID}), 3)
	affects(t, "Exec, NULL", g.Exec("update people set company_id = ? where id = ?", (*ID)(nil), mary.ID), 1)
	affects(t, "Exec, mixed", g.Exec("update people set company_id = ? where id in ? and manager_id = @boss", sqltypes.Optional[ID]{}, team, sql.Named("boss", charles.ID)), 2)
	plucks(t, "after Exec", people.Where("company_id IS NULL AND manager_id = ?", charles.ID).Order("name"), "name", "Luigi", "Mary")
	cards, brass, paper := a.Orders[0].ID, a.Orders[1].ID, luigi.Orders[0].ID
	items := g.Model(&order{}).Order("item").Session(&gorm.Session{})
	plucks(t, "orders", items, "id", brass, cards, paper)
	affects(t, "Delete by an ID", g.Delete(&order{}, brass), 1)
	plucks(t, "Delete by an ID", items, "id", cards, paper)
	affects(t, "Delete of a struct", g.Delete(&order{ID: paper}), 1)
	plucks(t, "Delete of a struct", items, "id", cards)
	again := []order{{PersonID: luigi.ID, Item: "of Luigi"}, {PersonID: a.ID, Item: "of Ada"}}
	must(t, g.Create(&again).Error)
	affects(t, "Delete by a struct", g.Where(&order{PersonID: luigi.ID}).Delete(&order{}), 1)
	plucks(t, "Delete by a struct", items, "id", cards, again[1].ID)
	affects(t, "Delete of a slice", g.Delete(&again), 1)
	plucks(t, "Delete of a slice", items, "id", cards)
	affects(t, "Delete by a list", g.Delete(&order{}, []ID{cards, paper}), 1)
	plucks[ID](t, "Delete by a list", items, "id")
}

// Preload and Joins load the associations that match their conditions.
func (k *Kind) loading(t *testing.T, g *database) {
	ada := newGraph()
	must(t, g.Create(ada).Error)
	a := ada
	mary, friend := a.Team[1], a.Friends[1]
	brass := a.Orders[1].ID
	first := func(tx *database, id ID) *person {
		n := &person{}
		must(t, tx.First(n, "people.id = ?", id).Error)
		return n
	}

	// The numbers of Ada's orders, team members, friends, clubs, pictures and tags.
	for name, c := range map[string]struct {
		tx   *database
		want [6]int
	}{
		"nothing":           {g, [6]int{}},
		"all":               {g.Preload(clause.Associations), [6]int{2, 2, 2, 1, 2, 2}},
		"text":              {g.Preload("Orders", "id = ?", brass), [6]int{1}},
		"slice":             {g.Preload("Orders", "id IN ?", []ID{brass, mary.ID}), [6]int{1}},
		"not":               {g.Preload("Orders", "id NOT IN (?)", []ID{brass}), [6]int{1}},
		"function":          {g.Preload("Orders", func(tx *database) *database { return tx.Where(&order{ID: brass}) }), [6]int{1}},
		"of its own kind":   {g.Preload("Team", "id = ?", mary.ID), [6]int{0, 1}},
		"many to many":      {g.Preload("Friends", "id = ?", friend.ID), [6]int{0, 0, 1}},
		"own join table":    {g.Preload("Clubs", "id <> ?", a.Clubs[0].ID), [6]int{}},
		"polymorphic":       {g.Preload("Pictures", map[string]any{"id": a.Pictures[0].ID}), [6]int{0, 0, 0, 0, 1}},
		"another's ID":      {g.Preload("Orders", "person_id = ?", mary.ID), [6]int{}},
		"scope of a window": {g.Preload("Orders", func(tx *database) *database { return tx.Scopes(k.before("", ID{})).Limit(1) }), [6]int{1}},
	} {
		var people []*person
		must(t, c.tx.Find(&people, []ID{a.ID, friend.ID}).Error)
		equal(t, name, len(people), 2)
		for i := range people {
			p, want := people[i], c.want
			if p.ID != a.ID {
				want = [6]int{}
			}
			equal(t, "Preload, "+name+": "+p.Name, [6]int{len(p.Orders), len(p.Team), len(p.Friends), len(p.Clubs), len(p.Pictures), len(p.Tags)}, want)
		}
	}
	p := first(g.Preload("Orders.Pictures").Preload("Company").Preload("Passport").Preload("Detail").Preload("Manager"), a.ID)
	equal(t, "Preload of single rows", []any{p.Company, p.Passport, p.Detail, p.Manager.ID}, []any{a.Company, a.Passport, a.Detail, a.Manager.ID})
	equal(t, "Preload of nested rows", len(p.Orders[0].Pictures)+len(p.Orders[1].Pictures), 1)
	p = first(g.Preload("Team", func(tx *database) *database { return tx.Order("name") }).Preload("Team.Orders", "item <> ?", "x").Preload("Team.Manager.Orders.Pictures"), a.ID)
	if len(p.Team) != 2 || len(p.Team[0].Orders) != 1 || len(p.Team[1].Orders) != 0 || len(p.Team[1].Manager.Orders) != 2 {
		t.Errorf("nested Preload: got %+v", p)
	}
	// Joins omits associations that don't match. InnerJoins omits the row, too.
	p = first(g.Joins("Company").Joins("Manager").Joins("Passport"), a.ID)
	equal(t, "Joins", []any{p.Company, p.Passport, p.Manager.Name}, []any{a.Company, a.Passport, "Charles"})
	nobody := any(*new(*person))
	if p = first(g.Joins("Company").Joins("Manager"), friend.ID); p.Company != nil || any(p.Manager) != nobody || !p.ManagerID.IsZero() {
		t.Errorf("Joins without partners: got %+v", p)
	}
	own, other := a.Company.ID, mary.ID
	for name, c := range map[string]struct {
		tx   *database
		want []*company // of each row
	}{
		"struct":        {g.Joins("Company", g.Where(&company{ID: own})), []*company{a.Company}},
		"other struct":  {g.Joins("Company", g.Where(&company{ID: other})), []*company{nil}},
		"map":           {g.Joins("Company", g.Where(map[string]any{"id": []ID{own, other}})), []*company{a.Company}},
		"other map":     {g.Joins("Company", g.Where(map[string]any{"id": []ID{other}})), []*company{nil}},
		"text":          {g.Joins("Company", g.Where(`"Company"."id" = ?`, &own)), []*company{a.Company}},
		"not":           {g.Joins("Company", g.Not(&company{ID: own})), []*company{nil}},
		"inner":         {g.InnerJoins("Company", g.Where(&company{ID: own})), []*company{a.Company}},
		"inner, other":  {g.InnerJoins("Company", g.Where(&company{ID: other})), nil},
		"where":         {g.Joins("Company").Where(`"Company"."id" = ?`, own), []*company{a.Company}},
		"where, other":  {g.Joins("Company").Where(`"Company"."id" <> ?`, own), nil},
		"SQL":           {g.Joins("join orders o on o.person_id = people.id and o.id = ?", brass), []*company{nil}},
		"SQL, other":    {g.Joins("join orders o on o.person_id = people.id and o.id in ?", []ID{own, other}), nil},
		"SQL, subquery": {g.Joins("join (?) o on o.person_id = people.id", g.Model(&order{}).Where("id = ?", brass)), []*company{nil}},
		"through":       {g.Joins("Manager").Joins("Manager.Company").Joins("Company"), []*company{a.Company}},
	} {
		var people []*person
		must(t, c.tx.Find(&people, "people.id = ?", a.ID).Error)
		var got []*company
		for i := range people {
			equal(t, "Joins, "+name, people[i].ID, a.ID)
			got = append(got, people[i].Company)
		}
		equal(t, "Joins, "+name, got, c.want)
	}
}

// IDs can be scanned into every kind of destination.
func (k *Kind) scanning(t *testing.T, g *database) {
	ada := newGraph()
	must(t, g.Create(ada).Error)
	a := ada
	boss := a.Manager.ID
	// Ada has a manager, Charles has none.
	both := g.Model(&person{}).Where("id IN ?", []ID{a.ID, boss}).Order("name").Session(&gorm.Session{})
	plucks(t, "IDs", both, "id", a.ID, boss)
	plucks(t, "pointers", both, "id", &a.ID, &boss)
	plucks(t, "sql.Null", both, "manager_id", sql.Null[ID]{V: boss, Valid: true}, sql.Null[ID]{})
	plucks(t, "Optionals", both, "manager_id", sqltypes.OptionalOf(boss), sqltypes.Optional[ID]{})
	// GORM treats the elements of both slices as ID, so pointers don't accept NULL here.
	fails(t, "NULL into IDs", both.Pluck("manager_id", &[]ID{}).Error, idtype.ErrNull, "")
	fails(t, "NULL into pointers", both.Pluck("manager_id", &[]*ID{}).Error, idtype.ErrNull, "")

	// A single value. A Sno is an array, which GORM mistakes for a list of rows. A Sno in a
	// struct works.
	var (
		one    ID
		opt    sqltypes.Optional[ID]
		nobody sql.Null[ID]
	)
	err := both.Select("manager_id").Where("name = ?", "Ada").Scan(&one).Error
	if isArray := k.goKind() == reflect.Array; isArray && (err == nil || !one.IsZero()) || !isArray && (err != nil || one != boss) {
		t.Errorf("Scan into %s: got %v, %v", k.Name, one, err)
	}
	must(t, both.Select("manager_id").Where("name = ?", "Ada").Scan(&opt).Error)
	must(t, g.Raw("select id from people where name = ?", "Ada").ScanRow(&one))
	must(t, both.Select("manager_id").Where("name = ?", "Charles").Scan(&nobody).Error)
	equal(t, "Scan and Row", []any{opt.ID, one, nobody.Valid}, []any{boss, a.ID, false})

	// Structs of other fields.
	type pair struct {
		Who     ID
		Manager *ID
		Company sql.Null[ID]
		Opt     sqltypes.Optional[ID]
		Written sqltypes.Text[ID]
	}
	var pairs []pair
	text := sqltypes.TextOf(a.ID)
	columnText := must1(t, k.real(text).(driver.Valuer).Value)
	must(t, both.Select("id as who, manager_id as manager, company_id as company, manager_id as opt, ? as written", columnText).Scan(&pairs).Error)
	equal(t, "Scan into structs", pairs, []pair{{a.ID, &boss, sql.Null[ID]{V: a.Company.ID, Valid: true}, sqltypes.OptionalOf(boss), text}, {Who: boss, Written: text}})
	// GORM reads NULL as zero into a field that can't be NULL.
	finds(t, "NULL into a field", both.Select("manager_id"), struct{ ManagerID ID }{boss}, struct{ ManagerID ID }{})

	// A map gets the driver's value, not the Go type.
	stored := func(id ID) any {
		if k.Column == "uuid" {
			return k.stored(id)
		}
		v, err := id.Value()
		must(t, err)
		return v
	}
	var count int64
	for name, tx := range map[string]*database{
		"model": g.Model(&person{}).Order("name"),
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
	must(t, g.Model(&person{}).Take(&row, "id = ?", a.ID).Error)
	equal(t, "map", row["id"], stored(a.ID))
	plucks(t, "by the ID in a map", g.Model(&person{}).Where(map[string]any{"id": row["id"]}), "name", "Ada")

	// Single rows and batches.
	rows, err := both.Rows()
	must(t, err)
	defer rows.Close()
	var scanned []ID
	for rows.Next() {
		n := &person{}
		must(t, g.ScanRows(rows, n))
		scanned = append(scanned, n.ID)
	}
	must(t, rows.Err())
	equal(t, "ScanRows", scanned, []ID{a.ID, boss})
	var batch []*person
	seen, batches := map[ID]bool{}, 0
	must(t, g.FindInBatches(&batch, 2, func(tx *database, _ int) error {
		if batches++; batches > 10 {
			return errors.New("Save adds rows") // without end
		}
		for i := range batch {
			seen[batch[i].ID] = true
			batch[i].Name += "."
		}
		return tx.Save(&batch).Error
	}).Error)
	must(t, g.Model(&person{}).Where("name like ?", "%_.").Where("name not like ?", "%..").Count(&count).Error)
	equal(t, "FindInBatches: IDs, batches and saved rows", [3]int{len(seen), batches, int(count)}, [3]int{6, 3, 6})
}

// Prepared statements work with IDs repeatedly.
func (k *Kind) prepared(t *testing.T, g *database) {
	p := g.Session(&gorm.Session{PrepareStmt: true})
	var all []thing
	for i := range 3 {
		a, b, gone := thing{Name: fmt.Sprint("a", i)}, thing{Name: fmt.Sprint("b", i)}, thing{}
		must(t, p.Create([]*thing{&a, &b}).Error)
		must(t, p.Create(&gone).Error)
		finds(t, "IN", p.Order("name").Where("id IN ?", []ID{b.ID, a.ID}), a, b)
		for _, id := range []any{a.ID, &a.ID, sql.Null[ID]{V: a.ID, Valid: true}, sqltypes.OptionalOf(a.ID)} {
			finds(t, fmt.Sprintf("by a %T", id), p.Where("id = ?", id), a)
		}
		fails(t, "by NULL", p.Take(&thing{}, "id = ?", (*ID)(nil)).Error, gorm.ErrRecordNotFound, "")
		a.Name += "!"
		must(t, p.Save(&a).Error)
		must(t, p.Model(&b).Update("name", b.Name).Error)
		must(t, p.Delete(&thing{}, gone.ID).Error)
		all = append(all, a, b)
	}
	must(t, p.Transaction(func(tx *database) error {
		one := thing{Name: "in a transaction"}
		must(t, tx.Create(&one).Error)
		all = append(all, one)
		return tx.First(&thing{}, one.ID).Error
	}))
	k.agree(t, p, all)
}

// The log shows an ID in the form of the database. The logged statement can be run unchanged.
func (k *Kind) log(t *testing.T, g *database) {
	logged := func(name, kind, want string, run func(g *database) *database) {
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
	literal := func(id ID) string {
		switch {
		case k.Column != "uuid":
			return k.stored(id)
		case isPostgres(g):
			return "'" + k.stored(id) + "'"
		}
		return `"` + k.stored(id) + `"`
	}
	one, other := literal(a), literal(b)
	logged("Create", "INSERT", one, func(g *database) *database { return g.Create(&thing{ID: a}) })
	for name, c := range map[string]struct {
		tx   *database
		want string
	}{
		"ID":            {g.Where("id = ?", a), "id = " + one},
		"pointer":       {g.Where("id = ?", &a), "id = " + one},
		"nil pointer":   {g.Where("id = ?", (*ID)(nil)), "id = NULL"},
		"Null":          {g.Where("id = ?", sql.Null[ID]{V: b, Valid: true}), "id = " + other},
		"NULL":          {g.Where("id = ?", sql.Null[ID]{}), "id = NULL"},
		"Optional":      {g.Where("id = ?", sqltypes.OptionalOf(b)), "id = " + other},
		"zero Optional": {g.Where("id = ?", sqltypes.Optional[ID]{}), "id = NULL"},
		"IN":            {g.Where("id IN ?", []ID{a, b}), "id IN (" + one + "," + other + ")"},
		"IN pointers":   {g.Where("id IN ?", []*ID{&a, nil}), "id IN (" + one + ",NULL)"},
		"IN Optionals":  {g.Where("id IN ?", []sqltypes.Optional[ID]{{ID: b}, {}}), "id IN (" + other + ",NULL)"},
		"inline":        {g.Where([]ID{a, b}), "IN (" + one + "," + other + ")"},
		"map":           {g.Where(map[string]any{"id": []ID{a, b}}), "IN (" + one + "," + other + ")"},
		"struct":        {g.Where(&thing{ID: a}), "= " + one},
		"scope":         {g.Scopes(k.after("", b)), "> " + other},
	} {
		logged(name, "SELECT", c.want, func(g *database) *database {
			return c.tx.Session(&gorm.Session{Logger: g.real.Logger}).Find(&[]thing{})
		})
	}
}

// A softly deleted row keeps its ID. Queries by ID don't find it. It can be restored.
func (k *Kind) softDelete(t *testing.T, g *database) {
	ada := sender{Name: "Ada", Letters: []letter{{Code: "a"}, {Code: "b"}, {Code: "c"}, {Code: "d"}, {Code: "e"}, {Code: "f"}}}
	must(t, g.Create(&ada).Error)
	var ids []ID
	for _, l := range ada.Letters {
		ids = append(ids, l.ID)
	}
	// state compares the codes in the table, without GORM's condition for soft deletion.
	state := func(what string, live, deleted []string) {
		t.Helper()
		codes := g.Unscoped().Model(&letter{}).Order("code").Session(&gorm.Session{})
		plucks(t, what+": not deleted", codes.Where("deleted_at is null"), "code", live...)
		plucks(t, what+": deleted", codes.Where("deleted_at is not null"), "code", deleted...)
	}

	// Ways to delete.
	a := &ada.Letters[0]
	affects(t, "Delete of a struct", g.Delete(a), 1)
	equal(t, "the struct", []any{a.ID, a.DeletedAt.Valid}, []any{ids[0], true})
	affects(t, "Delete", g.Delete(&letter{}, ids[1]), 1)
	affects(t, "Delete by IN", g.Where("id IN ?", ids[2:3]).Delete(&letter{}), 1)
	state("Delete", []string{"d", "e", "f"}, []string{"a", "b", "c"})
	affects(t, "Delete by =", g.Where("id = ?", ids[3]).Delete(&letter{}), 1)
	affects(t, "Delete of a list with deleted rows", g.Delete(&letter{}, ids[:5]), 1)
	state("Delete by a slice", []string{"f"}, []string{"a", "b", "c", "d", "e"})

	// Queries.
	letters := g.Model(&letter{}).Session(&gorm.Session{})
	for name, q := range map[string]*database{
		"all":       letters,
		"slice":     letters.Where(ids),
		"IN":        letters.Where("id IN ?", ids),
		"or":        letters.Where("id = ?", ids[0]).Or("id = ?", ids[5]).Or("id = ?", ids[1]),
		"struct":    letters.Where(&letter{SenderID: ada.ID}),
		"map":       letters.Where(map[string]any{"id": ids}),
		"not":       letters.Not("id = ?", ada.ID),
		"subquery":  letters.Where("id IN (?)", letters.Select("id")),
		"joined to": letters.InnerJoins("Sender"),
	} {
		plucks(t, name, q, "letters.id", ids[5])
	}
	fails(t, "First of a deleted row", g.First(&letter{}, ids[0]).Error, gorm.ErrRecordNotFound, "")
	var count int64
	must(t, letters.Where("id IN ?", ids).Count(&count).Error)
	equal(t, "Count and Association", [2]int64{count, g.Model(&ada).Association("Letters").Count()}, [2]int64{1, 1})
	for want, preload := range map[int]func(*database) *database{
		1: func(tx *database) *database { return tx },
		6: func(tx *database) *database { return tx.Unscoped() },
	} {
		var s sender
		must(t, g.Preload("Letters", preload).First(&s, ada.ID).Error)
		equal(t, "Preload", len(s.Letters), want)
	}

	// The row still exists.
	var l letter
	must(t, g.Unscoped().First(&l, ids[1]).Error)
	equal(t, "Unscoped", []any{l.ID, l.Code, l.DeletedAt.Valid, l.SenderID}, []any{ids[1], "b", true, ada.ID})
	again := letter{ID: ids[1], Code: "again", SenderID: ada.ID}
	fails(t, "Create with the ID of a deleted row", g.Create(&again).Error, nil, "")
	equal(t, "Create with the ID of a deleted row", again.ID, ids[1])

	// An update restores the row, and so does Save of a struct that isn't deleted.
	must(t, g.Unscoped().Model(&l).Update("deleted_at", nil).Error)
	must(t, g.Unscoped().Model(&letter{}).Where("id = ?", ids[2]).Update("deleted_at", gorm.DeletedAt{}).Error)
	saved := letter{ID: ids[3], Code: "d", Kind: "saved", SenderID: ada.ID}
	must(t, g.Save(&saved).Error)
	state("restored", []string{"b", "c", "d", "f"}, []string{"a", "e"})
	plucks(t, "Save", letters.Where("kind = ?", "saved"), "id", ids[3])

	// Unscoped deletes permanently.
	must(t, g.Unscoped().Delete(&letter{}, ids[1:3]).Error)
	must(t, g.Unscoped().Delete(a).Error)
	state("Unscoped Delete", []string{"d", "f"}, []string{"e"})
	again = letter{ID: ids[1], Code: "b", SenderID: ada.ID}
	must(t, g.Create(&again).Error)
	fresh := letter{Code: "a", SenderID: ada.ID}
	must(t, g.Create(&fresh).Error)
	if again.ID != ids[1] || fresh.ID.IsZero() || slices.Contains(ids, fresh.ID) {
		t.Errorf("created again: got IDs %v and %v", again.ID, fresh.ID)
	}
	state("created again", []string{"a", "b", "d", "f"}, []string{"e"})

	// Joins don't find a deleted sender. Its letters stay.
	must(t, g.Delete(&ada).Error)
	for name, q := range map[string]*database{"Joins": g.Joins("Sender"), "Preload": g.Preload("Sender")} {
		l = letter{}
		if err := q.First(&l, "letters.id = ?", ids[5]).Error; err != nil || l.Sender != nil || l.SenderID != ada.ID {
			t.Errorf("%s with a deleted sender: got %+v, %v", name, l, err)
		}
	}
	fails(t, "InnerJoins with a deleted sender", g.InnerJoins("Sender").First(&l, "letters.id = ?", ids[5]).Error, gorm.ErrRecordNotFound, "")
}

// An array column needs a Go type with Value and Scan: GORM stores a plain slice as a list of
// values, and an empty slice as NULL.
func arrays(t *testing.T, g *database) {
	type basket struct {
		ID     idtype.Snowflake
		Items  sqltypes.Array[idtype.Snowflake]
		Owners sqltypes.Array[typedSno]
	}
	type slice struct {
		ID    idtype.Snowflake
		Items []idtype.Snowflake `gorm:"type:bigint[]"`
	}
	must(t, g.AutoMigrate(&basket{}))
	equal(t, "the second AutoMigrate", alterations(t, g, &basket{}), nil)
	type snowflakes = sqltypes.Array[idtype.Snowflake]
	owner := typedSno{5: 'c', 9: 7}
	want := []basket{{ID: 1}, {2, snowflakes{}, sqltypes.Array[typedSno]{}}, {3, snowflakes{7}, sqltypes.ArrayOf([]typedSno{owner})}, {4, snowflakes{7, 779300444248735744}, nil}}
	must(t, g.Create(&want).Error)
	finds(t, "all", g.Order("id"), want...)
	for name, c := range map[string]struct {
		tx   *database
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
}
