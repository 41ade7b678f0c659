package pgx

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/sqltypes"
)

// A document has a field of every type, and two of other packages. Its JSON keys are the
// columns of createDocuments.
type document struct {
	Flake    idtype.Snowflake                                `json:"flake"`
	SI       idtype.SnowflakeSI                              `json:"si"`
	UID      idtype.UID60                                    `json:"uid"`
	Spread   idtype.Spread64                                 `json:"spread"`
	Sno      idtype.Sno                                      `json:"sno"`
	Order    idtype.SnowflakeOf[idtest.Order]                `json:"order_id"`
	OrderSI  idtype.SnowflakeSIOf[idtest.Order]              `json:"order_si"`
	Visit    idtype.UID60Of[idtest.Visit]                    `json:"visit"`
	Key      idtype.Spread64Of[idtest.Visit]                 `json:"key"`
	Customer *idtype.SnoOf[idtest.Customer]                  `json:"customer"`
	Own      customerID                                      `json:"own"`
	Parent   sqltypes.Optional[idtype.UID60Of[idtest.Visit]] `json:"parent"`
	Text     sqltypes.SnoText                                `json:"txt"`
	Padded   sqltypes.Text[idtype.SnowflakeOf[idtest.Order]] `json:"padded"`
	Raw      sqltypes.SnoBytes                               `json:"raw"`
	List     []idtype.UID60                                  `json:"list"`
	Array    sqltypes.Array[idtype.SnoOf[idtest.Customer]]   `json:"arr"`
	Plain    int64                                           `json:"plain"`
	UUID     uuid.UUID                                       `json:"u"`
}

const createDocuments = `create table documents (flake bigint, si bigint, uid bigint, spread bigint, sno uuid, order_id bigint, order_si bigint, visit bigint, key bigint,
	customer uuid, own uuid, parent bigint, txt text, padded char(30), raw bytea, list bigint[], arr uuid[], plain bigint, u uuid)`

func documents() []document {
	sno := idtype.MustParseSno("brpk4q72xwf2m63l")
	customer := idtype.SnoOf[idtest.Customer](sno.WithMeta(new(idtest.Customer).IDMeta()))
	full := document{132271570944274432, 1<<53 - 1, idtype.MustParseUID60("xinaS8QBh"), idtype.MustParseSpread64("cb54ecf2840a0015"), sno, 132271570944274433, 1<<53 - 2,
		11093174944930914, -7289804150525722544, &customer, customerID{sno}, sqltypes.OptionalOf(idtype.UID60Of[idtest.Visit](5)), sqltypes.TextOf(sno),
		sqltypes.TextOf(idtype.SnowflakeOf[idtest.Order](7)), sqltypes.SnoBytesOf(sno), []idtype.UID60{1, 11093174944930914},
		sqltypes.Array[idtype.SnoOf[idtest.Customer]]{customer}, 5, sno.UUID()}
	empty := full
	empty.Flake, empty.Customer, empty.Parent, empty.List, empty.Array = 0, nil, sqltypes.Optional[idtype.UID60Of[idtest.Visit]]{}, []idtype.UID60{}, nil
	return []document{full, empty}
}

// JSON that the server makes of columns is read into the same IDs as the columns.
func TestServerJSON(t *testing.T) {
	inEachMode(t, createDocuments, func(t *testing.T, conn *pgx.Conn, _ pgx.QueryExecMode) {
		ctx, want := t.Context(), documents()
		if _, err := conn.Exec(ctx, "truncate documents"); err != nil {
			t.Fatal(err)
		}
		fields := reflect.TypeFor[document]().NumField()
		for _, d := range want {
			sql, args := "insert into documents values (", []any{}
			for i := range fields {
				sql += fmt.Sprintf("$%d, ", i+1)
				args = append(args, reflect.ValueOf(d).Field(i).Interface())
			}
			if _, err := conn.Exec(ctx, sql[:len(sql)-2]+")", args...); err != nil {
				t.Fatal(err)
			}
		}
		for _, query := range []string{
			"select json_agg(d order by flake desc) from documents d",
			"select jsonb_agg(to_jsonb(d) order by flake desc) from documents d",
		} {
			var got []document
			if err := conn.QueryRow(ctx, query).Scan(&got); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %+v, %v, want %+v", query, got, err, want)
			}
			var text string
			if err := conn.QueryRow(ctx, "select ("+query+")::text").Scan(&text); err != nil {
				t.Fatal(err)
			}
			if got = nil; json.Unmarshal([]byte(text), &got) != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s as text: %+v, %v", query, got, json.Unmarshal([]byte(text), &got))
			}
		}
		var foreign struct {
			Sno      idtype.Sno
			Customer idtype.SnoOf[idtest.Customer]
		}
		for key, sentinel := range map[string]error{"sno": idtype.ErrNotSno, "customer": idtype.ErrNotSno} {
			err := conn.QueryRow(ctx, "select jsonb_build_object($1::text, gen_random_uuid())", key).Scan(&foreign)
			if !errors.Is(err, sentinel) {
				t.Errorf("another UUID as %s: %v", key, err)
			}
		}
	})
}

// An ID, an Optional and an Array are read from a part of a JSON document.
func TestPartsOfJSON(t *testing.T) {
	inEachMode(t, "", func(t *testing.T, conn *pgx.Conn, _ pgx.QueryExecMode) {
		type orderID = idtype.SnowflakeOf[idtest.Order]
		for _, kind := range []string{"json", "jsonb"} {
			var owner, fromColumn idtype.Sno
			var page *idtype.UID60
			var order, number orderID
			var parent sqltypes.Optional[orderID]
			none := sqltypes.OptionalOf(orderID(7))
			var null sql.Null[orderID]
			var list []orderID
			var array sqltypes.Array[idtype.UID60]
			err := conn.QueryRow(t.Context(), fmt.Sprintf(`select doc->'owner', doc->'column', doc->'page', doc->'order', doc->'number', doc->'order', doc->'none', doc->'none', doc->'list', doc->'pages'
				from (select '{"owner": "brpk4q72xwf2m63l", "column": "6272706b-3471-3732-7877-66326d36336c", "page": "xinaS8QBh", "order": "ord_7", "number": 7, "none": null,
				"list": ["ord_7", 8], "pages": ["xinaS8QBh"]}'::%s doc) t`, kind)).Scan(&owner, &fromColumn, &page, &order, &number, &parent, &none, &null, &list, &array)
			if err != nil || owner.String() != "brpk4q72xwf2m63l" || fromColumn != owner || page.String() != "xinaS8QBh" || order != 7 || number != 7 || parent.ID != 7 || !none.IsZero() || null.Valid ||
				!reflect.DeepEqual(list, []orderID{7, 8}) || len(array) != 1 || array[0] != *page {
				t.Errorf("%s: %v, %v, %v, %v, %v, %v, %v, %v, %v, %v, %v", kind, owner, fromColumn, page, order, number, parent, none, null, list, array, err)
			}
			for _, src := range []string{"null::" + kind, "'null'::" + kind} {
				if err := conn.QueryRow(t.Context(), "select "+src).Scan(&order); !errors.Is(err, idtype.ErrNull) || order != 7 {
					t.Errorf("%s: %v, %v", src, order, err)
				}
			}
		}
	})
}
