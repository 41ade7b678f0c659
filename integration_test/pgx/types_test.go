// Package pgx tests the ID types with pgx and the codec.
package pgx

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// A suite has the tests that need the Go type.
type suite interface {
	TypeName() string
	arrays(t *testing.T, conn *pgx.Conn)
	order(t *testing.T, conn *pgx.Conn)
	ranges(t *testing.T, conn *pgx.Conn)
}

type of[T idtest.ID[T]] struct{ idtest.Kind[T] }

var suites = []suite{
	of[idtype.Snowflake]{idtest.Snowflake},
	of[idtype.SnowflakeSI]{idtest.SnowflakeSI},
	of[idtype.UID60]{idtest.UID60},
	of[idtype.Spread64]{idtest.Spread64},
	of[idtype.Sno]{idtest.Sno},
}

// eachType runs one test of the suites on a connection with the codec.
func eachType(t *testing.T, db *pgtest.DB, f func(s suite, t *testing.T, conn *pgx.Conn), opts ...pgtest.Option) {
	conn := db.Conn(t, append(opts, pgtest.Codec)...)
	for _, s := range suites {
		t.Run(s.TypeName(), func(t *testing.T) { f(s, t, conn) })
	}
}

// tableName is a name as Postgres has it unless it is quoted.
func tableName(name string) string { return strings.ToLower(name) }
