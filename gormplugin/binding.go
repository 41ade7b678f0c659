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

	newBlock func(meta modelMeta) *block
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
		newBlock: func(meta modelMeta) *block { return newBlock(gen, meta) },
	}
}

// Named binds a generator to the keys that have the tag `gorm:"idgen:name"`.
func Named[T any](name string, gen idtype.Generator[T]) Binding {
	b := For(gen)
	b.named, b.name = true, name
	return b
}

// The values of the tag that are not generator names. If the tag has no value, GORM
// sets the value to the tag's name in capitals.
const (
	tagKey = "IDGEN"
	byType = tagKey
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
		case b.name == "", b.name == byType, b.name == optOut, strings.ContainsAny(b.name, "; \t\n\"`\\"):
			return fmt.Errorf("gormplugin: bind generator %q: a struct tag can't contain this name; use letters and digits, but not IDGEN", b.name)
		case names[b.name]:
			return fmt.Errorf("gormplugin: bind generator %q: the name is already in use; rename one of the two", b.name)
		default:
			names[b.name] = true
		}
	}
	return nil
}

// A filler puts a generator's IDs into fields of one type.
type filler struct {
	path   []step       // from the field to the ID
	kind   reflect.Kind // of the ID
	bytes  bool         // the ID is an array of bytes
	blocks sync.Pool    // of *block
}

// A step leads from a value to a value in it that may be an ID.
type step int

const (
	firstField step = iota // the first field of a struct
	pointee                // the variable to which a pointer points
	nullV                  // the V of a sql.Null
)

func (b Binding) filler(path []step, id reflect.Type) *filler {
	meta := metaOf(id)
	return &filler{path: path, kind: id.Kind(), bytes: id.Kind() == reflect.Array && id.Elem().Kind() == reflect.Uint8,
		blocks: sync.Pool{New: func() any { return b.newBlock(meta) }}}
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
	meta modelMeta
}

func newBlock[T any](gen idtype.Generator[T], meta modelMeta) *block {
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
	if snos, ok := any(&b.ids).(*[blockSize]idtype.Sno); ok && b.meta.declared {
		// The IDs must be distinct without their metabytes, as for idtype.GeneratorOf.
		for i := range snos[:n] {
			snos[i] = snos[i].WithMeta(b.meta.meta)
		}
	}
	return err
}

// isMissing reports whether a field has no ID.
func (f *filler) isMissing(field reflect.Value) bool {
	for _, s := range f.path {
		switch {
		case s == pointee && field.IsNil(), s == nullV && !field.Field(1).Bool():
			return true
		case s == pointee:
			field = field.Elem()
		default:
			field = field.Field(0)
		}
	}
	return field.IsZero()
}

// put puts an ID into an addressable field.
func (f *filler) put(field, id reflect.Value) {
	for _, s := range f.path {
		switch s {
		case pointee:
			// Set a new pointer: the caller may use the variable at the old one.
			field.Set(reflect.New(field.Type().Elem()))
			field = field.Elem()
		case nullV:
			field.Field(1).SetBool(true)
			fallthrough
		default:
			field = field.Field(0)
		}
	}
	// The field may be a typed key, which Set rejects. Convert would allocate.
	switch {
	case f.kind == reflect.Int64:
		field.SetInt(id.Int())
	case f.bytes:
		copy(field.Bytes(), id.Bytes())
	default:
		field.Set(id)
	}
}

// flush generates IDs for the fields of a block.
func (f *filler) flush(ctx context.Context, b *block) error {
	if b.n == 0 {
		return nil
	}
	fields := b.fields[:b.n]
	err := b.source.generate(ctx, b.n)
	if err == nil {
		for i, field := range fields {
			f.put(field, b.ids.Index(i))
		}
	}
	// A block in the pool must not keep the caller's rows alive.
	clear(fields)
	b.n = 0
	return err
}
