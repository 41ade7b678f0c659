// Package rekeybench measures the backfill of package rekey, against an UPDATE of all rows
// in one statement:
//
//	scripts/with-postgres go test ./bench/rekey -bench . -benchtime 3x -rows 200000
package rekeybench
