package migrations

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
)

// installPublic are the objects in the schema of an installation. Users call, read or write each
// of them. A function runs with the privileges of its definer or invoker, PUBLIC has EXECUTE or
// not, and the letters are its volatility and parallel safety in pg_proc.
var installPublic = []string{
	"definer vu: claim_node confirm_copy confirm_original release_node renew_node reserve_for_copy reserve_node unreserve_node",
	"domain: sno sno_as_text snowflake snowflake_si spread64 uid60 uuid7",
	"invoker PUBLIC is: sno_floor sno_from_text sno_node sno_partman_decoder sno_parts sno_text sno_time snowflake_floor snowflake_node snowflake_parts " +
		"snowflake_si_floor snowflake_si_node snowflake_si_parts snowflake_si_time snowflake_time spread64_from_text spread64_node spread64_parts " +
		"spread64_text spread64_time typeid_from_text typeid_text uid60_floor uid60_from_text uid60_parts uid60_text uid60_time uuid7_floor uuid7_time",
	"invoker PUBLIC vs: next_uuid7",
	"invoker PUBLIC vu: maintain_partitions manage_partitions next_partition_step plan_partitions sno_at snowflake_at snowflake_si_at spread64_at uid60_at unmanage_partitions uuid7_at",
	"invoker vu: create_node_pool next_sno next_sno next_sno_meta next_snowflake next_snowflake next_snowflake_si next_snowflake_si next_spread64 next_spread64 next_uid60 prepare_citus_worker",
	"relation: database_problems layout node_defaults node_home node_lease node_pool node_problems node_status partition_horizon partition_log partition_settings partitioned_table revision",
}

// The schema has no internal objects, and all of its objects have comments. Functions, relations
// and schemas have the intended privileges and flags in the catalog. No type and function have
// the same name. The definition of a next_ function, which a user can read in psql with \sf, is a
// short expression. No function qualifies operators.
func TestCatalog(t *testing.T) {
	installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		pool := db.SQL(t)
		const public = "EXISTS (SELECT FROM aclexplode(coalesce(proacl, acldefault('f', proowner))) WHERE grantee = 0)"
		wantRows(t, pool, `SELECT kind || ': ' || string_agg(name || CASE WHEN comment IS NULL THEN ' without a comment' ELSE '' END, ' ' ORDER BY name COLLATE "C") FROM (
				SELECT concat_ws(' ', CASE WHEN prosecdef THEN 'definer' ELSE 'invoker' END, CASE WHEN `+public+` THEN 'PUBLIC' END, provolatile::text || proparallel::text),
					proname, pronamespace, obj_description(oid, 'pg_proc') FROM pg_proc
				UNION ALL SELECT 'domain', typname, typnamespace, obj_description(oid, 'pg_type') FROM pg_type WHERE typtype = 'd'
				UNION ALL SELECT 'relation', relname, relnamespace, obj_description(oid, 'pg_class') FROM pg_class WHERE relkind <> 'i'
				UNION ALL SELECT 'type', typname, typnamespace, '' FROM pg_type WHERE typtype <> 'd' AND typrelid = 0 AND typelem = 0
				UNION ALL SELECT 'operator', oprname, oprnamespace, '' FROM pg_operator
				UNION ALL SELECT 'collation', collname, collnamespace, '' FROM pg_collation
			) o (kind, name, schema, comment) WHERE schema = 'sortkey'::regnamespace GROUP BY kind ORDER BY kind COLLATE "C"`, installPublic...)
		// Only roles with USAGE on the internal schema can call its functions by name. These run with the privileges of their owner.
		wantRows(t, pool, "SELECT proname || CASE WHEN "+public+` THEN '' ELSE ' without EXECUTE' END FROM pg_proc
			WHERE pronamespace = 'sortkey_internal'::regnamespace AND (prosecdef OR NOT `+public+`) ORDER BY proname COLLATE "C"`,
			"database_identity", "node_pools", "sno_id", "snowflake_id", "snowflake_si_id", "spread64_id", "uid60_id", "use_node")

		// Otherwise a call with a literal or a parameter would be a cast.
		wantRows(t, pool, `SELECT typname FROM pg_type t JOIN pg_proc p ON p.proname = t.typname AND p.pronamespace = t.typnamespace
			WHERE typnamespace = 'sortkey'::regnamespace`)
		wantRows(t, pool, "SELECT sortkey.sno_text('6272706b-3471-3732-7877-66326d36336c')", "brpk4q72xwf2m63l")
		wantLines(t, "a parameter", columnOf(t, pool, "SELECT sortkey.sno_text($1)", idtype.Must(idtype.ParseSno("brpk4q72xwf2m63l"))), "brpk4q72xwf2m63l")

		definitions := columnOf(t, pool, `SELECT pg_get_functiondef(oid) FROM pg_proc
			WHERE pronamespace = 'sortkey'::regnamespace AND proname ~ '^next_(snowflake|snowflake_si|uid60|spread64|sno|sno_meta)$'`)
		for _, d := range definitions {
			_, body, _ := strings.Cut(d, "LANGUAGE sql\n")
			body = strings.TrimSpace(body)
			if !strings.HasPrefix(body, "RETURN ") || strings.Count(body, "\n") > 2 || len(body) > 160 || strings.Contains(body, "OPERATOR(") {
				t.Errorf("expected a body of up to three lines and 160 characters, got\n%s", d)
			}
		}
		const functions = "SELECT oid::regprocedure FROM pg_proc WHERE pronamespace IN ('sortkey'::regnamespace, 'sortkey_internal'::regnamespace)"
		wantRows(t, pool, functions+` AND pg_get_functiondef(oid) ILIKE '%operator(pg\_catalog%'`)
		// With standard_conforming_strings off, a backslash in a string means something else, also with the privileges of an owner.
		wantRows(t, pool, functions+` AND prosecdef AND strpos(prosrc, E'\\') > 0`)

		// The definition is the same on all versions, so that a dump can be restored to an older one. SQL bodies
		// are parsed when a function is created.
		wantRows(t, pool, "SELECT (pg_get_function_sqlbody('sortkey.next_uuid7'::regproc) ~ 'uuid7_of_server.*uuid7_now')::text", "true")

		// Only the owner has privileges on sequences and tables, except USAGE on the clocks and SELECT on the tables that record the
		// installation.
		wantRows(t, pool, `SELECT format('%s may %s: ', grantee::regrole, privilege_type) || string_agg(relname, ' ' ORDER BY relname COLLATE "C") FROM pg_class, aclexplode(relacl)
			WHERE relnamespace IN ('sortkey'::regnamespace, 'sortkey_internal'::regnamespace) AND grantee <> relowner GROUP BY grantee, privilege_type ORDER BY privilege_type`,
			"- may SELECT: database_problems layout node_defaults node_problems partition_horizon partition_settings partitioned_table revision",
			"- may USAGE: sno_clock snowflake_clock snowflake_si_clock spread64_clock uid60_clock")
		wantRows(t, pool, `SELECT format('%s: %s may %s', nspname, grantee::regrole, privilege_type) FROM pg_namespace, aclexplode(nspacl)
			WHERE nspname IN ('sortkey', 'sortkey_internal') AND grantee <> nspowner`)
	})
}

// A role with EXECUTE on one next_ function can use it as a default, even without USAGE on the
// schema, and with USAGE it has no other access to the generators.
func TestInsertRole(t *testing.T) {
	installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		owner := db.SQL(t)
		setNode(t, db, "sortkey", installNode)
		name, _ := newRole(t, db, "writer")
		role := db.Conn(t, pgtest.Login(name))
		denied := func(statement string) {
			t.Helper()
			fails(t, role, "42501", statement) // insufficient_privilege
		}
		denied("SELECT sortkey.next_uid60()")
		db.Exec(t, "GRANT USAGE ON SCHEMA sortkey TO "+name)
		insert := func(g *format, signature, call string, node int) {
			t.Helper()
			denied("SELECT " + call)
			table, clock := fmt.Sprintf("of_%s_%d", g.name, node), "sortkey_internal."+g.name+"_clock"
			oid := columnOf(t, owner, "SELECT '"+clock+"'::regclass::oid")[0]
			db.Exec(t, fmt.Sprintf(`CREATE TABLE %s (id sortkey.%s PRIMARY KEY DEFAULT %s, n int);
				GRANT INSERT ON %[1]s TO %[4]s; GRANT EXECUTE ON FUNCTION sortkey.%[5]s TO %[4]s`, table, g.name, call, name, signature))
			for range 20 { // some calls begin a millisecond, and some continue it
				exec(t, role, "INSERT INTO "+table+" (n) SELECT generate_series(1, 100)")
			}
			db.Exec(t, "REVOKE USAGE ON SCHEMA sortkey FROM "+name)
			fresh := db.Conn(t, pgtest.Login(name)) // with no plan of the default
			exec(t, fresh, "INSERT INTO "+table+" (n) SELECT generate_series(1, 2000)")
			db.Exec(t, "GRANT USAGE ON SCHEMA sortkey TO "+name)
			wantRows(t, owner, "SELECT concat(count(*) FILTER (WHERE "+g.valid(node)+"), ' of ', count(*)) FROM "+table, "4000 of 4000")
			for _, statement := range []string{
				"SELECT nextval('" + clock + "')", "SELECT setval('" + clock + "', 1)", "SELECT currval('" + clock + "')", "SELECT setval(" + oid + "::regclass, 1)",
				"SELECT * FROM " + clock, "SELECT last_value FROM " + clock, "ALTER SEQUENCE " + clock + " RESTART", "DROP SEQUENCE " + clock,
				"COMMENT ON SEQUENCE " + clock + " IS 'x'", "GRANT USAGE ON SEQUENCE " + clock + " TO " + name,
				"SELECT sortkey_internal.advance('" + clock + "', '1970-01-01Z', 4, 24, 14, 0)", "SELECT sortkey_internal." + g.name + "_later(0)",
				"SELECT sortkey_internal." + g.name + "_id(1, 1)", "SELECT sortkey_internal.use_node('" + g.name + "', 1000000)",
				"SELECT * FROM sortkey_internal.node_pools('" + g.name + "', 1)",
				"ALTER FUNCTION sortkey." + signature + " SET search_path = public", "CREATE TABLE sortkey.t ()", "CREATE TABLE sortkey_internal.t ()", "SELECT id FROM " + table,
				"CREATE FUNCTION sortkey_internal.advance(text, text, integer, integer, integer, integer) RETURNS bigint LANGUAGE sql RETURN 1",
				"GRANT USAGE ON SCHEMA sortkey_internal TO " + name, "SELECT * FROM sortkey.node_lease", "SELECT sortkey.reserve_node('snowflake', 1, 'x')",
				"SELECT sortkey.create_node_pool('x', 1, 'x')",
			} {
				denied(statement)
			}
			for _, other := range genFormats() {
				for _, c := range []string{other.nextOf(other.node), other.next()} {
					if c != call {
						denied("SELECT " + c)
					}
				}
			}
			db.Exec(t, "REVOKE EXECUTE ON FUNCTION sortkey."+signature+" FROM "+name)
			denied("INSERT INTO " + table + " DEFAULT VALUES")
			wantRows(t, owner, "SELECT count(last_value) FROM "+clock, "1") // the owner sees the sequence
		}
		for _, g := range genFormats() {
			next, nextOf := g.signatures()
			insert(g, nextOf, g.nextOf(g.node), g.node)
			if g.hasNodes() {
				insert(g, next, g.next(), installNode)
			}
		}
	})
}

// trapSQL returns SQL that creates operators and functions in a schema. Use of one raises an
// error with the current role, and so does trap(). The list separates them by semicolons.
func trapSQL(schema, list string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE FUNCTION %s.trap() RETURNS bool LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'trapped %%', current_user; END$$;\n", schema)
	for i, trap := range strings.Split(list, ";") {
		name, rest, _ := strings.Cut(strings.TrimSpace(trap), "(")
		arguments, result, _ := strings.Cut(rest, ") ")
		function := name
		if symbol := !regexp.MustCompile(`^\w`).MatchString(name); symbol {
			function = fmt.Sprint("o", i)
		}
		fmt.Fprintf(&b, "CREATE FUNCTION %s.%s(%s) RETURNS %s LANGUAGE plpgsql IMMUTABLE AS $$BEGIN PERFORM %[1]s.trap(); RETURN NULL; END$$;\n", schema, function, arguments, result)
		if left, right, _ := strings.Cut(arguments, ", "); function != name {
			fmt.Fprintf(&b, "CREATE OPERATOR %s.%s (FUNCTION = %[1]s.%[3]s, LEFTARG = %[4]s, RIGHTARG = %[5]s);\n", schema, name, function, left, right)
		}
	}
	return b.String()
}

// installTraps are operators and functions with the types that the functions use.
const installTraps = `
	&(bigint, bigint) bigint; |(bigint, bigint) bigint; <<(bigint, integer) bigint; >>(bigint, integer) bigint;
	&(integer, integer) integer; |(integer, integer) integer; <<(integer, integer) integer; >>(integer, integer) integer;
	&(bigint, integer) bigint; +(bigint, bigint) bigint; +(bigint, integer) bigint; -(bigint, bigint) bigint;
	*(bigint, bigint) bigint; *(bigint, integer) bigint; /(bigint, bigint) bigint; /(bigint, float8) float8;
	/(float8, float8) float8; +(float8, float8) float8; *(float8, float8) float8; *(numeric, numeric) numeric;
	-(numeric, numeric) numeric; /(numeric, numeric) numeric; *(numeric, integer) numeric; -(numeric, bigint) numeric;
	/(numeric, integer) numeric; %(bigint, integer) bigint; %(integer, integer) integer; <(bigint, bigint) bool; <=(bigint, bigint) bool;
	>(bigint, bigint) bool; >=(bigint, bigint) bool; =(integer, integer) bool; =(bigint, integer) bool; =(bigint, bigint) bool;
	<(timestamptz, timestamptz) bool; >(integer, integer) bool; >(bigint, integer) bool; <>(bigint, integer) bool; >=(integer, integer) bool;
	<=(integer, integer) bool; ||(text, text) text; ||(text, anynonarray) text; ~(text, text) bool; !~(text, text) bool; =(text, text) bool;
	<>(text, text) bool; =(bytea, bytea) bool; <>(bytea, bytea) bool;
	nextval(regclass) bigint; nextval(text) bigint; setval(regclass, bigint) bigint; clock_timestamp() timestamptz;
	to_timestamp(float8) timestamptz; to_timestamp(bigint) timestamptz; format(text, VARIADIC text[]) text; reverse(text) text;
	get_byte(bytea, integer) integer; uuid_send(uuid) bytea; gen_random_uuid() uuid; to_hex(bigint) text; sno_digits(bigint) bigint;
	floor(numeric) numeric; pg_sleep(float8) bool; advance(regclass, timestamptz, integer, integer, integer, integer) bigint;
	advance(text, text, integer, integer, integer, integer) bigint; tstzrange_subdiff(timestamptz, timestamptz) float8; floor(float8) float8;
	random() float8; isfinite(timestamptz) bool; current_setting(text, boolean) text; current_setting(text) text;
	set_config(text, text, boolean) text; current_database() name; to_regclass(text) regclass; snowflake_bits(bigint) bigint;
	snowflake_of(bigint, bigint) bigint; snowflake_node_bits(integer) bigint; snowflake_later(bigint) bigint; snowflake_id(bigint, bigint) bigint;
	uuid_hash(uuid) integer; use_node(text, integer) bigint; sno_hex(bigint) text; substr(text, integer, integer) text; btrim(bytea, bytea) bytea;
	encode(bytea, text) text; left(text, integer) text; replace(text, text, text) text; pg_get_expr(pg_node_tree, oid) text;
	pg_sequence_last_value(regclass) bigint; pg_advisory_xact_lock(integer, integer) bool; int8(bit) bigint; bit(bigint, integer) bit; text(bit) text`

// installEvil returns SQL that creates these traps, and other objects of the caller, in schemas
// that come first in its search_path.
func installEvil() string {
	var b strings.Builder
	b.WriteString("CREATE SCHEMA evil;\n" + trapSQL("evil", installTraps))
	// Domains whose CHECK is a call, in this schema and in pg_temp, which is searched first for types. And a type with
	// an implicit cast from numbers.
	for _, schema := range []string{"evil", "pg_temp"} {
		for _, name := range []string{"text", "bytea", "uuid", "int8", "int4", "float8", "timestamptz", "bit", "regclass", "oid", "numeric"} {
			fmt.Fprintf(&b, "CREATE DOMAIN %s.%s AS pg_catalog.%[2]s CHECK (evil.trap());\n", schema, name)
		}
		for _, g := range genFormats() {
			fmt.Fprintf(&b, "CREATE SEQUENCE %s.%s_clock;\n", schema, g.name)
		}
	}
	b.WriteString(`CREATE TYPE evil.any_number AS (n pg_catalog.int8);
		CREATE FUNCTION evil.number(bigint) RETURNS evil.any_number LANGUAGE plpgsql AS $$BEGIN PERFORM evil.trap(); END$$;
		CREATE FUNCTION evil.number(integer) RETURNS evil.any_number LANGUAGE plpgsql AS $$BEGIN PERFORM evil.trap(); END$$;
		CREATE CAST (bigint AS evil.any_number) WITH FUNCTION evil.number(bigint) AS IMPLICIT;
		CREATE CAST (integer AS evil.any_number) WITH FUNCTION evil.number(integer) AS IMPLICIT;
		CREATE FUNCTION evil.o(evil.any_number, evil.any_number) RETURNS bigint LANGUAGE plpgsql AS $$BEGIN PERFORM evil.trap(); END$$;
		CREATE OPERATOR evil.| (FUNCTION = evil.o, LEFTARG = evil.any_number, RIGHTARG = evil.any_number);
		CREATE TEMPORARY TABLE value (value pg_catalog.int8);
		`)
	return b.String()
}

// A caller cannot use its own objects or settings to run code with the privileges of
// the functions' owner, or to change the generated IDs.
func TestHostileCaller(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		owner := db.Conn(t)
		setNode(t, db, "sortkey", installNode)
		name, _ := newRole(t, db, "caller")
		db.Exec(t, fmt.Sprintf("GRANT CREATE, TEMPORARY ON DATABASE %s TO %s; GRANT USAGE ON SCHEMA sortkey TO %[2]s", db.Name, name))
		for _, g := range genFormats() {
			next, nextOf := g.signatures()
			db.Exec(t, fmt.Sprintf("GRANT EXECUTE ON FUNCTION sortkey.%s TO %[3]s; GRANT EXECUTE ON FUNCTION sortkey.%[2]s TO %[3]s", next, nextOf, name))
			db.Exec(t, fmt.Sprintf("CREATE TABLE of_%s (id sortkey.%[1]s PRIMARY KEY); CREATE TABLE by_%[1]s (id sortkey.%[1]s PRIMARY KEY); GRANT INSERT ON of_%[1]s, by_%[1]s TO %s", g.name, name))
		}
		session := db.Conn(t, pgtest.Login(name))
		exec(t, session, installEvil())
		// The traps work if only the search_path decides. In a path without pg_catalog, pg_catalog comes first. Only for types, pg_temp comes before it.
		types, all := []string{"SELECT 'x'::pg_temp.bytea", "SELECT 'x'::text"}, []string{"SELECT 1::bigint & 1::bigint", "SELECT clock_timestamp()", "SELECT 'x'::text",
			"SELECT 'x'::pg_temp.bytea", "SELECT 1::bigint < 2::bigint", "SELECT nextval('pg_class'::pg_catalog.regclass)"}
		for path, baits := range map[string][]string{"evil, pg_temp, pg_catalog, public": all, "pg_temp, evil, pg_catalog, public": all, "evil, public": types} {
			exec(t, session, "SET search_path = "+path)
			for _, bait := range baits {
				fails(t, session, "P0001", bait, "trapped "+name)
			}
			for _, settings := range []string{"", `SET TimeZone = 'Pacific/Kiritimati'; SET DateStyle = 'SQL, DMY'; SET IntervalStyle = 'iso_8601'; SET bytea_output = 'escape';
				SET standard_conforming_strings = ` + db.OddStrings() + `; SET transform_null_equals = on; SET extra_float_digits = -15; SET array_nulls = off; SET quote_all_identifiers = on;
				SET default_transaction_isolation = 'serializable'; SET check_function_bodies = off; SET plan_cache_mode = force_generic_plan; SET from_collapse_limit = 1;
				SET backslash_quote = off; SET lc_time = 'C'; SET xmlbinary = 'hex'; SET enable_seqscan = off`} {
				exec(t, session, settings)
				for _, g := range genFormats() {
					for range 5 {
						exec(t, session, fmt.Sprintf("INSERT INTO public.of_%s SELECT %s FROM pg_catalog.generate_series(1, 300)", g.name, g.nextOf(g.node)))
					}
					calls := []string{g.name + "_time(%s)", g.name + "_parts(%s)"}
					if g.name == "uid60" {
						calls = append(calls, "uid60_at('2026-11-01Z', 1)", "uid60_from_text(sortkey.uid60_text(%s))", "uid60_floor('2026-11-01Z')")
					} else {
						exec(t, session, fmt.Sprintf("INSERT INTO public.by_%s SELECT %s FROM pg_catalog.generate_series(1, 300)", g.name, g.next()))
						calls = append(calls, g.name+"_node(%s)", g.name+"_at('2026-11-01Z', 1)", g.name+"_at('2026-11-01Z', 1, node => 3)")
					}
					for _, call := range append(calls, installOthers[g.name]...) {
						exec(t, session, "SELECT sortkey."+strings.ReplaceAll(call, "%s", g.nextOf(g.node)))
					}
					// Error messages are formatted with the privileges of the owner, too.
					for _, call := range installRefused[g.name] {
						fails(t, session, "22003", "SELECT sortkey."+call)
					}
				}
				exec(t, session, "SELECT FROM sortkey.node_defaults, sortkey.revision, sortkey.layout")
				// The setting is checked with the privileges of the owner.
				for value, code := range map[string]string{"": "55000", "22": "55000", "70000": "22023", "1; DROP TABLE x": "22023"} {
					exec(t, session, "SET sortkey.node = '"+value+"'")
					for _, g := range nodeFormats() {
						exec(t, session, "RESET sortkey."+g.name+"_node") // the number of this session
						fails(t, session, code, "SELECT "+g.next())
					}
				}
				exec(t, session, "RESET ALL; SET search_path = "+path)
			}
		}
		const count = "SELECT concat(count(*) FILTER (WHERE %s), ' of ', count(*)) FROM %s_%s"
		for _, g := range genFormats() {
			wantValue(t, owner, fmt.Sprintf(count, g.valid(g.node), "of", g.name), "9000 of 9000")
			if g.hasNodes() {
				wantValue(t, owner, fmt.Sprintf(count, g.valid(installNode), "by", g.name), "1800 of 1800")
			}
			// No call used the caller's own sequence.
			wantValue(t, session, fmt.Sprintf("SELECT pg_catalog.pg_sequence_last_value('evil.%s_clock'::pg_catalog.regclass) IS NULL", g.name), true)
		}
	})
}

// installRefused are calls with node numbers out of range.
var installRefused = map[string][]string{
	"snowflake":    {"next_snowflake(1024)", "next_snowflake(-1)", "next_snowflake(NULL)", "snowflake_at('2026-11-01Z', 4096, 1)", "snowflake_at('2026-11-01Z', 1, 1024)"},
	"snowflake_si": {"next_snowflake_si(32)", "next_snowflake_si(NULL)", "snowflake_si_at('2026-11-01Z', NULL, 1)"},
	"uid60":        {"uid60_at('2026-11-01Z', 512)"},
	"spread64":     {"next_spread64(1024)", "next_spread64(-1)", "next_spread64(NULL)", "spread64_at('2026-11-01Z', 64, 1)"},
	"sno":          {"next_sno(0, 256)", "next_sno(65536)", "next_sno(NULL, NULL)", "next_sno(NULL)", "next_sno_meta(256)", "sno_at('2026-11-01Z', 1, 1, 256)"},
}

// installOthers are calls of other functions, with %s for an ID.
var installOthers = map[string][]string{
	"snowflake":    {"snowflake_floor('2026-11-01Z')"},
	"snowflake_si": {"snowflake_si_floor('2026-11-01Z')"},
	"spread64":     {"spread64_from_text(sortkey.spread64_text(%s))"},
	"sno":          {"sno_from_text(sortkey.sno_text(%s))", "sno_floor('2026-11-01Z')", "sno_partman_decoder('6272706b-3471-3732-7877-66326d36336c')"},
}

// ALTER DEFAULT PRIVILEGES doesn't grant access to the protected objects, and if it
// revokes the privileges of PUBLIC, a role still needs only USAGE on the schema and
// EXECUTE on the functions that it calls.
func TestDefaultPrivileges(t *testing.T) {
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		ctx, pool := t.Context(), db.SQL(t)
		name, role := newRole(t, db, "favored")
		session := db.Conn(t, pgtest.Login(name))
		change := func(action, to string) {
			t.Helper()
			for _, objects := range []string{"SEQUENCES", "FUNCTIONS", "TABLES", "TYPES", "SCHEMAS"} {
				db.Exec(t, fmt.Sprintf("ALTER DEFAULT PRIVILEGES %s ALL ON %s %s %s, PUBLIC", action, objects, to, name))
			}
		}
		change("GRANT", "TO")
		must(t, migrations.Up(ctx, pool, complete))
		wantRows(t, pool, `SELECT format('%s may %s on %s', grantee::regrole, privilege_type, name) FROM (
				SELECT c.oid::regclass::text, relacl, relowner FROM pg_class c
				WHERE relnamespace = 'sortkey'::regnamespace OR relnamespace = 'sortkey_internal'::regnamespace AND relname LIKE '%\_clock'
				UNION ALL
				SELECT proname, proacl, proowner FROM pg_proc WHERE pronamespace = 'sortkey'::regnamespace AND (prosecdef OR proname ~ '^next_(snowflake|snowflake_si|uid60|spread64|sno|sno_meta)$')
				UNION ALL
				SELECT nspname, nspacl, nspowner FROM pg_namespace WHERE nspname = 'sortkey_internal'
			) o (name, acl, owner), aclexplode(acl) WHERE grantee <> owner
				AND NOT (name IN ('sortkey.revision', 'sortkey.layout', 'sortkey.node_defaults', 'sortkey.node_problems', 'sortkey.database_problems', 'sortkey.partition_settings', 'sortkey.partitioned_table', 'sortkey.partition_horizon') AND grantee = 0 AND privilege_type = 'SELECT'
				OR name LIKE '%\_clock' AND grantee = 0 AND privilege_type = 'USAGE')`) // only the owner
		for _, statement := range []string{"SELECT sortkey_internal.snowflake_id(1, 1)", "SELECT nextval('sortkey_internal.snowflake_clock')", "CREATE TABLE sortkey_internal.t ()",
			"SELECT sortkey.next_snowflake()", "SELECT sortkey.next_snowflake(1)", "DELETE FROM sortkey.layout", "INSERT INTO sortkey.node_lease VALUES ('x', 1)"} {
			fails(t, session, "42501", statement, "permission denied")
		}
		// The default still applies to other functions.
		wantRows(t, pool, "SELECT has_function_privilege('"+name+"', 'sortkey.sno_floor(timestamptz)', 'EXECUTE')::text", "true")
		must(t, migrations.Down(ctx, pool, complete))
		wantError(t, migrations.Check(ctx, role, complete), migrations.ErrNotInstalled)

		change("REVOKE", "FROM")
		must(t, migrations.Up(ctx, pool, complete))
		setNode(t, db, "sortkey", installNode)
		session = db.Conn(t, pgtest.Login(name)) // has the setting
		fails(t, session, "42501", "SELECT sortkey.snowflake_time(1)", "permission denied for schema sortkey")
		wantError(t, migrations.Check(ctx, role, complete), nil, "permission denied", "GRANT USAGE ON SCHEMA sortkey")
		db.Exec(t, "GRANT USAGE ON SCHEMA sortkey TO "+name)
		fails(t, session, "42501", "SELECT sortkey.snowflake_time(1)", "permission denied for function snowflake_time")
		installApplied(t, role, complete, len(migrationsOf(t, complete)))
		installDo(t, role, complete, migrations.Check, migrations.Up)
		for _, g := range genFormats() {
			next, nextOf := g.signatures()
			for signature, call := range map[string]string{nextOf: g.nextOf(g.node), next: g.next(), g.name + "_time": "sortkey." + g.name + "_time(NULL)"} {
				fails(t, session, "42501", "SELECT "+call, "permission denied for function")
				db.Exec(t, fmt.Sprintf("GRANT EXECUTE ON FUNCTION sortkey.%s TO %s", signature, name))
				exec(t, session, "SELECT "+call)
			}
		}
		fails(t, session, "42501", "SELECT sortkey_internal.snowflake_now()", "permission denied for schema sortkey_internal")
	})
}

// The package and its SQL use the operators and functions of pg_catalog, even if others
// in the role's search_path match the argument types better.
func TestShadowed(t *testing.T) {
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		ctx, pool := t.Context(), db.SQL(t)
		db.Exec(t, trapSQL("public", `
			/(bigint, float8) float8; <(numeric, integer) boolean; >(numeric, integer) boolean; >(numeric, bigint) boolean; *(numeric, integer) numeric;
			=(oid, regclass) boolean; *(bigint, interval) interval; ||(name, name) text; ||(text, name) text; ||(name, text) text; ||(text, bigint) text;
			format(text) text; format(text, text) text; format(text, text, text) text; format(text, integer) text; format(text, bigint) text;
			format(text, name) text; format(text, bigint, text) text; format(text, name, name) text;
			array_to_string(text[], text) text; hashtextextended(text, integer) bigint`))
		must(t, migrations.Up(ctx, pool, complete))
		db.Exec(t, "CREATE TABLE orders (id bigint DEFAULT sortkey.next_snowflake(7)); CREATE TABLE users (id bigint DEFAULT sortkey.next_snowflake())")
		must(t, migrations.Check(ctx, pool, complete))
		err := migrations.CheckDefaults(ctx, pool, complete)
		wantError(t, err, migrations.ErrUnreservedNode, "column public.orders.id uses unreserved number 7")
		wantError(t, err, migrations.ErrNoNode, "column public.users.id needs the setting sortkey.node")
		db.Exec(t, "DROP TABLE orders, users")

		db.Exec(t, `CREATE TABLE shadowed (id sortkey.snowflake PRIMARY KEY) PARTITION BY RANGE (id);
			SELECT sortkey.manage_partitions('shadowed', '1 day')`)
		for _, dry := range []bool{true, false} {
			steps, err := migrations.MaintainPartitions(t.Context(), pool, complete, migrations.PartitionOptions{Parent: "shadowed", DryRun: dry})
			if must(t, err); len(steps) != 6 {
				t.Errorf("expected 6 steps, got %v", steps)
			}
		}
		db.Exec(t, "DROP TABLE shadowed")
		wantRows(t, pool, `SELECT p.oid::regprocedure FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
			JOIN pg_operator o ON d.refclassid = 'pg_operator'::regclass AND d.refobjid = o.oid
			WHERE p.pronamespace IN ('sortkey'::regnamespace, 'sortkey_internal'::regnamespace) AND o.oprnamespace = 'public'::regnamespace`)
		for _, g := range genFormats() {
			query := fmt.Sprintf("SELECT sortkey.%[1]s_time(id), sortkey.%[1]s_parts(id), %[2]s = id FROM (SELECT %[3]s) t (id)", g.name, g.call("from_text", g.call("text", "id")), g.nextOf(g.node))
			if g.name != "spread64" {
				query += fmt.Sprintf(" WHERE id >= sortkey.%[1]s_floor('2026-01-01Z') AND id < sortkey.%[1]s_floor('infinity')", g.name)
			}
			wantRows(t, pool, "SELECT 'row' FROM ("+query+") t", "row")
		}
		// The migrations restore the role's search_path.
		wantRows(t, pool, "SHOW search_path", `"$user", public`)
		must(t, migrations.Down(t.Context(), pool, complete))
	})
}
