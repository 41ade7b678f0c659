package pgxcodec_test

import (
	"database/sql"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/internal/typename"
	"github.com/sortkey/sortkey/pgxcodec"
	"github.com/sortkey/sortkey/sqltypes"
)

// Encoding and scanning reject an ID with another metabyte than its model declares, in all
// types that hold IDs, and leave the destination unchanged.
func TestMetabyte(t *testing.T) {
	type ID = idtype.SnoOf[customer]
	m := newMap()
	bad, good, zero := ID(sno), ID(taggedSno), ID{}
	badText, goodText := sqltypes.TextOf(bad), sqltypes.TextOf(good)
	pBad, pGood := &bad, &good
	dims := []pgtype.ArrayDimension{{Length: 2, LowerBound: 1}}
	rejects := func(oid uint32, format int16, value any) {
		t.Helper()
		b, err := m.Encode(oid, format, value, nil)
		if !errors.Is(err, idtype.ErrRange) || !strings.Contains(err.Error(), "SnoOf[pgxcodec_test.customer]") && !strings.Contains(typename.OfValue(value), "[]") {
			t.Errorf("%s as OID %d, format %d: %q, %v, want ErrRange", typename.OfValue(value), oid, format, b, err)
		}
	}
	for _, c := range []struct {
		oid, array  uint32
		one, member []any
	}{
		{pgtype.UUIDOID, pgtype.UUIDArrayOID, []any{bad, pBad, &pBad, sql.Null[ID]{V: bad, Valid: true}, sqltypes.OptionalOf(bad), struct{ idtype.SnoOf[customer] }{bad}},
			[]any{[]ID{good, bad}, &[]ID{bad}, []*ID{nil, pBad}, []sql.Null[ID]{{V: bad, Valid: true}}, []sqltypes.Optional[ID]{{ID: bad}}, pgtype.FlatArray[ID]{bad},
				pgtype.Array[ID]{Elements: []ID{good, bad}, Dims: dims, Valid: true}}},
		{pgtype.TextOID, pgtype.TextArrayOID, []any{badText, &badText, sql.Null[sqltypes.Text[ID]]{V: badText, Valid: true}, sqltypes.OptionalOf(badText)},
			[]any{[]sqltypes.Text[ID]{goodText, badText}, []*sqltypes.Text[ID]{&badText}}},
	} {
		for _, value := range c.one {
			rejects(c.oid, binaryFormat, value)
			rejects(c.oid, textFormat, value)
			rejects(0, textFormat, value)
		}
		for _, value := range c.member {
			rejects(c.array, binaryFormat, value)
			rejects(c.array, textFormat, value)
			rejects(0, textFormat, value)
		}
	}
	// NULL has no metabyte.
	for _, value := range []any{sql.Null[ID]{V: bad}, &sql.Null[ID]{V: bad}} {
		if b := encode(t, m, 0, textFormat, value); b != nil {
			t.Errorf("%T: %q, want NULL", value, b)
		}
	}
	if b := encode(t, m, pgtype.UUIDArrayOID, textFormat, []sql.Null[ID]{{V: bad}}); string(b) != "{NULL}" {
		t.Errorf("an array with NULL: %q", b)
	}
	for _, value := range []any{good, zero, &zero, []ID{good, zero}} {
		if b, err := m.Encode(0, textFormat, value, nil); err != nil || len(b) == 0 {
			t.Errorf("%v: %q, %v", value, b, err)
		}
	}

	for _, c := range []struct {
		oid     uint32
		wrong   any
		targets []any
	}{
		{pgtype.UUIDOID, sno, []any{&ID{}, &pGood, &sql.Null[ID]{}, &sqltypes.Optional[ID]{}, &struct{ idtype.SnoOf[customer] }{}}},
		{pgtype.TextOID, sqltypes.TextOf(sno), []any{&sqltypes.Text[ID]{}, &sql.Null[sqltypes.Text[ID]]{}, &sqltypes.Optional[sqltypes.Text[ID]]{}}},
		{pgtype.UUIDArrayOID, []idtype.Sno{taggedSno, sno}, []any{&[]ID{good}, &[]*ID{pGood}}},
		{pgtype.TextArrayOID, []sqltypes.Text[idtype.Sno]{sqltypes.TextOf(sno)}, []any{&[]sqltypes.Text[ID]{}}},
	} {
		for _, format := range []int16{binaryFormat, textFormat} {
			src := encode(t, m, c.oid, format, c.wrong)
			for _, target := range c.targets {
				was := elem(target)
				for _, oid := range []uint32{c.oid, 123456} {
					if oid != c.oid && (format == binaryFormat || strings.HasPrefix(typename.OfValue(target), "*sql.Null[")) {
						continue // pgx asks for unknown types in the text format, and Null sets Valid first
					}
					err := m.Scan(oid, format, src, target)
					if !errors.Is(err, idtype.ErrRange) || strings.Contains(err.Error(), "convert ") || !reflect.DeepEqual(elem(target), was) {
						t.Errorf("%s from OID %d, format %d: %v, %v, want ErrRange and no change", typename.OfValue(target), oid, format, elem(target), err)
					}
				}
			}
		}
	}
}

// Errors have the name of the typed key.
func TestTypedNames(t *testing.T) {
	type ID = idtype.SnowflakeOf[shop]
	m := newMap()
	var id ID
	var text sqltypes.Text[ID]
	for want, err := range map[string]error{
		"idtype: convert -1 to SnowflakeOf[pgxcodec_test.shop]: ":            second(m.Encode(pgtype.Int8OID, binaryFormat, ID(-1), nil)),
		"element 1: idtype: convert -1 to SnowflakeOf[pgxcodec_test.shop]: ": second(m.Encode(pgtype.Int8ArrayOID, binaryFormat, []ID{1, -1}, nil)),
		"idtype: convert -2 to SnowflakeOf[pgxcodec_test.shop]: ":            second(m.Encode(0, textFormat, ID(-2), nil)),
		"idtype: convert -3 to SnowflakeOf[pgxcodec_test.shop]: ":            second(m.Encode(pgtype.TextOID, textFormat, sqltypes.TextOf(ID(-3)), nil)),
		"idtype: scan -1 into SnowflakeOf[pgxcodec_test.shop]: ":             m.Scan(pgtype.Int8OID, textFormat, []byte("-1"), &id),
		`idtype: parse "shop_7" as SnowflakeOf[pgxcodec_test.shop]: `:        m.Scan(pgtype.TextOID, textFormat, []byte("shop_7"), &text),
		"idtype: scan NULL into SnowflakeOf[pgxcodec_test.shop]: NULL is not an ID; scan a nullable column into *idtype.SnowflakeOf[pgxcodec_test.shop], sql.Null[": m.Scan(pgtype.Int8OID, binaryFormat, nil, &id),
		"pgxcodec: encode idtype.SnowflakeOf[pgxcodec_test.shop]: want a slice for a bigint[] parameter, got one ID; pass []idtype.SnowflakeOf[":                    second(m.Encode(pgtype.Int8ArrayOID, binaryFormat, id, nil)),
		"pgxcodec: scan an array into *idtype.SnowflakeOf[pgxcodec_test.shop]: the target holds one ID":                                                             m.Scan(pgtype.Int8ArrayOID, binaryFormat, encode(t, m, pgtype.Int8ArrayOID, binaryFormat, []ID{1}), &id),
		"pgxcodec: encode []idtype.SnowflakeOf[pgxcodec_test.shop]: want one ID for a bigint parameter, got a slice":                                                second(m.Encode(pgtype.Int8OID, binaryFormat, []ID{1}, nil)),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// Plans reject values of other types than they were made for.
func TestPlansCheckTypes(t *testing.T) {
	m := newMap()
	type ID = idtype.SnowflakeOf[shop]
	other := idtype.SnowflakeOf[visitor](7)
	for _, c := range []struct {
		oid          uint32
		value, wrong any
	}{
		{pgtype.Int8OID, ID(7), other}, {pgtype.Int8OID, new(*ID), &other}, {pgtype.Int8OID, sql.Null[ID]{}, other}, {pgtype.Int8OID, sqltypes.Optional[ID]{}, other},
		{pgtype.UUIDOID, sno, idtype.SnoOf[shop]{}}, {pgtype.Int8ArrayOID, []ID{7}, []idtype.Snowflake{7}}, {pgtype.Int8ArrayOID, []*ID{}, []ID{}}, {0, ID(7), other},
	} {
		format := binaryFormat
		if c.oid == 0 {
			format = textFormat
		}
		if b, err := m.PlanEncode(c.oid, format, c.value).Encode(c.wrong, nil); err == nil || b != nil {
			t.Errorf("a plan for %T encodes %T as %q", c.value, c.wrong, b)
		}
		target, wrong := newOf(c.value), newOf(c.wrong)
		if c.oid == 0 {
			target, wrong = new([]ID), &other
		}
		if err := m.PlanScan(c.oid, format, target).Scan([]byte("7"), wrong); !errors.Is(err, pgtype.ErrScanTargetTypeChanged) {
			t.Errorf("a plan for %T scans into %T: %v", target, wrong, err)
		}
	}
}

// Each map gets the hooks for arguments of unknown type once.
func TestHooksOnce(t *testing.T) {
	m, plain := pgtype.NewMap(), pgtype.NewMap()
	pgxcodec.Register(m)
	pgxcodec.Register(m)
	if n := len(m.TryWrapEncodePlanFuncs) - len(plain.TryWrapEncodePlanFuncs); n != 1 {
		t.Errorf("%d hooks to encode, want 1", n)
	}
	if n := len(m.TryWrapScanPlanFuncs) - len(plain.TryWrapScanPlanFuncs); n != 1 {
		t.Errorf("%d hooks to scan, want 1", n)
	}
}
