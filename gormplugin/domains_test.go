package gormplugin

import (
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/gorm/utils/tests"
)

// A foreign dialector has the name of Postgres, but not the methods.
type foreign struct{ tests.DummyDialector }

func (foreign) Name() string { return "postgres" }

func TestDomainsRejects(t *testing.T) {
	t.Parallel()
	db, err := gorm.Open(foreign{}, &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		domains Domains
		want    string
	}{
		{Domains{}, "want the dialector of gorm.io/driver/postgres or one that embeds it, got gormplugin.foreign"},
		{Domains{Schema: "my-ids"}, `want lower-case letters, digits and underscores, got "my-ids"`},
		{Domains{Schema: "IDs"}, `got "IDs"`},
	} {
		if err := db.Use(c.domains); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want an error with %s", c.domains, err, c.want)
		}
	}
}

// Another database keeps its dialector. A second use is an error, as for every plugin.
func TestDomainsElsewhere(t *testing.T) {
	t.Parallel()
	db := open(t)
	if err := db.Use(Domains{}); err != nil || db.Dialector != (tests.DummyDialector{}) {
		t.Errorf("got the dialector %#v, %v, want it unchanged", db.Dialector, err)
	}
	if err := db.Use(Domains{}); !errors.Is(err, gorm.ErrRegistered) {
		t.Errorf("a second use: got %v, want %v", err, gorm.ErrRegistered)
	}
	if err := db.Use(New(For(snowflakes()))); err != nil {
		t.Errorf("a second plugin: %v", err)
	}
}
