package gorm

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/gormtest"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
)

// Most of the time of a test is the server's.
func TestMain(m *testing.M) {
	pgtest.MainParallel(m, 2*runtime.NumCPU(), TestSnowflake, TestSno, TestOneStatement)
}

// must is pgtest.Must.
var must = pgtest.Must

// clients are the connection options of the tests. They differ in the SQL or in the form of the
// arguments that reach Postgres.
var clients = map[string][]pgtest.Option{
	"codec":                  {pgtest.Codec},
	"codec, simple protocol": {pgtest.Codec, pgtest.Mode(pgx.QueryExecModeSimpleProtocol)},
	"pool":                   {pgtest.Codec, pgtest.FromPool},
	"plain":                  {},
	"plain, simple protocol": {pgtest.Mode(pgx.QueryExecModeSimpleProtocol)},
}

// Lists of clients.
var (
	wideClients   = slices.Sorted(maps.Keys(clients))
	narrowClients = []string{"codec", "plain, simple protocol"}
)

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

// run runs the tests of an ID type as parallel subtests with names such as Create/codec/pg17.
func run(t *testing.T, k *gormtest.Kind) {
	t.Parallel()
	template := pgtest.NewTemplate(func(t *testing.T, db *pgtest.DB) {
		k.CreateTables(t, db.GORM(t, &gorm.Config{Logger: logger.Discard}))
	})
	// One ID type per column type runs with several clients.
	oneOfColumn := pgtest.Thorough() && (k == gormtest.Snowflake || k == gormtest.Sno)
	for _, c := range gormtest.Tests {
		if !c.For(k, true) || !c.First && !pgtest.Thorough() {
			continue
		}
		on := narrowClients
		switch {
		case !oneOfColumn:
			on = []string{"codec"}
		case c.Wide:
			on = wideClients
		}
		for _, client := range on {
			each := c.Each && oneOfColumn && client == "codec"
			test := func(t *testing.T, db *pgtest.DB) { c.Run(t, k, openGORM(t, db, client), dialect) }
			t.Run(c.Name+"/"+client, func(t *testing.T) {
				t.Parallel()
				switch {
				case each && c.Empty:
					pgtest.Each(t, test)
				case c.Empty:
					pgtest.One(t, test)
				case each:
					template.EachReused(t, test)
				default:
					template.OneReused(t, test)
				}
			})
		}
	}
}

func dialect(pool gorm.ConnPool) gorm.Dialector { return postgres.New(postgres.Config{Conn: pool}) }

// openGORM opens a database. Explaining each statement for a log that nobody reads would take
// half of the tests' CPU time.
func openGORM(t *testing.T, db *pgtest.DB, client string) *gorm.DB {
	config := &gorm.Config{Logger: logger.Discard}
	if testing.Verbose() {
		config = nil
	}
	return db.GORM(t, config, clients[client]...)
}

// Tests of one ID type.

func TestTypedKeys(t *testing.T) { onClients(t, wideClients, pgtest.One, gormtest.TypedKeys) }
func TestPublicIDs(t *testing.T) { onClients(t, wideClients, pgtest.One, gormtest.PublicIDs) }
func TestStringForeignKeys(t *testing.T) {
	onClients(t, narrowClients, pgtest.One, gormtest.StringForeignKeys)
}
func TestArrays(t *testing.T)      { onClients(t, narrowClients, pgtest.One, gormtest.Arrays) }
func TestCheckNewest(t *testing.T) { onClients(t, narrowClients, pgtest.One, gormtest.CheckNewest) }
func TestDomains(t *testing.T)     { onClients(t, narrowClients, installed.One, gormtest.Domains) }
func TestDomainDefaults(t *testing.T) {
	onClients(t, narrowClients, installed.One, gormtest.DomainDefaults)
}
func TestDomainDefaultKey(t *testing.T) {
	onClients(t, narrowClients, installed.One, gormtest.DomainDefaultKey)
}
func TestZeroKeyGuards(t *testing.T) {
	onClients(t, narrowClients, installed.One, gormtest.ZeroKeyGuards)
}

// onClients runs a test with each client, on a new database.
func onClients(t *testing.T, list []string, one func(*testing.T, func(*testing.T, *pgtest.DB)), f gormtest.Function) {
	for _, client := range list {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			one(t, func(t *testing.T, db *pgtest.DB) {
				// New sessions have the node number of the defaults.
				db.Exec(t, fmt.Sprintf("ALTER DATABASE %s SET sortkey.node = %d", db.Name, gormtest.DefaultNode))
				f(t, openGORM(t, db, client), dialect)
			})
		})
	}
}

// installed is a database with the project's SQL.
var installed = pgtest.NewTemplate(func(t *testing.T, db *pgtest.DB) {
	must(t, migrations.Up(t.Context(), db.SQL(t), migrations.Config{}))
	db.Exec(t, fmt.Sprintf("SELECT sortkey.reserve_node('snowflake', %[1]d, 'defaults'), sortkey.reserve_node('sno', %[1]d, 'defaults')", gormtest.DefaultNode))
})

// GORM on a pgxpool.Pool returns all connections, which have the codec, to the pool.
func TestPool(t *testing.T) {
	type thing struct {
		ID   idtype.Sno
		Name string
	}
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		g := db.GORM(t, &gorm.Config{PrepareStmt: true, Logger: logger.Discard}, clients["pool"]...)
		gen, err := idtest.Sno.NewGenerator()
		must(t, err)
		must(t, g.Use(gormplugin.New(gormplugin.For(gen))))
		must(t, g.AutoMigrate(&thing{}))
		a := thing{Name: "a"}
		must(t, g.Create(&a).Error)
		var found thing
		if err := g.Take(&found, "id = ?", a.ID).Error; err != nil || found != a {
			t.Errorf("by the ID: got %v, %v, want %v", found, err, a)
		}
		sqlDB, err := g.DB()
		must(t, err)
		if s := sqlDB.Stats(); s.Idle != 0 || s.InUse != 0 {
			t.Errorf("got %+v, want all connections back in the pool", s)
		}
		// With the codec, storing a Sno as text by accident is an error.
		var text string
		pgtest.Fails(t, sqlDB.QueryRow("select $1::text", a.ID).Scan(&text), nil, "sqltypes.Text[idtype.Sno]")
	})
}
