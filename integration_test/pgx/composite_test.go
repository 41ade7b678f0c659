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
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		pgtest.EachMode(t, func(t *testing.T, mode pgx.QueryExecMode) {
			eachType(t, db, suite.rangeTypes, pgtest.Mode(mode))
		})
	})
}

func (k of[T]) rangeTypes(t *testing.T, conn *pgx.Conn) {
	if k.Column != "bigint" {
		return // Postgres has no range type for uuid
	}
	ctx := t.Context()
	if _, err := conn.Exec(ctx, "create temporary table "+k.table()+" (r int8range, m int8multirange)"); err != nil {
		t.Fatal(err)
	}
	// The server normalizes integer ranges to an inclusive lower and an exclusive upper bound.
	lo, hi, last := k.Edges[0], k.Edges[1], k.Edges[len(k.Edges)-1]
	closed := pgtype.Range[T]{Lower: lo, Upper: hi, LowerType: pgtype.Inclusive, UpperType: pgtype.Exclusive, Valid: true}
	open := pgtype.Range[T]{Lower: last, LowerType: pgtype.Inclusive, UpperType: pgtype.Unbounded, Valid: true}
	for _, in := range []pgtype.Range[T]{closed, open, {}} {
		var out pgtype.Range[T]
		if err := conn.QueryRow(ctx, "insert into "+k.table()+" (r) values ($1) returning r", in).Scan(&out); err != nil || out != in {
			t.Errorf("%v: %v, %v", in, out, err)
		}
	}
	multi := pgtype.Multirange[pgtype.Range[T]]{closed, open}
	var out pgtype.Multirange[pgtype.Range[T]]
	if err := conn.QueryRow(ctx, "insert into "+k.table()+" (m) values ($1) returning m", multi).Scan(&out); err != nil || !reflect.DeepEqual(out, multi) {
		t.Errorf("%v: %v, %v", multi, out, err)
	}
	var shown string
	if err := conn.QueryRow(ctx, "select m::text from "+k.table()+" where m is not null").Scan(&shown); err != nil || shown != fmt.Sprintf("{[%s,%s),[%s,)}", k.Stored(lo), k.Stored(hi), k.Stored(last)) {
		t.Errorf("the server has %s, %v", shown, err)
	}
	for id, want := range map[T]bool{lo: true, hi: false, last: true} {
		var inRange, inMulti bool
		if err := conn.QueryRow(ctx, "select $1::bigint <@ $2::int8range, $1::bigint <@ $3::int8multirange", id, closed, multi).Scan(&inRange, &inMulti); err != nil ||
			inRange != (id == lo) || inMulti != want {
			t.Errorf("%v is contained: %v, %v, %v", id, inRange, inMulti, err)
		}
	}
}

// Composite types hold IDs, arrays of IDs and domains, whether loaded one by one or
// together.
func TestComposites(t *testing.T) {
	type part struct {
		N    idtype.Spread64
		U    *idtype.Sno
		List []sqltypes.SnoText
		D    idtype.Snowflake
		Ds   []*idtype.Snowflake
		Raw  sqltypes.OptionalSnoBytes
	}
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		createDomains(t, db)
		db.Exec(t, `create type part as (n bigint, u uuid, list text[], d sortkey.number, ds sortkey.number[], raw bytea); create table t (p part, ps part[])`)
		sno, n := idtype.MustParseSno("brpk4q72xwf2m63l"), idtype.Snowflake(132271570944274432)
		full := part{-7, &sno, []sqltypes.SnoText{{ID: sno}}, n, []*idtype.Snowflake{&n, nil}, sqltypes.OptionalOf(sqltypes.SnoBytesOf(sno))}
		empty := part{List: []sqltypes.SnoText{}, Ds: []*idtype.Snowflake{}}
		for name, load := range map[string]func(*pgx.Conn) error{
			"LoadType": func(conn *pgx.Conn) error {
				for _, name := range []string{"part", "part[]"} {
					typ, err := conn.LoadType(t.Context(), name)
					if err != nil {
						return err
					}
					conn.TypeMap().RegisterType(typ)
				}
				return nil
			},
			"LoadTypes": func(conn *pgx.Conn) error {
				types, err := conn.LoadTypes(t.Context(), []string{"part", "_part"})
				conn.TypeMap().RegisterTypes(types)
				return err
			},
		} {
			t.Run(name, func(t *testing.T) {
				// Composites need parameter OIDs, which the last two modes don't have.
				for _, mode := range pgtest.Modes[:3] {
					conn := db.Conn(t, pgtest.Codec, pgtest.Mode(mode))
					if err := load(conn); err != nil {
						t.Fatal(err)
					}
					for _, in := range []part{full, empty} {
						var out part
						var outs []part
						err := conn.QueryRow(t.Context(), "insert into t values ($1, $2) returning p, ps", in, []part{in, in}).Scan(&out, &outs)
						if err != nil || !reflect.DeepEqual(out, in) || !reflect.DeepEqual(outs, []part{in, in}) {
							t.Errorf("%v: %+v, %+v, %v, want %+v", mode, out, outs, err, in)
						}
						var u, first string
						err = conn.QueryRow(t.Context(), "select coalesce((p).u::text, ''), (p).d::text from t order by ctid desc limit 1").Scan(&u, &first)
						if err != nil || in.U != nil && u != sno.UUID().String() || first != in.D.String() {
							t.Errorf("%v: the server has %s, %s, %v", mode, u, first, err)
						}
					}
				}
			})
		}
	})
}
