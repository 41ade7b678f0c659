package pgx

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/internal/pgerror"
	"github.com/sortkey/sortkey/sqltypes"
)

// Values and columns that don't fit are refused, and the remedies in errors work.

// Scanning a value that is not an ID fails with a sentinel and the column's name, and
// leaves the destination unchanged.
func TestBadInput(t *testing.T) {
	t.Parallel()
	filled.OneReused(t, func(t *testing.T, db *pgtest.DB) {
		pgtest.EachMode(t, func(t *testing.T, mode pgx.QueryExecMode) {
			eachType(t, db, suite.badInput, pgtest.Mode(mode))
		})
	})
}

func (s suite) badInput(t *testing.T, conn *pgx.Conn) {
	id := s.edges[1]
	ones := func() []any { return []any{id, ptr(id), fill(s.null, id, true), fill(s.optional, id)} }
	lists := func() []any { return []any{s.slice(id), s.pointers(ptr(id), nil)} }
	for stored, want := range s.refused {
		column := fmt.Sprintf("cast('%s' as %s)", stored, s.column)
		refused(t, conn, column, want, ones)
		refused(t, conn, "array["+column+"]", want, lists)
		rows, _ := conn.Query(t.Context(), "select "+column+" as key")
		if _, err := pgx.CollectRows(rows, s.rowTo); !errors.Is(err, want) {
			t.Errorf("%s by RowTo: %v, want %v", stored, err, want)
		}
	}
}

// refused checks that scanning an expression fails with want, and that destinations keep their
// values. A failed scan could change what a pointer or a slice refers to, so values returns new
// values for each call.
func refused(t *testing.T, conn *pgx.Conn, expression string, want error, values func() []any) {
	t.Helper()
	for i, before := range values() {
		dst := ptr(values()[i])
		err := conn.QueryRow(t.Context(), "select "+expression+" as key").Scan(dst)
		if !errors.Is(err, want) || !strings.Contains(fmt.Sprint(err), "(col: key)") {
			t.Errorf("%s into %T: %v, want %v and the column's name", expression, before, err, want)
		}
		if !reflect.DeepEqual(elem(dst), before) {
			t.Errorf("%s into %T: changed it to %v", expression, before, elem(dst))
		}
	}
}

// Scanning a column of another type, or a value of another length, fails.
func TestWrongColumn(t *testing.T) {
	inEachMode(t, func(t *testing.T, conn *pgx.Conn, _ pgx.QueryExecMode) {
		number, id := idtype.Snowflake(7), idtype.Must(idtype.ParseSno("brpk4q72xwf2m63l"))
		for _, c := range []struct {
			values      []any
			expressions []string
		}{
			{[]any{number, idtype.Spread64(-7)}, []string{"'x'::text", "1.5::numeric", "'\\x07'::bytea", "true", "now()", "1.5::float8",
				"'6272706b-3471-3732-7877-66326d36336c'::uuid", "'{}'::bigint[]", "'{\"a\": 1}'::jsonb"}},
			{[]any{number}, []string{"'-1'::text"}},
			{[]any{id}, []string{"7::bigint", "'brpk4q72xwf2m63'::text", "'brpk4q72xwf2m63l2'::text", "''::text", "true", "now()",
				"'\\x4e6f2160a0ff9a0a10'::bytea", "'\\x4e6f2160a0ff9a0a103300'::bytea", "''::bytea"}},
			{[]any{sqltypes.TextOf(id)}, []string{"7::bigint", "'brpk4q72xwf2m63'::text", "'BRPK4q72xwf2m63l'::text", "''::text",
				"'6272706b-3471-3732-7877-66326d36336c'::uuid", "'\\x4e6f2160a0ff9a0a1033'::bytea"}},
			{[]any{sqltypes.SnoBytesOf(id)}, []string{"7::bigint", "'brpk4q72xwf2m63l'::text", "'\\x'::bytea", "'\\x4e6f2160a0ff9a0a10'::bytea",
				"'\\x4e6f2160a0ff9a0a103300'::bytea", "'6272706b-3471-3732-7877-66326d36336c'::uuid"}},
		} {
			for _, expression := range c.expressions {
				refused(t, conn, expression, idtype.ErrSyntax, func() []any { return c.values })
			}
		}
		// Other numeric types scan as numbers.
		for _, expression := range []string{"8::smallint", "8::integer", "8::bigint", "8::numeric", "'8'::text"} {
			returns(t, conn, idtype.Snowflake(8), "select "+expression)
		}
	})
}

// byOID reports whether a mode learns the types of parameters.
func byOID(mode pgx.QueryExecMode) bool {
	return mode != pgx.QueryExecModeExec && mode != pgx.QueryExecModeSimpleProtocol
}

// otherColumns are the columns of the table others.
var otherColumns = []struct{ name, typ string }{
	{"txt", "text"}, {"short", "varchar(40)"}, {"pad", "char(40)"}, {"raw", "bytea"}, {"n", "name"}, {"txt_list", "text[]"}, {"short_list", "varchar(40)[]"}, {"pad_list", "char(40)[]"}, {"raw_list", "bytea[]"}, {"n_list", "name[]"}, {"u", "uuid"}, {"u_list", "uuid[]"},
}

// Columns of another type refuse an ID, in all Go types that hold it. COPY does so in all modes.
// In modes that don't learn the types of parameters, text and bytea columns store the text of a
// Sno's UUID, and the server refuses raw bytes and the text of a Sno for a uuid column. It never
// gets raw bytes, which it would pad or truncate.
func TestWrongParameter(t *testing.T) {
	sno := idtype.Must(idtype.ParseSno("brpk4q72xwf2m63l"))
	asUUID := sno.UUID().String()
	asBytes := fmt.Sprintf("\\x%x", asUUID)
	raw, txt := sqltypes.SnoBytesOf(sno), sqltypes.TextOf(sno)
	visit := idtype.SnoOf[idtest.Visit](sno)
	ones := slices.Concat(forms(sno), forms(visit))
	lists := slices.Concat(sliceForms(sno), sliceForms(visit))
	const wantUUID, useSno = ": want a uuid parameter, got ", "or use idtype.Sno for uuid columns"
	columns := []struct {
		column  string
		values  []any
		refusal string
		stored  string // without the type of the parameter; "" if the server refuses the value
	}{
		{"txt", ones, wantUUID, asUUID},
		{"short", ones, wantUUID, asUUID},
		{"pad", ones, wantUUID, asUUID},
		{"raw", ones, wantUUID, asBytes},
		{"n", ones, wantUUID, asUUID},
		{"txt_list", lists, wantUUID, "{" + asUUID + "}"},
		{"short_list", lists, wantUUID, "{" + asUUID + "}"},
		{"pad_list", lists, wantUUID, fmt.Sprintf(`{"%-40s"}`, asUUID)},
		{"raw_list", lists, wantUUID, fmt.Sprintf(`{"\%s"}`, asBytes)},
		{"n_list", lists, wantUUID, "{" + asUUID + "}"},
		{"u", append(forms(raw), forms(txt)...), useSno, ""},
		{"u_list", append(sliceForms(raw), sliceForms(txt)...), useSno, ""},
	}
	inEachMode(t, func(t *testing.T, conn *pgx.Conn, mode pgx.QueryExecMode) {
		for _, c := range columns {
			for _, value := range c.values {
				refuses(t, conn, mode, "others", c.column, value, c.refusal)
				if byOID(mode) {
					continue
				}
				var shown string
				err := conn.QueryRow(t.Context(), fmt.Sprintf("insert into others (%s) values ($1) returning rtrim(%[1]s::text)", c.column), value).Scan(&shown)
				if shown != c.stored || (err == nil) != (c.stored != "") || err != nil && pgerror.State(err) == "" {
					t.Errorf("%T in %s: stored %q, %v, want %q or an error of the server", value, c.column, shown, err, c.stored)
				}
			}
		}
		returns(t, conn, 0, "select count(*) from others where u is not null or u_list is not null")
		if byOID(mode) {
			return
		}
		var found, foundText bool
		err := conn.QueryRow(t.Context(), "select x = any($1::text[]), x = any($2::text[]) from (values ('brpk4q72xwf2m63l')) v (x)", []idtype.Sno{sno}, []sqltypes.Text[idtype.Sno]{txt}).Scan(&found, &foundText)
		if err != nil || found || !foundText {
			t.Errorf("= any of Snos as text: %v, of SnoTexts: %v, %v", found, foundText, err)
		}
	})
}

// refuses checks that the codec rejects a value for a column: in COPY, and in INSERT
// if it learns the type of the parameter.
func refuses(t *testing.T, conn *pgx.Conn, mode pgx.QueryExecMode, table, column string, value any, want string) {
	t.Helper()
	_, err := conn.CopyFrom(t.Context(), pgx.Identifier{table}, []string{column}, pgx.CopyFromRows([][]any{{value}}))
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("COPY of %T into %s: %v, want %q", value, column, err, want)
	}
	if !byOID(mode) {
		return
	}
	_, err = conn.Exec(t.Context(), "insert into "+table+" ("+column+") values ($1)", value)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("INSERT of %T into %s: %v, want %q", value, column, err, want)
	}
}

// The remedies in error messages work. TestRefusalMessages of package pgxcodec has more messages,
// and TestTable stores each Go type in its columns.
func TestRemedies(t *testing.T) {
	t.Parallel()
	filled.OneReused(t, func(t *testing.T, db *pgtest.DB) {
		sno, number := idtype.Must(idtype.ParseSno("brpk4q72xwf2m63l")), idtype.Snowflake(7)
		txt, customer, order := sqltypes.TextOf(sno), idtype.SnoOf[idtest.Visit](sno), idtype.SnowflakeOf[idtest.Order](7)
		const noType, function, use, column, slice = "write $1::", "pass id.String() to a function", "or use ", "make the column ", "pass a slice of "
		for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec} {
			conn, ctx := db.Conn(t, pgtest.Codec, pgtest.Mode(mode)), t.Context()
			for _, c := range []struct {
				sql   string
				arg   any
				names string // the remedy in the error
				then  string
				with  any
			}{
				// The query doesn't give the parameter a type.
				{"select $1", sno, noType + "uuid", "select $1::uuid", sno},
				{"select $1", number, noType + "bigint", "select $1::bigint", number},
				{"select jsonb_build_object('id', $1::text)", sno, function, "select jsonb_build_object('id', $1::text)", sno.String()},
				// The argument of a function.
				{"select pg_notify('x', $1)", sno, function, "select pg_notify('x', $1)", sno.String()},
				{"select upper($1)", &sno, function, "select upper($1)", sno.String()},
				// Another Go type for the column.
				{"insert into remedies (txt) values ($1)", sno, use + "sqltypes.Text[idtype.Sno] for text columns", "insert into remedies (txt) values ($1)", txt},
				{"insert into remedies (txt) values ($1)", number, use + "sqltypes.Text[idtype.Snowflake] for text columns", "insert into remedies (txt) values ($1)", sqltypes.TextOf(number)},
				{"insert into remedies (txt) values ($1)", order, use + "sqltypes.Text[idtype.SnowflakeOf[idtest.Order]] for text columns", "insert into remedies (txt) values ($1)", sqltypes.TextOf(order)},
				{"insert into remedies (texts) values ($1)", []idtype.Sno{sno}, use + "sqltypes.Text[idtype.Sno] for text columns", "insert into remedies (texts) values ($1)", []sqltypes.Text[idtype.Sno]{txt}},
				{"select from remedies where txt = any($1::text[])", []*idtype.Sno{&sno}, use + "sqltypes.Text[idtype.Sno] for text columns", "select from remedies where txt = any($1::text[])", []*sqltypes.Text[idtype.Sno]{&txt}},
				{"select from remedies where txt = any($1)", []idtype.Sno{sno}, use + "sqltypes.Text[idtype.Sno] for text columns", "select from remedies where txt = any($1)", []sqltypes.Text[idtype.Sno]{txt}},
				{"select from remedies where txt = any($1)", sno, slice + "sqltypes.Text[idtype.Sno] for text columns", "select from remedies where txt = any($1)", []sqltypes.Text[idtype.Sno]{txt}},
				{"insert into remedies (raw) values ($1)", sno, ", sqltypes.SnoBytes for bytea columns", "insert into remedies (raw) values ($1)", sqltypes.SnoBytesOf(sno)},
				{"insert into remedies (raw) values ($1)", customer, ", sqltypes.SnoBytes for bytea columns", "insert into remedies (raw) values ($1)", sqltypes.SnoBytesOf(customer.Untyped())},
				{"insert into remedies (n) values ($1)", sqltypes.TextOf(number), use + "idtype.Snowflake for bigint columns", "insert into remedies (n) values ($1)", number},
				// Another column for the Go type.
				{"insert into remedies (n) values ($1)", txt, column + "text", "insert into remedies (txt) values ($1)", txt},
				{"select from remedies where n = any($1)", sno, column + "uuid", "select from remedies where u = $1", sno},
				// Arrays.
				{"select from remedies where n = any($1)", number, "pass []idtype.Snowflake", "select from remedies where n = any($1)", []idtype.Snowflake{number}},
				{"select from remedies where u = any($1)", &customer, "pass []*idtype.SnoOf[idtest.Visit]", "select from remedies where u = any($1)", []*idtype.SnoOf[idtest.Visit]{&customer}},
				{"select from remedies where u = any($1)", sqltypes.OptionalOf(sno), "pass []sqltypes.Optional[", "select from remedies where u = any($1)", []sqltypes.Optional[idtype.Sno]{sqltypes.OptionalOf(sno)}},
				{"select from remedies where n = $1", []idtype.Snowflake{number}, "write = ANY($1)", "select from remedies where n = ANY($1)", []idtype.Snowflake{number}},
			} {
				_, err := conn.Exec(ctx, c.sql, c.arg)
				if err == nil || !strings.Contains(err.Error(), c.names) {
					t.Errorf("%s with %T: %v, want an error that names %q", c.sql, c.arg, err, c.names)
				}
				if _, err := conn.Exec(ctx, c.then, c.with); err != nil {
					t.Errorf("%s with %T: %v", c.then, c.with, err)
				}
			}
			copied := func(value any) error {
				_, err := conn.CopyFrom(ctx, pgx.Identifier{"remedies"}, []string{"list"}, pgx.CopyFromRows([][]any{{value}}))
				return err
			}
			if err := copied("abc"); err == nil || !strings.Contains(err.Error(), "pass a slice") {
				t.Errorf("COPY of a string into bigint[]: %v", err)
			}
			if err := errors.Join(copied([]int64{1}), copied("{1,2}"), copied("{{1,2},{3,4}}")); err != nil {
				t.Error(err)
			}
			// Scans into a type that can't hold the value. TestTable has scans into the types that can.
			const nullable = "into *idtype.Snowflake, sql.Null[idtype.Snowflake] or sqltypes.Optional[idtype.Snowflake]"
			for sql, c := range map[string]struct {
				dst   any
				names string
			}{
				"select null::bigint": {new(idtype.Snowflake), nullable}, "select '{1,null}'::bigint[]": {new([]idtype.Snowflake), nullable},
				"select '{1,2}'::bigint[]": {new(idtype.Snowflake), "pass a pointer to a slice"},
			} {
				if err := conn.QueryRow(ctx, sql).Scan(c.dst); err == nil || !strings.Contains(err.Error(), c.names) {
					t.Errorf("%s into %T: %v, want an error that names %q", sql, c.dst, err, c.names)
				}
			}
		}
	})
}
