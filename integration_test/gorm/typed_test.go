package gorm

import (
	"testing"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
)

// Typed keys with a prefix, and Snos with a metabyte.
type (
	typedSnowflake = idtype.SnowflakeOf[idtest.Order]
	typedSno       = idtype.SnoOf[idtest.Customer]

	typedSnowflakePerson struct {
		Person[typedSnowflake, typedSnowflakePerson]
	}
	typedSnoPerson struct {
		Person[typedSno, typedSnoPerson]
	}
)

// The plugin fills typed keys from the generator of the base type.

func TestTypedSnowflake(t *testing.T) {
	of[typedSnowflake, typedSnowflakePerson]{idtest.OrderID, generatorOf(idtest.Snowflake)}.test(t)
}

func TestTypedSno(t *testing.T) {
	of[typedSno, typedSnoPerson]{idtest.CustomerID, generatorOf(idtest.Sno)}.test(t)
}
