// Package sqlitetest gives tests databases of SQLite, for what isn't Postgres'
// own. It isn't part of pgtest since it registers a driver, whose name another
// one has that tests use.
package sqlitetest

import (
	"testing"

	"github.com/glebarez/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// Open opens an empty database with GORM.
func Open(t testing.TB) *gorm.DB {
	t.Helper()
	dsn := "file:" + t.TempDir() + "/test.db?_pragma=foreign_keys(on)&_pragma=synchronous(off)"
	g, err := gorm.Open(sqlite.Open(dsn), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	db, err := g.DB()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return g
}
