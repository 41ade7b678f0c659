package gormtest

import (
	"database/sql"
	"testing"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/sqltypes"
)

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

// foreignKey creates an owner with an item. It returns the stored foreign key of type F, or the
// error, and then no row is stored.
func foreignKey[F, K any](t *testing.T, g *database, id K) any {
	t.Helper()
	must(t, g.Exec("delete from owners").Error)
	must(t, g.Exec("delete from items").Error)
	if err := g.Create(&anyOwner[K, F]{ID: id, Items: []anyItem[F]{{ID: 1}}}).Error; err != nil {
		counts(t, g, "owners", 0)
		counts(t, g, "items", 0)
		return err
	}
	counts(t, g, "items", 1)
	var v any
	must(t, g.Raw("select owner_id from items").ScanRow(&v))
	return v
}

// GORM copies an owner's ID to foreign keys of other types. The plugin accepts the types of
// the same ID and of the same column. The unit tests of gormplugin have the types that it rejects.
func foreignKeyTypes(t *testing.T, g *database) {
	g.use(t, gormplugin.For(noIDs[plainID]{}), gormplugin.For(noIDs[plainUint]{}))
	// A column without a type stores values unchanged.
	must(t, g.Exec("create table owners (id primary key)").Error)
	must(t, g.Exec("create table items (id integer primary key, owner_id)").Error)
	id := idtype.Snowflake(779300444248735745)
	n, text := int64(id), id.String()
	typed := invoiceID(id)
	spread, uid := idtype.Must(idtype.ParseSpread64("cb54ecf2840a0015")), idtype.Must(idtype.ParseUID60("1234567892"))
	sno := idtype.Must(idtype.ParseSno("brpk4q72xwf2m63l"))
	payer := payerID(sno.WithMeta('p'))
	for name, c := range map[string]struct{ got, want any }{
		"int64":            {foreignKey[int64](t, g, id), n},
		"*int64":           {foreignKey[*int64](t, g, id), n},
		"uint64":           {foreignKey[uint64](t, g, id), n},
		"sql.NullInt64":    {foreignKey[sql.NullInt64](t, g, id), n},
		"sql.NullString":   {foreignKey[sql.NullString](t, g, id), text},
		"sql.Null[string]": {foreignKey[sql.Null[string]](t, g, id), text},
		"itself":           {foreignKey[idtype.Snowflake](t, g, id), n},
		"pointer":          {foreignKey[*idtype.Snowflake](t, g, id), n},
		"sql.Null":         {foreignKey[sql.Null[idtype.Snowflake]](t, g, id), n},
		"Optional":         {foreignKey[sqltypes.Optional[idtype.Snowflake]](t, g, id), n},
		"own type":         {foreignKey[orderID](t, g, id), n},

		"int64 of a pointer":          {foreignKey[int64](t, g, &id), n},
		"int64 of plainID":            {foreignKey[int64](t, g, plainID(n)), n},
		"sql.Null[string] of plainID": {foreignKey[sql.Null[string]](t, g, plainID(n)), text},
		"int64 of plainUint":          {foreignKey[int64](t, g, plainUint(n)), n},
		"string of its Text":          {foreignKey[string](t, g, sqltypes.TextOf(id)), text},
		"*string of its Text":         {foreignKey[*string](t, g, sqltypes.TextOf(id)), text},
		"[]byte of its Text":          {foreignKey[[]byte](t, g, sqltypes.TextOf(id)), []byte(text)},
		"string of UID60's Text":      {foreignKey[string](t, g, sqltypes.TextOf(uid)), uid.String()},
		"sql.Null of Spread64":        {foreignKey[sql.Null[string]](t, g, spread), "-3795148059624996843"},
		"string of Sno":               {foreignKey[string](t, g, sno), sno.UUID().String()},
		"*string of Sno":              {foreignKey[*string](t, g, sno), sno.UUID().String()},
		"uuid.UUID of Sno":            {foreignKey[uuid.UUID](t, g, sno), sno.UUID().String()},
		"string of SnoText":           {foreignKey[string](t, g, sqltypes.TextOf(sno)), sno.String()},
		"[]byte of SnoBytes":          {foreignKey[[]byte](t, g, sqltypes.SnoBytesOf(sno)), must1(t, sno.MarshalBinary)},

		"int64 of a typed key":            {foreignKey[int64](t, g, typed), n},
		"base of a typed key":             {foreignKey[idtype.Snowflake](t, g, typed), n},
		"*base of a typed key":            {foreignKey[*idtype.Snowflake](t, g, typed), n},
		"sql.Null[string] of a typed key": {foreignKey[sql.Null[string]](t, g, typed), text},
		"string of a typed Text":          {foreignKey[string](t, g, sqltypes.TextOf(typed)), text},
		"string of a typed Sno":           {foreignKey[string](t, g, payer), payer.UUID().String()},
		"base of a typed Sno":             {foreignKey[idtype.Sno](t, g, payer), payer.UUID().String()},

		// The plugin ignores keys without a generator.
		"int32 of int64":  {foreignKey[int32](t, g, int64(7)), int64(7)},
		"string of int64": {foreignKey[string](t, g, int64(7)), "7"},
	} {
		equal(t, name, c.got, c.want)
	}
	refused, _ := foreignKey[uuid.UUID](t, g, id).(error)
	fails(t, "uuid.UUID", refused, gorm.ErrUnsupportedRelation, "")
	negative, _ := foreignKey[uint64](t, g, spread).(error)
	fails(t, "uint64 of Spread64", negative, nil, "uint64 values with high bit set")
}

// Models with the two remedies for foreign keys of type string.
type (
	plainWriter struct{ ID idtype.Snowflake }
	goodWriter  struct {
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

func (plainWriter) TableName() string { return "writers" }
func (goodWriter) TableName() string  { return "writers" }
func (goodText) TableName() string    { return "texts" }
func (goodNote) TableName() string    { return "notes" }
func (textView) TableName() string    { return "texts" }

// GORM would store U+FFFD for an integer ID in a string foreign key, so the plugin rejects it. Two
// remedies keep a text column or a string in a model that is only read.
func stringForeignKeys(t *testing.T, g *database) {
	g.real.DisableForeignKeyConstraintWhenMigrating = true
	g.use(t, gormplugin.For(must1(t, idtest.Snowflake.NewGenerator)))
	must(t, g.AutoMigrate(&goodWriter{}, &goodText{}, &goodNote{}))
	w := goodWriter{Texts: make([]goodText, 2), Notes: make([]goodNote, 1)}
	must(t, g.Create(&w).Error)
	must(t, g.Model(&w).Association("Notes").Append(&goodNote{}))
	counts(t, g, "writers", 1)
	equal(t, "foreign keys", []any{w.Texts[1].WriterID, w.Notes[1].OwnerID}, []any{w.ID, sql.Null[string]{V: w.ID.String(), Valid: true}})
	plucks(t, "owners of the notes", g.Model(&goodNote{}), "owner_id", w.ID.String(), w.ID.String())
	for name, q := range map[string]*database{"Preload": g.Preload("Writer"), "Joins": g.Joins("Writer")} {
		finds(t, name, q.Order("texts.id"), textView{w.Texts[0].ID.String(), w.ID.String(), plainWriter{w.ID}}, textView{w.Texts[1].ID.String(), w.ID.String(), plainWriter{w.ID}})
	}
}
