package idtype

import (
	"context"
	"unsafe"
)

// GeneratorOf returns a generator of K's typed keys that takes its IDs from g:
//
//	orders := idtype.GeneratorOf[Order](gen) // a Generator[SnowflakeOf[Order]]
//
// Several models can share g. With GORM, bind g itself: the plugin fills typed keys.
func GeneratorOf[K any, T Integer](g Generator[T]) Generator[Typed[*K, T]] {
	if g == nil {
		panic("idtype: GeneratorOf: the generator is nil; create one first")
	}
	return typedGenerator[K, T]{g}
}

type typedGenerator[K any, T Integer] struct{ of Generator[T] }

func (g typedGenerator[K, T]) Next() (Typed[*K, T], error) {
	id, err := g.of.Next()
	return Typed[*K, T](id), err
}

func (g typedGenerator[K, T]) Fill(ctx context.Context, dst []Typed[*K, T]) (n int, err error) {
	return g.of.Fill(ctx, viewed[T](dst))
}

// SnoGeneratorOf returns a generator of K's typed keys that takes its IDs from g. If K has
// a method IDMeta() byte, the IDs have that metabyte. Otherwise they have g's. Without their
// metabytes, the IDs of g must still be distinct, as the IDs of a [SnoGenerator] are.
func SnoGeneratorOf[K any](g Generator[Sno]) Generator[SnoOf[K]] {
	if g == nil {
		panic("idtype: SnoGeneratorOf: the generator is nil; create one first")
	}
	return typedSnoGenerator[K]{g}
}

type typedSnoGenerator[K any] struct{ of Generator[Sno] }

func (g typedSnoGenerator[K]) Next() (SnoOf[K], error) {
	id, err := g.of.Next()
	if meta, ok := (SnoOf[K]{}).ModelMeta(); ok && err == nil {
		id = id.WithMeta(meta)
	}
	return SnoOf[K](id), err
}

func (g typedSnoGenerator[K]) Fill(ctx context.Context, dst []SnoOf[K]) (n int, err error) {
	ids := viewed[Sno](dst)
	n, err = g.of.Fill(ctx, ids)
	if meta, ok := (SnoOf[K]{}).ModelMeta(); ok {
		for i, id := range ids[:n] {
			ids[i] = id.WithMeta(meta)
		}
	}
	return n, err
}

// viewed returns a slice of typed keys as a slice of T, which has the same memory layout.
func viewed[T, V any](ids []V) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(ids))), len(ids))
}
