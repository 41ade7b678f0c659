package gormgeneric

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/integration_test/internal/sqlitetest"
	"github.com/sortkey/sortkey/sqltypes"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// must is pgtest.Must.
var must = pgtest.Must

type (
	sno    = idtype.Sno
	person struct {
		ID        sno
		Name      string `gorm:"unique"`
		Kind      string
		CompanyID *sno
		Company   *company
		ManagerID sqltypes.Optional[idtype.Sno]
		Manager   *person
		Passport  *passport
		Orders    []order
		Tags      []*tag  `gorm:"many2many:person_tags"`
		Clubs     []*club `gorm:"many2many:memberships"`
		DeletedAt gorm.DeletedAt

		Before, After sno `gorm:"-"` // the IDs that the hooks saw
	}
	company  struct{ ID sno }
	passport struct{ ID, PersonID sno }
	order    struct {
		ID, PersonID sno
		Item         string
		Pictures     []picture `gorm:"polymorphic:Owner"`
	}
	picture struct {
		ID, OwnerID sno
		OwnerType   string
	}
	tag  struct{ ID sno }
	club struct {
		ID   sno
		Name string
	}
	// A membership is a row of a join table with its own ID.
	membership struct {
		ID       sno
		PersonID sno `gorm:"uniqueIndex:membership"`
		ClubID   sno `gorm:"uniqueIndex:membership"`
	}
)

func (p *person) BeforeCreate(*gorm.DB) error { p.Before = p.ID; return nil }
func (p *person) AfterCreate(*gorm.DB) error  { p.After = p.ID; return nil }

// run runs a test on each database.
func run(t *testing.T, f func(t *testing.T, g *gorm.DB)) {
	up := func(t *testing.T, g *gorm.DB) {
		must(t, g.SetupJoinTable(&person{}, "Clubs", &membership{}))
		must(t, g.AutoMigrate(&company{}, &person{}, &passport{}, &order{}, &picture{}, &tag{}, &club{}, &membership{}))
		gen, err := idtest.Sno.NewGenerator()
		must(t, err)
		must(t, g.Use(gormplugin.New(gormplugin.For(gen))))
		f(t, g)
	}
	t.Run("SQLite", func(t *testing.T) { up(t, sqlitetest.Open(t)) })
	for client, options := range map[string][]pgtest.Option{
		"codec":                  {pgtest.Codec},
		"plain, simple protocol": {pgtest.Mode(pgx.QueryExecModeSimpleProtocol)},
	} {
		t.Run(client, func(t *testing.T) {
			pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
				up(t, db.GORM(t, &gorm.Config{Logger: logger.Discard}, options...))
			})
		})
	}
}

func equal[V any](t *testing.T, what string, got, want V) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}

// stored returns the IDs of the rows by name.
func stored(t *testing.T, g *gorm.DB) map[string]sno {
	t.Helper()
	var rows []person
	must(t, g.Unscoped().Find(&rows).Error)
	ids := map[string]sno{}
	for _, r := range rows {
		ids[r.Name] = r.ID
	}
	return ids
}

// Create fills zero IDs and keeps the others. Upserts return the IDs of the rows.
func TestCreate(t *testing.T) {
	run(t, func(t *testing.T, g *gorm.DB) {
		set := []sno{idtype.Must(idtype.ParseSno("brpk4q72xwf2m63l")), idtype.Must(idtype.ParseSno("brpk4q72xwf2m63m"))}
		result := gorm.WithResult()
		one, preset := person{Name: "one"}, person{Name: "set", ID: set[0]}
		for _, row := range []*person{&one, &preset} {
			must(t, gorm.G[person](g, result).Create(t.Context(), row))
			equal(t, "rows of Create", result.RowsAffected, 1)
		}
		rows := []person{{Name: "b"}, {Name: "c", ID: set[1]}, {Name: "d"}}
		must(t, gorm.G[person](g).CreateInBatches(t.Context(), &rows, 2))
		equal(t, "the caller's IDs", []sno{preset.ID, rows[1].ID}, set)
		want := map[string]sno{"one": one.ID, "set": preset.ID, "b": rows[0].ID, "c": rows[1].ID, "d": rows[2].ID}
		equal(t, "rows", stored(t, g), want)
		distinct := map[sno]bool{{}: true}
		for _, id := range want {
			distinct[id] = true
		}
		equal(t, "zero and the IDs", len(distinct), 6)

		onName, kind := []clause.Column{{Name: "name"}}, clause.AssignmentColumns([]string{"kind"})
		condition := clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "people.name <> 'nobody'"}}}
		for way, conflict := range map[string]clause.OnConflict{
			"DoUpdates":      {Columns: onName, DoUpdates: kind},
			"UpdateAll":      {Columns: onName, UpdateAll: true},
			"true condition": {Columns: onName, DoUpdates: kind, Where: condition},
		} {
			for mode, session := range map[string]gorm.Session{"": {}, ", prepared": {PrepareStmt: true}, ", no hooks": {SkipHooks: true}} {
				q := gorm.G[person](g.Session(&session), conflict)
				a, b := person{Name: "one", Kind: way + mode}, person{Name: "set", Kind: way + mode}
				must(t, q.Create(t.Context(), &a))
				must(t, q.Select("id", "name", "kind").Create(t.Context(), &b))
				batch := []person{{Name: "c", Kind: way + mode}, {Name: "d", Kind: way + mode}}
				must(t, q.CreateInBatches(t.Context(), &batch, 1))
				for _, p := range []person{a, b, batch[0], batch[1]} {
					equal(t, way+mode+": ID of "+p.Name, p.ID, want[p.Name])
					if hooks := !session.SkipHooks; hooks != !p.Before.IsZero() || hooks && p.After != p.ID {
						t.Errorf("%s: BeforeCreate saw %v, AfterCreate saw %v, want %v", way+mode, p.Before, p.After, p.ID)
					}
				}
				var n int64
				must(t, g.Model(&person{}).Where("kind = ?", way+mode).Count(&n).Error)
				equal(t, way+mode+": updated rows", n, 4)
			}
		}
		for way, conflict := range map[string]clause.OnConflict{
			"DO NOTHING":         {DoNothing: true},
			"DO NOTHING by name": {Columns: onName, DoNothing: true},
			"DO UPDATE if false": {Columns: onName, DoUpdates: kind, Where: clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "people.name = 'nobody'"}}}},
		} {
			for _, prepared := range []bool{false, true} {
				skipped := person{Name: "one"}
				must(t, gorm.G[person](g.Session(&gorm.Session{PrepareStmt: prepared}), conflict).Create(t.Context(), &skipped))
				equal(t, way, skipped.ID, sno{})
			}
		}
		equal(t, "rows after the upserts", stored(t, g), want)
	})
}

// Queries, updates and deletes find rows by their IDs.
func TestQuery(t *testing.T) {
	run(t, func(t *testing.T, g *gorm.DB) {
		ctx := t.Context()
		rows := make([]person, 7)
		for i := range rows {
			rows[i].Name = fmt.Sprint(i)
		}
		must(t, g.Create(&rows).Error)
		must(t, g.Order("id").Find(&rows).Error)
		a, b := rows[2], rows[4]
		q := gorm.G[person](g)
		for name, first := range map[string]func() (person, error){
			"First":  func() (person, error) { return q.Where("id = ?", a.ID).First(ctx) },
			"Take":   func() (person, error) { return q.Where(&person{ID: a.ID}).Take(ctx) },
			"Last":   func() (person, error) { return q.Where("id <= ?", a.ID).Last(ctx) },
			"map":    func() (person, error) { return q.Where(map[string]any{"id": a.ID}).First(ctx) },
			"inline": func() (person, error) { return q.Where(a.ID).First(ctx) },
			"Raw":    func() (person, error) { return q.Raw("select * from people where id = ?", a.ID).First(ctx) },
		} {
			got, err := first()
			must(t, err)
			equal(t, name, got, a)
		}
		for name, c := range map[string]struct {
			query gorm.ChainInterface[person]
			want  []person
		}{
			"IN":  {q.Where("id IN ?", []sno{a.ID, b.ID}), []person{a, b}},
			"Not": {q.Not("id IN ?", []sno{a.ID, b.ID}), append(slices.Clone(rows[:2]), rows[3], rows[5], rows[6])},
			"Or":  {q.Where("id = ?", a.ID).Or("id = ?", b.ID), []person{a, b}},
		} {
			got, err := c.query.Order("id").Find(ctx)
			must(t, err)
			equal(t, name, got, c.want)
		}
		var batches []person
		must(t, q.Where("id > ?", rows[0].ID).FindInBatches(ctx, 2, func(data []person, _ int) error {
			batches = append(batches, data...)
			return nil
		}))
		equal(t, "FindInBatches", batches, rows[1:])
		var ids []sno
		must(t, q.Select("id").Order("id").Scan(ctx, &ids))
		equal(t, "Scan", ids, idsOf(rows))

		// Updates and deletes affect only the matching rows.
		for name, change := range map[string]func() (int, error){
			"Update":  func() (int, error) { return q.Where("id = ?", a.ID).Update(ctx, "name", "a") },
			"Updates": func() (int, error) { return q.Where(&person{ID: b.ID}).Updates(ctx, person{Name: "b"}) },
			"Set": func() (int, error) {
				return q.Where("id = ?", rows[0].ID).Set(clause.Assignment{Column: clause.Column{Name: "name"}, Value: "set"}).Update(ctx)
			},
			"Delete": func() (int, error) { return q.Where("id IN ?", []sno{rows[1].ID}).Delete(ctx) },
		} {
			n, err := change()
			must(t, err)
			equal(t, name, n, 1)
		}
		must(t, q.Exec(ctx, "delete from people where id = ?", rows[6].ID))
		equal(t, "rows", stored(t, g), map[string]sno{"set": rows[0].ID, "1": rows[1].ID, "a": a.ID, "3": rows[3].ID, "b": b.ID, "5": rows[5].ID})
		// Delete was soft.
		_, err := q.Where("id = ?", rows[1].ID).First(ctx)
		if !errors.Is(err, gorm.ErrRecordNotFound) {
			t.Errorf("First of a deleted row: %v", err)
		}
	})
}

func idsOf(rows []person) (ids []sno) {
	for _, r := range rows {
		ids = append(ids, r.ID)
	}
	return ids
}

// Create saves associations with IDs. Queries load them, and Set creates more of them.
func TestAssociations(t *testing.T) {
	run(t, func(t *testing.T, g *gorm.DB) {
		ctx, people := t.Context(), gorm.G[person](g)
		p := person{Name: "Ada", Company: &company{}, Manager: &person{Name: "Charles"}, Passport: &passport{}, Tags: []*tag{{}, {}}, Clubs: []*club{{Name: "Royal"}},
			Orders: []order{{Item: "cards", Pictures: []picture{{}}}, {Item: "brass", Pictures: []picture{}}}}
		must(t, people.Create(ctx, &p))
		ids := map[sno]bool{{}: true}
		for _, id := range []sno{p.ID, p.Company.ID, p.Manager.ID, p.Passport.ID, p.Tags[0].ID, p.Tags[1].ID, p.Clubs[0].ID, p.Orders[0].ID, p.Orders[1].ID, p.Orders[0].Pictures[0].ID} {
			ids[id] = true
		}
		equal(t, "zero and the IDs", len(ids), 11)
		found, err := people.Where("people.id = ?", p.ID).Joins(clause.LeftJoin.Association("Company"), nil).Joins(clause.LeftJoin.Association("Manager"), nil).
			Preload("Orders", func(q gorm.PreloadBuilder) error { q.Order("item desc"); return nil }).Preload("Orders.Pictures", nil).
			Preload("Tags", nil).Preload("Clubs", nil).Preload("Passport", nil).First(ctx)
		must(t, err)
		equal(t, "associations", []any{found.ID, found.Company, found.Manager.ID, found.Orders, len(found.Tags), found.Clubs, found.Passport},
			[]any{p.ID, p.Company, p.Manager.ID, p.Orders, 2, p.Clubs, p.Passport})
		found, err = people.Preload("Orders", func(q gorm.PreloadBuilder) error { q.Where("id = ?", p.Orders[1].ID); return nil }).Where("id = ?", p.ID).First(ctx)
		must(t, err)
		equal(t, "Preload by an ID", len(found.Orders), 1)

		item := clause.Assignment{Column: clause.Column{Name: "item"}, Value: "assigned"}
		_, err = people.Where("id = ?", p.ID).Set(
			clause.Association{Association: "Orders", Type: clause.OpCreate, Set: []clause.Assignment{item}},
			clause.Association{Association: "Orders", Type: clause.OpCreate, Values: []any{&order{Item: "value"}}},
			clause.Association{Association: "Clubs", Type: clause.OpCreate, Values: []any{&club{Name: "value"}}},
		).Update(ctx)
		must(t, err)
		var orders []order
		must(t, g.Find(&orders, "person_id = ? and item in ?", p.ID, []string{"assigned", "value"}).Error)
		if len(orders) != 2 || orders[0].ID.IsZero() || orders[1].ID.IsZero() || orders[0].ID == orders[1].ID {
			t.Errorf("got orders %+v, want two with IDs", orders)
		}
		var joins []membership
		must(t, g.Find(&joins, "person_id = ?", p.ID).Error)
		if len(joins) != 2 || joins[0].ID.IsZero() || joins[1].ID.IsZero() || joins[0].ID == joins[1].ID {
			t.Errorf("got memberships %+v, want two with IDs", joins)
		}
	})
}

// Pages and time windows are scopes of gorm.G.
func TestScopes(t *testing.T) {
	run(t, func(t *testing.T, g *gorm.DB) {
		ctx, q := t.Context(), gorm.G[person](g)
		start := time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)
		rows := make([]person, 12)
		for i := range rows {
			id, err := idtype.SnoLayout{}.Compose(idtype.SnoParts{Time: start.AddDate(0, 0, i), Partition: idtype.SnoPartitionFrom(1)})
			must(t, err)
			rows[i] = person{ID: id, Name: fmt.Sprint(i), Kind: string(rune('a' + i%3))}
		}
		must(t, g.Create(&rows).Error)
		window := gormplugin.G(gormplugin.CreatedBetweenIn(idtype.SnoLayout{}, "", start.AddDate(0, 0, 3), start.AddDate(0, 0, 10)))
		for name, c := range map[string]struct {
			query func() gorm.ChainInterface[person]
			has   func(i int) bool
		}{
			"all":              {func() gorm.ChainInterface[person] { return q.Scopes() }, func(int) bool { return true }},
			"Where":            {func() gorm.ChainInterface[person] { return q.Where("kind <> ?", "c") }, func(i int) bool { return i%3 != 2 }},
			"Where and window": {func() gorm.ChainInterface[person] { return q.Where("kind <> ?", "c").Scopes(window) }, func(i int) bool { return i%3 != 2 && i >= 3 && i < 10 }},
		} {
			var want []sno
			for i, r := range rows {
				if c.has(i) {
					want = append(want, r.ID)
				}
			}
			walk := func(page func(cursor sno) func(*gorm.DB) *gorm.DB) (got []sno) {
				t.Helper()
				for cursor := (sno{}); ; cursor = got[len(got)-1] {
					found, err := c.query().Scopes(gormplugin.G(page(cursor))).Limit(3).Find(ctx)
					must(t, err)
					if len(found) == 0 || len(got) > len(rows) {
						return got
					}
					got = append(got, idsOf(found)...)
				}
			}
			equal(t, name, walk(func(c sno) func(*gorm.DB) *gorm.DB { return gormplugin.PageAfter("", c) }), want)
			slices.Reverse(want)
			equal(t, name+", backwards", walk(func(c sno) func(*gorm.DB) *gorm.DB { return gormplugin.PageBefore("", c) }), want)
		}

		either := q.Where(g.Where("kind = ?", "a").Or("kind = ?", "b")).Scopes(window)
		found, err := either.Find(ctx)
		n, countErr := either.Count(ctx, "*")
		must(t, cmp.Or(err, countErr))
		equal(t, "a or b in the window", []int{len(found), int(n)}, []int{5, 5})
		deleted, err := q.Scopes(window).Delete(ctx)
		must(t, err)
		equal(t, "Delete in the window", deleted, 7)
		left, err := q.Order("id").Find(ctx)
		must(t, err)
		equal(t, "Delete in the window", idsOf(left), idsOf(slices.Concat(rows[:3], rows[10:])))
	})
}
