package guide

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/idtype/seal"
)

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
