package gormtest

import (
	"database/sql"
	"errors"
	"reflect"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// must is pgtest.Must.
var must = pgtest.Must

func must1[T any](t *testing.T, f func() (T, error)) T {
	t.Helper()
	v, err := f()
	must(t, err)
	return v
}

func isPostgres(g *database) bool { return g.real.Name() == "postgres" }

// with returns GORM on the same database, with the plugin and other generators.
func with(t *testing.T, g *database, config gorm.Config, bindings ...gormplugin.Binding) *database {
	t.Helper()
	pool := must1(t, g.real.DB)
	config.Logger = g.real.Logger
	tx, err := gorm.Open(g.dialector(pool), &config)
	must(t, err)
	other := &database{real: tx, types: g.types, dialector: g.dialector}
	other.use(t, bindings...)
	return other
}

// agree checks that the table contains exactly these structs, and that no two have the
// same ID.
func (k *Kind) agree(t *testing.T, g *database, want []thing) {
	t.Helper()
	var rows []thing
	must(t, g.Find(&rows).Error)
	names, ids := map[string]ID{}, map[ID]bool{}
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
	agree(t, what, nil, got, want)
}

// finds compares the rows of a query with structs.
func finds[M any](t *testing.T, what string, tx *database, want ...M) {
	t.Helper()
	got := []M{}
	err := tx.Find(&got).Error
	agree(t, what, err, got, append([]M{}, want...))
}

// plucks compares the values of a column.
func plucks[V any](t *testing.T, what string, tx *database, column string, want ...V) {
	t.Helper()
	got := []V{}
	err := tx.Pluck(column, &got).Error
	agree(t, what, err, got, append([]V{}, want...))
}

// agree compares values. An empty list may be nil, for a query.
func agree(t *testing.T, what string, err error, got, want any) {
	t.Helper()
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %+v, %v, want %+v", what, got, err, want)
	}
}

// counts compares the number of rows that a FROM clause selects.
func counts(t *testing.T, g *database, from string, want int) {
	t.Helper()
	var got int
	must(t, g.Raw("select count(*) from "+from).Scan(&got).Error)
	if got != want {
		t.Errorf("got %d rows of %s, want %d", got, from, want)
	}
}

// affects checks the number of rows that a statement reports.
func affects(t *testing.T, what string, tx *database, want int64) {
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
func alterations(t *testing.T, g *database, models ...any) (s []string) {
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
func checkColumns(t *testing.T, g *database, want map[string]map[string]string) {
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
