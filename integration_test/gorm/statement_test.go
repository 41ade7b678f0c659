package gorm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/callbacks"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

type (
	// An account may belong to another account.
	account struct {
		ID       idtype.Snowflake
		Email    string `gorm:"unique"`
		Name     string
		ParentID *idtype.Snowflake
		Parent   *account
		Team     *team
		TeamID   *idtype.Snowflake
		Refuse   bool `gorm:"-"`
	}
	team struct {
		ID   idtype.Snowflake
		Name string
	}
	// A visitor has a serial key and a public ID.
	visitor struct {
		ID       uint
		PublicID idtype.Snowflake `gorm:"idgen;unique"`
		Email    string           `gorm:"unique"`
		Name     string
	}
)

var errRefused = errors.New("refused by AfterCreate")

func (a *account) AfterCreate(*gorm.DB) error {
	if a.Refuse {
		return errRefused
	}
	return nil
}

// A planned generator generates the planned IDs first.
type planned struct {
	idtype.Generator[idtype.Snowflake]
	ids []idtype.Snowflake
}

func (p *planned) Fill(ctx context.Context, dst []idtype.Snowflake) (int, error) {
	n, err := p.Generator.Fill(ctx, dst)
	k := copy(dst, p.ids)
	p.ids = p.ids[k:]
	return n, err
}

// One Create is one INSERT.
func TestOneStatement(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(t *testing.T, g *gorm.DB, gen *planned){
		"a refused row changes nothing": refusedRow,
		"rows refer to each other":      selfReferences,
		"skipped rows":                  skippedRows,
		"IDs after errors":              idsAfterErrors,
		"constraints":                   constraints,
		"row counts":                    rowCounts,
		"many mixed rows":               manyMixedRows,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
				g := db.GORM(t, &gorm.Config{Logger: logger.Discard, SkipDefaultTransaction: true}, clients["codec"]...)
				node, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Worker: 5})
				must(t, err)
				gen := &planned{Generator: node}
				must(t, g.Use(gormplugin.New(gormplugin.For[idtype.Snowflake](gen))))
				must(t, g.AutoMigrate(&team{}, &account{}, &visitor{}))
				test(t, g, gen)
			})
		})
	}
}

// names returns the names of the accounts, sorted.
func names(t *testing.T, g *gorm.DB) string {
	t.Helper()
	var names []string
	must(t, g.Model(&account{}).Order("name").Pluck("name", &names).Error)
	return strings.Join(names, ",")
}

func state(err error) string {
	var pg interface{ SQLState() string }
	if errors.As(err, &pg) {
		return pg.SQLState()
	}
	return fmt.Sprint(err)
}

func refusedRow(t *testing.T, g *gorm.DB, _ *planned) {
	existing := account{Email: "a", Name: "before"}
	must(t, g.Create(&existing).Error)
	must(t, g.Create(&account{Email: "b", Name: "other"}).Error)
	existing.Name = "after"
	for range 2 {
		rows := []account{{Email: "b", Name: "new"}, existing}
		if err := g.Save(&rows).Error; state(err) != "23505" {
			t.Errorf("expected 23505, got %v", err)
		}
		if rows[0].ID == 0 || rows[1].ID != existing.ID {
			t.Errorf("expected that the IDs stay, got %v and %v", rows[0].ID, rows[1].ID)
		}
		if got := names(t, g); got != "before,other" {
			t.Errorf("expected no change, got %s", got)
		}
		rows[0].Email = "c"
		must(t, g.Transaction(func(tx *gorm.DB) error {
			must(t, tx.Save(&rows).Error)
			return tx.Where("email = 'c'").Delete(&account{}).Error
		}))
		must(t, g.Model(&existing).Update("name", "before").Error)
		existing.Name = "after"
	}
}

func selfReferences(t *testing.T, g *gorm.DB, _ *planned) {
	id := idtype.Snowflake(1)
	for name, create := range map[string]func(rows *[]account) error{
		"create": func(rows *[]account) error { return g.Create(rows).Error },
		"save":   func(rows *[]account) error { return g.Save(rows).Error },
		"upsert": func(rows *[]account) error { return g.Clauses(clause.OnConflict{UpdateAll: true}).Create(rows).Error },
		"by email": func(rows *[]account) error {
			return g.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "email"}}, UpdateAll: true}).Create(rows).Error
		},
		"nothing": func(rows *[]account) error { return g.Clauses(clause.OnConflict{DoNothing: true}).Create(rows).Error },
	} {
		rows := []account{{Email: name + "0"}, {ID: id, Email: name + "1"}}
		rows[1].ParentID = &rows[0].ID
		id++
		if err := create(&rows); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got account
		must(t, g.Joins("Parent").Take(&got, "accounts.id = ?", rows[1].ID).Error)
		if got.Parent == nil || got.Parent.Email != name+"0" {
			t.Errorf("%s: expected the parent %v, got %+v", name, rows[0].ID, got.Parent)
		}
	}
}

func skippedRows(t *testing.T, g *gorm.DB, gen *planned) {
	must(t, g.Create(&visitor{Email: "a", Name: "before"}).Error)
	rows := []visitor{{ID: 100, Email: "b"}, {Email: "a", Name: "after"}}
	tx := g.Clauses(clause.OnConflict{DoNothing: true}).Create(&rows)
	if tx.Error != nil {
		t.Errorf("an existing e-mail address: %v", tx.Error)
	}
	var got []visitor
	must(t, g.Order("id").Find(&got).Error)
	if len(got) != 2 || got[0].Name != "before" || got[1].ID != 100 || got[1].PublicID == 0 || rows[0].PublicID != 0 {
		t.Errorf("expected the existing row and row 100, got %+v; expected no public ID in the struct of row 100, which may exist, got %+v", got, rows[0])
	}
	// A taken ID is skipped, too.
	gen.ids = []idtype.Snowflake{got[0].PublicID}
	one := visitor{Email: "c"}
	if tx := g.Clauses(clause.OnConflict{DoNothing: true}).Create(&one); tx.Error != nil || tx.RowsAffected != 0 || one.PublicID != 0 {
		t.Errorf("a taken ID: expected no row and no ID, got %v, %d rows, %v", one.PublicID, tx.RowsAffected, tx.Error)
	}
}

func idsAfterErrors(t *testing.T, g *gorm.DB, gen *planned) {
	// The answer to COMMIT is lost.
	lost, err := gorm.Open(g.Dialector, &gorm.Config{ConnPool: g.ConnPool, Logger: logger.Discard})
	must(t, err)
	must(t, lost.Use(gormplugin.New(gormplugin.For[idtype.Snowflake](gen))))
	fail := true // after the row and its team were stored
	must(t, lost.Callback().Create().Replace("gorm:commit_or_rollback_transaction", func(tx *gorm.DB) {
		callbacks.CommitOrRollbackTransaction(tx)
		if fail && tx.Statement.Table == "accounts" {
			_ = tx.AddError(context.DeadlineExceeded)
		}
	}))
	a := account{Email: "lost", Team: &team{Name: "lost"}}
	if err := lost.Create(&a).Error; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("expected the error of COMMIT, got %v", err)
	}
	fail = false
	first := a.ID
	if err := lost.Create(&a).Error; state(err) != "23505" || a.ID != first || first == 0 {
		t.Errorf("the same Create: expected 23505 and ID %v, got %v and %v", first, err, a.ID)
	}
	must(t, g.Take(&account{}, a.ID).Error)

	// Without a transaction, an association is stored, and its owner isn't.
	b := account{Email: "lost", Team: &team{Name: "b"}}
	if err := g.Create(&b).Error; state(err) != "23505" || b.ID == 0 || b.Team.ID == 0 || *b.TeamID != b.Team.ID {
		t.Errorf("expected 23505 and IDs, got %v, %+v", err, b)
	}
	b.Email = "b"
	must(t, g.Create(&b).Error)
	// A hook fails after the INSERT.
	c := account{Email: "c", Refuse: true}
	if err := g.Create(&c).Error; !errors.Is(err, errRefused) {
		t.Errorf("expected the error of the hook, got %v", err)
	}
	must(t, g.Take(&account{}, "id = ? AND email = 'c'", c.ID).Error)
	var teams int64
	must(t, g.Model(&team{}).Count(&teams).Error)
	if teams != 2 {
		t.Errorf("expected 2 teams, got %d", teams)
	}

	// A refused ID is reset, and the IDs of other rows and tables stay.
	gen.ids = []idtype.Snowflake{b.ID}
	d := account{Email: "d", Team: &team{Name: "d"}}
	if err := g.Create(&d).Error; state(err) != "23505" || d.ID != 0 || d.Team.ID == 0 {
		t.Errorf("a taken ID: got %v, %+v", err, d)
	}
	team := d.Team.ID
	must(t, g.Create(&d).Error)
	if d.Team.ID != team || *d.TeamID != team {
		t.Errorf("expected the team %v, got %v", team, d.Team.ID)
	}
}

func constraints(t *testing.T, g *gorm.DB, gen *planned) {
	long := "accounts_" + strings.Repeat("x", 60)
	must(t, g.Exec("ALTER TABLE accounts RENAME CONSTRAINT accounts_pkey TO \"the key\"").Error)
	must(t, g.Exec("ALTER TABLE teams RENAME CONSTRAINT teams_pkey TO "+long).Error)
	existing, known, old := account{Email: "a", Name: "before"}, visitor{Email: "a", Name: "before"}, team{Name: "before"}
	must(t, errors.Join(g.Create(&existing).Error, g.Create(&known).Error, g.Create(&old).Error))
	name := clause.AssignmentColumns([]string{"name"})
	for what, c := range map[string]struct {
		constraint string
		taken      idtype.Snowflake
		one, two   any
	}{
		"a renamed key": {`"the key"`, existing.ID, &account{Email: "b", Name: "after"}, &[]account{{Email: "c", Name: "after"}, {ID: 7, Email: "d", Name: "after"}}},
		"a long name":   {long[:63], old.ID, &team{Name: "after"}, &[]team{{Name: "after"}, {Name: "after"}}},
		"a public ID":   {"uni_visitors_public_id", known.PublicID, &visitor{Email: "b", Name: "after"}, &[]visitor{{Email: "c", Name: "after"}, {PublicID: 7, Email: "d", Name: "after"}}},
	} {
		for _, rows := range []any{c.one, c.two} {
			gen.ids = []idtype.Snowflake{c.taken}
			upsert := clause.OnConflict{OnConstraint: c.constraint, DoUpdates: name}
			if err := g.Transaction(func(tx *gorm.DB) error { return tx.Clauses(upsert).Create(rows).Error }); !errors.Is(err, gorm.ErrDuplicatedKey) {
				t.Errorf("%s: expected ErrDuplicatedKey, got %v", what, err)
			}
			for _, table := range []string{"accounts", "teams", "visitors"} {
				var got []string
				must(t, g.Table(table).Pluck("name", &got).Error)
				if strings.Join(got, ",") != "before" {
					t.Errorf("%s: expected no change in %s, got %v", what, table, got)
				}
			}
		}
	}
	// An upsert of the caller's own ID changes the row, and a repeated upsert has new IDs.
	existing.Name = "changed"
	rows := []account{{Email: "e", Name: "new"}, existing}
	must(t, g.Clauses(clause.OnConflict{OnConstraint: `"the key"`, DoUpdates: name}).Create(&rows).Error)
	if got := names(t, g); got != "changed,new" {
		t.Errorf("expected the changed and the new account, got %s", got)
	}
	// A NULL in another key doesn't keep a row from being updated.
	must(t, g.Exec("UPDATE visitors SET public_id = NULL").Error)
	one := visitor{Email: "a", Name: "changed"}
	must(t, g.Clauses(clause.OnConflict{OnConstraint: "uni_visitors_email", DoUpdates: name}).Create(&one).Error)
	if one.ID != known.ID {
		t.Errorf("expected row %d, got %d", known.ID, one.ID)
	}
}

func rowCounts(t *testing.T, g *gorm.DB, _ *planned) {
	must(t, g.Create(&account{ID: 1, Email: "a"}).Error)
	rows := []account{{Email: "b"}, {ID: 1, Email: "a2"}, {Email: "c"}}
	result := gorm.WithResult()
	if tx := g.Clauses(clause.OnConflict{UpdateAll: true}, result).Create(&rows); tx.Error != nil || tx.RowsAffected != 3 {
		t.Errorf("got %d rows, %v", tx.RowsAffected, tx.Error)
	}
	if n, err := result.Result.RowsAffected(); err != nil || n != 3 || result.RowsAffected != 3 {
		t.Errorf("got %d and %d rows, %v", n, result.RowsAffected, err)
	}
}

// A Save of rows with and without IDs sends hardly more arguments than the values. Postgres accepts
// 65,535.
func manyMixedRows(t *testing.T, g *gorm.DB, gen *planned) {
	existing := account{ID: 2, Email: "existing", Name: "before"}
	must(t, g.Create(&existing).Error)
	rows := make([]account, 13_000) // with 5 values each
	for i := range rows {
		rows[i] = account{Email: fmt.Sprint(i), Name: "after"}
		if i%2 == 1 {
			rows[i].ID = idtype.Snowflake(i + 1)
		}
	}
	gen.ids = []idtype.Snowflake{existing.ID}
	if err := g.Transaction(func(tx *gorm.DB) error { return tx.Save(rows[2:]).Error }); !errors.Is(err, gorm.ErrDuplicatedKey) {
		t.Errorf("a taken ID: expected ErrDuplicatedKey, got %v", err)
	}
	if tx := g.Save(&rows); tx.Error != nil || tx.RowsAffected != int64(len(rows)) {
		t.Errorf("got %d rows, %v", tx.RowsAffected, tx.Error)
	}
	must(t, g.Take(&existing).Error)
	if existing.Name != "after" {
		t.Errorf("expected that Save updates the existing row, got %+v", existing)
	}
}
