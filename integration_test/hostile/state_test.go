package hostile

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// jsonText returns a text as in JSON.
func jsonText(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// columns are the columns of rekey_state.
const columns = `only_row boolean PRIMARY KEY DEFAULT true, job text NOT NULL, step text NOT NULL, position integer NOT NULL, cursor text NOT NULL DEFAULT '', slots jsonb NOT NULL DEFAULT '{}', added text NOT NULL DEFAULT '[]',
	started_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now() - interval '3 days'`

// forged is the plan of a rekey whose actions, one per step, make mallory a superuser.
func forged() string {
	const grant = "DO $$ BEGIN PERFORM mallory.payload(); END $$"
	list := ""
	for i, step := range []string{"expand", "backfill", "validate", "contract", "abort"} {
		if i > 0 {
			list += ","
		}
		list += fmt.Sprintf(`{"step": %q, "kind": "ddl", "title": "x\u001b[31m\nforged: fine", "sql": [%s, "ALTER ROLE {mallory} SUPERUSER", "GRANT {prize} TO {mallory}"]}`, step, jsonText(grant))
	}
	return `{"Spec": {"keys": [{"table": "x\u001b[31m\nforged: fine", "format": "snowflake", "node": 1, "backfill_node": 2, "times": {"column": "at"}}]}, "Actions": [` + list + `], "Tables": [], "ReplicaRole": false}`
}

// jobSchema creates the schema of a rekey, as mallory.
const jobSchema = `CREATE SCHEMA rekeyed; GRANT ALL ON SCHEMA rekeyed TO PUBLIC; CREATE TABLE rekeyed.rekey_pending (key text, old_key text, new_key text); GRANT ALL ON rekeyed.rekey_pending TO PUBLIC;`

// table creates a table of the state with a job, a position and a step, as mallory.
func table(job string, position int, step string) string {
	return jobSchema + fmt.Sprintf(`CREATE TABLE rekeyed.rekey_state (%s); GRANT ALL ON rekeyed.rekey_state TO PUBLIC; INSERT INTO rekeyed.rekey_state (job, step, position) VALUES ($job$%s$job$, '%s', %d);
		DO $do$ BEGIN EXECUTE format('COMMENT ON TABLE rekeyed.rekey_state IS %%L', 'The plan and the progress of a rekey. SHA-256 of the plan: ' || (SELECT encode(sha256(convert_to(job, 'UTF8')), 'hex') FROM rekeyed.rekey_state)); END $do$`,
		columns, job, step, position)
}

// steps are all steps of a rekey, and the commands that read its state.
var steps = []call{
	sortkey("rekey status"), sortkey("doctor"), sortkey("rekey expand {spec}"), sortkey("rekey backfill"), sortkey("rekey validate"), sortkey("rekey contract"),
	after[0], after[1], after[2], after[3], sortkey("rekey abort"),
}

// Mallory creates or writes the table with the plan of a rekey. Its SQL would run with the
// administrator's rights.
func TestState(t *testing.T) {
	names := append([]string{"rekeyed"}, idle...)
	squat := func(name, sql string) trap {
		return trap{name: name, names: names, steps: []step{mallory(sql), calls(steps...), untouchedRoles}}
	}
	traps := []trap{
		squat("forged plan at expand", table(forged(), 0, "expand")),
		squat("trigger", table(forged(), 0, "expand")+`; CREATE TRIGGER fire BEFORE INSERT OR UPDATE OR DELETE ON rekeyed.rekey_state FOR EACH ROW EXECUTE FUNCTION mallory.fire()`),
		squat("schema", jobSchema),
		squat("view", jobSchema+`CREATE VIEW rekeyed.rekey_state AS SELECT true AS only_row, '{}'::text AS job, 'expand'::text AS step, 0 AS position, ''::text AS cursor, '[]'::text AS added, now() AS started_at, now() AS updated_at WHERE mallory.payload();
			GRANT ALL ON rekeyed.rekey_state TO PUBLIC`),
		squat("policy", table(forged(), 0, "expand")+`; ALTER TABLE rekeyed.rekey_state ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON rekeyed.rekey_state USING (mallory.payload())`),
		squat("position below 0", table(forged(), -1, "expand")),
		squat("position above the last", table(forged(), 1_000_000_000, "contract")),
		squat("no actions", table(`{"Actions": []}`, 0, "expand")),
		squat("null", table(`null`, 0, "expand")),
		squat("no JSON", table("x\x1b[31m", 0, "expand")),
		squat("no row", jobSchema+`CREATE TABLE rekeyed.rekey_state (`+columns+`); GRANT ALL ON rekeyed.rekey_state TO PUBLIC`),
		squat("other columns", jobSchema+`CREATE TABLE rekeyed.rekey_state (x integer); GRANT ALL ON rekeyed.rekey_state TO PUBLIC`),
		squat("forged plan at contract", table(forged(), 3, "contract")),
		squat("forged plan at abort", table(forged(), 4, "abort")),
	}

	// Mallory has a privilege on the tables that the administrator creates.
	for _, to := range []string{"{mallory}", "PUBLIC"} {
		rewrite := malloryTries("UPDATE rekeyed.rekey_state SET job = replace(job, '\"SQL\":[', '\"SQL\":[\"SELECT mallory.payload()\",'); UPDATE rekeyed.rekey_state SET job = replace(job, '\"sql\":[', '\"sql\":[\"SELECT mallory.payload()\",')")
		defaults := admin("ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO " + to + "; ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO " + to + "; ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO " + to)
		undo := admin("ALTER DEFAULT PRIVILEGES REVOKE ALL ON SCHEMAS FROM " + to + "; ALTER DEFAULT PRIVILEGES REVOKE ALL ON TABLES FROM " + to + "; ALTER DEFAULT PRIVILEGES REVOKE ALL ON FUNCTIONS FROM " + to + "; ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO PUBLIC")
		title := map[string]string{"{mallory}": "mallory", "PUBLIC": "PUBLIC"}[to]
		for i, c := range rest {
			if i == 2 || i == 3 {
				continue // status and doctor
			}
			before := []call{expand, rest[0], rest[1]}[:min(i+1, 3)]
			traps = append(traps, trap{name: "default privileges of " + title + " before " + c.name[len("sortkey rekey "):], names: names, steps: []step{
				defaults, allowed(before...), rewrite, calls(c), undo, rewrite, calls(c), calls(abort), untouchedRoles,
			}})
		}
	}

	// The administrator grants the privileges afterwards, and revokes them when mallory has used them.
	traps = append(traps, trap{name: "grants", names: append([]string{"digest"}, names...), steps: []step{
		allowed(expand), admin("GRANT USAGE ON SCHEMA rekeyed TO {mallory}; GRANT SELECT, UPDATE ON rekeyed.rekey_state TO {mallory}"),
		mallory("UPDATE rekeyed.rekey_state SET job = replace(job, '\"sql\":[', '\"sql\":[\"SELECT mallory.payload()\",')"), calls(steps...),
		admin("REVOKE ALL ON rekeyed.rekey_state FROM {mallory}"), calls(steps...), untouchedRoles,
	}})
	traps = append(traps, trap{name: "trigger with a condition", names: append([]string{"trigger"}, names...), steps: []step{
		allowed(expand), admin("GRANT USAGE ON SCHEMA rekeyed TO {mallory}; GRANT TRIGGER ON rekeyed.rekey_state, rekeyed.rekey_pending TO {mallory}"),
		mallory(`CREATE DOMAIN mallory.d AS boolean CHECK (mallory.payload());
			CREATE TRIGGER fire BEFORE INSERT OR UPDATE OR DELETE ON rekeyed.rekey_state FOR EACH ROW WHEN (NOT true::mallory.d) EXECUTE FUNCTION pg_catalog.suppress_redundant_updates_trigger();
			CREATE TRIGGER fire BEFORE INSERT OR UPDATE OR DELETE ON rekeyed.rekey_pending FOR EACH ROW WHEN (NOT true::mallory.d) EXECUTE FUNCTION pg_catalog.suppress_redundant_updates_trigger()`),
		calls(steps...), admin("REVOKE TRIGGER ON rekeyed.rekey_state, rekeyed.rekey_pending FROM {mallory}"), calls(steps...), untouchedRoles,
	}})
	springs(t, traps)
}

// untouchedRoles fails the test if mallory has got a role.
func untouchedRoles(w *world) {
	w.t.Helper()
	n := pgtest.Value[int](w.t, w.watch, w.rename.Replace(`SELECT count(*) FROM pg_roles WHERE rolname = '{mallory}' AND (rolsuper OR pg_has_role(oid, '{prize}', 'MEMBER'))`))
	if n > 0 {
		w.t.Error("mallory has got a role")
	}
}
