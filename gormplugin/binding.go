package gormplugin

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/internal/typename"
)

// A Binding assigns a generator to keys. [For] and [Named] return Bindings.
type Binding struct {
	named  bool
	name   string
	idType reflect.Type // nil if there is no generator
	gen    any

	newBlock func(meta *byte) *block
}

// For binds a generator to all primary keys of type V, *V and [database/sql.Null] of V.
// V is T or a typed key of T, such as idtype.SnowflakeOf[Order] if T is
// idtype.Snowflake. V may be wrapped in a struct with no other field. A tag on a key
// takes precedence.
func For[T any](gen idtype.Generator[T]) Binding {
	if v := reflect.ValueOf(gen); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return Binding{} // for example the nil result of a constructor that failed
	}
	return Binding{
		idType:   reflect.TypeFor[T](),
		gen:      gen,
		newBlock: func(meta *byte) *block { return newBlock(gen, meta) },
	}
}

// Named binds a generator to the keys that have the tag `gorm:"idgen:name"`.
func Named[T any](name string, gen idtype.Generator[T]) Binding {
	b := For(gen)
	b.named, b.name = true, name
	return b
}

// The values of the tag that are not generator names. If the tag has no value, GORM sets the
// value to the tag's name in capitals.
const (
	tagKey = "IDGEN"
	noName = tagKey
	optOut = "-"
)

func checkBindings(bindings []Binding) error {
	names, types := map[string]bool{}, map[reflect.Type]bool{}
	for _, b := range bindings {
		switch {
		case b.idType == nil:
			return fmt.Errorf("gormplugin: bind generator: For or Named got nil; create a generator first, for example with idtype.NewSnowflakeGenerator")
		case !b.named && types[b.idType]:
			return fmt.Errorf("gormplugin: bind generator of %s: the type already has one; give one of the two a name with Named", typename.Of(b.idType))
		case !b.named:
			types[b.idType] = true
		case b.name == "", b.name == noName, b.name == optOut, strings.ContainsAny(b.name, "; \t\n\"`\\"):
			return fmt.Errorf("gormplugin: bind generator %q: a struct tag can't contain this name; use letters and digits, but not IDGEN", b.name)
		case names[b.name]:
			return fmt.Errorf("gormplugin: bind generator %q: the name is already in use; rename one of the two", b.name)
		default:
			names[b.name] = true
		}
	}
	return nil
}

// A filler puts a generator's IDs into fields.
type filler struct {
	id     reflect.Type // of the IDs in the fields
	inside bool         // the fields have another type, in which the IDs are
	bytes  bool         // the IDs are arrays of bytes
	blocks sync.Pool    // of *block
}

func (b Binding) filler(field, id reflect.Type) *filler {
	meta := metaOf(id)
	return &filler{id: id, inside: field != id, bytes: id.Kind() == reflect.Array && id.Elem().Kind() == reflect.Uint8,
		blocks: sync.Pool{New: func() any { return b.newBlock(meta) }}}
}

// metaOf returns the metabyte that the model of a typed key declares with IDMeta, or nil.
func metaOf(id reflect.Type) *byte {
	if key, ok := reflect.Zero(id).Interface().(interface{ ModelMeta() (byte, bool) }); ok {
		if meta, declared := key.ModelMeta(); declared {
			return &meta
		}
	}
	return nil
}

// A block holds fields without an ID and the IDs for them, so that one call of Fill
// generates many IDs.
type block struct {
	fields [blockSize]reflect.Value
	n      int           // the number of fields
	ids    reflect.Value // an array
	source interface {
		generate(ctx context.Context, n int) error
	}
}

const blockSize = 256

// An idBlock is a block with IDs of type T, in one allocation.
type idBlock[T any] struct {
	block
	gen  idtype.Generator[T]
	ids  [blockSize]T
	meta *byte // of Snos; nil: the generator's
}

func newBlock[T any](gen idtype.Generator[T], meta *byte) *block {
	b := &idBlock[T]{gen: gen, meta: meta}
	b.block.ids, b.source = reflect.ValueOf(&b.ids).Elem(), b
	return &b.block
}

// generate generates the first n IDs of the block.
func (b *idBlock[T]) generate(ctx context.Context, n int) error {
	got, err := b.gen.Fill(ctx, b.ids[:n])
	if err == nil && got != n {
		// The rest of the block contains IDs of earlier rows.
		err = fmt.Errorf("%s.Fill: want %d IDs, got %d without an error; fix the generator", typename.OfValue(b.gen), n, got)
	}
	if snos, ok := any(&b.ids).(*[blockSize]idtype.Sno); ok && b.meta != nil {
		// The IDs must be distinct without their metabytes, as for idtype.GeneratorOf.
		for i := range snos[:n] {
			snos[i] = snos[i].WithMeta(*b.meta)
		}
	}
	return err
}

// put puts an ID into a field.
func (f *filler) put(field, id reflect.Value) {
	if f.inside {
		field = slot(field, f.id)
	}
	// The field may be a typed key, which Set rejects. Convert would allocate.
	switch {
	case field.CanInt():
		field.SetInt(id.Int())
	case f.bytes:
		copy(field.Bytes(), id.Bytes())
	default:
		field.Set(id)
	}
}
