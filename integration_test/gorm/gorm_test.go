// Package gorm tests the ID types with GORM and the plugin.
package gorm

import (
	"maps"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/integration_test/internal/sqlitetest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// must is pgtest.Must.
var must = pgtest.Must

func must1[T any](t *testing.T, f func() (T, error)) T {
	t.Helper()
	v, err := f()
	must(t, err)
	return v
}

// clients are the connection options of the tests. They differ in the SQL or in the form of the
// arguments that reach Postgres.
var clients = map[string][]pgtest.Option{
	"codec":                  {pgtest.Codec},
	"codec, simple protocol": {pgtest.Codec, pgtest.Mode(pgx.QueryExecModeSimpleProtocol)},
	"pool":                   {pgtest.Codec, pgtest.FromPool},
	"plain":                  {},
	"plain, simple protocol": {pgtest.Mode(pgx.QueryExecModeSimpleProtocol)},
}

// Lists of clients for a test. The first client runs on all versions of Postgres. Outside
// CI, most tests run with one client.
var (
	allClients  = append(slices.Sorted(maps.Keys(clients)), "SQLite")
	everyClient = pgtest.Scaled([]string{"codec"}, allClients)
	// opposites are the clients that differ most.
	opposites         = pgtest.Scaled([]string{"codec"}, []string{"codec", "plain, simple protocol", "SQLite"})
	postgresOpposites = slices.DeleteFunc(slices.Clone(opposites), func(client string) bool { return client == "SQLite" })
)

// A test runs with every ID type. Its function gets GORM with the plugin and a generator of
// the type, on a database that has the tables of the models.
type test struct {
	name    string
	run     func(t *testing.T, g *gorm.DB)
	clients []string
	empty   bool // the database has no tables
	byTime  bool // only for IDs that sort by time
}

// tests returns the tests of the type. The other files have their methods.
func (k of[T, N]) tests() []test {
	return []test{
		{name: "Create", run: k.create, clients: allClients},
		{name: "CreateRefused", run: k.createRefused, clients: opposites},
		{name: "CreateMaps", run: k.createMaps, clients: opposites},
		{name: "CreateMapWithoutModel", run: k.createMapWithoutModel, clients: opposites, empty: true},

		{name: "GenericCreate", run: k.genericCreate, clients: opposites},
		{name: "GenericUpsert", run: k.genericUpsert, clients: opposites},
		{name: "GenericQuery", run: k.genericQuery, clients: opposites},

		{name: "Graph", run: k.graph, clients: opposites},
		{name: "SharedKey", run: k.sharedKey, clients: opposites},
		{name: "Hooks", run: k.hooks, clients: opposites},
		{name: "SkippedHooks", run: k.skippedHooks, clients: opposites},

		{name: "KeyForms", run: k.keyForms, clients: opposites},
		{name: "CompositeKeys", run: k.compositeKeys, clients: opposites},
		{name: "GeneratorSelection", run: k.generatorSelection, clients: opposites},
		{name: "SelectAndOmit", run: k.selectAndOmit, clients: opposites},
		{name: "DefaultKeys", run: k.defaultKeys, clients: opposites, empty: true},

		{name: "AutoMigrate", run: k.migrate, clients: opposites, empty: true},
		{name: "MovedModel", run: k.moved, clients: opposites, empty: true},
		{name: "MovedFromSerial", run: k.movedFromSerial, clients: opposites, empty: true},
		{name: "MovedFromIdentity", run: k.movedFromIdentity, clients: opposites, empty: true},
		{name: "ColumnTags", run: k.columnTags, clients: opposites, empty: true},

		{name: "Parallel", run: k.parallel, clients: opposites},
		{name: "ParallelFirstUse", run: k.parallelFirstUse, clients: []string{"SQLite"}},

		{name: "Query", run: k.query, clients: allClients},
		{name: "Conditions", run: k.conditions, clients: everyClient},
		{name: "Loading", run: k.loading, clients: everyClient},
		{name: "Scanning", run: k.scanning, clients: everyClient},
		{name: "Changes", run: k.changes, clients: everyClient},
		{name: "Associations", run: k.associations, clients: everyClient},
		{name: "PrepareStmt", run: k.prepared, clients: everyClient},
		{name: "Log", run: k.log, clients: opposites},

		{name: "GeneratorFails", run: k.generatorFails, clients: opposites},
		{name: "Cancelled", run: k.cancelled, clients: opposites},
		{name: "NoGenerator", run: k.noGenerator, clients: opposites},
		{name: "RegisteredTwice", run: k.registeredTwice, clients: opposites},

		{name: "Save", run: k.save, clients: opposites},
		{name: "FirstOrCreate", run: k.firstOrCreate, clients: opposites},
		{name: "Batches", run: k.batches, clients: opposites},
		{name: "Sessions", run: k.sessions, clients: opposites},
		{name: "Transaction", run: k.transaction, clients: opposites},
		{name: "SaveAssociations", run: k.saveAssociations, clients: opposites},

		{name: "Pages", run: k.pages, clients: opposites},
		{name: "Windows", run: k.windows, clients: opposites, byTime: true},
		{name: "WindowPlan", run: k.windowPlan, clients: postgresOpposites, byTime: true},
		{name: "SoftDelete", run: k.softDelete, clients: opposites},
		{name: "UpsertOfDeleted", run: k.upsertOfDeleted, clients: opposites},

		{name: "Upsert", run: k.upsert, clients: allClients},
		{name: "UpsertSkipped", run: k.upsertSkipped, clients: opposites},
		{name: "Returning", run: k.returning, clients: opposites},
		{name: "UpsertGraph", run: k.upsertGraph, clients: opposites},
		{name: "UpsertJoins", run: k.upsertJoins, clients: opposites, empty: true},
		{name: "UpsertKeys", run: k.upsertKeys, clients: opposites},
		{name: "UpsertAfterHook", run: k.upsertAfterHook, clients: opposites},
		{name: "Collisions", run: k.collisions, clients: opposites, empty: true},
	}
}

// N is the person type for T, for example snowflakePerson.
type of[T idtest.ID[T], N any] struct {
	idtest.Kind[T]
	bind func(*testing.T) gormplugin.Binding
}

func TestSnowflake(t *testing.T)   { runAll[snowflakePerson](t, idtest.Snowflake) }
func TestSnowflakeSI(t *testing.T) { runAll[snowflakeSIPerson](t, idtest.SnowflakeSI) }
func TestUID60(t *testing.T)       { runAll[uid60Person](t, idtest.UID60) }
func TestSpread64(t *testing.T)    { runAll[spread64Person](t, idtest.Spread64) }
func TestSno(t *testing.T)         { runAll[snoPerson](t, idtest.Sno) }

func runAll[N any, T idtest.ID[T]](t *testing.T, k idtest.Kind[T]) {
	of[T, N]{k, generatorOf(k)}.test(t)
}

// generatorOf returns a function that binds a new generator of a kind.
func generatorOf[T idtest.ID[T]](k idtest.Kind[T]) func(*testing.T) gormplugin.Binding {
	return func(t *testing.T) gormplugin.Binding { return gormplugin.For(must1(t, k.NewGenerator)) }
}

// test runs the tests as parallel subtests with names such as
// Create/codec/pg17 and Create/SQLite.
func (k of[T, N]) test(t *testing.T) {
	t.Parallel()
	var file sqlitetest.Schema
	template := pgtest.NewTemplate(func(t *testing.T, db *pgtest.DB) {
		k.createTables(t, db.GORM(t, &gorm.Config{Logger: logger.Discard}))
	})
	for _, c := range k.tests() {
		if c.byTime && k.Layout == nil {
			continue
		}
		run := func(t *testing.T, g *gorm.DB) {
			must(t, g.Use(gormplugin.New(k.bind(t))))
			must(t, g.SetupJoinTable(new(N), "Clubs", &membership[T]{}))
			c.run(t, g)
		}
		// One ID type per column type runs with all clients. The tests of pgx and
		// databasesql cover all clients with the other ID types.
		if k.Name != idtest.Snowflake.Name && k.Name != idtest.Sno.Name {
			c.clients = c.clients[:1]
		}
		for i, client := range c.clients {
			onPostgres := func(t *testing.T, db *pgtest.DB) { run(t, db.GORM(t, nil, clients[client]...)) }
			t.Run(c.name+"/"+client, func(t *testing.T) {
				t.Parallel()
				switch {
				case client == "SQLite" && c.empty:
					run(t, sqlitetest.Open(t))
				case client == "SQLite":
					run(t, file.Open(t, func(g *gorm.DB) { k.createTables(t, g) }))
				case c.empty && i == 0:
					pgtest.Each(t, onPostgres)
				case c.empty:
					pgtest.One(t, onPostgres) // one version of Postgres is enough for other clients
				case i == 0:
					template.EachReused(t, onPostgres)
				default:
					template.OneReused(t, onPostgres)
				}
			})
		}
	}
}

func isPostgres(g *gorm.DB) bool { return g.Name() == "postgres" }

func (k of[T, N]) createTables(t *testing.T, g *gorm.DB) {
	t.Helper()
	must(t, g.SetupJoinTable(new(N), "Clubs", &membership[T]{}))
	must(t, g.AutoMigrate(slices.Concat(k.graphModels(), []any{
		&thing[T]{}, &owner[T]{}, &profile[T]{}, &account[T]{}, &item[T]{}, // things and shared keys
		&contact[T]{}, &call[T]{}, &remark[T]{}, &reviewed[T]{},
		&codedPointer[T]{}, &codedNull[T]{}, &codedPart[T]{}, &codedDefault[T]{}, &codedEmbedded[T]{},
		&sender[T]{}, &letter[T]{}, &parcel[T]{}, &label[T]{}, &hooked[T]{}, &hookedPart[T]{}, &trace[T]{},
		&pointerKey[T]{}, &nullKey[T]{}, &optionalKey[T]{}, &textKey[T]{}, &nestedKey[T]{}, &namedText[T]{}, &bytesKey{}, &otherName[T]{},
		&embedsValue[T]{}, &embedsPointer[T]{}, &embedsNested[T]{}, &embedsPrefixed[T]{}, &embedsPrefixedPointer[T]{},
		&line[T]{}, &bothParts[T]{}, &noPart[T]{}, &linePart[T]{},
	})...))
	must(t, g.Table("archive").AutoMigrate(&thing[T]{}))
}
