// Package between has the model that writes the key to come beside the old one.
package between

import (
	"gorm.io/gorm"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/sqltypes"
)

// CustomerIDs mints the new keys. Each process has a partition of its own.
var CustomerIDs *idtype.SnoGenerator

// A Customer that is created from now on has both keys.
type Customer struct {
	gorm.Model
	Name  string
	NewID sqltypes.OptionalSno `gorm:"<-:create"` // NULL until it is filled in
}

// BeforeCreate sets the key to come.
func (c *Customer) BeforeCreate(*gorm.DB) error {
	id, err := CustomerIDs.NextMeta('c')
	c.NewID = sqltypes.OptionalOf(id)
	return err
}

// Backfill gives the customers that are older keys of the times when they were
// created. Where it stops it can be started again.
func Backfill(db *gorm.DB) error {
	gen, err := idtype.NewSnoGenerator(idtype.SnoConfig{})
	if err != nil {
		return err
	}
	for {
		// The deleted ones too: they are rows.
		var customers []Customer
		err := db.Unscoped().Where("new_id IS NULL").Order("created_at, id").Limit(1000).Find(&customers).Error
		if err != nil || len(customers) == 0 {
			return err
		}
		err = db.Transaction(func(tx *gorm.DB) error {
			for _, c := range customers {
				id, err := gen.At('c', c.CreatedAt)
				if err != nil {
					return err
				}
				if err := tx.Exec("UPDATE customers SET new_id = ? WHERE id = ? AND new_id IS NULL", id, c.ID).Error; err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
}
