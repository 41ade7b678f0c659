package main

import (
	"fmt"
	"os"
	"time"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
)

type Order struct{ ID idtype.UUIDOf[Order] } // a uuid column, and your own fields

func (Order) IDPrefix() string { return "ord" } // optional: the prefix in text and JSON

func main() {
	db := idtype.Must(gorm.Open(postgres.Open(os.Getenv("DATABASE_URL"))))
	ids := idtype.Must(idtype.NewUUIDGenerator(idtype.UUIDConfig{}))
	check(db.Use(gormplugin.New(gormplugin.For(ids))))
	check(db.AutoMigrate(&Order{}))
	check(db.Create([]*Order{{}, {}}).Error)
	var orders []Order
	check(db.Scopes(gormplugin.CreatedBetween("id", time.Now().Add(-time.Hour), time.Time{})).Find(&orders).Error)
	for _, order := range orders {
		fmt.Println(order.ID, "created", order.ID.Time())
	}
}

func check(err error) { idtype.Must(0, err) } // panics on an error
