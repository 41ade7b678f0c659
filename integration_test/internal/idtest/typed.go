package idtest

import (
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
)

// Models of typed keys.
type (
	// A Visit has no declarations.
	Visit struct{ _ int }
	// An Order has a prefix.
	Order struct{ _ int }
	// A Customer has a prefix and a metabyte.
	Customer struct{ _ int }
)

// IDPrefix implements the prefix.
func (Order) IDPrefix() string { return "ord" }

// IDPrefix implements the prefix.
func (*Customer) IDPrefix() string { return "cus" }

// IDMeta implements the metabyte.
func (*Customer) IDMeta() byte { return customerMeta }

const customerMeta = 'c'

// The typed keys.
var (
	OrderID    = TypedInteger[Order](Snowflake)
	OrderSI    = TypedInteger[Order](SnowflakeSI)
	VisitID    = TypedInteger[Visit](UID60)
	VisitKey   = TypedInteger[Visit](Spread64)
	VisitSno   = TypedSno[Visit](Sno)
	CustomerID = TypedSno[Customer](Sno)
	VisitUUID  = TypedUUID[Visit](UUID)
	OrderUUID  = TypedUUID[Order](UUID)
)

// TypedInteger returns the kind of K's typed keys with the base type T.
func TypedInteger[K any, T interface {
	idtype.Integer
	ID[T]
}](base Kind[T]) Kind[idtype.Typed[*K, T]] {
	type V = idtype.Typed[*K, T]
	k := typed[K](base, func(id T) V { return V(id) })
	k.Stored = func(id V) string { return base.Stored(id.Untyped()) }
	k.NewGenerator = func() (idtype.Generator[V], error) {
		g, err := base.NewGenerator()
		return idtype.GeneratorOf[V](g), err
	}
	return k
}

// TypedSno returns the kind of K's typed keys with the base type Sno.
func TypedSno[K any](base Kind[idtype.Sno]) Kind[idtype.SnoOf[K]] {
	type V = idtype.SnoOf[K]
	k := typed[K](base, func(id idtype.Sno) V {
		if meta, ok := (V{}).ModelMeta(); ok && !id.IsZero() {
			id = id.WithMeta(meta)
		}
		return V(id)
	})
	k.Stored = func(id V) string { return base.Stored(id.Untyped()) }
	k.NewGenerator = func() (idtype.Generator[V], error) {
		g, err := base.NewGenerator()
		return idtype.GeneratorOf[V](g), err
	}
	return k
}

// TypedUUID returns the kind of K's typed keys with the base type UUID.
func TypedUUID[K any](base Kind[idtype.UUID]) Kind[idtype.UUIDOf[K]] {
	type V = idtype.UUIDOf[K]
	k := typed[K](base, func(id idtype.UUID) V { return V(id) })
	k.Stored = func(id V) string { return base.Stored(id.Untyped()) }
	k.NewGenerator = func() (idtype.Generator[V], error) {
		g, err := base.NewGenerator()
		return idtype.GeneratorOf[V](g), err
	}
	return k
}

func typed[K any, T ID[T], V ID[V]](base Kind[T], of func(T) V) Kind[V] {
	k := Kind[V]{
		Name: base.Name + "Of" + reflect.TypeFor[K]().Name(), Column: base.Column, TextOrders: base.TextOrders, BytesOrder: base.BytesOrder,
		Random: func(r *rand.Rand) V { return of(base.Random(r)) },
		First:  base.First, Last: base.Last, Unit: base.Unit, Refused: base.Refused,
		At: func(t time.Time, pick func(int) int) (V, error) {
			id, err := base.At(t, pick)
			return of(id), err
		},
	}
	for _, id := range base.Edges {
		k.Edges = append(k.Edges, of(id))
	}
	if base.Layout != nil {
		k.Layout = typedLayout[T, V]{base.Layout, of}
	}
	return k
}

// A typedLayout is the layout of a typed key.
type typedLayout[T, V any] struct {
	base gormplugin.Layout[T]
	of   func(T) V
}

func (l typedLayout[T, V]) Range(from, to time.Time) (lo, hi V, err error) {
	a, b, err := l.base.Range(from, to)
	return l.of(a), l.of(b), err
}
