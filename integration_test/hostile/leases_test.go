package hostile

import (
	"fmt"
	"strings"
	"testing"
)

// leaser are the grants of a program that claims node numbers.
const leaser = `GRANT USAGE ON SCHEMA sortkey TO {mallory};
	GRANT EXECUTE ON FUNCTION sortkey.claim_node(text, integer, text, int4multirange, text, bigint, bigint, bigint, bigint) TO {mallory};
	GRANT EXECUTE ON FUNCTION sortkey.renew_node(text, integer, bigint, text, bigint, bigint, bigint, bigint, text, text[]) TO {mallory};
	GRANT EXECUTE ON FUNCTION sortkey.release_node(text, integer, bigint, text, bigint, text[]) TO {mallory};`

// claim is a statement that claims a number. until is in milliseconds from now.
func claim(pool string, size int, layout, holder, until string) string {
	return fmt.Sprintf(`SELECT sortkey.claim_node('%s', %d, '%s', '{}', E'%s', 60000, (extract(epoch FROM clock_timestamp()) * 1000)::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + %s)`,
		pool, size, layout, holder, until)
}

// fails runs SQL as mallory, which must fail.
func fails(sql string) step {
	return func(w *world) {
		w.t.Helper()
		if err := w.try(w.evil, sql); err == nil {
			w.t.Errorf("mallory can run %s", sql)
		}
		w.stale = true
	}
}

// A program that may claim node numbers can neither create pools of its own nor use up the
// numbers of others permanently.
func TestLeases(t *testing.T) {
	snowflakes := "snowflake: " + layout
	year9999 := fmt.Sprint(int64(7900) * 365 * 24 * 3600 * 1000)
	var pools []string
	for i := range 300 {
		pools = append(pools, claim(fmt.Sprintf("pool-%d", i), 8, "x", "h", "1000"))
	}
	springs(t, []trap{{name: "claims", names: []string{"snowflake"}, steps: []step{
		admin(leaser),
		fails(claim("mine", 1024, snowflakes, "h", "1000")), // a second pool of the layout
		fails(claim("snowflake", 512, "snowflake: x", "h", "1000")), fails(claim("sno", 10, "x", "h", "1000")), fails(claim("spread64-3", 10, "x", "h", "1000")),
		fails(strings.Join(pools, ";")),
		// A default pool of a layout that the database doesn't have.
		fails(claim("snowflake-si", 32, "snowflake_si: x", "h", "1000")), fails(claim("spread64-16", 64, "spread64: cluster 16", "h", "1000")),
		malloryTries(claim("snowflake", 1024, snowflakes, "h", year9999)),
		malloryTries(`SELECT sortkey.renew_node('snowflake', c.number, c.term, 'r', 60000, ` + year9999 + `) FROM (` + claim("snowflake", 1024, snowflakes, "r", "1000") + ` AS c) x, LATERAL (SELECT (x.c).*) c`),
		malloryTries(`SELECT sortkey.release_node('snowflake', c.number, c.term, 's', ` + year9999 + `) FROM (` + claim("snowflake", 1024, snowflakes, "s", "1000") + ` AS c) x, LATERAL (SELECT (x.c).*) c`),
		mallory(claim("snowflake", 1024, snowflakes, `x\nforged: fine\x1b[31m\r`, "1000")),
		allowed(statement(claim("snowflake", 1024, snowflakes, "program", "1000")), sortkey("nodes list"), sortkey("nodes list --all"), sortkey("nodes list snowflake 0"), sortkey("doctor"), scrape),
		allowed(statement(`SELECT 1 / (CASE WHEN EXISTS (SELECT FROM sortkey.node_pool WHERE name <> 'snowflake') OR EXISTS (SELECT FROM sortkey.node_lease WHERE mark > (extract(epoch FROM now() + interval '2 days') * 1000)) THEN 0 ELSE 1 END)`)),
	}}})
}
