// Package bigint has the models with generated keys, in the columns that held
// the keys of the sequences.
package bigint

import (
	"time"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
)

// A Model is gorm.Model with a Snowflake as its key. K is the model that embeds it.
type Model[K any] struct {
	ID        idtype.SnowflakeOf[K] `gorm:"primaryKey"`
	CreatedAt time.Time
	UpdatedAt time.Time
	DeletedAt gorm.DeletedAt `gorm:"index"`
}

// A Customer has the key of Model.
type Customer struct {
	Model[Customer]
	Name   string
	Orders []Order
}

// An Order belongs to the customer with the key CustomerID.
type Order struct {
	ID         idtype.SnowflakeOf[Order]
	CustomerID idtype.SnowflakeOf[Customer]
	Total      int64
}

// Open installs the plugin in db. Processes that run at the same time need
// different workers, 0 to 31.
func Open(db *gorm.DB, worker int) error {
	gen, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Worker: worker})
	if err != nil {
		return err
	}
	return db.Use(gormplugin.New(gormplugin.For(gen)))
}

// A Refund refers to an order, and optionally to the refund that it replaces.
type Refund struct {
	ID         idtype.SnowflakeOf[Refund]
	OrderID    idtype.SnowflakeOf[Order] `gorm:"not null"`
	Order      Order
	ReplacesID *idtype.SnowflakeOf[Refund]
	Replaces   *Refund
}
