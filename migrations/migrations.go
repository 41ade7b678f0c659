package migrations

import (
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"sync"
	"text/template"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/internal/trust"
)

// DefaultSchema is the schema of a [Config] without Schema.
const DefaultSchema = "sortkey"

// A Config holds the schema of an installation and the layouts of the formats
// that have a choice of layouts. The zero Config means schema sortkey, the
// default layout of Snowflake, and no functions for SnowflakeSI.
//
// The schema has the functions, types and tables that programs and people use. The
// functions that these call, and the state of the generators, go to a second
// schema, whose name has the suffix _internal. The name of the setting with the
// node number begins with the schema, as in sortkey.node.
//
// The layouts of an installation cannot change. Programs must use the same ones.
type Config struct {
	Schema      string                   // [a-z_][a-z0-9_]*, at most 54 bytes; "": sortkey
	Snowflake   idtype.SnowflakeLayout   // zero: [idtype.DefaultSnowflakeLayout]
	SnowflakeSI idtype.SnowflakeSILayout // zero: no functions for it; can be added later
}

// Validate returns an error if the Config is invalid. The schema name must
// consist of lower-case letters, digits and underscores, and must not begin with a
// digit. It must be neither a system name nor a reserved word of SQL or PL/pgSQL,
// and must not end with _internal.
// The layouts must be valid, and the time of Snowflake must have at most 46 bits.
func (c Config) Validate() error {
	_, err := c.data()
	return err
}

func (c Config) schema() string {
	if c.Schema == "" {
		return DefaultSchema
	}
	return c.Schema
}

// A Migration is one step of an installation, with SQL to install and remove it.
type Migration struct {
	Version int    // from 1, without gaps
	Name    string // such as "snowflake"
	Up      string
	Down    string
}

// List returns the migrations in order, for migration tools that no other
// function supports. Run each one in a separate transaction.
func List(c Config) ([]Migration, error) {
	d, err := c.data()
	if err != nil {
		return nil, err
	}
	return d.list(), nil
}

// data holds the values for the templates in the SQL files. Templates see only
// exported fields.
type data struct {
	Schema      string
	Internal    string // the schema of the functions that users don't call
	EndOfTimeMS int64  // Unix milliseconds of the year 10000
	WindowMS    int64  // the length of a window of a server's generator
	// WindowsAhead is how many windows a generator can be ahead of the clock. AheadMS is a bound
	// for how far an ID can be ahead: the end of the last of these windows.
	WindowsAhead int64
	AheadMS      int64
	Version      int // of the migration
	Name         string
	Snowflake    snowflake
	SnowflakeSI  *snowflakeSI
	UID60        format
	Spread64     format
	Sno          format
	UUID7        format
}

// Untrusted returns a query for objects and privileges of untrusted roles in the schemas.
func (d data) Untrusted() string {
	return trust.Installation(d.Schema)
}

// TrustRule states which roles a session trusts.
func (d data) TrustRule() string {
	return strings.ToUpper(trust.Rule[:1]) + strings.ReplaceAll(trust.Rule[1:], "'", "''")
}

func (d data) list() []Migration {
	list := make([]Migration, len(steps()))
	for i, s := range steps() {
		d.Version, d.Name = i+1, s.name
		list[i] = Migration{Version: d.Version, Name: d.Name, Up: d.wrapped(s.up, s.name), Down: d.wrapped(s.down, s.name)}
	}
	return list
}

var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

const (
	internalSuffix = "_internal"
	// maxSchema is the longest name for which the name with the suffix is a name of
	// Postgres, which has at most 63 bytes.
	maxSchema = 63 - len(internalSuffix)
)

func (c Config) data() (data, error) {
	d := data{
		Schema: c.schema(), Internal: c.schema() + internalSuffix,
		EndOfTimeMS: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli(),
		WindowMS:    windowTime.Milliseconds(), WindowsAhead: windowsAhead, AheadMS: (windowsAhead + 1) * windowTime.Milliseconds(),
	}
	switch {
	case !schemaName.MatchString(d.Schema), len(d.Schema) > maxSchema, reserved()[d.Schema]:
		return d, fmt.Errorf("migrations: Config.Schema: %q is not a valid name; want 1 to %d lower-case letters, digits and underscores, no leading digit, and no reserved word of SQL or PL/pgSQL", c.Schema, maxSchema)
	case strings.HasSuffix(d.Schema, internalSuffix):
		return d, fmt.Errorf("migrations: Config.Schema: %q ends with %s, as the schemas of internal functions do; choose another name", c.Schema, internalSuffix)
	case strings.HasPrefix(d.Schema, "pg_"), d.Schema == "information_schema", d.Schema == "plpgsql": // no setting can begin with plpgsql
		return d, fmt.Errorf("migrations: Config.Schema: %q is reserved for the system, as are information_schema, plpgsql and all names that begin with pg_; choose another name", c.Schema)
	}
	var err error
	if d.Snowflake, err = snowflakeOf(d.Schema, c.Snowflake); err != nil {
		return d, err
	}
	if d.SnowflakeSI, err = snowflakeSIOf(d.Schema, c.SnowflakeSI); err != nil {
		return d, err
	}
	d.UID60, d.Spread64, d.Sno, d.UUID7 = uid60(d.Schema), spread64(d.Schema), sno(d.Schema), uuid7(d.Schema)
	return d, nil
}

// reserved returns the words that cannot be an unquoted schema name. They are
// keywords of the server and of PL/pgSQL with another meaning in a place where the
// name is needed. For example, bigint.snowflake is not a type of a column, and loop
// ends the query of a FOR.
var reserved = sync.OnceValue(func() map[string]bool {
	m := map[string]bool{}
	for word := range strings.FieldsSeq(`all analyse analyze and any array as asc asymmetric authorization between bigint binary bit boolean both case
		cast char character check coalesce collate collation column concurrently constraint create cross current_catalog
		current_date current_role current_schema current_time current_timestamp current_user dec decimal default
		deferrable desc distinct do else end except exists extract false fetch float for foreign freeze from full grant
		greatest group grouping having ilike in initially inner inout int integer intersect interval into is isnull join
		json json_array json_arrayagg json_exists json_object json_objectagg json_query json_scalar json_serialize
		json_table json_value lateral leading least left like limit localtime localtimestamp merge_action national
		natural nchar none normalize not notnull null nullif numeric offset on only or order out outer overlaps overlay
		placing position precision primary real references returning right row select session_user setof similar
		smallint some substring symmetric system_user table tablesample then time timestamp to trailing treat trim true
		union unique user using values varchar variadic verbose when where window with xmlattributes xmlconcat
		xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable
		begin by declare execute foreach if loop strict while`) {
		m[word] = true
	}
	return m
})

//go:embed sql
var files embed.FS

// A step holds the templates of a migration. Each file defines a template with
// the name of the migration.
type step struct {
	name     string
	up, down *template.Template
}

// shared returns the templates that the files share.
var shared = sync.OnceValue(func() *template.Template {
	functions := template.FuncMap{
		"untrusted": func(table string) string { return trust.Tables(trust.Joined(table)) },
		"int64":     func(n int64) int64 { return n }, // a constant alone is an int, of 32 bits on some platforms
	}
	return template.Must(template.New("").Funcs(functions).ParseFS(files, "sql/shared.sql"))
})

// steps returns the migrations by version, which is the number of their file.
// Parsing takes 2 ms, so steps parses them on the first call and not at program
// start.
var steps = sync.OnceValue(func() []step {
	parse := func(file string) *template.Template {
		return template.Must(template.Must(shared().Clone()).ParseFS(files, file))
	}
	ups, err := fs.Glob(files, "sql/*.up.sql") // sorted
	if err != nil {
		panic(err)
	}
	var list []step
	for i, up := range ups {
		number, name, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(up, "sql/"), ".up.sql"), "_")
		if number != fmt.Sprintf("%04d", i+1) {
			panic("migrations: embedded file " + up + ": want version " + fmt.Sprint(i+1))
		}
		list = append(list, step{name, parse(up), parse(strings.TrimSuffix(up, ".up.sql") + ".down.sql")})
	}
	return list
})

// render executes a template. It panics on errors, since the templates are part
// of the package and callers cannot cause any.
func (d data) render(t *template.Template, name string) string {
	var b strings.Builder
	if err := t.ExecuteTemplate(&b, name, d); err != nil {
		panic(err)
	}
	return strings.TrimSpace(blankLines.ReplaceAllString(b.String(), "\n\n")) + "\n"
}

// wrapped renders a template whose statements don't depend on the search_path.
func (d data) wrapped(t *template.Template, name string) string {
	return d.render(shared(), "before") + "\n" + d.render(t, name) + "\n" + d.render(shared(), "after")
}

var blankLines = regexp.MustCompile(`\n{3,}`)

// createSchemas returns a statement that creates the missing schemas and marks them
// as created by the migrations. dropEmptySchemas returns one that drops the marked
// schemas that are empty.
func (d data) createSchemas() string    { return d.wrapped(shared(), "create schemas") }
func (d data) dropEmptySchemas() string { return d.wrapped(shared(), "drop empty schemas") }

// dropVersionTable returns a statement that drops the version table of goose, with which
// earlier versions of Up recorded the migrations a second time.
func (d data) dropVersionTable() string {
	return "DROP TABLE IF EXISTS " + d.Internal + ".goose_version"
}

// snowflakeSIFunctions returns the part of a migration that needs a base clock.
func (d data) snowflakeSIFunctions() string {
	for _, s := range steps() {
		if t := s.up.Lookup("snowflake_si functions"); t != nil {
			return d.wrapped(t, t.Name())
		}
	}
	panic("migrations: no embedded file defines the functions of SnowflakeSI")
}
