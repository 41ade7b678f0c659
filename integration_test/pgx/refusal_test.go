package pgx

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/sqltypes"
)

// Values and columns that don't fit are refused, and the remedies in errors work.

// Scanning a value that is not an ID fails with a sentinel and the column's name, and
// leaves the destination unchanged.
func TestBadInput(t *testing.T) {
	one(t, func(t *testing.T, db *pgtest.DB) {
		pgtest.EachMode(t, func(t *testing.T, mode pgx.QueryExecMode) {
			eachType(t, db, suite.badInput, pgtest.Mode(mode))
		})
	})
}

func (k of[T]) badInput(t *testing.T, conn *pgx.Conn) {
	before := k.Edges[1]
	for stored, want := range k.Refused {
		column := fmt.Sprintf("cast('%s' as %s)", stored, k.Column)
		id, pointer, null, optional := before, &before, sql.Null[T]{V: before, Valid: true}, sqltypes.OptionalOf(before)
		for _, dst := range []any{&id, &pointer, &null, &optional} {
			refused(t, conn, column, dst, want)
		}
		ids, pointers := []T{before}, []*T{&before, nil}
		for _, dst := range []any{&ids, &pointers} {
			refused(t, conn, "array["+column+"]", dst, want)
		}
		if id != before || *pointer != before || null != (sql.Null[T]{V: before, Valid: true}) || optional.ID != before ||
			len(ids) != 1 || ids[0] != before || len(pointers) != 2 || *pointers[0] != before {
			t.Errorf("%s changed a destination: %v, %v, %v, %v, %v, %v", stored, id, *pointer, null, optional, ids, pointers)
		}
		rows, _ := conn.Query(t.Context(), "select "+column+" as key")
		if _, err := pgx.CollectRows(rows, pgx.RowTo[T]); !errors.Is(err, want) {
			t.Errorf("%s by RowTo: %v, want %v", stored, err, want)
		}
	}
}

// refused checks that scanning an expression fails with want.
func refused(t *testing.T, conn *pgx.Conn, expression string, dst any, want error) {
	t.Helper()
	err := conn.QueryRow(t.Context(), "select "+expression+" as key").Scan(dst)
	if !errors.Is(err, want) || !strings.Contains(fmt.Sprint(err), "(col: key)") {
		t.Errorf("%s into %T: %v, want %v and the column's name", expression, dst, err, want)
	}
}

// Scanning a column of another type, or a value of another length, fails.
func TestWrongColumn(t *testing.T) {
	inEachMode(t, "", func(t *testing.T, conn *pgx.Conn, _ pgx.QueryExecMode) {
		number, id := idtype.Snowflake(7), idtype.MustParseSno("brpk4q72xwf2m63l")
		txt, raw, spread := sqltypes.TextOf(id), sqltypes.SnoBytesOf(id), idtype.Spread64(-7)
		for _, expression := range []string{"'x'::text", "'-1'::text", "1.5::numeric", "'\\x07'::bytea", "true", "now()", "1.5::float8",
			"'6272706b-3471-3732-7877-66326d36336c'::uuid", "'{}'::bigint[]", "'{\"a\": 1}'::jsonb"} {
			refused(t, conn, expression, &number, idtype.ErrSyntax)
			if expression != "'-1'::text" {
				refused(t, conn, expression, &spread, idtype.ErrSyntax)
			}
		}
		for _, expression := range []string{"7::bigint", "'brpk4q72xwf2m63'::text", "'brpk4q72xwf2m63l2'::text", "''::text", "true", "now()",
			"'\\x4e6f2160a0ff9a0a10'::bytea", "'\\x4e6f2160a0ff9a0a103300'::bytea", "''::bytea"} {
			refused(t, conn, expression, &id, idtype.ErrSyntax)
		}
		for _, expression := range []string{"7::bigint", "'brpk4q72xwf2m63'::text", "'BRPK4q72xwf2m63l'::text", "''::text",
			"'6272706b-3471-3732-7877-66326d36336c'::uuid", "'\\x4e6f2160a0ff9a0a1033'::bytea"} {
			refused(t, conn, expression, &txt, idtype.ErrSyntax)
		}
		for _, expression := range []string{"7::bigint", "'brpk4q72xwf2m63l'::text", "'\\x'::bytea", "'\\x4e6f2160a0ff9a0a10'::bytea",
			"'\\x4e6f2160a0ff9a0a103300'::bytea", "'6272706b-3471-3732-7877-66326d36336c'::uuid"} {
			refused(t, conn, expression, &raw, idtype.ErrSyntax)
		}
		if number != 7 || spread != -7 || id.String() != "brpk4q72xwf2m63l" || txt.ID != id || raw.ID != id {
			t.Errorf("a failed scan changed a destination: %v, %v, %v, %v, %v", number, spread, id, txt, raw)
		}
		// Other numeric types scan as numbers.
		for _, expression := range []string{"8::smallint", "8::integer", "8::bigint", "8::numeric", "'8'::text"} {
			var n idtype.Snowflake
			if err := conn.QueryRow(t.Context(), "select "+expression).Scan(&n); err != nil || n != 8 {
				t.Errorf("%s: %v, %v", expression, n, err)
			}
		}
	})
}

// byOID reports whether a mode learns the types of parameters.
func byOID(mode pgx.QueryExecMode) bool {
	return mode != pgx.QueryExecModeExec && mode != pgx.QueryExecModeSimpleProtocol
}

// Modes that don't learn parameter types store a Sno in a text column as the text of its
// UUID, which no SnoText matches.
func TestWrongParameterOfUnknownType(t *testing.T) {
	inEachMode(t, "create table t (txt text); create table texts (id text); insert into texts values ('brpk4q72xwf2m63l')", func(t *testing.T, conn *pgx.Conn, mode pgx.QueryExecMode) {
		if byOID(mode) {
			return // see TestRemedies
		}
		ctx, id := t.Context(), idtype.MustParseSno("brpk4q72xwf2m63l")
		var stored string
		var found bool
		err := conn.QueryRow(ctx, "insert into t (txt) values ($1) returning txt", id).Scan(&stored)
		if err != nil || stored != id.UUID().String() {
			t.Errorf("a Sno in a text column: %q, %v", stored, err)
		}
		if err := conn.QueryRow(ctx, "select id = any($1::text[]) from texts", []idtype.Sno{id}).Scan(&found); err != nil || found {
			t.Errorf("= any of Snos as text: %v, %v", found, err)
		}
		if err := conn.QueryRow(ctx, "select id = any($1::text[]) from texts", []sqltypes.SnoText{{ID: id}}).Scan(&found); err != nil || !found {
			t.Errorf("= any of SnoTexts as text: %v, %v", found, err)
		}
	})
}

// The codec never sends raw bytes, which the server would pad or truncate, or a Sno's
// text for a uuid column.
func TestNoRawBytesForUUID(t *testing.T) {
	inEachMode(t, "create table t (id uuid, ids uuid[])", func(t *testing.T, conn *pgx.Conn, mode pgx.QueryExecMode) {
		id := idtype.MustParseSno("brpk4q72xwf2m63l")
		raw, txt := sqltypes.SnoBytesOf(id), sqltypes.TextOf(id)
		for _, in := range []any{raw, &raw, sqltypes.OptionalOf(raw), sql.Null[sqltypes.SnoBytes]{V: raw, Valid: true}, txt, &txt} {
			_, err := conn.Exec(t.Context(), "insert into t (id) values ($1)", in)
			mustRefuse(t, mode, in, err)
		}
		for _, in := range []any{[]sqltypes.SnoBytes{raw}, []sqltypes.SnoText{txt}} {
			_, err := conn.Exec(t.Context(), "insert into t (ids) values ($1)", in)
			mustRefuse(t, mode, in, err)
		}
		if _, err := conn.CopyFrom(t.Context(), pgx.Identifier{"t"}, []string{"id"}, pgx.CopyFromRows([][]any{{raw}})); err == nil {
			t.Error("COPY of bytes into a uuid column: no error")
		}
		mustBeEmpty(t, conn)
	})
}

// mustBeEmpty checks that table t is empty.
func mustBeEmpty(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	var n int
	if err := conn.QueryRow(t.Context(), "select count(*) from t").Scan(&n); err != nil || n != 0 {
		t.Errorf("%d rows, %v, want none", n, err)
	}
}

// mustRefuse checks that the codec rejected the value, or that the server did in modes
// in which the codec doesn't know the parameter's type.
func mustRefuse(t *testing.T, mode pgx.QueryExecMode, in any, err error) {
	t.Helper()
	var pgErr *pgconn.PgError
	switch {
	case err == nil:
		t.Errorf("%T as uuid: no error", in)
	case byOID(mode) && !strings.Contains(err.Error(), "or use idtype.Sno for uuid columns"):
		t.Errorf("%T as uuid: %v", in, err)
	case !byOID(mode) && !errors.As(err, &pgErr):
		t.Errorf("%T as uuid: %v, want an error of the server", in, err)
	}
}

// Numbers outside the format's range are rejected before they are stored, in all modes.
func TestOutOfRange(t *testing.T) {
	inEachMode(t, "create table t (n bigint, list bigint[], txt text)", func(t *testing.T, conn *pgx.Conn, _ pgx.QueryExecMode) {
		for column, values := range map[string][]any{
			"n":    {idtype.Snowflake(-1), idtype.SnowflakeSI(1 << 53), idtype.UID60(1 << 60), sqltypes.OptionalOf(idtype.Snowflake(-1))},
			"list": {[]idtype.Snowflake{1, -1}, []idtype.SnowflakeSI{1 << 53}},
			"txt":  {sqltypes.TextOf(idtype.Snowflake(-1)), sqltypes.TextOf(idtype.Spread64(0x0400))},
		} {
			for _, v := range values {
				if _, err := conn.Exec(t.Context(), "insert into t ("+column+") values ($1)", v); !errors.Is(err, idtype.ErrRange) {
					t.Errorf("%T %v: %v, want ErrRange", v, v, err)
				}
			}
		}
		mustBeEmpty(t, conn)
	})
}

// Columns accept or reject a typed key, and a struct that embeds an ID, as they do the ID.
func TestTypedInOtherColumns(t *testing.T) {
	columns := []string{"txt text", "short varchar(40)", "pad char(40)", "raw bytea", "n name"}
	ddl := "create table t (" + strings.Join(columns, ", ") + ", txt_list text[], short_list varchar(40)[], pad_list char(40)[], raw_list bytea[], n_list name[])"
	inEachMode(t, ddl, func(t *testing.T, conn *pgx.Conn, mode pgx.QueryExecMode) {
		sno := idtype.MustParseSno("brpk4q72xwf2m63l")
		for _, column := range columns {
			column, _, _ = strings.Cut(column, " ")
			testOtherColumn(t, conn, mode, column, sno, customerID{sno})
			testOtherColumn(t, conn, mode, column, sno, idtype.SnoOf[idtest.Visit](sno))
		}
		for _, value := range []any{sqltypes.TextOf(customerID{sno}), sqltypes.TextOf(idtype.SnoOf[idtest.Visit](sno)), sqltypes.TextOf(sno)} {
			if shown, err := stored(t, conn, "txt", value); err != nil || shown != sno.String() {
				t.Errorf("%T in text: stored %q, %v", value, shown, err)
			}
		}
	})
}

func testOtherColumn[V sqltypes.ID](t *testing.T, conn *pgx.Conn, mode pgx.QueryExecMode, column string, plain idtype.Sno, id V) {
	t.Helper()
	p := &id
	for _, c := range []struct {
		column string
		plain  any
		values []any
	}{
		{column, plain, []any{id, p, &p, sql.Null[V]{V: id, Valid: true}, sqltypes.OptionalOf(id)}},
		{column + "_list", []idtype.Sno{plain}, []any{[]V{id}, []*V{p}, &[]V{id}, []sqltypes.Optional[V]{{ID: id}}}},
	} {
		want, wantErr := stored(t, conn, c.column, c.plain)
		for _, value := range c.values {
			shown, err := stored(t, conn, c.column, value)
			if byOID(mode) {
				if err == nil || wantErr == nil || !strings.Contains(err.Error(), ": want a uuid parameter, got ") {
					t.Errorf("%T in %s: stored %q, %v; a Sno: %v", value, c.column, shown, err, wantErr)
				}
			} else if err != nil || wantErr != nil || shown != want {
				t.Errorf("%T in %s: stored %q, %v; a Sno: %q, %v", value, c.column, shown, err, want, wantErr)
			}
			if _, err := conn.CopyFrom(t.Context(), pgx.Identifier{"t"}, []string{c.column}, pgx.CopyFromRows([][]any{{value}})); err == nil || !strings.Contains(err.Error(), "want a uuid parameter, got ") {
				t.Errorf("COPY of %T into %s: %v", value, c.column, err)
			}
		}
	}
}

// stored inserts a value and returns it as text from the server.
func stored(t *testing.T, conn *pgx.Conn, column string, value any) (shown string, err error) {
	err = conn.QueryRow(t.Context(), fmt.Sprintf("insert into t (%s) values ($1) returning rtrim(%[1]s::text)", column), value).Scan(&shown)
	return shown, err
}

// The remedies in error messages work.
func TestRemedies(t *testing.T) {
	one(t, func(t *testing.T, db *pgtest.DB) {
		sno, number := idtype.MustParseSno("brpk4q72xwf2m63l"), idtype.Snowflake(7)
		txt, raw, own, order := sqltypes.TextOf(sno), sqltypes.SnoBytesOf(sno), customerID{sno}, idtype.SnowflakeOf[idtest.Order](7)
		const noType, function, use, column, slice = "write $1::", "pass id.String() to a function", "or use ", "make the column ", "pass a slice of "
		db.Exec(t, `create table t (u uuid, n bigint, txt text, short varchar(40), pad char(16), raw bytea, list bigint[], texts text[]);
			create table mended (u uuid, n bigint, txt text, pad char(16), raw bytea)`)
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
				{"select $1", raw, noType + "bytea", "select $1::bytea", raw},
				{"select $1", own, noType + "uuid", "select $1::uuid", own},
				{"select jsonb_build_object('id', $1::text)", sno, function, "select jsonb_build_object('id', $1::text)", sno.String()},
				// The argument of a function.
				{"select pg_notify('x', $1)", sno, function, "select pg_notify('x', $1)", sno.String()},
				{"select pg_notify('x', $1)", number, function, "select pg_notify('x', $1)", number.String()},
				{"select pg_notify('x', $1)", raw, function, "select pg_notify('x', $1)", raw.String()},
				{"select pg_notify('x', $1)", own, function, "select pg_notify('x', $1)", own.String()},
				{"select upper($1)", &sno, function, "select upper($1)", sno.String()},
				// Another Go type for the column.
				{"insert into t (txt) values ($1)", sno, use + "sqltypes.SnoText for text columns", "insert into t (txt) values ($1)", txt},
				{"insert into t (short) values ($1)", &sno, use + "sqltypes.SnoText for text columns", "insert into t (short) values ($1)", &txt},
				{"insert into t (texts) values ($1)", []idtype.Sno{sno}, use + "sqltypes.SnoText for text columns", "insert into t (texts) values ($1)", []sqltypes.SnoText{txt}},
				{"select from t where txt = any($1::text[])", []*idtype.Sno{&sno}, use + "sqltypes.SnoText for text columns", "select from t where txt = any($1::text[])", []*sqltypes.SnoText{&txt}},
				{"insert into t (pad) values ($1)", sno, use + "sqltypes.SnoText for text columns", "insert into t (pad) values ($1)", txt},
				{"select from t where txt = $1", sno, use + "sqltypes.SnoText for text columns", "select from t where txt = $1", txt},
				{"select from t where txt = any($1)", []idtype.Sno{sno}, use + "sqltypes.SnoText for text columns", "select from t where txt = any($1)", []sqltypes.SnoText{txt}},
				{"select from t where txt = any($1)", sno, slice + "sqltypes.SnoText for text columns", "select from t where txt = any($1)", []sqltypes.SnoText{txt}},
				{"insert into t (raw) values ($1)", sno, ", sqltypes.SnoBytes for bytea columns", "insert into t (raw) values ($1)", raw},
				{"insert into t (raw) values ($1)", txt, ", sqltypes.SnoBytes for bytea columns", "insert into t (raw) values ($1)", raw},
				{"insert into t (raw) values ($1)", own, ", sqltypes.SnoBytes for bytea columns", "insert into t (raw) values ($1)", sqltypes.SnoBytesOf(own.Sno)},
				{"insert into t (u) values ($1)", txt, use + "idtype.Sno for uuid columns", "insert into t (u) values ($1)", txt.ID},
				{"insert into t (u) values ($1)", raw, use + "idtype.Sno for uuid columns", "insert into t (u) values ($1)", raw.ID},
				{"insert into t (txt) values ($1)", raw, ", sqltypes.SnoText for text columns", "insert into t (txt) values ($1)", sqltypes.TextOf(raw.ID)},
				{"insert into t (txt) values ($1)", number, use + "sqltypes.SnowflakeText for text columns", "insert into t (txt) values ($1)", sqltypes.TextOf(number)},
				{"insert into t (txt) values ($1)", own, use + "sqltypes.Text[pgx.customerID] for text columns", "insert into t (txt) values ($1)", sqltypes.TextOf(own)},
				{"insert into t (txt) values ($1)", order, use + "sqltypes.Text[idtype.SnowflakeOf[idtest.Order]] for text columns", "insert into t (txt) values ($1)", sqltypes.TextOf(order)},
				{"insert into t (u) values ($1)", sqltypes.TextOf(own), use + "pgx.customerID for uuid columns", "insert into t (u) values ($1)", own},
				{"insert into t (n) values ($1)", sqltypes.TextOf(number), use + "idtype.Snowflake for bigint columns", "insert into t (n) values ($1)", number},
				// Another column for the Go type.
				{"insert into t (n) values ($1)", txt, column + "text", "insert into mended (txt) values ($1)", txt},
				{"insert into t (n) values ($1)", sno, column + "uuid", "insert into mended (u) values ($1)", sno},
				{"insert into t (u) values ($1)", number, column + "bigint", "insert into mended (n) values ($1)", number},
				{"insert into t (u) values ($1)", txt, column + "text", "insert into mended (txt) values ($1)", txt},
				{"insert into t (n) values ($1)", raw, column + "bytea", "insert into mended (raw) values ($1)", raw},
				{"select from t where n = any($1)", sno, column + "uuid", "select from mended where u = $1", sno},
				// Arrays.
				{"select from t where n = any($1)", number, "pass []idtype.Snowflake", "select from t where n = any($1)", []idtype.Snowflake{number}},
				{"select from t where u = any($1)", &own, "pass []*pgx.customerID", "select from t where u = any($1)", []*customerID{&own}},
				{"select from t where u = any($1)", sqltypes.OptionalOf(sno), "pass []sqltypes.Optional[", "select from t where u = any($1)", []sqltypes.OptionalSno{sqltypes.OptionalOf(sno)}},
				{"select from t where n = $1", []idtype.Snowflake{number}, "write = ANY($1)", "select from t where n = ANY($1)", []idtype.Snowflake{number}},
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
				_, err := conn.CopyFrom(ctx, pgx.Identifier{"t"}, []string{"list"}, pgx.CopyFromRows([][]any{{value}}))
				return err
			}
			if err := copied("abc"); err == nil || !strings.Contains(err.Error(), "pass a slice") {
				t.Errorf("COPY of a string into bigint[]: %v", err)
			}
			if err := errors.Join(copied([]int64{1}), copied("{1,2}"), copied("{{1,2},{3,4}}")); err != nil {
				t.Error(err)
			}
			// Scans into a type that can't hold the value.
			var ids []idtype.Snowflake
			var one idtype.Snowflake
			for _, c := range []struct {
				sql   string
				dst   any
				names string
				with  []any
			}{
				{"select null::bigint", &one, "into *idtype.Snowflake, sql.Null[idtype.Snowflake] or sqltypes.Optional[idtype.Snowflake]",
					[]any{new(*idtype.Snowflake), new(sql.Null[idtype.Snowflake]), new(sqltypes.OptionalSnowflake)}},
				{"select '{1,null}'::bigint[]", &ids, "into *idtype.Snowflake, sql.Null[idtype.Snowflake] or sqltypes.Optional[idtype.Snowflake]",
					[]any{new([]*idtype.Snowflake), new([]sql.Null[idtype.Snowflake]), new([]sqltypes.OptionalSnowflake)}},
				{"select '{1,2}'::bigint[]", &one, "pass a pointer to a slice", []any{&ids}},
			} {
				if err := conn.QueryRow(ctx, c.sql).Scan(c.dst); err == nil || !strings.Contains(err.Error(), c.names) {
					t.Errorf("%s into %T: %v, want an error that names %q", c.sql, c.dst, err, c.names)
				}
				for _, dst := range c.with {
					if err := conn.QueryRow(ctx, c.sql).Scan(dst); err != nil {
						t.Errorf("%s into %T: %v", c.sql, dst, err)
					}
				}
			}
		}
	})
}
