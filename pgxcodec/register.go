package pgxcodec

import "github.com/jackc/pgx/v5/pgtype"

// builtin lists the built-in Postgres types that can hold IDs.
var builtin = []struct {
	name          string
	oid, arrayOID uint32
	column        *column
}{
	{"int8", pgtype.Int8OID, pgtype.Int8ArrayOID, &bigints},
	{"uuid", pgtype.UUIDOID, pgtype.UUIDArrayOID, &uuids},
	{"text", pgtype.TextOID, pgtype.TextArrayOID, &texts},
	{"name", pgtype.NameOID, pgtype.NameArrayOID, &texts},
	{"varchar", pgtype.VarcharOID, pgtype.VarcharArrayOID, &texts},
	{"bpchar", pgtype.BPCharOID, pgtype.BPCharArrayOID, &texts},
	{"bytea", pgtype.ByteaOID, pgtype.ByteaArrayOID, &byteas},
}

// Register registers the ID types on a connection's type map, conn.TypeMap(). It wraps
// the codecs that the map has for int8, uuid, text, varchar, bpchar, name, bytea, json, jsonb
// and their arrays. Call it again after registering other codecs for these types.
func Register(m *pgtype.Map) {
	for _, b := range builtin {
		element := &pgtype.Type{Name: b.name, OID: b.oid, Codec: &elementCodec{Codec: baseCodec(m, b.oid), column: b.column}}
		m.RegisterType(element)
		m.RegisterType(arrayType("_"+b.name, b.arrayOID, element, b.column, baseCodec(m, b.arrayOID)))
	}
	registerJSON(m, "json", pgtype.JSONOID, pgtype.JSONArrayOID)
	registerJSON(m, "jsonb", pgtype.JSONBOID, pgtype.JSONBArrayOID)
	registerHooks(m)
}

// baseCodec returns the codec that a map has for a built-in type, unwrapped.
func baseCodec(m *pgtype.Map, oid uint32) pgtype.Codec {
	t, ok := m.TypeForOID(oid)
	if !ok {
		panic("pgxcodec: the type map has no codec for a built-in type") // impossible: every Map has them all
	}
	return unwrap(t.Codec)
}

// unwrap returns the codec inside a codec of this package, so that wrapping the
// result never nests wrappers. It returns other codecs unchanged.
func unwrap(codec pgtype.Codec) pgtype.Codec {
	if w, ok := codec.(interface{ wrapped() pgtype.Codec }); ok {
		return w.wrapped()
	}
	return codec
}

// arrayType returns the array type for an element type that has a codec of this
// package. A pgtype.ArrayCodec is bound to its element's codec, so arrayType makes a
// new one.
func arrayType(name string, oid uint32, element *pgtype.Type, c *column, base pgtype.Codec) *pgtype.Type {
	if a, ok := base.(*pgtype.ArrayCodec); ok {
		base = &pgtype.ArrayCodec{ElementType: element, Delimiter: a.Delimiter}
	}
	return &pgtype.Type{Name: name, OID: oid, Codec: &arrayCodec{Codec: base, column: c, element: element.OID}}
}
