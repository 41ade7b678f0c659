package pgxcodec

import "github.com/jackc/pgx/v5/pgtype"

// builtin lists the built-in Postgres types that can hold IDs.
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

// Register registers the ID types on a connection's type map, conn.TypeMap(). It wraps
// the codecs that the map has for int8, uuid, text, varchar, bpchar, name, bytea and
// their arrays. Call it again after registering other codecs for these types.
func Register(m *pgtype.Map) {
	r, _ := registryOf(m)
	register(m, r)
}

func register(m *pgtype.Map, r *registry) {
	for _, b := range builtin {
		c := b.column(r)
		element := &pgtype.Type{Name: b.name, OID: b.oid, Codec: elementType(c, baseCodec(m, b.oid))}
		m.RegisterType(element)
		m.RegisterType(arrayType("_"+b.name, b.arrayOID, element, c, baseCodec(m, b.arrayOID), false))
	}
	for _, c := range r.columns() {
		c.registerDefaults(m, c.all()...)
	}
}

// registerDefaults sets the Postgres type of members for arguments whose OID is
// unknown.
func (c *column) registerDefaults(m *pgtype.Map, members ...member) {
	if c.pgName == "" {
		return
	}
	for _, v := range members {
		v.registerDefaults(m, c.pgName)
	}
}

// A wrapper is a codec of this package around the codec that the map had before.
type wrapper interface {
	pgtype.Codec
	wrapped() pgtype.Codec
	holder() *column
	ofCaller() bool // the caller registered the wrapped codec for a domain; it goes first
}

// wrapperOf returns the codec of a type if this package made it, and nil otherwise.
func wrapperOf(m *pgtype.Map, oid uint32) wrapper {
	t, ok := m.TypeForOID(oid)
	if !ok {
		return nil
	}
	w, _ := t.Codec.(wrapper)
	return w
}

// registryOf returns the registry that a map's codecs share, or a new one if the map
// has no codec of this package. Other packages may have replaced some of the codecs.
// whole reports whether all codecs are of this package and share r.
func registryOf(m *pgtype.Map) (r *registry, whole bool) {
	whole = true
	for _, b := range builtin {
		for _, oid := range []uint32{b.oid, b.arrayOID} {
			switch w := wrapperOf(m, oid); {
			case w == nil:
				whole = false
			case r == nil:
				r = w.holder().registry
			case w.holder().registry != r:
				whole = false
			}
		}
	}
	if r == nil {
		r = newRegistry()
	}
	return r, whole
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
	if w, ok := codec.(wrapper); ok {
		return w.wrapped()
	}
	return codec
}

func elementType(c *column, base pgtype.Codec) pgtype.Codec {
	e := elementCodec{base, c, false}
	switch c {
	case &c.registry.bigint:
		return &bigintCodec{e}
	case &c.registry.uuid:
		return &uuidCodec{e}
	}
	return &e
}

// arrayType returns the array type for an element type that has a codec of this
// package. A pgtype.ArrayCodec is bound to its element's codec, so arrayType makes a
// new one.
func arrayType(name string, oid uint32, element *pgtype.Type, c *column, base pgtype.Codec, callers bool) *pgtype.Type {
	if a, ok := base.(*pgtype.ArrayCodec); ok {
		base = &pgtype.ArrayCodec{ElementType: element, Delimiter: a.Delimiter}
	}
	return &pgtype.Type{Name: name, OID: oid, Codec: &arrayCodec{base, c, element.OID, callers}}
}
