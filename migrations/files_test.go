package migrations

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"text/template"
)

var update = flag.Bool("update", false, "write sortkey.sql anew")

// The file for those who read SQL and not Go is what the package renders.
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
		t.Errorf("expected %s to be what SQL(Config{}) gives; write it anew: go test ./migrations -run %s -update", file, t.Name())
	}
}

// read gives all of a file system, which is a valid one.
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
	for name, c := range configs {
		t.Run(name, func(t *testing.T) {
			list, err := List(c)
			if err != nil {
				t.Fatal(err)
			}
			wantGoose, wantMigrate, wantTern := map[string]string{}, map[string]string{}, map[string]string{}
			for _, m := range list {
				wantGoose[fmt.Sprintf("%05d_%s.sql", m.Version, m.Name)] = "-- +goose Up\n-- +goose StatementBegin\n" + m.Up +
					"-- +goose StatementEnd\n\n-- +goose Down\n-- +goose StatementBegin\n" + m.Down + "-- +goose StatementEnd\n"
				wantMigrate[fmt.Sprintf("%06d_%s.up.sql", m.Version, m.Name)] = m.Up
				wantMigrate[fmt.Sprintf("%06d_%s.down.sql", m.Version, m.Name)] = m.Down
				wantTern[fmt.Sprintf("%03d_%s.sql", m.Version, m.Name)] = m.Up + "\n---- create above / drop below ----\n\n" + m.Down
			}

			dir, err := Goose(c)
			if got := read(t, dir, err); !maps.Equal(got, wantGoose) {
				t.Errorf("expected goose's files %v, got %v", slices.Sorted(maps.Keys(wantGoose)), slices.Sorted(maps.Keys(got)))
			}
			dir, err = GolangMigrate(c)
			if got := read(t, dir, err); !maps.Equal(got, wantMigrate) {
				t.Errorf("expected golang-migrate's files %v, got %v", slices.Sorted(maps.Keys(wantMigrate)), slices.Sorted(maps.Keys(got)))
			}
			dir, err = Tern(c)
			got := read(t, dir, err)
			for name, text := range got {
				got[name] = executed(t, text)
			}
			if !maps.Equal(got, wantTern) {
				t.Errorf("expected tern's files %v, got %v", slices.Sorted(maps.Keys(wantTern)), slices.Sorted(maps.Keys(got)))
			}

			// The marks of tools are nowhere else.
			for _, m := range list {
				for _, mark := range []string{"+goose", "---- create above", "---- tern"} {
					if strings.Contains(m.Up+m.Down, mark) {
						t.Errorf("expected %q in no migration, got it in %s", mark, m.Name)
					}
				}
			}
		})
	}
}

// executed is what tern makes of a file.
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

// Only with a base clock is there something to add.
func TestAddSnowflakeSI(t *testing.T) {
	if _, err := AddSnowflakeSI(Config{}); err == nil || !strings.Contains(err.Error(), "BaseClock") {
		t.Errorf("expected an error that names BaseClock, got %v", err)
	}
}

// A folder gets the files that it doesn't have, and keeps those that it has,
// which must be the same.
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
				t.Errorf("%s: expected it to be written: %v, %v", name, err1, err2)
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

// The SQL after a version has the migrations after it.
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
