package idtype

// A key is a typed key V of IDs of type T.
type key[T, V any] interface {
	Untyped() T
	of(T) V // the key with an ID
}

// GeneratorOf returns a generator of typed keys that takes its IDs from g:
//
//	orders := idtype.GeneratorOf[idtype.SnowflakeOf[Order]](gen)
//
// Several models can share g. With GORM, bind g itself: the plugin fills typed keys. If g
// creates IDs in another layout than the model's, GeneratorOf panics; see [Typed].
//
// If the model of a [SnoOf] has a method IDMeta() byte, the IDs have that metabyte. Without their
// metabytes, the IDs of g must still be distinct, as the IDs of a [SnoGenerator] are.
func GeneratorOf[V key[T, V], T any](g Generator[T]) Generator[V] {
	var zero V
	return MapGenerator(g, zero.of)
}

func (Typed[P, T]) of(id T) Typed[P, T] { return Typed[P, T](id) }

func (TypedUUID[P]) of(id UUID) TypedUUID[P] { return TypedUUID[P](id) }

func (TypedSno[P]) of(id Sno) TypedSno[P] {
	if m := traitsOf[P](); m.hasMeta {
		id = id.WithMeta(m.meta)
	}
	return TypedSno[P](id)
}
