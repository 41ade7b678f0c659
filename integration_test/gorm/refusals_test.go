package gorm

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/sqltypes"
)

// empty checks that the tables of the graph and the table things have no rows.
func (k of[T, N]) empty(t *testing.T, g *gorm.DB, what string) {
	t.Helper()
	for _, table := range []string{"things", "companies", "people", "passports", "orders", "pictures", "details", "tags", "clubs", "memberships", "person_tags", "friendships"} {
		var n int
		must(t, g.Raw("select count(*) from "+table).Scan(&n).Error)
		if n != 0 {
			t.Errorf("%s: %s has %d rows, want none", what, table, n)
			must(t, g.Exec("delete from "+table).Error)
		}
	}
}

// failing returns GORM with a generator that fails after these IDs.
func (k of[T, N]) failing(t *testing.T, g *gorm.DB, ids ...T) *gorm.DB {
	t.Helper()
	g = with(t, g, gormplugin.For(scripted(ids...)))
	must(t, g.SetupJoinTable(new(N), "Clubs", &membership[T]{}))
	return g
}

// If the generator fails, Create returns its error and inserts nothing, at any row and at any
// association.
func (k of[T, N]) generatorFails(t *testing.T, g *gorm.DB) {
	ids := k.ids(t, 19)
	ids, more := ids[:18], ids[18:]
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, errUsedUp) || !strings.Contains(err.Error(), ".ID: generate an ID: ") {
			t.Errorf("%s: got %v, want %v", what, err, errUsedUp)
		}
	}
	for name, c := range map[string]struct {
		first  int // the IDs before the error
		create func(g *gorm.DB) error
	}{
		"struct":            {0, func(g *gorm.DB) error { return g.Create(&thing[T]{}).Error }},
		"slice":             {2, func(g *gorm.DB) error { return g.Create(make([]thing[T], 3)).Error }},
		"slice of pointers": {2, func(g *gorm.DB) error { return g.Create([]*thing[T]{{}, {}, {}}).Error }},
		"array":             {2, func(g *gorm.DB) error { return g.Create(&[3]thing[T]{}).Error }},
		"map":               {0, func(g *gorm.DB) error { return g.Model(&thing[T]{}).Create(map[string]any{"name": "x"}).Error }},
		"maps": {2, func(g *gorm.DB) error {
			return g.Model(&thing[T]{}).Create([]map[string]any{{"name": "x"}, {"name": "y"}, {"name": "z"}}).Error
		}},
		"batches": {5, func(g *gorm.DB) error { return g.CreateInBatches(make([]thing[T], 6), 2).Error }},
		"size of batch": {5, func(g *gorm.DB) error {
			return g.Session(&gorm.Session{CreateBatchSize: 2}).Create(make([]thing[T], 6)).Error
		}},
		"Save":          {0, func(g *gorm.DB) error { return g.Save(&thing[T]{}).Error }},
		"FirstOrCreate": {0, func(g *gorm.DB) error { return g.FirstOrCreate(&thing[T]{}, "name = 'x'").Error }},
		"a graph in a transaction": {9, func(g *gorm.DB) error {
			return g.Transaction(func(g *gorm.DB) error { return g.Create(k.newGraph()).Error })
		}},
	} {
		failing := k.failing(t, g, ids[:c.first]...)
		refused(name, c.create(failing))
		k.empty(t, g, name)
	}
	// The generator fails at each of the graph's 18 IDs.
	for n := range 18 {
		name := fmt.Sprintf("a graph with %d IDs", n)
		refused(name, k.failing(t, g, ids[:n]...).Create(k.newGraph()).Error)
		k.empty(t, g, name)
	}
	must(t, k.failing(t, g, ids...).Create(k.newGraph()).Error)

	// Associations of an existing row.
	ada := k.named("Ada")
	must(t, g.Create(ada).Error)
	var before, after int
	count := "select (select count(*) from orders) + (select count(*) from clubs) + (select count(*) from memberships)"
	must(t, g.Raw(count).Scan(&before).Error)
	refused("Append", k.failing(t, g, more...).Model(ada).Association("Orders").Append(&order[T]{Item: "a"}, &order[T]{Item: "b"}))
	// The club gets the ID, so its membership has none.
	refused("Append with a join table", k.failing(t, g, more...).Model(ada).Association("Clubs").Append(&club[T]{Name: "c"}))
	must(t, g.Raw(count).Scan(&after).Error)
	if before != after {
		t.Errorf("Append: got %d rows, want %d as before", after, before)
	}

	// The caller's transaction can continue, because no statement failed in it.
	kept := thing[T]{ID: ids[0], Name: "kept"}
	must(t, k.failing(t, g).Transaction(func(tx *gorm.DB) error {
		refused("in a transaction", tx.Create(&thing[T]{Name: "lost"}).Error)
		return tx.Create(&kept).Error
	}))
	k.agree(t, g, []thing[T]{kept})
}

// A waiting generator returns the IDs of its script. Then it waits until the context is done.
type waiting[T any] struct {
	script[T]
	begun chan struct{}
}

func (w *waiting[T]) Fill(ctx context.Context, dst []T) (int, error) {
	n, err := w.script.Fill(ctx, dst)
	if err == nil {
		return n, nil
	}
	close(w.begun)
	<-ctx.Done()
	return n, ctx.Err()
}

// If the context is canceled during the wait for an ID, Create inserts nothing.
func (k of[T, N]) cancelled(t *testing.T, g *gorm.DB) {
	ids := k.ids(t, 4)
	for name, c := range map[string]struct {
		first  int // the IDs before the wait
		create func(g *gorm.DB) error
	}{
		"struct": {0, func(g *gorm.DB) error { return g.Create(&thing[T]{}).Error }},
		"slice":  {0, func(g *gorm.DB) error { return g.Create(make([]thing[T], 3)).Error }},
		"map":    {0, func(g *gorm.DB) error { return g.Model(&thing[T]{}).Create(map[string]any{"name": "x"}).Error }},
		"maps": {1, func(g *gorm.DB) error {
			return g.Model(&thing[T]{}).Create([]map[string]any{{"name": "x"}, {"name": "y"}}).Error
		}},
		"batches": {4, func(g *gorm.DB) error { return g.CreateInBatches(make([]thing[T], 6), 2).Error }},
		"graph":   {4, func(g *gorm.DB) error { return g.Create(k.newGraph()).Error }},
	} {
		gen := &waiting[T]{script[T]{ids[:c.first]}, make(chan struct{})}
		other := with(t, g, gormplugin.For(gen))
		must(t, other.SetupJoinTable(new(N), "Clubs", &membership[T]{}))
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer cancel()
			select {
			case <-gen.begun:
			case <-ctx.Done():
			}
		}()
		err := c.create(other.WithContext(ctx))
		// If database/sql has also ended the transaction, GORM wraps only the error
		// of the transaction.
		if errors.Is(err, sql.ErrTxDone) && name == "graph" && strings.Contains(err.Error(), context.Canceled.Error()) {
			err = errors.Join(err, context.Canceled)
		}
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), ".ID: generate an ID: ") {
			t.Errorf("%s: got %v, want %v", name, err, context.Canceled)
		}
		k.empty(t, g, name)
	}
}

// Models of table things without a usable generator.

type (
	unknownName[T sqltypes.ID] struct {
		ID   T `gorm:"idgen:nobody"`
		Name string
	}
	otherType[T sqltypes.ID] struct {
		ID   T `gorm:"idgen:other"`
		Name string
	}
	noType[T sqltypes.ID] struct {
		ID   T `gorm:"idgen"`
		Name string
	}
	loneID[T sqltypes.ID] struct {
		ID   T      `gorm:"primaryKey"`
		Name string `gorm:"primaryKey"`
	}
	noKey[T sqltypes.ID] struct {
		ID    T
		Other T `gorm:"column:name;idgen:nobody"`
	}
)

func (unknownName[T]) TableName() string { return "things" }
func (otherType[T]) TableName() string   { return "things" }
func (noType[T]) TableName() string      { return "things" }
func (loneID[T]) TableName() string      { return "things" }
func (noKey[T]) TableName() string       { return "things" }

// Without a generator for a key, Create inserts nothing, and the error contains the model and
// the field.
func (k of[T, N]) noGenerator(t *testing.T, g *gorm.DB) {
	set := k.ids(t, 4)
	type otherID struct{ idtype.Sno }
	others := scripted(make([]otherID, 100)...)
	unbound := with(t, g, gormplugin.For(others))
	bound := with(t, g, gormplugin.For(scripted(k.ids(t, 100)...)), gormplugin.Named("other", others))

	for name, c := range map[string]struct {
		g      *gorm.DB
		field  string
		values []any
	}{
		"no generator":              {unbound, "thing", []any{&thing[T]{}, &[]thing[T]{{Name: "x"}, {}}, []*thing[T]{{ID: set[0]}, {}}, &[2]thing[T]{}}},
		"none by tag":               {unbound, "noType", []any{&noType[T]{}, []noType[T]{{}}, &noType[T]{ID: set[0]}}},
		"none of a pointer":         {unbound, "pointerKey", []any{&pointerKey[T]{}}},
		"none of a Null":            {unbound, "nullKey", []any{&nullKey[T]{}}},
		"none of an Optional":       {unbound, "optionalKey", []any{&optionalKey[T]{}}},
		"none of a Text":            {unbound, "textKey", []any{&textKey[T]{}}},
		"none of an Optional Text":  {unbound, "nestedKey", []any{&nestedKey[T]{}}},
		"an unknown name":           {bound, "unknownName", []any{&unknownName[T]{}, &unknownName[T]{ID: set[0]}, []unknownName[T]{{}, {}}}},
		"another type":              {bound, "otherType", []any{&otherType[T]{}, []otherType[T]{{}}}},
		"a composite key's only ID": {bound, "loneID", []any{&loneID[T]{Name: "x"}, []loneID[T]{{Name: "x"}, {Name: "y"}}}},
		"none of another field":     {bound, "noKey", []any{&noKey[T]{}}},
	} {
		for range 2 { // the second time, the plan is cached
			for _, v := range c.values {
				k.refusesModel(t, name, c.field, c.g.Create(v).Error)
			}
			k.refusesModel(t, name+", map", c.field, c.g.Model(c.values[0]).Create(map[string]any{"name": "x"}).Error)
		}
	}
	k.agree(t, g, nil)

	// An ID that is set needs no generator, unless the model asks for one.
	want := []thing[T]{{ID: set[0], Name: "a"}, {ID: set[1], Name: "b"}, {ID: set[2], Name: "c"}, {ID: set[3], Name: "d"}}
	must(t, unbound.Create(&want[0]).Error)
	must(t, unbound.Create(want[1:3]).Error)
	must(t, unbound.Model(&thing[T]{}).Create(map[string]any{"name": "d", "ID": set[3]}).Error)
	k.agree(t, g, want)
}

func (k of[T, N]) refusesModel(t *testing.T, what, model string, err error) {
	t.Helper()
	if !errors.Is(err, gormplugin.ErrNoGenerator) {
		t.Errorf("%s: got %v, want %v", what, err, gormplugin.ErrNoGenerator)
		return
	}
	field := ".ID"
	if model == "noKey" {
		field = ".Other"
	}
	if s := err.Error(); !strings.Contains(s, " "+model+"[") || !strings.Contains(s, "]"+field) {
		t.Errorf("%s: got %v, want the field %s%s in it", what, err, model, field)
	}
}

// A second plugin fails to register. The first plugin continues to work.
func (k of[T, N]) registeredTwice(t *testing.T, g *gorm.DB) {
	second := gormplugin.New(gormplugin.For(scripted(k.ids(t, 1)...)))
	for range 2 {
		if err := g.Use(second); !errors.Is(err, gorm.ErrRegistered) {
			t.Errorf("got %v, want %v", err, gorm.ErrRegistered)
		}
	}
	rows := []thing[T]{{Name: "a"}, {Name: "b"}} // more rows than the second plugin has IDs
	must(t, g.Create(&rows).Error)
	k.agree(t, g, rows)
}
