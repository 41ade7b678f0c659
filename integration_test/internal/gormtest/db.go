package gormtest

import (
	"database/sql"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/sortkey/sortkey/gormplugin"
)

// A database is a [gorm.DB] for values with [ID]s. It has the methods of gorm.DB that tests call.
type database struct {
	Error        error
	RowsAffected int64

	real      *gorm.DB
	types     *types
	dialector func(gorm.ConnPool) gorm.Dialector
	model     *copying // of Model; nil if there is no model
}

// A Dialector returns the dialector of the tests' database for a pool.
type Dialector = func(gorm.ConnPool) gorm.Dialector

// plain returns a database for models without IDs that stand for other types.
func plain(g *gorm.DB, dialector Dialector) *database {
	return &database{real: g, types: newTypes(nil), dialector: dialector}
}

func (d *database) with(tx *gorm.DB) *database {
	return &database{tx.Error, tx.RowsAffected, tx, d.types, d.dialector, d.model}
}

// args returns real arguments. GORM only reads them.
func (d *database) args(v ...any) []any { return newCopying(d.types, nil).reals(v) }

func (d *database) arg(v any) any { return newCopying(d.types, nil).real(v) }

// change runs a method that changes dest, or the model.
func (d *database) change(dest any, f func(dest any) *gorm.DB) *database {
	c := newCopying(d.types, d.model)
	tx := f(c.real(dest))
	c.copyBack()
	return d.with(tx)
}

// Conditions and clauses.

func (d *database) Model(v any) *database {
	d = d.with(d.real)
	d.model = newCopying(d.types, nil)
	d.real = d.real.Model(d.model.real(v))
	return d
}

func (d *database) Session(s *gorm.Session) *database { return d.with(d.real.Session(s)) }
func (d *database) Unscoped() *database               { return d.with(d.real.Unscoped()) }
func (d *database) Limit(n int) *database             { return d.with(d.real.Limit(n)) }
func (d *database) Omit(columns ...string) *database  { return d.with(d.real.Omit(columns...)) }
func (d *database) Group(name string) *database       { return d.with(d.real.Group(name)) }
func (d *database) Table(name string, args ...any) *database {
	return d.with(d.real.Table(name, d.args(args...)...))
}
func (d *database) Where(q any, args ...any) *database {
	return d.with(d.real.Where(d.arg(q), d.args(args...)...))
}
func (d *database) Not(q any, args ...any) *database {
	return d.with(d.real.Not(d.arg(q), d.args(args...)...))
}
func (d *database) Or(q any, args ...any) *database {
	return d.with(d.real.Or(d.arg(q), d.args(args...)...))
}
func (d *database) Having(q any, args ...any) *database {
	return d.with(d.real.Having(d.arg(q), d.args(args...)...))
}
func (d *database) Order(v any) *database { return d.with(d.real.Order(d.arg(v))) }
func (d *database) Select(q any, args ...any) *database {
	return d.with(d.real.Select(q, d.args(args...)...))
}
func (d *database) Distinct(args ...any) *database { return d.with(d.real.Distinct(args...)) }
func (d *database) Attrs(v ...any) *database       { return d.with(d.real.Attrs(d.args(v...)...)) }
func (d *database) Assign(v ...any) *database      { return d.with(d.real.Assign(d.args(v...)...)) }
func (d *database) Raw(q string, args ...any) *database {
	return d.with(d.real.Raw(q, d.args(args...)...))
}
func (d *database) Joins(q string, args ...any) *database {
	return d.with(d.real.Joins(q, d.args(args...)...))
}
func (d *database) InnerJoins(q string, args ...any) *database {
	return d.with(d.real.InnerJoins(q, d.args(args...)...))
}
func (d *database) Preload(q string, args ...any) *database {
	return d.with(d.real.Preload(q, d.args(args...)...))
}
func (d *database) Scopes(scopes ...scope) *database { return d.with(d.real.Scopes(scopes...)) }
func (d *database) Clauses(clauses ...clause.Expression) *database {
	for i := range clauses {
		clauses[i], _ = d.arg(clauses[i]).(clause.Expression)
	}
	return d.with(d.real.Clauses(clauses...))
}

// Statements.

func (d *database) Create(v any) *database { return d.change(v, d.real.Create) }
func (d *database) Save(v any) *database   { return d.change(v, d.real.Save) }
func (d *database) CreateInBatches(v any, size int) *database {
	return d.change(v, func(v any) *gorm.DB { return d.real.CreateInBatches(v, size) })
}
func (d *database) First(v any, conds ...any) *database {
	return d.change(v, func(v any) *gorm.DB { return d.real.First(v, d.args(conds...)...) })
}
func (d *database) Take(v any, conds ...any) *database {
	return d.change(v, func(v any) *gorm.DB { return d.real.Take(v, d.args(conds...)...) })
}
func (d *database) Find(v any, conds ...any) *database {
	return d.change(v, func(v any) *gorm.DB { return d.real.Find(v, d.args(conds...)...) })
}
func (d *database) FirstOrInit(v any, conds ...any) *database {
	return d.change(v, func(v any) *gorm.DB { return d.real.FirstOrInit(v, d.args(conds...)...) })
}
func (d *database) FirstOrCreate(v any, conds ...any) *database {
	return d.change(v, func(v any) *gorm.DB { return d.real.FirstOrCreate(v, d.args(conds...)...) })
}
func (d *database) FindInBatches(v any, size int, f func(tx *database, batch int) error) *database {
	c := newCopying(d.types, d.model)
	return d.with(d.real.FindInBatches(c.real(v), size, func(tx *gorm.DB, batch int) error {
		c.copyBack()
		return f(d.with(tx), batch)
	}))
}
func (d *database) Pluck(column string, v any) *database {
	return d.change(v, func(v any) *gorm.DB { return d.real.Pluck(column, v) })
}
func (d *database) Scan(v any) *database { return d.change(v, d.real.Scan) }
func (d *database) Count(n *int64) *database {
	return d.with(d.real.Count(n))
}
func (d *database) Delete(v any, conds ...any) *database {
	return d.change(v, func(v any) *gorm.DB { return d.real.Delete(v, d.args(conds...)...) })
}
func (d *database) Update(column string, v any) *database {
	return d.change(nil, func(any) *gorm.DB { return d.real.Update(column, d.arg(v)) })
}
func (d *database) Updates(v any) *database { return d.change(v, d.real.Updates) }
func (d *database) UpdateColumn(column string, v any) *database {
	return d.change(nil, func(any) *gorm.DB { return d.real.UpdateColumn(column, d.arg(v)) })
}
func (d *database) UpdateColumns(v any) *database { return d.change(v, d.real.UpdateColumns) }
func (d *database) Exec(q string, args ...any) *database {
	return d.with(d.real.Exec(q, d.args(args...)...))
}
func (d *database) Rows() (*sql.Rows, error) { return d.real.Rows() }
func (d *database) ScanRows(r *sql.Rows, v any) error {
	return d.change(v, func(v any) *gorm.DB { return &gorm.DB{Error: d.real.ScanRows(r, v)} }).Error
}

// ScanRow reads the only column of a row, like [gorm.DB.Row].
func (d *database) ScanRow(v any) error {
	return d.change(v, func(v any) *gorm.DB { return &gorm.DB{Error: d.real.Row().Scan(v)} }).Error
}

// Transactions and the rest.

func (d *database) Transaction(f func(tx *database) error) error {
	return d.real.Transaction(func(tx *gorm.DB) error { return f(d.with(tx)) })
}
func (d *database) Begin() *database                 { return d.with(d.real.Begin()) }
func (d *database) Commit() *database                { return d.with(d.real.Commit()) }
func (d *database) SavePoint(name string) *database  { return d.with(d.real.SavePoint(name)) }
func (d *database) RollbackTo(name string) *database { return d.with(d.real.RollbackTo(name)) }
func (d *database) AutoMigrate(models ...any) error {
	return d.real.AutoMigrate(d.args(models...)...)
}
func (d *database) SetupJoinTable(model any, field string, join any) error {
	return d.real.SetupJoinTable(d.arg(model), field, d.arg(join))
}

// use adds the plugin with generators.
func (d *database) use(t *testing.T, bindings ...gormplugin.Binding) {
	t.Helper()
	must(t, d.real.Use(gormplugin.New(bindings...)))
}

// An association is a [gorm.Association] for values with [ID]s.
type association struct {
	real *gorm.Association
	db   *database
}

func (d *database) Association(name string) *association {
	return &association{d.real.Association(name), d}
}

func (a *association) change(values []any, f func(values ...any) error) error {
	c := newCopying(a.db.types, a.db.model)
	err := f(c.reals(values)...)
	c.copyBack()
	return err
}

func (a *association) Append(v ...any) error  { return a.change(v, a.real.Append) }
func (a *association) Replace(v ...any) error { return a.change(v, a.real.Replace) }
func (a *association) Delete(v ...any) error  { return a.change(v, a.real.Delete) }
func (a *association) Clear() error {
	return a.change(nil, func(...any) error { return a.real.Clear() })
}
func (a *association) Count() int64           { return a.real.Count() }
func (a *association) Unscoped() *association { return &association{a.real.Unscoped(), a.db} }
func (a *association) Find(v any, conds ...any) error {
	return a.change([]any{v}, func(v ...any) error { return a.real.Find(v[0], a.db.args(conds...)...) })
}
