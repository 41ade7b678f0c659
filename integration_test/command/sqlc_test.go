package command_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/format"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm/schema"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

const sqlcSchema = "testdata/sqlc/schema.sql"

// golden compares a text with a file in testdata/sqlc.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata/sqlc", name)
	if *update {
		pgtest.Must(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	pgtest.Must(t, err)
	if got != string(want) {
		t.Errorf("%s: want the file, got\n%s", name, got)
	}
}

// readSchema returns the SQL of the tables.
func readSchema(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(sqlcSchema)
	pgtest.Must(t, err)
	return string(text)
}

// The golden files have the columns of a schema with all cases, for each output.
func TestSqlc(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, readSchema(t))
		mallory := db.NewRole(t, "mallory", "")
		db.Exec(t, "CREATE TABLE theirs (id sortkey.snowflake PRIMARY KEY, order_id bigint REFERENCES orders); CREATE TABLE ours (id uuid PRIMARY KEY, their_id bigint REFERENCES theirs); ALTER TABLE theirs OWNER TO "+mallory)
		_, err := db.Conn(t).Exec(t.Context(), "CREATE TEMPORARY TABLE drafts (id uuid PRIMARY KEY)") // of another session
		pgtest.Must(t, err)
		dir := filepath.Join(t.TempDir(), "key")
		const types = "--types example.com/shop/key"

		r := succeed(t, db, "sqlc "+types+" --dir", dir)
		golden(t, "overrides.yaml", r.out)
		notes := strings.NewReplacer(mallory, "mallory", dir, "key").Replace(r.errs)
		golden(t, "notes.txt", notes)
		keys, err := os.ReadFile(filepath.Join(dir, "keys.go"))
		pgtest.Must(t, err)
		golden(t, "keys.go.txt", string(keys))
		r = succeed(t, db, "sqlc --gorm --bigint snowflake "+types)
		gorm := r.out
		golden(t, "gorm.go.txt", gorm)
		wantParts(t, r.errs, "left out: public.legacy.short is of type integer, and refers to public.legacy.id of type bigint\n")
		golden(t, "keys.ts", succeed(t, db, "sqlc --typescript --bigint snowflake").out)
		columns := succeed(t, db, "sqlc -o json --bigint snowflake "+types).out
		wantParts(t, columns, `{"schema":"public","table":"customers","column":"invited_by","type":"CustomerID","format":"sno","nullable":true}`)

		// With --bigint, a later run prints the missing declarations.
		pgtest.Must(t, os.WriteFile(filepath.Join(dir, "models.go"), []byte("package key\n\n// A Reading has a field.\ntype Reading struct{ At int }\n"), 0o644))
		r = succeed(t, db, "sqlc --bigint snowflake "+types+" --dir", dir)
		wantParts(t, r.errs, dir+"/keys.go lacks LegacyID, ReadingID; add:\n\n// A Legacy distinguishes the keys of the table public.legacy.\ntype Legacy struct{}\n\n// A LegacyID is a key of the table public.legacy.\ntype LegacyID = idtype.SnowflakeOf[Legacy]\n\n// A ReadingID is")
		if again, err := os.ReadFile(filepath.Join(dir, "keys.go")); err != nil || string(again) != string(keys) {
			t.Errorf("keys.go changed: %v\n%s", err, again)
		}
		_, lines, _ := strings.Cut(r.errs, "add:\n")
		pgtest.Must(t, os.WriteFile(filepath.Join(dir, "more.go"), []byte("package key\n\nimport \"github.com/sortkey/sortkey/idtype\"\n"+lines), 0o644))
		if r = succeed(t, db, "sqlc --bigint snowflake "+types+" --dir", dir); strings.Contains(r.errs, "keys.go") {
			t.Errorf("a second file has the other types, got\n%s", r.errs)
		}

		checkYAML(t, columns)
		checkGORM(t, gorm, columns)
		t.Run("build", func(t *testing.T) { buildKeys(t, filepath.Dir(dir), gorm) })
		t.Run("typescript", runTypeScript)
	})
}

// checkYAML checks that each string of the overrides is one in JSON too, which is a subset of YAML,
// and names a column.
func checkYAML(t *testing.T, columns string) {
	t.Helper()
	text, err := os.ReadFile("testdata/sqlc/overrides.yaml")
	pgtest.Must(t, err)
	names := regexp.MustCompile(`(?m)^- column: (.*)\n  go_type: (example\.com/shop/key\.\w+|\{import: example\.com/shop/key, type: \w+, pointer: true\})$`).FindAllStringSubmatch(string(text), -1)
	if len(names)*2 != strings.Count(string(text), "\n") || len(names) < 30 {
		t.Errorf("want two lines per override, got %d overrides", len(names))
	}
	for _, name := range names {
		var column string
		quoted := strings.ReplaceAll(name[1], `\x1b`, `\u001b`)
		if err := json.Unmarshal([]byte(quoted), &column); err != nil {
			t.Errorf("%s: %v", name[1], err)
		}
	}
	if strings.Count(columns, "\n") <= len(names) {
		t.Error("--bigint adds no column")
	}
}

// checkGORM checks that GORM finds the columns of the fields.
func checkGORM(t *testing.T, models, columns string) {
	t.Helper()
	known := map[string]bool{}
	for _, c := range objects(t, columns) {
		known[c["column"].(string)] = true
	}
	fields := regexp.MustCompile(`(?m)^\t(\w+) +\*?key\.\w+(.*)$`).FindAllStringSubmatch(models, -1)
	if len(fields) < 30 {
		t.Errorf("got %d fields", len(fields))
	}
	for _, f := range fields {
		tag := reflect.StructTag(strings.Trim(f[2], " `")).Get("gorm")
		column := cmp.Or(schema.ParseTagSetting(tag, ";")["COLUMN"], schema.NamingStrategy{}.ColumnName("", f[1]))
		if !known[column] {
			t.Errorf("field %s: GORM's column is %s", f[1], column)
		}
	}
}

// buildKeys compiles the package key in a directory and the GORM models, in a workspace with this project.
func buildKeys(t *testing.T, dir, models string) {
	root, err := filepath.Abs("../..")
	pgtest.Must(t, err)
	code, err := format.Source([]byte("package shop\n\nimport \"example.com/shop/key\"\n\n" + models))
	pgtest.Must(t, err)
	for name, text := range map[string]string{
		"models.go": string(code),
		"go.mod":    "module example.com/shop\n\ngo 1.26.0\n",
		"go.work":   "go 1.26.0\n\nuse (\n\t.\n\t" + root + "\n)\n",
	} {
		pgtest.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	build := exec.Command("go", "vet", "./...")
	build.Dir = dir
	build.Env = append(os.Environ(), "GOWORK="+filepath.Join(dir, "go.work"), "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// runTypeScript runs the functions in keys.ts with texts of each format. It removes the types,
// which Node before 22.6 doesn't do.
func runTypeScript(t *testing.T) {
	pgtest.NeedsProgram(t, "node")
	text, err := os.ReadFile("testdata/sqlc/keys.ts")
	pgtest.Must(t, err)
	script := regexp.MustCompile(`(?m)^export type .*;$`).ReplaceAllString(string(text), "")
	script = regexp.MustCompile(`\b(type|text|prefix|form|max)\??: (string \| number|string|RegExp|bigint)\b`).ReplaceAllString(script, "$1")
	script = regexp.MustCompile(`\): \w+ \{`).ReplaceAllString(script, ") {")
	script = regexp.MustCompile(` as \w+;`).ReplaceAllString(script, ";")
	for _, c := range []struct {
		name, arguments string
		valid           bool
	}{
		{"PublicOrderID", `"779811650940178432"`, true}, {"PublicOrderID", `"0"`, true}, {"PublicOrderID", `"9223372036854775807"`, true},
		{"PublicOrderID", `"9223372036854775808"`, false}, {"PublicOrderID", `"01"`, false}, {"PublicOrderID", `"-1"`, false}, {"PublicOrderID", `""`, false}, {"PublicOrderID", `"1\n"`, false},
		{"PublicOrderID", `"ord_779811650940178432", "ord"`, true}, {"PublicOrderID", `"ord_779811650940178432"`, false},
		{"PublicOrderID", `"779811650940178432", "ord"`, false}, {"PublicOrderID", `"cus_779811650940178432", "ord"`, false},
		{"EventNoteID", `"9007199254740991"`, true}, {"EventNoteID", `9007199254740991`, true}, {"EventNoteID", `"9007199254740992"`, false}, {"EventNoteID", `1.5`, false},
		{"OrderItemID", `"vZEAoIJ8me"`, true}, {"OrderItemID", `"xinaS8QBh"`, true}, {"OrderItemID", `"xiAnaS8QBh"`, true}, {"OrderItemID", `"AABA"`, true},
		{"OrderItemID", `"xiAaS8QBh"`, false}, {"OrderItemID", `"AAB"`, false}, {"OrderItemID", `"vZEAoIJ8me1"`, false}, {"OrderItemID", `"vZEAoIJ8m+"`, false},
		{"OrderItemID", `"itm_xiAnaS8QBh", "itm"`, true}, {"OrderItemID", `"itm_xinaS8QBh", "itm"`, false},
		{"SalesOrderID", `"cb54ecf2840a0015"`, true}, {"SalesOrderID", `"ffffffffffff03ff"`, true}, {"SalesOrderID", `"ffffffffffff07ff"`, false}, {"SalesOrderID", `"CB54ecf2840a0015"`, false},
		{"CustomerID", `"brpk4q72xwf2m63l"`, true}, {"CustomerID", `"brpk4q72xwf2m63y"`, false}, {"CustomerID", `"BRPK4Q72XWF2M63L"`, false},
		{"EventID", `"01890a5d-ac96-774b-bcce-b302099a8057"`, true}, {"EventID", `"01890A5D-ac96-774b-bcce-b302099a8057"`, true}, {"EventID", `"01890a5dac96774bbcceb302099a8057"`, false},
		{"EventID", `"user_01h455vb4pex5vsknk084sn02q", "user"`, true}, {"EventID", `"user_81h455vb4pex5vsknk084sn02q", "user"`, false}, {"EventID", `"user_01h455vb4pex5vsknk084sn02u", "user"`, false},
	} {
		script += fmt.Sprintf("{ let valid = true; try { valid = parse%s(%s) === String([%s][0]) } catch (e) { valid = !(e instanceof TypeError) } if (valid !== %v) throw new Error(%q) }\n",
			c.name, c.arguments, c.arguments, c.valid, c.name+" "+c.arguments)
	}
	path := filepath.Join(t.TempDir(), "keys.mjs")
	pgtest.Must(t, os.WriteFile(path, []byte(script), 0o644))
	if out, err := exec.Command("node", path).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The tables of installations aren't the user's. A note names each key that is left out, with its
// installation if it is another one.
func TestSqlcLeftOut(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		must(t, db, "migrate up --schema s2 --epoch 2024-01-01")
		db.Exec(t, `CREATE TABLE theirs (id s2.snowflake PRIMARY KEY, other uuid NOT NULL);
			CREATE TABLE by_default (id uuid PRIMARY KEY DEFAULT s2.next_sno(7, 3));
			CREATE TABLE multi (tenant uuid, id sortkey.snowflake, PRIMARY KEY (tenant, id));
			CREATE TABLE children (id uuid PRIMARY KEY, tenant uuid, multi_id bigint, their_id bigint REFERENCES theirs, FOREIGN KEY (tenant, multi_id) REFERENCES multi)`)
		const override = "- column: \"%s.id\"\n  go_type: example.com/shop/key.%s\n"
		children := fmt.Sprintf(override, "children", "ChildID")
		r := succeed(t, db, "sqlc --bigint snowflake --types example.com/shop/key")
		wantSame(t, r.out, children)
		wantSame(t, r.errs, "left out, since several columns of the primary key could be the ID: public.multi.id, public.multi.tenant\n"+
			"left out, since they are keys of the installation in schema s2: public.by_default.id, public.theirs.id; pass --schema s2\n")
		r = succeed(t, db, "sqlc --schema s2 --types example.com/shop/key")
		wantSame(t, r.out, fmt.Sprintf(override, "by_default", "ByDefaultID")+children+
			"- column: \"children.their_id\"\n  go_type: {import: example.com/shop/key, type: TheirID, pointer: true}\n"+fmt.Sprintf(override, "theirs", "TheirID"))
		wantSame(t, r.errs, "left out, since several columns of the primary key could be the ID: public.multi.tenant\n"+
			"left out, since they are keys of the installation in schema sortkey: public.multi.id; pass --schema sortkey\n")
		// A reference is no key, also if it is of another installation.
		db.Exec(t, "CREATE TABLE parts (their_id s2.snowflake REFERENCES theirs, id sortkey.snowflake, PRIMARY KEY (their_id, id))")
		wantSame(t, succeed(t, db, "sqlc --bigint snowflake --types example.com/shop/key").out, children+fmt.Sprintf(override, "parts", "PartID"))
	})
}

// With --file, sqlc reads the tables of a file, with or without the installation in it, and
// leaves no database behind.
func TestSqlcFile(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		probe := db.Conn(t)
		databases := func() []string {
			return pgtest.Value[[]string](t, probe, "SELECT coalesce(array_agg(datname::text), '{}') FROM pg_database WHERE datname LIKE 'sortkey\\_sqlc\\_%'")
		}
		before := databases()
		wantNone := func() {
			t.Helper()
			if left := slices.DeleteFunc(databases(), func(name string) bool { return slices.Contains(before, name) }); len(left) > 0 {
				t.Errorf("databases %q are left", left)
			}
		}
		write := func(text string) string {
			path := filepath.Join(t.TempDir(), "file.sql")
			pgtest.Must(t, os.WriteFile(path, []byte(text), 0o644))
			return path
		}
		const args = "sqlc --types example.com/shop/key --file"
		want, err := os.ReadFile("testdata/sqlc/overrides.yaml")
		pgtest.Must(t, err)
		want = regexp.MustCompile(`(?m)^- column: "ours.*\n.*\n`).ReplaceAll(want, nil)
		wantSame(t, succeed(t, db, args, sqlcSchema).out, string(want))
		wantSame(t, succeed(t, db, args, write("\\restrict abc\n"+must(t, nil, "migrate print --si-epoch 2024-01-01")+readSchema(t)+"\n\\unrestrict abc\n")).out, string(want))
		wantNone()

		wantFailure(t, sortkey(t, db, args, write("CREATE TABLE t (id missing)")), 2, "file.sql: ", `type "missing" does not exist`)
		wantFailure(t, sortkey(t, db, args, write("")+"x"), 2, "no such file")
		wantNone()
		interrupted := command(t, db, args, write("SELECT pg_sleep(600)"))
		end := start(t, interrupted)
		pgtest.Eventually(t, "the file runs", func() error {
			if !pgtest.Value[bool](t, probe, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname LIKE 'sortkey\\_sqlc\\_%' AND query LIKE '%pg_sleep(600)')") {
				return fmt.Errorf("databases %q", databases())
			}
			return nil
		})
		pgtest.Must(t, interrupted.Process.Signal(os.Interrupt))
		r := end()
		wantSame(t, r.errs, "sortkey: interrupted\n")
		wantSame(t, r.code, 130)
		wantNone()

		role := db.NewRole(t, "reader_of", pgtest.LoginPassword)
		reader := withURL(t, db, func(u *url.URL) { u.User = url.UserPassword(role, "secret") })
		wantFailure(t, sortkey(t, reader, args, sqlcSchema), 2, "create a temporary database", "permission denied")
	})
}
