// Package between has the model that writes the new key beside the old one.
package between

import (
	"gorm.io/gorm"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/sqltypes"
)

// CustomerIDs generates the new keys: idtype.SnoGeneratorOf[Customer](gen). Each
// process needs its own partition.
var CustomerIDs idtype.Generator[idtype.SnoOf[Customer]]

// A Customer has both keys if it is created from now on.
type Customer struct {
	gorm.Model
	Name  string
	NewID sqltypes.Optional[idtype.SnoOf[Customer]] `gorm:"<-:create"` // NULL in older rows until Backfill sets it
}

// IDMeta returns the metabyte of all new keys.
func (Customer) IDMeta() byte { return 'c' }

// BeforeCreate sets the new key.
func (c *Customer) BeforeCreate(*gorm.DB) error {
	id, err := CustomerIDs.Next()
	c.NewID = sqltypes.OptionalOf(id)
	return err
}

// Backfill sets the new keys of older customers, with the times of their creation.
// If it fails, call it again: it continues where it stopped.
func Backfill(db *gorm.DB) error {
	gen, err := idtype.NewSnoGenerator(idtype.SnoConfig{})
	if err != nil {
		return err
	}
	for {
		// Unscoped includes soft-deleted rows, which need a key too.
		var customers []Customer
		err := db.Unscoped().Where("new_id IS NULL").Order("created_at, id").Limit(1000).Find(&customers).Error
		if err != nil || len(customers) == 0 {
			return err
		}
		err = db.Transaction(func(tx *gorm.DB) error {
			for _, c := range customers {
				id, err := gen.At(c.IDMeta(), c.CreatedAt)
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
