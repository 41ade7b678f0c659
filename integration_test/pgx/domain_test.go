package pgx

import (
	"fmt"
	"slices"
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
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		createDomains(t, db)
		db.Exec(t, "create table t (id sortkey.number, ids sortkey.number[])")
		conn, ctx := db.Conn(t, loaded), t.Context()
		oids := map[uint32]string{}
		rows, _ := conn.Query(ctx, "select oid, typname::text from pg_type where typname in ('int8', '_int8', 'number', '_number')")
		var oid uint32
		var name string
		if _, err := pgx.ForEachRow(rows, []any{&oid, &name}, func() error { oids[oid] = name; return nil }); err != nil {
			t.Fatal(err)
		}
		for sql, want := range map[string]string{
			"insert into t (id) values ($1) returning id":   "number int8",
			"insert into t (ids) values ($1) returning ids": "_number _number",
			"update t set id = $1 returning id":             "number int8",
			"select $1::sortkey.number":                     "number int8",
			"select id from t where id = $1":                "int8 int8",
			"select id from t where id = any($1)":           "_int8 int8",
		} {
			d, err := conn.Prepare(ctx, sql, sql)
			if err != nil {
				t.Fatal(err)
			}
			if got := oids[d.ParamOIDs[0]] + " " + oids[d.Fields[0].DataTypeOID]; got != want {
				t.Errorf("%s: %s, want %s", sql, got, want)
			}
		}
		for _, table := range []string{"sortkey.number", "sortkey._number"} {
			if typ, ok := conn.TypeMap().TypeForName(table); !ok || oids[typ.OID] == "" {
				t.Errorf("%s is not registered: %v", table, typ)
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
	one(t, func(t *testing.T, db *pgtest.DB) {
		createDomains(t, db)
		db.Exec(t, "create table t (id sortkey.number, ids sortkey.number[])")
		pgtest.EachMode(t, func(t *testing.T, mode pgx.QueryExecMode) {
			conn, ctx := db.Conn(t, pgtest.Mode(mode)), t.Context()
			m := conn.TypeMap()
			for _, name := range []string{"sortkey.number", "sortkey._number"} {
				typ, err := conn.LoadType(ctx, name)
				if err != nil {
					t.Fatal(err)
				}
				if name == "sortkey.number" {
					typ.Codec = ticketCodec{}
				}
				m.RegisterType(typ)
			}
			for range 2 {
				if err := pgxcodec.AfterConnect(ctx, conn); err != nil {
					t.Fatal(err)
				}
			}
			m.RegisterDefaultPgType(ticket(""), "sortkey.number")
			m.RegisterDefaultPgType([]ticket(nil), "sortkey._number")

			var got string
			for _, args := range [][]any{
				{ticket("T-7"), []ticket{"T-7", "T-8"}},
				{idtype.Snowflake(7), []idtype.Snowflake{7, 8}},
				{int64(7), []int64{7, 8}},
			} {
				if err := conn.QueryRow(ctx, "insert into t values ($1, $2) returning t::text", args...).Scan(&got); err != nil || got != `(7,"{7,8}")` {
					t.Errorf("%T: %s, %v", args[0], got, err)
				}
			}
			if _, err := conn.Exec(ctx, "insert into t (id) values ($1)", idtype.Sno{}); err == nil {
				t.Error("a Sno as a domain over bigint: no error")
			}
			// The server describes the array with the OID of the domain's array type.
			rows, _ := conn.Query(ctx, "select ids from t limit 1")
			values, err := pgx.CollectOneRow(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
			if err != nil || fmt.Sprintf("%#v", values) != `[]interface {}{[]interface {}{"T-7", "T-8"}}` {
				t.Errorf("values %#v, %v", values, err)
			}
			var ids []idtype.Snowflake
			if err := conn.QueryRow(ctx, "select ids from t limit 1").Scan(&ids); err != nil || !slices.Equal(ids, []idtype.Snowflake{7, 8}) {
				t.Errorf("%v, %v", ids, err)
			}
			if _, err := conn.Exec(ctx, "truncate t"); err != nil {
				t.Fatal(err)
			}
		})
	})
}

// LoadTypes copies the codecs that it finds, so it must run after Register.
func TestLoadTypes(t *testing.T) {
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		createDomains(t, db)
		db.Exec(t, "create table t (id sortkey.number, ids sortkey.number[], code sortkey.any_text)")
		id, code := idtype.Spread64(-7), sqltypes.TextOf(idtype.MustParseSno("brpk4q72xwf2m63l"))
		for name, register := range map[string]pgtest.Option{"Register": unloaded, "AfterConnect": loaded} {
			t.Run(name, func(t *testing.T) {
				pgtest.EachMode(t, func(t *testing.T, mode pgx.QueryExecMode) {
					conn := db.Conn(t, register, pgtest.Mode(mode))
					types, err := conn.LoadTypes(t.Context(), []string{"sortkey.number", "sortkey._number", "sortkey.any_text"})
					if err != nil {
						t.Fatal(err)
					}
					conn.TypeMap().RegisterTypes(types)
					var gotID idtype.Spread64
					var gotIDs []idtype.Spread64
					var gotCode sqltypes.SnoText
					err = conn.QueryRow(t.Context(), "insert into t values ($1, $2, $3) returning *", id, []idtype.Spread64{id}, code).Scan(&gotID, &gotIDs, &gotCode)
					if err != nil || gotID != id || !slices.Equal(gotIDs, []idtype.Spread64{id}) || gotCode != code {
						t.Errorf("%v, %v, %v, %v", gotID, gotIDs, gotCode, err)
					}
					refuses(t, conn, mode, "code", code.ID, "sqltypes.SnoText")
				})
			})
		}
	})
}

// AfterConnect registers citext, and the domains of all schemas, including domains over
// other domains and over citext. They reject IDs of another column type, in COPY too.
func TestDomainsOfAllSchemas(t *testing.T) {
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		createDomains(t, db)
		db.Exec(t, `create schema app; create extension citext;
			create domain app.order_id as sortkey.number; create domain app.code as text; create domain app.any_case as citext; create domain app.list as bigint[]; create domain app.amount as numeric;
			create table t (id app.order_id, ids app.order_id[], code app.code, codes app.code[], c citext, d app.any_case, n name, list app.list)`)
		pgtest.EachMode(t, func(t *testing.T, mode pgx.QueryExecMode) {
			conn, ctx := db.Conn(t, loaded, pgtest.Mode(mode)), t.Context()
			for _, name := range []string{"app.order_id", "app._order_id", "app.code", "app._code", "app.any_case", "public.citext"} {
				if _, ok := conn.TypeMap().TypeForName(name); !ok {
					t.Errorf("%s is not registered", name)
				}
			}
			for _, name := range []string{"app.list", "app._list", "app.amount"} {
				if _, ok := conn.TypeMap().TypeForName(name); ok {
					t.Errorf("%s is registered, but can't hold an ID", name)
				}
			}
			id, sno := idtype.Snowflake(7), idtype.MustParseSno("brpk4q72xwf2m63l")
			code := sqltypes.TextOf(sno)
			columns := []string{"id", "ids", "code", "codes", "c", "d", "n", "list"}
			args := []any{id, []idtype.Snowflake{id}, code, []sqltypes.SnoText{code}, code, code, code, []idtype.Snowflake{id}}
			if _, err := conn.Exec(ctx, "insert into t values ($1, $2, $3, $4, $5, $6, $7, $8)", args...); err != nil {
				t.Fatal(err)
			}
			if _, err := conn.CopyFrom(ctx, pgx.Identifier{"t"}, columns, pgx.CopyFromRows([][]any{args})); err != nil {
				t.Fatal(err)
			}
			var same, n int
			var gotID idtype.Snowflake
			var gotIDs, gotList []idtype.Snowflake
			var gotCode, gotC, gotD, gotN sqltypes.SnoText
			var gotCodes []sqltypes.SnoText
			err := conn.QueryRow(ctx, "select * from t limit 1").Scan(&gotID, &gotIDs, &gotCode, &gotCodes, &gotC, &gotD, &gotN, &gotList)
			if err != nil || gotID != id || !slices.Equal(gotIDs, gotList) || gotCode != code || gotC != code || gotD != code || gotN != code || !slices.Equal(gotCodes, []sqltypes.SnoText{code}) {
				t.Errorf("read %v, %v, %v, %v, %v, %v, %v, %v, %v", gotID, gotIDs, gotCode, gotCodes, gotC, gotD, gotN, gotList, err)
			}
			if err := conn.QueryRow(ctx, "select count(*), count(distinct (t.*)::text) from t").Scan(&n, &same); err != nil || n != 2 || same != 1 {
				t.Errorf("INSERT and COPY stored %d rows, %d distinct, %v, want 2 equal rows", n, same, err)
			}
			for column, value := range map[string]any{"code": sno, "codes": []idtype.Sno{sno}, "c": sno, "d": sno, "n": sno, "id": sno} {
				refuses(t, conn, mode, column, value, "want a uuid parameter, got ")
			}
			if _, err := conn.Exec(ctx, "truncate t"); err != nil {
				t.Fatal(err)
			}
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
		for name, want := range map[string]bool{"public.late": true, "public._late": true, "public.other": false, "public.list": false, "public._list": false} {
			if _, ok := conn.TypeMap().TypeForName(name); ok != want {
				t.Errorf("%s is registered: %v, want %v", name, ok, want)
			}
		}
	})
}
