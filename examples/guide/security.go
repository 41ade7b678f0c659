package guide

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/idtype/seal"
)

// Reveal describes the facts that anyone can read from a key.
func Reveal(id idtype.Snowflake) (string, error) {
	p, err := idtype.DefaultSnowflakeLayout().Parts(id)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("created %s by datacenter %d, worker %d, after %d others in that millisecond",
		p.Time.Format(time.RFC3339Nano), p.Datacenter, p.Worker, p.Sequence), nil
}

// Estimate returns an estimate of n from a random sample of the numbers 0 to n-1:
// the number of workers from the workers of a few keys, or the number of IDs in a
// busy millisecond from a few sequence numbers.
func Estimate(seen []int) float64 {
	largest := float64(slices.Max(seen) + 1)
	return largest + largest/float64(len(seen)) - 1
}

// A User can own documents.
type User struct{ ID idtype.SnowflakeOf[User] }

// A Document has a key for the database and a random token for clients.
type Document struct {
	ID      idtype.SnowflakeOf[Document] `json:"-"`
	Token   string                       `json:"id" gorm:"not null;uniqueIndex"`
	OwnerID idtype.SnowflakeOf[User]     `json:"-" gorm:"not null;index"`
	Title   string                       `json:"title"`
}

// BeforeCreate generates the token: 26 characters, 130 random bits.
func (d *Document) BeforeCreate(*gorm.DB) error {
	d.Token = rand.Text()
	return nil
}

// DocumentOf returns a document that the user owns. For other users' documents it
// returns gorm.ErrRecordNotFound, as for a document that doesn't exist.
func DocumentOf(db *gorm.DB, user idtype.SnowflakeOf[User], token string) (Document, error) {
	var d Document
	err := db.Where("token = ? AND owner_id = ?", token, user).Take(&d).Error
	return d, err
}

// A Ticket has a key that outsiders see only sealed.
type Ticket struct {
	ID      idtype.SnowflakeOf[Ticket]
	OwnerID idtype.SnowflakeOf[User] `gorm:"not null;index"`
	Title   string
}

// IDPrefix begins the text of ticket IDs.
func (Ticket) IDPrefix() string { return "tkt" }

// TicketHandler serves GET /tickets/{id}, where id is a sealed ID. It answers the same for an
// unreadable ID, a missing ticket, and a ticket of another user.
func TicketHandler(db *gorm.DB, s *seal.Sealer, userOf func(*http.Request) idtype.SnowflakeOf[User]) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var ticket Ticket
		id, err := seal.Parse[idtype.SnowflakeOf[Ticket]](s, r.PathValue("id"))
		if err == nil {
			err = db.WithContext(r.Context()).Where("id = ? AND owner_id = ?", id, userOf(r)).Take(&ticket).Error
		}
		switch {
		case errors.Is(err, seal.ErrUnreadable), errors.Is(err, gorm.ErrRecordNotFound):
			http.Error(w, "no such ticket", http.StatusNotFound)
		case err != nil:
			http.Error(w, "internal error", http.StatusInternalServerError)
		default:
			_ = json.NewEncoder(w).Encode(map[string]string{"id": seal.Text(s, ticket.ID), "title": ticket.Title})
		}
	}
}

// NewResetToken returns a token to mail to the user, and its hash to store. A
// reader of the table can't use the hash.
func NewResetToken() (mailed string, stored [sha256.Size]byte) {
	mailed = rand.Text()
	return mailed, sha256.Sum256([]byte(mailed))
}
