package guide

import (
	"time"

	"github.com/sortkey/sortkey/idtype"
)

// NewOrderIDs returns the generator of one instance. No two instances may have
// the same worker number, which is 0 to 31.
func NewOrderIDs(worker int) (*idtype.SnowflakeGenerator, error) {
	return idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Worker: worker})
}

// An Order has a bigint key. In JSON its ID is "ord_779300444248735744".
type Order struct {
	ID         idtype.SnowflakeOf[Order]
	CustomerID idtype.SnoOf[Customer] // the ID of an order doesn't compile here
}

// IDPrefix returns the prefix of order IDs. It is optional.
func (Order) IDPrefix() string { return "ord" }

// OrderIDOf returns the ID in a text, such as a part of a URL. It accepts texts from before the model
// had a prefix, too.
func OrderIDOf(text string) (OrderID, error) {
	plain := Order{}.ID.Untyped()
	if plain.UnmarshalText([]byte(text)) == nil {
		return OrderID(plain), nil
	}
	return idtype.Parse[OrderID](text)
}

// A Customer has a uuid key.
type Customer struct {
	ID idtype.SnoOf[Customer]
}

// IDMeta returns the metabyte of all customer IDs. It is optional.
func (Customer) IDMeta() byte { return 'c' }

// NewOrder returns an order of the customer with the ID in a text, such as a part
// of a URL, and the time in the order's ID.
func NewOrder(gen *idtype.SnowflakeGenerator, customer string) (o Order, created time.Time, err error) {
	if o.CustomerID, err = idtype.Parse[idtype.SnoOf[Customer]](customer); err != nil {
		return o, created, err
	}
	o.ID, err = idtype.GeneratorOf[idtype.SnowflakeOf[Order]](gen).Next() // GORM's plugin calls gen itself
	return o, o.ID.Time(), err
}

// An Upload has a uuid key, which a client may create. In JSON its ID is
// "upload_01h455vb4pex5vsknk084sn02q".
type Upload struct {
	ID idtype.UUIDOf[Upload]
}

// IDPrefix returns the prefix of upload IDs. Without it, the text has 36 characters.
func (Upload) IDPrefix() string { return "upload" }

// NewUpload returns an upload with the ID that the client sent, or with a new one.
func NewUpload(gen *idtype.UUIDGenerator, sent string) (u Upload, err error) {
	if sent == "" {
		u.ID, err = idtype.GeneratorOf[idtype.UUIDOf[Upload]](gen).Next()
		return u, err
	}
	u.ID, err = idtype.Parse[idtype.UUIDOf[Upload]](sent)
	return u, err
}

// Declare custom layouts once, in a package that all programs import.
var (
	// EventLayout has 64 workers with 16,384 IDs per millisecond each, until 2304.
	EventLayout = idtype.SnowflakeLayout{
		Epoch:        time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		WorkerBits:   6,
		SequenceBits: 14,
	}
	// PageLayout has 8 machines with 1024 IDs per millisecond each, until 2060.
	PageLayout = idtype.SnowflakeSILayout{
		BaseClock:   time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		MachineBits: 3,
		IndexBits:   10,
	}
)

// NewEvents returns a generator with the layout of events.
func NewEvents(worker int) (*idtype.SnowflakeGenerator, error) {
	return idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Layout: EventLayout, Worker: worker})
}

// The metabyte of a key holds the kind of the document.
const (
	Invoice    byte = 'i'
	CreditNote byte = 'c'
)

// NewDocuments returns a generator per kind of document. A partition is two
// bytes, here a region and an instance. No two instances may have the same one.
func NewDocuments(region, instance byte) (invoices, creditNotes idtype.Generator[idtype.Sno], err error) {
	gen, err := idtype.NewSnoGenerator(idtype.SnoConfig{Partition: &idtype.SnoPartition{region, instance}})
	if err != nil {
		return nil, nil, err
	}
	return gen.WithMeta(Invoice), gen.WithMeta(CreditNote), nil
}

// UID60Collisions returns the expected number of collisions in d if each process
// generates perSecond IDs per second, at times independent of the other processes.
func UID60Collisions(processes int, perSecond float64, d time.Duration) float64 {
	pairs := float64(processes) * float64(processes-1) / 2
	perMillisecond := perSecond / 1000
	meetings := pairs * perMillisecond * perMillisecond * float64(d/time.Millisecond)
	return meetings / 256 / 512 // the same start of the sequence, and the same random bits
}

// A Line holds an ID of each type, for a client that runs JavaScript.
type Line struct {
	Snowflake   idtype.Snowflake
	SnowflakeSI idtype.SnowflakeSI
	UID60       idtype.UID60
	Spread64    idtype.Spread64
	Sno         idtype.Sno
	UUID        idtype.UUID
}
