package command_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// TestIDsPipe generates IDs, converts them and inspects the result in a pipe.
func TestIDsPipe(t *testing.T) {
	start := time.Now().Add(-time.Millisecond)
	pipe := exec.Command("sh", "-c", `"$0" new -n 1000 --node 37 | "$0" inspect --form hex | "$0" inspect -o json`, pgtest.Command(t))
	r := finish(t, pipe)
	if r.code != 0 || r.errs != "" || strings.Count(r.out, "\n") != 1000 {
		t.Fatalf("code %d, %d lines, errors %s", r.code, strings.Count(r.out, "\n"), r.errs)
	}
	last := ""
	for _, object := range objects(t, r.out) {
		best := object["candidates"].([]any)[0].(map[string]any)
		wantFields(t, best, `{"type": "snowflake", "node": 37}`)
		created, err := time.Parse(time.RFC3339, best["time"].(string))
		hex := best["forms"].(map[string]any)["hex"].(string)
		if err != nil || created.Before(start) || created.After(time.Now()) || hex <= last {
			t.Fatalf("got %v after %s", object, last)
		}
		last = hex
	}
}

// TestIDsInSQL compares the command with the functions of the database.
func TestIDsInSQL(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		conn := db.Conn(t)
		must(t, db, "migrate up --si-epoch 2024-01-01")
		at := time.Date(2026, 1, 31, 15, 4, 5, 676_000_000, time.UTC) // a multiple of 4 ms
		for _, tt := range []struct {
			name, text string // text: the text of the column value $1
			node       int
			args       string
		}{
			{"snowflake", "$1::bigint::text", 37, ""},
			{"snowflake_si", "$1::bigint::text", 5, "--epoch 2024-01-01"},
			{"uid60", "sortkey.uid60_text($1::bigint)", -1, ""},
			{"spread64", "sortkey.spread64_text($1::bigint)", 201, ""},
			{"sno", "sortkey.sno_text($1::uuid)", 16650, "--meta 7"},
			{"uuid7", "$1::uuid::text", -1, ""},
		} {
			name := strings.ReplaceAll(tt.name, "_", "-")
			create := fmt.Sprintf("new %s -n 3 --at %s -o json %s", name, at.Format(time.RFC3339Nano), tt.args)
			if tt.node >= 0 {
				create += fmt.Sprint(" --node ", tt.node)
			}
			for sequence, line := range strings.Split(strings.TrimSpace(must(t, db, create)), "\n") {
				var id struct{ ID, Int64, UUID string }
				pgtest.Must(t, json.Unmarshal([]byte(line), &id))
				column, columnType := id.Int64, "bigint"
				if id.UUID != "" {
					column, columnType = id.UUID, "uuid"
				}
				function := fmt.Sprintf("SELECT sortkey.%s_%%s($1::%s)", tt.name, columnType)
				wantSame(t, pgtest.Value[time.Time](t, conn, fmt.Sprintf(function, "time"), column).UTC(), at)
				wantSame(t, pgtest.Value[string](t, conn, "SELECT "+tt.text, column), id.ID)
				if tt.node < 0 {
					continue
				}
				wantSame(t, pgtest.Value[int](t, conn, fmt.Sprintf(function, "node"), column), tt.node)
				create := fmt.Sprintf("SELECT sortkey.%s_at($1, $2, node => $3)::text", tt.name)
				if tt.name == "sno" {
					create = "SELECT sortkey.sno_at($1, $2, $3, 7)::text"
				}
				wantSame(t, pgtest.Value[string](t, conn, create, at, sequence, tt.node), column)
			}
		}
		testRangeInSQL(t, db, conn)
		testTypeIDsInSQL(t, db, conn)
	})
}

// testRangeInSQL pastes the WHERE clauses of range into queries.
func testRangeInSQL(t *testing.T, db *pgtest.DB, conn *pgx.Conn) {
	db.Exec(t, `CREATE TABLE "order" AS SELECT sortkey.snowflake_at(t, 0, 1) AS "Key", sortkey.sno_at(t, 0, 1) AS sno_id, sortkey.uuid7_floor(t) AS uuid_id
		FROM generate_series('2026-01-31 15:00Z'::timestamptz, '2026-01-31 15:59Z', '1 minute') AS t`)
	for _, args := range []string{`snowflake --column "order"."Key"`, "sno --column sno_id", "uuid7 --column uuid_id"} {
		var window struct{ Where string }
		pgtest.Must(t, json.Unmarshal([]byte(must(t, db, "range -o json "+args, "--since", "2026-01-31 15:10", "--until", "2026-01-31 15:15")), &window))
		wantSame(t, pgtest.Value[int](t, conn, `SELECT count(*) FROM "order" WHERE `+window.Where), 5)
	}
}

// testTypeIDsInSQL converts UUIDs of two versions to TypeIDs and back.
func testTypeIDsInSQL(t *testing.T, db *pgtest.DB, conn *pgx.Conn) {
	for _, function := range []string{"sortkey.next_uuid7()", "gen_random_uuid()"} {
		id := pgtest.Value[string](t, conn, "SELECT "+function+"::text")
		typeID := pgtest.Value[string](t, conn, "SELECT sortkey.typeid_text('order_line', $1::uuid)", id)
		for _, tt := range []struct{ want, args string }{
			{typeID, "--form typeid --prefix order_line " + id},
			{typeID, "--form typeid " + typeID},
			{id, "--form uuid " + typeID},
			{typeID[len("order_line_"):], "--form typeid " + id},
		} {
			wantSame(t, must(t, db, "inspect "+tt.args), tt.want+"\n")
		}
	}
}
