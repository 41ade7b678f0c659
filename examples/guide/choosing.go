package guide

import (
	"context"
	"database/sql"
	"math"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/migrations"
)

// Layouts of one's own are said once, in a package that all programs import.
var (
	// EventLayout has 64 workers with 16,384 IDs a millisecond each, until 2304.
	EventLayout = idtype.SnowflakeLayout{
		Epoch:        time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		WorkerBits:   6,
		SequenceBits: 14,
	}
	// PageLayout has 8 machines with 1024 IDs a millisecond each, until 2060.
	PageLayout = idtype.SnowflakeSILayout{
		BaseClock:   time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		MachineBits: 3,
		IndexBits:   10,
	}
)

// MigrateLayouts has the functions of the database know them.
func MigrateLayouts(ctx context.Context, db *sql.DB) error {
	return migrations.Up(ctx, db, migrations.Config{Snowflake: EventLayout, SnowflakeSI: PageLayout})
}

// NewEvents mints with one of them.
func NewEvents(worker int) (*idtype.SnowflakeGenerator, error) {
	return idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Layout: EventLayout, Worker: worker})
}

// Ends gives the last instants of both.
func Ends() (events, pages time.Time) {
	return EventLayout.Time(idtype.MaxSnowflake), PageLayout.Time(idtype.MaxSnowflakeSI)
}

// Kinds of documents, in the metabytes of their keys.
const (
	Invoice    byte = 'i'
	CreditNote byte = 'c'
)

// NewDocuments mints keys of all kinds. Partitions are two bytes, here a
// region and a process, and no two processes may have the same.
func NewDocuments(region, process byte) (invoices, creditNotes idtype.Generator[idtype.Sno], err error) {
	gen, err := idtype.NewSnoGenerator(idtype.SnoConfig{Partition: &idtype.SnoPartition{region, process}})
	if err != nil {
		return nil, nil, err
	}
	return gen.WithMeta(Invoice), gen.WithMeta(CreditNote), nil
}

// UID60Collisions is how many collisions to expect in d, if each process mints so
// many IDs a second, at times that don't depend on those of the others.
func UID60Collisions(processes int, perSecond float64, d time.Duration) float64 {
	pairs := float64(processes) * float64(processes-1) / 2
	perMillisecond := perSecond / 1000
	meetings := pairs * perMillisecond * perMillisecond * float64(d/time.Millisecond)
	return meetings / 256 / 512 // the sequences began alike, and the random bits are the same
}

// RandomCollision is the chance that n random numbers of so many bits aren't all
// different: 122 bits for a UUIDv4.
func RandomCollision(n float64, bits int) float64 {
	return -math.Expm1(-n * (n - 1) / 2 / math.Exp2(float64(bits)))
}

// A Line is what a browser gets.
type Line struct {
	Snowflake   idtype.Snowflake
	SnowflakeSI idtype.SnowflakeSI
	UID60       idtype.UID60
	Spread64    idtype.Spread64
	Sno         idtype.Sno
}
