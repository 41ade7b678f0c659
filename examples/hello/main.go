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

type Order struct{ ID idtype.SnowflakeOf[Order] } // a bigint column, and your own fields

func main() {
	check := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	db, err := gorm.Open(postgres.Open(os.Getenv("DATABASE_URL")))
	check(err)
	ids, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Worker: 1}) // unique per instance
	check(err)
	check(db.Use(gormplugin.New(gormplugin.For(ids))))
	check(db.AutoMigrate(&Order{}))
	check(db.Create([]*Order{{}, {}}).Error)
	var orders []Order
	lastHour := gormplugin.CreatedBetween("id", time.Now().Add(-time.Hour), time.Time{})
	check(db.Scopes(lastHour).Find(&orders).Error)
	for _, order := range orders {
		fmt.Println(order.ID, "created", order.ID.Time())
	}
}
