package guide

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/idtype"
)

// Reveal is what anybody reads off one key.
func Reveal(id idtype.Snowflake) (string, error) {
	p, err := idtype.DefaultSnowflakeLayout().Parts(id)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("minted %s by datacenter %d, worker %d, which minted %d others in that millisecond before",
		p.Time.Format(time.RFC3339Nano), p.Datacenter, p.Worker, p.Sequence), nil
}

// Estimate is how many numbers from 0 on there are, if these are some of them by
// chance: workers, from those of a few keys, or the IDs of a busy millisecond.
func Estimate(seen []int) float64 {
	largest := float64(slices.Max(seen) + 1)
	return largest + largest/float64(len(seen)) - 1
}

// A Document has a key for the database, and a name that can't be guessed for all others.
type Document struct {
	ID      idtype.Snowflake `json:"-"`
	Token   string           `json:"id" gorm:"not null;uniqueIndex"`
	OwnerID idtype.Snowflake `json:"-" gorm:"not null;index"`
	Title   string           `json:"title"`
}

// BeforeCreate makes the token: 26 characters, 130 random bits.
func (d *Document) BeforeCreate(*gorm.DB) error {
	d.Token = rand.Text()
	return nil
}

// DocumentOf finds a document that the user owns. For one of others the error is that
// for one that doesn't exist: gorm.ErrRecordNotFound.
func DocumentOf(db *gorm.DB, user idtype.Snowflake, token string) (Document, error) {
	var d Document
	err := db.Where("token = ? AND owner_id = ?", token, user).Take(&d).Error
	return d, err
}

// NewResetToken makes what is mailed, and what is stored: a hash, so that who
// reads the table can't use it.
func NewResetToken() (mailed string, stored [sha256.Size]byte) {
	mailed = rand.Text()
	return mailed, sha256.Sum256([]byte(mailed))
}
