package gorm

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
	"github.com/sortkey/sortkey/sqltypes"
)

// Models with columns of the domains of schema sortkey. A tag can't have variables, so each
// domain has a model. AutoMigrate compares a default with its text in Postgres, so a tag with
// a node number has a space after the comma.
type (
	domainSnowflake struct {
		ID       idtype.Snowflake `gorm:"type:sortkey.snowflake"`
		Name     string
		ParentID *idtype.Snowflake `gorm:"type:sortkey.snowflake"`
		Parent   *domainSnowflake
		Made     idtype.Snowflake `gorm:"type:sortkey.snowflake;default:sortkey.next_snowflake()"`
	}
	domainSno struct {
		ID       idtype.Sno `gorm:"type:sortkey.sno"`
		Name     string
		ParentID *idtype.Sno `gorm:"type:sortkey.sno"`
		Parent   *domainSno
		Made     idtype.Sno `gorm:"type:sortkey.sno;default:sortkey.next_sno(0, 1)"`
	}
	domainSnoText struct {
		ID       sqltypes.SnoText `gorm:"type:sortkey.sno_as_text"`
		Name     string
		ParentID *sqltypes.SnoText `gorm:"type:sortkey.sno_as_text"`
		Parent   *domainSnoText
		Made     sqltypes.SnoText `gorm:"type:sortkey.sno_as_text;default:sortkey.sno_text(sortkey.next_sno())"`
	}
)

// A model can have columns of domains: AutoMigrate creates them, the plugin fills the keys,
// and the database fills the columns that have defaults.
func TestDomains(t *testing.T) {
	for _, client := range postgresOpposites { // SQLite has no domains
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			pgtest.Each(t, func(t *testing.T, db *pgtest.DB) {
				install(t, db)
				g := db.GORM(t, nil, clients[client]...)
				must(t, g.Use(gormplugin.New(gormplugin.For(must1(t, idtest.Snowflake.NewGenerator)), gormplugin.For(must1(t, idtest.Sno.NewGenerator)))))
				domainModel[domainSnowflake](t, g, "snowflake")
				domainModel[domainSno](t, g, "sno")
				domainModel[domainSnoText](t, g, "sno_as_text")
			})
		})
	}
}

// defaultNode is the node number of the defaults.
const defaultNode = 1023

// install runs the migrations and sets the node number of new sessions.
func install(t *testing.T, db *pgtest.DB) {
	t.Helper()
	must(t, migrations.Up(t.Context(), db.SQL(t), migrations.Config{}))
	db.Exec(t, fmt.Sprintf("ALTER DATABASE %[1]s SET sortkey.node = %[2]d; SELECT sortkey.reserve_node('snowflake', %[2]d, 'defaults'), sortkey.reserve_node('sno', %[2]d, 'defaults')",
		db.Name, defaultNode))
}

func domainModel[M any](t *testing.T, g *gorm.DB, domain string) {
	t.Helper()
	must(t, g.AutoMigrate(new(M)))
	stmt := &gorm.Statement{DB: g}
	must(t, stmt.Parse(new(M)))
	table := stmt.Schema.Table
	for _, column := range []string{"id", "parent_id", "made"} {
		var got string
		must(t, g.Raw("select format_type(atttypid, atttypmod) from pg_attribute where attrelid = ?::regclass and attname = ?", table, column).Scan(&got).Error)
		if got != "sortkey."+domain {
			t.Errorf("%s.%s is a %s, want sortkey.%s", table, column, got, domain)
		}
	}

	field := func(m *M, name string) reflect.Value { return reflect.ValueOf(m).Elem().FieldByName(name) }
	// The plugin generates the parent's ID first. The server generates Made.
	child, parent := new(M), new(M)
	field(parent, "Name").SetString("parent")
	field(child, "Name").SetString("child")
	field(child, "Parent").Set(reflect.ValueOf(parent))
	must(t, g.Create(child).Error)
	if field(child, "ID").IsZero() || field(parent, "ID").IsZero() || field(child, "Made").IsZero() || field(parent, "Made").IsZero() {
		t.Errorf("%s: Create left %+v and %+v", domain, child, parent)
	}
	var found M
	must(t, g.Preload("Parent").First(&found, "id = ?", field(child, "ID").Interface()).Error)
	if !reflect.DeepEqual(&found, child) || !reflect.DeepEqual(field(&found, "ParentID").Elem().Interface(), field(parent, "ID").Interface()) {
		t.Errorf("%s: got %+v, want %+v", domain, found, child)
	}
	var names []string
	must(t, g.Model(new(M)).Where("id IN ?", []any{field(child, "ID").Interface(), field(parent, "ID").Interface()}).Order("name").Pluck("name", &names).Error)
	if !slices.Equal(names, []string{"child", "parent"}) {
		t.Errorf("%s: found %q by their IDs", domain, names)
	}
	// Columns of the domain reject values that aren't IDs, such as zero.
	err := g.Table(table).Where("name = ?", "child").Update("parent_id", reflect.Zero(field(child, "ID").Type()).Interface()).Error
	if err == nil || !strings.Contains(err.Error(), "23514") {
		t.Errorf("%s: zero ID: got %v, want SQLSTATE 23514", domain, err)
	}

	// GORM repeats ALTER TABLE for each column but the key, because it compares the
	// domain's name with the base type's. The statement takes an exclusive lock and drops
	// the columns' statistics, but rewrites no rows.
	must(t, g.Exec(fmt.Sprintf("CREATE INDEX ON %s (parent_id)", table)).Error)
	files := func() (list []string) {
		t.Helper()
		must(t, g.Raw("select relname || ' ' || pg_relation_filenode(oid) from pg_class where relname like ? || '%' and relkind in ('r', 'i') order by 1", table).Scan(&list).Error)
		return list
	}
	statistics := func() (columns string) {
		t.Helper()
		must(t, g.Raw("select coalesce(string_agg(attname, ' ' order by attname), '') from pg_stats where tablename = ?", table).Scan(&columns).Error)
		return columns
	}
	must(t, g.Exec("ANALYZE "+table).Error)
	before, known := files(), statistics()
	alter := fmt.Sprintf(`ALTER TABLE "%s" ALTER COLUMN `, table)
	want := []string{
		fmt.Sprintf(`%s"parent_id" TYPE sortkey.%s USING "parent_id"::sortkey.%[2]s`, alter, domain),
		fmt.Sprintf(`%s"made" TYPE sortkey.%s USING "made"::sortkey.%[2]s`, alter, domain),
		alter + `"made" SET DEFAULT ` + stmt.Schema.LookUpField("made").DefaultValue,
	}
	if got := alterations(t, g, new(M)); !slices.Equal(got, want) {
		t.Errorf("%s: a second AutoMigrate ran %q, want %q", domain, got, want)
	}
	if after := files(); !slices.Equal(before, after) || len(after) < 3 {
		t.Errorf("%s: the second AutoMigrate rewrote files: got %q, want %q", domain, after, before)
	}
	if after := statistics(); known != "id made name parent_id" || after != "id name" {
		t.Errorf("%s: columns with statistics: %q before and %q after the second AutoMigrate", domain, known, after)
	}
	must(t, g.Exec(fmt.Sprintf("CREATE VIEW %s_parents AS SELECT parent_id FROM %[1]s", table)).Error)
	if err := g.AutoMigrate(new(M)); err == nil || !strings.Contains(err.Error(), "cannot alter type of a column used by a view") {
		t.Errorf("%s: AutoMigrate with a view: %v", domain, err)
	}

	// If the dialector declares the domains as aliases of the base types, GORM repeats nothing.
	pool, err := g.DB()
	must(t, err)
	aware, err := gorm.Open(dialector{postgres.New(postgres.Config{Conn: pool}).(*postgres.Dialector)}, &gorm.Config{Logger: g.Logger})
	must(t, err)
	if got := alterations(t, aware, new(M)); len(got) > 0 {
		t.Errorf("%s: AutoMigrate ran %q", domain, got)
	}
	must(t, g.Exec("DROP VIEW "+table+"_parents").Error)
}

// A dialector is a copy of the dialector in the documentation of package gormplugin.
type dialector struct{ *postgres.Dialector }

func (d dialector) Migrator(db *gorm.DB) gorm.Migrator {
	return migrator{d.Dialector.Migrator(db).(postgres.Migrator)}
}

type migrator struct{ postgres.Migrator }

// GetTypeAliases returns the prefixes that a column type in a tag may have.
func (m migrator) GetTypeAliases(name string) []string {
	return append(slices.Clone(m.Migrator.GetTypeAliases(name)), "sortkey.")
}

func TestDomainDialectorInDocumentation(t *testing.T) {
	doc, err := os.ReadFile("../../gormplugin/doc.go")
	must(t, err)
	source, err := os.ReadFile("domains_test.go")
	must(t, err)
	code := regexp.MustCompile(`(?s)\ntype dialector struct.*?"sortkey\."\)\n}\n`).FindString(string(source))
	if text := regexp.MustCompile(`(?m)^//\t?`).ReplaceAllString(string(doc), ""); code == "" || !strings.Contains(text, code) {
		t.Errorf("the documentation of gormplugin lacks this code:\n%s", code)
	}
}

// The database can generate the keys: without the plugin, GORM omits a zero key from the
// INSERT, and reads the default's value back.
func TestDomainDefaultKey(t *testing.T) {
	type ticket struct {
		ID   idtype.Snowflake `gorm:"type:sortkey.snowflake;default:sortkey.next_snowflake()"`
		Name string
	}
	type note struct {
		ID   idtype.Sno `gorm:"type:sortkey.sno;default:sortkey.next_sno(7)"`
		Name string
	}
	for _, client := range postgresOpposites { // SQLite has no domains
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			pgtest.Each(t, func(t *testing.T, db *pgtest.DB) {
				install(t, db)
				g := db.GORM(t, nil, clients[client]...)
				must(t, g.AutoMigrate(&ticket{}, &note{}))
				start := time.Now().Add(-time.Minute) // the server's clock may differ
				tickets, notes := []ticket{{Name: "a"}, {Name: "b"}}, []note{{Name: "a"}}
				must(t, g.Create(&tickets).Error)
				must(t, g.Create(&notes).Error)
				p, err := idtype.SnowflakeLayout{}.Parts(tickets[1].ID)
				if err != nil || p.Datacenter<<5|p.Worker != defaultNode || p.Time.Before(start) || tickets[0].ID >= tickets[1].ID {
					t.Errorf("the server generated %v and %v, %+v", tickets[0].ID, tickets[1].ID, p)
				}
				if id := notes[0].ID; id.Meta() != 7 || id.Partition().Uint16() != defaultNode || id.Time().Before(start) {
					t.Errorf("the server generated %v", id)
				}
				var found []ticket
				must(t, g.Order("id").Find(&found).Error)
				if !slices.Equal(found, tickets) {
					t.Errorf("got %v, want %v", found, tickets)
				}
				// GORM doesn't alter the columns of primary keys.
				if got := alterations(t, g, &ticket{}, &note{}); len(got) > 0 {
					t.Errorf("a second AutoMigrate ran %q", got)
				}
			})
		})
	}
}

// A program without the plugin can't store a zero key if the database rejects it.
func TestZeroKeyGuards(t *testing.T) {
	type checked struct {
		ID   idtype.SnowflakeOf[dated] `gorm:"check:id <> 0"`
		Name string
	}
	type checkedSno struct {
		ID   idtype.SnoOf[dated] `gorm:"check:id <> '32323232-3232-3232-3232-323232323232'"`
		Name string
	}
	pgtest.Each(t, func(t *testing.T, db *pgtest.DB) {
		install(t, db)
		g := db.GORM(t, &gorm.Config{TranslateError: true})
		for name, row := range map[string]any{"CHECK": &checked{}, "CHECK of a Sno": &checkedSno{}, "domain": &domainSnowflake{}, "domain of a Sno": &domainSno{}} {
			must(t, g.AutoMigrate(row))
			if err := g.Create(row).Error; !errors.Is(err, gorm.ErrCheckConstraintViolated) {
				t.Errorf("%s: %v, want %v", name, err, gorm.ErrCheckConstraintViolated)
			}
		}
		must(t, g.Use(gormplugin.New(gormplugin.For(must1(t, idtest.Snowflake.NewGenerator)), gormplugin.For(must1(t, idtest.Sno.NewGenerator)))))
		must(t, g.Create(&checked{Name: "with the plugin"}).Error)
		must(t, g.Create(&checkedSno{Name: "with the plugin"}).Error)
	})
}
