package gormplugin

import (
	"context"
	"database/sql"
	"errors"
	"reflect"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/sortkey/sortkey/idtype"
)

// A lineID is the caller's own ID type, which embeds one of package idtype.
type lineID struct{ idtype.Snowflake }

type ownLine struct {
	ID   lineID
	Text string
}

// An own ID type prefers the generator of that type over the generator of the embedded
// type, in any order of the bindings.
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

type (
	ownPointer struct {
		ID   *lineID
		Text string
	}
	ownNull struct {
		ID   sql.Null[lineID]
		Text string
	}
	ownTextPointer struct {
		ID   *ownText
		Text string
	}
	ownTextNull struct {
		ID   sql.Null[text[idtype.Sno]]
		Text string
	}
	ownNamed struct {
		ID   *lineID `gorm:"idgen:special"`
		Text string
	}
	ownEmbedded struct {
		*OwnKey
		Text string
	}
	OwnKey struct {
		ID *lineID `gorm:"primaryKey"`
	}
)

// A pointer to an own ID type and a sql.Null of one are filled like a field of that type.
func TestNullableOwnIDType(t *testing.T) {
	line := func(n int64) *lineID { return &lineID{idtype.Snowflake(n)} }
	null := func(n int64) sql.Null[lineID] { return sql.Null[lineID]{V: *line(n), Valid: true} }
	sno := func(n byte) text[idtype.Sno] { return text[idtype.Sno]{idtype.Sno{9: n}} }
	zero := line(0)
	for name, c := range map[string]struct{ rows, want any }{
		"pointer":               {&ownPointer{}, &ownPointer{ID: line(1)}},
		"pointer to zero":       {&ownPointer{ID: zero}, &ownPointer{ID: line(1)}},
		"pointer that is set":   {&ownPointer{ID: line(9)}, &ownPointer{ID: line(9)}},
		"pointers":              {&[]ownPointer{{}, {ID: line(9)}, {}}, &[]ownPointer{{ID: line(1)}, {ID: line(9)}, {ID: line(2)}}},
		"pointers in an array":  {&[2]*ownPointer{{}, {}}, &[2]*ownPointer{{ID: line(1)}, {ID: line(2)}}},
		"Null":                  {&ownNull{}, &ownNull{ID: null(1)}},
		"Null that isn't valid": {&ownNull{ID: sql.Null[lineID]{V: *line(9)}}, &ownNull{ID: null(1)}},
		"Nulls":                 {[]*ownNull{{}, {ID: sql.Null[lineID]{Valid: true}}, {ID: null(9)}}, []*ownNull{{ID: null(1)}, {ID: null(2)}, {ID: null(9)}}},
		"all set":               {[]ownNull{{ID: null(8)}, {ID: null(9)}}, []ownNull{{ID: null(8)}, {ID: null(9)}}},
		"pointer to text":       {&ownTextPointer{}, &ownTextPointer{ID: &ownText{sno(1)}}},
		"Null of text":          {&ownTextNull{}, &ownTextNull{ID: sql.Null[text[idtype.Sno]]{V: sno(1), Valid: true}}},
		"named generator":       {&ownNamed{}, &ownNamed{ID: line(101)}},
		"embedded":              {&ownEmbedded{}, &ownEmbedded{OwnKey: &OwnKey{ID: line(1)}}},
		"map":                   {map[string]any{"text": "x"}, map[string]any{"text": "x", "id": *line(1)}},
		"maps":                  {[]map[string]any{{"id": zero}, {"ID": line(9)}}, []map[string]any{{"id": *line(1)}, {"ID": line(9)}}},
	} {
		db := open(t, For(snowflakes()), For(snos()), Named("special", from(100)))
		if reflect.TypeOf(c.rows).Kind() == reflect.Map || name == "maps" {
			db = db.Model(&ownPointer{})
		}
		if err := db.Create(c.rows).Error; err != nil || !reflect.DeepEqual(c.rows, c.want) {
			t.Errorf("%s: %+v, %v, want %+v", name, c.rows, err, c.want)
		}
	}
	if !zero.IsZero() {
		t.Errorf("the caller's variable became %v, want zero", zero)
	}

	// The generator of the own type takes precedence.
	own := &counter[lineID]{make: func(n int64) lineID { return *line(1000 + n) }}
	p := ownPointer{}
	if err := open(t, For(snowflakes()), For(own)).Create(&p).Error; err != nil || p.ID == nil || *p.ID != *line(1001) {
		t.Errorf("generator of the own type: got %v, %v, want 1001", p.ID, err)
	}
	// The ID of a row that is not stored is reset. Without an ID nothing is stored.
	s := &server{}
	db := openServer(t, s, For(&counter[idtype.Snowflake]{make: snowflakes().make, limit: 2}))
	p = ownPointer{}
	if err := db.Clauses(clause.OnConflict{DoNothing: true}).Create(&p).Error; err != nil || p.ID != nil {
		t.Errorf("after a conflict: got ID %v, %v, want none", p.ID, err)
	}
	rows := []ownPointer{{}, {}}
	if err := db.Create(&rows).Error; !errors.Is(err, errUsedUp) || rows[0].ID != nil || len(s.inserts()) != 1 {
		t.Errorf("generator without IDs: got %v, %v, ran %q", rows, err, s.ran)
	}
	if err := db.WithContext(canceled()).Create(&ownNull{}).Error; !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	for _, v := range []any{ownPointer{}, [1]ownPointer{}} {
		if err := db.Create(v).Error; !errors.Is(err, gorm.ErrInvalidValue) {
			t.Errorf("%T by value: %v", v, err)
		}
	}
	// A missing generator is the same error as for the embedded type.
	if err := open(t, For(snos())).Create(&ownPointer{}).Error; !errors.Is(err, ErrNoGenerator) {
		t.Errorf("no generator: %v", err)
	}
}

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
