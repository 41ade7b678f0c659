// Package docs reads the SQL that the pages in docs show. A comment above a block names it:
//
//	<!-- sql table manage -->
//
// With several names, the block has a piece for each, between empty lines.
package docs

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// A Piece is SQL of a page or of a file.
type Piece struct {
	Name, SQL string
	Output    string // the block of text below, or ""
}

var (
	block     = regexp.MustCompile("(?m)^( *)<!-- sql((?: [a-z0-9-]+)+) -->\n *```sql\n((?:.*\n)*?) *```\n(?:\n *```text\n((?:.*\n)*?) *```\n)?")
	heading   = regexp.MustCompile(`(?m)^-- \[([a-z0-9-]+)\]\n`)
	statement = regexp.MustCompile(`;( *--.*)?\n`)
)

func read(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile("../../" + file)
	pgtest.Must(t, err)
	return string(text)
}

// Page returns the text of a page.
func Page(t testing.TB, name string) string {
	t.Helper()
	return read(t, "docs/"+name+".md")
}

// SQL returns the pieces of a page in the order of names, which must be the names of all its
// pieces.
func SQL(t testing.TB, page string, names ...string) (pieces []Piece) {
	t.Helper()
	found := all(t, page)
	for _, p := range found {
		if !slices.Contains(names, p.Name) {
			t.Errorf("docs/%s.md: no test runs %s", page, p.Name)
		}
	}
	for _, name := range names {
		pieces = append(pieces, Find(t, found, name))
	}
	return pieces
}

// all returns the pieces of a page in its order.
func all(t testing.TB, page string) (pieces []Piece) {
	t.Helper()
	for _, m := range block.FindAllStringSubmatch(Page(t, page), -1) {
		dedent := regexp.MustCompile("(?m)^" + m[1])
		names, parts := strings.Fields(m[2]), []string{m[3]}
		if len(names) > 1 {
			parts = strings.Split(m[3], "\n\n")
		}
		if len(parts) != len(names) {
			t.Fatalf("docs/%s.md: want %d pieces in the block of %v, got %d", page, len(names), names, len(parts))
		}
		for i, name := range names {
			pieces = append(pieces, Piece{name, dedent.ReplaceAllString(parts[i], "") + "\n", dedent.ReplaceAllString(m[4], "")})
		}
	}
	return pieces
}

// One returns a piece of a page.
func One(t testing.TB, page, name string) Piece {
	t.Helper()
	return Find(t, all(t, page), name)
}

// Find returns the piece with a name.
func Find(t testing.TB, pieces []Piece, name string) Piece {
	t.Helper()
	i := slices.IndexFunc(pieces, func(p Piece) bool { return p.Name == name })
	if i < 0 {
		t.Fatalf("no SQL has the name %s", name)
	}
	return pieces[i]
}

// File returns the pieces of a file of SQL. Each follows a comment with its name in brackets.
func File(t testing.TB, file string) (pieces []Piece) {
	t.Helper()
	text := read(t, file)
	headings := heading.FindAllStringSubmatchIndex(text, -1)
	for i, h := range headings {
		end := len(text)
		if i+1 < len(headings) {
			end = headings[i+1][0]
		}
		pieces = append(pieces, Piece{Name: text[h[2]:h[3]], SQL: text[h[1]:end]})
	}
	return pieces
}

// Replace returns the piece with replaced words; see [strings.NewReplacer].
func (p Piece) Replace(oldnew ...string) Piece {
	p.SQL = strings.NewReplacer(oldnew...).Replace(p.SQL)
	return p
}

// Statements returns the statements of the piece. Tests run them one by one, as psql does, because
// some can't be in a transaction with others. A statement ends with a semicolon at the end of a
// line.
func (p Piece) Statements() []string {
	return slices.DeleteFunc(statement.Split(p.SQL, -1), func(s string) bool { return strings.TrimSpace(s) == "" })
}

// Run runs the piece in a database, which the pages call shop or staging.
func (p Piece) Run(t testing.TB, db *pgtest.DB) {
	t.Helper()
	conn := db.Conn(t)
	for _, s := range p.Replace("DATABASE shop", "DATABASE "+db.Name, "DATABASE staging", "DATABASE "+db.Name).Statements() {
		if _, err := conn.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v\nin: %s", p.Name, err, s)
		}
	}
}
