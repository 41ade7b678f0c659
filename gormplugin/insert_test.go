package gormplugin

import (
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm/clause"

	"github.com/sortkey/sortkey/idtype"
)

// If the generator of one key fails, the other keys that the caller has set stay.
func TestFailedGeneratorKeepsOtherKeys(t *testing.T) {
	type ticketed struct {
		ID     idtype.Snowflake
		Ticket idtype.Sno `gorm:"idgen"`
	}
	gen := snowflakes()
	gen.n, gen.limit = 1, 1
	ticket := idtype.Sno{9: 7}
	row := ticketed{Ticket: ticket}
	if err := open(t, For(gen), For(snos())).Create(&row).Error; !errors.Is(err, errUsedUp) || row.ID != 0 || row.Ticket != ticket {
		t.Errorf("error = %v, row = %v", err, row)
	}
}

// A struct at the address of an association that was saved is another row.
func TestRowAtAddressOfAssociation(t *testing.T) {
	type boss struct {
		ID   idtype.Snowflake
		Name string
	}
	type worker struct {
		Boss   boss // first, so that it has the worker's address
		BossID idtype.Snowflake
		ID     idtype.Snowflake
	}
	s := &server{affected: 1}
	db := openServer(t, s, For(snowflakes()))
	rows := []worker{{Boss: boss{Name: "a"}}, {}}
	if err := db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&rows).Error; err != nil {
		t.Fatal(err)
	}
	if got := s.inserts(); len(got) != 2 || strings.Contains(got[1], "ON CONFLICT") {
		t.Errorf("ran %q, want no ON CONFLICT for the workers", got)
	}
}
