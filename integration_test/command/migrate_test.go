package command_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
)

// migrationLines returns the lines of all migrations, such as installed 1 schema.
func migrationLines(t *testing.T, done string) []string {
	t.Helper()
	list, err := migrations.List(migrations.Config{})
	pgtest.Must(t, err)
	var lines []string
	for _, m := range list {
		lines = append(lines, fmt.Sprintf("%s %d %s\n", done, m.Version, m.Name))
	}
	return lines
}

func TestMigrate(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		wantFailure(t, sortkey(t, db, "migrate check"), 1, "schema sortkey: sortkey is not installed; run sortkey migrate up [not-installed]\n")
		wantFailure(t, sortkey(t, db, "migrate check -o json"), 1,
			`{"ok":false,"findings":[{"id":"not-installed","area":"installation","status":"problem","subject":"schema sortkey","detail":"sortkey is not installed","remedy":"run sortkey migrate up"}]}`+"\n")
		status := strings.Split(must(t, db, "migrate status"), "\n")
		if len(status) != len(migrationLines(t, ""))+2 || status[0] != "VERSION  NAME          APPLIED" || status[1] != "      1  schema        -" {
			t.Errorf("status: got %q", status)
		}
		wantMatch(t, must(t, db, "migrate status -o json"), `\A{"version":1,"name":"schema","applied_at":null}\n`)
		wantSame(t, must(t, db, "migrate down --yes"), "nothing to do: schema sortkey has no migrations\n")

		wantSame(t, must(t, db, "migrate up"), strings.Join(migrationLines(t, "installed"), ""))
		wantSame(t, must(t, db, "migrate up"), "nothing to do: schema sortkey has all migrations\n")
		wantSame(t, must(t, db, "migrate up -o json"), "")
		wantSame(t, must(t, db, "migrate check -o json"), `{"ok":true,"findings":[]}`+"\n")
		for _, m := range objects(t, must(t, db, "migrate status -o json")) {
			applied, err := time.Parse(time.RFC3339, m["applied_at"].(string))
			if age := time.Since(applied); err != nil || age > time.Hour || age < -time.Minute || applied.Location() != time.UTC {
				t.Errorf("status: got %v", m)
			}
		}
		if out := must(t, db, "migrate status"); strings.Contains(out, "-\n") || !strings.Contains(out, "  partitions    2") {
			t.Errorf("status: got %s", out)
		}

		db.Exec(t, "CREATE TABLE orders (id sortkey.snowflake PRIMARY KEY DEFAULT sortkey.next_snowflake(1021), other bigint DEFAULT sortkey.next_spread64(7))")
		r := sortkey(t, db, "migrate check -o json")
		wantFailure(t, r, 1, `{"ok":false,`)
		findings := objects(t, r.out)[0]["findings"].([]any)
		wantSame(t, len(findings), 2)
		var lines string
		for _, finding := range findings {
			f := finding.(map[string]any)
			lines += fmt.Sprintf("%s: %s; %s [%s]\n", f["subject"], f["detail"], f["remedy"], f["id"])
		}
		wantMatch(t, lines, `^column public\.orders\.id: uses unreserved number 1021 of pool snowflake; run sortkey nodes reserve snowflake 1021, or SELECT.* \[node-unreserved\]$`)
		r = sortkey(t, db, "migrate check")
		wantFailure(t, r, 1)
		wantSame(t, r.out, lines)

		wantFailure(t, sortkey(t, db, "migrate down"), 2, "pass --yes")
		wantFailure(t, sortkey(t, db, "migrate down --yes"), 2, "(column id of table public.orders, default value for column id of table public.orders, default value for column other of table public.orders); drop or change the dependent objects first\n")
		db.Exec(t, "INSERT INTO orders DEFAULT VALUES; DROP TABLE orders")
		want := migrationLines(t, "removed")
		slices.Reverse(want)
		wantSame(t, must(t, db, "migrate down --yes"), strings.Join(want, ""))
		must(t, db, "migrate up --schema keys")
		wantMatch(t, must(t, db, "migrate down --schema keys --yes -o json"), `^{"version":1,"name":"schema"}\n\z`)
		wantSame(t, pgtest.Value[int](t, db.Conn(t), "SELECT count(*)::integer FROM pg_namespace WHERE nspname ~ 'sortkey|keys'"), 0)
	})
}

// Flags select layouts. Without flags, commands use the layouts of the installation.
func TestMigrateLayouts(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		config := migrations.Config{Snowflake: idtype.SnowflakeLayout{Epoch: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), WorkerBits: 10, SequenceBits: 12}}
		const layout = " --epoch 2026-01-01 --bits 0/10/12"
		must(t, db, "migrate up"+layout)
		pgtest.Must(t, migrations.Check(t.Context(), db.SQL(t), config))

		// An older installation, without the last migration.
		list, err := migrations.List(config)
		pgtest.Must(t, err)
		last := list[len(list)-1]
		db.Exec(t, last.Down)
		wantFailure(t, sortkey(t, db, "migrate check"), 1, fmt.Sprintf("migration %d (%s) of %[1]d is not installed", last.Version, last.Name), "; run sortkey migrate up, or, if your own tool ran the others, continue with its files from sortkey migrate export [migration-missing]\n")
		wantSame(t, must(t, db, "migrate up"), fmt.Sprintf("installed %d %s\n", last.Version, last.Name))
		pgtest.Must(t, migrations.Check(t.Context(), db.SQL(t), config))

		must(t, db, "migrate check")
		must(t, db, "migrate check"+layout)
		wantFailure(t, sortkey(t, db, "migrate check --epoch 2021-01-01"), 1, "its Snowflake layout is epoch 2026-01-01T00:00:00.000Z")
		wantFailure(t, sortkey(t, db, "migrate up --bits 5/5/12"), 2, "its Snowflake layout is epoch 2026-01-01T00:00:00.000Z")

		// The flags of one type don't affect the other.
		wantFailure(t, sortkey(t, db, "migrate check --si-epoch 2026-02-01"), 1, "it has no functions for SnowflakeSI")
		wantSame(t, must(t, db, "migrate up --si-epoch 2026-02-01 --si-bits 6/7 -o json"), `{"version":4,"name":"snowflake_si"}`+"\n")
		config.SnowflakeSI = idtype.SnowflakeSILayout{BaseClock: time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC), MachineBits: 6, IndexBits: 7}
		pgtest.Must(t, migrations.Check(t.Context(), db.SQL(t), config))
		must(t, db, "migrate up"+layout)
		must(t, db, "migrate check")
		wantFailure(t, sortkey(t, db, "migrate check --si-epoch 2026-02-01"), 1, "its SnowflakeSI layout is base clock 2026-02-01T00:00:00.000Z; bits: machine 6, index 7")
		must(t, db, "migrate down --yes")
	})
}

// The SQL that print writes is an installation like that of up.
func TestMigratePrint(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, must(t, nil, "migrate print --epoch 2026-01-01"))
		must(t, db, "migrate check")
		if out := must(t, db, "migrate status"); strings.Contains(out, "-\n") {
			t.Errorf("status: got %s", out)
		}
		must(t, db, "migrate up")
		// The file fails on an installation.
		if _, err := db.SQL(t).Exec(must(t, nil, "migrate print")); err == nil || !strings.Contains(err.Error(), "already installed") {
			t.Errorf("print again: got %v", err)
		}
		must(t, db, "migrate down --yes")
	})
}

// The command that export prints installs plain files with psql.
func TestMigrateExportPlain(t *testing.T) {
	t.Parallel()
	pgtest.OneContainer(t, func(t *testing.T, db *pgtest.DB) {
		folder := filepath.Join(t.TempDir(), "a b")
		export := objects(t, must(t, nil, "migrate export --tool plain --output json", folder))[0]
		inside := "/tmp/" + db.Name
		for _, written := range export["written"].([]any) {
			path := written.(string)
			text, err := os.ReadFile(path)
			pgtest.Must(t, err)
			pgtest.Must(t, db.Container().CopyToContainer(t.Context(), text, inside+"/"+filepath.Base(path), 0o644))
		}
		local := withURL(t, db, func(u *url.URL) { u.Host = "127.0.0.1:5432" })
		if out, err := pgtest.Exec(t, db.Container(), "root", "env", "DATABASE_URL="+local.URL, "sh", "-c", strings.ReplaceAll(export["next"].(string), "'"+folder+"'", inside)); err != nil {
			t.Fatalf("%s: %v\n%s", export["next"], err, out)
		}
		must(t, db, "migrate check")
	})
}

// On a terminal, down asks for the name of the schema.
func TestMigrateConfirmation(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		const prompt = "type the name of the schema: "
		question := "Down removes all objects of sortkey in schema sortkey of database " + db.Name + ".\nTo continue, " + prompt
		for _, tt := range []struct {
			answer string
			code   int
			want   string // a pattern for the text after the question
		}{
			{"yes\n", 2, `^yes\nsortkey: down removed nothing: want the name of the schema, sortkey, got "yes"\n$`},
			{ctrlD, 2, `got ""`},
			{ctrlC, 130, `^\^C\nsortkey: interrupted\n$`},
			{"sortkey\n", 0, `^sortkey\nremoved (?s:.*)removed 1 schema\n$`},
		} {
			must(t, db, "migrate check") // no other answer has removed anything
			shown, code := onTerminal(t, command(t, db, "migrate down"), prompt, tt.answer)
			if rest, ok := strings.CutPrefix(shown, question); code != tt.code || !ok || !regexp.MustCompile(tt.want).MatchString(rest) {
				t.Errorf("answer %q: code %d, %q", tt.answer, code, shown)
			}
		}
		if shown, code := onTerminal(t, command(t, db, "migrate down"), prompt, ""); code != 0 || shown != "nothing to do: schema sortkey has no migrations\n" {
			t.Errorf("nothing installed: code %d, %q", code, shown)
		}
	})
}

// Errors of package migrations have the words and remedies of the command.
func TestMigrateWords(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		const (
			layout   = `bits: datacenter 5, worker 5, sequence 12, and the flags have epoch 2026-01-01T00:00:00.000Z; bits: datacenter 5, worker 5, sequence 12; omit the flags, and give your programs the layout of the database`
			restored = `table sortkey.revision is empty, as after a restore without data; restore the data of the schemas sortkey and sortkey_internal`
		)
		for _, tt := range []struct {
			sql  string // runs before
			line string
			code int
			want string
		}{
			{"", "migrate check --epoch 2026-01-01", 1, layout},
			{"", "migrate up --epoch 2026-01-01", 2, layout},
			{"", "migrate check --si-epoch 2026-01-01", 1, "; run sortkey migrate up with the same flags [migration-missing]\n"},
			{"", "migrate print --after 10", 2, "--after 10: want 0 to 9"},
			{"", "migrate print --schema user", 2, `--schema "user" is not a valid name`},
			{"", "nodes list --schema user", 2, `--schema "user" is not a valid name`},
			{"DELETE FROM sortkey.revision", "migrate check", 1, restored},
			{"", "migrate up", 2, restored},
		} {
			db.Exec(t, tt.sql)
			r := sortkey(t, db, tt.line)
			wantFailure(t, r, tt.code, tt.want)
			for _, word := range []string{"migrations:", "run Up", "this process", "this Config", "while_held", "mismatch"} {
				if strings.Contains(r.out+r.errs, word) {
					t.Errorf("sortkey %s: got %q in\n%s%s", tt.line, word, r.out, r.errs)
				}
			}
		}
	})
}
