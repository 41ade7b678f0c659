package migrations

import (
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/internal/pgerror"
	"github.com/sortkey/sortkey/migrations"
)

// installLeases are the functions for leases of node numbers.
var installLeases = []string{"claim_node", "renew_node", "release_node", "reserve_node", "unreserve_node"}

// installOwners are the internal functions that run with the privileges of their
// owner.
var installOwners = regexp.MustCompile(`^((snowflake|snowflake_si|uid60|spread64|sno)_id|node_pools|use_node)$`)

// Functions, relations and schemas have the intended privileges and flags in the
// catalog.
func TestFunctionFlags(t *testing.T) {
	installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		pool := db.SQL(t)
		rows, err := pool.QueryContext(t.Context(), `SELECT proname, pronamespace = 'sortkey'::regnamespace, prosecdef, provolatile, proparallel,
			EXISTS (SELECT FROM aclexplode(coalesce(proacl, acldefault('f', proowner))) WHERE grantee = 0)
			FROM pg_proc WHERE pronamespace IN ('sortkey'::regnamespace, 'sortkey_internal'::regnamespace)`)
		must(t, err)
		defer rows.Close()
		count := map[string]int{}
		for rows.Next() {
			var name, volatility, parallel string
			var visible, definer, public bool
			must(t, rows.Scan(&name, &visible, &definer, &volatility, &parallel, &public))
			got := fmt.Sprintf("definer %t, public %t, %s%s", definer, public, volatility, parallel)
			var kind, want string
			format := slices.ContainsFunc(genFormats(), func(g genFormat) bool { return strings.HasPrefix(name, g.name+"_") })
			switch {
			case !visible: // only roles with USAGE on the schema can call these by name
				kind, want, got = "internal", fmt.Sprintf("definer %t, public true", installOwners.MatchString(name)), fmt.Sprintf("definer %t, public %t", definer, public)
			case slices.ContainsFunc(genFormats(), func(g genFormat) bool { return name == "next_"+g.name }):
				kind, want = "next", "definer false, public false, vu"
			case slices.Contains(installLeases, name):
				kind, want = "lease", "definer true, public false, vu"
			case format && strings.HasSuffix(name, "_at"):
				kind, want = "at", "definer false, public true, vu"
			case format:
				kind, want = "pure", "definer false, public true, is"
			default: // all other functions run with the privileges of the caller
				kind, want, got = "other", "definer false", fmt.Sprintf("definer %t", definer)
			}
			count[kind]++
			if got != want {
				t.Errorf("%s: expected %s, got %s", name, want, got)
			}
		}
		must(t, rows.Err())
		// Of the 5 formats: 5 times and parts, 4 nodes, 4 floors, 2 functions for each of 3 texts, and the decoder of Sno.
		if count["next"] != 9 || count["lease"] != len(installLeases) || count["at"] != 5 || count["pure"] != 25 || count["internal"] < 50 {
			t.Errorf("expected 9 next_ functions, %d for leases, 5 for past times, and 25 others, got %v", len(installLeases), count)
		}
		// Only the owner has privileges on sequences and tables, except USAGE on the clocks and SELECT on the tables that record the
		// installation.
		for _, line := range columnOf(t, pool, `SELECT format('%s: %s may %s', c.oid::regclass, grantee::regrole, privilege_type) FROM pg_class c, aclexplode(relacl)
			WHERE relnamespace IN ('sortkey'::regnamespace, 'sortkey_internal'::regnamespace) AND grantee <> relowner`) {
			if regexp.MustCompile(`^sortkey_internal\.\w+_clock: - may USAGE$`).MatchString(line) {
				continue
			}
			if !strings.HasSuffix(line, ": - may SELECT") || strings.HasPrefix(line, "sortkey_internal.") || strings.Contains(line, "node_") && !strings.HasPrefix(line, "sortkey.node_defaults:") && !strings.HasPrefix(line, "sortkey.node_problems:") {
				t.Errorf("unexpected privilege: %s", line)
			}
		}
		for _, line := range columnOf(t, pool, `SELECT format('%s: %s may %s', nspname, grantee::regrole, privilege_type) FROM pg_namespace, aclexplode(nspacl)
			WHERE nspname IN ('sortkey', 'sortkey_internal') AND grantee <> nspowner`) {
			t.Errorf("unexpected privilege: %s", line)
		}
	})
}

// A role with USAGE on the schema and EXECUTE on one next_ function can use it as a
// default, and has no other access to the generators.
func TestInsertRole(t *testing.T) {
	installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		ctx, owner := t.Context(), db.SQL(t)
		setNode(t, db, "sortkey", installNode)
		name, role := newRole(t, db, "writer")
		role.SetMaxOpenConns(1) // currval belongs to a session
		denied := func(statement string) {
			t.Helper()
			if _, err := role.ExecContext(ctx, statement); err == nil || !strings.Contains(err.Error(), "permission denied") && !strings.Contains(err.Error(), "must be owner") {
				t.Errorf("%s: expected a lack of privileges, got %v", statement, err)
			}
		}
		denied("SELECT sortkey.next_uid60()")
		db.Exec(t, "GRANT USAGE ON SCHEMA sortkey TO "+name)
		insert := func(g genFormat, signature, call string, node int) {
			t.Helper()
			denied("SELECT " + call)
			table, clock := fmt.Sprintf("of_%s_%d", g.name, node), "sortkey_internal."+g.name+"_clock"
			oid := columnOf(t, owner, "SELECT '"+clock+"'::regclass::oid")[0]
			db.Exec(t, fmt.Sprintf(`CREATE TABLE %s (id sortkey.%s PRIMARY KEY DEFAULT %s, n int);
				GRANT INSERT ON %[1]s TO %[4]s; GRANT EXECUTE ON FUNCTION sortkey.%[5]s TO %[4]s`, table, g.name, call, name, signature))
			for range 20 { // some calls begin a millisecond, and some continue it
				_, err := role.ExecContext(ctx, "INSERT INTO "+table+" (n) SELECT generate_series(1, 100)")
				must(t, err)
			}
			var good, all int
			must(t, owner.QueryRowContext(ctx, "SELECT count(*) FILTER (WHERE "+g.valid(node)+"), count(*) FROM "+table).Scan(&good, &all))
			if good != 2000 || all != 2000 {
				t.Errorf("expected 2000 valid IDs of %s, got %d of %d", call, good, all)
			}
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
			if before := columnOf(t, owner, "SELECT last_value::text FROM "+clock); len(before) != 1 {
				t.Error("expected the owner to see the sequence")
			}
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

// installTraps returns SQL that creates objects of the caller in schemas that come
// first in its search_path. Use of one raises an error with the current role.
func installTraps() string {
	var b strings.Builder
	b.WriteString(`CREATE SCHEMA evil;
		CREATE FUNCTION evil.trap() RETURNS bool LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'trapped %', current_user; END$$;
		`)
	trap := func(signature, result string) {
		fmt.Fprintf(&b, "CREATE FUNCTION evil.%s RETURNS %s LANGUAGE plpgsql AS $$BEGIN PERFORM evil.trap(); RETURN NULL; END$$;\n", signature, result)
	}
	// Operators, for all types that the functions can use.
	for i, o := range []struct{ operator, left, right, result string }{
		{"&", "bigint", "bigint", "bigint"}, {"|", "bigint", "bigint", "bigint"}, {"<<", "bigint", "integer", "bigint"}, {">>", "bigint", "integer", "bigint"},
		{"&", "integer", "integer", "integer"}, {"|", "integer", "integer", "integer"}, {"<<", "integer", "integer", "integer"}, {">>", "integer", "integer", "integer"},
		{"&", "bigint", "integer", "bigint"}, {"+", "bigint", "bigint", "bigint"}, {"+", "bigint", "integer", "bigint"}, {"-", "bigint", "bigint", "bigint"},
		{"*", "bigint", "bigint", "bigint"}, {"*", "bigint", "integer", "bigint"}, {"/", "bigint", "bigint", "bigint"}, {"/", "bigint", "double precision", "double precision"},
		{"/", "double precision", "double precision", "double precision"}, {"*", "numeric", "numeric", "numeric"}, {"-", "numeric", "numeric", "numeric"}, {"/", "numeric", "numeric", "numeric"},
		{"*", "numeric", "integer", "numeric"}, {"-", "numeric", "bigint", "numeric"}, {"/", "numeric", "integer", "numeric"},
		{"<", "bigint", "bigint", "bool"}, {"<=", "bigint", "bigint", "bool"}, {">", "bigint", "bigint", "bool"}, {">=", "bigint", "bigint", "bool"},
		{"=", "integer", "integer", "bool"}, {"=", "bigint", "integer", "bool"}, {"=", "bigint", "bigint", "bool"}, {"<", "timestamptz", "timestamptz", "bool"},
		{">", "integer", "integer", "bool"}, {">", "bigint", "integer", "bool"}, {"||", "text", "text", "text"}, {"||", "text", "anynonarray", "text"},
		{"<>", "bigint", "integer", "bool"}, {">=", "integer", "integer", "bool"}, {"<=", "integer", "integer", "bool"}, {"%", "bigint", "integer", "bigint"}, {"%", "integer", "integer", "integer"},
		{"+", "double precision", "double precision", "double precision"}, {"*", "double precision", "double precision", "double precision"},
		{"~", "text", "text", "bool"}, {"!~", "text", "text", "bool"}, {"=", "text", "text", "bool"}, {"<>", "text", "text", "bool"}, {"=", "bytea", "bytea", "bool"}, {"<>", "bytea", "bytea", "bool"},
	} {
		trap(fmt.Sprintf("o%d(%s, %s)", i, o.left, o.right), o.result)
		fmt.Fprintf(&b, "CREATE OPERATOR evil.%s (FUNCTION = evil.o%d, LEFTARG = %s, RIGHTARG = %s);\n", o.operator, i, o.left, o.right)
	}
	for _, f := range []struct{ signature, result string }{
		{"nextval(regclass)", "bigint"}, {"nextval(text)", "bigint"}, {"setval(regclass, bigint)", "bigint"}, {"clock_timestamp()", "timestamptz"},
		{"to_timestamp(double precision)", "timestamptz"}, {"to_timestamp(bigint)", "timestamptz"}, {"format(text, VARIADIC text[])", "text"},
		{"reverse(text)", "text"}, {"get_byte(bytea, integer)", "integer"}, {"uuid_send(uuid)", "bytea"}, {"gen_random_uuid()", "uuid"},
		{"to_hex(bigint)", "text"}, {"sno_digits(bigint)", "bigint"}, {"floor(numeric)", "numeric"}, {"pg_sleep(double precision)", "bool"},
		{"advance(regclass, timestamptz, integer, integer, integer, integer)", "bigint"}, {"advance(text, text, integer, integer, integer, integer)", "bigint"},
		{"tstzrange_subdiff(timestamptz, timestamptz)", "double precision"}, {"floor(double precision)", "double precision"}, {"random()", "double precision"}, {"isfinite(timestamptz)", "bool"},
		{"current_setting(text, boolean)", "text"}, {"current_setting(text)", "text"}, {"set_config(text, text, boolean)", "text"}, {"current_database()", "name"}, {"to_regclass(text)", "regclass"},
		{"snowflake_bits(bigint)", "bigint"}, {"snowflake_of(bigint, bigint)", "bigint"}, {"snowflake_node_bits(integer)", "bigint"}, {"snowflake_later(bigint)", "bigint"},
		{"snowflake_id(bigint, bigint)", "bigint"}, {"uuid_hash(uuid)", "integer"}, {"use_node(text, integer)", "bigint"}, {"sno_hex(bigint)", "text"}, {"substr(text, integer, integer)", "text"}, {"btrim(bytea, bytea)", "bytea"},
		{"encode(bytea, text)", "text"}, {"left(text, integer)", "text"}, {"replace(text, text, text)", "text"}, {"pg_get_expr(pg_node_tree, oid)", "text"},
		{"pg_sequence_last_value(regclass)", "bigint"}, {"pg_advisory_xact_lock(integer, integer)", "bool"}, {"int8(bit)", "bigint"}, {"bit(bigint, integer)", "bit"}, {"text(bit)", "text"},
	} {
		trap(f.signature, f.result)
	}
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
		ctx, owner := t.Context(), db.SQL(t)
		setNode(t, db, "sortkey", installNode)
		name, pool := newRole(t, db, "caller")
		db.Exec(t, fmt.Sprintf("GRANT CREATE, TEMPORARY ON DATABASE %s TO %s; GRANT USAGE ON SCHEMA sortkey TO %[2]s", db.Name, name))
		for _, g := range genFormats() {
			next, nextOf := g.signatures()
			db.Exec(t, fmt.Sprintf("GRANT EXECUTE ON FUNCTION sortkey.%s TO %[3]s; GRANT EXECUTE ON FUNCTION sortkey.%[2]s TO %[3]s", next, nextOf, name))
			db.Exec(t, fmt.Sprintf("CREATE TABLE of_%s (id sortkey.%[1]s PRIMARY KEY); CREATE TABLE by_%[1]s (id sortkey.%[1]s PRIMARY KEY); GRANT INSERT ON of_%[1]s, by_%[1]s TO %s", g.name, name))
		}
		session, err := pool.Conn(ctx)
		must(t, err)
		defer session.Close()
		exec := func(statement string) error {
			_, err := session.ExecContext(ctx, statement)
			return err
		}
		must(t, exec(installTraps()))
		for _, path := range []string{"evil, pg_temp, pg_catalog, public", "pg_temp, evil, pg_catalog, public", "evil, public"} {
			must(t, exec("SET search_path = "+path))
			// The traps work if only the search_path decides.
			for _, bait := range []string{"SELECT 1::bigint & 1::bigint", "SELECT clock_timestamp()", "SELECT 'x'::text", "SELECT 'x'::pg_temp.bytea", "SELECT 1::bigint < 2::bigint", "SELECT nextval('pg_class'::pg_catalog.regclass)"} {
				if path == "evil, public" && (strings.Contains(bait, "&") || strings.Contains(bait, "clock") || strings.Contains(bait, "<") || strings.Contains(bait, "nextval")) {
					continue // pg_catalog comes first
				}
				if err := exec(bait); err == nil || !strings.Contains(err.Error(), "trapped "+name) {
					t.Errorf("%s: expected the error of a trap with search_path %s, got %v", bait, path, err)
				}
			}
			for _, settings := range []string{"", `SET TimeZone = 'Pacific/Kiritimati'; SET DateStyle = 'SQL, DMY'; SET IntervalStyle = 'iso_8601'; SET bytea_output = 'escape';
				SET standard_conforming_strings = off; SET transform_null_equals = on; SET extra_float_digits = -15; SET array_nulls = off; SET quote_all_identifiers = on;
				SET default_transaction_isolation = 'serializable'; SET check_function_bodies = off; SET plan_cache_mode = force_generic_plan; SET from_collapse_limit = 1;
				SET backslash_quote = off; SET lc_time = 'C'; SET xmlbinary = 'hex'; SET enable_seqscan = off`} {
				if settings != "" {
					must(t, exec(settings))
				}
				for _, g := range genFormats() {
					for range 5 {
						must(t, exec(fmt.Sprintf("INSERT INTO public.of_%s SELECT %s FROM pg_catalog.generate_series(1, 300)", g.name, g.nextOf(g.node))))
					}
					calls := []string{g.name + "_time(%s)", g.name + "_parts(%s)"}
					if g.name == "uid60" {
						calls = append(calls, "uid60_at('2026-11-01Z', 1)", "uid60_from_text(sortkey.uid60_text(%s))", "uid60_floor('2026-11-01Z')")
					} else {
						must(t, exec(fmt.Sprintf("INSERT INTO public.by_%s SELECT %s FROM pg_catalog.generate_series(1, 300)", g.name, g.next())))
						calls = append(calls, g.name+"_node(%s)", g.name+"_at('2026-11-01Z', 1)", g.name+"_at('2026-11-01Z', 1, node => 3)")
					}
					for _, call := range append(calls, installOthers[g.name]...) {
						must(t, exec("SELECT sortkey."+strings.ReplaceAll(call, "%s", g.nextOf(g.node))))
					}
					// Error messages are formatted with the privileges of the owner, too.
					for _, call := range installRefused[g.name] {
						if err := exec("SELECT sortkey." + call); pgerror.State(err) != "22003" {
							t.Errorf("%s: expected SQLSTATE 22003, got %v", call, err)
						}
					}
				}
				must(t, exec("SELECT FROM sortkey.node_defaults, sortkey.revision, sortkey.layout"))
				// The setting is checked with the privileges of the owner.
				for value, code := range map[string]string{"": "55000", "22": "55000", "70000": "22023", "1; DROP TABLE x": "22023"} {
					must(t, exec("SET sortkey.node = '"+value+"'"))
					for _, g := range genFormats() {
						if !g.hasNodes() {
							continue
						}
						must(t, exec("RESET sortkey."+g.name+"_node")) // the number of this session
						if err := exec("SELECT " + g.next()); pgerror.State(err) != code {
							t.Errorf("%s with the setting %q: expected SQLSTATE %s, got %v", g.next(), value, code, err)
						}
					}
				}
				must(t, exec("RESET ALL; SET search_path = "+path))
			}
		}
		for _, g := range genFormats() {
			var good, all int
			must(t, owner.QueryRowContext(ctx, "SELECT count(*) FILTER (WHERE "+g.valid(g.node)+"), count(*) FROM of_"+g.name).Scan(&good, &all))
			if good != 9000 || all != 9000 {
				t.Errorf("expected 9000 valid IDs of %s, got %d of %d", g.nextOf(g.node), good, all)
			}
			must(t, owner.QueryRowContext(ctx, "SELECT count(*) FILTER (WHERE "+g.valid(installNode)+"), count(*) FROM by_"+g.name).Scan(&good, &all))
			if g.hasNodes() && (good != 1800 || all != 1800) {
				t.Errorf("expected 1800 valid IDs of %s, got %d of %d", g.next(), good, all)
			}
			var last sql.NullInt64
			must(t, session.QueryRowContext(ctx, fmt.Sprintf("SELECT pg_catalog.pg_sequence_last_value('evil.%s_clock'::pg_catalog.regclass)", g.name)).Scan(&last))
			if last.Valid {
				t.Errorf("expected no call of the caller's own sequence, got %d", last.Int64)
			}
		}
	})
}

// installRefused are calls with node numbers out of range.
var installRefused = map[string][]string{
	"snowflake":    {"next_snowflake(1024)", "next_snowflake(-1)", "next_snowflake(NULL)", "snowflake_at('2026-11-01Z', 4096, 1)", "snowflake_at('2026-11-01Z', 1, 1024)"},
	"snowflake_si": {"next_snowflake_si(32)", "next_snowflake_si(NULL)", "snowflake_si_at('2026-11-01Z', NULL, 1)"},
	"uid60":        {"uid60_at('2026-11-01Z', 512)"},
	"spread64":     {"next_spread64(1024)", "next_spread64(-1)", "next_spread64(NULL)", "spread64_at('2026-11-01Z', 64, 1)"},
	"sno":          {"next_sno(256, 0)", "next_sno(0, 65536)", "next_sno(NULL, NULL)", "next_sno(NULL)", "sno_at('2026-11-01Z', 1, 256, 1)"},
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
		for _, to := range []string{name, "PUBLIC"} {
			for _, objects := range []string{"SEQUENCES", "FUNCTIONS", "TABLES", "TYPES", "SCHEMAS"} {
				db.Exec(t, "ALTER DEFAULT PRIVILEGES GRANT ALL ON "+objects+" TO "+to)
			}
		}
		must(t, migrations.Up(ctx, pool, complete))
		for _, line := range columnOf(t, pool, `SELECT format('%s may %s on %s', grantee::regrole, privilege_type, name) FROM (
				SELECT c.oid::regclass::text, relacl, relowner FROM pg_class c
				WHERE relnamespace = 'sortkey'::regnamespace OR relnamespace = 'sortkey_internal'::regnamespace AND relname LIKE '%\_clock'
				UNION ALL
				SELECT proname, proacl, proowner FROM pg_proc WHERE pronamespace = 'sortkey'::regnamespace AND (prosecdef OR proname ~ '^next_(snowflake|snowflake_si|uid60|spread64|sno)$')
				UNION ALL
				SELECT nspname, nspacl, nspowner FROM pg_namespace WHERE nspname = 'sortkey_internal'
			) o (name, acl, owner), aclexplode(acl) WHERE grantee <> owner
				AND NOT (name IN ('sortkey.revision', 'sortkey.layout', 'sortkey.node_defaults', 'sortkey.node_problems', 'sortkey.partitioned_table', 'sortkey.partition_horizon') AND grantee = 0 AND privilege_type = 'SELECT'
				OR name LIKE '%\_clock' AND grantee = 0 AND privilege_type = 'USAGE')`) {
			t.Errorf("expected privileges of the owner only, got %s", line)
		}
		for _, statement := range []string{"SELECT sortkey_internal.snowflake_id(1, 1)", "SELECT nextval('sortkey_internal.snowflake_clock')", "CREATE TABLE sortkey_internal.t ()",
			"SELECT sortkey.next_snowflake()", "SELECT sortkey.next_snowflake(1)", "DELETE FROM sortkey.layout", "INSERT INTO sortkey.node_lease VALUES ('x', 1)"} {
			_, err := role.ExecContext(ctx, statement)
			wantError(t, err, nil, "permission denied")
		}
		// The default still applies to other functions.
		if n := len(columnOf(t, pool, fmt.Sprintf(`SELECT proname FROM pg_proc WHERE pronamespace = 'sortkey'::regnamespace
			AND proname = 'sno_floor' AND has_function_privilege('%s', oid, 'EXECUTE')`, name))); n != 1 {
			t.Error("expected EXECUTE on sno_floor")
		}
		must(t, migrations.Down(ctx, pool, complete))

		for _, to := range []string{name, "PUBLIC"} {
			for _, objects := range []string{"SEQUENCES", "FUNCTIONS", "TABLES", "TYPES", "SCHEMAS"} {
				db.Exec(t, "ALTER DEFAULT PRIVILEGES REVOKE ALL ON "+objects+" FROM "+to)
			}
		}
		must(t, migrations.Up(ctx, pool, complete))
		setNode(t, db, "sortkey", installNode)
		role.SetMaxIdleConns(0) // so that the next session has the setting
		_, err := role.ExecContext(ctx, "SELECT sortkey.snowflake_time(1)")
		wantError(t, err, nil, "permission denied for schema sortkey")
		db.Exec(t, "GRANT USAGE ON SCHEMA sortkey TO "+name)
		_, err = role.ExecContext(ctx, "SELECT sortkey.snowflake_time(1)")
		wantError(t, err, nil, "permission denied for function snowflake_time")
		must(t, migrations.Check(ctx, role, complete))
		for _, g := range genFormats() {
			next, nextOf := g.signatures()
			for signature, call := range map[string]string{nextOf: g.nextOf(g.node), next: g.next(), g.name + "_time": "sortkey." + g.name + "_time(NULL)"} {
				_, err := role.ExecContext(ctx, "SELECT "+call)
				wantError(t, err, nil, "permission denied for function")
				db.Exec(t, fmt.Sprintf("GRANT EXECUTE ON FUNCTION sortkey.%s TO %s", signature, name))
				_, err = role.ExecContext(ctx, "SELECT "+call)
				must(t, err)
			}
		}
		_, err = role.ExecContext(ctx, "SELECT sortkey_internal.snowflake_now()")
		wantError(t, err, nil, "permission denied for schema sortkey_internal")
	})
}

// The package and its SQL use the operators and functions of pg_catalog, even if others
// in the role's search_path match the argument types better.
func TestShadowed(t *testing.T) {
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		ctx, pool := t.Context(), db.SQL(t)
		const trap = " LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE EXCEPTION 'trapped'; END $$;\n"
		for i, o := range []string{
			"/ bigint float8 float8", "< numeric integer boolean", "> numeric integer boolean", "> numeric bigint boolean", "* numeric integer numeric",
			"= oid regclass boolean", "* bigint interval interval", "|| name name text", "|| text name text", "|| name text text", "|| text bigint text",
		} {
			f := strings.Fields(o)
			db.Exec(t, fmt.Sprintf(`CREATE FUNCTION public.trap_%[5]d(%[2]s, %[3]s) RETURNS %[4]s`+trap+`
				CREATE OPERATOR public.%[1]s (LEFTARG = %[2]s, RIGHTARG = %[3]s, FUNCTION = public.trap_%[5]d)`, f[0], f[1], f[2], f[3], i))
		}
		for _, f := range []string{
			"format(text) RETURNS text", "format(text, text) RETURNS text", "format(text, text, text) RETURNS text", "format(text, integer) RETURNS text", "format(text, bigint) RETURNS text",
			"format(text, name) RETURNS text", "format(text, bigint, text) RETURNS text", "format(text, name, name) RETURNS text",
			"array_to_string(text[], text) RETURNS text", "hashtextextended(text, integer) RETURNS bigint",
		} {
			db.Exec(t, "CREATE FUNCTION public."+f+trap)
		}
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
		if in := columnOf(t, pool, `SELECT p.oid::regprocedure FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
			JOIN pg_operator o ON d.refclassid = 'pg_operator'::regclass AND d.refobjid = o.oid
			WHERE p.pronamespace IN ('sortkey'::regnamespace, 'sortkey_internal'::regnamespace) AND o.oprnamespace = 'public'::regnamespace`); len(in) != 0 {
			t.Errorf("expected only operators of pg_catalog, got others in %v", in)
		}
		for _, g := range genFormats() {
			query := fmt.Sprintf("SELECT sortkey.%[1]s_time(id), sortkey.%[1]s_parts(id), %[2]s = id FROM (SELECT %[3]s) t (id)", g.name, g.fromText(g.text("id")), g.nextOf(g.node))
			if g.name != "spread64" {
				query += fmt.Sprintf(" WHERE id >= sortkey.%[1]s_floor('2026-01-01Z') AND id < sortkey.%[1]s_floor('infinity')", g.name)
			}
			if n := len(columnOf(t, pool, "SELECT 'row' FROM ("+query+") t")); n != 1 {
				t.Errorf("%s: expected a row, got %d", g.name, n)
			}
		}
		// The migrations restore the role's search_path.
		if got := columnOf(t, pool, "SHOW search_path"); !slices.Equal(got, []string{`"$user", public`}) {
			t.Errorf("expected the original search_path, got %v", got)
		}
		must(t, migrations.Down(t.Context(), pool, complete))
	})
}
