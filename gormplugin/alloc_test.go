package gormplugin

import (
	"database/sql"
	"reflect"
	"testing"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/idtype"
)

// statement returns the database that the fill callback gets for a Create of rows. Rows
// is a pointer.
func statement(t testing.TB, rows any) (*planner, *gorm.DB) {
	db := open(t)
	tx := db.Session(&gorm.Session{Initialized: true})
	tx.Statement.Dest = rows
	tx.Statement.ReflectValue = reflect.ValueOf(rows).Elem()
	if err := tx.Statement.Parse(rows); err != nil {
		t.Fatal(err)
	}
	return &planner{bindings: []Binding{For(snowflakes()), For(snos())}}, tx
}

type benchRow = keyed[idtype.Snowflake]

func TestAllocations(t *testing.T) {
	for _, row := range []any{
		&keyed[idtype.Snowflake]{},
		&keyed[idtype.SnowflakeOf[Sale]]{},
		&keyed[optional[idtype.SnowflakeOf[Sale]]]{},
		&keyed[sql.Null[idtype.SnowflakeOf[Sale]]]{},
		&keyed[idtype.SnoOf[Shopper]]{},
	} {
		allocations(t, row)
	}
}

// allocations counts the allocations of filling the model of row, which is a pointer.
func allocations(t *testing.T, row any) {
	t.Helper()
	model := reflect.TypeOf(row).Elem()
	id := reflect.ValueOf(row).Elem().Field(0)
	p, tx := statement(t, row)
	if n := testing.AllocsPerRun(1000, func() { id.SetZero(); p.fill(tx) }); n != 0 || id.IsZero() {
		t.Errorf("%v: %v allocations, want 0", model, n)
	}
	rows := reflect.New(reflect.SliceOf(model))
	rows.Elem().Set(reflect.MakeSlice(rows.Elem().Type(), 1000, 1000))
	ptrs := reflect.New(reflect.SliceOf(reflect.PointerTo(model)))
	for i := range 1000 {
		ptrs.Elem().Set(reflect.Append(ptrs.Elem(), rows.Elem().Index(i).Addr()))
	}
	last := rows.Elem().Index(999).Field(0)
	p, tx = statement(t, rows.Interface())
	if n := testing.AllocsPerRun(100, func() { rows.Elem().Clear(); p.fill(tx) }); n >= 1 || last.IsZero() {
		t.Errorf("1000 %v: %v allocations, want 0; last ID %v", model, n, last)
	}
	p, tx = statement(t, ptrs.Interface())
	if n := testing.AllocsPerRun(100, func() { rows.Elem().Clear(); p.fill(tx) }); n >= 1 || last.IsZero() {
		t.Errorf("1000 pointers to %v: %v allocations, want 0; last ID %v", model, n, last)
	}
	p, tx = statement(t, row)
	tx.Statement.Context = t.Context()
	if n := testing.AllocsPerRun(1000, func() { id.SetZero(); p.fill(tx) }); n >= 1 || id.IsZero() {
		t.Errorf("%v with a context: %v allocations, want 0; ID %v", model, n, id)
	}
}

// Blocks in the pool don't refer to the rows of earlier statements.
func TestBlocksForgetRows(t *testing.T) {
	gen := snowflakes()
	gen.limit = 2*blockSize + 1
	fills := For(gen).filler(reflect.TypeFor[idtype.Snowflake](), reflect.TypeFor[idtype.Snowflake]())
	var made []*block
	fills.blocks.New = func() any {
		made = append(made, newBlock(gen, nil))
		return made[len(made)-1]
	}
	k := key{index: 0, fills: fills}
	for range 2 { // the generator has no IDs for the second round
		rows := make([]benchRow, blockSize+1)
		_, tx := statement(t, &rows)
		k.field = tx.Statement.Schema.PrioritizedPrimaryField
		if _, err := k.fill(tx.Statement); (err != nil) != (gen.n == gen.limit) {
			t.Errorf("error = %v", err)
		}
	}
	for _, b := range made {
		for i, field := range b.fields {
			if field.IsValid() {
				t.Fatalf("the block still refers to field %d", i)
			}
		}
	}
}

// A public ID costs no allocations either.
func TestPublicIDAllocations(t *testing.T) {
	rows := make([]publicPair, 1000)
	p, tx := statement(t, &rows)
	if n := testing.AllocsPerRun(100, func() { clear(rows); p.fill(tx) }); n >= 1 || rows[999].PublicID == 0 {
		t.Errorf("%v allocations, want 0; last row %v", n, rows[999])
	}
	p, tx = statement(t, &rows[0])
	if n := testing.AllocsPerRun(1000, func() { rows[0] = publicPair{}; p.fill(tx) }); n != 0 || rows[0].PublicID == 0 {
		t.Errorf("one row: %v allocations, want 0; %v", n, rows[0])
	}
}
