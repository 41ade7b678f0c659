package gormplugin

import (
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sortkey/sortkey/idtype"
)

// The models of a shop. The keys of Shopper are Snos with a metabyte.
type (
	Sale struct {
		ID        idtype.SnowflakeOf[Sale]
		ShopperID *idtype.SnoOf[Shopper]
		Shopper   *Shopper
		Note      string
	}
	Shopper struct {
		ID    idtype.SnoOf[Shopper]
		Sales []Sale
	}
	Ticket struct {
		ID   idtype.SnoOf[Ticket]
		Note string
	}
	// A SaleKey embeds a typed key.
	SaleKey struct{ idtype.SnowflakeOf[Sale] }
)

func (Shopper) IDPrefix() string { return "sho" }
func (Shopper) IDMeta() byte     { return 's' }

// A keyed is a model with a key of type F.
type keyed[F any] struct {
	ID   F
	Name string
}

// A columnID is an ID that all column types of the tests can hold.
type columnID interface {
	comparable
	fmt.Stringer
	IsZero() bool
	GormDataType() string
}

// A generator fills the typed keys of its type in each form in which it fills that type.
func TestForms(t *testing.T) {
	snowflake := func(n int64) idtype.Snowflake { return idtype.Snowflake(n) }
	si := func(n int64) idtype.SnowflakeSI { return idtype.SnowflakeSI(n) }
	uid := func(n int64) idtype.UID60 { return idtype.UID60(n) }
	spread := func(n int64) idtype.Spread64 { return idtype.Spread64(n) }
	sno := func(n int64) idtype.Sno { return idtype.Sno{9: byte(n)} }
	forms(t, snowflake, snowflake)
	forms(t, snowflake, func(n int64) idtype.SnowflakeOf[Sale] { return idtype.SnowflakeOf[Sale](n) })
	forms(t, snowflake, func(n int64) SaleKey { return SaleKey{idtype.SnowflakeOf[Sale](n)} })
	forms(t, si, func(n int64) idtype.SnowflakeSIOf[Sale] { return idtype.SnowflakeSIOf[Sale](n) })
	forms(t, uid, func(n int64) idtype.UID60Of[Sale] { return idtype.UID60Of[Sale](n) })
	forms(t, spread, func(n int64) idtype.Spread64Of[Sale] { return idtype.Spread64Of[Sale](n) })
	forms(t, sno, sno)
	forms(t, sno, func(n int64) idtype.SnoOf[Ticket] { return idtype.SnoOf[Ticket](sno(n)) })
	forms(t, sno, func(n int64) idtype.SnoOf[Shopper] { return idtype.SnoOf[Shopper](sno(n).WithMeta('s')) })
}

func forms[T any, V columnID](t *testing.T, generated func(int64) T, id func(int64) V) {
	t.Helper()
	ptr := func(n int64) *V { v := id(n); return &v }
	null := func(n int64) sql.Null[V] { return sql.Null[V]{V: id(n), Valid: true} }
	zero, nine := new(V), ptr(9)
	for name, c := range map[string]struct{ rows, want any }{
		"V":                   {&keyed[V]{}, &keyed[V]{ID: id(1)}},
		"V that is set":       {&keyed[V]{ID: id(9)}, &keyed[V]{ID: id(9)}},
		"slice":               {[]keyed[V]{{}, {ID: id(9)}, {}}, []keyed[V]{{ID: id(1)}, {ID: id(9)}, {ID: id(2)}}},
		"slice of pointers":   {[]*keyed[V]{{}, {ID: id(9)}, {}}, []*keyed[V]{{ID: id(1)}, {ID: id(9)}, {ID: id(2)}}},
		"*V":                  {&keyed[*V]{}, &keyed[*V]{ID: ptr(1)}},
		"*V to zero":          {[]keyed[*V]{{ID: zero}, {ID: nine}}, []keyed[*V]{{ID: ptr(1)}, {ID: nine}}},
		"Null[V]":             {&keyed[sql.Null[V]]{}, &keyed[sql.Null[V]]{ID: null(1)}},
		"Null[V] in a slice":  {[]keyed[sql.Null[V]]{{ID: null(9)}, {ID: sql.Null[V]{V: id(9)}}}, []keyed[sql.Null[V]]{{ID: null(9)}, {ID: null(1)}}},
		"text":                {[]keyed[text[V]]{{}, {ID: text[V]{id(9)}}}, []keyed[text[V]]{{ID: text[V]{id(1)}}, {ID: text[V]{id(9)}}}},
		"optional":            {&keyed[optional[V]]{}, &keyed[optional[V]]{ID: optional[V]{id(1)}}},
		"pointer to optional": {&keyed[*optional[V]]{}, &keyed[*optional[V]]{ID: &optional[V]{id(1)}}},
		"Null of text":        {&keyed[sql.Null[text[V]]]{}, &keyed[sql.Null[text[V]]]{ID: sql.Null[text[V]]{V: text[V]{id(1)}, Valid: true}}},
		"optional text":       {&keyed[optional[text[V]]]{}, &keyed[optional[text[V]]]{ID: optional[text[V]]{text[V]{id(1)}}}},
	} {
		db := open(t, For(&counter[T]{make: generated}))
		if err := db.Create(c.rows).Error; err != nil || !reflect.DeepEqual(c.rows, c.want) {
			t.Errorf("%T, %s: %+v, %v, want %+v", *zero, name, c.rows, err, c.want)
		}
	}
	if !(*zero).IsZero() {
		t.Errorf("%T: the caller's variable became %v, want zero", *zero, *zero)
	}
	// A map gets the field's type.
	for _, model := range []any{&keyed[V]{}, &keyed[*V]{}, &keyed[sql.Null[V]]{}} {
		rows := []map[string]any{{"ID": zero}, {"id": nine}, {"name": "x"}}
		want := []map[string]any{{"ID": id(1)}, {"id": nine}, {"name": "x", "id": id(2)}}
		db := open(t, For(&counter[T]{make: generated}))
		if err := db.Model(model).Create(rows).Error; err != nil || !reflect.DeepEqual(rows, want) {
			t.Errorf("maps for a %T: %v, %v, want %v", model, rows, err, want)
		}
	}
	rows := []map[string]any{{}}
	if err := open(t, For(&counter[T]{make: generated})).Model(&keyed[*text[V]]{}).Create(rows).Error; err != nil || rows[0]["id"] != any(text[V]{id(1)}) {
		t.Errorf("maps for a pointer to a text of %T: %v, %v", *zero, rows, err)
	}
}

// The generator of the type that is nearest to the key's fills it.
func TestNearestGenerator(t *testing.T) {
	typed := For(idtype.GeneratorOf[Sale](from(100)))
	own := For(&counter[SaleKey]{make: func(n int64) SaleKey { return SaleKey{idtype.SnowflakeOf[Sale](200 + n)} }})
	texts := For(&counter[text[idtype.SnowflakeOf[Sale]]]{make: func(n int64) text[idtype.SnowflakeOf[Sale]] {
		return text[idtype.SnowflakeOf[Sale]]{idtype.SnowflakeOf[Sale](300 + n)}
	}})
	base := For(snowflakes())
	for name, c := range map[string]struct {
		bindings []Binding
		row      any
		after    int64
	}{
		"typed":                       {[]Binding{base, texts, own, typed}, new(keyed[idtype.SnowflakeOf[Sale]]), 100},
		"typed, other order":          {[]Binding{typed, own, texts, base}, new(keyed[idtype.SnowflakeOf[Sale]]), 100},
		"base":                        {[]Binding{texts, own, base}, new(keyed[idtype.SnowflakeOf[Sale]]), 0},
		"another model's":             {[]Binding{typed, base}, new(keyed[idtype.SnowflakeOf[Ticket]]), 0},
		"pointer":                     {[]Binding{base, typed}, new(keyed[*idtype.SnowflakeOf[Sale]]), 100},
		"own":                         {[]Binding{base, typed, own}, new(keyed[SaleKey]), 200},
		"own without a generator":     {[]Binding{base, typed}, new(keyed[SaleKey]), 100},
		"own, base only":              {[]Binding{base}, new(keyed[SaleKey]), 0},
		"text":                        {[]Binding{base, typed, texts}, new(keyed[text[idtype.SnowflakeOf[Sale]]]), 300},
		"Null text without generator": {[]Binding{base, typed}, new(keyed[sql.Null[text[idtype.SnowflakeOf[Sale]]]]), 100},
	} {
		db := open(t, c.bindings...)
		err := db.Create(c.row).Error
		if id := content(reflect.ValueOf(c.row).Elem().Field(0)).Int(); err != nil || id-id%100 != c.after {
			t.Errorf("%s: %+v, %v, want an ID after %d", name, c.row, err, c.after)
		}
	}
	// A base type's generator doesn't fill another base type's keys.
	err := open(t, For(snos())).Create(new(keyed[idtype.UID60Of[Sale]])).Error
	want := "ID: no generator is bound to type idtype.UID60Of[gormplugin.Sale] or idtype.UID60; "
	if !errors.Is(err, ErrNoGenerator) || !strings.Contains(err.Error(), want) {
		t.Errorf("no generator: %v, want %s", err, want)
	}
	err = open(t, typed).Create(new(keyed[idtype.SnowflakeOf[Ticket]])).Error
	if !errors.Is(err, ErrNoGenerator) {
		t.Errorf("another model's generator: %v", err)
	}
	want = "where T is idtype.SnowflakeOf[gormplugin.Sale] or a struct that contains only that, got **idtype.SnowflakeOf[gormplugin.Sale]; "
	for _, b := range []Binding{base, typed} {
		err = open(t, b).Create(new(keyed[**idtype.SnowflakeOf[Sale]])).Error
		if !errors.Is(err, ErrNoGenerator) || !strings.Contains(err.Error(), want) {
			t.Errorf("unknown form: %v, want %s", err, want)
		}
	}
}

// An alien has the method of a typed key, but another memory layout.
type alien [16]byte

func (alien) Untyped() idtype.Sno  { return idtype.Sno{} }
func (alien) GormDataType() string { return "bytea" }

// The plugin doesn't fill a type only because it has a method of typed keys.
func TestOtherTypesWithUntyped(t *testing.T) {
	row := keyed[alien]{}
	if create(t, open(t, For(snos())), &row); row.ID != (alien{}) {
		t.Errorf("got %v, want zero", row.ID)
	}
}

type namedShopper struct {
	ID   idtype.SnoOf[Shopper] `gorm:"idgen:special"`
	Name string
}

// The plugin creates a Sno with the metabyte that the model declares, with any generator.
func TestMetabyte(t *testing.T) {
	db := open(t, For(snos()), For(idtype.SnoGeneratorOf[Ticket](snos())), Named("special", snos()))
	shoppers := make([]Shopper, 2*blockSize)
	create(t, db, &shoppers)
	seen := map[idtype.SnoOf[Shopper]]bool{}
	for _, s := range shoppers {
		seen[s.ID] = true
		if s.ID.Untyped().Meta() != 's' {
			t.Fatalf("got %v with metabyte %d, want %d", s.ID, s.ID.Untyped().Meta(), 's')
		}
	}
	if len(seen) != len(shoppers)/2 { // the counter of the tests has 256 values
		t.Errorf("%d distinct IDs, want %d", len(seen), len(shoppers)/2)
	}
	named, maps, ticket := namedShopper{}, []map[string]any{{}}, Ticket{}
	create(t, db, &named)
	create(t, db.Model(&Shopper{}), maps)
	create(t, db, &ticket)
	if id, _ := maps[0]["id"].(idtype.SnoOf[Shopper]); named.ID.Untyped().Meta() != 's' || id.Untyped().Meta() != 's' || ticket.ID.Untyped().Meta() != 0 {
		t.Errorf("metabytes of %v, %v, %v: want %d, %d, 0", named.ID, maps[0], ticket.ID, 's', 's')
	}
	// A foreign key has it too.
	sale := Sale{Shopper: &Shopper{}}
	create(t, open(t, For(snos()), For(snowflakes())), &sale)
	if sale.ShopperID == nil || sale.ShopperID.Untyped().Meta() != 's' || *sale.ShopperID != sale.Shopper.ID {
		t.Errorf("foreign key %v, want %v", sale.ShopperID, sale.Shopper.ID)
	}
}

// A Model is the base of many models. GORM ignores unexported embedded structs.
type Model[M any] struct {
	ID        idtype.SnowflakeOf[M] `gorm:"primaryKey"`
	CreatedAt time.Time
}

type (
	invoice struct {
		Model[invoice]
		BuyerID idtype.SnowflakeOf[buyer]
		Buyer   *buyer
	}
	buyer struct {
		*Model[buyer]
		Invoices []invoice
	}
)

// A generic struct with the key can be embedded in the models.
func TestGenericModel(t *testing.T) {
	db := open(t, For(snowflakes()))
	in := []invoice{{Buyer: &buyer{}}, {Buyer: &buyer{Model: &Model[buyer]{ID: 9}}}}
	create(t, db, &in)
	if in[0].ID != 1 || in[1].ID != 2 || in[0].BuyerID != 3 || in[0].Buyer.ID != 3 || in[1].BuyerID != 9 || in[0].CreatedAt.IsZero() {
		t.Errorf("got %+v with buyers %+v, %+v", in, in[0].Buyer.Model, in[1].Buyer.Model)
	}
	b := buyer{Invoices: []invoice{{}, {}}}
	if create(t, db, &b); b.Invoices[1].BuyerID != b.ID || b.ID == 0 {
		t.Errorf("got %+v of buyer %v", b.Invoices, b.ID)
	}
}
