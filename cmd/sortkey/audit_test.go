package main

import (
	"testing"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/audit"
)

func TestAuditUsage(t *testing.T) {
	checkUsage(t, "audit", []usageTest{
		{"", "requires at least 1 arg(s)"},
		{"orders", "no database: pass --database"},
		{"orders --database ://", "cannot parse"},
		{"orders --type snowflakes", `--type "snowflakes": want snowflake, snowflake-si, uid60, spread64, sno, uuid7`},
		{"orders --epoch 2020-01-01", "--epoch and --bits need --type"},
		{"orders --batch 0", "--batch 0: want 1 to 1000000"},
		{"orders --rate -1", "must not be negative"},
		{"orders --nodes 1,", `--nodes "1,": want numbers and ranges from 0 to 65535, such as 0-31,1023`},
		{"orders --nodes 7-1", "want numbers and ranges"},
		{"orders --nodes -1", "want numbers and ranges"},
		{"orders --nodes 65536", "want numbers and ranges"},
		{"orders --examples -1", "must not be negative"},
	})
}

// The tables show the nodes and days with the most rows, in order, and sum the others up.
func TestAuditTop(t *testing.T) {
	var nodes []audit.Node
	for i := range 15 {
		nodes = append(nodes, audit.Node{Type: "sno", Node: i, Rows: int64(i)})
	}
	rows := shareRows("other", nodeShares(nodes))
	if len(rows) != auditTop+1 || rows[0][1] != 5 || rows[9][1] != 14 || rows[10][0] != "5 others" || rows[10][1] != "" || rows[10][2] != "10" || rows[10][3] != "9.5%" {
		t.Errorf("got %v", rows)
	}
	if rows := shareRows("other day", []share{{table.Row{"2026-01-01"}, 3, ""}}); len(rows) != 1 || rows[0][2] != "100.0%" {
		t.Errorf("got %v", rows)
	}
}
