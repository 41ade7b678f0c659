package pgxcodec

import "github.com/jackc/pgx/v5/pgtype"

// builtin has the types of every database that can hold IDs.
var builtin = []struct {
	name          string
	oid, arrayOID uint32
	column        func(*registry) *column
}{
	{"int8", pgtype.Int8OID, pgtype.Int8ArrayOID, func(r *registry) *column { return &r.bigint }},
	{"uuid", pgtype.UUIDOID, pgtype.UUIDArrayOID, func(r *registry) *column { return &r.uuid }},
	{"text", pgtype.TextOID, pgtype.TextArrayOID, func(r *registry) *column { return &r.text }},
	{"name", pgtype.NameOID, pgtype.NameArrayOID, func(r *registry) *column { return &r.text }},
	{"varchar", pgtype.VarcharOID, pgtype.VarcharArrayOID, func(r *registry) *column { return &r.text }},
	{"bpchar", pgtype.BPCharOID, pgtype.BPCharArrayOID, func(r *registry) *column { return &r.char }},
	{"bytea", pgtype.ByteaOID, pgtype.ByteaArrayOID, func(r *registry) *column { return &r.bytea }},
}

// Register teaches a connection's type map the ID types. It wraps the codecs
// that the map has for int8, uuid, text, varchar, bpchar, name, bytea and their
// arrays, and can be called again after others were registered.
func Register(m *pgtype.Map) { register(m, registryOf(m)) }

func register(m *pgtype.Map, r *registry) {
	for _, b := range builtin {
		c := b.column(r)
		element := &pgtype.Type{Name: b.name, OID: b.oid, Codec: elementType(c, baseCodec(m, b.oid))}
		m.RegisterType(element)
		m.RegisterType(arrayType("_"+b.name, b.arrayOID, element, c, baseCodec(m, b.arrayOID)))
	}
	for _, c := range r.columns() {
		c.registerDefaults(m, c.all()...)
	}
}

// registerDefaults names the Postgres type of members where OIDs are unknown.
func (c *column) registerDefaults(m *pgtype.Map, members ...member) {
	if c.pgName == "" {
		return
	}
	for _, v := range members {
		v.registerDefaults(m, c.pgName)
	}
}

// registered tells whether a map's codecs are all ours, of one registry.
func registered(m *pgtype.Map, r *registry) bool {
	for _, b := range builtin {
		for _, oid := range []uint32{b.oid, b.arrayOID} {
			t, ok := m.TypeForOID(oid)
			if !ok {
				return false
			}
			if w, ok := t.Codec.(wrapper); !ok || w.holder().registry != r {
				return false
			}
		}
	}
	return true
}

// A wrapper is one of our codecs, around the one that was there before.
type wrapper interface {
	wrapped() pgtype.Codec
	holder() *column
}

// registryOf is the registry of a map's codecs, a new one if it has none of
// ours: any may have been replaced.
func registryOf(m *pgtype.Map) *registry {
	for _, b := range builtin {
		for _, oid := range []uint32{b.oid, b.arrayOID} {
			if t, ok := m.TypeForOID(oid); ok {
				if w, ok := t.Codec.(wrapper); ok {
					return w.holder().registry
				}
			}
		}
	}
	return newRegistry()
}

// baseCodec is the codec that a map has for a built-in type, without ours
// around it: wrapped twice it would be asked twice.
func baseCodec(m *pgtype.Map, oid uint32) pgtype.Codec {
	t, ok := m.TypeForOID(oid)
	if !ok {
		panic("pgxcodec: a built-in type has no codec") // every Map has them all
	}
	if w, ok := t.Codec.(wrapper); ok {
		return w.wrapped()
	}
	return t.Codec
}

func elementType(c *column, base pgtype.Codec) pgtype.Codec {
	e := elementCodec{base, c}
	switch c {
	case &c.registry.bigint:
		return &bigintCodec{e}
	case &c.registry.uuid:
		return &uuidCodec{e}
	}
	return &e
}

// arrayType is the array of a type that has one of our codecs. The array's
// own codec reads its elements with the codec that it was made with, and so
// has to be made again.
func arrayType(name string, oid uint32, element *pgtype.Type, c *column, base pgtype.Codec) *pgtype.Type {
	if a, ok := base.(*pgtype.ArrayCodec); ok {
		base = &pgtype.ArrayCodec{ElementType: element, Delimiter: a.Delimiter}
	}
	return &pgtype.Type{Name: name, OID: oid, Codec: &arrayCodec{base, c, element.OID}}
}
