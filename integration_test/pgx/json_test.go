package pgx

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/sqltypes"
)

// JSON that the server makes of columns is read into the same IDs as the columns.
func TestServerJSON(t *testing.T) {
	inEachMode(t, func(t *testing.T, conn *pgx.Conn, _ pgx.QueryExecMode) {
		for _, r := range rows() {
			r.json(t, conn)
		}
		for _, dst := range []any{&struct{ ID idtype.Sno }{}, &struct{ ID idtype.SnoOf[idtest.Customer] }{}} {
			if err := conn.QueryRow(t.Context(), "select jsonb_build_object('id', gen_random_uuid())").Scan(dst); !errors.Is(err, idtype.ErrNotSno) {
				t.Errorf("another UUID into %T: %v", dst, err)
			}
		}
		// One ID of a document is a string.
		text := pgtest.Value[string](t, conn, `select '{"owner": "ord_7"}'::jsonb ->> 'owner'`)
		if id, err := idtype.Parse[idtype.SnowflakeOf[idtest.Order]](text); err != nil || id != 7 {
			t.Errorf("%q: %v, %v", text, id, err)
		}
	})
}

// A document has a field of each Go type that holds IDs, and two of other packages.
type document[V sqltypes.ID] struct {
	ID       V
	Pointer  *V
	Optional sqltypes.Optional[V]
	List     []*V
	Array    sqltypes.Array[V]

	NoPointer  *V
	NoOptional sqltypes.Optional[V]
	NoArray    sqltypes.Array[V]
	Empty      []V

	Plain int64
	UUID  uuid.UUID
}

func (r row) json(t *testing.T, conn *pgx.Conn) {
	s := r.open(t, conn, r.column)
	u := uuid.MustParse("f47ac10b-58cc-4372-a567-0e02b2c3d479")
	var want []any
	for _, id := range r.ids {
		list, optional, array := r.pointers(ptr(id), nil), fill(r.optional, id), fill(r.array, id)
		s.exec("insert into {t} (id, ids) values ($1, $2)", id, list)
		want = append(want, fill(r.document, id, ptr(id), optional, list, array, nil, nil, nil, r.slice(), int64(5), u))
	}
	wantDocuments := sliceOf(want...)
	const documents = `(select n, id, id pointer, id optional, ids list, array[id] "array", null nopointer, null nooptional, null noarray, ids[5:] empty,
		5 plain, 'f47ac10b-58cc-4372-a567-0e02b2c3d479'::uuid uuid from {t}) d`
	for _, query := range []string{"select json_agg(d order by n) from " + documents, "select jsonb_agg(to_jsonb(d) order by n) from " + documents} {
		got, fromText := newOf(wantDocuments), newOf(wantDocuments)
		var text string
		if s.query(query, nil, got) && !reflect.DeepEqual(elem(got), wantDocuments) {
			s.Errorf("%s: %+v, want %+v", query, elem(got), wantDocuments)
		}
		s.query("select ("+query+")::text", nil, &text)
		if err := json.Unmarshal([]byte(text), fromText); err != nil || !reflect.DeepEqual(elem(fromText), wantDocuments) {
			s.Errorf("%s as text: %+v, %v, want %+v", query, elem(fromText), err, wantDocuments)
		}
	}
}

// A list of IDs is stored in a jsonb column as JSON, but as the literal of an array by exec modes that don't
// know the type of the parameter.
func TestJSONArguments(t *testing.T) {
	inEachMode(t, func(t *testing.T, conn *pgx.Conn, mode pgx.QueryExecMode) {
		unknown := mode == pgx.QueryExecModeExec || mode == pgx.QueryExecModeSimpleProtocol
		text, err := json.Marshal(sqltypes.Array[idtype.Snowflake]{7})
		pgtest.Must(t, err)
		for _, column := range []string{"json", "jsonb"} {
			_, err := conn.Exec(t.Context(), "create temp table documents_"+column+" (v "+column+")")
			pgtest.Must(t, err)
			insert := "insert into documents_" + column + " values ($1) returning v::text"
			for _, c := range []struct {
				v    any
				want string // in modes that know the type
				or   string // in the others; "": an error
			}{
				{[]idtype.Snowflake{}, "[]", "{}"},
				{[]idtype.Snowflake{7}, `["7"]`, ""},
				{sqltypes.Array[idtype.Snowflake]{}, "[]", "{}"},
				{sqltypes.Array[idtype.Snowflake]{7, 8}, `["7","8"]`, ""},
				{sqltypes.Array[idtype.SnowflakeOf[idtest.Order]]{7}, `["ord_7"]`, ""},
				{ptr(sqltypes.Array[idtype.Snowflake]{7}), `["7"]`, ""},
				{string(text), `["7"]`, `["7"]`},
			} {
				want := c.want
				if unknown {
					want = c.or
				}
				var got string
				err := conn.QueryRow(t.Context(), insert, c.v).Scan(&got)
				got = strings.ReplaceAll(got, " ", "")
				if got != want || (err == nil) != (want != "") {
					t.Errorf("%s, %T %v: got %s, %v, want %s", column, c.v, c.v, got, err, want)
				}
			}
			// The server would drop it some time after the connection ends, and other tests use the database.
			_, err = conn.Exec(t.Context(), "drop table documents_"+column)
			pgtest.Must(t, err)
		}
	})
}

// A refused argument of a batch closes the connection. Elsewhere, the connection stays.
func TestRefusalInBatch(t *testing.T) {
	inEachMode(t, func(t *testing.T, conn *pgx.Conn, mode pgx.QueryExecMode) {
		if mode == pgx.QueryExecModeExec || mode == pgx.QueryExecModeSimpleProtocol {
			return // the codec doesn't know the type of the parameter
		}
		const query = "select $1::text"
		if _, err := conn.Exec(t.Context(), query, idtype.Sno{9: 1}); err == nil || conn.IsClosed() {
			t.Errorf("a statement: %v, closed: %t", err, conn.IsClosed())
		}
		var b pgx.Batch
		b.Queue("select 1")
		b.Queue(query, idtype.Sno{9: 1})
		if err := conn.SendBatch(t.Context(), &b).Close(); err == nil || !conn.IsClosed() {
			t.Errorf("a batch: %v, closed: %t", err, conn.IsClosed())
		}
	})
}
