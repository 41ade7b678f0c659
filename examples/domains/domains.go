// Package domains has GORM's AutoMigrate make columns of the domains of schema
// sortkey, and leave them alone when they are there.
//
// A tag makes a column of a domain:
//
//	ID idtype.Snowflake `gorm:"type:sortkey.snowflake"`
//
// That is all for primary keys. For other columns GORM's driver is told the name
// of the domain's base type, takes it for another type, and sends an ALTER TABLE
// each time that a program starts. On a large table that takes a millisecond and
// writes nothing, but it waits for all others who use the table, loses the
// column's statistics, and fails if a view has the column. [Dialector] prevents
// it.
package domains

import (
	"slices"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
)

// A Dialector is GORM's for Postgres, to which domains of schema sortkey are
// other names of their base types:
//
//	gorm.Open(domains.Dialector{Dialector: postgres.Open(dsn).(*postgres.Dialector)}, &gorm.Config{})
type Dialector struct{ *postgres.Dialector }

// Migrator gives the one that knows domains.
func (d Dialector) Migrator(db *gorm.DB) gorm.Migrator {
	return migrator{d.Dialector.Migrator(db).(postgres.Migrator)}
}

type migrator struct{ postgres.Migrator }

// GetTypeAliases gives what the type in a tag may begin with.
func (m migrator) GetTypeAliases(name string) []string {
	return append(slices.Clone(m.Migrator.GetTypeAliases(name)), "sortkey.")
}
