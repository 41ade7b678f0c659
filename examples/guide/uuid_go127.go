//go:build go1.27

package guide

import (
	"uuid"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
)

// A Receipt has a key of the standard library's type.
type Receipt struct {
	ID     uuid.UUID `gorm:"type:uuid"`
	Amount int64
}

// StandardKeys returns a plugin that fills keys of the standard library's type.
func StandardKeys() (gorm.Plugin, error) {
	gen, err := idtype.NewUUIDGenerator(idtype.UUIDConfig{})
	if err != nil {
		return nil, err
	}
	return gormplugin.New(gormplugin.For(idtype.MapGenerator(gen, func(id idtype.UUID) uuid.UUID { return uuid.UUID(id) }))), nil
}
