package migrations

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
)

type installGenerator struct {
	format, signature, call string
	checks                  string // a condition that is true for IDs of the call
}

// installGenerators are the next_ functions, one of each format.
var installGenerators = []installGenerator{
	{"snowflake", "next_snowflake(integer, integer)", "sortkey.next_snowflake(3, 7)",
		"(sortkey.snowflake_parts(id)).datacenter = 3 AND (sortkey.snowflake_parts(id)).worker = 7 AND abs(extract(epoch FROM clock_timestamp() - sortkey.snowflake_time(id))) < 3600"},
	{"snowflake_si", "next_snowflake_si(integer)", "sortkey.next_snowflake_si(5)",
		"(sortkey.snowflake_si_parts(id)).machine = 5 AND abs(extract(epoch FROM clock_timestamp() - sortkey.snowflake_si_time(id))) < 3600"},
	{"uid60", "next_uid60()", "sortkey.next_uid60()",
		"abs(extract(epoch FROM clock_timestamp() - sortkey.uid60_time(id))) < 3600"},
	{"spread64", "next_spread64(integer, integer)", "sortkey.next_spread64(9, 2)",
		"(sortkey.spread64_parts(id)).generator = 9 AND (sortkey.spread64_parts(id)).cluster = 2 AND abs(extract(epoch FROM clock_timestamp() - sortkey.spread64_time(id))) < 3600"},
	{"sno", "next_sno(integer, integer)", "sortkey.next_sno(200, 40000)",
		"sortkey.sno_text(id) ~ '^[2-9a-x]{16}$' AND (sortkey.sno_parts(id)).meta = 200 AND (sortkey.sno_parts(id)).partition = 40000 AND abs(extract(epoch FROM clock_timestamp() - sortkey.sno_time(id))) < 3600"},
}

// installLeases are the functions for leases of node numbers.
var installLeases = []string{"claim_node", "renew_node", "release_node", "reserve_node", "unreserve_node"}

// installParts are internal functions that others call.
var installParts = []string{"advance_clock", "commit_durably", "node_fence", "node_timeline"}

// Functions and relations have the intended privileges and flags in the catalog.
func TestFunctionFlags(t *testing.T) {
	installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		pool := db.SQL(t)
		rows, err := pool.QueryContext(t.Context(), `SELECT proname, prosecdef, provolatile, proparallel,
			EXISTS (SELECT FROM aclexplode(coalesce(proacl, acldefault('f', proowner))) WHERE grantee = 0)
			FROM pg_proc WHERE pronamespace = 'sortkey'::regnamespace`)
		must(t, err)
		defer rows.Close()
		count := map[string]int{}
		for rows.Next() {
			var name, volatility, parallel string
			var definer, public bool
			must(t, rows.Scan(&name, &definer, &volatility, &parallel, &public))
			got := fmt.Sprintf("definer %t, public %t, %s%s", definer, public, volatility, parallel)
			var kind, want string
			format := slices.ContainsFunc(installGenerators, func(g installGenerator) bool { return strings.HasPrefix(name, g.format+"_") })
			switch {
			case slices.ContainsFunc(installGenerators, func(g installGenerator) bool { return name == "next_"+g.format }):
				kind, want = "next", "definer true, public false, vu"
			case slices.Contains(installLeases, name):
				kind, want = "lease", "definer true, public false, vu"
			case slices.Contains(installParts, name):
				kind, want = "part", "definer false, public false, vu"
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
		// 5 formats with 4 functions each, 4 floors, and 3 more functions of Sno.
		if count["next"] != 5 || count["lease"] != len(installLeases) || count["part"] != len(installParts) || count["pure"] != 27 {
			t.Errorf("expected 5 next_ functions, %d for leases, %d internal ones, and 27 others, got %v", len(installLeases), len(installParts), count)
		}
		// Only the owner has privileges on sequences and tables, except SELECT on the tables that record the installation.
		for _, line := range columnOf(t, pool, `SELECT format('%s: %s may %s', relname, grantee::regrole, privilege_type) FROM pg_class, aclexplode(relacl)
			WHERE relnamespace = 'sortkey'::regnamespace AND grantee <> relowner`) {
			if !strings.HasSuffix(line, ": - may SELECT") || strings.Contains(line, "_clock") || strings.Contains(line, "node_") && !strings.HasPrefix(line, "node_defaults:") {
				t.Errorf("unexpected privilege: %s", line)
			}
		}
	})
}

// A role with EXECUTE on one function can use it as a default, and has no other
// access to the generators.
func TestInsertRole(t *testing.T) {
	installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		ctx, owner, name := t.Context(), db.SQL(t), installRoleName(db, "writer")
		role := installRole(t, db, name)
		role.SetMaxOpenConns(1) // currval and lastval belong to a session
		denied := func(statement string) {
			t.Helper()
			if _, err := role.ExecContext(ctx, statement); err == nil || !strings.Contains(err.Error(), "permission denied") && !strings.Contains(err.Error(), "must be owner") {
				t.Errorf("%s: expected a lack of privileges, got %v", statement, err)
			}
		}
		denied("SELECT sortkey.next_uid60()")
		db.Exec(t, "GRANT USAGE ON SCHEMA sortkey TO "+name)
		for _, g := range installGenerators {
			denied("SELECT " + g.call)
			table, clock := "of_"+g.format, "sortkey."+g.format+"_clock"
			db.Exec(t, fmt.Sprintf(`CREATE TABLE %s (id sortkey.%s PRIMARY KEY DEFAULT %s, n int);
				GRANT INSERT ON %[1]s TO %[4]s; GRANT EXECUTE ON FUNCTION sortkey.%[5]s TO %[4]s`, table, g.format, g.call, name, g.signature))
			for range 20 { // some calls begin a millisecond, and some continue it
				_, err := role.ExecContext(ctx, "INSERT INTO "+table+" (n) SELECT generate_series(1, 100)")
				must(t, err)
			}
			var good, all int
			must(t, owner.QueryRowContext(ctx, "SELECT count(*) FILTER (WHERE "+g.checks+"), count(*) FROM "+table).Scan(&good, &all))
			if good != 2000 || all != 2000 {
				t.Errorf("expected 2000 valid IDs of %s, got %d of %d", g.call, good, all)
			}
			for _, statement := range []string{
				"SELECT nextval('" + clock + "')", "SELECT setval('" + clock + "', 1)", "SELECT currval('" + clock + "')", "SELECT lastval()",
				"SELECT * FROM " + clock, "SELECT last_value FROM " + clock, "ALTER SEQUENCE " + clock + " RESTART", "DROP SEQUENCE " + clock,
				"COMMENT ON SEQUENCE " + clock + " IS 'x'", "GRANT USAGE ON SEQUENCE " + clock + " TO " + name,
				"SELECT sortkey.advance_clock('" + clock + "', 0, 1, 41, 12, 0)",
				"ALTER FUNCTION sortkey." + g.signature + " SET search_path = public", "CREATE TABLE sortkey.t ()", "SELECT id FROM " + table,
				"CREATE FUNCTION sortkey.advance_clock(text, bigint, integer, integer, integer, integer) RETURNS bigint LANGUAGE sql RETURN 1",
			} {
				denied(statement)
			}
			for _, other := range installGenerators {
				if other.format != g.format {
					denied("SELECT " + other.call)
				}
			}
			db.Exec(t, "REVOKE EXECUTE ON FUNCTION sortkey."+g.signature+" FROM "+name)
			denied("INSERT INTO " + table + " DEFAULT VALUES")
			if before := columnOf(t, owner, "SELECT last_value::text FROM "+clock); len(before) != 1 {
				t.Error("expected the owner to see the sequence")
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
	} {
		trap(fmt.Sprintf("o%d(%s, %s)", i, o.left, o.right), o.result)
		fmt.Fprintf(&b, "CREATE OPERATOR evil.%s (FUNCTION = evil.o%d, LEFTARG = %s, RIGHTARG = %s);\n", o.operator, i, o.left, o.right)
	}
	for _, f := range []struct{ signature, result string }{
		{"nextval(regclass)", "bigint"}, {"nextval(text)", "bigint"}, {"setval(regclass, bigint)", "bigint"}, {"clock_timestamp()", "timestamptz"},
		{"to_timestamp(double precision)", "timestamptz"}, {"to_timestamp(bigint)", "timestamptz"}, {"format(text, VARIADIC text[])", "text"}, {`format(text, VARIADIC "any")`, "text"},
		{"reverse(text)", "text"}, {"get_byte(bytea, integer)", "integer"}, {"uuid_send(uuid)", "bytea"}, {"gen_random_uuid()", "uuid"},
		{"to_hex(bigint)", "text"}, {"sno_digits(bigint)", "bigint"}, {"floor(numeric)", "numeric"}, {"pg_sleep(double precision)", "bool"},
		{"advance_clock(regclass, bigint, integer, integer, integer, integer)", "bigint"}, {"advance_clock(text, bigint, integer, integer, integer, integer)", "bigint"},
		{"pg_sequence_last_value(regclass)", "bigint"}, {"pg_advisory_xact_lock(integer, integer)", "bool"}, {"int8(bit)", "bigint"}, {"bit(bigint, integer)", "bit"}, {"text(bit)", "text"},
	} {
		if strings.Contains(f.signature, `"any"`) {
			continue // only C functions can have this type
		}
		trap(f.signature, f.result)
	}
	// Domains whose CHECK is a call, in this schema and in pg_temp, which is searched first for types. And a type with
	// an implicit cast from numbers.
	for _, schema := range []string{"evil", "pg_temp"} {
		for _, name := range []string{"text", "bytea", "uuid", "int8", "int4", "float8", "timestamptz", "bit", "regclass", "oid", "numeric"} {
			fmt.Fprintf(&b, "CREATE DOMAIN %s.%s AS pg_catalog.%[2]s CHECK (evil.trap());\n", schema, name)
		}
		for _, g := range installGenerators {
			fmt.Fprintf(&b, "CREATE SEQUENCE %s.%s_clock;\n", schema, g.format)
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
	installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		ctx, owner, name := t.Context(), db.SQL(t), installRoleName(db, "caller")
		pool := installRole(t, db, name)
		db.Exec(t, fmt.Sprintf("GRANT CREATE, TEMPORARY ON DATABASE %s TO %s; GRANT USAGE ON SCHEMA sortkey TO %[2]s", db.Name, name))
		for _, g := range installGenerators {
			db.Exec(t, fmt.Sprintf("GRANT EXECUTE ON FUNCTION sortkey.%s TO %s", g.signature, name))
			db.Exec(t, fmt.Sprintf("CREATE TABLE of_%s (id sortkey.%[1]s PRIMARY KEY); GRANT INSERT ON of_%[1]s TO %s", g.format, name))
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
				for _, g := range installGenerators {
					for range 5 {
						must(t, exec(fmt.Sprintf("INSERT INTO public.of_%s SELECT %s FROM pg_catalog.generate_series(1, 300)", g.format, g.call)))
					}
					// Error messages are formatted with the privileges of the owner, too.
					for _, call := range installRefused[g.format] {
						if err := exec("SELECT sortkey." + call); sqlState(err) != "22003" {
							t.Errorf("%s: expected SQLSTATE 22003, got %v", call, err)
						}
					}
				}
				must(t, exec("RESET ALL; SET search_path = "+path))
			}
		}
		for _, g := range installGenerators {
			var good, all int
			must(t, owner.QueryRowContext(ctx, "SELECT count(*) FILTER (WHERE "+g.checks+"), count(*) FROM of_"+g.format).Scan(&good, &all))
			if good != 9000 || all != 9000 {
				t.Errorf("expected 9000 valid IDs of %s, got %d of %d", g.call, good, all)
			}
			var last sql.NullInt64
			must(t, session.QueryRowContext(ctx, fmt.Sprintf("SELECT pg_catalog.pg_sequence_last_value('evil.%s_clock'::pg_catalog.regclass)", g.format)).Scan(&last))
			if last.Valid {
				t.Errorf("expected no call of the caller's own sequence, got %d", last.Int64)
			}
		}
	})
}

// installRefused are calls with node numbers out of range.
var installRefused = map[string][]string{
	"snowflake":    {"next_snowflake(32, 0)", "next_snowflake(0, -1)", "next_snowflake(NULL, 1)"},
	"snowflake_si": {"next_snowflake_si(32)", "next_snowflake_si(NULL)"},
	"spread64":     {"next_spread64(64, 0)", "next_spread64(0, 16)", "next_spread64(1, NULL)"},
	"sno":          {"next_sno(256, 0)", "next_sno(0, 65536)", "next_sno(NULL, NULL)"},
}

// ALTER DEFAULT PRIVILEGES doesn't grant access to the protected objects.
func TestDefaultPrivileges(t *testing.T) {
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		pool, name := db.SQL(t), installRoleName(db, "favored")
		installRole(t, db, name)
		db.Exec(t, fmt.Sprintf(`ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO %[1]s; ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO %[1]s;
			ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO %[1]s; ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC`, name))
		must(t, migrations.Up(t.Context(), pool, complete))
		for _, line := range columnOf(t, pool, `SELECT format('%s may %s on %s', grantee::regrole, privilege_type, name) FROM (
				SELECT relname, relacl, relowner FROM pg_class WHERE relnamespace = 'sortkey'::regnamespace AND (relname LIKE '%\_clock' OR relname LIKE 'node\_%' OR relname LIKE 'partition%')
				UNION ALL
				SELECT proname, proacl, proowner FROM pg_proc WHERE pronamespace = 'sortkey'::regnamespace
					AND (prosecdef OR proname = ANY ($1))
			) o (name, acl, owner), aclexplode(acl) WHERE grantee <> owner AND NOT (name IN ('node_defaults', 'partitioned_table') AND grantee = 0 AND privilege_type = 'SELECT')`, installParts) {
			t.Errorf("expected privileges of the owner only, got %s", line)
		}
		// The default still applies to other functions.
		if n := len(columnOf(t, pool, fmt.Sprintf(`SELECT proname FROM pg_proc WHERE pronamespace = 'sortkey'::regnamespace
			AND proname = 'sno_floor' AND has_function_privilege('%s', oid, 'EXECUTE')`, name))); n != 1 {
			t.Error("expected EXECUTE on sno_floor")
		}
	})
}

// The migrations and functions use the operators of pg_catalog, even if operators in
// the role's search_path match the argument types better.
func TestShadowedOperators(t *testing.T) {
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		pool := db.SQL(t)
		for i, o := range []string{"/ bigint double_precision double_precision", "< numeric integer boolean", "> numeric integer boolean", "> numeric bigint boolean", "* numeric integer numeric"} {
			f := strings.Fields(strings.ReplaceAll(o, "double_precision", "float8"))
			db.Exec(t, fmt.Sprintf(`CREATE FUNCTION public.trap_%[5]d(%[2]s, %[3]s) RETURNS %[4]s LANGUAGE plpgsql IMMUTABLE AS
				$$ BEGIN RAISE EXCEPTION 'trapped'; END $$;
				CREATE OPERATOR public.%[1]s (LEFTARG = %[2]s, RIGHTARG = %[3]s, FUNCTION = public.trap_%[5]d)`, f[0], f[1], f[2], f[3], i))
		}
		must(t, migrations.Up(t.Context(), pool, complete))
		if in := columnOf(t, pool, `SELECT p.oid::regprocedure FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
			JOIN pg_operator o ON d.refclassid = 'pg_operator'::regclass AND d.refobjid = o.oid
			WHERE p.pronamespace = 'sortkey'::regnamespace AND o.oprnamespace = 'public'::regnamespace`); len(in) != 0 {
			t.Errorf("expected only operators of pg_catalog, got others in %v", in)
		}
		for _, g := range installGenerators {
			query := fmt.Sprintf("SELECT sortkey.%[1]s_time(id), sortkey.%[1]s_parts(id), sortkey.%[1]s_from_text(sortkey.%[1]s_text(id)) = id FROM (SELECT %[2]s) t (id)", g.format, g.call)
			if g.format != "spread64" {
				query += fmt.Sprintf(" WHERE id >= sortkey.%[1]s_floor('2026-01-01Z') AND id < sortkey.%[1]s_floor('infinity')", g.format)
			}
			if n := len(columnOf(t, pool, "SELECT 'row' FROM ("+query+") t")); n != 1 {
				t.Errorf("%s: expected a row, got %d", g.format, n)
			}
		}
		// The migrations restore the role's search_path.
		if got := columnOf(t, pool, "SHOW search_path"); !slices.Equal(got, []string{`"$user", public`}) {
			t.Errorf("expected the original search_path, got %v", got)
		}
	})
}

// Down keeps a schema without an installation.
func TestDownWithoutInstallation(t *testing.T) {
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, "CREATE SCHEMA mine")
		must(t, migrations.Down(t.Context(), db.SQL(t), migrations.Config{Schema: "mine"}))
		if got := columnOf(t, db.SQL(t), "SELECT nspname FROM pg_namespace WHERE nspname = 'mine'"); len(got) != 1 {
			t.Error("expected the schema to stay")
		}
	})
}
