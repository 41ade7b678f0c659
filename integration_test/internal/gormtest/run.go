package gormtest

import (
	"testing"

	"gorm.io/gorm"
)

// A Test runs with every ID type. Its function gets GORM with the plugin and a generator of each
// format, on a database that has the tables of the models.
type Test struct {
	Name  string
	Wide  bool // IDs are encoded or scanned in many forms, so it runs with all clients
	First bool // it runs with -short
	Empty bool // the database has no tables
	Each  bool // it reads catalogs or plans, so it runs on each version of Postgres

	// Same tests call the plugin in the same way for all ID types, and GORM, too. They run for
	// one ID type per Go kind, typed and not.
	Same bool

	only func(k *Kind) bool // reports whether it is for this ID type; nil: for all of them
	run  func(k *Kind, t *testing.T, g *database)
}

// Tests lists the tests that run with every ID type.
var Tests = []Test{
	{Name: "Create", run: (*Kind).create, Wide: true, First: true},
	{Name: "DefaultKeys", run: (*Kind).defaultKeys, Empty: true},
	{Name: "Parallel", run: (*Kind).parallel, Same: true},

	{Name: "Save", run: (*Kind).save, First: true},
	{Name: "FirstOrCreate", run: (*Kind).firstOrCreate, Same: true},
	{Name: "Transaction", run: (*Kind).transaction, Same: true},
	{Name: "Hooks", run: (*Kind).hooks, Same: true},

	{Name: "Forms", run: (*Kind).forms, Wide: true},

	{Name: "Graph", run: (*Kind).graph, Wide: true, First: true},
	{Name: "SharedKey", run: (*Kind).sharedKey, Same: true},
	{Name: "SaveAssociations", run: (*Kind).saveAssociations, Same: true},
	{Name: "SharedAssociations", run: (*Kind).sharedAssociations, Same: true},
	{Name: "Associations", run: (*Kind).associations, only: (*Kind).plain, Same: true},
	{Name: "Changes", run: (*Kind).changes, Wide: true},

	{Name: "Query", run: (*Kind).query, Wide: true, First: true, only: (*Kind).plain},
	{Name: "Loading", run: (*Kind).loading, Wide: true, only: (*Kind).plain},
	{Name: "Scanning", run: (*Kind).scanning, Wide: true},
	{Name: "PrepareStmt", run: (*Kind).prepared},
	{Name: "Log", run: (*Kind).log, only: (*Kind).plain},
	{Name: "SoftDelete", run: (*Kind).softDelete, only: (*Kind).plain, Same: true},

	{Name: "Pages", run: (*Kind).pages, only: (*Kind).plain},
	{Name: "Windows", run: (*Kind).windows, only: (*Kind).byTime},
	{Name: "WindowPlan", run: (*Kind).windowPlan, only: func(k *Kind) bool { return k.byTime() }, Each: true},

	{Name: "Upsert", run: (*Kind).upsert, Wide: true, First: true},
	{Name: "UpsertSkipped", run: (*Kind).upsertSkipped, First: true},
	{Name: "UpsertGraph", run: (*Kind).upsertGraph, Same: true},
	{Name: "SkippedGraph", run: (*Kind).skippedGraph, Same: true},
	{Name: "UpsertAfterHook", run: (*Kind).upsertAfterHook, Same: true},
	{Name: "UpsertOfDeleted", run: (*Kind).upsertOfDeleted, Same: true},

	{Name: "Collisions", run: (*Kind).collisions, Same: true},
	{Name: "SkippedCollisions", run: (*Kind).skippedCollisions, Same: true},

	{Name: "AutoMigrate", run: (*Kind).migrate, First: true, Empty: true, Each: true},
	{Name: "MovedFromNumbers", run: (*Kind).movedFromNumbers, Empty: true, Each: true, only: (*Kind).number},
	{Name: "MovedFromSerial", run: (*Kind).movedFromSerial, Empty: true, Each: true, Same: true, only: (*Kind).number},
	{Name: "MovedFromIdentity", run: (*Kind).movedFromIdentity, Empty: true, Each: true, Same: true, only: (*Kind).number},
	{Name: "MovedFromUUID", run: (*Kind).movedFromUUID, Empty: true, Each: true, only: (*Kind).uuid},
	{Name: "ColumnTags", run: (*Kind).columnTags, Empty: true, Each: true},
}

// postgresOnly has the tests of plans, sequences and identity columns.
var postgresOnly = map[string]bool{"WindowPlan": true, "MovedFromSerial": true, "MovedFromIdentity": true}

// For reports whether the test is for an ID type and a database.
func (c Test) For(k *Kind, postgres bool) bool {
	return (c.only == nil || c.only(k)) && (!c.Same || k.representative()) && (postgres || !postgresOnly[c.Name])
}

// representative reports whether k is one of the ID types that run every test.
func (k *Kind) representative() bool {
	switch k {
	case Snowflake, TypedSnowflake, Sno, TypedSno, UUID, TypedUUID, OwnSnowflake:
		return true
	}
	return false
}

// Run runs the test.
func (c Test) Run(t *testing.T, k *Kind, g *gorm.DB, dialector Dialector) {
	db := k.open(g, dialector)
	db.use(t, bindings(t)...)
	must(t, db.SetupJoinTable(&person{}, "Clubs", &membership{}))
	c.run(k, t, db)
}

func (k *Kind) open(g *gorm.DB, dialector Dialector) *database {
	return &database{real: g, types: k.types, dialector: dialector}
}

// CreateTables creates the tables of the tests for an ID type.
func (k *Kind) CreateTables(t *testing.T, g *gorm.DB) { k.createTables(t, k.open(g, nil)) }

// A Function is a test of one ID type.
type Function func(t *testing.T, g *gorm.DB, dialector Dialector)

func function(f func(*testing.T, *database)) Function {
	return func(t *testing.T, g *gorm.DB, dialector Dialector) { f(t, plain(g, dialector)) }
}

// The tests of one ID type.
var (
	TypedKeys         = function(typedKeys)
	PublicIDs         = function(publicIDs)
	StringForeignKeys = function(stringForeignKeys)
	CheckNewest       = function(checkNewest)

	// ForeignKeyTypes needs columns without a type, which only SQLite has.
	ForeignKeyTypes = function(foreignKeyTypes)

	// Arrays needs Postgres.
	Arrays = function(arrays)

	// Domains needs the project's SQL on Postgres.
	Domains = function(domains)

	// The tests of domains with defaults need Postgres with the project's SQL.
	DomainDefaults   = function(domainDefaults)
	DomainDefaultKey = function(domainDefaultKey)
	ZeroKeyGuards    = function(zeroKeyGuards)
)
