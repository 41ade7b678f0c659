package gormplugin

import (
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// A Layout turns a window of time into bounds of IDs. The layouts of package
// idtype do, except for Spread64's, whose IDs don't order by time.
type Layout[T any] interface {
	Range(from, to time.Time) (lo, hi T, err error)
}

// MintedBetween is a scope for [gorm.DB.Scopes]: the rows whose ID was minted
// from one instant to before another. It compares the column itself with two
// bounds, so that an index on it serves:
//
//	"orders"."id" >= lo AND "orders"."id" < hi
//
// An empty column means the model's primary key, a plain name a column of the
// statement's table, and one with a dot a column of the table before it. A
// zero from or to leaves that side open, to the format's smallest and largest
// value. A window that the layout refuses is the query's error.
//
// The scopes of [gorm.G] take a statement: pass them
// func(s *gorm.Statement) { scope(s.DB) }.
func MintedBetween[T any](layout Layout[T], column string, from, to time.Time) func(*gorm.DB) *gorm.DB {
	lo, hi, err := layout.Range(from, to)
	c := clause.Column{Table: clause.CurrentTable, Name: column}
	switch {
	case column == "":
		c.Name = clause.PrimaryKey
	case strings.Contains(column, "."):
		c.Table = "" // the dialect splits it
	}
	return func(db *gorm.DB) *gorm.DB {
		db = db.Where(clause.And(clause.Gte{Column: c, Value: lo}, clause.Lt{Column: c, Value: hi}))
		if err != nil {
			_ = db.AddError(err)
		}
		return db
	}
}
