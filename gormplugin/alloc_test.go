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
	allocations[idtype.Snowflake](t)
	allocations[idtype.SnowflakeOf[Sale]](t)
	allocations[optional[idtype.SnowflakeOf[Sale]]](t)
	allocations[sql.Null[idtype.SnowflakeOf[Sale]]](t)
	allocations[idtype.SnoOf[Shopper]](t)
}

func allocations[F comparable](t *testing.T) {
	t.Helper()
	var none F
	row := keyed[F]{}
	p, tx := statement(t, &row)
	if n := testing.AllocsPerRun(1000, func() { row.ID = none; p.fill(tx) }); n != 0 || row.ID == none {
		t.Errorf("%T: %v allocations, want 0", row, n)
	}
	rows := make([]keyed[F], 1000)
	p, tx = statement(t, &rows)
	if n := testing.AllocsPerRun(100, func() { clear(rows); p.fill(tx) }); n >= 1 || rows[999].ID == none {
		t.Errorf("1000 %T: %v allocations, want 0; last ID %v", row, n, rows[999].ID)
	}
	ptrs := make([]*keyed[F], 1000)
	for i := range ptrs {
		ptrs[i] = &rows[i]
	}
	p, tx = statement(t, &ptrs)
	if n := testing.AllocsPerRun(100, func() { clear(rows); p.fill(tx) }); n >= 1 || rows[999].ID == none {
		t.Errorf("1000 pointers to %T: %v allocations, want 0; last ID %v", row, n, rows[999].ID)
	}
	p, tx = statement(t, &row)
	tx.Statement.Context = t.Context()
	if n := testing.AllocsPerRun(1000, func() { row.ID = none; p.fill(tx) }); n >= 1 || row.ID == none {
		t.Errorf("%T with a context: %v allocations, want 0; ID %v", row, n, row.ID)
	}
}

// Blocks in the pool don't refer to the rows of earlier statements.
func TestBlocksForgetRows(t *testing.T) {
	gen := snowflakes()
	gen.limit = 2*blockSize + 1
	fills := For(gen).filler(nil, reflect.TypeFor[idtype.Snowflake]())
	var made []*block
	fills.blocks.New = func() any {
		made = append(made, newBlock(gen, modelMeta{}))
		return made[len(made)-1]
	}
	k := key{index: 0, fills: fills}
	for range 2 { // the generator has no IDs for the second round
		rows := make([]benchRow, blockSize+1)
		_, tx := statement(t, &rows)
		k.field = tx.Statement.Schema.PrioritizedPrimaryField
		if err := k.fill(tx.Statement, new(span)); (err != nil) != (gen.n == gen.limit) {
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
