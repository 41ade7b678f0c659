package guide

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// must is pgtest.Must.
var must = pgtest.Must

// migrated creates databases in which the migrations have run.
var migrated = pgtest.NewTemplate(func(t *testing.T, db *pgtest.DB) {
	must(t, migrations.Up(t.Context(), db.SQL(t), migrations.Config{}))
})

// A piece is a part of a page's SQL, with the name that the page refers to.
type piece struct{ name, sql string }

var heading = regexp.MustCompile(`(?m)^-- \[([a-z0-9-]*)\]\n`)

// pieces returns the pieces of a file of examples/guide, in order.
func pieces(t *testing.T, file string) (found []piece) {
	t.Helper()
	source, err := os.ReadFile("../../examples/guide/" + file)
	must(t, err)
	text := string(source)
	headings := heading.FindAllStringSubmatchIndex(text, -1)
	for i, h := range headings {
		end := len(text)
		if i+1 < len(headings) {
			end = headings[i+1][0]
		}
		found = append(found, piece{text[h[2]:h[3]], text[h[1]:end]})
	}
	return found
}

// pieceOf returns the piece of a file with the given name.
func pieceOf(t *testing.T, file, name string) piece {
	t.Helper()
	for _, p := range pieces(t, file) {
		if p.name == name {
			return p
		}
	}
	t.Fatalf("%s has no piece [%s]", file, name)
	return piece{}
}

// statements returns the statements of a piece. Like psql, tests run them one by
// one, because some can't be in a transaction with others. A statement ends with a
// semicolon at the end of a line.
func (p piece) statements() []string {
	return slices.DeleteFunc(regexp.MustCompile(`;( *--.*)?\n`).Split(p.sql, -1), func(s string) bool { return strings.TrimSpace(s) == "" })
}

// run runs the piece in a database, which the pages call shop or staging.
func (p piece) run(t *testing.T, db *pgtest.DB) {
	t.Helper()
	conn := db.Conn(t)
	p.sql = strings.NewReplacer("DATABASE shop", "DATABASE "+db.Name, "DATABASE staging", "DATABASE "+db.Name).Replace(p.sql)
	for _, s := range p.statements() {
		if _, err := conn.Exec(t.Context(), s); err != nil {
			t.Fatalf("[%s]: %v\nin: %s", p.name, err, s)
		}
	}
}

// migrate runs the migrations in a database.
func migrate(t *testing.T, db *pgtest.DB) {
	t.Helper()
	must(t, migrations.Up(t.Context(), db.SQL(t), migrations.Config{}))
}

func TestPieces(t *testing.T) {
	p := piece{"two", "SELECT ';',\n  1; -- one\n\nSELECT 2;\n"}
	if got := p.statements(); len(got) != 2 || got[1] != "\nSELECT 2" {
		t.Errorf("expected 2 statements, got %q", got)
	}
}
