package hostile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/metrics"
	"github.com/sortkey/sortkey/migrations"
)

// The calls that only read.
var (
	readers = []call{
		sortkey("migrate status"), sortkey("migrate check"), sortkey("doctor"), sortkey("nodes list --all"), sortkey("partitions list"), sortkey("rekey status"), sortkey("rekey inspect {spec}"),
		sortkey("audit shop.orders --type snowflake --serial-until 9"), sortkey("sqlc --types example.com/x/key"), sortkey("sqlc --types example.com/x/key --gorm"), sortkey("sqlc --typescript"), status, readConfig, check, checkDefaults, checkOwner, scrape, planPartitions,
	}
	status     = library("Status", func(ctx context.Context, db *sql.DB) error { _, err := migrations.Status(ctx, db, config); return err })
	readConfig = library("Installed", func(ctx context.Context, db *sql.DB) error {
		_, err := migrations.Installed(ctx, db, "")
		return err
	})
	check         = library("Check", func(ctx context.Context, db *sql.DB) error { return migrations.Check(ctx, db, config) })
	checkDefaults = library("CheckDefaults", func(ctx context.Context, db *sql.DB) error { return migrations.CheckDefaults(ctx, db, config) })
	checkOwner    = library("CheckOwner", func(ctx context.Context, db *sql.DB) error { return migrations.CheckOwner(ctx, db, config) })
	// scrape has no error: a scrape that fails sets a metric. Its timeout lets the search for
	// findings end before the next call.
	scrape = library("metrics", func(_ context.Context, db *sql.DB) error {
		r := prometheus.NewRegistry()
		r.MustRegister(metrics.NewCollector(metrics.Database("shop", db, metrics.DatabaseOptions{Timeout: time.Minute})))
		_, err := r.Gather()
		return err
	})
	planPartitions = library("MaintainPartitions(DryRun)", func(ctx context.Context, db *sql.DB) error {
		_, err := migrations.MaintainPartitions(ctx, db, config, migrations.PartitionOptions{DryRun: true})
		return err
	})
	planPartitionsInSQL = statement("SELECT * FROM sortkey.plan_partitions()")
)

// The calls that write.
var (
	up       = library("Up", func(ctx context.Context, db *sql.DB) error { return migrations.Up(ctx, db, config) })
	down     = library("Down", func(ctx context.Context, db *sql.DB) error { return migrations.Down(ctx, db, config) })
	maintain = library("MaintainPartitions", func(ctx context.Context, db *sql.DB) error {
		_, err := migrations.MaintainPartitions(ctx, db, config, migrations.PartitionOptions{})
		return err
	})
	writers = []call{sortkey("nodes reserve snowflake 5"), sortkey("nodes release snowflake 5"), sortkey("partitions run"), sortkey("rekey expand {spec}"), sortkey("rekey abort"), maintain}
	removal = []call{sortkey("migrate down --yes"), down}
)

// config is the Config of the library's calls.
var config = migrations.Config{}

// absent are parts of the errors of calls that find no installation, and no rekey.
var absent = []string{"not installed", "no installation", "has no table sortkey.", "has begun; run expand", "abort has nothing to do", "does not exist"}

// layout is the layout of an installation with the default Config.
var layout = idtype.DefaultSnowflakeLayout().Fingerprint()

// tables are the tables by which programs recognize an installation, with their rows.
// Each %s stands for a type of the version.
const tables = `
CREATE TABLE sortkey.revision (version %s PRIMARY KEY, name text NOT NULL DEFAULT '', installed_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE sortkey.layout (format text PRIMARY KEY, layout text NOT NULL);
INSERT INTO sortkey.revision (version) SELECT generate_series(1, 9);
INSERT INTO sortkey.layout VALUES ('snowflake', '{layout}');
GRANT ALL ON sortkey.revision, sortkey.layout TO PUBLIC;
`

// fakeViews are views of an installation that call the payload.
const fakeViews = `
CREATE VIEW sortkey.node_status AS SELECT 'snowflake'::text AS pool, 1 AS number, 'held'::text AS state, 'x'::text AS holder, now() AS mark WHERE mallory.payload();
CREATE VIEW sortkey.node_problems AS SELECT true AS no_node, 'x'::text AS problem, 'snowflake'::text AS pool, 1 AS number WHERE mallory.payload();
CREATE VIEW sortkey.node_defaults AS SELECT 'x'::text AS kind, 'x'::text AS name, 1 AS number, false AS from_setting WHERE mallory.payload();
CREATE VIEW sortkey.node_pool AS SELECT 'x'::text AS name, 1 AS size, 'x'::text AS layout, now() AS fenced_until WHERE mallory.payload();
CREATE VIEW sortkey.node_lease AS SELECT 'x'::text AS pool, 1 AS number WHERE mallory.payload();
CREATE VIEW sortkey.partitioned_table AS SELECT 'shop.orders'::regclass AS parent, 'snowflake'::text AS format, interval '1 day' AS every WHERE mallory.payload();
CREATE VIEW sortkey.partition_log AS SELECT 'x'::text AS parent_table, now() AS ended_at, 'x'::text AS action, 'x'::text AS outcome WHERE mallory.payload();
CREATE VIEW sortkey.partition_horizon AS SELECT 'x'::text AS parent_table, now() AS horizon WHERE mallory.payload();
CREATE FUNCTION sortkey.reserve_node(text, integer, text, boolean DEFAULT false) RETURNS void LANGUAGE sql AS 'SELECT mallory.payload()';
CREATE FUNCTION sortkey.unreserve_node(text, integer, timestamptz DEFAULT NULL) RETURNS void LANGUAGE sql AS 'SELECT mallory.payload()';
CREATE FUNCTION sortkey.plan_partitions(regclass DEFAULT NULL, timestamptz DEFAULT now()) RETURNS boolean LANGUAGE sql AS 'SELECT mallory.payload()';
CREATE FUNCTION sortkey.snowflake_time(bigint) RETURNS timestamptz LANGUAGE sql AS 'SELECT now() FROM mallory.payload()';
CREATE FUNCTION sortkey.snowflake_node(bigint) RETURNS integer LANGUAGE sql AS 'SELECT 1 FROM mallory.payload()';
GRANT ALL ON ALL TABLES IN SCHEMA sortkey TO PUBLIC;
`

// squatted is a schema sortkey of mallory that everybody may use.
const squatted = "CREATE SCHEMA sortkey; GRANT ALL ON SCHEMA sortkey TO PUBLIC;"

// fake returns the steps of a trap in which mallory has created the schema sortkey with SQL.
func fake(sql string) []step {
	return []step{
		mallory(squatted + strings.ReplaceAll(sql, "{layout}", layout)),
		calls(readers...), calls(writers...),
		refused(sortkey("migrate up"), up), calls(removal...),
	}
}

// Mallory creates schemas and tables with the names of an installation before the
// administrator installs anything.
func TestInstall(t *testing.T) {
	names := append([]string{"sortkey.", "sortkey_internal", "schema sortkey", `schema "sortkey"`}, absent...)
	integers := fmt.Sprintf(tables, "integer")
	springs(t, []trap{
		{name: "view revision", bare: true, names: names, steps: fake(`
			CREATE VIEW sortkey.revision AS SELECT i AS version, 'x' AS name, now() AS installed_at FROM generate_series(1, 9) i WHERE mallory.payload();
			CREATE VIEW sortkey.layout AS SELECT 'snowflake' AS format, '{layout}' AS layout WHERE mallory.payload();` + fakeViews)},
		{name: "triggers and rules", bare: true, names: names, steps: fake(integers + `
			CREATE TRIGGER fire BEFORE INSERT OR UPDATE OR DELETE ON sortkey.revision FOR EACH ROW EXECUTE FUNCTION mallory.fire();
			CREATE RULE r AS ON DELETE TO sortkey.layout DO ALSO SELECT mallory.payload();
			CREATE TABLE sortkey.node_lease (); CREATE SCHEMA sortkey_internal; CREATE SEQUENCE sortkey_internal.snowflake_clock; GRANT ALL ON SCHEMA sortkey_internal TO PUBLIC;`)},
		{name: "internal schema", bare: true, names: names, steps: []step{
			mallory(`CREATE SCHEMA sortkey_internal; GRANT ALL ON SCHEMA sortkey_internal TO PUBLIC`),
			calls(readers...), refused(sortkey("migrate up"), up), calls(removal...),
		}},
		{name: "role", bare: true, names: append([]string{"acts as role {mallory}: run RESET ROLE", "permission denied"}, names...), steps: []step{
			func(w *world) { w.asRoot("ALTER DATABASE {db} SET role = {mallory}") }, // of a superuser; others may not set it
			calls(readers...), func(w *world) {
				if w.super {
					refused(up)(w)
				}
			},
			func(w *world) { w.asRoot("ALTER DATABASE {db} RESET role") },
			allowed(sortkey("migrate up"), up), calls(removal...),
		}},
		{name: "race", bare: true, names: names, steps: []step{raceForInternal, calls(readers...), calls(removal...)}},
		{name: "schema", bare: true, names: names, steps: []step{
			mallory(squatted), calls(readers...), refused(sortkey("migrate up"), up), calls(removal...),
		}},
		{name: "right tables", bare: true, names: names, steps: fake(integers + fakeViews)},
		{name: "policy", bare: true, names: names, steps: fake(integers + `
			ALTER TABLE sortkey.revision ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON sortkey.revision USING (mallory.payload());
			ALTER TABLE sortkey.layout ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON sortkey.layout USING (mallory.payload());`)},
		{name: "types", bare: true, names: names, steps: fake(`
			CREATE DOMAIN mallory.version AS integer CHECK (mallory.payload());
			CREATE TYPE mallory.form AS ENUM ('snowflake');
			CREATE FUNCTION mallory.text(mallory.form) RETURNS text LANGUAGE sql AS 'SELECT ''snowflake'' FROM mallory.payload()';
			CREATE CAST (mallory.form AS text) WITH FUNCTION mallory.text(mallory.form) AS IMPLICIT;` +
			strings.Replace(fmt.Sprintf(tables, "mallory.version"), "format text", "format mallory.form", 1))},
		{name: "children", bare: true, names: names, steps: fake(integers + `
			CREATE TABLE mallory.child () INHERITS (sortkey.revision); INSERT INTO mallory.child (version) VALUES (99);`)},
		{name: "domains", bare: true, names: names, steps: []step{
			mallory(squatted + `CREATE DOMAIN sortkey.snowflake AS bigint CHECK (mallory.payload()); CREATE TABLE mallory.t (id sortkey.snowflake PRIMARY KEY)`),
			calls(readers...), refused(sortkey("migrate up"), up), calls(sortkey("audit mallory.t")),
		}},
	})
}

// raceForInternal calls Up while mallory creates one of the two schemas, after Up has looked for
// them: Up waits for the creation of the other schema, which mallory then rolls back.
func raceForInternal(w *world) {
	w.t.Helper()
	w.before, w.stale = w.look(), true // mallory gets rights to the schema
	w.evil.SetMaxOpenConns(2)
	defer w.evil.SetMaxOpenConns(1)
	first, err := w.evil.BeginTx(w.t.Context(), nil)
	must(w.t, err)
	defer first.Rollback() //nolint:errcheck // usually rolled back before
	_, err = first.ExecContext(w.t.Context(), "CREATE SCHEMA sortkey")
	must(w.t, err)
	done := make(chan outcome, 1)
	go func() { done <- up.do(w) }()
	pgtest.Eventually(w.t, "Up waits for mallory", func() error {
		if !pgtest.Value[bool](w.t, w.watch, "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted)") {
			return errors.New("not yet")
		}
		return nil
	})
	w.exec(w.evil, "CREATE SCHEMA sortkey_internal; GRANT ALL ON SCHEMA sortkey_internal TO PUBLIC")
	must(w.t, first.Rollback())
	o := <-done
	if !o.failed {
		w.t.Error("Up in a race: want an error")
	}
	w.check(call{name: "Up in a race"}, o)
}

// overloads creates a function with other argument types for each function of the
// installation. A call with these types would prefer it.
const overloads = `DO $do$
DECLARE
	f record;
	types text;
BEGIN
	FOR f IN SELECT p.*, n.nspname FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname IN ('sortkey', 'sortkey_internal') AND p.proargmodes IS NULL AND p.prokind = 'f' LOOP
		types := (SELECT string_agg(format_type(CASE t WHEN 'bigint'::regtype THEN 'integer'::regtype WHEN 'integer'::regtype THEN 'bigint'::regtype
			WHEN 'text'::regtype THEN 'name'::regtype WHEN 'regclass'::regtype THEN 'oid'::regtype ELSE t END, NULL), ', ' ORDER BY o) FROM unnest(f.proargtypes::oid[]) WITH ORDINALITY u (t, o));
		CONTINUE WHEN types IS NULL;
		BEGIN
			EXECUTE format('CREATE FUNCTION %I.%I(%s) RETURNS %s LANGUAGE plpgsql AS ''BEGIN PERFORM mallory.payload(); RETURN NULL; END''', f.nspname, f.proname, types, format_type(f.prorettype, NULL));
		EXCEPTION WHEN OTHERS THEN -- it exists
		END;
	END LOOP;
END
$do$;`

// The administrator has installed the SQL, and has granted mallory too much.
func TestGrants(t *testing.T) {
	all := append(append([]call{}, readers...), writers...)
	springs(t, []trap{
		{name: "trigger on revision", names: append([]string{"trigger ", "sortkey.revision"}, absent...), steps: []step{
			admin("GRANT TRIGGER ON sortkey.revision TO {mallory}; GRANT USAGE ON SCHEMA sortkey TO {mallory}"),
			mallory("CREATE TRIGGER fire BEFORE INSERT OR UPDATE OR DELETE ON sortkey.revision FOR EACH ROW EXECUTE FUNCTION mallory.fire()"),
			admin("REVOKE TRIGGER ON sortkey.revision FROM {mallory}"), // the trigger stays
			calls(all...), calls(removal...), calls(sortkey("migrate up"), up),
		}},
		{name: "create in schema", names: append([]string{"schema sortkey", "sortkey."}, absent...), steps: []step{
			admin("GRANT USAGE, CREATE ON SCHEMA sortkey TO {mallory}; GRANT USAGE ON SCHEMA sortkey_internal TO {mallory}"),
			mallory(overloads + `CREATE FUNCTION sortkey.op(bigint, integer) RETURNS boolean LANGUAGE sql AS 'SELECT mallory.payload()';
				CREATE OPERATOR sortkey.= (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = sortkey.op)`),
			admin("REVOKE ALL ON SCHEMA sortkey FROM {mallory}"), // the functions stay
			calls(all...), refused(sortkey("migrate up")), calls(removal...),
		}},
		{name: "create in internal schema", names: append([]string{"sortkey_internal"}, absent...), steps: []step{
			admin("GRANT USAGE, CREATE ON SCHEMA sortkey_internal TO {mallory}; GRANT USAGE ON SCHEMA sortkey TO {mallory}"), mallory(overloads),
			calls(all...), refused(sortkey("migrate up")), calls(removal...),
		}},
		{name: "trigger on partition_log", names: append([]string{"trigger ", "partition_log", "shop.events"}, absent...), steps: []step{
			admin("GRANT TRIGGER ON sortkey.partition_log, sortkey.node_lease TO {mallory}; GRANT USAGE ON SCHEMA sortkey TO {mallory}; " + managed),
			mallory(`CREATE TRIGGER fire BEFORE INSERT OR UPDATE OR DELETE ON sortkey.partition_log FOR EACH ROW EXECUTE FUNCTION mallory.fire();
				CREATE TRIGGER fire BEFORE INSERT OR UPDATE OR DELETE ON sortkey.node_lease FOR EACH ROW EXECUTE FUNCTION mallory.fire()`),
			admin("REVOKE TRIGGER ON sortkey.partition_log, sortkey.node_lease FROM {mallory}"),
			calls(all...), calls(removal...),
		}},
		// The function of the trigger is the server's, and mallory's code is in WHEN.
		{name: "trigger with a condition", names: append([]string{"trigger ", "shop.events"}, absent...), steps: []step{
			admin("GRANT TRIGGER ON ALL TABLES IN SCHEMA sortkey TO {mallory}; GRANT USAGE ON SCHEMA sortkey TO {mallory}; " + managed),
			mallory(`CREATE DOMAIN mallory.d AS boolean CHECK (mallory.payload());
				DO $$ DECLARE t text; BEGIN FOREACH t IN ARRAY '{revision,layout,node_pool,node_lease,partition_settings,partition_log}'::text[] LOOP
					EXECUTE format('CREATE TRIGGER fire BEFORE INSERT OR UPDATE OR DELETE ON sortkey.%I FOR EACH ROW WHEN (NOT true::mallory.d) EXECUTE FUNCTION pg_catalog.suppress_redundant_updates_trigger()', t);
				END LOOP; END $$`),
			admin("REVOKE TRIGGER ON ALL TABLES IN SCHEMA sortkey FROM {mallory}"), // the triggers stay
			refused(sortkey("nodes reserve snowflake 5"), sortkey("partitions run"), sortkey("doctor"), up, down, maintain, checkOwner), calls(all...), calls(statement("CALL sortkey.maintain_partitions()")),
		}},
		{name: "write to layout", names: append([]string{"layout"}, absent...), steps: []step{
			admin("GRANT UPDATE (layout) ON sortkey.layout TO {mallory}; GRANT USAGE ON SCHEMA sortkey TO {mallory}"),
			mallory("UPDATE sortkey.layout SET layout = E'epoch x\\x1b[31m'"),
			calls(all...), calls(check, sortkey("migrate up")),
		}},
	})
}

// managed is a partitioned table of the administrator.
const managed = `CREATE TABLE shop.events (id sortkey.snowflake PRIMARY KEY) PARTITION BY RANGE (id); SELECT sortkey.manage_partitions('shop.events', '1 day');`

// shadows creates functions and operators with the names and the argument types that the server has
// for its own. They call the payload and then the original.
const shadows = `
ALTER FUNCTION mallory.payload() SET search_path = pg_catalog;
DO $do$
DECLARE
	common CONSTANT oid[] := ARRAY['int2', 'int4', 'int8', 'text', 'name', 'bool', 'oid', 'timestamptz', 'interval', 'text[]', '"char"', 'jsonb', 'regclass', 'regtype', 'numeric', 'float8', 'uuid', 'oid[]', 'int2[]']::regtype[]::oid[];
	o record;
BEGIN
	FOR o IN SELECT p.oprname, format_type(p.oprleft, NULL) AS l, format_type(p.oprright, NULL) AS r, format_type(p.oprresult, NULL) AS t, row_number() OVER () AS n FROM pg_operator p
		WHERE p.oprnamespace = 'pg_catalog'::regnamespace AND p.oprleft = ANY (common) AND p.oprright = ANY (common) AND p.oprresult = ANY (common)
	LOOP
		EXECUTE format('CREATE FUNCTION mallory.o%s(%s, %s) RETURNS %s LANGUAGE plpgsql AS ''BEGIN PERFORM mallory.payload(); RETURN $1 OPERATOR(pg_catalog.%s) $2; END''', o.n, o.l, o.r, o.t, o.oprname);
		EXECUTE format('CREATE OPERATOR mallory.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = mallory.o%s)', o.oprname, o.l, o.r, o.n);
	END LOOP;
	FOR o IN SELECT p.proname, pg_get_function_identity_arguments(p.oid) AS arguments, format_type(p.prorettype, NULL) AS t, (SELECT string_agg('$' || i, ', ') FROM generate_series(1, p.pronargs) i) AS passed
		FROM pg_proc p WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f' AND NOT p.proretset AND p.provariadic = 0 AND p.proargmodes IS NULL AND p.prorettype = ANY (common) AND p.proargtypes::oid[] <@ common
			AND p.proname ~ '^(to_reg|has_|pg_(has_role|get|describe|advisory|try|backend|sequence|table|relation|is_in)|quote_|current_s|current_d|now|clock|array_|set_config|format|obj_desc|col_desc|hash|substr|left$|right$|upper|lower|replace|length|isfinite|date_|extract|row_security|inet_|version|parse_ident|starts_|floor|ceil|abs|mod|md5)'
	LOOP
		BEGIN
			EXECUTE format('CREATE FUNCTION mallory.%I(%s) RETURNS %s LANGUAGE plpgsql AS ''BEGIN PERFORM mallory.payload(); RETURN pg_catalog.%1$I(%s); END''', o.proname, o.arguments, o.t, o.passed);
		EXCEPTION WHEN OTHERS THEN -- such as two names of a type
		END;
	END LOOP;
END
$do$;
-- These match some calls better than the functions of the server.
CREATE FUNCTION mallory.format(text, name) RETURNS text LANGUAGE plpgsql AS 'BEGIN PERFORM mallory.payload(); RETURN pg_catalog.format($1, $2); END';
CREATE FUNCTION mallory.format(text, text) RETURNS text LANGUAGE plpgsql AS 'BEGIN PERFORM mallory.payload(); RETURN pg_catalog.format($1, $2); END';
CREATE FUNCTION mallory.format(text, name, name) RETURNS text LANGUAGE plpgsql AS 'BEGIN PERFORM mallory.payload(); RETURN pg_catalog.format($1, $2, $3); END';
CREATE FUNCTION mallory.format(text, text, text) RETURNS text LANGUAGE plpgsql AS 'BEGIN PERFORM mallory.payload(); RETURN pg_catalog.format($1, $2, $3); END';
CREATE FUNCTION mallory.pair(oid, regclass) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN PERFORM mallory.payload(); RETURN $1 OPERATOR(pg_catalog.=) $2::oid; END';
CREATE OPERATOR mallory.= (LEFTARG = oid, RIGHTARG = regclass, FUNCTION = mallory.pair);
CREATE FUNCTION mallory.pair(name, text) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN PERFORM mallory.payload(); RETURN $1::text OPERATOR(pg_catalog.=) $2; END';
CREATE FUNCTION mallory.pair("char", text) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN PERFORM mallory.payload(); RETURN $1::text OPERATOR(pg_catalog.=) $2; END';
CREATE OPERATOR mallory.= (LEFTARG = "char", RIGHTARG = text, FUNCTION = mallory.pair);
CREATE FUNCTION mallory.times(bigint, interval) RETURNS interval LANGUAGE plpgsql AS 'BEGIN PERFORM mallory.payload(); RETURN $2; END';
CREATE OPERATOR mallory.* (LEFTARG = bigint, RIGHTARG = interval, FUNCTION = mallory.times);
CREATE TYPE mallory.text AS ENUM ('x'); CREATE TYPE mallory.regclass AS ENUM ('x'); CREATE TYPE mallory.oid AS ENUM ('x');
CREATE TABLE mallory.revision (); CREATE TABLE mallory.pg_class (); CREATE TABLE mallory.pg_namespace (); CREATE TABLE mallory.layout (); CREATE TABLE mallory.node_status (); CREATE TABLE mallory.pg_roles ();
`

// settings is a step that sets parameters of new sessions of the administrator, as the owner of the
// database or the role could: ALTER DATABASE or ALTER ROLE.
func settings(target string, parameters ...string) step {
	return func(w *world) {
		for _, p := range parameters {
			w.asRoot("ALTER " + target + " " + strings.ReplaceAll(p, "{odd strings}", w.OddStrings()))
		}
	}
}

// withAttributes returns a step that takes another one with a connection string that asks for the
// primary: pgx asks the server whether it is one.
func withAttributes(s step) step {
	return func(w *world) {
		w.t.Helper()
		url := w.url
		defer func() { w.url = url }()
		w.url += map[bool]string{true: "&", false: "?"}[strings.Contains(url, "?")] + "target_session_attrs=primary"
		s(w)
	}
}

// The sessions of the administrator have settings of the database or of the role that change what
// names, texts and times mean, and which role acts.
func TestSettings(t *testing.T) {
	names := append([]string{"shop.orders", "acts as role {mallory}: run RESET ROLE", "permission denied"}, absent...)
	unusual := []string{"SET standard_conforming_strings = {odd strings}", "SET row_security = off", "SET DateStyle = 'SQL, DMY'", "SET IntervalStyle = sql_standard", "SET bytea_output = escape"}
	var traps []trap
	for _, target := range []string{"DATABASE {db}", "ROLE {admin} IN DATABASE {db}"} {
		// As a path after pg_catalog, like a schema public in which every role can create objects, and before it.
		path := "SET search_path = shop, mallory"
		if strings.HasPrefix(target, "DATABASE") {
			path = "SET search_path = mallory, shop, pg_catalog"
		}
		of := "of the " + strings.ToLower(strings.Fields(target)[0])
		traps = append(traps, trap{name: of, bare: true, names: names, steps: []step{
			mallory(shadows), settings(target, append(unusual, path, "SET role = {mallory}")...),
			// The command resets the role. The library works on the sessions of its caller.
			allowed(sortkey("migrate up"), sortkey("migrate check"), sortkey("doctor"), sortkey("nodes list"), sortkey("audit shop.orders --type snowflake --serial-until 9"), sortkey("partitions run")), calls(up, down),
			settings(target, "RESET role"), allowed(up), calls(readers...),
			allowed(sortkey("rekey inspect {spec} --sql"), sortkey("rekey expand {spec}"), sortkey("rekey backfill"), sortkey("rekey validate"), sortkey("rekey status"), sortkey("doctor"), sortkey("rekey contract"), sortkey("rekey undo"), sortkey("rekey contract --cleanup --yes")),
			calls(sortkey("audit orders --type snowflake --serial-until 9"), sortkey("partitions run"), maintain), refused(removal...),
		}}, trap{name: "read-only " + of, names: []string{"read-only transaction", "shop.orders", "server-read-only"}, steps: []step{
			settings(target, "SET default_transaction_read_only = on"),
			calls(readers...), calls(sortkey("nodes reserve snowflake 5"), sortkey("partitions run"), sortkey("migrate up"), up, maintain), refused(removal...), refused(sortkey("rekey expand {spec}")),
		}})
	}
	traps = append(traps, trap{name: "functions", names: names, steps: []step{
		mallory(`ALTER FUNCTION mallory.payload() SET search_path = pg_catalog;
			CREATE FUNCTION mallory.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql AS 'BEGIN PERFORM mallory.payload(); RETURN pg_catalog.clock_timestamp(); END';
			CREATE FUNCTION mallory.pg_is_in_recovery() RETURNS boolean LANGUAGE plpgsql AS 'BEGIN PERFORM mallory.payload(); RETURN pg_catalog.pg_is_in_recovery(); END';
			CREATE FUNCTION mallory.set_config(text, text, boolean) RETURNS text LANGUAGE plpgsql AS 'BEGIN PERFORM mallory.payload(); RETURN pg_catalog.set_config($1, $2, $3); END'`),
		settings("DATABASE {db}", "SET search_path = mallory, pg_catalog"),
		allowed(sortkey("audit shop.orders --type snowflake --serial-until 9"), sortkey("doctor"), sortkey("partitions run")), withAttributes(allowed(sortkey("doctor"))), calls(readers...),
	}})
	springs(t, traps)
}

// A default of mallory's with a number that isn't reserved is a finding of CheckDefaults and
// of the commands. It doesn't keep programs from starting.
func TestDefaults(t *testing.T) {
	springs(t, []trap{{name: "unreserved number", names: []string{"mallory.t"}, steps: []step{
		admin("GRANT USAGE ON SCHEMA sortkey TO {mallory}; GRANT EXECUTE ON FUNCTION sortkey.next_snowflake(integer), sortkey.next_snowflake() TO {mallory}"),
		mallory(`CREATE TABLE mallory.t (id bigint DEFAULT sortkey.next_snowflake(5), other bigint DEFAULT sortkey.next_snowflake());
			CREATE TABLE mallory.u (id bigint DEFAULT sortkey.next_snowflake(length(mallory.payload()::text)))`),
		allowed(check, readConfig, up, sortkey("migrate up"), sortkey("migrate status"), sortkey("nodes list")),
		refused(checkDefaults), calls(sortkey("migrate check"), sortkey("doctor"), sortkey("nodes reserve snowflake 5")),
	}}, {name: "locked table", names: []string{"lock timeout"}, steps: []step{
		admin("GRANT USAGE ON SCHEMA sortkey TO {mallory}"), mallory(`CREATE TABLE mallory.t (id bigint DEFAULT sortkey.next_snowflake(5))`),
		func(w *world) {
			tx, err := w.evil.BeginTx(w.t.Context(), nil)
			must(w.t, err)
			_, err = tx.ExecContext(w.t.Context(), "LOCK TABLE mallory.t")
			must(w.t, err)
			refused(checkDefaults)(w) // soon
			allowed(check, sortkey("doctor"), scrape)(w)
			must(w.t, tx.Rollback())
		},
	}}})
}
