package sqlite

import (
	"runtime"
	"testing"

	"github.com/glebarez/sqlite"
	"gorm.io/gorm"

	"github.com/sortkey/sortkey/integration_test/internal/gormtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/integration_test/internal/sqlitetest"
)

func TestMain(m *testing.M) { pgtest.MainParallel(m, 2*runtime.NumCPU()) }

func TestSnowflake(t *testing.T)      { run(t, gormtest.Snowflake) }
func TestSnowflakeSI(t *testing.T)    { run(t, gormtest.SnowflakeSI) }
func TestUID60(t *testing.T)          { run(t, gormtest.UID60) }
func TestSpread64(t *testing.T)       { run(t, gormtest.Spread64) }
func TestSno(t *testing.T)            { run(t, gormtest.Sno) }
func TestTypedSnowflake(t *testing.T) { run(t, gormtest.TypedSnowflake) }
func TestTypedSno(t *testing.T)       { run(t, gormtest.TypedSno) }
func TestUUID(t *testing.T)           { run(t, gormtest.UUID) }
func TestTypedUUID(t *testing.T)      { run(t, gormtest.TypedUUID) }
func TestOwnSnowflake(t *testing.T)   { run(t, gormtest.OwnSnowflake) }
func TestOwnSno(t *testing.T)         { run(t, gormtest.OwnSno) }

func run(t *testing.T, k *gormtest.Kind) {
	t.Parallel()
	var file sqlitetest.Schema
	for _, c := range gormtest.Tests {
		if !c.For(k, false) {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			if c.Empty {
				c.Run(t, k, sqlitetest.Open(t), dialect)
				return
			}
			c.Run(t, k, file.Open(t, func(g *gorm.DB) { k.CreateTables(t, g) }), dialect)
		})
	}
}

func dialect(pool gorm.ConnPool) gorm.Dialector { return sqlite.Dialector{Conn: pool} }

func TestTypedKeys(t *testing.T)         { runOne(t, gormtest.TypedKeys) }
func TestPublicIDs(t *testing.T)         { runOne(t, gormtest.PublicIDs) }
func TestForeignKeyTypes(t *testing.T)   { runOne(t, gormtest.ForeignKeyTypes) }
func TestStringForeignKeys(t *testing.T) { runOne(t, gormtest.StringForeignKeys) }
func TestCheckNewest(t *testing.T)       { runOne(t, gormtest.CheckNewest) }
func TestDomains(t *testing.T)           { runOne(t, gormtest.Domains) }

func runOne(t *testing.T, f gormtest.Function) {
	t.Parallel()
	f(t, sqlitetest.Open(t), dialect)
}
