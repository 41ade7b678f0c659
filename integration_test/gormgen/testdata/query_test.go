// Package uses tests the ID types with the query code of gorm.io/gen. It compiles only with
// package query, which TestGen generates.
package uses

import (
	"context"
	"database/sql/driver"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"gorm.io/gen"
	"gorm.io/gen/field"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/gormgen/model"
	"github.com/sortkey/sortkey/integration_test/gormgen/testdata/query"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/integration_test/internal/sqlitetest"
	"github.com/sortkey/sortkey/sqltypes"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func each(t *testing.T, f func(t *testing.T, g *gorm.DB, q *query.Query)) {
	run := func(t *testing.T, g *gorm.DB) {
		snowflakes, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Worker: 3})
		must(t, err)
		snos, err := idtype.NewSnoGenerator(idtype.SnoConfig{Meta: 'c'})
		must(t, err)
		lines, err := idtype.NewUID60Generator(idtype.UID60Config{})
		must(t, err)
		must(t, g.Use(gormplugin.New(gormplugin.For(snowflakes), gormplugin.For(snos), gormplugin.Named("lines", lines))))
		must(t, g.AutoMigrate(&model.Customer{}, &model.Order{}, &model.Line{}))
		f(t, g, query.Use(g))
	}
	for name, opts := range map[string][]pgtest.Option{
		"codec":                  {pgtest.Codec},
		"plain, simple protocol": {pgtest.Mode(pgx.QueryExecModeSimpleProtocol)},
	} {
		t.Run(name, func(t *testing.T) {
			pgtest.Each(t, func(t *testing.T, db *pgtest.DB) { run(t, db.GORM(t, nil, opts...)) })
		})
	}
	t.Run("SQLite", func(t *testing.T) { run(t, sqlitetest.Open(t)) })
}

// must is pgtest.Must.
var must = pgtest.Must

// stored compares the IDs of a table's rows, by name.
func stored[T comparable](t *testing.T, g *gorm.DB, table, name string, want map[string]T) {
	t.Helper()
	rows, err := g.Table(table).Select(name, "id").Rows()
	must(t, err)
	defer rows.Close()
	got := map[string]T{}
	for rows.Next() {
		var name string
		var id T
		must(t, rows.Scan(&name, &id))
		got[name] = id
	}
	must(t, rows.Err())
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, want %v", table, got, want)
	}
}

func TestCreate(t *testing.T) {
	each(t, func(t *testing.T, g *gorm.DB, q *query.Query) {
		ctx := context.Background()
		want := map[string]idtype.Snowflake{}
		note := func(orders ...*model.Order) {
			t.Helper()
			for _, o := range orders {
				if o.ID == 0 {
					t.Errorf("order %s has no ID", o.Number)
				}
				want[o.Number] = o.ID
			}
		}

		ada := &model.Customer{Email: "ada@example.com", Orders: []model.Order{{Number: "of ada", Lines: []model.Line{{Item: "cards"}}}}}
		must(t, q.Customer.WithContext(ctx).Create(ada))
		note(&ada.Orders[0])
		if ada.ID.Meta() != 'c' || ada.Orders[0].CustomerID != ada.ID || ada.Orders[0].Lines[0].OrderID != ada.Orders[0].ID {
			t.Errorf("created %+v", ada)
		}
		one := &model.Order{Number: "one", CustomerID: ada.ID}
		two := []*model.Order{{Number: "two 0", Customer: &model.Customer{Email: "grace@example.com"}}, {Number: "two 1", CustomerID: ada.ID, ID: 12345}}
		must(t, q.Order.WithContext(ctx).Create(one))
		must(t, q.Order.WithContext(ctx).Create(two...))
		note(append(two, one)...)
		if two[1].ID != 12345 || two[0].CustomerID != two[0].Customer.ID || two[0].CustomerID.IsZero() {
			t.Errorf("created %+v and %+v", two[0], two[1])
		}
		batch := make([]*model.Order, 5)
		for i := range batch {
			batch[i] = &model.Order{Number: string(rune('a' + i)), CustomerID: ada.ID}
		}
		must(t, q.Order.WithContext(ctx).CreateInBatches(batch, 2))
		note(batch...)
		// Without the plugin, GORM would omit the key from the INSERT.
		selected := &model.Order{Number: "selected", CustomerID: ada.ID}
		must(t, q.Order.WithContext(ctx).Select(q.Order.Number, q.Order.CustomerID).Create(selected))
		note(selected)

		// Save updates and inserts.
		one.State = "saved"
		saved := &model.Order{Number: "saved", CustomerID: ada.ID}
		preset := &model.Order{Number: "preset", CustomerID: ada.ID, ID: 54321}
		must(t, q.Order.WithContext(ctx).Save(one, saved, preset))
		if one.ID != want["one"] || preset.ID != 54321 {
			t.Errorf("Save: IDs became %v and %v", one.ID, preset.ID)
		}
		note(saved, preset)
		found, err := q.Order.WithContext(ctx).Where(q.Order.ID.Eq(one.ID)).First()
		if err != nil || found.State != "saved" {
			t.Errorf("Save: got row %+v, %v", found, err)
		}

		// FirstOrCreate creates the row, then finds it.
		for range 2 {
			o, err := q.Order.WithContext(ctx).Where(q.Order.Number.Eq("first")).Attrs(q.Order.CustomerID.Value(ada.ID)).FirstOrCreate()
			must(t, err)
			if was, ok := want["first"]; ok && was != o.ID || o.CustomerID != ada.ID {
				t.Errorf("FirstOrCreate: got %+v, want ID %v", o, was)
			}
			note(o)
		}
		o, err := q.Order.WithContext(ctx).Where(q.Order.ID.Eq(idtype.Snowflake(777))).Attrs(q.Order.Number.Value("777"), q.Order.CustomerID.Value(ada.ID)).FirstOrCreate()
		if err != nil || o.ID != 777 {
			t.Errorf("FirstOrCreate by an ID: got %+v, %v", o, err)
		}
		note(o)
		if o, err := q.Order.WithContext(ctx).Where(q.Order.Number.Eq("init")).FirstOrInit(); err != nil || o.ID != 0 || o.Number != "init" {
			t.Errorf("FirstOrInit: got %+v, %v", o, err)
		}

		// Upserts by another key.
		byNumber := clause.OnConflict{Columns: []clause.Column{{Name: q.Order.Number.ColumnName().String()}}, DoUpdates: clause.AssignmentColumns([]string{"state"})}
		upserted := []*model.Order{{Number: "one", CustomerID: ada.ID, State: "upserted"}, {Number: "new", CustomerID: ada.ID}, {Number: "first", CustomerID: ada.ID}}
		must(t, q.Order.WithContext(ctx).Clauses(byNumber).Create(upserted...))
		if upserted[0].ID != want["one"] || upserted[2].ID != want["first"] {
			t.Errorf("upserts: IDs = %v and %v, want %v and %v", upserted[0].ID, upserted[2].ID, want["one"], want["first"])
		}
		note(upserted...)
		skipped := &model.Order{Number: "one", CustomerID: ada.ID}
		must(t, q.Order.WithContext(ctx).Clauses(clause.OnConflict{DoNothing: true}).Create(skipped))
		if skipped.ID != 0 {
			t.Errorf("DO NOTHING: ID = %v, want none", skipped.ID)
		}

		// Associations, and transactions.
		line := &model.Line{Item: "brass"}
		must(t, q.Order.Lines.WithContext(ctx).Model(one).Append(line))
		if line.OrderID != one.ID || line.ID == 0 {
			t.Errorf("Append: got %+v, want a line of order %v", line, one.ID)
		}
		failed := errors.New("failed on purpose")
		again := &model.Order{Number: "again", CustomerID: ada.ID}
		if err := q.Transaction(func(tx *query.Query) error { return errors.Join(tx.Order.WithContext(ctx).Create(again), failed) }); !errors.Is(err, failed) || again.ID == 0 {
			t.Errorf("got ID %v, %v, want an ID and %v", again.ID, err, failed)
		}
		stored(t, g, "orders", "number", want)
		stored(t, g, "customers", "email", map[string]idtype.Sno{"ada@example.com": ada.ID, "grace@example.com": two[0].CustomerID})
		stored(t, g, "lines", "item", map[string]idtype.UID60{"cards": ada.Orders[0].Lines[0].ID, "brass": line.ID})
	})
}

func TestQuery(t *testing.T) {
	each(t, func(t *testing.T, g *gorm.DB, q *query.Query) {
		ctx := context.Background()
		ada, grace := &model.Customer{Email: "ada", Name: "Ada"}, &model.Customer{Email: "grace", Name: "Grace"}
		must(t, q.Customer.WithContext(ctx).Create(ada, grace))
		layout := idtype.DefaultSnowflakeLayout()
		start := time.Date(2025, 6, 1, 0, 0, 0, 0, time.UTC)
		orders := make([]*model.Order, 6)
		for i := range orders {
			id, err := layout.Compose(idtype.SnowflakeParts{Time: start.AddDate(0, 0, i)})
			must(t, err)
			orders[i] = &model.Order{ID: id, Number: string(rune('0' + i)), CustomerID: ada.ID, Lines: []model.Line{{Item: "line"}}}
		}
		orders[1].CustomerID, orders[1].ReplacesID = grace.ID, &orders[0].ID
		orders[2].ParentID, orders[2].Code = sqltypes.OptionalOf(orders[0].ID), sqltypes.TextOf(grace.ID)
		must(t, q.Order.WithContext(ctx).Create(orders...))
		ids := make([]idtype.Snowflake, len(orders))
		for i, o := range orders {
			ids[i] = o.ID
		}

		o := q.Order
		lo, hi, err := layout.Range(start.AddDate(0, 0, 1), start.AddDate(0, 0, 3))
		must(t, err)
		for name, c := range map[string]struct {
			do   query.IOrderDo
			want []idtype.Snowflake
		}{
			"Eq":       {o.WithContext(ctx).Where(o.ID.Eq(ids[3])), ids[3:4]},
			"Neq":      {o.WithContext(ctx).Where(o.ID.Neq(ids[0])), ids[1:]},
			"In":       {o.WithContext(ctx).Where(o.ID.In(ids[1], ids[2])), ids[1:3]},
			"In slice": {o.WithContext(ctx).Where(o.ID.In(valuers(ids[1:3])...)), ids[1:3]},
			"In Values": {o.WithContext(ctx).Where(o.WithContext(ctx).Columns(o.ID).In(field.Values(ids[1:3]))),
				ids[1:3]},
			"NotIn":      {o.WithContext(ctx).Where(o.ID.NotIn(ids[0], ids[1])), ids[2:]},
			"Or":         {o.WithContext(ctx).Where(o.ID.Eq(ids[0])).Or(o.ID.Eq(ids[1])), ids[:2]},
			"Not":        {o.WithContext(ctx).Not(o.ID.Eq(ids[0])), ids[1:]},
			"page":       {o.WithContext(ctx).Where(o.ID.Gt(ids[1])).Order(o.ID).Limit(2), ids[2:4]},
			"first page": {o.WithContext(ctx).Order(o.ID).Limit(2), ids[:2]},
			"window":     {o.WithContext(ctx).Where(o.ID.Gte(lo), o.ID.Lt(hi)), ids[1:3]},
			"scope":      {o.WithContext(ctx).Scopes(scope(gormplugin.CreatedBetweenIn(layout, "", start.AddDate(0, 0, 1), start.AddDate(0, 0, 3)))), ids[1:3]},
			"page scope": {o.WithContext(ctx).Scopes(scope(gormplugin.PageAfter("", ids[1]))).Limit(2), ids[2:4]},
			"scope after alternatives": {o.WithContext(ctx).Where(o.WithContext(ctx).Where(o.Number.Eq("0")).Or(o.Number.Eq("4"))).Scopes(scope(gormplugin.PageAfter("", ids[1]))),
				ids[4:5]},
			"foreign key": {o.WithContext(ctx).Where(o.CustomerID.Eq(grace.ID)), ids[1:2]},
			"pointer":     {o.WithContext(ctx).Where(o.ReplacesID.Eq(ids[0])), ids[1:2]},
			"Optional":    {o.WithContext(ctx).Where(o.ParentID.Eq(ids[0])), ids[2:3]},
			"by Optional": {o.WithContext(ctx).Where(o.ParentID.Eq(sqltypes.OptionalOf(ids[0]))), ids[2:3]},
			"no ID":       {o.WithContext(ctx).Where(o.ReplacesID.IsNull(), o.ParentID.IsNull()), append([]idtype.Snowflake{ids[0]}, ids[3:]...)},
			"text":        {o.WithContext(ctx).Where(o.Code.Eq(sqltypes.TextOf(grace.ID))), ids[2:3]},
			"column":      {o.WithContext(ctx).Join(q.Customer, q.Customer.ID.EqCol(o.CustomerID)).Where(q.Customer.Name.Eq("Grace")), ids[1:2]},
			"subquery": {o.WithContext(ctx).Where(o.WithContext(ctx).Columns(o.CustomerID).In(
				q.Customer.WithContext(ctx).Select(q.Customer.ID).Where(q.Customer.Email.Eq("grace")))), ids[1:2]},
		} {
			var got []idtype.Snowflake
			// In a join, Find without Select would read the ID of the other table.
			rows, err := c.do.Select(o.ALL).Find()
			for _, row := range rows {
				got = append(got, row.ID)
			}
			slices.Sort(got)
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%s: got %v, %v, want %v", name, got, err, c.want)
			}
		}
		var plucked []idtype.Snowflake
		if err := o.WithContext(ctx).Where(o.ID.Lte(ids[3])).Order(o.ID.Desc()).Pluck(o.ID, &plucked); err != nil || !slices.Equal(plucked, []idtype.Snowflake{ids[3], ids[2], ids[1], ids[0]}) {
			t.Errorf("Pluck: got %v, %v, want %v backwards", plucked, err, ids[:4])
		}

		// Associations.
		preloaded, err := o.WithContext(ctx).Preload(o.Customer, o.Lines).Where(o.ID.Eq(ids[1])).First()
		if err != nil || preloaded.Customer == nil || preloaded.Customer.ID != grace.ID ||
			len(preloaded.Lines) != 1 || preloaded.Lines[0].ID != orders[1].Lines[0].ID || *preloaded.ReplacesID != ids[0] {
			t.Errorf("Preload: got %+v, %v", preloaded, err)
		}
		joined, err := o.WithContext(ctx).Joins(o.Customer).Where(o.ID.Eq(ids[2])).First()
		if err != nil || joined.Customer == nil || joined.Customer.ID != ada.ID || joined.ParentID.ID != ids[0] || joined.Code.ID != grace.ID {
			t.Errorf("Joins: got %+v, %v", joined, err)
		}
		customer, err := q.Customer.WithContext(ctx).Preload(q.Customer.Orders.Lines).Preload(q.Customer.Orders.Order(o.ID)).Where(q.Customer.ID.Eq(ada.ID)).First()
		if err != nil || len(customer.Orders) != 5 || customer.Orders[0].ID != ids[0] || len(customer.Orders[4].Lines) != 1 {
			t.Errorf("nested Preload: got %+v, %v", customer, err)
		}
		lines, err := o.Lines.WithContext(ctx).Model(orders[3]).Find()
		if err != nil || len(lines) != 1 || lines[0].ID != orders[3].Lines[0].ID {
			t.Errorf("association: got %+v, %v", lines, err)
		}

		// Updates and deletes affect only the matching rows.
		rows := func(what string, want int64, info gen.ResultInfo, err error) {
			t.Helper()
			if err != nil || info.RowsAffected != want {
				t.Errorf("%s: %d rows, %v, want %d", what, info.RowsAffected, err, want)
			}
		}
		info, err := o.WithContext(ctx).Where(o.ID.Eq(ids[3])).Update(o.CustomerID, grace.ID)
		rows("Update", 1, info, err)
		info, err = o.WithContext(ctx).Where(o.ID.Gt(ids[3])).UpdateSimple(o.CustomerID.Value(grace.ID), o.ReplacesID.Value(ids[0]), o.ParentID.Null())
		rows("UpdateSimple", 2, info, err)
		info, err = o.WithContext(ctx).Where(o.ID.In(ids[2])).Updates(model.Order{CustomerID: grace.ID})
		rows("Updates", 1, info, err)
		if n, err := o.WithContext(ctx).Where(o.CustomerID.Eq(grace.ID)).Count(); err != nil || n != 5 {
			t.Errorf("updates changed %d rows, %v, want 5", n, err)
		}
		must(t, o.Lines.Unscoped().WithContext(ctx).Model(orders[0]).Unscoped().Clear())
		_, err = q.Line.WithContext(ctx).Where(q.Line.OrderID.In(ids[1], ids[4], ids[5])).Delete()
		must(t, err)
		info, err = o.WithContext(ctx).Delete(orders[0], orders[1])
		rows("Delete of models", 2, info, err)
		info, err = o.WithContext(ctx).Where(o.ID.Gte(ids[4])).Delete()
		rows("Delete", 2, info, err)
		stored(t, g, "orders", "number", map[string]idtype.Snowflake{"2": ids[2], "3": ids[3]})
	})
}

// valuers returns IDs as arguments for Field.In.
func valuers[T driver.Valuer](ids []T) []driver.Valuer {
	values := make([]driver.Valuer, len(ids))
	for i, id := range ids {
		values[i] = id
	}
	return values
}

// scope converts a scope of GORM to a scope of gen.
func scope(s func(*gorm.DB) *gorm.DB) func(gen.Dao) gen.Dao {
	return func(dao gen.Dao) gen.Dao {
		do := dao.(*gen.DO)
		do.ReplaceDB(s(do.UnderlyingDB()))
		return do
	}
}
