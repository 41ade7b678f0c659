package gorm

import (
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/integration_test/internal/sqlitetest"
	"github.com/sortkey/sortkey/migrations"
)

type (
	dated struct {
		ID   idtype.SnowflakeOf[dated]
		Name string
	}
	datedSno struct {
		ID      idtype.SnoOf[datedSno]
		OtherID *idtype.UID60
	}
)

func (datedSno) TableName() string { return "dated_snos" }

// A program that uses only GORM, without the project's SQL, finds out that its layout has a
// later epoch than the existing rows.
func TestCheckNewest(t *testing.T) {
	run := func(t *testing.T, g *gorm.DB) {
		layout := idtype.DefaultSnowflakeLayout()
		later := layout
		later.Epoch = later.Epoch.AddDate(3, 0, 0)
		gen := must1(t, func() (*idtype.SnowflakeGenerator, error) {
			return idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Worker: 17})
		})
		snos := must1(t, func() (*idtype.SnoGenerator, error) { return idtype.NewSnoGenerator(idtype.SnoConfig{}) })
		must(t, g.Use(gormplugin.New(gormplugin.For[idtype.Snowflake](gen), gormplugin.For[idtype.Sno](snos))))
		must(t, g.AutoMigrate(&dated{}, &datedSno{}))
		pool, err := g.DB()
		must(t, err)
		check := func(l idtype.SnowflakeLayout) error {
			return migrations.CheckNewest(t.Context(), pool, l, "dateds", "id")
		}

		must(t, check(later)) // no rows
		must(t, g.Create(&dated{Name: "a"}).Error)
		must(t, check(layout))
		if err := check(later); !errors.Is(err, migrations.ErrFuture) {
			t.Errorf("a later epoch: %v, want %v", err, migrations.ErrFuture)
		}
		earlier := layout
		earlier.Epoch = earlier.Epoch.AddDate(-3, 0, 0)
		must(t, check(earlier)) // repeats nothing

		must(t, g.Create(&datedSno{}).Error)
		must(t, migrations.CheckNewest(t.Context(), pool, idtype.SnoLayout{}, "dated_snos", "id"))
		must(t, migrations.CheckNewest(t.Context(), pool, idtype.UID60Layout{}, "dated_snos", "other_id")) // NULL
		_, future, err := idtype.UID60Layout{}.Range(time.Time{}, time.Now().Add(time.Hour))
		must(t, err)
		must(t, g.Model(&datedSno{}).Where("1 = 1").Update("other_id", future).Error)
		if err := migrations.CheckNewest(t.Context(), pool, idtype.UID60Layout{}, "dated_snos", "other_id"); !errors.Is(err, migrations.ErrFuture) {
			t.Errorf("a wrong clock: %v, want %v", err, migrations.ErrFuture)
		}
		if err := migrations.CheckNewest(t.Context(), pool, layout, `no"such.table`, "id"); err == nil || errors.Is(err, migrations.ErrFuture) {
			t.Errorf("no table: %v", err)
		}
		if isPostgres(g) {
			must(t, migrations.CheckNewest(t.Context(), pool, layout, "public.dateds", "id"))
		}
	}
	t.Run("Postgres", func(t *testing.T) {
		t.Parallel()
		pgtest.Each(t, func(t *testing.T, db *pgtest.DB) { run(t, db.GORM(t, nil)) })
	})
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		run(t, sqlitetest.Open(t))
	})
}
