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

// A Binding says which keys a generator is for. [For] and [Named] make them.
type Binding struct {
	named bool
	name  string
	mints reflect.Type // nil if there is no generator

	// filler returns the filler of fields of a type; nil if that can't hold the
	// IDs. boxFiller does so for a pointer to a struct around the ID, and for a
	// sql.Null of one.
	filler, boxFiller func(reflect.Type) filler
}

// For binds a generator to all primary keys of the type that it mints, except
// where a tag says otherwise.
func For[T any](gen idtype.Generator[T]) Binding {
	if v := reflect.ValueOf(gen); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return Binding{} // such as of a constructor that failed
	}
	return Binding{
		mints:     reflect.TypeFor[T](),
		filler:    func(t reflect.Type) filler { return fillerOf(gen, t) },
		boxFiller: func(t reflect.Type) filler { return boxFillerOf(gen, t) },
	}
}

// Named binds a generator to the keys with the tag `gorm:"idgen:name"`.
func Named[T any](name string, gen idtype.Generator[T]) Binding {
	b := For(gen)
	b.named, b.name = true, name
	return b
}

// The values of the tag that are not names. GORM gives a tag without a value
// its own name, in capitals.
const (
	tagKey = "IDGEN"
	byType = tagKey
	optOut = "-"
)

func checkBindings(bindings []Binding) error {
	names, types := map[string]bool{}, map[reflect.Type]bool{}
	for _, b := range bindings {
		switch {
		case b.mints == nil:
			return fmt.Errorf("gormplugin: bind generator: For or Named got nil; create a generator first, for example with idtype.NewSnowflakeGenerator")
		case !b.named && types[b.mints]:
			return fmt.Errorf("gormplugin: bind generator of %v: the type already has one; give one of the two a name with Named", b.mints)
		case !b.named:
			types[b.mints] = true
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
	// one fills a field, which can be addressed, if it has no ID.
	one(ctx context.Context, field reflect.Value) (filled bool, err error)
	// rows fills the fields of k in the elements of a slice or an array.
	rows(ctx context.Context, k *key, rows reflect.Value) error
	// next returns an ID.
	next(ctx context.Context) (any, error)
}

func fillerOf[T any](gen idtype.Generator[T], t reflect.Type) filler {
	isZero := zero[T]()
	switch t {
	case reflect.TypeFor[T]():
		return newColumn(gen, isZero, func(p *T, id T) { *p = id })
	case reflect.TypeFor[*T]():
		// A new pointer, since the old one may be the caller's own.
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

// boxFillerOf is for a struct around the ID, such as a type of the caller's
// own, in a pointer or a sql.Null. It works by reflection.
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

// zero gives what finds out whether a T is missing: for the types of package
// idtype without reflection, which would take longer than all else that is
// done for a row.
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

// A column fills fields with a T. P is how it reaches a field: by its address,
// since schema.Field.Set would allocate for every ID, or by its reflect.Value.
type column[T, P any] struct {
	gen     idtype.Generator[T]
	missing func(P) bool
	put     func(P, T)
	place   func(field reflect.Value) P // nil: the address
	blocks  sync.Pool
}

// A block is a run of fields without an ID, and the IDs for them.
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
	id, err := c.mint(ctx)
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
			// Then none can be: nothing is in the block yet.
			if err := k.refuse(ctx, row); err != nil {
				return err
			}
			continue
		}
		// As in one. A method for both would not be inlined: a call for every row.
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

// assign mints IDs for the first n fields of a block.
func (c *column[T, P]) assign(ctx context.Context, b *block[T, P], n int) error {
	if n == 0 {
		return nil
	}
	fields := b.fields[:n]
	// A pooled block must not keep the caller's rows alive.
	defer clear(fields)
	if err := mintAll(ctx, c.gen, b.ids[:n]); err != nil {
		return err
	}
	for i, p := range fields {
		c.put(p, b.ids[i])
	}
	return nil
}

func (c *column[T, P]) next(ctx context.Context) (any, error) { return c.mint(ctx) }

// mint is Next, except that the generator gets the context: it stops waiting
// when that is done, and may go by what is in it.
func (c *column[T, P]) mint(ctx context.Context) (T, error) {
	if ctx == context.Background() {
		return c.gen.Next()
	}
	b := c.blocks.Get().(*block[T, P])
	defer c.blocks.Put(b)
	err := mintAll(ctx, c.gen, b.ids[:1])
	return b.ids[0], err
}

// mintAll is Fill that doesn't trust a generator to say that it gave too few:
// the rest of the block would be IDs that were used before.
func mintAll[T any](ctx context.Context, gen idtype.Generator[T], ids []T) error {
	n, err := gen.Fill(ctx, ids)
	if err == nil && n != len(ids) {
		err = fmt.Errorf("%T.Fill: want %d IDs, got %d without an error; fix the generator", gen, len(ids), n)
	}
	return err
}
