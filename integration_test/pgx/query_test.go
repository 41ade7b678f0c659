package pgx

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	pgxuuid "github.com/vgarvardt/pgx-google-uuid/v5"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/pgxcodec"
	"github.com/sortkey/sortkey/sqltypes"
)

// A record has a field of every kind.
type record struct {
	ID      idtype.Snowflake
	Owner   idtype.Sno
	Parent  *idtype.UID60
	Visit   sqltypes.Optional[idtype.Spread64]
	Code    sqltypes.Text[idtype.Sno] `db:"code_text"`
	Raw     sqltypes.SnoBytes
	Related []idtype.SnowflakeSI
	Order   orderID
	Note    string
}

func (r record) args() pgx.NamedArgs {
	return pgx.NamedArgs{"id": r.ID, "owner": r.Owner, "parent": r.Parent, "visit": r.Visit, "code": r.Code, "raw": r.Raw, "related": r.Related, "order": r.Order, "note": r.Note}
}

func records() []record {
	parent, sno := idtype.Must(idtype.ParseUID60("xinaS8QBh")), idtype.Must(idtype.ParseSno("brpk4q72xwf2m63l"))
	return []record{
		{1, sno, &parent, sqltypes.OptionalOf(idtype.Spread64(-7)), sqltypes.TextOf(sno), sqltypes.SnoBytesOf(sno), []idtype.SnowflakeSI{1, 2}, orderID{9}, "full"},
		{2, sno.WithMeta(2), nil, sqltypes.Optional[idtype.Spread64]{}, sqltypes.TextOf(sno.WithMeta(3)), sqltypes.SnoBytesOf(sno.WithMeta(4)), []idtype.SnowflakeSI{}, orderID{}, "empty"},
		{3, sno.WithMeta(5), &parent, sqltypes.OptionalOf(idtype.Spread64(7)), sqltypes.TextOf(sno.WithMeta(6)), sqltypes.SnoBytesOf(sno.WithMeta(7)), nil, orderID{1}, "none"},
	}
}

// Batches with several ID types, and rows collected into structs, work in all modes.
func TestBatchAndRows(t *testing.T) {
	t.Parallel()
	filled.OneReused(t, func(t *testing.T, db *pgtest.DB) {
		pgtest.EachMode(t, func(t *testing.T, mode pgx.QueryExecMode) {
			conn, ctx, want := db.Conn(t, loaded, pgtest.Mode(mode)), t.Context(), records()
			batch := &pgx.Batch{}
			batch.Queue("delete from records")
			for _, r := range want {
				batch.Queue("insert into records values (@id, @owner, @parent, @visit, @code, @raw, @related, @order, @note)", r.args())
			}
			var owner idtype.Sno
			batch.Queue("select owner from records where code_text = $1", want[1].Code).QueryRow(func(row pgx.Row) error { return row.Scan(&owner) })
			var ids []idtype.Snowflake
			batch.Queue("select id from records where id = any($1) order by id", []idtype.Snowflake{1, 3}).Query(func(rows pgx.Rows) (err error) {
				ids, err = pgx.CollectRows(rows, pgx.RowTo[idtype.Snowflake])
				return err
			})
			pgtest.Must(t, conn.SendBatch(ctx, batch).Close())
			if owner != want[1].Owner || !reflect.DeepEqual(ids, []idtype.Snowflake{1, 3}) {
				t.Errorf("the batch read %v, %v", owner, ids)
			}

			const all = "select * from records order by id"
			collects(t, conn, pgx.RowToStructByName, want, all)
			collects(t, conn, pgx.RowToStructByPos, want, all)
			collects(t, conn, pgx.RowToAddrOfStructByNameLax, []*record{&want[0], &want[1], &want[2]}, all)
			collects(t, conn, pgx.RowTo, []*idtype.UID60{want[0].Parent, nil, want[2].Parent}, "select parent from records order by id")
			collects(t, conn, pgx.RowToMap, []map[string]any{{"id": int64(1), "owner": [16]byte(want[0].Owner.UUID())}}, "select id, owner from records where id = 1")

			var owners []idtype.Sno
			rows, _ := conn.Query(ctx, "select owner from records order by id")
			_, err := pgx.ForEachRow(rows, []any{&owner}, func() error {
				owners = append(owners, owner)
				return nil
			})
			if err != nil || !slices.Equal(owners, []idtype.Sno{want[0].Owner, want[1].Owner, want[2].Owner}) {
				t.Errorf("ForEachRow: %v, %v", owners, err)
			}
		})
	})
}

// A negative number next to an operator stays a number.
func TestNegativeNumbers(t *testing.T) {
	inEachMode(t, func(t *testing.T, conn *pgx.Conn, mode pgx.QueryExecMode) {
		for _, id := range []idtype.Spread64{-7, 7, -1 << 63, 0} {
			n := int64(id)
			queries := map[string]int64{"select 1::bigint-$1": 1 - n, "select 1::bigint -$1": 1 - n, "select $1-1::bigint": n - 1, "select $1::bigint": n, "select 2::bigint*$1/2": n}
			if mode == pgx.QueryExecModeSimpleProtocol {
				queries["select 1-$1"] = 1 - n // in other modes $1 would be an integer, like 1
			}
			if n == -1<<63 {
				queries = map[string]int64{"select $1::bigint": n, "select 0::bigint+$1": n}
			}
			for sql, want := range queries {
				returns(t, conn, idtype.Spread64(want), sql, id)
			}
		}
	})
}

// The google/uuid codec, registered before or after this one, and pgx's own uuid types
// give the same results as without this codec.
func TestWithGoogleUUID(t *testing.T) {
	u, sno := uuid.MustParse("f47ac10b-58cc-4372-a567-0e02b2c3d479"), idtype.Must(idtype.ParseSno("brpk4q72xwf2m63l"))
	type registrations []func(*pgtype.Map)
	t.Parallel()
	filled.OneReused(t, func(t *testing.T, db *pgtest.DB) {
		for name, c := range map[string]struct{ without, with registrations }{
			"none":   {nil, registrations{pgxcodec.Register}},
			"before": {registrations{pgxuuid.Register}, registrations{pgxuuid.Register, pgxcodec.Register}},
			"after":  {registrations{pgxuuid.Register}, registrations{pgxcodec.Register, pgxuuid.Register}},
		} {
			t.Run(name, func(t *testing.T) {
				pgtest.EachMode(t, func(t *testing.T, mode pgx.QueryExecMode) {
					connect := func(register registrations) *pgx.Conn {
						conn := db.Conn(t, pgtest.Mode(mode))
						for _, f := range register {
							f(conn.TypeMap())
						}
						return conn
					}
					without, with := connect(c.without), connect(c.with)
					for _, arg := range []any{
						u, &u, uuid.NullUUID{UUID: u, Valid: true}, uuid.NullUUID{}, pgtype.UUID{Bytes: u, Valid: true}, pgtype.UUID{}, [16]byte(u), u.String(),
					} {
						same(t, without, with, "insert into uuids (id) values ($1) returning id, id::text", arg)
						same(t, without, with, "select id, id::text from uuids where id = $1", arg)
					}
					for _, arg := range []any{[]uuid.UUID{u, sno.UUID()}, []pgtype.UUID{{Bytes: u, Valid: true}, {}}, [][16]byte{u}, []string{u.String()}, []uuid.UUID{}} {
						same(t, without, with, "insert into uuids (ids) values ($1) returning ids, ids::text", arg)
					}
					same(t, without, with, "select $1::text::uuid, 'x'", u.String())

					pointers, text := []*idtype.Sno{&sno, nil}, sno.UUID().String()
					returns(t, with, sno, "insert into uuids (id) values ($1) returning id", sno)
					returns(t, with, text, "insert into uuids (id) values ($1) returning id::text", sno)
					returns(t, with, []sqltypes.Optional[idtype.Sno]{{ID: sno}, {}}, "insert into uuids (ids) values ($1) returning ids", pointers)
					returns(t, with, "{"+text+",NULL}", "insert into uuids (ids) values ($1) returning ids::text", pointers)
				})
			})
		}
	})
}

// same compares the results of a query on two connections: scanned into a value of the
// argument's type, and from Rows.Values.
func same(t *testing.T, without, with *pgx.Conn, sql string, arg any) {
	t.Helper()
	answer := func(conn *pgx.Conn) string {
		rows, _ := conn.Query(t.Context(), sql, arg)
		defer rows.Close()
		text := ""
		for rows.Next() {
			dst, shown := reflect.New(reflect.TypeOf(arg)), ""
			values, err := rows.Values()
			text += fmt.Sprintf("%T %v %v; ", values[0], values, err)
			err = rows.Scan(dst.Interface(), &shown) // closes the rows if it fails
			text += fmt.Sprintf("%v %v %s; ", reflect.Indirect(dst.Elem()), err, shown)
		}
		return text + fmt.Sprint(rows.Err())
	}
	if got, want := answer(with), answer(without); got != want {
		t.Errorf("%s with %T: got %s, and without the codec %s", sql, arg, got, want)
	}
}

// Slices of slices are arrays of several dimensions, with the elements in their order.
func TestNested(t *testing.T) {
	inEachMode(t, func(t *testing.T, conn *pgx.Conn, mode pgx.QueryExecMode) {
		a, b := idtype.Must(idtype.ParseSno("brpk4q72xwf2m63l")), idtype.Must(idtype.ParseSno("brpk4q72xwf2m63m"))
		one := idtype.Snowflake(1)
		for literal, want := range map[string]any{
			"'{{1,2},{3,4},{5,6}}'::bigint[]":                           [][]idtype.Snowflake{{1, 2}, {3, 4}, {5, 6}},
			"'{{1,2},{3,4}}'::sortkey.number[]":                         [][]idtype.Snowflake{{1, 2}, {3, 4}},
			"'{{NULL,1}}'::bigint[]":                                    [][]*idtype.Snowflake{{nil, &one}},
			"'{{{1,2},{3,4},{5,6}},{{7,8},{9,10},{11,12}}}'::bigint[]":  [][][]idtype.Snowflake{{{1, 2}, {3, 4}, {5, 6}}, {{7, 8}, {9, 10}, {11, 12}}},
			"'{{{{1},{2}},{{3},{4}}},{{{5},{6}},{{7},{8}}}}'::bigint[]": [][][][]orderID{{{{{1}}, {{2}}}, {{{3}}, {{4}}}}, {{{{5}}, {{6}}}, {{{7}}, {{8}}}}},
			fmt.Sprintf("'{{{%s},{%s}}}'::uuid[]", a.UUID(), b.UUID()):  [][][]idtype.Sno{{{a}, {b}}},
			fmt.Sprintf("'{{%s},{%s}}'::text[]", a, b):                  [][]sqltypes.Text[idtype.Sno]{{sqltypes.TextOf(a)}, {sqltypes.TextOf(b)}},
			"'{}'::bigint[]": [][]idtype.Snowflake{},
			"NULL::bigint[]": [][]idtype.Snowflake(nil),
		} {
			returns(t, conn, want, "select "+literal)
			if mode == pgx.QueryExecModeExec || mode == pgx.QueryExecModeSimpleProtocol {
				continue
			}
			_, typ, _ := strings.Cut(literal, "::")
			returns(t, conn, want, "select $1::"+typ, want)
			var same bool
			if err := conn.QueryRow(t.Context(), "select $1::"+typ+" is not distinct from "+literal, want).Scan(&same); err != nil || !same {
				t.Errorf("%v isn't %s: %v", want, literal, err)
			}
		}
		// The lengths differ, after a slice of the same type that was regular.
		for _, ragged := range []any{[][]idtype.Snowflake{{1, 2}, {3}}, [][]idtype.Snowflake{{1}, {2, 3}}, [][]idtype.Snowflake{{}, {1}}, [][][]idtype.Snowflake{{{1}, {2}}, {{3}}}} {
			var text string
			if err := conn.QueryRow(t.Context(), "select ($1::bigint[])::text", ragged).Scan(&text); err == nil {
				t.Errorf("%v is stored as %s, want an error", ragged, text)
			}
		}
		var flat [][]idtype.Snowflake
		if err := conn.QueryRow(t.Context(), "select '{1,2}'::bigint[]").Scan(&flat); !errors.Is(err, idtype.ErrSyntax) {
			t.Errorf("one dimension as %v: %v, want ErrSyntax", flat, err)
		}
	})
}
