package pgx

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/sqltypes"
)

// Ranges and multiranges of bigint IDs round-trip in all modes.
func TestRangeTypes(t *testing.T) {
	t.Parallel()
	filled.EachReused(t, func(t *testing.T, db *pgtest.DB) {
		pgtest.EachMode(t, func(t *testing.T, mode pgx.QueryExecMode) {
			eachType(t, db, suite.rangeTypes, pgtest.Mode(mode))
		})
	})
}

func (s suite) rangeTypes(t *testing.T, conn *pgx.Conn) {
	if s.column != "bigint" {
		return // Postgres has no range type for uuid
	}
	// The server normalizes integer ranges to an inclusive lower and an exclusive upper bound.
	lo, hi, last := s.edges[0], s.edges[1], s.edges[len(s.edges)-1]
	span := reflect.TypeOf(s.span)
	closed := fill(span, lo, hi, pgtype.Inclusive, pgtype.Exclusive, true)
	open := fill(span, last, nil, pgtype.Inclusive, pgtype.Unbounded, true)
	multi := fill(reflect.TypeOf(s.spans), closed, open)
	for _, in := range []any{closed, open, zero(span)} {
		returns(t, conn, in, "select $1::int8range", in)
	}
	returns(t, conn, multi, "select $1::int8multirange", multi)
	returns(t, conn, fmt.Sprintf("{[%s,%s),[%s,)}", s.stored(lo), s.stored(hi), s.stored(last)), "select $1::int8multirange::text", multi)
	for id, want := range map[any][]bool{lo: {true, true}, hi: {false, false}, last: {false, true}} {
		returns(t, conn, want, "select array[$1::bigint <@ $2::int8range, $1::bigint <@ $3::int8multirange]", id, closed, multi)
	}
}

// Composite types hold IDs, arrays of IDs and domains, whether loaded one by one or
// together.
func TestComposites(t *testing.T) {
	type part struct {
		N    idtype.Spread64
		U    *idtype.Sno
		List []sqltypes.Text[idtype.Sno]
		D    idtype.Snowflake
		Ds   []*idtype.Snowflake
		Raw  sqltypes.Optional[sqltypes.SnoBytes]
	}
	t.Parallel()
	filled.EachReused(t, func(t *testing.T, db *pgtest.DB) {
		sno, n := idtype.Must(idtype.ParseSno("brpk4q72xwf2m63l")), idtype.Snowflake(132271570944274432)
		full := part{-7, &sno, []sqltypes.Text[idtype.Sno]{{ID: sno}}, n, []*idtype.Snowflake{&n, nil}, sqltypes.OptionalOf(sqltypes.SnoBytesOf(sno))}
		empty := part{List: []sqltypes.Text[idtype.Sno]{}, Ds: []*idtype.Snowflake{}}
		for name, load := range map[string]func(*testing.T, *pgx.Conn, ...string){"one by one": loadEach, "together": loadTogether} {
			t.Run(name, func(t *testing.T) {
				// Composites need parameter OIDs, which the last two modes don't have.
				for _, mode := range pgtest.Modes[:3] {
					conn := db.Conn(t, pgtest.Codec, pgtest.Mode(mode))
					load(t, conn, "part", "_part")
					for _, in := range []part{full, empty} {
						var out part
						var outs []part
						var u, d string
						err := conn.QueryRow(t.Context(), "insert into parts values ($1, $2) returning p, ps, coalesce((p).u::text, ''), (p).d::text", in, []part{in, in}).Scan(&out, &outs, &u, &d)
						if err != nil || !reflect.DeepEqual(out, in) || !reflect.DeepEqual(outs, []part{in, in}) {
							t.Errorf("%v: %+v, %+v, %v, want %+v", mode, out, outs, err, in)
						}
						if in.U != nil && u != sno.UUID().String() || d != in.D.String() {
							t.Errorf("%v: the server has %s, %s", mode, u, d)
						}
					}
				}
			})
		}
	})
}

// loadEach registers types with pgx's LoadType.
func loadEach(t *testing.T, conn *pgx.Conn, names ...string) {
	t.Helper()
	for _, name := range names {
		typ, err := conn.LoadType(t.Context(), name)
		pgtest.Must(t, err)
		conn.TypeMap().RegisterType(typ)
	}
}

// loadTogether registers types with pgx's LoadTypes.
func loadTogether(t *testing.T, conn *pgx.Conn, names ...string) {
	t.Helper()
	types, err := conn.LoadTypes(t.Context(), names)
	pgtest.Must(t, err)
	conn.TypeMap().RegisterTypes(types)
}
