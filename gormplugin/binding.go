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
	gen   source // nil if there is no generator
}

// For binds a generator to all primary keys of the type that it mints, except
// where a tag or a model's IDGenerator method says otherwise.
func For[T any](gen idtype.Generator[T]) Binding { return Binding{gen: sourceOf(gen)} }

// Named binds a generator to the keys with the tag `gorm:"idgen:name"` and to
// the models whose IDGenerator method gives the name.
func Named[T any](name string, gen idtype.Generator[T]) Binding {
	return Binding{named: true, name: name, gen: sourceOf(gen)}
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
		case b.gen == nil:
			return fmt.Errorf("gormplugin: expected a generator in every For and Named, got nil: make one first, such as with idtype.NewSnowflakeGenerator")
		case !b.named && types[b.gen.mints()]:
			return fmt.Errorf("gormplugin: expected one generator for %v, got two: give one of them a name with Named", b.gen.mints())
		case !b.named:
			types[b.gen.mints()] = true
		case b.name == "", b.name == byType, b.name == optOut, strings.ContainsAny(b.name, "; \t\n\"`\\"):
			return fmt.Errorf("gormplugin: expected a generator's name that a tag can hold, got %q: choose letters and digits, and not IDGEN", b.name)
		case names[b.name]:
			return fmt.Errorf("gormplugin: expected one generator named %q, got two: rename one", b.name)
		default:
			names[b.name] = true
		}
	}
	return nil
}

// A source is a generator whose type is known to its methods only.
type source interface {
	mints() reflect.Type
	// filler is for key fields of a type; nil if that can't hold the IDs.
	filler(reflect.Type) filler
	// boxer is filler for a pointer to a struct around the ID, and for a
	// sql.Null of one.
	boxer(reflect.Type) filler
}

// A filler puts a generator's IDs into key fields of one type.
type filler interface {
	// one fills a field, which can be addressed, if it has no ID.
	one(ctx context.Context, field reflect.Value) (filled bool, err error)
	// rows fills the fields of k in the elements of a slice or an array.
	rows(ctx context.Context, k *key, rows reflect.Value) error
	// next gives an ID of its own, in a form that a map can have.
	next(ctx context.Context) (any, error)
}

type mint[T any] struct{ gen idtype.Generator[T] }

func sourceOf[T any](gen idtype.Generator[T]) source {
	if v := reflect.ValueOf(gen); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil // such as of a constructor that failed
	}
	return mint[T]{gen}
}

func (m mint[T]) mints() reflect.Type { return reflect.TypeFor[T]() }

func (m mint[T]) filler(t reflect.Type) filler {
	isZero := zero[T]()
	switch t {
	case reflect.TypeFor[T]():
		return newColumn(m.gen, isZero, func(p *T, id T) { *p = id })
	case reflect.TypeFor[*T]():
		// A new pointer, since the old one may be the caller's own.
		return newColumn(m.gen,
			func(p **T) bool { return *p == nil || isZero(*p) },
			func(p **T, id T) { *p = &id })
	case reflect.TypeFor[sql.Null[T]]():
		return newColumn(m.gen,
			func(p *sql.Null[T]) bool { return !p.Valid || isZero(&p.V) },
			func(p *sql.Null[T], id T) { *p = sql.Null[T]{V: id, Valid: true} })
	}
	return nil
}

func (m mint[T]) boxer(t reflect.Type) filler {
	var content reflect.Type
	switch {
	case t.Kind() == reflect.Pointer:
		content = t.Elem()
	case isSQLNull(t):
		content = t.Field(0).Type
	default:
		return nil
	}
	if !wraps(content, reflect.TypeFor[T]()) {
		return nil
	}
	return &box[T]{m.gen, content}
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

// A column fills fields of type S, which hold a T. It goes by the fields'
// addresses, since schema.Field.Set would allocate for every ID.
type column[T, S any] struct {
	gen     idtype.Generator[T]
	missing func(*S) bool
	put     func(*S, T)
	blocks  sync.Pool
}

// A block is a run of fields without an ID, and the IDs for them.
type block[T, S any] struct {
	fields [blockSize]*S
	ids    [blockSize]T
}

const blockSize = 256

func newColumn[T, S any](gen idtype.Generator[T], missing func(*S) bool, put func(*S, T)) *column[T, S] {
	return &column[T, S]{gen: gen, missing: missing, put: put,
		blocks: sync.Pool{New: func() any { return new(block[T, S]) }}}
}

func (c *column[T, S]) one(ctx context.Context, field reflect.Value) (bool, error) {
	p := field.Addr().Interface().(*S)
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

func (c *column[T, S]) rows(ctx context.Context, k *key, rows reflect.Value) error {
	b := c.blocks.Get().(*block[T, S])
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
		p := k.in(ctx, row).Addr().Interface().(*S)
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
func (c *column[T, S]) assign(ctx context.Context, b *block[T, S], n int) error {
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

func (c *column[T, S]) next(ctx context.Context) (any, error) { return c.mint(ctx) }

// mint is Next, except that the generator gets the context: it stops waiting
// when that is done, and may go by what is in it.
func (c *column[T, S]) mint(ctx context.Context) (T, error) {
	if ctx == context.Background() {
		return c.gen.Next()
	}
	b := c.blocks.Get().(*block[T, S])
	defer c.blocks.Put(b)
	err := mintAll(ctx, c.gen, b.ids[:1])
	return b.ids[0], err
}

// mintAll is Fill that doesn't trust a generator to say that it gave too few:
// the rest of the block would be IDs that were used before.
func mintAll[T any](ctx context.Context, gen idtype.Generator[T], ids []T) error {
	n, err := gen.Fill(ctx, ids)
	if err == nil && n != len(ids) {
		err = fmt.Errorf("expected %d IDs from Fill of %T, got %d and no error: mend the generator", len(ids), gen, n)
	}
	return err
}

// A box fills fields that are pointers to a content, or a sql.Null of one, by
// reflection. The content is a struct around the ID, such as a type of the
// caller's own.
type box[T any] struct {
	gen     idtype.Generator[T]
	content reflect.Type
}

func (b *box[T]) one(ctx context.Context, field reflect.Value) (bool, error) {
	if !isMissing(field) {
		return false, nil
	}
	err := b.put(ctx, []reflect.Value{field})
	return err == nil, err
}

func (b *box[T]) rows(ctx context.Context, k *key, rows reflect.Value) error {
	var fields []reflect.Value
	for i := range rows.Len() {
		row := element(rows, i)
		switch {
		case !row.IsValid():
		case !row.CanAddr():
			if err := k.refuse(ctx, row); err != nil {
				return err
			}
		default:
			if field := k.in(ctx, row); isMissing(field) {
				fields = append(fields, field)
			}
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return k.failed(b.put(ctx, fields))
}

func (b *box[T]) put(ctx context.Context, fields []reflect.Value) error {
	ids := make([]T, len(fields))
	if err := mintAll(ctx, b.gen, ids); err != nil {
		return err
	}
	for i, field := range fields {
		field.Set(holding(field.Type(), reflect.ValueOf(ids[i])))
	}
	return nil
}

func (b *box[T]) next(ctx context.Context) (any, error) {
	var ids [1]T
	err := mintAll(ctx, b.gen, ids[:])
	return holding(b.content, reflect.ValueOf(ids[0])).Interface(), err
}
