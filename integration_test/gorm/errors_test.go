package gorm

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/sqlitetest"
	"github.com/sortkey/sortkey/sqltypes"
)

// empty checks that the tables of the graph and the table things have no rows.
func (k of[T]) empty(t *testing.T, g *gorm.DB, what string) {
	t.Helper()
	for _, table := range []string{"things", "companies", "people", "passports", "orders", "pictures", "details", "tags", "clubs", "memberships", "person_tags", "friendships"} {
		var n int
		must(t, g.Raw("select count(*) from "+table).Scan(&n).Error)
		if n != 0 {
			t.Errorf("%s: %s has %d rows, want none", what, table, n)
			must(t, g.Exec("delete from "+table).Error)
		}
	}
}

// failing returns GORM with a generator that fails after these IDs.
func (k peopleOf[T, N]) failing(t *testing.T, g *gorm.DB, ids ...T) *gorm.DB {
	t.Helper()
	g = with(t, g, gormplugin.For(scripted(ids...)))
	must(t, g.SetupJoinTable(new(N), "Clubs", &membership[T]{}))
	return g
}

// If the generator fails, Create returns its error and inserts nothing, at any row and at any
// association.
func (k peopleOf[T, N]) generatorFails(t *testing.T, g *gorm.DB) {
	ids := k.ids(t, 19)
	ids, more := ids[:18], ids[18:]
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, errUsedUp) || !strings.Contains(err.Error(), ".ID: generate an ID: ") {
			t.Errorf("%s: got %v, want %v", what, err, errUsedUp)
		}
	}
	for name, c := range map[string]struct {
		first  int // the IDs before the error
		create func(g *gorm.DB) error
	}{
		"struct":            {0, func(g *gorm.DB) error { return g.Create(&thing[T]{}).Error }},
		"slice":             {2, func(g *gorm.DB) error { return g.Create(make([]thing[T], 3)).Error }},
		"slice of pointers": {2, func(g *gorm.DB) error { return g.Create([]*thing[T]{{}, {}, {}}).Error }},
		"array":             {2, func(g *gorm.DB) error { return g.Create(&[3]thing[T]{}).Error }},
		"map":               {0, func(g *gorm.DB) error { return g.Model(&thing[T]{}).Create(map[string]any{"name": "x"}).Error }},
		"maps": {2, func(g *gorm.DB) error {
			return g.Model(&thing[T]{}).Create([]map[string]any{{"name": "x"}, {"name": "y"}, {"name": "z"}}).Error
		}},
		"batches": {5, func(g *gorm.DB) error { return g.CreateInBatches(make([]thing[T], 6), 2).Error }},
		"size of batch": {5, func(g *gorm.DB) error {
			return g.Session(&gorm.Session{CreateBatchSize: 2}).Create(make([]thing[T], 6)).Error
		}},
		"Save":          {0, func(g *gorm.DB) error { return g.Save(&thing[T]{}).Error }},
		"FirstOrCreate": {0, func(g *gorm.DB) error { return g.FirstOrCreate(&thing[T]{}, "name = 'x'").Error }},
		"a graph in a transaction": {9, func(g *gorm.DB) error {
			return g.Transaction(func(g *gorm.DB) error { return g.Create(k.newGraph()).Error })
		}},
	} {
		failing := k.failing(t, g, ids[:c.first]...)
		refused(name, c.create(failing))
		k.empty(t, g, name)
	}
	// The generator fails at each of the graph's 18 IDs.
	for n := range 18 {
		name := fmt.Sprintf("a graph with %d IDs", n)
		refused(name, k.failing(t, g, ids[:n]...).Create(k.newGraph()).Error)
		k.empty(t, g, name)
	}
	must(t, k.failing(t, g, ids...).Create(k.newGraph()).Error)

	// Associations of an existing row.
	ada := k.named("Ada")
	must(t, g.Create(ada).Error)
	var before, after int
	count := "select (select count(*) from orders) + (select count(*) from clubs) + (select count(*) from memberships)"
	must(t, g.Raw(count).Scan(&before).Error)
	refused("Append", k.failing(t, g, more...).Model(ada).Association("Orders").Append(&order[T]{Item: "a"}, &order[T]{Item: "b"}))
	// The club gets the ID, so its membership has none.
	refused("Append with a join table", k.failing(t, g, more...).Model(ada).Association("Clubs").Append(&club[T]{Name: "c"}))
	must(t, g.Raw(count).Scan(&after).Error)
	if before != after {
		t.Errorf("Append: got %d rows, want %d as before", after, before)
	}

	// The caller's transaction can continue, because no statement failed in it.
	kept := thing[T]{ID: ids[0], Name: "kept"}
	must(t, k.failing(t, g).Transaction(func(tx *gorm.DB) error {
		refused("in a transaction", tx.Create(&thing[T]{Name: "lost"}).Error)
		return tx.Create(&kept).Error
	}))
	k.agree(t, g, []thing[T]{kept})
}

// A waiting generator returns the IDs of its script. Then it waits until the context is done.
type waiting[T any] struct {
	script[T]
	begun chan struct{}
}

func (w *waiting[T]) Fill(ctx context.Context, dst []T) (int, error) {
	n, err := w.script.Fill(ctx, dst)
	if err == nil {
		return n, nil
	}
	close(w.begun)
	<-ctx.Done()
	return n, ctx.Err()
}

// If the context is canceled during the wait for an ID, Create inserts nothing.
func (k peopleOf[T, N]) cancelled(t *testing.T, g *gorm.DB) {
	ids := k.ids(t, 4)
	for name, c := range map[string]struct {
		first  int // the IDs before the wait
		create func(g *gorm.DB) error
	}{
		"struct": {0, func(g *gorm.DB) error { return g.Create(&thing[T]{}).Error }},
		"slice":  {0, func(g *gorm.DB) error { return g.Create(make([]thing[T], 3)).Error }},
		"map":    {0, func(g *gorm.DB) error { return g.Model(&thing[T]{}).Create(map[string]any{"name": "x"}).Error }},
		"maps": {1, func(g *gorm.DB) error {
			return g.Model(&thing[T]{}).Create([]map[string]any{{"name": "x"}, {"name": "y"}}).Error
		}},
		"batches": {4, func(g *gorm.DB) error { return g.CreateInBatches(make([]thing[T], 6), 2).Error }},
		"graph":   {4, func(g *gorm.DB) error { return g.Create(k.newGraph()).Error }},
	} {
		gen := &waiting[T]{script[T]{ids[:c.first]}, make(chan struct{})}
		other := with(t, g, gormplugin.For(gen))
		must(t, other.SetupJoinTable(new(N), "Clubs", &membership[T]{}))
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer cancel()
			select {
			case <-gen.begun:
			case <-ctx.Done():
			}
		}()
		err := c.create(other.WithContext(ctx))
		// If database/sql has also ended the transaction, GORM wraps only the error
		// of the transaction.
		if errors.Is(err, sql.ErrTxDone) && name == "graph" && strings.Contains(err.Error(), context.Canceled.Error()) {
			err = errors.Join(err, context.Canceled)
		}
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), ".ID: generate an ID: ") {
			t.Errorf("%s: got %v, want %v", name, err, context.Canceled)
		}
		k.empty(t, g, name)
	}
}

type anyOwner[K, F any] struct {
	ID    K            `gorm:"primaryKey"`
	Items []anyItem[F] `gorm:"foreignKey:OwnerID"`
}

type anyItem[F any] struct {
	ID      int64 `gorm:"autoIncrement:false"`
	OwnerID F
}

func (anyOwner[K, F]) TableName() string { return "owners" }
func (anyItem[F]) TableName() string     { return "items" }

// The caller's own ID types, which have a generator.
type (
	plainID   int64
	plainUint uint64
)

type plainText string

// A stored is the value in an item's foreign key, or the error of Create.
type stored struct {
	value any
	err   error
}

// foreignKey creates an owner with an item, and returns the stored foreign key of type F.
func foreignKey[F, K any](t *testing.T, g *gorm.DB, id K) stored {
	t.Helper()
	must(t, g.Exec("delete from owners").Error)
	must(t, g.Exec("delete from items").Error)
	err := g.Create(&anyOwner[K, F]{ID: id, Items: []anyItem[F]{{ID: 1}}}).Error
	var values []any
	rows, queryErr := g.Raw("select owner_id from items").Rows()
	must(t, queryErr)
	defer rows.Close()
	for rows.Next() {
		var v any
		must(t, rows.Scan(&v))
		values = append(values, v)
	}
	must(t, rows.Err())
	if err != nil {
		var n int
		must(t, g.Raw("select count(*) from owners").Scan(&n).Error)
		if len(values) > 0 || n > 0 {
			t.Errorf("%T for %T: got %v, but stored %d owners and the keys %v", *new(F), id, err, n, values)
		}
		return stored{nil, err}
	}
	if len(values) != 1 {
		t.Fatalf("%T for %T: got %d items, want 1", *new(F), id, len(values))
	}
	return stored{values[0], nil}
}

// GORM copies an owner's ID to foreign keys of other types. The plugin accepts the types of
// the same ID and of the same column, and rejects the others: in most of them GORM would
// store another value without an error.
func TestForeignKeyTypes(t *testing.T) {
	g := sqlitetest.Open(t)
	must(t, g.Use(gormplugin.New(gormplugin.For(scripted[plainID]()), gormplugin.For(scripted[plainUint]()))))
	// A column without a type stores values unchanged.
	must(t, g.Exec("create table owners (id primary key)").Error)
	must(t, g.Exec("create table items (id integer primary key, owner_id)").Error)
	id := idtype.Snowflake(779300444248735745)
	n, text := int64(id), id.String()
	null := sql.Null[idtype.Snowflake]{V: id, Valid: true}
	own := orderID{id}
	si := idtype.SnowflakeSI(1781273964118017)
	spread := idtype.MustParseSpread64("cb54ecf2840a0015")
	sno := idtype.MustParseSno("brpk4q72xwf2m63l")
	// IDs whose texts could be decimal numbers.
	uid, digits := idtype.MustParseUID60("1234567892"), idtype.MustParseSpread64("9234567890120123")
	refused := gorm.ErrUnsupportedRelation
	for name, c := range map[string]struct {
		got  stored
		want any // a value, refused, or an error with this text
	}{
		"string":           {foreignKey[string](t, g, id), refused},
		"a type of string": {foreignKey[plainText](t, g, id), refused},
		"*string":          {foreignKey[*string](t, g, id), refused},
		"int32":            {foreignKey[int32](t, g, id), refused},
		"*int16":           {foreignKey[*int16](t, g, id), refused},
		"uint32":           {foreignKey[uint32](t, g, id), refused},
		"float64":          {foreignKey[float64](t, g, id), refused},
		"*float32":         {foreignKey[*float32](t, g, id), refused},
		"bool":             {foreignKey[bool](t, g, id), refused},
		"sql.NullFloat64":  {foreignKey[sql.NullFloat64](t, g, id), refused},
		"int64":            {foreignKey[int64](t, g, id), n},
		"*int64":           {foreignKey[*int64](t, g, id), n},
		"uint64":           {foreignKey[uint64](t, g, id), n},
		"sql.NullInt64":    {foreignKey[sql.NullInt64](t, g, id), n},
		"sql.NullString":   {foreignKey[sql.NullString](t, g, id), text},
		"sql.Null[string]": {foreignKey[sql.Null[string]](t, g, id), text},
		"itself":           {foreignKey[idtype.Snowflake](t, g, id), n},
		"pointer":          {foreignKey[*idtype.Snowflake](t, g, id), n},
		"sql.Null":         {foreignKey[sql.Null[idtype.Snowflake]](t, g, id), n},
		"Optional":         {foreignKey[sqltypes.OptionalSnowflake](t, g, id), n},
		"own type":         {foreignKey[orderID](t, g, id), n},
		"[]byte":           {foreignKey[[]byte](t, g, id), refused},
		"*bool":            {foreignKey[*bool](t, g, id), refused},
		"sql.NullInt32":    {foreignKey[sql.NullInt32](t, g, id), refused},
		"time.Time":        {foreignKey[time.Time](t, g, id), refused},
		"uuid.UUID":        {foreignKey[uuid.UUID](t, g, id), refused},
		"Sno":              {foreignKey[idtype.Sno](t, g, id), refused},
		"Text":             {foreignKey[sqltypes.SnowflakeText](t, g, id), refused},

		"string of a pointer":               {foreignKey[string](t, g, &id), refused},
		"int32 of a pointer":                {foreignKey[int32](t, g, &id), refused},
		"int64 of a pointer":                {foreignKey[int64](t, g, &id), n},
		"string of a Null":                  {foreignKey[string](t, g, null), refused},
		"*string of a Null":                 {foreignKey[*string](t, g, null), refused},
		"string of an Optional":             {foreignKey[string](t, g, sqltypes.OptionalOf(id)), refused},
		"*string of an Optional":            {foreignKey[*string](t, g, sqltypes.OptionalOf(id)), refused},
		"string of an own type":             {foreignKey[string](t, g, own), refused},
		"*string of an own type":            {foreignKey[*string](t, g, own), refused},
		"int32 of a pointer to an own type": {foreignKey[int32](t, g, &own), refused},
		"string of plainID":                 {foreignKey[string](t, g, plainID(n)), refused},
		"sql.Null[string] of plainID":       {foreignKey[sql.Null[string]](t, g, plainID(n)), text},
		"int64 of plainID":                  {foreignKey[int64](t, g, plainID(n)), n},
		"int32 of plainID":                  {foreignKey[int32](t, g, plainID(n)), refused},
		"string of plainUint":               {foreignKey[string](t, g, plainUint(n)), refused},
		"int64 of plainUint":                {foreignKey[int64](t, g, plainUint(n)), n},

		"string of its Text":       {foreignKey[string](t, g, sqltypes.TextOf(id)), text},
		"*string of its Text":      {foreignKey[*string](t, g, sqltypes.TextOf(id)), text},
		"[]byte of its Text":       {foreignKey[[]byte](t, g, sqltypes.TextOf(id)), []byte(text)},
		"Snowflake of its Text":    {foreignKey[idtype.Snowflake](t, g, sqltypes.TextOf(id)), refused},
		"int32 of its Text":        {foreignKey[int32](t, g, sqltypes.TextOf(id)), refused},
		"bool of its Text":         {foreignKey[bool](t, g, sqltypes.TextOf(id)), refused},
		"UID60 of its Text":        {foreignKey[idtype.UID60](t, g, sqltypes.TextOf(uid)), refused},
		"*UID60 of its Text":       {foreignKey[*idtype.UID60](t, g, sqltypes.TextOf(uid)), refused},
		"string of UID60's Text":   {foreignKey[string](t, g, sqltypes.TextOf(uid)), uid.String()},
		"string of UID60":          {foreignKey[string](t, g, uid), refused},
		"Spread64 of its Text":     {foreignKey[idtype.Spread64](t, g, sqltypes.TextOf(digits)), refused},
		"string of Spread64":       {foreignKey[string](t, g, spread), refused},
		"uint64 of Spread64":       {foreignKey[uint64](t, g, spread), errors.New("uint64 values with high bit set")},
		"sql.Null of Spread64":     {foreignKey[sql.Null[string]](t, g, spread), "-3795148059624996843"},
		"float64 of SnowflakeSI":   {foreignKey[float64](t, g, si), refused},
		"float32 of SnowflakeSI":   {foreignKey[float32](t, g, si), refused},
		"string of SnowflakeSI":    {foreignKey[string](t, g, si), refused},
		"string of Sno":            {foreignKey[string](t, g, sno), sno.UUID().String()},
		"*string of Sno":           {foreignKey[*string](t, g, sno), sno.UUID().String()},
		"uuid.UUID of Sno":         {foreignKey[uuid.UUID](t, g, sno), sno.UUID().String()},
		"bool of Sno":              {foreignKey[bool](t, g, sno), refused},
		"int64 of Sno":             {foreignKey[int64](t, g, sno), refused},
		"SnoText of Sno":           {foreignKey[sqltypes.SnoText](t, g, sno), refused},
		"SnoBytes of Sno":          {foreignKey[sqltypes.SnoBytes](t, g, sno), refused},
		"Sno of SnoText":           {foreignKey[idtype.Sno](t, g, sqltypes.TextOf(sno)), refused},
		"string of SnoText":        {foreignKey[string](t, g, sqltypes.TextOf(sno)), sno.String()},
		"string of SnoBytes":       {foreignKey[string](t, g, sqltypes.SnoBytesOf(sno)), refused},
		"sql.Null of SnoBytes":     {foreignKey[sql.Null[string]](t, g, sqltypes.SnoBytesOf(sno)), refused},
		"[16]byte of SnoBytes":     {foreignKey[[16]byte](t, g, sqltypes.SnoBytesOf(sno)), refused},
		"[]byte of SnoBytes":       {foreignKey[[]byte](t, g, sqltypes.SnoBytesOf(sno)), must1(t, sno.MarshalBinary)},
		"Optional Sno of SnoBytes": {foreignKey[sqltypes.OptionalSno](t, g, sqltypes.SnoBytesOf(sno)), refused},

		"int64 of a typed key":            {foreignKey[int64](t, g, invoiceID(id)), n},
		"base of a typed key":             {foreignKey[idtype.Snowflake](t, g, invoiceID(id)), n},
		"*base of a typed key":            {foreignKey[*idtype.Snowflake](t, g, invoiceID(id)), n},
		"typed key of its Text":           {foreignKey[invoiceID](t, g, sqltypes.TextOf(invoiceID(id))), refused},
		"sql.Null[string] of a typed key": {foreignKey[sql.Null[string]](t, g, invoiceID(id)), text},
		"string of a typed key":           {foreignKey[string](t, g, invoiceID(id)), refused},
		"int32 of a typed key":            {foreignKey[int32](t, g, invoiceID(id)), refused},
		"string of a typed Text":          {foreignKey[string](t, g, sqltypes.TextOf(invoiceID(id))), text},
		"string of a typed UID60":         {foreignKey[string](t, g, idtype.UID60Of[invoice](uid)), refused},
		"string of a typed Sno":           {foreignKey[string](t, g, payerID(sno.WithMeta('p'))), sno.WithMeta('p').UUID().String()},
		"base of a typed Sno":             {foreignKey[idtype.Sno](t, g, payerID(sno.WithMeta('p'))), sno.WithMeta('p').UUID().String()},
		"bool of a typed Sno":             {foreignKey[bool](t, g, payerID(sno.WithMeta('p'))), refused},
		"another model's":                 {foreignKey[idtype.SnowflakeOf[payer]](t, g, invoiceID(id)), refused},
		"another model's Sno":             {foreignKey[*idtype.SnoOf[invoice]](t, g, payerID(sno.WithMeta('p'))), refused},

		// The plugin ignores keys without a generator.
		"int32 of int64":  {foreignKey[int32](t, g, int64(7)), int64(7)},
		"string of int64": {foreignKey[string](t, g, int64(7)), "7"},
	} {
		switch want := c.want.(type) {
		case error:
			if err := c.got.err; errors.Is(err, refused) != (want == refused) || err == nil || !strings.Contains(err.Error(), want.Error()) {
				t.Errorf("%s: stored %#v, %v, want %q", name, c.got.value, err, want)
			}
		default:
			if c.got.err != nil || !reflect.DeepEqual(c.got.value, want) {
				t.Errorf("%s: stored %#v, %v, want %#v", name, c.got.value, c.got.err, want)
			}
		}
	}
}

// Models with foreign keys of type string, and models with the two remedies.
type (
	writer struct {
		ID    idtype.Snowflake
		Texts []writerText `gorm:"foreignKey:WriterID"`
		Notes []writerNote `gorm:"polymorphic:Owner"`
	}
	writerText struct {
		ID       idtype.Snowflake
		WriterID string
	}
	writerNote struct {
		ID        idtype.Snowflake
		OwnerID   string
		OwnerType string
	}
	writtenText struct {
		ID       idtype.Snowflake
		WriterID *string
		Writer   *plainWriter
	}
	plainWriter struct{ ID idtype.Snowflake }

	goodWriter struct {
		ID    idtype.Snowflake
		Texts []goodText `gorm:"foreignKey:WriterID"`
		Notes []goodNote `gorm:"polymorphic:Owner;polymorphicValue:writers"`
	}
	goodText struct {
		ID       idtype.Snowflake
		WriterID idtype.Snowflake
	}
	goodNote struct {
		ID        idtype.Snowflake
		OwnerID   sql.Null[string]
		OwnerType string
	}
	// A textView is only read.
	textView struct {
		ID       string
		WriterID string
		Writer   plainWriter
	}
)

func (writer) TableName() string      { return "writers" }
func (writerText) TableName() string  { return "texts" }
func (writerNote) TableName() string  { return "notes" }
func (writtenText) TableName() string { return "texts" }
func (plainWriter) TableName() string { return "writers" }
func (goodWriter) TableName() string  { return "writers" }
func (goodText) TableName() string    { return "texts" }
func (goodNote) TableName() string    { return "notes" }
func (textView) TableName() string    { return "texts" }

// GORM would store U+FFFD for an integer ID in a string foreign key. The first Create or Update
// of the model fails and stores nothing.
func TestStringForeignKeys(t *testing.T) {
	onClients(t, narrowClients, func(t *testing.T, g *gorm.DB) {
		g.DisableForeignKeyConstraintWhenMigrating = true
		must(t, g.Use(gormplugin.New(gormplugin.For(must1(t, idtest.Snowflake.NewGenerator)))))
		must(t, g.AutoMigrate(&goodWriter{}, &goodText{}, &goodNote{}))
		counts := func() (n [3]int) {
			for i, table := range []string{"writers", "texts", "notes"} {
				must(t, g.Raw("select count(*) from "+table).Scan(&n[i]).Error)
			}
			return n
		}
		for name, err := range map[string]error{
			"has-many":    g.Create(&writer{Texts: []writerText{{}}}).Error,
			"polymorphic": g.Create(&writer{Notes: []writerNote{{}}}).Error,
			"belongs-to":  g.Create(&writtenText{Writer: &plainWriter{}}).Error,
			"Append":      g.Model(&writer{ID: 1}).Association("Texts").Append(&writerText{}),
		} {
			if !errors.Is(err, gorm.ErrUnsupportedRelation) {
				t.Errorf("%s: %v, want %v", name, err, gorm.ErrUnsupportedRelation)
			}
		}
		if n := counts(); n != [3]int{} {
			t.Errorf("the tables have %v rows, want none", n)
		}

		// The two remedies, and a model for reading the same tables.
		w := goodWriter{Texts: make([]goodText, 2), Notes: make([]goodNote, 1)}
		must(t, g.Create(&w).Error)
		must(t, g.Model(&w).Association("Notes").Append(&goodNote{}))
		if n := counts(); n != [3]int{1, 2, 2} || w.Texts[1].WriterID != w.ID || w.Notes[1].OwnerID != (sql.Null[string]{V: w.ID.String(), Valid: true}) {
			t.Errorf("created %+v, %v", w, n)
		}
		var owners []string
		must(t, g.Model(&goodNote{}).Distinct("owner_id").Pluck("owner_id", &owners).Error)
		if len(owners) != 1 || owners[0] != w.ID.String() {
			t.Errorf("owners of the notes = %q, want %q", owners, w.ID)
		}
		for name, q := range map[string]*gorm.DB{"Preload": g.Preload("Writer"), "Joins": g.Joins("Writer")} {
			var views []textView
			if err := q.Find(&views).Error; err != nil || len(views) != 2 || views[0].Writer.ID != w.ID || views[1].WriterID != w.ID.String() {
				t.Errorf("%s: %+v, %v", name, views, err)
			}
		}
		must(t, g.Delete(&writer{ID: w.ID}).Error)
	})
}
