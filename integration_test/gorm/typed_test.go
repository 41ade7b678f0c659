package gorm

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

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
		Number     string `gorm:"unique"`
		Parts      []invoicePart
	}
	invoicePart struct {
		InvoiceID invoiceID                       `gorm:"primaryKey"`
		ID        idtype.SnowflakeOf[invoicePart] `gorm:"primaryKey;idgen"`
	}
	// The foreign key of a reminder is of the wrong model.
	reminder struct {
		*Base[reminder]
		InvoiceID idtype.SnowflakeOf[reminder]
		Invoice   *invoice
	}
)

func (invoice) IDPrefix() string { return "inv" }
func (payer) IDPrefix() string   { return "pay" }
func (payer) IDMeta() byte       { return 'p' }

// Typed keys, with a prefix and a metabyte, work with and without the codec and with
// prepared statements.
func TestTypedKeys(t *testing.T) {
	onClients(t, wideClients, func(t *testing.T, g *gorm.DB) {
		testTypedKeys(t, g.Session(&gorm.Session{PrepareStmt: true, NowFunc: func() time.Time { return time.Now().UTC().Truncate(time.Second) }}))
	})
}

func testTypedKeys(t *testing.T, g *gorm.DB) {
	withGenerators(t, g)
	models := []any{&payer{}, &invoice{}, &invoicePart{}}
	must(t, g.AutoMigrate(models...))
	checkColumns(t, g, map[string]map[string]string{
		"payers":        {"id": "uuid"},
		"invoices":      {"id": "bigint", "payer_id": "uuid", "replaces_id": "bigint", "parent_id": "bigint", "reference": "text"},
		"invoice_parts": {"id": "bigint", "invoice_id": "bigint"},
	})
	if got := alterations(t, g, models...); len(got) > 0 {
		t.Errorf("the second AutoMigrate issued %q", got)
	}

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
		var got string
		if err := g.Raw(query).Scan(&got).Error; err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", query, got, err, want)
		}
	}

	// The other tests find rows by typed keys in all forms.
	c := &ada.Invoices[2]
	soon, others := time.Now().Add(-time.Hour), g.Where("invoices.id <> ?", c.ID).Session(&gorm.Session{})
	for name, tx := range map[string]*gorm.DB{
		"IN, base":       g.Where("id IN ?", []idtype.Snowflake{a.ID.Untyped(), b.ID.Untyped()}),
		"IN, Snos":       others.Where("payer_id IN ?", []payerID{ada.ID}),
		"struct, Or":     g.Where(&invoice{Base: Base[invoice]{ID: a.ID}}).Or(&invoice{ReplacesID: &a.ID}),
		"Text":           g.Where("id = ?", &a.ID).Or("reference = ?", sqltypes.TextOf(a.ID)),
		"base cursor":    g.Scopes(gormplugin.PageAfter("id", a.ID.Untyped()-1)).Limit(2),
		"window":         others.Scopes(gormplugin.CreatedBetweenIn(idtype.DefaultSnowflakeLayout(), "", soon, time.Time{})),
		"window of Snos": others.Scopes(gormplugin.CreatedBetweenIn(idtype.SnoLayout{}, "payer_id", soon, time.Time{})),
		"join":           others.Joins("JOIN payers ON payers.id = invoices.payer_id AND payers.id = ?", ada.ID),
	} {
		var found []invoice
		err := tx.Find(&found).Error
		var ids []invoiceID
		for _, i := range found {
			ids = append(ids, i.ID)
		}
		if slices.Sort(ids); err != nil || !slices.Equal(ids, []invoiceID{a.ID, b.ID}) {
			t.Errorf("by %s: %v, %v, want %v and %v", name, ids, err, a.ID, b.ID)
		}
	}

	var found payer
	byID := func(g *gorm.DB) *gorm.DB { return g.Order("id") }
	must(t, g.Preload("Invoices", byID).Preload("Invoices.Parts", byID).First(&found, ada.ID).Error)
	for i := range found.Invoices { // times have another location
		found.Invoices[i].CreatedAt = ada.Invoices[i].CreatedAt
	}
	if !reflect.DeepEqual(found, ada) {
		t.Errorf("Preload: got %+v, want %+v", found, ada)
	}
	var one invoice
	must(t, g.Joins("Payer").Joins("Replaces").First(&one, b.ID).Error)
	if one.ID != b.ID || one.Payer == nil || one.Payer.ID != ada.ID || one.Replaces == nil || one.Replaces.ID != a.ID || one.Reference != b.Reference || one.ParentID != b.ParentID {
		t.Errorf("Joins: got %+v", one)
	}
	text, err := json.Marshal(one)
	must(t, err)
	for _, want := range []string{
		fmt.Sprintf(`"ID":"inv_%d"`, b.ID.Int64()), fmt.Sprintf(`"ReplacesID":"inv_%d"`, a.ID.Int64()), fmt.Sprintf(`"Reference":"inv_%d"`, a.ID.Int64()),
		`"PayerID":"pay_` + ada.ID.Untyped().String() + `"`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("JSON %s: want %s in it", text, want)
		}
	}
	// An upsert gets the ID of the stored row.
	again := invoice{PayerID: ada.ID, Number: a.Number}
	must(t, g.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "number"}}, DoUpdates: clause.AssignmentColumns([]string{"payer_id"})}).Create(&again).Error)
	skipped := invoice{PayerID: ada.ID, Number: a.Number}
	must(t, g.Clauses(clause.OnConflict{DoNothing: true}).Create(&skipped).Error)
	if again.ID != a.ID || skipped.ID != 0 {
		t.Errorf("upserts: IDs %v and %v, want %v and zero", again.ID, skipped.ID, a.ID)
	}
	maps := []map[string]any{{"name": "m"}, {"name": "n"}}
	must(t, g.Model(&payer{}).Create(maps).Error)
	ids := []payerID{ada.ID, maps[0]["id"].(payerID), maps[1]["id"].(payerID)}
	var all []payer
	must(t, g.Find(&all, ids).Error)
	for _, p := range all {
		if len(all) != 3 || p.ID.Untyped().Meta() != 'p' {
			t.Errorf("payer %v among %d has the metabyte %d, want %d", p.ID, len(all), p.ID.Untyped().Meta(), 'p')
		}
	}
	// Delete removes only the named rows.
	if tx := g.Delete(&payer{}, ids[1:]); tx.Error != nil || tx.RowsAffected != int64(len(ids)-1) {
		t.Errorf("deleted %d payers, %v, want %d", tx.RowsAffected, tx.Error, len(ids)-1)
	}
	refuseTyped(t, g, ada)
}

func refuseTyped(t *testing.T, g *gorm.DB, ada payer) {
	a := ada.Invoices[0]
	for i, c := range []struct {
		err  error
		is   error
		want string
	}{
		{g.Create(&reminder{Invoice: &a}).Error, gorm.ErrUnsupportedRelation, "gormplugin: check relation reminder.Invoice: reminder.InvoiceID has type idtype.SnowflakeOf[gorm.reminder], " +
			"but it refers to invoice.Base.ID of type idtype.SnowflakeOf[gorm.invoice]; declare reminder.InvoiceID as idtype.SnowflakeOf[gorm.invoice]"},
		{g.Scopes(gormplugin.PageAfter("", idtype.SnowflakeOf[reminder](7))).Find(&[]invoice{}).Error, gorm.ErrInvalidField,
			"want an ID of type idtype.SnowflakeOf[gorm.invoice], got idtype.SnowflakeOf[gorm.reminder]"},
		{g.Scopes(gormplugin.CreatedBetweenIn(idtype.UID60Layout{}, "", time.Now(), time.Time{})).Find(&[]invoice{}).Error, gorm.ErrInvalidField, "got idtype.UID60"},
		{g.Create(&payer{ID: payerID(ada.ID.Untyped().WithMeta('q'))}).Error, idtype.ErrRange, "metabyte"},
	} {
		if !errors.Is(c.err, c.is) || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%d: %v, want %v with %q", i, c.err, c.is, c.want)
		}
	}
	// A row with another metabyte is not a payer's.
	must(t, g.Exec("insert into payers (id, name) values (?, 'x')", ada.ID.Untyped().WithMeta('q')).Error)
	if err := g.Find(&[]payer{}).Error; !errors.Is(err, idtype.ErrRange) {
		t.Errorf("a row with another metabyte: %v, want %v", err, idtype.ErrRange)
	}
}
