package idtype_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sortkey/sortkey/idtype"
)

// A generator for each process, told apart by its node numbers.
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

// A time window becomes a range of keys, which an index on the key serves.
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

// The metabyte can count the versions of a record: its ID stays the same but
// for that byte.
func ExampleSno_WithMeta() {
	v1 := idtype.MustParseSno("brpk4q72xwf2m63l").WithMeta(1)
	v2 := v1.WithMeta(v1.Meta() + 1)
	fmt.Println(v1, v2, v1.Time().Equal(v2.Time()))
	// Output: brpk4q7228f2m63l brpk4q722cf2m63l true
}

// A program that stops leaves a snapshot behind; the next one goes on exactly
// there, even if the clock was set back meanwhile.
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

// Rows that have another kind of key get IDs of the time when they were made:
// oldest first, and before the generator mints for the present.
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

// Only the IDs that JavaScript holds exactly are bare numbers.
func Example_json() {
	doc, err := json.Marshal(struct {
		Order idtype.Snowflake
		Event idtype.SnowflakeSI
		User  idtype.Sno
		Short idtype.UID60
		None  idtype.Snowflake
	}{
		Order: idtype.MustParseSnowflake("132271570944274432"),
		Event: idtype.MustParseSnowflakeSI("1783298472345855"),
		User:  idtype.MustParseSno("brpk4q72xwf2m63l"),
		Short: idtype.MustParseUID60("xinaS8QBh"),
	})
	fmt.Println(string(doc), err)
	// Output: {"Order":"132271570944274432","Event":1783298472345855,"User":"brpk4q72xwf2m63l","Short":"xinaS8QBh","None":null} <nil>
}
