package gormplugin_test

import (
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/gorm/utils/tests"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
)

type Customer struct {
	ID     idtype.Sno
	Name   string
	Orders []Order
}

type Order struct {
	ID         idtype.Snowflake
	CustomerID idtype.Sno
}

// An AuditEntry has a generator of its own.
type AuditEntry struct {
	ID   idtype.Snowflake `gorm:"idgen:audit"`
	Text string
}

// open stands for gorm.Open with a real driver.
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

func ExampleMintedBetween() {
	day := time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)
	stmt := open().
		Scopes(gormplugin.MintedBetween(idtype.DefaultSnowflakeLayout(), "", day, day.AddDate(0, 0, 1))).
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
	// gormplugin: expected AuditEntry.ID to name a generator among ["orders"], got "audit": pass gormplugin.Named("audit", gen) to New: no generator for the key
}
