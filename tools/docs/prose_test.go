package main

import (
	"slices"
	"testing"
	"testing/fstest"
)

func TestRejectedPhrases(t *testing.T) {
	fsys := fstest.MapFS{
		"a.go":           {Data: []byte("// Hounds.\n//\n// A Hound, a lap\n\t// dog and lapdog\nx = \"lap \" +\n\t\"dog\"\n")},
		"a.sql":          {Data: []byte("-- lap\n-- dog\nSELECT lap_dog;\n")},
		"b.md":           {Data: []byte("a fox\nhound, the hound\n\n> lap\n> dog\n")},
		"scripts/run":    {Data: []byte("# a hound\n")},
		"testdata/x.md":  {Data: []byte("hound\n")},
		"LICENSE":        {Data: []byte("hound\n")},
		"docs/image.svg": {Data: []byte("hound\n")},
		".git":           {Data: []byte("hound\n")},
	}
	got, err := rejectedPhrases(fsys, "# Not a remedy.\n\n# Write dog.\nhound\nlap dog\nallow: fox hound\n")
	slices.Sort(got)
	want := []string{
		"a.go:3: Hound: Write dog.",
		"a.go:3: lap // dog: Write dog.",
		"a.go:5: lap \" + \"dog: Write dog.",
		"a.sql:1: lap -- dog: Write dog.",
		"b.md:2: hound: Write dog.",
		"b.md:4: lap > dog: Write dog.",
		"scripts/run:1: hound: Write dog.",
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("expected %q, got %q, %v", want, got, err)
	}
}

func TestPhrasesAllowGoodEnglish(t *testing.T) {
	const page = `
The check reports what is installed and whether that is whatever the caller wants.
The bounds are all the same, the layouts differ from those of the database, and both keys are larger than those
of the other table. A person who has many keys reads what isn't there. It takes a millisecond, 5 rows at a time.
	n := first + 1 // a millisecond has more`
	got, err := rejectedPhrases(fstest.MapFS{"page.md": {Data: []byte(page)}}, phrases)
	if err != nil || len(got) != 0 {
		t.Errorf("expected no phrases, got %q, %v", got, err)
	}
}
