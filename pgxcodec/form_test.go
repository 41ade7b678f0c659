package pgxcodec

import (
	"reflect"
	"sync"
	"testing"
	"unsafe"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/idtype"
)

type order struct{ _ [512]int64 }

// The codec depends on the memory layout of interface values.
func TestHeader(t *testing.T) {
	if unsafe.Sizeof(header{}) != unsafe.Sizeof(any(nil)) {
		t.Fatal("an any isn't two words")
	}
	type ID = idtype.SnowflakeOf[order]
	id, sno := ID(7), idtype.SnoOf[order]{9: 7}
	if p, ok := in[int64](id, idOf(reflect.TypeFor[ID]())); !ok || *p != 7 {
		t.Errorf("in a %T: %v, %v", id, *p, ok)
	}
	if p, ok := in[ID](&id, idOf(reflect.TypeFor[*ID]())); !ok || p != &id {
		t.Errorf("in a %T: %v, %v", &id, p, ok)
	}
	if _, ok := in[int64](int64(7), idOf(reflect.TypeFor[ID]())); ok {
		t.Error("an int64 is taken for an ID")
	}
	for value, want := range map[any]any{id: idtype.Snowflake(7), sno: idtype.Sno{9: 7}, &id: (*idtype.Snowflake)(&id)} {
		if got := formOf(reflect.TypeOf(value)).view(value); got != want {
			t.Errorf("%T %v viewed as %T %v, want %T", value, value, got, got, want)
		}
	}
}

// A form and its base form have the same memory.
func TestForms(t *testing.T) {
	for typ, same := range map[reflect.Type]reflect.Type{
		reflect.TypeFor[idtype.SnowflakeOf[order]]():                              reflect.TypeFor[idtype.Snowflake](),
		reflect.TypeFor[**idtype.SnoOf[order]]():                                  reflect.TypeFor[**idtype.Sno](),
		reflect.TypeFor[[]*idtype.UID60Of[order]]():                               reflect.TypeFor[[]*idtype.UID60](),
		reflect.TypeFor[struct{ idtype.Spread64Of[order] }]():                     reflect.TypeFor[idtype.Spread64](),
		reflect.TypeFor[pgtype.Multirange[pgtype.Range[idtype.UID60Of[order]]]](): reflect.TypeFor[pgtype.Multirange[pgtype.Range[idtype.UID60]]](),
		reflect.TypeFor[pgtype.Array[idtype.SnoOf[order]]]():                      reflect.TypeFor[pgtype.Array[idtype.Sno]](),
	} {
		f := formOf(typ)
		if f == nil || f.same != same || typ.Size() != same.Size() || f != formOf(typ) {
			t.Errorf("the form of %v is %+v, want %v", typ, f, same)
		}
	}
	for _, typ := range []reflect.Type{nil, reflect.TypeFor[int64](), reflect.TypeFor[[10]byte](), reflect.TypeFor[order](), reflect.TypeFor[idtype.SnoPartition](), reflect.TypeFor[error](),
		reflect.TypeFor[map[string]idtype.Sno](), reflect.TypeFor[pgtype.Range[int64]]()} {
		if f := formOf(typ); f != nil {
			t.Errorf("%v is a form of %v", typ, f.leaf.typ)
		}
	}
}

// The cache returns each type's plan, for more types than it has slots, to goroutines that
// use it at the same time.
func TestScanPlans(t *testing.T) {
	var plans scanPlans
	type entry struct {
		target any
		plan   pgtype.ScanPlan
	}
	var entries []entry
	for n := range 500 {
		typ := reflect.ArrayOf(n, reflect.TypeFor[idtype.Sno]())
		entries = append(entries, entry{reflect.New(typ).Interface(), &scanBigint{invalid: uint64(n)}})
	}
	entries = append(entries, entry{new(int), nil})
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 3 {
				for _, e := range entries {
					got := plans.get(idIn(e.target))
					switch {
					case got == nil:
						plans.put(idIn(e.target), e.plan)
					case got.plan != e.plan:
						t.Errorf("the plan for %T is %v, want %v", e.target, got.plan, e.plan)
					}
				}
			}
		})
	}
	group.Wait()
	for _, e := range entries {
		if got := plans.get(idIn(e.target)); got == nil || got.plan != e.plan {
			t.Fatalf("%T isn't cached", e.target)
		}
	}
}
