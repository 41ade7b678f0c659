package gormplugin

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/sortkey/sortkey/idtype"
)

// A Binding assigns a generator to keys. [For] and [Named] return Bindings.
type Binding struct {
	named  bool
	name   string
	idType reflect.Type // nil if there is no generator

	// filler returns the filler for fields of a type, or nil if the type can't
	// hold the generator's IDs. boxFiller does the same for a pointer to a struct
	// around the ID, and for a sql.Null of such a struct.
	filler, boxFiller func(reflect.Type) filler
}

// For binds a generator to all primary keys of type T, *T and
// [database/sql.Null] of T, where T may be wrapped in a struct with no other
// field. A tag on a key takes precedence.
func For[T any](gen idtype.Generator[T]) Binding {
	if v := reflect.ValueOf(gen); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return Binding{} // for example the nil result of a constructor that failed
	}
	return Binding{
		idType:    reflect.TypeFor[T](),
		filler:    func(t reflect.Type) filler { return fillerOf(gen, t) },
		boxFiller: func(t reflect.Type) filler { return boxFillerOf(gen, t) },
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
			return fmt.Errorf("gormplugin: bind generator of %v: the type already has one; give one of the two a name with Named", b.idType)
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
	// rows fills the field of k in each element of a slice or an array.
	rows(ctx context.Context, k *key, rows reflect.Value) error
	// next generates an ID.
	next(ctx context.Context) (any, error)
}

// fillerOf returns a filler for fields of type T, *T and sql.Null[T], and nil for
// other types.
func fillerOf[T any](gen idtype.Generator[T], t reflect.Type) filler {
	isZero := zero[T]()
	switch t {
	case reflect.TypeFor[T]():
		return newColumn(gen, isZero, func(p *T, id T) { *p = id })
	case reflect.TypeFor[*T]():
		// Set a new pointer: the caller may use the variable at the old one.
		return newColumn(gen,
			func(p **T) bool { return *p == nil || isZero(*p) },
			func(p **T, id T) { *p = &id })
	case reflect.TypeFor[sql.Null[T]]():
		return newColumn(gen,
			func(p *sql.Null[T]) bool { return !p.Valid || isZero(&p.V) },
			func(p *sql.Null[T], id T) { *p = sql.Null[T]{V: id, Valid: true} })
	}
	return nil
}

// boxFillerOf returns a filler for a pointer to a struct around the ID, such as the
// caller's own ID type, and for a sql.Null of such a struct. It uses reflection.
func boxFillerOf[T any](gen idtype.Generator[T], t reflect.Type) filler {
	content := t
	switch {
	case t.Kind() == reflect.Pointer:
		content = t.Elem()
	case isSQLNull(t):
		content = t.Field(0).Type
	}
	if content == t || !wraps(content, reflect.TypeFor[T]()) {
		return nil
	}
	c := newColumn(gen, isMissing, func(field reflect.Value, id T) { field.Set(holding(t, reflect.ValueOf(id))) })
	c.place = func(field reflect.Value) reflect.Value { return field }
	return c
}

// zero returns a function that reports whether a T is zero. For the types of
// package idtype it uses no reflection, which would take longer than all other
// work for a row.
func zero[T any]() func(*T) bool {
	for _, f := range []any{
		isZero[idtype.Snowflake], isZero[idtype.SnowflakeSI], isZero[idtype.UID60], isZero[idtype.Spread64], isZero[idtype.Sno],
	} {
		if f, ok := f.(func(*T) bool); ok {
			return f
		}
	}
	return func(p *T) bool { return reflect.ValueOf(p).Elem().IsZero() }
}

func isZero[T comparable](p *T) bool { return *p == *new(T) }

// A column fills fields with a T. P is the way to access a field: its address,
// because schema.Field.Set would allocate for every ID, or, in a boxFiller, its
// reflect.Value.
type column[T, P any] struct {
	gen     idtype.Generator[T]
	missing func(P) bool
	put     func(P, T)
	place   func(field reflect.Value) P // nil if P is the address
	blocks  sync.Pool
}

// A block holds fields without an ID and the IDs for them, so that one call of
// Fill generates many IDs.
type block[T, P any] struct {
	fields [blockSize]P
	ids    [blockSize]T
}

const blockSize = 256

func newColumn[T, P any](gen idtype.Generator[T], missing func(P) bool, put func(P, T)) *column[T, P] {
	return &column[T, P]{gen: gen, missing: missing, put: put,
		blocks: sync.Pool{New: func() any { return new(block[T, P]) }}}
}

func (c *column[T, P]) one(ctx context.Context, field reflect.Value) (bool, error) {
	var p P
	if c.place != nil {
		p = c.place(field)
	} else {
		p = field.Addr().Interface().(P)
	}
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

func (c *column[T, P]) rows(ctx context.Context, k *key, rows reflect.Value) error {
	b := c.blocks.Get().(*block[T, P])
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
				return err
			}
			continue
		}
		// The method one has the same code: a shared method would not be inlined,
		// and would add a call per row.
		field := k.in(ctx, row)
		var p P
		if c.place != nil {
			p = c.place(field)
		} else {
			p = field.Addr().Interface().(P)
		}
		if !c.missing(p) {
			continue
		}
		if n == blockSize {
			if err := c.assign(ctx, b, n); err != nil {
				return k.failed(err)
			}
			n = 0
		}
		b.fields[n] = p
		n++
	}
	return k.failed(c.assign(ctx, b, n))
}

// assign generates IDs for the first n fields of a block.
func (c *column[T, P]) assign(ctx context.Context, b *block[T, P], n int) error {
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

func (c *column[T, P]) next(ctx context.Context) (any, error) { return c.generate(ctx) }

// generate returns a new ID. It calls Fill instead of Next if there is a context: the
// generator stops waiting when the context is done, and may use its values.
func (c *column[T, P]) generate(ctx context.Context) (T, error) {
	if ctx == context.Background() {
		return c.gen.Next()
	}
	b := c.blocks.Get().(*block[T, P])
	defer c.blocks.Put(b)
	err := generateAll(ctx, c.gen, b.ids[:1])
	return b.ids[0], err
}

// generateAll calls Fill, and fails if Fill returns too few IDs without an error:
// the rest of the block would contain IDs of earlier rows.
func generateAll[T any](ctx context.Context, gen idtype.Generator[T], ids []T) error {
	n, err := gen.Fill(ctx, ids)
	if err == nil && n != len(ids) {
		err = fmt.Errorf("%T.Fill: want %d IDs, got %d without an error; fix the generator", gen, len(ids), n)
	}
	return err
}
