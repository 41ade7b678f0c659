// Package after has the models with the new keys.
package after

import (
	"time"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
)

// A Customer has a Sno as its key.
type Customer struct {
	ID        idtype.SnoOf[Customer]
	CreatedAt time.Time
	UpdatedAt time.Time
	DeletedAt gorm.DeletedAt `gorm:"index"`
	Name      string
	Orders    []Order
}

// IDMeta returns the metabyte of all customer keys.
func (Customer) IDMeta() byte { return 'c' }

// An Order refers to its customer by the new key.
type Order struct {
	ID         idtype.SnowflakeOf[Order]
	CustomerID idtype.SnoOf[Customer]
	Total      int64
}

// Open installs the plugin in db. Each process needs its own partition and worker.
func Open(db *gorm.DB, partition idtype.SnoPartition, worker int) error {
	snos, err := idtype.NewSnoGenerator(idtype.SnoConfig{Partition: &partition})
	if err != nil {
		return err
	}
	snowflakes, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Worker: worker})
	if err != nil {
		return err
	}
	return db.Use(gormplugin.New(gormplugin.For(snos), gormplugin.For(snowflakes)))
}
