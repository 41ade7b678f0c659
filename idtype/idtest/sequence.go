package idtest

import (
	"context"
	"encoding"
	"encoding/binary"
	"fmt"
	"reflect"
	"sync/atomic"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/internal/typename"
)

// A binaryID is a pointer to an ID type of package idtype.
type binaryID[V any] interface {
	*V
	encoding.BinaryUnmarshaler
}

// ID returns the n-th ID of [Sequence], for the expected values of a test. It panics if n
// isn't positive, or too large for the type: a Spread64 has 58 bits for n, a Sno of a model with
// a metabyte 32, and a UUID 62.
func ID[V any, P binaryID[V]](n int64) (id V) {
	if n < 1 {
		panic(fmt.Sprintf("idtest: ID %d: want 1 or more", n))
	}
	b := make([]byte, reflect.TypeFor[V]().Size())
	number, bits := b[len(b)-8:], 63
	binary.BigEndian.PutUint64(number, uint64(n))
	switch v := any(id).(type) {
	case idtype.Spread64, interface{ Untyped() idtype.Spread64 }:
		// The bits from 10 to 15 are reserved.
		binary.BigEndian.PutUint64(number, uint64(n)>>10<<16|uint64(n)&(1<<10-1))
		bits = 58
	case idtype.UUID, interface{ Untyped() idtype.UUID }:
		b[6], b[8] = 7<<4, 2<<6|b[8] // version and variant
		bits = 62
	case interface{ ModelMeta() (byte, bool) }:
		if meta, declared := v.ModelMeta(); declared {
			b[5], bits = meta, 32
		}
	}
	if n>>bits > 0 {
		panic(fmt.Sprintf("idtest: ID %d of %s: want at most %d", n, typename.Of(reflect.TypeFor[V]()), int64(1)<<bits-1))
	}
	if err := P(&id).UnmarshalBinary(b); err != nil {
		panic(fmt.Sprintf("idtest: ID %d: %v", n, err))
	}
	return id
}

// Sequence returns a generator of the IDs 1, 2, 3, … of a type. Their texts suit golden
// files: ord_1 for a Snowflake of a model with the prefix ord, 0000000000000001 for a
// Spread64, 2222222222222223 for a Sno, and 00000000-0000-7000-8000-000000000001 for a UUID.
//
// The IDs are valid: the domains of package migrations accept them, and a Sno has the
// metabyte of its model. Their times are at the start of the format. The generator is safe
// for concurrent use. Fill returns only the error of its context.
func Sequence[V any, P binaryID[V]]() idtype.Generator[V] { return new(sequence[V, P]) }

type sequence[V any, P binaryID[V]] struct{ last atomic.Int64 }

func (s *sequence[V, P]) Next() (V, error) { return ID[V, P](s.last.Add(1)), nil }

func (s *sequence[V, P]) Fill(ctx context.Context, dst []V) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	end := s.last.Add(int64(len(dst)))
	for i := range dst {
		dst[i] = ID[V, P](end - int64(len(dst)-i-1))
	}
	return len(dst), nil
}
