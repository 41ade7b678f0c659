package main

import "testing"

func TestAuditUsage(t *testing.T) {
	checkUsage(t, "audit", []usageTest{
		{"", "requires at least 1 arg(s)"},
		{"orders", "no database: pass --database"},
		{"orders --database ://", "cannot parse"},
		{"orders --type snowflakes", `--type "snowflakes": want snowflake, snowflake-si, uid60, spread64, sno, uuid7`},
		{"orders --epoch 2020-01-01", "--epoch and --bits need --type"},
		{"orders --nodes 1,", `--nodes "1,": want numbers and ranges from 0 to 65535, such as 0-31,1023`},
		{"orders --nodes 7-1", "want numbers and ranges"},
		{"orders --nodes -1", "want numbers and ranges"},
		{"orders --nodes 65536", "want numbers and ranges"},
		{"orders --serial-until -1", "--serial-until -1: want the largest key of the serial column"},
		{"orders --serial-until 9223372036854775807", "--serial-until 9223372036854775807: want the largest key of the serial column, up to 9007199254740992"},
		{"orders --since 2026-02-01 --until 2026-01-01", "--until 2026-01-01T00:00:00Z: the end is before the start"},
	})
}
