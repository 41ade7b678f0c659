package idtype

// GeneratorOf returns a generator of K's typed keys that takes its IDs from g:
//
//	orders := idtype.GeneratorOf[Order](gen) // a Generator[SnowflakeOf[Order]]
//
// Several models can share g. With GORM, bind g itself: the plugin fills typed keys. If g
// creates IDs in another layout than the model's, GeneratorOf panics; see [Typed].
func GeneratorOf[K any, T Integer](g Generator[T]) Generator[Typed[*K, T]] {
	return MapGenerator(g, func(id T) Typed[*K, T] { return Typed[*K, T](id) })
}

// SnoGeneratorOf returns a generator of K's typed keys that takes its IDs from g. If K has
// a method IDMeta() byte, the IDs have that metabyte. Otherwise they have g's. Without their
// metabytes, the IDs of g must still be distinct, as the IDs of a [SnoGenerator] are.
func SnoGeneratorOf[K any](g Generator[Sno]) Generator[SnoOf[K]] {
	meta, tagged := (SnoOf[K]{}).ModelMeta()
	return MapGenerator(g, func(id Sno) SnoOf[K] {
		if tagged {
			id = id.WithMeta(meta)
		}
		return SnoOf[K](id)
	})
}

// UUIDGeneratorOf returns a generator of K's typed keys that takes its IDs from g.
func UUIDGeneratorOf[K any](g Generator[UUID]) Generator[UUIDOf[K]] {
	return MapGenerator(g, func(id UUID) UUIDOf[K] { return UUIDOf[K](id) })
}
