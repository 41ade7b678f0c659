package command_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
)

// TestIDsPipe generates IDs, converts them and inspects the result in a pipe.
func TestIDsPipe(t *testing.T) {
	start := time.Now().Add(-time.Millisecond)
	pipe := exec.Command("sh", "-c", `"$0" new -n 1000 --node 37 | "$0" inspect --form hex | "$0" inspect -o json`, binary)
	r := finish(t, pipe)
	if r.code != 0 || r.errs != "" || strings.Count(r.out, "\n") != 1000 {
		t.Fatalf("code %d, %d lines, errors %s", r.code, strings.Count(r.out, "\n"), r.errs)
	}
	last := ""
	for line := range strings.Lines(r.out) {
		var got struct {
			Candidates []struct {
				Type  string
				Time  time.Time
				Node  int
				Forms map[string]string
			}
		}
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(err)
		}
		best := got.Candidates[0]
		if best.Type != "snowflake" || best.Node != 37 || best.Time.Before(start) || best.Time.After(time.Now()) || best.Forms["hex"] <= last {
			t.Fatalf("got %safter %s", line, last)
		}
		last = best.Forms["hex"]
	}
}

// TestIDsInSQL compares the command with the functions of the database.
func TestIDsInSQL(t *testing.T) {
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		start := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
		conn := db.SQL(t)
		if err := migrations.Up(t.Context(), conn, migrations.Config{SnowflakeSI: idtype.SnowflakeSILayout{BaseClock: start}}); err != nil {
			t.Fatal(err)
		}
		at := time.Date(2026, 1, 31, 15, 4, 5, 676_000_000, time.UTC) // a multiple of 4 ms
		for _, tt := range []struct {
			name, text string // text: the text of the column value $1
			node       int
			args       string
		}{
			{"snowflake", "$1", 37, ""},
			{"snowflake_si", "$1", 5, "--epoch 2024-01-01"},
			{"uid60", "sortkey.uid60_text($1::bigint)", -1, ""},
			{"spread64", "sortkey.spread64_text($1::bigint)", 201, ""},
			{"sno", "sortkey.sno_text($1::uuid)", 16650, "--meta 7"},
			{"uuid7", "$1", -1, ""},
		} {
			name := strings.ReplaceAll(tt.name, "_", "-")
			create := fmt.Sprintf("new %s -n 3 --at %s -o json %s", name, at.Format(time.RFC3339Nano), tt.args)
			if tt.node >= 0 {
				create += fmt.Sprint(" --node ", tt.node)
			}
			for sequence, line := range strings.Split(strings.TrimSpace(must(t, db, create)), "\n") {
				var id struct{ ID, Int64, UUID string }
				if err := json.Unmarshal([]byte(line), &id); err != nil {
					t.Fatal(err)
				}
				column, columnType := id.Int64, "bigint"
				if id.UUID != "" {
					column, columnType = id.UUID, "uuid"
				}
				var created time.Time
				var text string
				query := fmt.Sprintf("SELECT sortkey.%s_time($1::%s), %s", tt.name, columnType, tt.text)
				if err := conn.QueryRowContext(t.Context(), query, column).Scan(&created, &text); err != nil {
					t.Fatal(err)
				}
				if !created.Equal(at) || text != id.ID {
					t.Errorf("%s: SQL has time %s and text %s; want %s and %s", line, created, text, at, id.ID)
				}
				if tt.node < 0 {
					continue
				}
				var node int
				query = fmt.Sprintf("SELECT sortkey.%s_node($1::%s)", tt.name, columnType)
				if err := conn.QueryRowContext(t.Context(), query, column).Scan(&node); err != nil || node != tt.node {
					t.Errorf("%s: SQL has node %d, error %v; want %d", line, node, err, tt.node)
				}
				var same string
				query = fmt.Sprintf("SELECT sortkey.%s_at($1, $2, node => $3)::text", tt.name)
				if tt.name == "sno" {
					query = "SELECT sortkey.sno_at($1, $2, 7, $3)::text"
				}
				if err := conn.QueryRowContext(t.Context(), query, at, sequence, tt.node).Scan(&same); err != nil || same != column {
					t.Errorf("%s: SQL creates %s, error %v; want %s", line, same, err, column)
				}
			}
		}
		testRangeInSQL(t, db, conn)
		testTypeIDsInSQL(t, db, conn)
	})
}

// testRangeInSQL pastes the WHERE clauses of range into queries.
func testRangeInSQL(t *testing.T, db *pgtest.DB, conn *sql.DB) {
	db.Exec(t, `CREATE TABLE "order" AS SELECT sortkey.snowflake_at(t, 0, 1) AS "Key", sortkey.sno_at(t, 0, 0, 1) AS sno_id, sortkey.uuid7_floor(t) AS uuid_id
		FROM generate_series('2026-01-31 15:00Z'::timestamptz, '2026-01-31 15:59Z', '1 minute') AS t`)
	for _, args := range []string{`snowflake --column "order"."Key"`, "sno --column sno_id", "uuid7 --column uuid_id"} {
		var window struct{ Where string }
		pgtest.Must(t, json.Unmarshal([]byte(must(t, db, "range -o json "+args, "--since", "2026-01-31 15:10", "--until", "2026-01-31 15:15")), &window))
		var rows int
		if err := conn.QueryRowContext(t.Context(), `SELECT count(*) FROM "order" WHERE `+window.Where).Scan(&rows); err != nil || rows != 5 {
			t.Errorf("%s: got %d rows, error %v; want 5", window.Where, rows, err)
		}
	}
}

// testTypeIDsInSQL converts UUIDs of two versions to TypeIDs and back.
func testTypeIDsInSQL(t *testing.T, db *pgtest.DB, conn *sql.DB) {
	for _, function := range []string{"sortkey.next_uuid7()", "gen_random_uuid()"} {
		var id, typeID string
		query := "SELECT id, sortkey.typeid_text('order_line', id) FROM (SELECT " + function + " AS id) q"
		pgtest.Must(t, conn.QueryRowContext(t.Context(), query).Scan(&id, &typeID))
		for _, tt := range []struct{ want, args string }{
			{typeID, "--form typeid --prefix order_line " + id},
			{typeID, "--form typeid " + typeID},
			{id, "--form uuid " + typeID},
			{typeID[len("order_line_"):], "--form typeid " + id},
		} {
			if got := must(t, db, "inspect "+tt.args); got != tt.want+"\n" {
				t.Errorf("inspect %s: got %s, SQL has %s", tt.args, got, tt.want)
			}
		}
	}
}
