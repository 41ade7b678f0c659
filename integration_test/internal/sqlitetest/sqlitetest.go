// Package sqlitetest provides SQLite databases for tests that don't depend on Postgres.
// It is separate from pgtest because it registers a driver under a name that other
// tests use for another driver.
package sqlitetest

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/glebarez/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// Open opens an empty database with GORM.
func Open(t testing.TB) *gorm.DB {
	t.Helper()
	return open(t, filepath.Join(t.TempDir(), "test.db"))
}

func open(t testing.TB, file string) *gorm.DB {
	t.Helper()
	g, err := gorm.Open(sqlite.Open("file:"+file+"?_pragma=foreign_keys(on)&_pragma=synchronous(off)"), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeDB(t, g) })
	return g
}

func closeDB(t testing.TB, g *gorm.DB) {
	t.Helper()
	db, err := g.DB()
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		t.Error(err)
	}
}

// A Schema is a filled database that tests open copies of. The zero value is ready to
// use.
type Schema struct {
	once sync.Once
	file []byte
}

// Open opens a copy of the database. The first call of Open fills the database with up.
func (s *Schema) Open(t testing.TB, up func(g *gorm.DB)) *gorm.DB {
	t.Helper()
	file := filepath.Join(t.TempDir(), "test.db")
	s.once.Do(func() {
		g := open(t, file)
		up(g)
		closeDB(t, g)
		if t.Failed() {
			t.FailNow()
		}
		var err error
		if s.file, err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	})
	if s.file == nil {
		t.Fatal("no database to copy: filling it failed in an earlier test")
	}
	if err := os.WriteFile(file, s.file, 0o600); err != nil {
		t.Fatal(err)
	}
	return open(t, file)
}
