// Package uuid has the models with the new key in a uuid column.
package uuid

import (
	"time"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
)

// A Customer has the new key.
type Customer struct {
	ID        idtype.Sno `gorm:"idgen:customer"`
	CreatedAt time.Time
	UpdatedAt time.Time
	DeletedAt gorm.DeletedAt `gorm:"index"`
	Name      string
	Orders    []Order
}

// An Order has the new key of its customer.
type Order struct {
	ID         idtype.Snowflake
	CustomerID idtype.Sno
	Total      int64
}

// Open prepares db. Partition and worker are this process's own.
func Open(db *gorm.DB, partition idtype.SnoPartition, worker int) error {
	snos, err := idtype.NewSnoGenerator(idtype.SnoConfig{Partition: &partition})
	if err != nil {
		return err
	}
	snowflakes, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Worker: worker})
	if err != nil {
		return err
	}
	return db.Use(gormplugin.New(
		gormplugin.For(snowflakes),
		gormplugin.Named("customer", snos.WithMeta('c')),
	))
}
