package idtype

import (
	"context"
	"sync"
)

// MapGenerator returns a generator of f's results for the IDs of g, for types of your own:
//
//	type InvoiceID int64
//
//	invoices := idtype.MapGenerator(gen, func(id idtype.Snowflake) InvoiceID { return InvoiceID(id) })
//
// If f returns different values for different IDs, the generator never returns a duplicate.
// f must be safe for concurrent use. The result is [Monitored] if g is, and has the method
// Ready if g has it. Its method Source() Generator[T] returns g. If V is a typed key, or a
// struct that embeds one, and its model has another layout than g, MapGenerator panics with
// the error of [Typed.CheckGenerator].
func MapGenerator[T, V any](g Generator[T], f func(T) V) Generator[V] {
	if g == nil || f == nil {
		panic("idtype: MapGenerator or GeneratorOf: the generator or the function is nil; create it first")
	}
	if key, ok := any(new(V)).(interface{ CheckGenerator(any) error }); ok {
		if err := key.CheckGenerator(g); err != nil {
			panic(err)
		}
	}
	m := &mappedGenerator[T, V]{of: g, f: f}
	switch g := g.(type) {
	case Monitored:
		return monitoredMap[T, V]{m, g}
	case readier: // such as a generator of package nodelease
		return readyMap[T, V]{m, g}
	}
	return m
}

type (
	readier interface{ Ready() error }

	monitoredMap[T, V any] struct {
		*mappedGenerator[T, V]
		Monitored
	}
	readyMap[T, V any] struct {
		*mappedGenerator[T, V]
		readier
	}
)

type mappedGenerator[T, V any] struct {
	of     Generator[T]
	f      func(T) V
	blocks sync.Pool // of *[mappedBlock]T
}

// mappedBlock is the number of IDs that one call of Fill takes from the other generator.
const mappedBlock = 256

// Source returns the generator whose IDs are mapped.
func (m *mappedGenerator[T, V]) Source() Generator[T] { return m.of }

func (m *mappedGenerator[T, V]) Next() (v V, err error) {
	id, err := m.of.Next()
	if err != nil {
		return v, err
	}
	return m.f(id), nil
}

func (m *mappedGenerator[T, V]) Fill(ctx context.Context, dst []V) (n int, err error) {
	block, _ := m.blocks.Get().(*[mappedBlock]T)
	if block == nil {
		block = new([mappedBlock]T)
	}
	defer m.blocks.Put(block)
	for err == nil && n < len(dst) {
		ids := block[:min(len(dst)-n, mappedBlock)]
		var filled int
		filled, err = m.of.Fill(ctx, ids)
		for _, id := range ids[:filled] {
			dst[n] = m.f(id)
			n++
		}
		if filled < len(ids) {
			break // also if the other generator returned too few IDs without an error
		}
	}
	return n, err
}
