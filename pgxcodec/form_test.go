package pgxcodec

import (
	"database/sql"
	"reflect"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/sqltypes"
)

type order struct{ _ [512]int64 }

// The Postgres type of a form follows from its leaf and its shape.
func TestForms(t *testing.T) {
	for typ, want := range map[reflect.Type]string{
		reflect.TypeFor[idtype.SnowflakeOf[order]]():                               "int8",
		reflect.TypeFor[**idtype.SnoOf[order]]():                                   "uuid",
		reflect.TypeFor[*sql.Null[idtype.Sno]]():                                   "uuid",
		reflect.TypeFor[sqltypes.Optional[sqltypes.Text[idtype.UID60Of[order]]]](): "text",
		reflect.TypeFor[[]*idtype.UID60Of[order]]():                                "_int8",
		reflect.TypeFor[*[]sql.Null[sqltypes.SnoBytes]]():                          "_bytea",
		reflect.TypeFor[struct{ idtype.Spread64Of[order] }]():                      "int8",
		reflect.TypeFor[pgtype.Range[idtype.UID60Of[order]]]():                     "int8range",
		reflect.TypeFor[pgtype.Range[idtype.Sno]]():                                "",
		reflect.TypeFor[pgtype.Multirange[pgtype.Range[idtype.UID60Of[order]]]]():  "int8multirange",
		reflect.TypeFor[pgtype.Array[idtype.SnoOf[order]]]():                       "_uuid",
		reflect.TypeFor[sql.Null[*idtype.Sno]]():                                   "",
		reflect.TypeFor[[][]idtype.Sno]():                                          "",
		reflect.TypeFor[[][]*idtype.Sno]():                                         "",
		reflect.TypeFor[pgtype.FlatArray[*idtype.Sno]]():                           "",
		reflect.TypeFor[struct {
			idtype.Snowflake
			Name string
		}](): "",
	} {
		f := formOf(typ)
		if f == nil || f.pgType() != want || f != formOf(typ) {
			t.Errorf("the form of %v is %+v, want a %q", typ, f, want)
		}
	}
	for _, typ := range []reflect.Type{nil, reflect.TypeFor[int64](), reflect.TypeFor[[10]byte](), reflect.TypeFor[order](), reflect.TypeFor[idtype.SnoPartition](), reflect.TypeFor[error](),
		reflect.TypeFor[map[string]idtype.Sno](), reflect.TypeFor[pgtype.Range[int64]]()} {
		if f := formOf(typ); f != nil {
			t.Errorf("%v is a form of %v", typ, f.leaf.typ)
		}
	}
}

// The cache returns each type's plan to goroutines that use it at the same time.
func TestScanPlans(t *testing.T) {
	var plans scanPlans
	type entry struct {
		target any
		plan   pgtype.ScanPlan
	}
	var entries []entry
	for n := range 50 {
		typ := reflect.ArrayOf(n, reflect.TypeFor[idtype.Sno]())
		entries = append(entries, entry{reflect.New(typ).Interface(), &scanOne{}})
	}
	entries = append(entries, entry{new(int), nil})
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 3 {
				for _, e := range entries {
					got := plans.again(1, e.target)
					if got == nil {
						got = plans.plan(1, e.target, func(*form, int16) pgtype.ScanPlan { return e.plan })
					}
					if got != e.plan {
						t.Errorf("the plan for %T is %v, want %v", e.target, got, e.plan)
					}
				}
			}
		})
	}
	group.Wait()
	for _, e := range entries {
		got := plans.plan(1, e.target, func(f *form, _ int16) pgtype.ScanPlan { t.Errorf("%T isn't cached", e.target); return nil })
		if again := plans.again(1, e.target); got != e.plan || again != e.plan {
			t.Errorf("%T: %v and again %v, want %v", e.target, got, again, e.plan)
		}
		if other := plans.again(0, e.target); other != nil {
			t.Errorf("%T in the other format: %v", e.target, other)
		}
	}
}
