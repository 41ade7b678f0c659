package idtype_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sortkey/sortkey/idtype"
)

// Each process has its own generator with its own node numbers.
func Example() {
	gen, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Datacenter: 2, Worker: 3})
	if err != nil {
		panic(err)
	}
	id, err := gen.Next()
	if err != nil {
		panic(err)
	}
	parts, err := idtype.DefaultSnowflakeLayout().Parts(id)
	if err != nil {
		panic(err)
	}
	fmt.Println(parts.Datacenter, parts.Worker)
	// Output: 2 3
}

func ExampleSnowflakeGenerator_Fill() {
	gen, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{})
	if err != nil {
		panic(err)
	}
	ids := make([]idtype.Snowflake, 10_000)
	n, err := gen.Fill(context.Background(), ids)
	fmt.Println(n, err, ids[0] < ids[9999])
	// Output: 10000 <nil> true
}

// A time window is a range of keys, so a query uses the index of the primary key.
func ExampleSnowflakeLayout_Range() {
	day := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	lo, hi, err := idtype.DefaultSnowflakeLayout().Range(day, day.AddDate(0, 0, 1))
	if err != nil {
		panic(err)
	}
	fmt.Printf("WHERE id >= %d AND id < %d\n", lo, hi)
	// Output: WHERE id >= 779133911040000000 AND id < 779496298905600000
}

func ExampleParseSno() {
	id, err := idtype.ParseSno("brpk4q72xwf2m63l")
	fmt.Println(id, id.UUID(), err)

	_, err = idtype.ParseSno("BRPK4Q72XWF2M63L")
	var bad *idtype.ParseError
	fmt.Println(errors.Is(err, idtype.ErrSyntax), errors.As(err, &bad), bad.Pos)
	// Output:
	// brpk4q72xwf2m63l 6272706b-3471-3732-7877-66326d36336c <nil>
	// true true 0
}

// The metabyte can count the versions of a record. The rest of the ID stays the same.
func ExampleSno_WithMeta() {
	v1 := idtype.Must(idtype.ParseSno("brpk4q72xwf2m63l")).WithMeta(1)
	v2 := v1.WithMeta(v1.Meta() + 1)
	fmt.Println(v1, v2, v1.Time().Equal(v2.Time()))
	// Output: brpk4q7228f2m63l brpk4q722cf2m63l true
}

// A program stores a snapshot before it ends. The next run continues from it without
// duplicates, even if the clock was set back in between.
func ExampleSnoGenerator_Snapshot() {
	partition := idtype.SnoPartition{'A', 10}
	gen, err := idtype.NewSnoGenerator(idtype.SnoConfig{Partition: &partition})
	if err != nil {
		panic(err)
	}
	last, err := gen.Next()
	if err != nil {
		panic(err)
	}
	stored, err := json.Marshal(gen.Snapshot())
	if err != nil {
		panic(err)
	}

	var snapshot idtype.SnoSnapshot
	if err := json.Unmarshal(stored, &snapshot); err != nil {
		panic(err)
	}
	restored, err := idtype.NewSnoGenerator(idtype.SnoConfig{Snapshot: &snapshot})
	if err != nil {
		panic(err)
	}
	next, err := restored.Next()
	fmt.Println(next.Compare(last) > 0, next.Partition() == partition, err)
	// Output: true true <nil>
}

// A migration gives existing rows IDs with their creation times. It starts with the oldest
// row, and runs before the first call of Next.
func ExampleSnoGenerator_At() {
	gen, err := idtype.NewSnoGenerator(idtype.SnoConfig{Partition: &idtype.SnoPartition{'A', 10}})
	if err != nil {
		panic(err)
	}
	for _, created := range []string{"2019-03-01T09:30:00Z", "2019-03-01T09:30:00Z", "2024-11-21T12:00:00.123Z"} {
		t, err := time.Parse(time.RFC3339, created)
		if err != nil {
			panic(err)
		}
		id, err := gen.At(1, t)
		fmt.Println(id, id.Time(), err)
	}
	// Output:
	// 68mdac92272im222 2019-03-01 09:30:00 +0000 UTC <nil>
	// 68mdac92272im223 2019-03-01 09:30:00 +0000 UTC <nil>
	// 8srtbgru272im222 2024-11-21 12:00:00.12 +0000 UTC <nil>
}

// Only a SnowflakeSI, which is exact in JavaScript, is a bare number.
func Example_json() {
	doc, err := json.Marshal(struct {
		Order idtype.Snowflake
		Event idtype.SnowflakeSI
		User  idtype.Sno
		Short idtype.UID60
		None  idtype.Snowflake
	}{
		Order: idtype.Must(idtype.ParseSnowflake("132271570944274432")),
		Event: idtype.Must(idtype.ParseSnowflakeSI("1783298472345855")),
		User:  idtype.Must(idtype.ParseSno("brpk4q72xwf2m63l")),
		Short: idtype.Must(idtype.ParseUID60("xinaS8QBh")),
	})
	fmt.Println(string(doc), err)
	// Output: {"Order":"132271570944274432","Event":1783298472345855,"User":"brpk4q72xwf2m63l","Short":"xinaS8QBh","None":null} <nil>
}

// noon is a stopped clock, so that the examples always create the same IDs. Programs don't
// set Clock.
func noon() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) }

func ExampleNewSnowflakeGenerator() {
	gen, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{
		Datacenter: 2,
		Worker:     3,
		Options:    idtype.Options{Clock: noon},
	})
	if err != nil {
		panic(err)
	}
	for range 2 {
		id, err := gen.Next()
		fmt.Println(id, err)
	}

	_, err = idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Worker: 32})
	fmt.Println(err, errors.Is(err, idtype.ErrNode))
	// Output:
	// 779677492838674432 <nil>
	// 779677492838674433 <nil>
	// idtype: Snowflake worker: 32 is out of range; want 0 to 31 true
}

// A layout sets the epoch and the widths. Use the same layout to create IDs and to read
// their parts.
func ExampleNewSnowflakeGenerator_layout() {
	layout := idtype.SnowflakeLayout{
		Epoch:          time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		DatacenterBits: 0, WorkerBits: 8, SequenceBits: 14,
	}
	gen, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Layout: layout, Worker: 200, Options: idtype.Options{Clock: noon}})
	if err != nil {
		panic(err)
	}
	id, err := gen.Next()
	if err != nil {
		panic(err)
	}
	parts, err := layout.Parts(id)
	fmt.Println(id, parts.Time, parts.Worker, err)
	// Output: 117957250256076800 2026-11-22 12:00:00 +0000 UTC 200 <nil>
}

// Choose the base clock once, before the first ID, and never change it.
func ExampleNewSnowflakeSIGenerator() {
	layout := idtype.SnowflakeSILayout{BaseClock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	gen, err := idtype.NewSnowflakeSIGenerator(idtype.SnowflakeSIConfig{Layout: layout, Machine: 7, Options: idtype.Options{Clock: noon}})
	if err != nil {
		panic(err)
	}
	id, err := gen.Next()
	fmt.Println(id, err)
	// Output: 230385254401792 <nil>
}

// A UID60 has no node number. The example sets Random only to make its output repeatable.
func ExampleNewUID60Generator() {
	gen, err := idtype.NewUID60Generator(idtype.UID60Config{
		Random: rand.NewChaCha8([32]byte{1}), // omit it in programs
		Clock:  noon,
	})
	if err != nil {
		panic(err)
	}
	for range 2 {
		id, err := gen.Next()
		fmt.Println(id, err)
	}
	// Output:
	// W8EAkRN4AN <nil>
	// Y1EAkRN4AN <nil>
}

// The last two digits are the generator number, 10, and the cluster number, 1.
func ExampleNewSpread64Generator() {
	gen, err := idtype.NewSpread64Generator(idtype.Spread64Config{Generator: 10, Cluster: 1, Options: idtype.Options{Clock: noon}})
	if err != nil {
		panic(err)
	}
	for range 2 {
		id, err := gen.Next()
		fmt.Println(id, err)
	}
	// Output:
	// 004504c0458000a1 <nil>
	// 004504c0458100a1 <nil>
}

// Generators with the same numbers share one sequence, so they create no duplicates.
func ExampleLocalSpread64Generator() {
	a, err := idtype.LocalSpread64Generator(63, 15)
	if err != nil {
		panic(err)
	}
	b, err := idtype.LocalSpread64Generator(63, 15)
	if err != nil {
		panic(err)
	}
	seen := map[idtype.Spread64]bool{}
	for range 50 {
		seen[idtype.Must(a.Next())] = true
		seen[idtype.Must(b.Next())] = true
	}
	fmt.Println(len(seen), a.Stats().Minted, b.Stats().Minted)
	// Output: 100 100 100
}

func ExampleNewSnoGenerator() {
	gen, err := idtype.NewSnoGenerator(idtype.SnoConfig{
		Meta:      'c',
		Partition: &idtype.SnoPartition{'A', 10},
		Options:   idtype.Options{Clock: noon},
	})
	if err != nil {
		panic(err)
	}
	for range 2 {
		id, err := gen.Next()
		fmt.Printf("%v %c %v\n", id, id.Meta(), err)
	}
	// Output:
	// 9q8xk7a2ef2im222 c <nil>
	// 9q8xk7a2ef2im223 c <nil>
}

// One generator creates IDs for several types of records, with a metabyte for each.
func ExampleSnoGenerator_WithMeta() {
	gen, err := idtype.NewSnoGenerator(idtype.SnoConfig{Partition: &idtype.SnoPartition{'A', 10}, Options: idtype.Options{Clock: noon}})
	if err != nil {
		panic(err)
	}
	customers, orders := gen.WithMeta('c'), gen.WithMeta('o')
	for _, g := range []idtype.Generator[idtype.Sno]{customers, orders, customers} {
		id, err := g.Next()
		fmt.Printf("%v %c %d %v\n", id, id.Meta(), id.Sequence(), err)
	}
	// Output:
	// 9q8xk7a2ef2im222 c 0 <nil>
	// 9q8xk7a2fv2im223 o 1 <nil>
	// 9q8xk7a2ef2im224 c 2 <nil>
}

// NewSno suits programs that need a few IDs and no configuration.
func ExampleNewSno() {
	a, err := idtype.NewSno('c')
	if err != nil {
		panic(err)
	}
	b, err := idtype.NewSno('c')
	fmt.Println(a != b, len(a.String()), err)
	// Output: true 16 <nil>
}

// Fill creates the IDs of a batch, for an INSERT of an array or a COPY.
func ExampleSnoGenerator_Fill() {
	gen, err := idtype.NewSnoGenerator(idtype.SnoConfig{Meta: 'e'})
	if err != nil {
		panic(err)
	}
	ids := make([]idtype.Sno, 1000)
	n, err := gen.Fill(context.Background(), ids)
	fmt.Println(n, err, ids[0].Compare(ids[999]) < 0)
	// Output: 1000 <nil> true
}

// A UID60Generator creates up to 512 IDs per millisecond, so Fill takes several
// milliseconds here. It stops early if the context ends.
func ExampleUID60Generator_Fill() {
	gen, err := idtype.NewUID60Generator(idtype.UID60Config{})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ids := make([]idtype.UID60, 2000)
	n, err := gen.Fill(ctx, ids)
	fmt.Println(n, err, ids[0] < ids[1999])

	cancel()
	n, err = gen.Fill(ctx, ids)
	fmt.Println(n, errors.Is(err, context.Canceled))
	// Output:
	// 2000 <nil> true
	// 0 true
}

func ExampleSnowflakeSIGenerator_Fill() {
	gen, err := idtype.NewSnowflakeSIGenerator(idtype.SnowflakeSIConfig{
		Layout: idtype.SnowflakeSILayout{BaseClock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)},
	})
	if err != nil {
		panic(err)
	}
	ids := make([]idtype.SnowflakeSI, 1000)
	n, err := gen.Fill(context.Background(), ids)
	fmt.Println(n, err, ids[0] < ids[999])
	// Output: 1000 <nil> true
}

// Spread64 is the only type whose IDs don't increase.
func ExampleSpread64Generator_Fill() {
	gen, err := idtype.NewSpread64Generator(idtype.Spread64Config{Generator: 1})
	if err != nil {
		panic(err)
	}
	ids := make([]idtype.Spread64, 1000)
	n, err := gen.Fill(context.Background(), ids)
	fmt.Println(n, err, slices.IsSorted(ids), ids[0].Time().After(ids[999].Time()))
	// Output: 1000 <nil> false false
}

// A generator in a variable of a package.
var orderIDs = idtype.Must(idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Worker: 3}))

func ExampleMust() {
	id, err := orderIDs.Next()
	fmt.Println(id.IsZero(), err)
	// Output: false <nil>
}

// An InvoiceID is an ID type without methods. As a GORM key it needs GormDataType, because
// GORM declares integer keys as bigserial.
type InvoiceID int64

func (InvoiceID) GormDataType() string { return "bigint" }

func ExampleMapGenerator() {
	invoices := idtype.MapGenerator(orderIDs, func(id idtype.Snowflake) InvoiceID { return InvoiceID(id) })
	id, err := invoices.Next()
	fmt.Printf("%T %v %v\n", id, id > 0, err)
	// Output: idtype_test.InvoiceID true <nil>
}

func ExampleParseSnowflake() {
	id, err := idtype.ParseSnowflake("132271570944274432")
	fmt.Println(id.Int64(), err)

	for _, s := range []string{"0132271570944274432", "9223372036854775808"} {
		_, err = idtype.ParseSnowflake(s)
		fmt.Println(err)
	}
	// Output:
	// 132271570944274432 <nil>
	// idtype: parse "0132271570944274432" as Snowflake: leading zero at byte 0; want a decimal integer from 0 to 9223372036854775807
	// idtype: parse "9223372036854775808" as Snowflake: out of range; want a decimal integer from 0 to 9223372036854775807
}

func ExampleParseSnowflakeSI() {
	id, err := idtype.ParseSnowflakeSI("1783298472345855")
	fmt.Println(id.Int64(), err)

	_, err = idtype.ParseSnowflakeSI("9007199254740992") // not exact in JavaScript
	fmt.Println(errors.Is(err, idtype.ErrRange))
	// Output:
	// 1783298472345855 <nil>
	// true
}

func ExampleParseUID60() {
	id, err := idtype.ParseUID60("xinaS8QBh")
	fmt.Println(id.Int64(), id.Time(), err)
	// Output: 11093174944930914 2019-07-03 18:45:04.129 +0000 UTC <nil>
}

func ExampleParseSpread64() {
	id, err := idtype.ParseSpread64("cb54ecf2840a0015")
	fmt.Println(id.Int64(), id.Time(), err)
	// Output: -3795148059624996843 1974-07-14 19:42:16.275 +0000 UTC <nil>
}

func ExampleSnowflakeLayout_Parts() {
	parts, err := idtype.DefaultSnowflakeLayout().Parts(132271570944274432)
	fmt.Println(parts.Time, parts.Datacenter, parts.Worker, parts.Sequence, err)
	// Output: 2022-01-01 00:00:00 +0000 UTC 2 3 0 <nil>
}

func ExampleSnowflakeSILayout_Parts() {
	layout := idtype.SnowflakeSILayout{BaseClock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	parts, err := layout.Parts(230385254401792)
	fmt.Println(parts.Time, parts.Machine, parts.Index, err)
	// Output: 2026-11-22 12:00:00 +0000 UTC 7 0 <nil>
}

func ExampleUID60Layout_Parts() {
	parts, err := idtype.UID60Layout{}.Parts(idtype.Must(idtype.ParseUID60("xinaS8QBh")))
	fmt.Println(parts.Time, parts.Sequence, parts.Random, err)
	// Output: 2019-07-03 18:45:04.129 +0000 UTC 270 98 <nil>
}

func ExampleSpread64Layout_Parts() {
	parts, err := idtype.Spread64Layout{}.Parts(idtype.Must(idtype.ParseSpread64("cb54ecf2840a0015")))
	fmt.Println(parts.Time, parts.Sequence, parts.Generator, parts.Cluster, err)
	// Output: 1974-07-14 19:42:16.275 +0000 UTC 10 1 5 <nil>
}

func ExampleSnoLayout_Parts() {
	parts, err := idtype.SnoLayout{}.Parts(idtype.Must(idtype.ParseSno("brpk4q72xwf2m63l")))
	fmt.Println(parts.Time, parts.TickTock, parts.Meta, parts.Partition.Uint16(), parts.Sequence, err)
	// Output: 2031-05-08 23:03:34.976 +0000 UTC false 255 39434 4147 <nil>
}

func ExampleSnowflakeSILayout_Range() {
	layout := idtype.SnowflakeSILayout{BaseClock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	lo, hi, err := layout.Range(noon(), noon().Add(time.Hour))
	fmt.Println(lo, hi, err)
	// Output: 230385254400000 230414745600000 <nil>
}

// Without an end, the range extends to the largest ID.
func ExampleUID60Layout_Range() {
	lo, hi, err := idtype.UID60Layout{}.Range(noon(), time.Time{})
	fmt.Println(lo, hi, err)
	// Output: AAEAkRN4AA __________ <nil>
}

// A uuid column with Snos sorts by time.
func ExampleSnoLayout_Range() {
	lo, hi, err := idtype.SnoLayout{}.Range(noon(), noon().Add(time.Hour))
	fmt.Printf("WHERE id >= '%s' AND id < '%s' %v\n", lo.UUID(), hi.UUID(), err)
	// Output: WHERE id >= '39713878-6b37-6132-3232-323232323232' AND id < '39713933-6235-3432-3232-323232323232' <nil>
}

// A model with a prefix has keys whose text is a TypeID. The uuid column holds the UUID.
func ExampleUUIDOf() {
	id := idtype.Must(idtype.Parse[idtype.UUIDOf[Shipment]]("shipment_01h455vb4pex5vsknk084sn02q"))
	fmt.Println(id, id.Time().Format(time.RFC3339))
	fmt.Println(id.Untyped())
	// Output:
	// shipment_01h455vb4pex5vsknk084sn02q 2023-06-30T03:34:18Z
	// 01890a5d-ac96-774b-bcce-b302099a8057
}

// A Shipment is a model whose keys are UUIDs.
type Shipment struct {
	ID idtype.UUIDOf[Shipment]
}

// IDPrefix begins the text of the IDs.
func (Shipment) IDPrefix() string { return "shipment" }

func ExampleNewUUIDGenerator() {
	gen, err := idtype.NewUUIDGenerator(idtype.UUIDConfig{})
	if err != nil {
		panic(err)
	}
	first, err := gen.Next()
	if err != nil {
		panic(err)
	}
	second, err := gen.Next()
	if err != nil {
		panic(err)
	}
	fmt.Println(first.Version(), first.Compare(second))
	// Output: 7 -1
}

// A handler answers the client of an HTTP service without Go types.
func ExamplePublicMessage() {
	_, err := idtype.Parse[idtype.SnowflakeOf[Shipment]]("ship_7")
	fmt.Println(idtype.PublicMessage(err))
	// Output: "ship_7" is not a valid ID: want "shipment_" and a decimal integer from 0 to 9223372036854775807, got the prefix "ship_"
}
