package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"time"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/pglease"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
)

type Order struct{ ID idtype.SnowflakeOf[Order] } // a bigint column, and your own fields

func (Order) IDPrefix() string { return "ord" } // optional: the prefix in text and JSON

func main() {
	db := idtype.Must(gorm.Open(postgres.Open(os.Getenv("DATABASE_URL"))))
	ids := idtype.Must(nodelease.NewSnowflakeGenerator(context.Background(), store(),
		idtype.SnowflakeConfig{}, nodelease.Options{})) // with a node number of its own
	defer ids.Close() // releases the number
	check(db.Use(gormplugin.New(gormplugin.For(ids))))
	check(db.AutoMigrate(&Order{}))
	check(db.Create([]*Order{{}, {}}).Error)
	var orders []Order
	check(db.Scopes(gormplugin.CreatedBetween("id", time.Now().Add(-time.Hour), time.Time{})).Find(&orders).Error)
	for _, order := range orders {
		fmt.Println(order.ID, "created", order.ID.Time())
	}
}

// store keeps the node numbers of all instances. The first instance creates its tables.
func store() nodelease.Store {
	db := idtype.Must(sql.Open("pgx", os.Getenv("DATABASE_URL")))
	return pglease.New(db, pglease.Config{Install: true})
}

func check(err error) { idtype.Must(0, err) } // panics on an error
