package command_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// No command calls a function of another user. Such a function can come first in the
// search_path if its argument types match a call better than the server's function.
func TestShadowedFunctions(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		must(t, db, "nodes reserve snowflake 1023")
		db.Exec(t, fmt.Sprintf(`ALTER DATABASE %s SET sortkey.node = 1023;
			CREATE TABLE events (id sortkey.snowflake PRIMARY KEY DEFAULT sortkey.next_snowflake(), at timestamptz DEFAULT now()) PARTITION BY RANGE (id);
			SELECT sortkey.manage_partitions('events', '1 day')`, db.Name))
		for _, f := range []string{
			"format(text, name, name) RETURNS text", "format(text, text, text) RETURNS text", "format(text, name) RETURNS text", "quote_ident(name) RETURNS text",
			"array_to_string(text[], text) RETURNS text", "hashtextextended(text, integer) RETURNS bigint", "parse_ident(text) RETURNS text[]", "cardinality(text[]) RETURNS integer",
			"array_agg(integer) RETURNS integer", "max(timestamptz) RETURNS timestamptz", "min(name) RETURNS name", "string_agg(name, text) RETURNS text", "lower(name) RETURNS text",
			"lower(tstzrange) RETURNS timestamptz", "upper(tstzrange) RETURNS timestamptz", "unnest(tstzmultirange) RETURNS tstzrange", "range_agg(tstzrange) RETURNS tstzmultirange",
			"to_char(timestamp, text) RETURNS text", "replace(name, text, text) RETURNS text", "has_table_privilege(text, text) RETURNS boolean",
			"pg_get_expr(pg_node_tree, oid) RETURNS text", "regexp_replace(name, text, text) RETURNS text", "abs(integer) RETURNS integer",
			"to_regclass(name) RETURNS regclass", "to_regnamespace(name) RETURNS regnamespace", "count(integer) RETURNS bigint", "sum(bigint) RETURNS numeric", "pg_total_relation_size(oid) RETURNS bigint",
			"pg_partition_tree(oid) RETURNS oid", "jsonb_object_agg(text, bigint) RETURNS jsonb", "current_setting(text, bool) RETURNS text",
		} {
			db.Exec(t, "CREATE FUNCTION public."+f+" LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'trapped'; END $$")
		}
		for i, types := range []string{"oid, regclass", "name, text", "bigint, interval", "numeric, integer", "integer, bigint", "bigint, integer", "timestamptz, text", "oid, bigint"} {
			left, right, _ := strings.Cut(types, ", ")
			db.Exec(t, fmt.Sprintf("CREATE FUNCTION public.trap_%d(%s) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'trapped'; END $$", i, types))
			for _, operator := range []string{"=", "<>", "<", ">", "+", "-", "*", "/", "<@", "~", "||"} {
				db.Exec(t, fmt.Sprintf("CREATE OPERATOR public.%s (FUNCTION = public.trap_%d, LEFTARG = %s, RIGHTARG = %s)", operator, i, left, right))
			}
		}
		for _, args := range []string{
			"migrate up", "migrate status", "migrate check", "partitions run --dry-run", "partitions run", "partitions list", "partitions list events", "audit events --type snowflake",
			"audit event", "nodes list", "nodes list snowflake", "nodes list snowflake 1023", "nodes reserve snowflake", "nodes release snowflake 1022", "doctor", "sqlc --types example.com/shop/key", "migrate down --yes",
		} {
			r := sortkey(t, db, args)
			if strings.Contains(r.out+r.errs, "trapped") || r.code > 1 && args != "audit event" && args != "migrate down --yes" {
				t.Errorf("sortkey %s: code %d\n%s%s", args, r.code, r.out, r.errs)
			}
		}
	})
}
