package gormtest

import (
	"database/sql"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/sortkey/sortkey/gormplugin"
)

// A DB is a [gorm.DB] for values with [ID]s. Its methods are those of gorm.DB.
type DB struct {
	Error        error
	RowsAffected int64

	real      *gorm.DB
	types     *types
	dialector func(gorm.ConnPool) gorm.Dialector
	model     *copying // of Model; nil if there is no model
}

// A Dialector returns the dialector of the tests' database for a pool.
type Dialector = func(gorm.ConnPool) gorm.Dialector

// NewDB returns a DB for models without IDs that stand for other types.
func NewDB(g *gorm.DB, dialector Dialector) *DB {
	return &DB{real: g, types: newTypes(nil), dialector: dialector}
}

func (d *DB) with(tx *gorm.DB) *DB {
	return &DB{tx.Error, tx.RowsAffected, tx, d.types, d.dialector, d.model}
}

// args returns real arguments. GORM only reads them.
func (d *DB) args(v ...any) []any { return newCopying(d.types, nil).reals(v) }

func (d *DB) arg(v any) any { return newCopying(d.types, nil).real(v) }

// change runs a method that changes dest, or the model.
func (d *DB) change(dest any, f func(dest any) *gorm.DB) *DB {
	c := newCopying(d.types, d.model)
	tx := f(c.real(dest))
	c.copyBack()
	return d.with(tx)
}

// Conditions and clauses.

func (d *DB) Model(v any) *DB {
	d = d.with(d.real)
	d.model = newCopying(d.types, nil)
	d.real = d.real.Model(d.model.real(v))
	return d
}

func (d *DB) Session(s *gorm.Session) *DB { return d.with(d.real.Session(s)) }
func (d *DB) Unscoped() *DB               { return d.with(d.real.Unscoped()) }
func (d *DB) Limit(n int) *DB             { return d.with(d.real.Limit(n)) }
func (d *DB) Omit(columns ...string) *DB  { return d.with(d.real.Omit(columns...)) }
func (d *DB) Group(name string) *DB       { return d.with(d.real.Group(name)) }
func (d *DB) Table(name string, args ...any) *DB {
	return d.with(d.real.Table(name, d.args(args...)...))
}
func (d *DB) Where(q any, args ...any) *DB { return d.with(d.real.Where(d.arg(q), d.args(args...)...)) }
func (d *DB) Not(q any, args ...any) *DB   { return d.with(d.real.Not(d.arg(q), d.args(args...)...)) }
func (d *DB) Or(q any, args ...any) *DB    { return d.with(d.real.Or(d.arg(q), d.args(args...)...)) }
func (d *DB) Having(q any, args ...any) *DB {
	return d.with(d.real.Having(d.arg(q), d.args(args...)...))
}
func (d *DB) Order(v any) *DB               { return d.with(d.real.Order(d.arg(v))) }
func (d *DB) Select(q any, args ...any) *DB { return d.with(d.real.Select(q, d.args(args...)...)) }
func (d *DB) Distinct(args ...any) *DB      { return d.with(d.real.Distinct(args...)) }
func (d *DB) Attrs(v ...any) *DB            { return d.with(d.real.Attrs(d.args(v...)...)) }
func (d *DB) Assign(v ...any) *DB           { return d.with(d.real.Assign(d.args(v...)...)) }
func (d *DB) Raw(q string, args ...any) *DB { return d.with(d.real.Raw(q, d.args(args...)...)) }
func (d *DB) Joins(q string, args ...any) *DB {
	return d.with(d.real.Joins(q, d.args(args...)...))
}
func (d *DB) InnerJoins(q string, args ...any) *DB {
	return d.with(d.real.InnerJoins(q, d.args(args...)...))
}
func (d *DB) Preload(q string, args ...any) *DB {
	return d.with(d.real.Preload(q, d.args(args...)...))
}
func (d *DB) Scopes(scopes ...scope) *DB { return d.with(d.real.Scopes(scopes...)) }
func (d *DB) Clauses(clauses ...clause.Expression) *DB {
	for i := range clauses {
		clauses[i], _ = d.arg(clauses[i]).(clause.Expression)
	}
	return d.with(d.real.Clauses(clauses...))
}

// Statements.

func (d *DB) Create(v any) *DB { return d.change(v, d.real.Create) }
func (d *DB) Save(v any) *DB   { return d.change(v, d.real.Save) }
func (d *DB) CreateInBatches(v any, size int) *DB {
	return d.change(v, func(v any) *gorm.DB { return d.real.CreateInBatches(v, size) })
}
func (d *DB) First(v any, conds ...any) *DB {
	return d.change(v, func(v any) *gorm.DB { return d.real.First(v, d.args(conds...)...) })
}
func (d *DB) Take(v any, conds ...any) *DB {
	return d.change(v, func(v any) *gorm.DB { return d.real.Take(v, d.args(conds...)...) })
}
func (d *DB) Find(v any, conds ...any) *DB {
	return d.change(v, func(v any) *gorm.DB { return d.real.Find(v, d.args(conds...)...) })
}
func (d *DB) FirstOrInit(v any, conds ...any) *DB {
	return d.change(v, func(v any) *gorm.DB { return d.real.FirstOrInit(v, d.args(conds...)...) })
}
func (d *DB) FirstOrCreate(v any, conds ...any) *DB {
	return d.change(v, func(v any) *gorm.DB { return d.real.FirstOrCreate(v, d.args(conds...)...) })
}
func (d *DB) FindInBatches(v any, size int, f func(tx *DB, batch int) error) *DB {
	c := newCopying(d.types, d.model)
	return d.with(d.real.FindInBatches(c.real(v), size, func(tx *gorm.DB, batch int) error {
		c.copyBack()
		return f(d.with(tx), batch)
	}))
}
func (d *DB) Pluck(column string, v any) *DB {
	return d.change(v, func(v any) *gorm.DB { return d.real.Pluck(column, v) })
}
func (d *DB) Scan(v any) *DB { return d.change(v, d.real.Scan) }
func (d *DB) Count(n *int64) *DB {
	return d.with(d.real.Count(n))
}
func (d *DB) Delete(v any, conds ...any) *DB {
	return d.change(v, func(v any) *gorm.DB { return d.real.Delete(v, d.args(conds...)...) })
}
func (d *DB) Update(column string, v any) *DB {
	return d.change(nil, func(any) *gorm.DB { return d.real.Update(column, d.arg(v)) })
}
func (d *DB) Updates(v any) *DB { return d.change(v, d.real.Updates) }
func (d *DB) UpdateColumn(column string, v any) *DB {
	return d.change(nil, func(any) *gorm.DB { return d.real.UpdateColumn(column, d.arg(v)) })
}
func (d *DB) UpdateColumns(v any) *DB        { return d.change(v, d.real.UpdateColumns) }
func (d *DB) Exec(q string, args ...any) *DB { return d.with(d.real.Exec(q, d.args(args...)...)) }
func (d *DB) Rows() (*sql.Rows, error)       { return d.real.Rows() }
func (d *DB) ScanRows(r *sql.Rows, v any) error {
	return d.change(v, func(v any) *gorm.DB { return &gorm.DB{Error: d.real.ScanRows(r, v)} }).Error
}

// ScanRow reads the only column of a row, like [gorm.DB.Row].
func (d *DB) ScanRow(v any) error {
	return d.change(v, func(v any) *gorm.DB { return &gorm.DB{Error: d.real.Row().Scan(v)} }).Error
}

// Transactions and the rest.

func (d *DB) Transaction(f func(tx *DB) error) error {
	return d.real.Transaction(func(tx *gorm.DB) error { return f(d.with(tx)) })
}
func (d *DB) Begin() *DB                 { return d.with(d.real.Begin()) }
func (d *DB) Commit() *DB                { return d.with(d.real.Commit()) }
func (d *DB) SavePoint(name string) *DB  { return d.with(d.real.SavePoint(name)) }
func (d *DB) RollbackTo(name string) *DB { return d.with(d.real.RollbackTo(name)) }
func (d *DB) AutoMigrate(models ...any) error {
	return d.real.AutoMigrate(d.args(models...)...)
}
func (d *DB) SetupJoinTable(model any, field string, join any) error {
	return d.real.SetupJoinTable(d.arg(model), field, d.arg(join))
}

// use adds the plugin with generators.
func (d *DB) use(t *testing.T, bindings ...gormplugin.Binding) {
	t.Helper()
	must(t, d.real.Use(gormplugin.New(bindings...)))
}

// An Association is a [gorm.Association] for values with [ID]s.
type Association struct {
	real *gorm.Association
	db   *DB
}

func (d *DB) Association(name string) *Association { return &Association{d.real.Association(name), d} }

func (a *Association) change(values []any, f func(values ...any) error) error {
	c := newCopying(a.db.types, a.db.model)
	err := f(c.reals(values)...)
	c.copyBack()
	return err
}

func (a *Association) Append(v ...any) error  { return a.change(v, a.real.Append) }
func (a *Association) Replace(v ...any) error { return a.change(v, a.real.Replace) }
func (a *Association) Delete(v ...any) error  { return a.change(v, a.real.Delete) }
func (a *Association) Clear() error {
	return a.change(nil, func(...any) error { return a.real.Clear() })
}
func (a *Association) Count() int64           { return a.real.Count() }
func (a *Association) Unscoped() *Association { return &Association{a.real.Unscoped(), a.db} }
func (a *Association) Find(v any, conds ...any) error {
	return a.change([]any{v}, func(v ...any) error { return a.real.Find(v[0], a.db.args(conds...)...) })
}
