package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// TestRekey covers the errors and the JSON of rekey. TestPages runs the steps of
// docs/rekey.md.
func TestRekey(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		file := filepath.Join(t.TempDir(), "orders.json")
		write := func(spec string) { pgtest.Must(t, os.WriteFile(file, []byte(spec), 0o644)) }
		const spec = `{"keys": [{"table": "orders", "format": "snowflake", "node": 1, "backfill_node": 2, "times": {"column": "at"}}]}`
		write(spec)
		wantFailure(t, sortkey(t, db, "rekey inspect", file), 2, `schema "sortkey" of this database has no installation; run sortkey migrate up`)
		must(t, db, "migrate up")
		db.Exec(t, "CREATE TABLE orders (id serial PRIMARY KEY, at timestamptz NOT NULL DEFAULT now()); INSERT INTO orders SELECT FROM generate_series(1, 1234)")
		overrides := func() string {
			t.Helper()
			return must(t, db, "sqlc --types example.com/shop/key")
		}

		wantFailure(t, sortkey(t, db, "rekey inspect", file+"x"), 2, "no such file")
		for flag, want := range map[string]string{"--pause 2": "--pause: 2 is out of range", "--batch-time 1ns": "--batch-time: 1ns is", "--lock-timeout 1ns": "--lock-timeout: 1ns is", "--lock-wait -1s": "--lock-wait: -1s is"} {
			wantFailure(t, sortkey(t, db, "rekey backfill "+flag), 2, "sortkey: "+want, "--help for the usage")
		}
		wantFailure(t, sortkey(t, db, "rekey backfill"), 2, "no rekey has begun; run expand")
		wantSame(t, must(t, db, "rekey status"), "no rekey; the next step is expand\n")

		// Problems are results of inspect, and an error of expand.
		db.Exec(t, "CREATE MATERIALIZED VIEW recent AS SELECT id FROM orders")
		found := sortkey(t, db, "rekey inspect", file)
		if want := "\nproblem: materialized view public.recent depends on a key\n  drop it and create it again after contract\n"; found.code != 1 || !strings.HasSuffix(found.out, want) {
			t.Errorf("inspect: got exit code %d and\n%s", found.code, found.out)
		}
		wantFields(t, objects(t, sortkey(t, db, "rekey inspect", file, "-o", "json").out)[0], `{"actions": []}`)
		wantFailure(t, sortkey(t, db, "rekey expand", file), 1, "materialized view public.recent depends on a key; drop it and create it again after contract")
		db.Exec(t, "DROP MATERIALIZED VIEW recent")

		write(`{"keys": [{"table": "orders", "format": "snowflake", "nodes": 1}]}`)
		wantFailure(t, sortkey(t, db, "rekey inspect", file), 2, `unknown field "nodes"; sortkey rekey --help shows an example`)
		write(spec)

		wantParts(t, must(t, db, "rekey inspect", file), "1,234") // rows, although the table has no statistics
		plan := objects(t, must(t, db, "rekey inspect", file, "-o", "json"))
		wantFields(t, plan[0], `{"problems": []}`) // not null
		column := plan[0]["tables"].([]any)[0].(map[string]any)["columns"].([]any)[0].(map[string]any)
		wantFields(t, column, `{"new_name": "rekey_id", "old_type": "integer", "new_type": "bigint"}`)
		if all := must(t, db, "rekey inspect", file, "--sql"); !strings.HasPrefix(all, "-- expand: reserve node numbers\nSELECT sortkey.reserve_node('snowflake', 1, ") || !strings.Contains(all, "\n-- backfill: fill keys of public.orders: a batch, and a query for more rows\nWITH batch AS ") {
			t.Errorf("inspect --sql: got\n%s", all)
		}
		succeed(t, db, "rekey expand", file)
		wantFailure(t, sortkey(t, db, "rekey contract"), 2, "contract can't run now; the next step is backfill")
		done := objects(t, succeed(t, db, "rekey backfill -o json").out)
		if len(done) != 4 {
			t.Fatalf("backfill in JSON: got %v", done)
		}
		wantFields(t, done[2], `{"action": "fill keys of public.orders", "step": "backfill"}`)
		if status := objects(t, must(t, db, "rekey status -o json"))[0]; status["next"] != "validate" || status["step"] != "backfill" || status["actions_left"].(float64) < 5 {
			t.Errorf("status in JSON: got %v", status)
		}
		succeed(t, db, "rekey validate")
		wantSame(t, overrides(), "")
		wantFindings(t, diagnose(t, db))
		wantParts(t, must(t, db, "doctor"), "\nrekey\n  ok       rekeyed: keys of orders: the next step is contract, the last change was ")
		db.Exec(t, "UPDATE rekeyed.rekey_state SET updated_at = now() - interval '3 days'")
		wantFindings(t, diagnose(t, db), "rekey warning rekeyed: keys of orders: the next step is contract, the last change was 3 days ago → "+
			"run sortkey rekey contract, or sortkey rekey abort; until then, each INSERT sets both keys")
		db.Exec(t, "CREATE INDEX late ON orders (id)")
		wantFailure(t, sortkey(t, db, "rekey contract"), 1, "would be lost: index public.late")
		db.Exec(t, `DROP INDEX late; ALTER TABLE orders DISABLE TRIGGER "~rekey insert"`)
		const lost = "triggers of rekey on public.orders are missing or disabled, so rows can have one key alone"
		wantParts(t, must(t, db, "rekey status"), "problem    "+lost)
		wantFindings(t, diagnose(t, db), "rekey warning rekeyed: keys of orders: the next step is contract, the last change was 3 days ago; "+lost+" → run sortkey rekey backfill and sortkey rekey validate, which restore them")
		wantFailure(t, sortkey(t, db, "rekey contract"), 1, lost)
		succeed(t, db, "rekey validate")
		succeed(t, db, "rekey contract")
		wantSame(t, overrides(), "- column: \"orders.id\"\n  go_type: example.com/shop/key.OrderID\n")
		db.Exec(t, "UPDATE rekeyed.rekey_state SET updated_at = now() - interval '3 days'; CREATE TABLE notes (order_key integer); INSERT INTO notes VALUES (1), (2)")
		wantFindings(t, diagnose(t, db), "rekey warning rekeyed: keys of orders: the next step is cleanup, the last change was 3 days ago → run sortkey rekey cleanup, or sortkey rekey undo; until then, each INSERT and DELETE takes some 5 to 30 µs per row more, and old keys are used up")
		wantParts(t, must(t, db, "rekey add-reference notes order_key orders"), "2 rows mapped\n")
		wantParts(t, must(t, db, "rekey add-reference notes order_key orders"), "skip the mapped column public.notes.order_key in ", "\n0 rows mapped\n")
		wantParts(t, must(t, db, "rekey status"), "next step  cleanup, or undo as the way back\n")
		wantSame(t, pgtest.Value[string](t, db.Conn(t), "SELECT count(*) || ' ' || pg_typeof(min(order_key)) FROM notes JOIN orders ON id = order_key"), "2 bigint")
		wantFailure(t, sortkey(t, db, "rekey cleanup"), 2, "standard input is not a terminal, so cleanup cannot ask for confirmation: pass --yes")
		question := "Cleanup drops the old keys of orders in database " + db.Name + ", permanently. No program of the old version may run.\nTo continue, type the name of the database: "
		if shown, code := onTerminal(t, command(t, db, "rekey cleanup"), "type the name of the database: ", "yes\n"); code != 2 || shown != question+"yes\nsortkey: cleanup changed nothing: want the name of the database, "+db.Name+", got \"yes\"\n" {
			t.Errorf("another answer: code %d, %q", code, shown)
		}
		wantFields(t, objects(t, must(t, db, "rekey status -o json"))[0], `{"next": "cleanup"}`)
		succeed(t, db, "rekey undo")
		wantSame(t, overrides(), "")
		succeed(t, db, "rekey abort")
		if out := must(t, db, "nodes list snowflake"); strings.Contains(out, "reserved") {
			t.Errorf("after abort: got\n%s", out)
		}
	})
}

// After cleanup, audit knows the types of keys without a default and of references. On a
// terminal, contract --cleanup asks for the name of the database.
func TestRekeyText(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		file := filepath.Join(t.TempDir(), "orders.json")
		pgtest.Must(t, os.WriteFile(file, []byte(`{"keys": [{"table": "orders", "format": "uid60", "times": {"start": "2024-01-01T00:00:00Z"}, "old_key": "gen_random_uuid()"}]}`), 0o600))
		db.Exec(t, `CREATE TABLE orders (id text PRIMARY KEY); INSERT INTO orders SELECT 'order ' || i FROM generate_series(1, 10) i;
			CREATE TABLE lines (order_id text REFERENCES orders); INSERT INTO lines TABLE orders; CREATE INDEX ON lines (order_id);
			COMMENT ON COLUMN lines.order_id IS 'The order.'`)
		succeed(t, db, "rekey expand", file)
		succeed(t, db, "rekey backfill")
		succeed(t, db, "rekey validate")
		shown, code := onTerminal(t, command(t, db, "rekey contract --cleanup"), "type the name of the database: ", db.Name+"\n")
		if code != 0 || !strings.Contains(shown, "type the name of the database: "+db.Name+"\ncompare the keys of all rows in ") || !strings.Contains(shown, "drop schema rekeyed in ") {
			t.Errorf("the name: code %d, %q", code, shown)
		}
		for _, column := range []string{"orders.id", "lines.order_id"} {
			wantParts(t, must(t, db, "audit "+column), "uid60")
		}
		wantSame(t, pgtest.Value[string](t, db.Conn(t), "SELECT col_description('lines'::regclass, (SELECT attnum FROM pg_attribute WHERE attrelid = 'lines'::regclass AND attname = 'order_id'))"), "The order.\nsortkey: uid60")
	})
}
