package rekey

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/rekey"
)

// Times in keys of other libraries, and in columns of numbers. The keys of a table are in the
// order of their times. The first ones of KSUID and xid are the examples of their documentation.
func TestTimesOfKeys(t *testing.T) {
	t.Parallel()
	installed.One(t, func(t *testing.T, db *pgtest.DB) {
		pool, conn := db.SQL(t), db.Conn(t)
		db.Exec(t, "CREATE SEQUENCE keys START 1000")
		for _, x := range []struct {
			name, id, columns string // the definition of the key, and the other columns
			oldKey            string
			times             rekey.Times
			rows              []string // values, and the expected time
		}{
			{name: "ksuid", id: "varchar(27)", oldKey: "'k' || nextval('public.keys')", times: rekey.Times{Key: rekey.KeyKSUID}, rows: []string{
				"'0ujtsYcgvSTl8PAuAdqWYSMnLOv' 2017-10-10T04:00:47Z", "'0ujtsYcgvSTl8PAuAdqWYSMnLOw' 2017-10-10T04:00:47Z", "'1HCpXwx2EK9oYluWbacgeCnFcLf' 2019-02-15T07:32:57Z", "'1hCpXwx2EK9oYluWbacgeCnFcLf' 2020-09-08T00:29:31Z",
			}},
			{name: "xid", id: "char(20)", oldKey: "'k' || nextval('public.keys')", times: rekey.Times{Key: rekey.KeyXID}, rows: []string{
				"'9m4e2mr0ui3e8a215n4g' 2011-03-22T17:50:19Z", "'9m4e2mr0ui3e8a215n50' 2011-03-22T17:50:19Z", "'c0000000000000000000' 2021-01-14T08:25:36Z",
			}},
			{name: "ulid_uuid", id: "uuid", times: rekey.Times{Key: rekey.KeyULID}, rows: []string{
				"'0185f0a1-2c00-ffff-0000-000000000000' 2023-01-27T00:29:32.544Z", "'0185f0a1-2c04-0000-0000-000000000000' 2023-01-27T00:29:32.548Z",
			}},
			{name: "ulid_lower", id: "text", times: rekey.Times{Key: rekey.KeyULID}, rows: []string{
				"'01gqra2b00zzzzzzzzzzzzzzzz' 2023-01-27T00:29:32.544Z", "'01gqra2b040000000000000000' 2023-01-27T00:29:32.548Z",
			}},
			{name: "uuidv7_text", id: "text", oldKey: "gen_random_uuid()::text", times: rekey.Times{Key: rekey.KeyUUIDv7}, rows: []string{
				"'0185F0A1-2C00-7FFF-8000-000000000000' 2023-01-27T00:29:32.544Z", "'0185F0A1-2C04-7000-8000-000000000000' 2023-01-27T00:29:32.548Z",
			}},
			{name: "uuidv7_hex", id: "char(32)", oldKey: "replace(gen_random_uuid()::text, '-', '')", times: rekey.Times{Key: rekey.KeyUUIDv7}, rows: []string{
				"'0185f0a12c007fff8000000000000000' 2023-01-27T00:29:32.544Z", "'0185f0a12c0470008000000000000000' 2023-01-27T00:29:32.548Z",
			}},
			// As in Mattermost, whose keys have no times.
			{name: "milliseconds", id: "varchar(26)", columns: ", createat bigint", oldKey: "'k' || nextval('public.keys')", times: rekey.Times{Column: "createat", Start: sourceStart}, rows: []string{
				"'z', 1587380000000 2020-04-20T10:53:20Z", "'b', 1587380000004 2020-04-20T10:53:20.004Z", "'a', NULL 2023-04-05T06:07:08.009Z",
			}},
			{name: "seconds", id: "bigserial", columns: ", createat integer", times: rekey.Times{Column: "createat", Unit: time.Second}, rows: []string{
				"9, 1587380000 2020-04-20T10:53:20Z", "7, 1587380001 2020-04-20T10:53:21Z",
			}},
		} {
			db.Exec(t, fmt.Sprintf("CREATE TABLE %[1]s_rows (id %[2]s PRIMARY KEY%[3]s, n serial, name text)", x.name, x.id, x.columns))
			for _, row := range x.rows {
				i := strings.LastIndex(row, " ")
				db.Exec(t, fmt.Sprintf("INSERT INTO %s_rows VALUES (%s)", x.name, row[:i]))
			}
			spec := rekey.Spec{Keys: []rekey.Key{{Table: x.name + "_rows", Format: rekey.Sno, Node: 1, BackfillNode: 2, OldKey: x.oldKey, Times: x.times}}}
			mustRun(t, pool, spec, rekey.Options{}, steps[:3]...)
			db.Exec(t, fmt.Sprintf("INSERT INTO %s_rows (rekey_id, name) VALUES ('42424242-4242-4242-4242-424242424242', 'new')", x.name))
			if x.name == "ulid_lower" {
				if got := pgtest.Value[string](t, conn, "SELECT id FROM ulid_lower_rows WHERE name = 'new'"); len(got) != 26 || got != strings.ToLower(got) {
					t.Errorf("%s: expected a ULID in lower case, got %s", x.name, got)
				}
			}
			db.Exec(t, fmt.Sprintf("DELETE FROM %s_rows WHERE name = 'new'", x.name))
			mustRun(t, pool, spec, rekey.Options{}, steps[3:]...)
			for i, row := range x.rows {
				want, err := time.Parse(time.RFC3339, row[strings.LastIndex(row, " ")+1:])
				must(t, err)
				if got := pgtest.Value[time.Time](t, conn, fmt.Sprintf("SELECT sortkey.sno_time(id) FROM %s_rows WHERE n = $1", x.name), i+1); got.Sub(want.Truncate(4*time.Millisecond)).Abs() > 4*time.Millisecond {
					t.Errorf("%s, row %d: expected the time %v, got %v", x.name, i+1, want, got)
				}
			}
			if n := pgtest.Value[int](t, conn, fmt.Sprintf("SELECT count(*) FROM (SELECT id <= lag(id) OVER (ORDER BY n) AS wrong FROM %s_rows) x WHERE wrong", x.name)); n != 0 {
				t.Errorf("%s: expected IDs in the order of the times, got %d others", x.name, n)
			}
			time.Sleep(1100 * time.Millisecond) // the node numbers were in use until a second ago
		}
	})
}

// Keys whose times can't be read, or whose order isn't that of their times, are refused.
func TestOtherTimes(t *testing.T) {
	t.Parallel()
	installed.One(t, func(t *testing.T, db *pgtest.DB) {
		for i, x := range []struct {
			columns, rows string
			times         rekey.Times
			want          string
		}{
			{"id text PRIMARY KEY", "('01gqra2b00zzzzzzzzzzzzzzzz'), ('01GQRA2B00ZZZZZZZZZZZZZZZZ')", rekey.Times{Key: rekey.KeyULID}, "differ in case or length"},
			{"id text PRIMARY KEY", "('0185f0a1-2c00-7fff-8000-000000000000'), ('0185f0a12c0470008000000000000000')", rekey.Times{Key: rekey.KeyUUIDv7}, "differ in case or length"},
			{"id text PRIMARY KEY", "('0185f0a1-2c00-4fff-8000-000000000000')", rekey.Times{Key: rekey.KeyUUIDv7}, "isn't a UUIDv7"},
			{"id text PRIMARY KEY", "('zzzzzzzzzzzzzzzzzzzzzzzzzzz')", rekey.Times{Key: rekey.KeyKSUID}, "isn't a KSUID"},
			{"id text PRIMARY KEY", "('9m4e2mr0ui3e8a215n4h')", rekey.Times{Key: rekey.KeyXID}, "isn't an xid"},
			{"id uuid PRIMARY KEY", "('0185f0a1-2c00-4fff-8000-000000000000')", rekey.Times{Key: rekey.KeyXID}, "has Times.Key xid and type uuid"},
			{"id text PRIMARY KEY, at bigint", "('a', 9000000000000000000)", rekey.Times{Column: "at"}, "before the year 10000"},
			{"id text PRIMARY KEY, at bigint", "('a', 1)", rekey.Times{Column: "at", Unit: 5}, "Times.Unit 5ns"},
			{"id text PRIMARY KEY, at timestamptz", "('a', now())", rekey.Times{Column: "at", Unit: time.Second}, "Times.Unit 1s for a column of type timestamptz"},
			{"id text PRIMARY KEY", "('a')", rekey.Times{Start: sourceStart, Unit: time.Second}, "Times.Unit without"},
			{"id text PRIMARY KEY", "('a')", rekey.Times{Key: "nanoid"}, `unknown Times.Key "nanoid"`},
		} {
			db.Exec(t, fmt.Sprintf("DROP TABLE IF EXISTS t; CREATE TABLE t (%s); INSERT INTO t VALUES %s", x.columns, x.rows))
			spec := rekey.Spec{Keys: []rekey.Key{{Table: "t", Format: rekey.Sno, Node: 1, BackfillNode: 2, OldKey: "gen_random_uuid()", Times: x.times}}}
			if got := problems(t, db.SQL(t), spec); strings.Count(got, "\n") != 1 || !strings.Contains(got, x.want) {
				t.Errorf("%d: expected one problem with %q, got %q", i, x.want, got)
			}
		}
	})
}
