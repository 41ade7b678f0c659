package gorm

import (
	"database/sql"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/sqltypes"
)

// A forms row has an ID in each form that a column can have. The type "key" is a domain.
type forms[T sqltypes.ID] struct {
	ID       T
	Plain    T
	Pointer  *T
	Null     sql.Null[T]
	Optional sqltypes.Optional[T]
	Text     sqltypes.Text[T]
	OptText  sqltypes.Optional[sqltypes.Text[T]]
	Varchar  sqltypes.Text[T] `gorm:"type:varchar(40)"`
	Char     sqltypes.Text[T] `gorm:"type:char(20)"`
	Bytes    sqltypes.SnoBytes
	Domain   T           `gorm:"type:key"`
	NullDom  sql.Null[T] `gorm:"type:key"`
}

func (forms[T]) TableName() string { return "forms" }

// AutoMigrate creates columns of the types that the ID types declare. A second AutoMigrate
// changes nothing.
func (k of[T, N]) migrate(t *testing.T, g *gorm.DB) {
	varchar, char := "varchar(40)", "char(20)"
	if isPostgres(g) {
		varchar, char = "character varying(40)", "character(20)"
		must(t, g.Exec("create domain key as "+k.Column).Error)
	}
	models := append(k.graphModels(), &owner[T]{}, &profile[T]{}, &account[T]{}, &item[T]{}, &forms[T]{})
	must(t, g.AutoMigrate(models...))

	k.checkColumns(t, g, map[string]map[string]string{
		"forms": {
			"id": k.Column, "plain": k.Column, "pointer": k.Column, "null": k.Column, "optional": k.Column,
			"text": "text", "opt_text": "text", "varchar": varchar, "char": char, "bytes": "bytea",
			"domain": "key", "null_dom": "key",
		},
		"people":      {"id": k.Column, "company_id": k.Column, "manager_id": k.Column},
		"passports":   {"id": k.Column, "person_id": k.Column},
		"profiles":    {"id": k.Column},
		"accounts":    {"owner_id": k.Column},
		"items":       {"id": k.Column, "owner_id": k.Column},
		"details":     {"id": k.Column},
		"pictures":    {"id": k.Column, "owner_id": k.Column},
		"person_tags": {"person_id": k.Column, "tag_id": k.Column},
		"friendships": {"person_id": k.Column, "friend_id": k.Column},
		"memberships": {"id": k.Column, "person_id": k.Column, "club_id": k.Column},
	})
	k.checkForeignKeys(t, g)

	r := pgtest.NewRecorder()
	must(t, g.Session(&gorm.Session{Logger: r}).AutoMigrate(models...))
	if len(r.With("SELECT")) == 0 {
		t.Error("the second AutoMigrate read no tables")
	}
	for _, kind := range []string{"ALTER", "CREATE", "DROP", "INSERT"} {
		for _, s := range r.With(kind) {
			// GORM doesn't support domains, and compares char(n) with another name.
			if !strings.Contains(s, "TYPE key USING") && !strings.Contains(s, "TYPE char(20) USING") {
				t.Errorf("the second AutoMigrate issued %s", s)
			}
		}
	}

	// The columns store the values of their fields.
	id := k.ids(t, 1)[0]
	txt, null := sqltypes.TextOf(id), sql.Null[T]{V: id, Valid: true}
	in := forms[T]{Plain: id, Pointer: &id, Null: null, Optional: sqltypes.OptionalOf(id),
		Text: txt, OptText: sqltypes.OptionalOf(txt), Varchar: txt, Char: txt,
		Bytes: sqltypes.SnoBytesOf(idtype.Sno{9: 1}), Domain: id, NullDom: null}
	must(t, g.Create(&in).Error)
	var out forms[T]
	must(t, g.First(&out, "id = ?", in.ID).Error)
	if !reflect.DeepEqual(out, in) {
		t.Errorf("got %+v, want %+v", out, in)
	}
}

// checkColumns compares the types of columns, and checks that no column has a default or is
// an identity column.
func (k of[T, N]) checkColumns(t *testing.T, g *gorm.DB, want map[string]map[string]string) {
	t.Helper()
	for table, columns := range want {
		for column, typ := range columns {
			var got struct {
				Type    string
				Default sql.Null[string]
			}
			query := `select format_type(atttypid, atttypmod) as type, pg_get_expr(adbin, adrelid) || attidentity::text as default
				from pg_attribute left join pg_attrdef on adrelid = attrelid and adnum = attnum
				where attrelid = ?::regclass and attname = ?`
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

// checkForeignKeys compares the foreign keys, which exist only between columns
// of equal types.
func (k of[T, N]) checkForeignKeys(t *testing.T, g *gorm.DB) {
	t.Helper()
	if !isPostgres(g) {
		return // SQLite has no catalog of the columns of foreign keys
	}
	want := []string{
		"accounts(owner_id) owners", "friendships(friend_id) people", "friendships(person_id) people",
		"items(owner_id) owners", "memberships(club_id) clubs", "memberships(person_id) people",
		"people(company_id) companies", "people(manager_id) people",
		"person_tags(person_id) people", "person_tags(tag_id) tags", "profiles(id) owners",
	}
	var rows []string
	must(t, g.Raw(`select conrelid::regclass || '(' || attname || ') ' || confrelid::regclass
		from pg_constraint join pg_attribute on attrelid = conrelid and attnum = conkey[1] where contype = 'f'`).Scan(&rows).Error)
	got := map[string]bool{}
	for _, r := range rows {
		got[r] = true
	}
	if keys := slices.Sorted(maps.Keys(got)); !slices.Equal(keys, want) {
		t.Errorf("foreign keys: got %q, want %q", keys, want)
	}
}
