// Package gorm tests the ID types with GORM and the plugin.
package gorm

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/integration_test/internal/sqlitetest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// A suite has the tests that every ID type goes through. They get an empty
// database, and GORM with the plugin and a generator of the type.
type suite interface {
	TypeName() string
	use(t *testing.T, g *gorm.DB)

	// create_test.go
	create(t *testing.T, g *gorm.DB)
	createRefused(t *testing.T, g *gorm.DB)

	// generics_test.go
	genericCreate(t *testing.T, g *gorm.DB)
	genericUpsert(t *testing.T, g *gorm.DB)
	genericQuery(t *testing.T, g *gorm.DB)

	// graph_test.go
	graph(t *testing.T, g *gorm.DB)
	sharedKey(t *testing.T, g *gorm.DB)

	// hooks_test.go
	hooks(t *testing.T, g *gorm.DB)
	skippedHooks(t *testing.T, g *gorm.DB)

	// keys_test.go
	keyForms(t *testing.T, g *gorm.DB)
	compositeKeys(t *testing.T, g *gorm.DB)
	whichGenerator(t *testing.T, g *gorm.DB)
	selectAndOmit(t *testing.T, g *gorm.DB)
	defaultKeys(t *testing.T, g *gorm.DB)

	// maps_test.go
	createMaps(t *testing.T, g *gorm.DB)
	createMapWithoutModel(t *testing.T, g *gorm.DB)

	// migrate_test.go
	migrate(t *testing.T, g *gorm.DB)

	// migrated_test.go
	moved(t *testing.T, g *gorm.DB)
	movedFromSerial(t *testing.T, g *gorm.DB)
	movedFromIdentity(t *testing.T, g *gorm.DB)
	columnTags(t *testing.T, g *gorm.DB)

	// parallel_test.go
	parallel(t *testing.T, g *gorm.DB)
	parallelFirstUse(t *testing.T, g *gorm.DB)

	// query_test.go
	query(t *testing.T, g *gorm.DB)
	conditions(t *testing.T, g *gorm.DB)
	loading(t *testing.T, g *gorm.DB)
	scanning(t *testing.T, g *gorm.DB)
	changes(t *testing.T, g *gorm.DB)
	associations(t *testing.T, g *gorm.DB)
	prepared(t *testing.T, g *gorm.DB)
	log(t *testing.T, g *gorm.DB)
	window(t *testing.T, g *gorm.DB)

	// refusals_test.go
	generatorFails(t *testing.T, g *gorm.DB)
	cancelled(t *testing.T, g *gorm.DB)
	noGenerator(t *testing.T, g *gorm.DB)
	registeredTwice(t *testing.T, g *gorm.DB)

	// save_test.go
	save(t *testing.T, g *gorm.DB)
	firstOrCreate(t *testing.T, g *gorm.DB)
	batches(t *testing.T, g *gorm.DB)
	sessions(t *testing.T, g *gorm.DB)
	transaction(t *testing.T, g *gorm.DB)
	saveAssociations(t *testing.T, g *gorm.DB)

	// scopes_test.go
	pages(t *testing.T, g *gorm.DB)
	windows(t *testing.T, g *gorm.DB)
	windowPlan(t *testing.T, g *gorm.DB)

	// softdelete_test.go
	softDelete(t *testing.T, g *gorm.DB)
	upsertOfDeleted(t *testing.T, g *gorm.DB)

	// upsert_test.go
	upsert(t *testing.T, g *gorm.DB)
	upsertOfNothing(t *testing.T, g *gorm.DB)
	returning(t *testing.T, g *gorm.DB)
	upsertGraph(t *testing.T, g *gorm.DB)
	upsertJoins(t *testing.T, g *gorm.DB)
	upsertKeys(t *testing.T, g *gorm.DB)
	upsertAfterHook(t *testing.T, g *gorm.DB)
}

// N is the person of the type; see its definition.
type of[T idtest.ID[T], N any] struct{ idtest.Kind[T] }

var suites = []suite{
	of[idtype.Snowflake, snowflakePerson]{idtest.Snowflake},
	of[idtype.SnowflakeSI, snowflakeSIPerson]{idtest.SnowflakeSI},
	of[idtype.UID60, uid60Person]{idtest.UID60},
	of[idtype.Spread64, spread64Person]{idtest.Spread64},
	of[idtype.Sno, snoPerson]{idtest.Sno},
}

// clients are the ways to Postgres whose SQL or whose arguments differ.
var clients = map[string][]pgtest.Option{
	"codec":                  {pgtest.Codec},
	"codec, simple protocol": {pgtest.Codec, pgtest.Mode(pgx.QueryExecModeSimpleProtocol)},
	"pool":                   {pgtest.Codec, pgtest.FromPool},
	"plain":                  {},
	"plain, simple protocol": {pgtest.Mode(pgx.QueryExecModeSimpleProtocol)},
}

// opposites are two of the clients that have nothing in common.
var opposites = []string{"codec", "plain, simple protocol"}

// each runs a test of the suites for every ID type: on Postgres with some
// clients, the first of them on all versions, and on SQLite.
func each(t *testing.T, names []string, f func(s suite, t *testing.T, g *gorm.DB)) {
	for _, s := range suites {
		t.Run(s.TypeName(), func(t *testing.T) {
			for i, name := range names {
				onServers := pgtest.Each
				if i > 0 {
					onServers = pgtest.One // another client meets no other Postgres
				}
				t.Run(name, func(t *testing.T) {
					onServers(t, func(t *testing.T, db *pgtest.DB) {
						g := db.GORM(t, nil, clients[name]...)
						s.use(t, g)
						f(s, t, g)
					})
				})
			}
			t.Run("SQLite", func(t *testing.T) {
				g := sqlitetest.Open(t)
				s.use(t, g)
				f(s, t, g)
			})
		})
	}
}

func isPostgres(g *gorm.DB) bool { return g.Name() == "postgres" }

// use adds the plugin with a generator of the type.
func (k of[T, N]) use(t *testing.T, g *gorm.DB) {
	t.Helper()
	gen, err := k.NewGenerator()
	if err != nil {
		t.Fatal(err)
	}
	must(t, g.Use(gormplugin.New(gormplugin.For(gen))))
}

// must is pgtest.Must.
var must = pgtest.Must
