package hostile

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/rekey"
)

// specOf is the Spec of the command's calls, with fields to add to the key.
const specOf = `{"keys": [{"table": "shop.orders", "format": "snowflake", "node": 1, "backfill_node": 2, "times": {"column": "at"}%s}]}`

// spec returns the path of a file with the Spec.
func (w *world) spec() string {
	w.t.Helper()
	return w.write("spec.json", fmt.Sprintf(specOf, w.key))
}

// withKey adds fields to the key of the Spec, in JSON.
func withKey(fields string) step { return func(w *world) { w.key = ", " + fields } }

// The steps of a rekey.
var (
	inspect = []call{sortkey("rekey inspect {spec} --sql"), inspectLibrary}
	expand  = sortkey("rekey expand {spec}")
	rest    = []call{sortkey("rekey backfill"), sortkey("rekey validate"), sortkey("rekey status"), sortkey("doctor"), sortkey("rekey contract --cleanup --yes")}
	abort   = sortkey("rekey abort")
	// These follow contract.
	after = []call{sortkey("rekey add-reference shop.orders id shop.orders"), sortkey("rekey add-reference mallory.t ref shop.orders"), sortkey("rekey undo"), sortkey("rekey cleanup --yes")}

	inspectLibrary = library("Inspect", func(ctx context.Context, db *sql.DB) error {
		plan, err := rekey.Inspect(ctx, db, rekey.Spec{Keys: []rekey.Key{{Table: "shop.orders", Format: rekey.Snowflake, Node: 1, BackfillNode: 2, Times: rekey.Times{Column: "at"}}}}, rekey.Options{})
		if err != nil || len(plan.Problems) == 0 {
			return err
		}
		return fmt.Errorf("%s", plan.Problems)
	})
)

// idle are parts of the errors of steps that can't run now.
var idle = []string{"has begun; run expand", "the next step is"}

// untouched is a step that fails the test if the table or the catalog has changed.
func untouched(w *world) {
	w.t.Helper()
	text := pgtest.Value[string](w.t, w.watch, `SELECT concat_ws(', ',
		(SELECT string_agg(attname, ' ') FROM pg_attribute WHERE attrelid = 'shop.orders'::regclass AND attnum > 0 AND (attisdropped OR attname LIKE 'rekey%')),
		(SELECT string_agg(nspname, ' ') FROM pg_namespace WHERE nspname IN ('rekeyed', 'forged')), (SELECT string_agg(oid::regclass::text, ' ') FROM pg_class WHERE relname ~ 'forged'))`)
	if text != "" {
		w.t.Errorf("want no change, got %s", text)
	}
}

// before is a trap whose objects exist before the rekey. Each step must refuse it, or go on
// without running the payload.
func before(name, sql string, names ...string) trap {
	return trap{name: name, names: append(append([]string{"mallory"}, names...), idle...), steps: []step{
		admin("GRANT REFERENCES, SELECT ON shop.orders TO {mallory}"), mallory(sql), calls(inspect...), calls(expand), begun(calls(rest...), calls(abort)),
	}}
}

// begun runs steps if there is a rekey.
func begun(list ...step) step {
	return func(w *world) {
		w.t.Helper()
		if !pgtest.Value[bool](w.t, w.watch, "SELECT to_regclass('rekeyed.rekey_state') IS NOT NULL") {
			return
		}
		for _, s := range list {
			s(w)
		}
	}
}

// A column of mallory's tables that refers to the administrator's table.
const refers = "ref bigint REFERENCES shop.orders"

// Mallory's objects depend on the table whose key changes: REFERENCES and SELECT suffice for
// that.
func TestRekey(t *testing.T) {
	odd := ""
	for _, name := range []string{
		// These would end the quotes around a function, a DO statement or a text.
		"$rekey$;SELECT mallory.payload(),$rekey$", "END$rekey$;SELECT mallory.payload();DO$rekey$BEGIN", "$rekey$$rekey_1$;SELECT mallory.payload(),$rekey_1$",
		"$$;SELECT mallory.payload(),$$", "x';SELECT mallory.payload();--", `x"";SELECT mallory.payload();--`, `x\';SELECT mallory.payload();--`, "x\nforged: fine\n;SELECT mallory.payload();--",
		"x%s%d%!%I", "x{old}{new}{node}{time}{schema}$1", "x\x1b[31mok: all fine",
	} {
		table := `mallory."` + name + `"`
		odd += `CREATE TABLE ` + table + ` (` + refers + `); INSERT INTO ` + table + ` VALUES (1);`
	}
	// Each of these tables refers to the administrator's.
	tables := ""
	for i, definition := range []string{
		`CREATE TABLE {t} (` + refers + ` CHECK (mallory.payload())); INSERT INTO {t} VALUES (1)`,
		`CREATE TABLE {t} (` + refers + `, x integer DEFAULT 1 CHECK (mallory.same(x) = 1)); INSERT INTO {t} VALUES (1)`,
		`CREATE TABLE {t} (` + refers + `); INSERT INTO {t} VALUES (1);
			CREATE TRIGGER fire BEFORE INSERT OR UPDATE OR DELETE ON {t} FOR EACH ROW EXECUTE FUNCTION mallory.fire(); ALTER TABLE {t} ENABLE ALWAYS TRIGGER fire`,
		`CREATE TABLE {t} (` + refers + `); INSERT INTO {t} VALUES (1); ALTER TABLE {t} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY; CREATE POLICY p ON {t} USING (mallory.payload())`,
		`CREATE TABLE {t} (` + refers + `, x boolean DEFAULT mallory.payload(), y bigint DEFAULT mallory.same(1)); INSERT INTO {t} VALUES (1)`,
		`CREATE TABLE {t} (ref bigint DEFAULT mallory.same(1) REFERENCES shop.orders); INSERT INTO {t} VALUES (1)`,
		`CREATE TABLE {t} (` + refers + `, x boolean GENERATED ALWAYS AS (mallory.spring()) STORED, y bigint GENERATED ALWAYS AS (mallory.same(ref)) STORED); INSERT INTO {t} VALUES (1)`,
		`CREATE TABLE {t} (` + refers + `); INSERT INTO {t} VALUES (1); CREATE INDEX ON {t} (mallory.same(ref)); CREATE INDEX ON {t} (ref) WHERE mallory.spring()`,
		`CREATE TABLE {t} (` + refers + `); INSERT INTO {t} VALUES (1); CREATE STATISTICS {t}_s ON (mallory.same(ref)), (mallory.spring()) FROM {t}`,
		`CREATE DOMAIN {t}_d AS bigint CHECK (mallory.payload()); CREATE TABLE {t} (ref {t}_d REFERENCES shop.orders, x {t}_d); INSERT INTO {t} VALUES (1)`,
		`CREATE TABLE {t} (` + refers + `); INSERT INTO {t} VALUES (1); CREATE RULE r AS ON UPDATE TO {t} DO ALSO SELECT mallory.payload()`,
		`CREATE TYPE {t}_k AS ENUM ('1'); CREATE FUNCTION {t}_cast({t}_k) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS 'BEGIN PERFORM mallory.payload(); RETURN 1; END';
			CREATE CAST ({t}_k AS bigint) WITH FUNCTION {t}_cast({t}_k) AS IMPLICIT; CREATE TABLE {t} (ref {t}_k, x ` + strings.TrimPrefix(refers, "ref ") + `); INSERT INTO {t} VALUES ('1', 1)`,
		`CREATE TABLE {t} (` + refers + `) PARTITION BY LIST (mallory.same(ref)); CREATE TABLE {t}_p PARTITION OF {t} DEFAULT; INSERT INTO {t} VALUES (1)`,
	} {
		tables += strings.ReplaceAll(definition, "{t}", fmt.Sprintf("mallory.t%d", i)) + ";"
	}
	traps := []trap{
		before("tables", tables),
		before("views", `CREATE VIEW mallory.a AS SELECT id, mallory.same(id) AS x, mallory.spring() AS y FROM shop.orders WHERE mallory.spring();
			CREATE VIEW mallory.b AS SELECT id FROM shop.orders; CREATE VIEW mallory.c AS SELECT mallory.same(id) AS id FROM mallory.b;
			CREATE MATERIALIZED VIEW mallory.d AS SELECT mallory.same(id) AS id FROM shop.orders`),
		before("function with the name of the table", `CREATE FUNCTION mallory.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM mallory.payload(); UPDATE shop.orders SET id = new.id WHERE id = old.id; RETURN new; END';
			CREATE FUNCTION mallory.g(shop.orders) RETURNS bigint LANGUAGE sql AS 'SELECT $1.id FROM mallory.payload()'`),
		before("column with the name of the table", `CREATE TABLE mallory.t (order_id bigint CHECK (mallory.spring()), x integer); INSERT INTO mallory.t SELECT i, i FROM generate_series(1, 3) i; CREATE INDEX ON mallory.t (order_id) WHERE mallory.spring();
			CREATE TABLE mallory.u (order_id bigint, at timestamptz) PARTITION BY RANGE ((order_id + mallory.same(1::bigint))); GRANT SELECT ON mallory.t, mallory.u TO PUBLIC`),
		before("names", odd),
	}

	// To print the definition of a view, the server waits for a lock on it.
	traps = append(traps, trap{name: "locked view", names: []string{"mallory.v"}, steps: []step{
		admin("GRANT SELECT ON shop.orders TO {mallory}"), mallory("CREATE VIEW mallory.v AS SELECT id FROM shop.orders"),
		func(w *world) {
			tx, err := w.evil.BeginTx(w.t.Context(), nil)
			must(w.t, err)
			_, err = tx.ExecContext(w.t.Context(), "ALTER VIEW mallory.v SET (security_barrier)")
			must(w.t, err)
			refused(inspect...)(w) // soon
			must(w.t, tx.Rollback())
		},
	}})

	// Mallory's trigger stands on the administrator's table: TRIGGER is a grant to run code.
	traps = append(traps, trap{name: "trigger on the table", names: append([]string{"mallory", "fire"}, idle...), steps: []step{
		admin("GRANT TRIGGER ON shop.orders TO {mallory}"), mallory(`CREATE TRIGGER fire BEFORE INSERT OR UPDATE OR DELETE ON shop.orders FOR EACH ROW EXECUTE FUNCTION mallory.fire()`),
		calls(inspect...), calls(expand), calls(rest...), calls(abort),
	}})

	// Objects that appear between the steps.
	for _, late := range []struct{ name, sql string }{
		{"late dependents", `CREATE TABLE mallory.t (` + refers + ` CHECK (mallory.payload()), x boolean GENERATED ALWAYS AS (mallory.spring()) STORED); CREATE INDEX ON mallory.t (mallory.same(ref)); INSERT INTO mallory.t VALUES (1);
			CREATE VIEW mallory.v AS SELECT id, mallory.same(id) AS x FROM shop.orders; CREATE VIEW mallory.w AS SELECT rekey_id, mallory.spring() AS y FROM shop.orders`},
		{"late trigger", `CREATE TRIGGER fire BEFORE INSERT OR UPDATE OR DELETE ON shop.orders FOR EACH ROW EXECUTE FUNCTION mallory.fire();
			ALTER FUNCTION mallory.fire() SET search_path = pg_catalog; CREATE CONSTRAINT TRIGGER late AFTER UPDATE ON shop.orders DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION mallory.fire()`},
	} {
		start := []step{admin("GRANT REFERENCES, SELECT, TRIGGER ON shop.orders TO {mallory}"), allowed(expand)}
		names := append([]string{"mallory", "fire", "changes already"}, idle...)
		traps = append(traps,
			trap{name: late.name + " before backfill", names: names, steps: append(start[:2:2], mallory(late.sql), calls(rest...), calls(abort))},
			trap{name: late.name + " before contract", names: names, steps: append(start[:2:2], allowed(rest[0], rest[1]), mallory(late.sql), calls(rest...), calls(abort))},
			trap{name: late.name + " before abort", names: names, steps: append(start[:2:2], allowed(rest[0], rest[1]), mallory(late.sql), calls(abort))},
			trap{name: late.name + " after contract", names: names, steps: append(start[:2:2], allowed(rest[0], rest[1], sortkey("rekey contract")), mallory(late.sql), calls(after...))})
	}
	springs(t, traps)
}

// OldKey and the SQL of times are expressions of the Spec. Each must be a single one.
func TestOldKey(t *testing.T) {
	var traps []trap
	for _, tt := range []struct{ name, expression string }{
		{"commit", `1); COMMIT; CREATE TABLE shop.forged (); SELECT (1`},
		{"parenthesis", `1)::bigint; DROP TABLE shop.secrets; CREATE TABLE shop.forged (); --`},
		{"semicolon", `1; CREATE TABLE shop.forged ()`},
		{"comment", `1 /* ) */ ); COMMIT; CREATE TABLE shop.forged (); --`},
		{"dollar quotes", `$rekey$; CREATE TABLE shop.forged (); $rekey$`},
		{"plain dollars", `$$1$$); COMMIT; CREATE TABLE shop.forged (); SELECT ($$1$$`},
		{"escape", `E'\'); COMMIT; CREATE TABLE shop.forged (); --'`},
		{"unicode", `U&'\0027' UESCAPE '!'); COMMIT; CREATE TABLE shop.forged (); --`},
		{"newline", "1\n); COMMIT; CREATE TABLE shop.forged (); --"},
	} {
		for field, format := range map[string]string{"OldKey": `"old_key": %s`, "Times.SQL": `"times": {"column": "", "sql": %s}`} {
			key := fmt.Sprintf(format, jsonText(tt.expression))
			traps = append(traps, trap{name: tt.name + " in " + field, names: append([]string{field, "key of shop.orders"}, idle...), steps: []step{
				withKey(key), refused(inspect[0], expand), untouched, admin("SELECT FROM shop.secrets"),
			}})
		}
	}
	springs(t, traps)
}
