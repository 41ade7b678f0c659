package migrations

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
)

// installTables returns SQL that creates columns of each domain with its defaults, and
// the other objects that can depend on an installation.
func installTables() string {
	var b strings.Builder
	for _, g := range genFormats() {
		fmt.Fprintf(&b, `CREATE TABLE of_%[1]s (id sortkey.%[1]s PRIMARY KEY DEFAULT %[2]s, n int);
			CREATE INDEX ON of_%[1]s (sortkey.%[1]s_time(id));
			ALTER TABLE of_%[1]s ADD shown text GENERATED ALWAYS AS (%[3]s) STORED;
			`, g.name, g.nextOf(g.node), g.call("text", "id"))
		if g.hasNodes() {
			fmt.Fprintf(&b, "CREATE TABLE by_%[1]s (id sortkey.%[1]s PRIMARY KEY DEFAULT %[2]s, n int);\n", g.name, g.next())
		}
	}
	b.WriteString(`CREATE TABLE of_sno_as_text (id sortkey.sno_as_text PRIMARY KEY DEFAULT sortkey.sno_text(sortkey.next_sno(40000, 200)), n int);
		CREATE TABLE parted (id sortkey.snowflake PRIMARY KEY DEFAULT sortkey.next_snowflake(103), n int) PARTITION BY RANGE (id);
		CREATE TABLE parted_before PARTITION OF parted FOR VALUES FROM (MINVALUE) TO (sortkey.snowflake_floor('2026-01-01 00:00:00+00'));
		CREATE TABLE parted_after PARTITION OF parted FOR VALUES FROM (sortkey.snowflake_floor('2026-01-01 00:00:00+00')) TO (MAXVALUE);
		CREATE VIEW latest AS SELECT id, sortkey.snowflake_time(id) FROM of_snowflake WHERE id >= sortkey.snowflake_floor('2026-01-01 00:00:00+00');
		`)
	return b.String()
}

// installGenerated is a query of the tables whose defaults generate IDs.
const installGenerated = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND (relname ~ '^(of|by)_' AND relkind = 'r' OR relkind = 'p')"

// installInsert inserts rows with generated IDs into each table.
func installInsert(t testing.TB, pool *sql.DB) {
	t.Helper()
	for _, table := range columnOf(t, pool, installGenerated) {
		_, err := pool.ExecContext(t.Context(), "INSERT INTO "+table+" (n) SELECT generate_series(1, 500)")
		must(t, err)
	}
}

// installClocks is a query of the values of the sequences.
const installClocks = "SELECT format('%s %s', sequencename, last_value) FROM pg_sequences WHERE schemaname = 'sortkey_internal' AND sequencename LIKE '%\\_clock' ORDER BY 1"

// installOwnNode gives a restored database its own node number in the setting, which
// it doesn't have yet. It returns new sessions.
func installOwnNode(t *testing.T, db *pgtest.DB) *sql.DB {
	t.Helper()
	const own = 22 // not installNode, which the original uses
	conn := db.Conn(t)
	remedy := "ALTER DATABASE " + db.Name + " SET sortkey.node = "
	fails(t, conn, "55000", "INSERT INTO by_snowflake VALUES (DEFAULT)", "sortkey.node is not set", "SELECT sortkey.reserve_node('snowflake', N, 'defaults of "+db.Name+"')", remedy+"N")
	wantError(t, migrations.CheckDefaults(t.Context(), db.SQL(t), complete), migrations.ErrNoNode, "column public.by_", "(and 3 more) needs the setting sortkey.node, which is missing", remedy+"N")
	exec(t, conn, remedy+fmt.Sprint(own))
	conn = db.Conn(t)
	fails(t, conn, "55000", "INSERT INTO by_snowflake VALUES (DEFAULT)", "sortkey.node is 22, but number 22 of pool snowflake is not reserved")
	exec(t, conn, reserveNode("sortkey", own))
	return db.SQL(t)
}

// installRestored checks that a restored database has the same installation as the
// dumped one, that it works once it has its own node number, and that it generates
// IDs that neither database has.
func installRestored(t *testing.T, old *sql.DB, into *pgtest.DB, c migrations.Config) {
	t.Helper()
	ctx, restored, conn := t.Context(), installOwnNode(t, into), into.Conn(t)
	wantError(t, migrations.CheckDefaults(ctx, restored, c), migrations.ErrUnreservedNode, "of_snowflake.id") // and no other problem
	catalog := installCatalog(t, restored, "sortkey")
	installSame(t, "restored", catalog, installCatalog(t, old, "sortkey"))
	must(t, migrations.Up(ctx, restored, c))
	installSame(t, "Up after a restore", installCatalog(t, restored, "sortkey"), catalog)

	installInsert(t, restored)
	for _, table := range columnOf(t, restored, installGenerated) {
		// The old database has the 500 dumped IDs, and 500 that it generated after the dump.
		column := "SELECT id::text FROM " + table
		ids := columnOf(t, restored, column)
		all := slices.Concat(ids, columnOf(t, old, column))
		slices.Sort(all)
		if distinct := len(slices.Compact(all)); len(ids) != 1000 || distinct != 1500 {
			t.Errorf("%s: expected 500 dumped IDs in both databases, and 500 new ones in each, got %d restored and %d distinct ones", table, len(ids), distinct)
		}
	}
	for _, g := range genFormats() {
		wantRows(t, restored, fmt.Sprintf("SELECT count(*) FROM of_%s WHERE (%s) IS NOT TRUE OR shown <> %s", g.name, g.valid(g.node), g.call("text", "id")), "0")
		if g.hasNodes() { // half of the rows come from the original
			wantRows(t, restored, fmt.Sprintf("SELECT concat(count(*) FILTER (WHERE %s), ' ', count(*) FILTER (WHERE %s)) FROM by_%s", g.valid(installNode), g.valid(22), g.name), "500 500")
		}
		fails(t, conn, "23502", "INSERT INTO of_"+g.name+" SELECT * FROM (SELECT NULL::sortkey."+g.name+", 1) q")
		exec(t, conn, "ANALYZE of_"+g.name)
	}
	wantError(t, migrations.Down(ctx, restored, c), nil, "drop or change the dependent objects first")
}

func TestDump(t *testing.T) {
	c := complete
	t.Parallel()
	installed.EachContainer(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, installTables())
		setNode(t, db, "sortkey", installNode)
		ctx, old, shell := t.Context(), db.SQL(t), toolShell{t, db}
		installInsert(t, old)
		clocks := columnOf(t, old, installClocks)

		file := func(kind string) string { return "/tmp/" + db.Name + "." + kind }
		// One command for all dumps, because it takes long to start one in a container.
		script := ""
		for kind, options := range map[string]string{
			"plain":        "",
			"custom":       "-Fc",
			"schema":       "--schema-only",
			"data":         "--data-only",
			"own_schema":   "--schema-only --exclude-schema=sortkey --exclude-schema=sortkey_internal",
			"own_data":     "--data-only --exclude-schema=sortkey --exclude-schema=sortkey_internal",
			"both_schemas": "--schema=sortkey --schema=sortkey_internal",
			"one_schema":   "--schema=sortkey",
		} {
			script += fmt.Sprintf("pg_dump -f %s %s '%s'\n", file(kind), options, shell.url(db.Name))
		}
		shell.must("sh", "-ec", script)
		psql := func(into *pgtest.DB, kind string) (string, bool) {
			return shell.run("psql", "-X", "-q", "-1", "-v", "ON_ERROR_STOP=1", "-f", file(kind), shell.url(into.Name))
		}
		restore := func(into *pgtest.DB, kind string) {
			t.Helper()
			if out, ok := psql(into, kind); !ok {
				t.Fatalf("restore %s: %s", kind, out)
			}
		}
		installInsert(t, old)
		if len(clocks) != 5 || slices.Equal(columnOf(t, old, installClocks), clocks) {
			t.Fatalf("expected 5 clocks that advance, got %v", clocks)
		}

		test := func(name, options string, fill func(t *testing.T, into *pgtest.DB)) {
			t.Run(name, func(t *testing.T) {
				into := newDatabase(t, db, strings.ToLower(strings.ReplaceAll(name, " ", "_")), options)
				fill(t, into)
				installRestored(t, old, into, c)
			})
		}
		test("custom", "", func(t *testing.T, into *pgtest.DB) {
			shell.must("pg_restore", "--exit-on-error", "-d", shell.url(into.Name), file("custom"))
			wantRows(t, into.SQL(t), installClocks, clocks...)
		})
		test("other collation", "ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'da-DK' LOCALE 'C'", func(t *testing.T, into *pgtest.DB) {
			restore(into, "plain")
			wantRows(t, into.SQL(t), installClocks, clocks...)
		})
		test("schema then data", "", func(t *testing.T, into *pgtest.DB) {
			restore(into, "schema")
			pool := into.SQL(t)
			for _, f := range []func(context.Context, *sql.DB, migrations.Config) error{migrations.Check, migrations.Up, migrations.Down} {
				wantError(t, f(ctx, pool, c), migrations.ErrIncomplete, "pg_dump --data-only --schema=sortkey --schema=sortkey_internal")
			}
			restore(into, "data")
			wantRows(t, pool, installClocks, clocks...)
		})
		test("data after Up", "", func(t *testing.T, into *pgtest.DB) {
			installDo(t, into.SQL(t), c, migrations.Up)
			restore(into, "own_schema")
			// Up has filled the tables that record the installation.
			if out, ok := psql(into, "data"); ok || !strings.Contains(out, "duplicate key value") {
				t.Errorf("expected a conflict with the rows of the installation, got %s", out)
			}
			restore(into, "own_data")
		})
		test("by schema", "", func(t *testing.T, into *pgtest.DB) {
			if out, ok := psql(into, "one_schema"); ok || !regexp.MustCompile(`ERROR:  (schema "sortkey_internal"|relation "sortkey_internal\.\w+_clock") does not exist`).MatchString(out) {
				t.Errorf("expected the other schema to be missing, got %s", out)
			}
			restore(into, "both_schemas")
			restore(into, "own_schema")
			wantRows(t, into.SQL(t), installClocks, clocks...)
			restore(into, "own_data")
		})

		// Only a dump that creates the database has the setting with its node number. So a
		// copy under another name doesn't use the number of the original.
		t.Run("setting", func(t *testing.T) {
			url := "'" + shell.url(db.Name) + "'"
			const separator = "-- the next command\n"
			commands := []struct {
				command string
				want    bool
			}{
				{"pg_dump " + url, false},
				{"pg_dump --clean --if-exists " + url, false},
				{"pg_dump --create " + url, true},
				{"pg_restore -f - " + file("custom"), false},
				{"pg_restore --create -f - " + file("custom"), true},
				{"pg_dumpall --globals-only -d " + url, false},
				{"pg_dump --create --data-only " + url, true},
				{"pg_dump --create --schema=public " + url, true},
				{"pg_dump --schema-only --no-owner -x " + url, false},
			}
			script := ""
			for _, c := range commands {
				script += c.command + "; echo '" + strings.TrimSpace(separator) + "'\n"
			}
			outputs := strings.Split(shell.must("sh", "-ec", script), separator)
			for i, c := range commands {
				got := strings.Contains(outputs[i], "ALTER DATABASE "+db.Name+` SET "sortkey.node" TO '21';`)
				if got != c.want || !c.want && strings.Contains(outputs[i], `"sortkey.node"`) {
					t.Errorf("%s: expected the setting to be in the dump: %t, got %t", c.command, c.want, got)
				}
			}
			// Nor does a copy by the server have it.
			from := newDatabase(t, db, "template", "")
			db.Exec(t, "ALTER DATABASE "+from.Name+" SET sortkey.node = 21")
			into := newDatabase(t, db, "copy", "TEMPLATE "+from.Name)
			wantRows(t, into.SQL(t), "SELECT coalesce(current_setting('sortkey.node', true), 'none')", "none")
		})
	})
}
