package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/migrations"
)

// customFlags are flags for a layout of each type, and customConfig is their Config.
var (
	customFlags = []string{
		"--schema", "keys", "--epoch", "2015-01-01T02:00:00+02:00", "--bits", "0/10/12",
		"--si-epoch", "2026-01-01", "--si-bits", "6/7",
	}
	customConfig = migrations.Config{
		Schema:      "keys",
		Snowflake:   idtype.SnowflakeLayout{Epoch: time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC), WorkerBits: 10, SequenceBits: 12},
		SnowflakeSI: idtype.SnowflakeSILayout{BaseClock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), MachineBits: 6, IndexBits: 7},
	}
)

func TestMigratePrint(t *testing.T) {
	for _, tt := range []struct {
		args   []string
		config migrations.Config
		after  int
	}{
		{nil, migrations.Config{}, 0},
		{customFlags, customConfig, 0},
		{[]string{"--epoch", "2026-01-01", "--after", "7"}, migrations.Config{Snowflake: idtype.SnowflakeLayout{Epoch: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}}, 7},
	} {
		want, err := migrations.SQLAfter(tt.config, tt.after)
		if err != nil {
			t.Fatal(err)
		}
		if tt.after > 0 {
			want = strings.Replace(want, "-- The installation of sortkey.", fmt.Sprintf("-- The upgrade of sortkey from version %d.", tt.after), 1)
		}
		args := append([]string{"migrate", "print"}, tt.args...)
		if out, errs, code := execute(t, "", args...); code != exitOK || errs != "" || out != want {
			t.Errorf("%v: code %d, %d bytes, want %d, errors %q", args, code, len(out), len(want), errs)
		}
		var object struct{ SQL string }
		out, _, _ := execute(t, "", append(args, "--output", "json")...)
		if err := json.Unmarshal([]byte(out), &object); err != nil || object.SQL != want {
			t.Errorf("%v in JSON: %v, %d bytes, want %d", args, err, len(object.SQL), len(want))
		}
	}
	list, err := migrations.List(migrations.Config{})
	if err != nil {
		t.Fatal(err)
	}
	out, _, _ := execute(t, "", "migrate", "print", "--after", strconv.Itoa(len(list)))
	if want := fmt.Sprintf("-- Nothing to do: %d is the last version.\n", len(list)); out != want {
		t.Errorf("after the last version: got %q, want %q", out, want)
	}
}

func TestMigrateExport(t *testing.T) {
	for tool, next := range map[string]string{
		"goose":          `goose -dir DIR -table keys_goose postgres "$DATABASE_URL" up`,
		"golang-migrate": `migrate -path DIR -database "$DATABASE_URL?x-migrations-table=keys_migrations" up   # & if the URL has a ?`,
		"tern":           `tern migrate --migrations DIR --version-table public.keys_tern --conn-string "$DATABASE_URL"`,
		"flyway":         `flyway -locations=filesystem:DIR -table=keys_flyway -baselineOnMigrate=true -baselineVersion=0 migrate`,
		"plain":          `for file in DIR/*.up.sql; do psql -X -1 -v ON_ERROR_STOP=1 -f "$file" "$DATABASE_URL" || break; done`,
	} {
		t.Run(tool, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "it's", "sortkey")
			next = strings.ReplaceAll(next, "DIR", `'`+strings.ReplaceAll(folder, `'`, `'\''`)+`'`)
			args := append([]string{"migrate", "export", "--tool", tool, folder + "/"}, customFlags...)
			files, err := exportTools()[slices.Index(exportToolNames(), tool)].files(customConfig)
			if err != nil {
				t.Fatal(err)
			}
			want := t.TempDir()
			if err := os.CopyFS(want, files); err != nil {
				t.Fatal(err)
			}
			paths, err := filepath.Glob(want + "/*")
			if err != nil {
				t.Fatal(err)
			}
			for i, path := range paths {
				paths[i] = filepath.Join(folder, filepath.Base(path))
			}

			out, errs, code := execute(t, "", args...)
			if code != exitOK || errs != "" || out != strings.Join(paths, "\n")+"\n\nTo run them:\n"+next+"\n" {
				t.Fatalf("code %d, output\n%s%s\nwant\n%s\n%s", code, out, errs, strings.Join(paths, "\n"), next)
			}
			for _, path := range paths {
				got, err1 := os.ReadFile(path)
				file, err2 := os.ReadFile(filepath.Join(want, filepath.Base(path)))
				if err1 != nil || err2 != nil || string(got) != string(file) {
					t.Errorf("%s: %v, %v, %d bytes, want %d", path, err1, err2, len(got), len(file))
				}
			}
			if out, _, code := execute(t, "", args...); code != exitOK || out != "nothing to do: "+folder+" has all migrations\n" {
				t.Errorf("export again: code %d, output %q", code, out)
			}
			if out, _, code := execute(t, "", append(args, "-o", "json")...); code != exitOK || out != "" {
				t.Errorf("export again in JSON: code %d, output %q", code, out)
			}

			// After an update with a new migration, only its file is missing.
			last := paths[len(paths)-1]
			if err := os.Remove(last); err != nil {
				t.Fatal(err)
			}
			if tool == "plain" {
				next = nextPlain(`'` + strings.ReplaceAll(last, `'`, `'\''`) + `'`)
			}
			var object struct {
				Written []string
				Next    string
			}
			out, errs, _ = execute(t, "", append(args, "-o", "json")...)
			if err := json.Unmarshal([]byte(out), &object); err != nil || !slices.Equal(object.Written, []string{last}) || object.Next != next {
				t.Errorf("a missing file: %v, got %+v%s, want %s and %s", err, object, errs, last, next)
			}

			if err := os.WriteFile(last, []byte("changed"), 0o666); err != nil {
				t.Fatal(err)
			}
			if out, errs, code := execute(t, "", args...); code != exitError || out != "" || !strings.Contains(errs, last+": the file exists with other content") {
				t.Errorf("a changed file: code %d, output %q, errors %q", code, out, errs)
			}
		})
	}
}

func TestShellQuote(t *testing.T) {
	for path, want := range map[string]string{
		"db/sort-key_1.2": "db/sort-key_1.2", "a b": "'a b'", "$x": "'$x'", "it's": `'it'\''s'`, "*": "'*'", "~": "'~'", "": "",
	} {
		if got := shellQuote(path); got != want {
			t.Errorf("%q: got %s, want %s", path, got, want)
		}
	}
}

func TestMigrateUsage(t *testing.T) {
	checkUsage(t, "", []usageTest{
		{"migrate sideways", `unknown command "sideways" for "sortkey migrate"`},
		{"migrate up now", `unknown command "now" for "sortkey migrate up"`},
		{"migrate up", "pass --database postgres://user@host/name"},
		{"migrate down", "standard input is not a terminal, so down cannot ask for confirmation: pass --yes"},
		{"migrate down --yes --schema 1", `--schema "1" is not a valid name`},
		{"migrate status --schema 1", `--schema "1" is not a valid name`},
		{"migrate check --schema user", `--schema "user" is not a valid name`},
		{"migrate check --epoch x", `--epoch: time "x": want a time such as`},
		{"migrate up --bits 5/5", `--bits "5/5": want the widths of datacenter/worker/sequence, such as 5/5/12`},
		{"migrate up --bits 20/20/20", "widths datacenter 20, worker 20, sequence 20 are out of range"},
		{"migrate print --bits 0/1/1", "--bits 0/1/1: time has 61 bits"},
		{"migrate print --si-epoch 2026-01-01 --si-bits 5/9", "--si-bits 5/9: widths machine 5, index 9"},
		{"migrate print --si-bits 5/8", "--si-bits needs --si-epoch"},
		{"migrate print --si-epoch 2026-01-01 --si-bits 5/5/12", `--si-bits "5/5/12": want the widths of machine/index, such as 5/8`},
		{"migrate print --si-epoch 2026-01-01 --si-bits x", `--si-bits "x": want the widths of machine/index`},
		{"migrate print --si-epoch never", `--si-epoch: time "never"`},
		{"migrate print --after 99", "--after 99: want 0 to"},
		{"migrate export dir", `--tool "": want goose, golang-migrate, tern, flyway, plain`},
		{"migrate export --tool rake dir", `--tool "rake": want goose, golang-migrate, tern, flyway, plain`},
		{"migrate export --tool goose", "accepts 1 arg(s), received 0"},
		{"partitions halve", `unknown command "halve" for "sortkey partitions"`},
		{"partitions list a b", "accepts at most 1 arg(s), received 2"},
		{"partitions list", "pass --database postgres://user@host/name"},
		{"partitions run --lock-timeout 0s", "--lock-timeout 0s: want 1ms to 24h"},
		{"partitions run --lock-timeout 25h", "--lock-timeout 25h0m0s: want 1ms to 24h"},
	})
	if out, _, _ := execute(t, "", "__complete", "migrate", "export", "--tool", ""); !strings.HasPrefix(out, "goose\ngolang-migrate\ntern\nflyway\nplain\n") {
		t.Errorf("complete --tool: got %q", out)
	}
}
