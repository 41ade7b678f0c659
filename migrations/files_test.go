package migrations

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"text/template"
)

var update = flag.Bool("update", false, "regenerate sortkey.sql")

// sortkey.sql, for readers of SQL, is the output of SQL(Config{}).
func TestRenderedFile(t *testing.T) {
	const file = "sortkey.sql"
	want, err := SQL(Config{})
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s differs from SQL(Config{}); regenerate it with go test ./migrations -run %s -update", file, t.Name())
	}
}

// Literals with a backslash are E'…': they mean the same if standard_conforming_strings is off.
func TestBackslashes(t *testing.T) {
	text, err := SQL(Config{})
	if err != nil {
		t.Fatal(err)
	}
	literals := regexp.MustCompile(`--.*|[eE]'(\\.|[^'\\])*'|"[^"]*"|'[^']*'`)
	found := 0
	for _, s := range literals.FindAllString(text, -1) {
		switch {
		case strings.HasPrefix(s, "E'"):
			found += strings.Count(s, `\`)
		case strings.HasPrefix(s, "'") && strings.Contains(s, `\`):
			t.Errorf("want a literal that begins with E, got %s", s)
		}
	}
	if found == 0 {
		t.Error("found no literal with a backslash")
	}
}

// read returns the files of a file system and checks that it is valid.
func read(t *testing.T, dir fs.FS, err error) map[string]string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	names, err := fs.Glob(dir, "*")
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(dir, names...); err != nil {
		t.Error(err)
	}
	m := map[string]string{}
	for _, name := range names {
		text, err := fs.ReadFile(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		m[name] = string(text)
	}
	return m
}

func TestFiles(t *testing.T) {
	for name, config := range configs {
		t.Run(name, func(t *testing.T) {
			list, err := List(config)
			if err != nil {
				t.Fatal(err)
			}
			same := func(text string) string { return text }
			for tool, c := range map[string]struct {
				files func(Config) (fs.FS, error)
				reads func(text string) string // as the tool does
				want  func(m Migration, files map[string]string)
			}{
				"goose": {Goose, same, func(m Migration, files map[string]string) {
					files[fmt.Sprintf("%05d_%s.sql", m.Version, m.Name)] = "-- +goose Up\n-- +goose StatementBegin\n" + m.Up +
						"-- +goose StatementEnd\n\n-- +goose Down\n-- +goose StatementBegin\n" + m.Down + "-- +goose StatementEnd\n"
				}},
				"golang-migrate": {GolangMigrate, same, func(m Migration, files map[string]string) {
					files[fmt.Sprintf("%06d_%s.up.sql", m.Version, m.Name)] = m.Up
					files[fmt.Sprintf("%06d_%s.down.sql", m.Version, m.Name)] = m.Down
				}},
				"tern": {Tern, func(text string) string { return executed(t, text) }, func(m Migration, files map[string]string) {
					files[fmt.Sprintf("%03d_%s.sql", m.Version, m.Name)] = m.Up + "\n---- create above / drop below ----\n\n" + m.Down
				}},
				"Flyway": {Flyway, same, func(m Migration, files map[string]string) {
					files[fmt.Sprintf("V%d__sortkey_%s.sql", m.Version, m.Name)] = m.Up
					files[fmt.Sprintf("U%d__sortkey_%s.sql", m.Version, m.Name)] = m.Down
				}},
				"plain": {Plain, same, func(m Migration, files map[string]string) {
					files[fmt.Sprintf("%04d_%s.up.sql", m.Version, m.Name)] = m.Up
					files[fmt.Sprintf("%04d_%s.down.sql", m.Version, m.Name)] = m.Down
				}},
			} {
				dir, err := c.files(config)
				got, want := read(t, dir, err), map[string]string{}
				for name, text := range got {
					got[name] = c.reads(text)
				}
				for _, m := range list {
					c.want(m, want)
				}
				if !maps.Equal(got, want) {
					t.Errorf("%s: expected files %v, got %v", tool, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)))
				}
			}

			// The SQL itself has no tool's marks. Flyway and Liquibase replace ${name}.
			for _, m := range list {
				for _, mark := range []string{"+goose", "---- create above", "---- tern", "${"} {
					if strings.Contains(m.Up+m.Down, mark) {
						t.Errorf("expected %q in no migration, got it in %s", mark, m.Name)
					}
				}
			}
		})
	}
}

// The statements of a migration don't begin or end a transaction, which is that of
// the tool.
func TestNoTransactions(t *testing.T) {
	for name, c := range configs {
		list, err := List(c)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range list {
			// Function bodies, in which BEGIN is a block, are strings.
			if found := transaction.FindString(dollarQuoted.ReplaceAllString(m.Up+m.Down, "''")); found != "" {
				t.Errorf("%s: migration %s has the statement %q", name, m.Name, found)
			}
		}
	}
}

var (
	dollarQuoted = regexp.MustCompile(`(?s)\$\$.*?\$\$`)
	transaction  = regexp.MustCompile(`(?im)^(BEGIN|START|COMMIT|END|ROLLBACK)\b`)
)

// executed executes a file as a template, as tern does.
func executed(t *testing.T, text string) string {
	t.Helper()
	tmpl, err := template.New("").Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := tmpl.Execute(&b, nil); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTernEscape(t *testing.T) {
	for _, text := range []string{"{{1,2},{3,4}}", "{{", "}}", "{{{", "{ {", "{{/* */}}", `{{"{{"}}`, "'{{a,b}}'::text[] }} {{-"} {
		if got := executed(t, ternEscape.Replace(text)); got != text {
			t.Errorf("expected tern to read %q, got %q", text, got)
		}
	}
}

// AddSnowflakeSI requires a base clock.
func TestAddSnowflakeSI(t *testing.T) {
	if _, err := AddSnowflakeSI(Config{}); err == nil || !strings.Contains(err.Error(), "BaseClock") {
		t.Errorf("expected an error that names BaseClock, got %v", err)
	}
}

// WriteNew writes the missing files. If an existing file has other content, it
// writes nothing.
func TestWriteNew(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "db", "sortkey")
	files, err := GolangMigrate(Config{})
	if err != nil {
		t.Fatal(err)
	}
	names, err := fs.Glob(files, "*")
	if err != nil || len(names) != 2*len(steps()) {
		t.Fatalf("%d files, %v", len(names), err)
	}
	first, last := filepath.Join(folder, names[0]), filepath.Join(folder, names[len(names)-1])
	for _, before := range []func() error{
		func() error { return nil },
		func() error { return nil },
		func() error { return os.Remove(last) },
	} {
		if err := errors.Join(before(), WriteNew(folder, files)); err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			got, err1 := os.ReadFile(filepath.Join(folder, name))
			want, err2 := fs.ReadFile(files, name)
			if err1 != nil || err2 != nil || string(got) != string(want) {
				t.Errorf("%s: expected the file's content, got %v, %v", name, err1, err2)
			}
		}
	}
	if err := errors.Join(os.Remove(last), os.WriteFile(first, []byte("changed"), 0o666)); err != nil {
		t.Fatal(err)
	}
	if err := WriteNew(folder, files); err == nil || !strings.Contains(err.Error(), first) {
		t.Errorf("expected an error that names %s, got %v", first, err)
	}
	if _, err := os.Stat(last); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("expected nothing to be written, got %v", err)
	}
}

// SQLAfter returns the migrations after a version.
func TestSQLAfter(t *testing.T) {
	for _, version := range []int{-1, len(steps()) + 1} {
		if _, err := SQLAfter(Config{}, version); err == nil || !strings.Contains(err.Error(), fmt.Sprint(version)) {
			t.Errorf("version %d: got %v", version, err)
		}
	}
	text, err := SQLAfter(Config{}, 2)
	if err != nil || strings.Contains(text, "VALUES (2,") || !strings.Contains(text, "VALUES (3,") || !strings.Contains(text, "IS DISTINCT FROM 2 ") {
		t.Errorf("expected migrations from the third on, got %v and\n%s", err, text)
	}
}

// The file for psql refers to the server's functions alone, whatever the search_path of the role is.
func TestFilePinsSearchPath(t *testing.T) {
	for version := range 2 {
		text, err := SQLAfter(Config{}, version)
		if err != nil {
			t.Fatal(err)
		}
		if _, rest, _ := strings.Cut(text, "BEGIN;\n"); !strings.HasPrefix(rest, "SET LOCAL search_path = pg_catalog, pg_temp;") {
			t.Errorf("version %d: the first statement is not SET LOCAL search_path: %.100s", version, rest)
		}
	}
}
