package guide

import (
	"context"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/idtype"
)

// An Account keeps its serial key for joins. Clients see only the public ID, such as acct_01h455vb4pex5vsknk084sn02q.
type Account struct {
	ID       uint                   `json:"-"`
	PublicID idtype.UUIDOf[Account] `json:"id" gorm:"idgen;uniqueIndex"` // filled by the plugin, as a key would be
	Email    string                 `json:"email"`
}

// IDPrefix returns the prefix of public IDs.
func (Account) IDPrefix() string { return "acct" }

// AccountOf returns the account with a public ID in the text form, such as a part of a URL.
func AccountOf(ctx context.Context, db *gorm.DB, text string) (*Account, error) {
	id, err := idtype.Parse[idtype.UUIDOf[Account]](text)
	if err != nil {
		return nil, err // idtype.PublicMessage(err) is a text for the client
	}
	account := new(Account)
	return account, db.WithContext(ctx).Where("public_id = ?", id).First(account).Error
}
