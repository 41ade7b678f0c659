package gormtest

import (
	"fmt"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/sqltypes"
)

// A Base is the base of models. GORM ignores unexported embedded structs.
type Base[M any] struct {
	ID        idtype.SnowflakeOf[M] `gorm:"primaryKey"`
	CreatedAt time.Time
}

type (
	payerID   = idtype.SnoOf[payer]
	invoiceID = idtype.SnowflakeOf[invoice]

	payer struct {
		ID       payerID
		Name     string
		Invoices []invoice
	}
	invoice struct {
		Base[invoice]
		PayerID    payerID
		Payer      *payer
		ReplacesID *invoiceID
		Replaces   *invoice
		ParentID   sqltypes.Optional[invoiceID]
		Reference  sqltypes.Text[invoiceID]
		Number     string
		Parts      []invoicePart
	}
	invoicePart struct {
		InvoiceID invoiceID                       `gorm:"primaryKey"`
		ID        idtype.SnowflakeOf[invoicePart] `gorm:"primaryKey;idgen"`
	}
)

func (invoice) IDPrefix() string { return "inv" }
func (payer) IDPrefix() string   { return "pay" }
func (payer) IDMeta() byte       { return 'p' }

// Typed keys, with a prefix and a metabyte, work with and without the codec and with
// prepared statements.
func typedKeys(t *testing.T, g *database) {
	g = g.Session(&gorm.Session{PrepareStmt: true, NowFunc: func() time.Time { return time.Now().UTC().Truncate(time.Second) }})
	g.use(t, bindings(t)...)
	models := []any{&payer{}, &invoice{}, &invoicePart{}}
	must(t, g.AutoMigrate(models...))
	checkColumns(t, g, map[string]map[string]string{
		"payers":        {"id": "uuid"},
		"invoices":      {"id": "bigint", "payer_id": "uuid", "replaces_id": "bigint", "parent_id": "bigint", "reference": "text"},
		"invoice_parts": {"id": "bigint", "invoice_id": "bigint"},
	})
	equal(t, "the second AutoMigrate", alterations(t, g, models...), nil)

	// Create and store.
	ada := payer{Name: "Ada", Invoices: []invoice{{Number: "1", Parts: make([]invoicePart, 2)}, {Number: "2", Parts: []invoicePart{}}, {Number: "3", Parts: []invoicePart{}}}}
	must(t, g.Create(&ada).Error)
	a, b := &ada.Invoices[0], &ada.Invoices[1]
	b.ReplacesID, b.ParentID, b.Reference = &a.ID, sqltypes.OptionalOf(a.ID), sqltypes.TextOf(a.ID)
	must(t, g.Save(b).Error)
	if ada.ID.Untyped().Meta() != 'p' || a.ID.IsZero() || a.ID >= b.ID || a.PayerID != ada.ID || a.Parts[0].InvoiceID != a.ID || a.Parts[0].ID.IsZero() || a.Parts[0].ID == a.Parts[1].ID {
		t.Errorf("created %+v", ada)
	}
	for query, want := range map[string]string{
		"select cast(id as text) from payers":                               ada.ID.UUID().String(),
		"select cast(min(id) as text) from invoices":                        fmt.Sprint(a.ID.Int64()),
		"select cast(replaces_id as text) from invoices where number = '2'": fmt.Sprint(a.ID.Int64()),
		"select reference from invoices where parent_id is not null":        fmt.Sprint(a.ID.Int64()),
	} {
		plucks(t, query, g.Raw(query), "", want)
	}

	// The other tests find rows by typed keys in all forms.
	c := &ada.Invoices[2]
	soon, others := time.Now().Add(-time.Hour), g.Where("invoices.id <> ?", c.ID).Session(&gorm.Session{})
	for name, tx := range map[string]*database{
		"IN, base":       g.Where("id IN ?", []idtype.Snowflake{a.ID.Untyped(), b.ID.Untyped()}),
		"IN, Snos":       others.Where("payer_id IN ?", []payerID{ada.ID}),
		"struct, Or":     g.Where(&invoice{Base: Base[invoice]{ID: a.ID}}).Or(&invoice{ReplacesID: &a.ID}),
		"Text":           g.Where("id = ?", &a.ID).Or("reference = ?", sqltypes.TextOf(a.ID)),
		"base cursor":    g.Scopes(gormplugin.PageAfter("id", a.ID.Untyped()-1)).Limit(2),
		"window":         others.Scopes(gormplugin.CreatedBetweenIn(idtype.DefaultSnowflakeLayout(), "", soon, time.Time{})),
		"window of Snos": others.Scopes(gormplugin.CreatedBetweenIn(idtype.SnoLayout{}, "payer_id", soon, time.Time{})),
		"join":           others.Joins("JOIN payers ON payers.id = invoices.payer_id AND payers.id = ?", ada.ID),
	} {
		plucks(t, "by "+name, tx.Model(&invoice{}).Order("invoices.id"), "invoices.id", a.ID, b.ID)
	}

	var found payer
	byID := func(g *database) *database { return g.Order("id") }
	must(t, g.Preload("Invoices", byID).Preload("Invoices.Parts", byID).First(&found, ada.ID).Error)
	for i := range found.Invoices { // times have another location
		found.Invoices[i].CreatedAt = ada.Invoices[i].CreatedAt
	}
	equal(t, "Preload", found, ada)
	var one invoice
	must(t, g.Joins("Payer").Joins("Replaces").First(&one, b.ID).Error)
	equal(t, "Joins", []any{one.ID, one.Payer.ID, one.Replaces.ID, one.Reference, one.ParentID}, []any{b.ID, ada.ID, a.ID, b.Reference, b.ParentID})
	fails(t, "another metabyte", g.Create(&payer{ID: payerID(ada.ID.Untyped().WithMeta('q'))}).Error, idtype.ErrRange, "metabyte")
	// A row with another metabyte is not a payer's.
	must(t, g.Exec("insert into payers (id, name) values (?, 'x')", ada.ID.Untyped().WithMeta('q')).Error)
	fails(t, "a row with another metabyte", g.Find(&[]payer{}).Error, idtype.ErrRange, "")
}
