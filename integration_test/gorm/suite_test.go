package gorm

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/glebarez/sqlite"
	"github.com/jackc/pgx/v5"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/integration_test/internal/sqlitetest"
	"github.com/sortkey/sortkey/internal/typename"
)

// Most of the time of a test is the server's.
func TestMain(m *testing.M) { pgtest.MainParallel(m, 2*runtime.NumCPU()) }

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

// Lists of clients.
var (
	wideClients     = pgtest.Scaled([]string{"SQLite", "codec", "plain"}, append([]string{"SQLite"}, slices.Sorted(maps.Keys(clients))...))
	narrowClients   = pgtest.Scaled([]string{"SQLite", "codec"}, []string{"SQLite", "codec", "plain, simple protocol"})
	postgresClients = narrowClients[1:]
)

// A test runs with every ID type. Its function gets GORM with the plugin and a generator of
// the type, on a database that has the tables of the models.
type test struct {
	name  string
	run   func(t *testing.T, g *gorm.DB)
	on    []string    // the clients
	empty bool        // the database has no tables
	each  bool        // it reads catalogs or plans, so it runs on each version of Postgres
	only  func() bool // reports whether it is for this ID type; nil: for all of them
}

// tests returns the tests of the type. The other files have their methods.
func (k of[T, P]) tests() []test {
	wide, narrow := wideClients, narrowClients
	return []test{
		{name: "Create", run: k.create, on: wide},
		{name: "DefaultKeys", run: k.defaultKeys, on: narrow, empty: true},
		{name: "Parallel", run: k.parallel, on: narrow},

		{name: "Save", run: k.save, on: narrow},
		{name: "FirstOrCreate", run: k.firstOrCreate, on: narrow},
		{name: "Transaction", run: k.transaction, on: narrow},
		{name: "Hooks", run: k.hooks, on: narrow},

		{name: "Forms", run: k.forms, on: wide},

		{name: "Graph", run: k.graph, on: wide},
		{name: "SharedKey", run: k.sharedKey, on: narrow},
		{name: "SaveAssociations", run: k.saveAssociations, on: narrow},
		{name: "Associations", run: k.associations, on: narrow, only: k.plain},
		{name: "Changes", run: k.changes, on: wide},

		{name: "Query", run: k.query, on: wide, only: k.plain},
		{name: "Loading", run: k.loading, on: wide, only: k.plain},
		{name: "Scanning", run: k.scanning, on: wide},
		{name: "GenericQuery", run: k.genericQuery, on: narrow, only: k.plain},
		{name: "PrepareStmt", run: k.prepared, on: narrow},
		{name: "Log", run: k.log, on: narrow, only: k.plain},
		{name: "SoftDelete", run: k.softDelete, on: narrow, only: k.plain},

		{name: "Pages", run: k.pages, on: narrow, only: k.plain},
		{name: "Windows", run: k.windows, on: narrow, only: k.byTime},
		{name: "WindowPlan", run: k.windowPlan, on: postgresClients, only: k.byTime, each: true},

		{name: "Upsert", run: k.upsert, on: wide},
		{name: "UpsertSkipped", run: k.upsertSkipped, on: narrow},
		{name: "UpsertGraph", run: k.upsertGraph, on: narrow, empty: true},
		{name: "SkippedGraph", run: k.skippedGraph, on: narrow},
		{name: "UpsertAfterHook", run: k.upsertAfterHook, on: narrow},
		{name: "UpsertOfDeleted", run: k.upsertOfDeleted, on: narrow},

		{name: "Collisions", run: k.collisions, on: narrow, empty: true},

		{name: "AutoMigrate", run: k.migrate, on: narrow, empty: true, each: true},
		{name: "MovedFromNumbers", run: k.movedFromNumbers, on: narrow, empty: true, each: true, only: k.number},
		{name: "MovedFromSerial", run: k.movedFromSerial, on: postgresClients, empty: true, each: true, only: k.number},
		{name: "MovedFromIdentity", run: k.movedFromIdentity, on: postgresClients, empty: true, each: true, only: k.number},
		{name: "MovedFromUUID", run: k.movedFromUUID, on: narrow, empty: true, each: true, only: k.uuid},
		{name: "ColumnTags", run: k.columnTags, on: narrow, empty: true, each: true},
	}
}

// An of has the tests of an ID type. P is the pointer to a person of T, for example
// *snowflakePerson. The compiler compiles the tests once for all ID types with the same
// underlying type: pointers share code if the constraint, unlike comparable, has only methods.
type of[T idtest.ID[T], P any] struct {
	idtest.Kind[T]
	blank func() P
}

// Typed keys with a prefix, Snos with a metabyte, and the caller's own ID types, which are
// structs.
type (
	typedSno   = idtype.SnoOf[idtest.Customer]
	orderID    struct{ idtype.Snowflake }
	customerID struct{ idtype.Sno }
)

func (a orderID) Compare(b orderID) int       { return a.Snowflake.Compare(b.Snowflake) }
func (a customerID) Compare(b customerID) int { return a.Sno.Compare(b.Sno) }

// own returns the kind of the caller's own ID type.
func own[T idtest.ID[T], V idtest.ID[V]](base idtest.Kind[T], of func(T) V, id func(V) T) idtest.Kind[V] {
	return idtest.Kind[V]{Name: typename.OfValue(*new(V)), Column: base.Column, First: base.First, Last: base.Last, Unit: base.Unit,
		Stored: func(v V) string { return base.Stored(id(v)) },
		At: func(t time.Time, pick func(int) int) (V, error) {
			v, err := base.At(t, pick)
			return of(v), err
		},
		NewGenerator: func() (idtype.Generator[V], error) {
			gen, err := base.NewGenerator()
			return idtype.MapGenerator(gen, of), err
		}}
}

func TestSnowflake(t *testing.T)      { runAll[snowflakePerson](t, idtest.Snowflake) }
func TestSnowflakeSI(t *testing.T)    { runAll[snowflakeSIPerson](t, idtest.SnowflakeSI) }
func TestUID60(t *testing.T)          { runAll[uid60Person](t, idtest.UID60) }
func TestSpread64(t *testing.T)       { runAll[spread64Person](t, idtest.Spread64) }
func TestSno(t *testing.T)            { runAll[snoPerson](t, idtest.Sno) }
func TestTypedSnowflake(t *testing.T) { runAll[typedSnowflakePerson](t, idtest.OrderID) }
func TestTypedSno(t *testing.T)       { runAll[typedSnoPerson](t, idtest.CustomerID) }
func TestUUID(t *testing.T)           { runAll[uuidPerson](t, idtest.UUID) }
func TestTypedUUID(t *testing.T)      { runAll[typedUUIDPerson](t, idtest.OrderUUID) }
func TestOwnSnowflake(t *testing.T) {
	runAll[ownSnowflakePerson](t, own(idtest.Snowflake, func(id idtype.Snowflake) orderID { return orderID{id} }, func(id orderID) idtype.Snowflake { return id.Snowflake }))
}
func TestOwnSno(t *testing.T) {
	runAll[ownSnoPerson](t, own(idtest.Sno, func(id idtype.Sno) customerID { return customerID{id} }, func(id customerID) idtype.Sno { return id.Sno }))
}

func runAll[N any, T idtest.ID[T]](t *testing.T, k idtest.Kind[T]) {
	of[T, *N]{k, func() *N { return new(N) }}.test(t)
}

// bindings returns generators of the formats. They also fill typed keys and the caller's own ID
// types.
func bindings(t *testing.T) []gormplugin.Binding {
	return []gormplugin.Binding{
		gormplugin.For(must1(t, idtest.Snowflake.NewGenerator)), gormplugin.For(must1(t, idtest.SnowflakeSI.NewGenerator)),
		gormplugin.For(must1(t, idtest.UID60.NewGenerator)), gormplugin.For(must1(t, idtest.Spread64.NewGenerator)),
		gormplugin.For(must1(t, idtest.Sno.NewGenerator)), gormplugin.For(must1(t, idtest.UUID.NewGenerator)),
	}
}

// Some tests are only for ID types that sort by time, that aren't structs, which GORM takes for
// models in a list of conditions, or that have one type of column.

func (k of[T, P]) byTime() bool { return k.Layout != nil }
func (of[T, P]) plain() bool    { return reflect.TypeFor[T]().Kind() != reflect.Struct }
func (k of[T, P]) number() bool { return k.Column == "bigint" }
func (k of[T, P]) uuid() bool   { return k.Column == "uuid" }

// test runs the tests as parallel subtests with names such as
// Create/codec/pg17 and Create/SQLite.
func (k of[T, P]) test(t *testing.T) {
	t.Parallel()
	var file sqlitetest.Schema
	template := pgtest.NewTemplate(func(t *testing.T, db *pgtest.DB) {
		k.createTables(t, db.GORM(t, &gorm.Config{Logger: logger.Discard}))
	})
	for _, c := range k.tests() {
		if c.only != nil && !c.only() {
			continue
		}
		run := func(t *testing.T, g *gorm.DB) {
			must(t, g.Use(gormplugin.New(bindings(t)...)))
			must(t, g.SetupJoinTable(k.blank(), "Clubs", &membership[T]{}))
			c.run(t, g)
		}
		wide := len(c.on) == len(wideClients)
		// One ID type per column type runs with all clients.
		oneOfColumn := k.Name == idtest.Snowflake.Name || k.Name == idtest.Sno.Name
		if !oneOfColumn {
			c.on = slices.DeleteFunc(slices.Clone(c.on), func(client string) bool {
				return client != "SQLite" && (client != "codec" || !wide && !pgtest.Thorough())
			})
		}
		for _, client := range c.on {
			each := c.each && oneOfColumn && client == "codec"
			onPostgres := func(t *testing.T, db *pgtest.DB) { run(t, openGORM(t, db, client)) }
			t.Run(c.name+"/"+client, func(t *testing.T) {
				t.Parallel()
				switch {
				case client == "SQLite" && c.empty:
					run(t, sqlitetest.Open(t))
				case client == "SQLite":
					run(t, file.Open(t, func(g *gorm.DB) { k.createTables(t, g) }))
				case each && c.empty:
					pgtest.Each(t, onPostgres)
				case c.empty:
					pgtest.One(t, onPostgres)
				case each:
					template.EachReused(t, onPostgres)
				default:
					template.OneReused(t, onPostgres)
				}
			})
		}
	}
}

// openGORM opens a database. Explaining each statement for a log that nobody reads would take
// half of the tests' CPU time.
func openGORM(t *testing.T, db *pgtest.DB, client string) *gorm.DB {
	config := &gorm.Config{Logger: logger.Discard}
	if testing.Verbose() {
		config = nil
	}
	return db.GORM(t, config, clients[client]...)
}

// onClients runs a test of one ID type on SQLite and with clients of Postgres, each time on an
// empty database.
func onClients(t *testing.T, list []string, f func(t *testing.T, g *gorm.DB)) {
	for _, client := range list {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			if client == "SQLite" {
				f(t, sqlitetest.Open(t))
				return
			}
			pgtest.One(t, func(t *testing.T, db *pgtest.DB) { f(t, openGORM(t, db, client)) })
		})
	}
}

func isPostgres(g *gorm.DB) bool { return g.Name() == "postgres" }

// with returns GORM on the same database, with the plugin and other generators.
func with(t *testing.T, g *gorm.DB, config gorm.Config, bindings ...gormplugin.Binding) *gorm.DB {
	t.Helper()
	pool, err := g.DB()
	must(t, err)
	var dialector gorm.Dialector = sqlite.Dialector{Conn: pool}
	if isPostgres(g) {
		dialector = postgres.New(postgres.Config{Conn: pool})
	}
	config.Logger = g.Logger
	other, err := gorm.Open(dialector, &config)
	must(t, err)
	must(t, other.Use(gormplugin.New(bindings...)))
	return other
}

// A noIDs is a generator that fails.
type noIDs[T any] struct{}

var errNoIDs = errors.New("the generator has no IDs")

func (noIDs[T]) Next() (id T, err error)                { return id, errNoIDs }
func (noIDs[T]) Fill(context.Context, []T) (int, error) { return 0, errNoIDs }

// ids returns n IDs with a time in the past, like IDs of an earlier run.
func (k of[T, P]) ids(t *testing.T, n int) (ids []T) {
	t.Helper()
	for i := range n {
		id, err := k.At(k.First.AddDate(1, 0, i), func(largest int) int { return largest / (i + 1) })
		must(t, err)
		ids = append(ids, id)
	}
	return ids
}

// agree checks that the table contains exactly these structs, and that no two have the
// same ID.
func (k of[T, P]) agree(t *testing.T, g *gorm.DB, want []thing[T]) {
	t.Helper()
	var rows []thing[T]
	must(t, g.Find(&rows).Error)
	names, ids := map[string]T{}, map[T]bool{}
	for _, row := range rows {
		names[row.Name], ids[row.ID] = row.ID, true
	}
	if len(rows) != len(want) || len(ids) != len(want) {
		t.Errorf("got %d rows with %d IDs, want %d", len(rows), len(ids), len(want))
	}
	for _, w := range want {
		if got := names[w.Name]; got != w.ID || w.ID.IsZero() {
			t.Errorf("%s: ID = %v in the struct, %v in the row", w.Name, w.ID, got)
		}
	}
}

// equal compares a result with the expected one.
func equal[V any](t *testing.T, what string, got, want V) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}

// finds compares the rows of a query with structs.
func finds[M any](t *testing.T, what string, tx *gorm.DB, want ...M) {
	t.Helper()
	var got []M
	if err := tx.Find(&got).Error; err != nil || !same(got, want) {
		t.Errorf("%s: got %+v, %v, want %+v", what, got, err, want)
	}
}

// plucks compares the values of a column.
func plucks[V any](t *testing.T, what string, tx *gorm.DB, column string, want ...V) {
	t.Helper()
	var got []V
	if err := tx.Pluck(column, &got).Error; err != nil || !same(got, want) {
		t.Errorf("%s: got %v, %v, want %v", what, got, err, want)
	}
}

// same reports whether two lists are equal. An empty list may be nil.
func same[V any](a, b []V) bool { return len(a)+len(b) == 0 || reflect.DeepEqual(a, b) }

// counts compares the number of rows that a FROM clause selects.
func counts(t *testing.T, g *gorm.DB, from string, want int) {
	t.Helper()
	var got int
	must(t, g.Raw("select count(*) from "+from).Scan(&got).Error)
	if got != want {
		t.Errorf("got %d rows of %s, want %d", got, from, want)
	}
}

// affects checks the number of rows that a statement reports.
func affects(t *testing.T, what string, tx *gorm.DB, want int64) {
	t.Helper()
	if tx.Error != nil || tx.RowsAffected != want {
		t.Errorf("%s: got %d rows, %v, want %d", what, tx.RowsAffected, tx.Error, want)
	}
}

// fails checks that an error wraps another one and contains a text. If want is nil, it may be
// any error.
func fails(t *testing.T, what string, err, want error, text string) {
	t.Helper()
	if err == nil || want != nil && !errors.Is(err, want) || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: got %v, want %v with %q", what, err, want, text)
	}
}

// alterations returns the statements of AutoMigrate that change something.
func alterations(t *testing.T, g *gorm.DB, models ...any) (s []string) {
	t.Helper()
	r := pgtest.NewRecorder()
	must(t, g.Session(&gorm.Session{Logger: r}).AutoMigrate(models...))
	if len(r.With("SELECT")) == 0 {
		t.Error("AutoMigrate read no tables")
	}
	for _, kind := range []string{"ALTER", "CREATE", "DROP", "INSERT", "COMMENT", "UPDATE"} {
		s = append(s, r.With(kind)...)
	}
	return s
}

// checkColumns compares the types of columns, and checks that no column has a default or is
// an identity column.
func checkColumns(t *testing.T, g *gorm.DB, want map[string]map[string]string) {
	t.Helper()
	for table, columns := range want {
		for column, typ := range columns {
			var got struct {
				Type    string
				Default sql.Null[string]
			}
			query := `select format_type(atttypid, atttypmod) as type, pg_get_expr(adbin, adrelid) || attidentity::text as default
				from pg_attribute left join pg_attrdef on adrelid = attrelid and adnum = attnum
				where attrelid = to_regclass(quote_ident(?)) and attname = ?`
			if !isPostgres(g) {
				query = `select lower(type) as type, dflt_value as "default" from pragma_table_info(?) where name = ?`
			}
			must(t, g.Raw(query, table, column).Scan(&got).Error)
			if got.Type != typ || got.Default.Valid {
				t.Errorf("%s.%s: got type %q with default %v, want %q without", table, column, got.Type, got.Default, typ)
			}
		}
	}
}
