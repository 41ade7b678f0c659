package main

import (
	"slices"
	"testing"
	"testing/fstest"
)

func TestUnexplained(t *testing.T) {
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
`)
	add("idtype/errors_test.go", "package idtype\nvar ErrTest = errors.New(\"of a test\")\n")
	add("migrations/sql/1.up.sql", `
	RAISE EXCEPTION USING ERRCODE = 'invalid_text_representation',
		MESSAGE = format('parse %L', s);
	s := format('DO %L', format('BEGIN RAISE EXCEPTION USING ERRCODE = ''object_in_use'', MESSAGE = %L; END', 'the table is in use'));
	RAISE EXCEPTION USING ERRCODE = 'SK000', MESSAGE = 'for a handler';
`)
	problems, err := unexplained(files)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"docs/errors.md doesn't explain `idtype.ErrNew`",
		"docs/errors.md doesn't explain `idtype.ParseError`",
		"docs/errors.md doesn't explain `object_in_use`",
	}
	if !slices.Equal(problems, want) {
		t.Errorf("want %q, got %q", want, problems)
	}
}
