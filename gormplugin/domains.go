package gormplugin

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/migrator"
	"gorm.io/gorm/schema"

	"github.com/sortkey/sortkey/idtype"
)

// Domains is a plugin for [gorm.DB.Use] with which AutoMigrate, CreateTable and AddColumn declare
// columns of the domains of package migrations, such as sortkey.snowflake instead of bigint. On
// databases other than Postgres, it changes nothing. It is independent of [Plugin].
type Domains struct {
	// Schema is the schema of the domains, as in migrations.Config; "": sortkey.
	Schema string
}

var _ gorm.Plugin = Domains{}

// Name returns the plugin's name.
func (Domains) Name() string { return pluginName + ":domains" }

// Initialize replaces the dialector of a Postgres database. [gorm.DB.Use] calls it. It fails if
// Schema is not a name of lower-case letters, digits and underscores, or if the dialector lacks a
// method of the one of gorm.io/driver/postgres.
func (d Domains) Initialize(db *gorm.DB) error {
	if d.Schema == "" {
		d.Schema = "sortkey"
	}
	if strings.Trim(d.Schema, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		return fmt.Errorf("gormplugin: Domains.Schema: want lower-case letters, digits and underscores, got %q; use the Schema of migrations.Config", d.Schema)
	}
	if db.Dialector.Name() != "postgres" {
		return nil
	}
	inner, ok := db.Dialector.(postgresDialector)
	if ok {
		_, ok = db.Migrator().(postgresMigrator)
	}
	if !ok {
		return fmt.Errorf("gormplugin: use Domains: want the dialector of gorm.io/driver/postgres or one that embeds it, got %T", db.Dialector)
	}
	db.Dialector = domainDialector{inner, d}
	return nil
}

// GORM looks for these methods of a dialector and its migrator by type assertions.
type (
	postgresDialector interface {
		gorm.Dialector
		gorm.ErrorTranslator
		gorm.SavePointerDialectorInterface
	}
	postgresMigrator interface {
		gorm.Migrator
		migrator.BuildIndexOptionsInterface
	}
)

type domainDialector struct {
	postgresDialector
	domains Domains
}

func (d domainDialector) Migrator(db *gorm.DB) gorm.Migrator {
	return domainMigrator{d.postgresDialector.Migrator(db).(postgresMigrator), d.domains}
}

type domainMigrator struct {
	postgresMigrator
	domains Domains
}

// FullDataTypeOf returns the definition of a field's column.
func (m domainMigrator) FullDataTypeOf(f *schema.Field) clause.Expr {
	if domain := m.domains.of(f); domain != "" {
		declared := *f
		declared.DataType = schema.DataType(domain)
		f = &declared
	}
	return m.postgresMigrator.FullDataTypeOf(f)
}

// GetTypeAliases returns the other names of a column type. GORM reads the base type of an existing
// column: without the domains, it would repeat an ALTER TABLE if a type tag has a domain.
func (m domainMigrator) GetTypeAliases(name string) []string {
	aliases := slices.Clone(m.postgresMigrator.GetTypeAliases(name))
	for _, d := range domains {
		if name == d.column || slices.Contains(aliases, d.column) {
			aliases = append(aliases, m.domains.Schema+"."+d.name)
		}
	}
	return aliases
}

// domains are the domains of package migrations, with the column types that GORM declares for
// the ID types otherwise.
var domains = []struct {
	id     reflect.Type
	column string
	name   string
}{
	{reflect.TypeFor[idtype.Snowflake](), "bigint", "snowflake"},
	{reflect.TypeFor[idtype.SnowflakeSI](), "bigint", "snowflake_si"},
	{reflect.TypeFor[idtype.UID60](), "bigint", "uid60"},
	{reflect.TypeFor[idtype.Spread64](), "bigint", "spread64"},
	{reflect.TypeFor[idtype.Sno](), "uuid", "sno"},
	{reflect.TypeFor[idtype.Sno](), "text", "sno_as_text"},
	{reflect.TypeFor[idtype.UUID](), "uuid", "uuid7"},
}

// of returns the domain for a field, or "" if the field has a type tag or no domain.
func (d Domains) of(f *schema.Field) string {
	if _, tagged := f.TagSettings["TYPE"]; tagged {
		return ""
	}
	id := untyped(idOf(f.FieldType))
	for _, known := range domains {
		if id == known.id && string(f.DataType) == known.column {
			return d.Schema + "." + known.name
		}
	}
	return ""
}
