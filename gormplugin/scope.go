package gormplugin

import (
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// A Scope narrows a query by a key:
//
//	db.Scopes(scope).Find(&orders)
//	gorm.G[Order](db).Scopes(scope.G).Find(ctx)
//
// The functions that make one take the name of a column. Empty, it means the
// model's primary key; a plain name is a column of the statement's table, and
// one with a dot a column of the table before it.
type Scope func(*gorm.DB) *gorm.DB

// G is the scope in the form that [gorm.G] takes.
func (s Scope) G(stmt *gorm.Statement) { s(stmt.DB) }

// A Layout turns a window of time into bounds of IDs. The layouts of package
// idtype do, except for Spread64's, whose IDs don't order by time.
type Layout[T any] interface {
	Range(from, to time.Time) (lo, hi T, err error)
}

// MintedBetween gives the rows whose ID was minted from one instant to before
// another. It compares the column itself with two bounds, so that an index on
// it serves:
//
//	"orders"."id" >= lo AND "orders"."id" < hi
//
// A zero from or to leaves that side open, to the format's smallest and largest
// value. A window that the layout refuses is the query's error.
func MintedBetween[T any](layout Layout[T], column string, from, to time.Time) Scope {
	lo, hi, err := layout.Range(from, to)
	c := columnOf(column)
	return func(db *gorm.DB) *gorm.DB {
		db = narrow(db, clause.And(clause.Gte{Column: c, Value: lo}, clause.Lt{Column: c, Value: hi}))
		if err != nil {
			_ = db.AddError(err)
		}
		return db
	}
}

// PageAfter gives the rows after a cursor, which is the last ID of the page
// before, in the order of their IDs; those of a zero cursor begin with the
// smallest. Pages of a size, whatever is inserted and deleted meanwhile, are
//
//	db.Scopes(gormplugin.PageAfter("", cursor)).Limit(size).Find(&page)
//
// Another ORDER BY before the scope would break them.
func PageAfter[T interface{ IsZero() bool }](column string, cursor T) Scope {
	c := columnOf(column)
	return page(c, false, cursor.IsZero(), clause.Gt{Column: c, Value: cursor})
}

// PageBefore is [PageAfter] backwards: the rows before a cursor, which for IDs
// that order by time are the older ones, the newest of them first. Those of a
// zero cursor begin with the largest ID.
func PageBefore[T interface{ IsZero() bool }](column string, cursor T) Scope {
	c := columnOf(column)
	return page(c, true, cursor.IsZero(), clause.Lt{Column: c, Value: cursor})
}

func page(c clause.Column, descending, first bool, beyond clause.Expression) Scope {
	return func(db *gorm.DB) *gorm.DB {
		// IDs of Spread64 are negative as well: a zero cursor is no bound.
		if !first {
			db = narrow(db, beyond)
		}
		return db.Order(clause.OrderByColumn{Column: c, Desc: descending})
	}
}

// narrow adds a condition to all that there are. After an Or, Where alone would
// add it to the last of the alternatives.
func narrow(db *gorm.DB, condition clause.Expression) *gorm.DB {
	db = db.Where(condition)
	stmt := db.Statement
	c := stmt.Clauses[where]
	if w, ok := c.Expression.(clause.Where); ok {
		others := w.Exprs[:len(w.Exprs)-1]
		if slices.ContainsFunc(others, isOr) {
			c.Expression = clause.Where{Exprs: []clause.Expression{clause.And(others...), condition}}
			stmt.Clauses[where] = c
		}
	}
	return db
}

func isOr(e clause.Expression) bool {
	_, ok := e.(clause.OrConditions)
	return ok
}

func columnOf(name string) clause.Column {
	switch {
	case name == "":
		return clause.PrimaryColumn
	case strings.Contains(name, "."):
		return clause.Column{Name: name} // the dialect splits it
	}
	return clause.Column{Table: clause.CurrentTable, Name: name}
}
