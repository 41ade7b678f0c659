package gormplugin

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"unsafe"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/internal/typename"
)

// A Binding assigns a generator to keys. [For] and [Named] return Bindings.
type Binding struct {
	named  bool
	name   string
	idType reflect.Type // nil if there is no generator

	// filler returns the filler for fields with IDs of type id in a form. The type is
	// idType or a typed key of it.
	filler func(f form, id reflect.Type) filler
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
		idType: reflect.TypeFor[T](),
		filler: func(f form, id reflect.Type) filler { return fillerOf(gen, f, id) },
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

// A filler puts a generator's IDs into key fields of one type.
type filler interface {
	// one fills an addressable field if the field has no ID.
	one(ctx context.Context, field reflect.Value) (filled bool, err error)
	// rows fills the field of k in each element of a slice or an array that lacks it, and
	// returns these elements.
	rows(ctx context.Context, k *key, rows reflect.Value) (span, error)
}

// A form is the way in which a field holds an ID.
type form int

const (
	itself form = iota
	behindPointer
	inNull
)

// fillerOf returns a filler for fields with IDs of type id, which is T or a typed key of
// T. Such an ID, alone or in structs of one field, has the memory layout of a T.
func fillerOf[T any](gen idtype.Generator[T], f form, id reflect.Type) filler {
	isZero, mark := zero[T](), marker[T](id)
	switch f {
	case behindPointer:
		return newColumn(gen, mark,
			func(p **T) bool { return *p == nil || isZero(*p) },
			// Set a new pointer: the caller may use the variable at the old one.
			func(p **T, id T) { *p = &id })
	case inNull:
		return newColumn(gen, mark,
			func(p *sql.Null[T]) bool { return !p.Valid || isZero(&p.V) },
			func(p *sql.Null[T], id T) { *p = sql.Null[T]{V: id, Valid: true} })
	}
	return newColumn(gen, mark, isZero, func(p *T, id T) { *p = id })
}

// marker returns a function that sets the metabyte that the model of a typed key
// declares. It returns nil if T is not a Sno or the model declares none.
func marker[T any](key reflect.Type) func(T) T {
	meta, declared := metaOf(key)
	if !declared {
		return nil
	}
	// The IDs must be distinct without their metabytes, as for idtype.SnoGeneratorOf.
	mark, _ := any(func(id idtype.Sno) idtype.Sno { return id.WithMeta(meta) }).(func(T) T)
	return mark
}

// zero returns a function that reports whether a T is zero. For the kinds of package
// idtype's types it uses no reflection, which would take longer than all other work for
// a row.
func zero[T any]() func(*T) bool {
	switch t := reflect.TypeFor[T](); {
	case t.Kind() == reflect.Int64:
		return func(p *T) bool { return *(*int64)(unsafe.Pointer(p)) == 0 }
	case t.Kind() == reflect.Array && t.ConvertibleTo(reflect.TypeFor[idtype.Sno]()):
		return func(p *T) bool { return *(*idtype.Sno)(unsafe.Pointer(p)) == idtype.Sno{} }
	}
	return func(p *T) bool { return reflect.ValueOf(p).Elem().IsZero() }
}

// A column fills fields with a T. F is a T, a *T or a sql.Null[T], and has the memory
// layout of the fields. A column uses the address of a field, because
// schema.Field.Set would allocate for every ID.
type column[T, F any] struct {
	gen     idtype.Generator[T]
	missing func(*F) bool
	put     func(*F, T)
	blocks  sync.Pool
}

// A block holds fields without an ID and the IDs for them, so that one call of
// Fill generates many IDs.
type block[T, F any] struct {
	fields [blockSize]*F
	ids    [blockSize]T
}

const blockSize = 256

func newColumn[T, F any](gen idtype.Generator[T], mark func(T) T, missing func(*F) bool, put func(*F, T)) *column[T, F] {
	c := &column[T, F]{gen: gen, missing: missing, put: put,
		blocks: sync.Pool{New: func() any { return new(block[T, F]) }}}
	if mark != nil {
		c.put = func(p *F, id T) { put(p, mark(id)) }
	}
	return c
}

func (c *column[T, F]) one(ctx context.Context, field reflect.Value) (bool, error) {
	p := (*F)(field.Addr().UnsafePointer())
	if !c.missing(p) {
		return false, nil
	}
	id, err := c.generate(ctx)
	if err != nil {
		return false, err
	}
	c.put(p, id)
	return true, nil
}

func (c *column[T, F]) rows(ctx context.Context, k *key, rows reflect.Value) (filled span, err error) {
	b := c.blocks.Get().(*block[T, F])
	defer c.blocks.Put(b)
	n := 0
	for i := range rows.Len() {
		row := element(rows, i)
		if !row.IsValid() {
			continue
		}
		if !row.CanAddr() {
			// Then no row is addressable, and the block is empty.
			if err := k.refuse(ctx, row); err != nil {
				return filled, err
			}
			continue
		}
		// The method one has the same code: a shared method would not be inlined,
		// and would add a call per row.
		p := (*F)(k.in(ctx, row).Addr().UnsafePointer())
		missing := c.missing(p)
		filled.add(i, missing)
		if !missing {
			continue
		}
		if n == blockSize {
			if err := c.assign(ctx, b, n); err != nil {
				return filled, k.failed(err)
			}
			n = 0
		}
		b.fields[n] = p
		n++
	}
	return filled, k.failed(c.assign(ctx, b, n))
}

// assign generates IDs for the first n fields of a block.
func (c *column[T, F]) assign(ctx context.Context, b *block[T, F], n int) error {
	if n == 0 {
		return nil
	}
	fields := b.fields[:n]
	// A block in the pool must not keep the caller's rows alive.
	defer clear(fields)
	if err := generateAll(ctx, c.gen, b.ids[:n]); err != nil {
		return err
	}
	for i, p := range fields {
		c.put(p, b.ids[i])
	}
	return nil
}

// generate returns a new ID. It calls Fill instead of Next if there is a context: the
// generator stops waiting when the context is done, and may use its values.
func (c *column[T, F]) generate(ctx context.Context) (T, error) {
	if ctx == context.Background() {
		return c.gen.Next()
	}
	b := c.blocks.Get().(*block[T, F])
	defer c.blocks.Put(b)
	err := generateAll(ctx, c.gen, b.ids[:1])
	return b.ids[0], err
}

// generateAll calls Fill, and fails if Fill returns too few IDs without an error:
// the rest of the block would contain IDs of earlier rows.
func generateAll[T any](ctx context.Context, gen idtype.Generator[T], ids []T) error {
	n, err := gen.Fill(ctx, ids)
	if err == nil && n != len(ids) {
		err = fmt.Errorf("%s.Fill: want %d IDs, got %d without an error; fix the generator", typename.OfValue(gen), len(ids), n)
	}
	return err
}
