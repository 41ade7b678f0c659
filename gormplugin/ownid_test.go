package gormplugin

import (
	"testing"

	"github.com/sortkey/sortkey/idtype"
)

// An ID type of a user's own, around one of idtype's.
type lineID struct{ idtype.Snowflake }

type ownLine struct {
	ID   lineID
	Text string
}

// A generator of the type itself goes before one of what it contains, however
// they are ordered; and without it that one will do.
func TestOwnIDType(t *testing.T) {
	own := func() *counter[lineID] {
		return &counter[lineID]{make: func(n int64) lineID { return lineID{idtype.Snowflake(1000 + n)} }}
	}
	for name, c := range map[string]struct {
		bindings []Binding
		want     idtype.Snowflake
	}{
		"own":            {[]Binding{For(own())}, 1001},
		"own, then base": {[]Binding{For(own()), For(snowflakes())}, 1001},
		"base, then own": {[]Binding{For(snowflakes()), For(own())}, 1001},
		"other, own":     {[]Binding{For(&counter[idtype.Sno]{}), For(own())}, 1001},
		"base alone":     {[]Binding{For(snowflakes())}, 1},
	} {
		l, rows := ownLine{Text: "x"}, []ownLine{{Text: "y"}, {ID: lineID{7}, Text: "set"}, {Text: "z"}}
		db := open(t, c.bindings...)
		if err := db.Create(&l).Error; err != nil || l.ID.Snowflake != c.want {
			t.Errorf("%s: %v, %v; want %d", name, l.ID, err, c.want)
		}
		if err := db.Create(&rows).Error; err != nil || rows[1].ID.Snowflake != 7 || rows[2].ID.Snowflake != c.want+2 {
			t.Errorf("%s: %v, %v; want up to %d", name, rows, err, c.want+2)
		}
	}
}
