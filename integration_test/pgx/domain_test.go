package pgx

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/pgxcodec"
	"github.com/sortkey/sortkey/sqltypes"
)

// The server describes some parameters and columns with the domain's OID, and some with
// the base type's.
func TestDomainOIDs(t *testing.T) {
	t.Parallel()
	filled.EachReused(t, func(t *testing.T, db *pgtest.DB) {
		conn, ctx := db.Conn(t, loaded), t.Context()
		name := func(oid uint32) string { return pgtest.Value[string](t, conn, "select $1::oid::regtype::text", oid) }
		for sql, want := range map[string]string{
			"insert into keyed (id) values ($1) returning id":   "sortkey.number bigint",
			"insert into keyed (ids) values ($1) returning ids": "sortkey.number[] sortkey.number[]",
			"update keyed set id = $1 returning id":             "sortkey.number bigint",
			"select $1::sortkey.number":                         "sortkey.number bigint",
			"select id from keyed where id = $1":                "bigint bigint",
			"select id from keyed where id = any($1)":           "bigint[] bigint",
		} {
			d, err := conn.Prepare(ctx, sql, sql)
			pgtest.Must(t, err)
			if got := name(d.ParamOIDs[0]) + " " + name(d.Fields[0].DataTypeOID); got != want {
				t.Errorf("%s: %s, want %s", sql, got, want)
			}
		}
		for domain, want := range map[string]string{"sortkey.number": "sortkey.number", "sortkey._number": "sortkey.number[]"} {
			if typ, ok := conn.TypeMap().TypeForName(domain); !ok || name(typ.OID) != want {
				t.Errorf("%s is not registered: %v", domain, typ)
			}
		}
	})
}

// A ticket is a caller's type, which ticketCodec stores as a number.
type ticket string

type ticketCodec struct{ pgtype.Int8Codec }

func (c ticketCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if _, ok := value.(ticket); ok {
		return encodeTicket{}
	}
	return c.Int8Codec.PlanEncode(m, oid, format, value)
}

func (ticketCodec) PreferredFormat() int16 { return pgtype.TextFormatCode }

func (ticketCodec) FormatSupported(format int16) bool { return format == pgtype.TextFormatCode }

func (c ticketCodec) DecodeValue(_ *pgtype.Map, _ uint32, _ int16, src []byte) (any, error) {
	return "T-" + ticket(src), nil
}

type encodeTicket struct{}

func (encodeTicket) Encode(value any, buf []byte) ([]byte, error) {
	digits, _ := strings.CutPrefix(string(value.(ticket)), "T-")
	return append(buf, digits...), nil
}

// AfterConnect leaves a domain alone if the caller has registered a codec for it: the codec
// keeps its format, and IDs are encoded by their Value.
func TestCallersDomainCodec(t *testing.T) {
	t.Parallel()
	filled.OneReused(t, func(t *testing.T, db *pgtest.DB) {
		pgtest.EachMode(t, func(t *testing.T, mode pgx.QueryExecMode) {
			conn, ctx := db.Conn(t, pgtest.Mode(mode)), t.Context()
			m := conn.TypeMap()
			number, err := conn.LoadType(ctx, "sortkey.number")
			pgtest.Must(t, err)
			number.Codec = ticketCodec{}
			m.RegisterType(number)
			loadEach(t, conn, "sortkey._number")
			for range 2 {
				pgtest.Must(t, pgxcodec.AfterConnect(ctx, conn))
			}
			m.RegisterDefaultPgType(ticket(""), "sortkey.number")
			m.RegisterDefaultPgType([]ticket(nil), "sortkey._number")

			for _, args := range [][]any{
				{ticket("T-7"), []ticket{"T-7", "T-8"}},
				{idtype.Snowflake(7), []idtype.Snowflake{7, 8}},
				{int64(7), []int64{7, 8}},
			} {
				returns(t, conn, `(7,"{7,8}")`, "insert into keyed values ($1, $2) returning row(id, ids)::text", args...)
			}
			if _, err := conn.Exec(ctx, "insert into keyed (id) values ($1)", idtype.Sno{}); err == nil {
				t.Error("a Sno as a domain over bigint: no error")
			}
			// The server describes the array with the OID of the domain's array type.
			rows, _ := conn.Query(ctx, "select ids from keyed limit 1")
			values, err := pgx.CollectOneRow(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
			if err != nil || fmt.Sprintf("%#v", values) != `[]interface {}{[]interface {}{"T-7", "T-8"}}` {
				t.Errorf("values %#v, %v", values, err)
			}
			returns(t, conn, []idtype.Snowflake{7, 8}, "select ids from keyed limit 1")
			_, err = conn.Exec(ctx, "delete from keyed")
			pgtest.Must(t, err)
		})
	})
}

// LoadTypes copies the codecs that it finds, so it must run after Register.
func TestLoadTypes(t *testing.T) {
	t.Parallel()
	filled.EachReused(t, func(t *testing.T, db *pgtest.DB) {
		id, code := idtype.Spread64(-7), sqltypes.TextOf(idtype.Must(idtype.ParseSno("brpk4q72xwf2m63l")))
		for name, register := range map[string]pgtest.Option{"Register": unloaded, "AfterConnect": loaded} {
			t.Run(name, func(t *testing.T) {
				pgtest.EachMode(t, func(t *testing.T, mode pgx.QueryExecMode) {
					conn := db.Conn(t, register, pgtest.Mode(mode))
					loadTogether(t, conn, "sortkey.number", "sortkey._number", "sortkey.any_text")
					returns(t, conn, id, "insert into keyed (id) values ($1) returning id", id)
					returns(t, conn, []idtype.Spread64{id}, "insert into keyed (ids) values ($1) returning ids", []idtype.Spread64{id})
					returns(t, conn, code, "insert into keyed (code) values ($1) returning code", code)
					refuses(t, conn, mode, "keyed", "code", code.ID, "sqltypes.Text[idtype.Sno]")
				})
			})
		}
	})
}

// AfterConnect registers citext, and the domains of all schemas, including domains over
// other domains and over citext. They reject IDs of another column type, in COPY too.
func TestDomainsOfAllSchemas(t *testing.T) {
	t.Parallel()
	filled.EachReused(t, func(t *testing.T, db *pgtest.DB) {
		pgtest.EachMode(t, func(t *testing.T, mode pgx.QueryExecMode) {
			conn, ctx := db.Conn(t, loaded, pgtest.Mode(mode)), t.Context()
			registered(t, conn, true, "app.order_id", "app._order_id", "app.code", "app._code", "app.any_case", "public.citext")
			registered(t, conn, false, "app.list", "app._list", "app.amount") // they can't hold an ID
			id, sno := idtype.Snowflake(7), idtype.Must(idtype.ParseSno("brpk4q72xwf2m63l"))
			code := sqltypes.TextOf(sno)
			type line struct {
				ID      idtype.Snowflake
				IDs     []idtype.Snowflake
				Code    sqltypes.Text[idtype.Sno]
				Codes   []sqltypes.Text[idtype.Sno]
				C, D, N sqltypes.Text[idtype.Sno]
				List    []idtype.Snowflake
			}
			stored := line{id, []idtype.Snowflake{id}, code, []sqltypes.Text[idtype.Sno]{code}, code, code, code, []idtype.Snowflake{id}}
			args := []any{stored.ID, stored.IDs, stored.Code, stored.Codes, stored.C, stored.D, stored.N, stored.List}
			_, err := conn.Exec(ctx, "insert into lines values ($1, $2, $3, $4, $5, $6, $7, $8)", args...)
			pgtest.Must(t, err)
			_, err = conn.CopyFrom(ctx, pgx.Identifier{"lines"}, []string{"id", "ids", "code", "codes", "c", "d", "n", "list"}, pgx.CopyFromRows([][]any{args}))
			pgtest.Must(t, err)
			// INSERT and COPY stored equal rows.
			collects(t, conn, pgx.RowToStructByPos, []line{stored, stored}, "select * from lines")
			returns(t, conn, []int64{2, 1}, "select array[count(*), count(distinct (lines.*)::text)] from lines")
			for column, value := range map[string]any{"code": sno, "codes": []idtype.Sno{sno}, "c": sno, "d": sno, "n": sno, "id": sno} {
				refuses(t, conn, mode, "lines", column, value, "want a uuid parameter, got ")
			}
			_, err = conn.Exec(ctx, "delete from lines")
			pgtest.Must(t, err)
		})
	})
}

// Domains over types that can't hold IDs count as no domains: a Loader queries again
// and finds a domain that is created later.
func TestLoaderForeignDomains(t *testing.T) {
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, "create domain other as numeric; create domain list as bigint[]")
		var l pgxcodec.Loader
		db.Conn(t, pgtest.AfterConnect(l.AfterConnect))
		db.Exec(t, "create domain late as bigint")
		conn := db.Conn(t, pgtest.AfterConnect(l.AfterConnect))
		registered(t, conn, true, "public.late", "public._late")
		registered(t, conn, false, "public.other", "public.list", "public._list")
	})
}

// registered checks whether a connection has types.
func registered(t *testing.T, conn *pgx.Conn, want bool, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, ok := conn.TypeMap().TypeForName(name); ok != want {
			t.Errorf("%s is registered: %v, want %v", name, ok, want)
		}
	}
}
