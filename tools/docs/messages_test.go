package main

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestMessages(t *testing.T) {
	files := fstest.MapFS{}
	for _, dir := range []string{"sqltypes", "gormplugin", "pgxcodec", "rekey", "nodelease/leasetest"} {
		files[dir+"/doc.go"] = &fstest.MapFile{Data: []byte("package x\n")}
	}
	add := func(name, text string) { files[name] = &fstest.MapFile{Data: []byte(text)} }
	add("docs/errors.md", "| `idtype.ErrRange` | `22P02` `invalid_text_representation` |")
	add("idtype/errors.go", `package idtype
var (
	ErrRange = errors.New("out of range")
	ErrNew   = errors.New("not in the page")
)
type ParseError struct{}
func (e *ParseError) Error() string { return "idtype: parse " + e.Input + ": " + e.Reason }
func f() error { return fmt.Errorf("idtype: create %s: "+"%w", name, err) }
func g() error { return &limitError{fmt.Sprintf("idtype: %d is too much", n), ErrRange} }
func h() string { return fmt.Sprintf("no error %d", 1) }
`)
	add("idtype/errors_test.go", `package idtype
var errTest = errors.New("of a test")
`)
	add("migrations/sql/1.up.sql", `
	RAISE EXCEPTION USING ERRCODE = 'invalid_text_representation',
		MESSAGE = format('parse %L: isn''t an ID', s),
		HINT = 'Use lower case.';
	s := format('DO %L', format('BEGIN RAISE EXCEPTION USING ERRCODE = ''object_in_use'', MESSAGE = %L; END', 'the table is in use'));
	RAISE EXCEPTION USING ERRCODE = 'SK000', MESSAGE = 'for a handler';
`)
	text, problems, err := messages(files)
	if err != nil {
		t.Fatal(err)
	}
	_, listed, _ := strings.Cut(string(text), "\n\n")
	want := `idtype
	idtype: %d is too much
	idtype: create %s: %w
	idtype: parse …: …
	not in the page
	out of range

migrations/sql
	invalid_text_representation: parse %L: isn't an ID | Use lower case.
	object_in_use: the table is in use
`
	if listed != want {
		t.Errorf("want\n%sgot\n%s", want, listed)
	}
	unexplained := []string{
		"docs/errors.md doesn't explain `idtype.ErrNew`",
		"docs/errors.md doesn't explain `idtype.ParseError`",
		"docs/errors.md doesn't explain `object_in_use`",
	}
	if !slices.Equal(problems, unexplained) {
		t.Errorf("want %q, got %q", unexplained, problems)
	}
}
