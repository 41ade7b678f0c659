package gormplugin_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/gorm/utils/tests"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
)

type Customer struct {
	ID     idtype.SnoOf[Customer]
	Name   string
	Orders []Order
}

type Order struct {
	ID         idtype.SnowflakeOf[Order]
	CustomerID idtype.SnoOf[Customer]
}

// An AuditEntry has a generator of its own.
type AuditEntry struct {
	ID   idtype.Snowflake `gorm:"idgen:audit"`
	Text string
}

// open takes the place of gorm.Open with a real driver.
func open() *gorm.DB {
	db, err := gorm.Open(tests.DummyDialector{}, &gorm.Config{DryRun: true, Logger: logger.Discard})
	if err != nil {
		panic(err)
	}
	return db
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func Example() {
	db := open()
	err := db.Use(gormplugin.New(
		gormplugin.For(must(idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Worker: 1}))),
		gormplugin.For(must(idtype.NewSnoGenerator(idtype.SnoConfig{Meta: 'c'}))),
		gormplugin.Named("audit", must(idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Worker: 2}))),
	))
	if err != nil {
		panic(err)
	}

	c := Customer{Name: "Ada", Orders: []Order{{}, {}}}
	entry := map[string]any{"text": "hello"}
	db.Create(&c)
	db.Model(&AuditEntry{}).Create(entry)

	fmt.Println(c.ID.IsZero(), c.Orders[0].ID.IsZero(), c.Orders[0].ID < c.Orders[1].ID)
	fmt.Println(c.Orders[1].CustomerID == c.ID)
	parts, err := idtype.DefaultSnowflakeLayout().Parts(entry["id"].(idtype.Snowflake))
	fmt.Println(parts.Worker, err)
	// Output:
	// false false true
	// true
	// 2 <nil>
}

// An Author and an Article get IDs of one generator. A byte of the ID identifies the model.
type Author struct {
	ID   idtype.SnoOf[Author]
	Name string
}

type Article struct {
	ID       idtype.SnoOf[Article]
	AuthorID idtype.SnoOf[Author]
	Author   Author
}

func (Author) IDMeta() byte  { return 'u' }
func (Article) IDMeta() byte { return 'a' }

// The plugin sets the metabyte that a model declares.
func ExampleFor_metabyte() {
	db := open()
	if err := db.Use(gormplugin.New(gormplugin.For(must(idtype.NewSnoGenerator(idtype.SnoConfig{}))))); err != nil {
		panic(err)
	}
	article := Article{Author: Author{Name: "Ada"}}
	db.Create(&article)
	fmt.Printf("%c %c\n", article.ID.Untyped().Meta(), article.AuthorID.Untyped().Meta())
	// Output:
	// a u
}

type tenantKey struct{}

// A tenants generator puts the tenant's number into the metabyte of its IDs. It takes
// the number from the context of the statement, which the plugin passes to Fill.
type tenants struct{ gen *idtype.SnoGenerator }

func (g tenants) Fill(ctx context.Context, dst []idtype.Sno) (int, error) {
	tenant, ok := ctx.Value(tenantKey{}).(byte)
	if !ok {
		return 0, errors.New("no tenant in the context")
	}
	return g.gen.WithMeta(tenant).Fill(ctx, dst)
}

// The plugin never calls Next.
func (g tenants) Next() (idtype.Sno, error) { return idtype.Sno{}, errors.New("no context") }

// Your own generator can depend on the context of a statement.
func ExampleFor_context() {
	db := open()
	if err := db.Use(gormplugin.New(gormplugin.For(tenants{must(idtype.NewSnoGenerator(idtype.SnoConfig{}))}))); err != nil {
		panic(err)
	}
	ctx := context.WithValue(context.Background(), tenantKey{}, byte(7))
	var c Customer
	db.WithContext(ctx).Create(&c)
	fmt.Println(c.ID.Untyped().Meta())
	fmt.Println(db.Create(&Customer{}).Error)
	// Output:
	// 7
	// gormplugin: fill Customer.ID: generate an ID: no tenant in the context
}

func ExamplePageBefore() {
	db := open()
	var cursor idtype.SnowflakeOf[Order] // zero: the newest orders
	var page []Order
	for range 2 {
		stmt := db.Scopes(gormplugin.PageBefore("", cursor)).Limit(20).Find(&page).Statement
		fmt.Println(stmt.SQL.String(), stmt.Vars)
		cursor = 418195596902400000 // the last order of the page
	}
	// Output:
	// SELECT * FROM `orders` ORDER BY `orders`.`id` DESC LIMIT ? [20]
	// SELECT * FROM `orders` WHERE `orders`.`id` < ? ORDER BY `orders`.`id` DESC LIMIT ? [418195596902400000 20]
}

func ExampleCreatedBetween() {
	day := time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)
	stmt := open().
		Scopes(gormplugin.CreatedBetween("", day, day.AddDate(0, 0, 1))).
		Find(&[]Order{}).Statement
	fmt.Println(stmt.SQL.String())
	fmt.Println(stmt.Vars...)
	// Output:
	// SELECT * FROM `orders` WHERE `orders`.`id` >= ? AND `orders`.`id` < ?
	// 418195596902400000 418557984768000000
}

func ExampleNamed() {
	db := open()
	gen := must(idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{}))
	if err := db.Use(gormplugin.New(gormplugin.Named("orders", gen))); err != nil {
		panic(err)
	}
	// No generator has the name in the tag of AuditEntry.ID.
	fmt.Println(db.Create(&AuditEntry{}).Error)
	// Output:
	// gormplugin: fill AuditEntry.ID: want the name of a generator among ["orders"], got "audit"; pass gormplugin.Named("audit", gen) to New: no generator for the column
}

// The type of a key selects its generator.
func ExampleNew() {
	db := open()
	err := db.Use(gormplugin.New(
		gormplugin.For(must(idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{}))),
		gormplugin.For(must(idtype.NewSnoGenerator(idtype.SnoConfig{}))),
	))
	if err != nil {
		panic(err)
	}
	customer := Customer{Name: "Ada"}
	fmt.Println(db.Create(&customer).Error, customer.ID.IsZero())

	// A key that is set stays as it is.
	order := Order{ID: 418195596902400000, CustomerID: customer.ID}
	fmt.Println(db.Create(&order).Error, order.ID)
	// Output:
	// <nil> false
	// <nil> 418195596902400000
}

func ExampleFor() {
	db := open()
	if err := db.Use(gormplugin.New(gormplugin.For(must(idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{}))))); err != nil {
		panic(err)
	}
	orders := []Order{{}, {}, {}}
	fmt.Println(db.Create(&orders).Error, orders[0].ID < orders[1].ID, orders[1].ID < orders[2].ID)

	// There is no generator for Customer.ID, an idtype.SnoOf.
	fmt.Println(errors.Is(db.Create(&Customer{}).Error, gormplugin.ErrNoGenerator))
	// Output:
	// <nil> true true
	// true
}

func ExamplePageAfter() {
	var cursor idtype.SnowflakeOf[Order] = 418195596902400000 // the last order of the previous page
	stmt := open().Scopes(gormplugin.PageAfter("", cursor)).Limit(100).Find(&[]Order{}).Statement
	fmt.Println(stmt.SQL.String(), stmt.Vars)
	// Output: SELECT * FROM `orders` WHERE `orders`.`id` > ? ORDER BY `orders`.`id` LIMIT ? [418195596902400000 100]
}

// G adapts a scope to GORM's generic interface.
func ExampleG() {
	ctx := context.Background()
	orders, err := gorm.G[Order](open()).Scopes(gormplugin.G(gormplugin.PageBefore("", idtype.SnowflakeOf[Order](0)))).Limit(20).Find(ctx)
	fmt.Println(len(orders), err)
	// Output: 0 <nil>
}
