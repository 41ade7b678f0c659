package main

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestAuditUsage(t *testing.T) {
	t.Setenv("DATABASE_URL", "")
	t.Setenv("PGHOST", "")
	for _, tt := range []struct{ args, want string }{
		{"", "requires at least 1 arg(s)"},
		{"orders", "no database: pass --database"},
		{"orders --database ://", "cannot parse"},
		{"orders --type snowflakes", `--type "snowflakes": want snowflake, snowflake-si, uid60, spread64, sno, uuid7`},
		{"orders --epoch 2020-01-01", "--epoch and --bits need --type"},
		{"orders --tolerance 1m", "--tolerance needs --created-at"},
		{"orders --created-at c --tolerance -1m", "must not be negative"},
		{"orders --batch 0", "--batch 0: want 1 to 1000000"},
		{"orders --rate -1", "must not be negative"},
		{"orders --nodes 1,", `--nodes "1,": want numbers and ranges from 0 to 65535, such as 0-31,1023`},
		{"orders --nodes 7-1", "want numbers and ranges"},
		{"orders --nodes -1", "want numbers and ranges"},
		{"orders --nodes 65536", "want numbers and ranges"},
		{"orders --examples -1", "must not be negative"},
	} {
		out, errs, code := execute(t, "", append([]string{"audit"}, strings.Fields(tt.args)...)...)
		if code != exitError || out != "" || !strings.Contains(errs, tt.want) || !strings.Contains(errs, "audit --help for the usage") {
			t.Errorf("audit %s: code %d, %q %q; want code 2 and %q", tt.args, code, out, errs, tt.want)
		}
	}
}

// Keys compare as the column's values do.
func TestAuditKeyOrder(t *testing.T) {
	numbers := []int64{math.MinInt64, -2, -1, 0, 1, math.MaxInt64}
	for i, n := range numbers {
		if k := bigintKey(n); k.bigint() != n || i > 0 && bigintKey(numbers[i-1]).compare(k) >= 0 {
			t.Errorf("key of %d: got %v", n, k)
		}
	}
	low, high := uuidKey([]byte("2222222222222222")), uuidKey([]byte("22222222222222x2"))
	if low.compare(high) >= 0 || uuidKey([]byte("z222222222222222")).compare(high) <= 0 {
		t.Error("want uuids in the order of their bytes")
	}
}

// Days before 1970 are days, too.
func TestFloorDay(t *testing.T) {
	for day, at := range map[int64]string{-1: "1969-12-31T23:59:59.999Z", 0: "1970-01-01T00:00:00Z", 20000: "2024-10-04T23:59:59Z"} {
		parsed, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		if got := floorDay(parsed.UnixMilli()); got != day {
			t.Errorf("%s: got day %d, want %d", at, got, day)
		}
	}
}

// The tables show the nodes and days with the most rows, in order, and sum the others up.
func TestAuditTop(t *testing.T) {
	var nodes []auditNode
	for i := range 15 {
		nodes = append(nodes, auditNode{Type: "sno", Node: i, Rows: int64(i)})
	}
	rows := nodeRows(nodes)
	if len(rows) != auditTop+1 || rows[0][1] != 5 || rows[9][1] != 14 || rows[10][0] != "5 others" || rows[10][2] != "10" || rows[10][3] != "9.5%" {
		t.Errorf("got %v", rows)
	}
	if rows := dayRows([]auditDay{{"2026-01-01", 3}}); len(rows) != 1 || rows[0][2] != "100.0%" {
		t.Errorf("got %v", rows)
	}
}

// The rate counts the rows that a statement returned, which can be more than a batch.
func TestAuditRate(t *testing.T) {
	turn := &auditTurn{rate: 1000}
	begun := time.Now()
	turn.took(100, begun)
	turn.took(100, begun)
	if err := turn.wait(t.Context()); err != nil || time.Since(begun) < 200*time.Millisecond {
		t.Errorf("waited %v (%v), want 200 ms", time.Since(begun), err)
	}
}
