package nodelease_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/utils/tests"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/leasetest"
)

type Order struct {
	ID    idtype.Snowflake
	Total int64
}

// GORM fills primary keys with a generator whose node number is claimed.
func Example() {
	db, err := gorm.Open(tests.DummyDialector{}, &gorm.Config{DryRun: true}) // postgres.Open(url)
	if err != nil {
		panic(err)
	}
	store := &leasetest.Store{} // pglease.New(sqlDB, pglease.Config{})
	ids, err := nodelease.NewSnowflakeGenerator(context.Background(), store, idtype.SnowflakeConfig{}, nodelease.Options{})
	if err != nil {
		panic(err)
	}
	defer ids.Close() // releases the node number
	if err := db.Use(gormplugin.New(gormplugin.For(ids))); err != nil {
		panic(err)
	}
	order := Order{Total: 5}
	db.Create(&order)
	fmt.Println(!order.ID.IsZero(), ids.Keeper().Stats().Left > 0)
	// Output: true true
}

// The caller builds the generator and watches for the loss of the claim.
func ExampleAcquire() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	pool := nodelease.ForSno()
	k, err := nodelease.Acquire(ctx, &leasetest.Store{}, pool, nodelease.Options{
		TTL: 10 * time.Second, // the number of a killed process is free after this time
	})
	if err != nil {
		panic(err)
	}
	go func() {
		select {
		case <-k.Lost():
			log.Fatal("stop taking orders: ", k.Err())
		case <-ctx.Done(): // Close doesn't close Lost
		}
	}()
	gen, err := idtype.NewSnoGenerator(idtype.SnoConfig{Options: idtype.Options{Lease: k}})
	if err != nil {
		panic(err)
	}
	id, err := gen.Next()
	fmt.Println(int(id.Partition().Uint16()) == k.Number(), err)
	k.Close()
	_, err = gen.Next()
	fmt.Println(err != nil, k.Err())
	// Output:
	// true <nil>
	// true nodelease: number 0 of pool "sno": closed
}

// The pool reserves a number that something else uses. The generator fails instead of
// waiting.
func ExampleNewGenerator() {
	store := &leasetest.Store{} // pglease.New(db, pglease.Config{})
	layout := idtype.DefaultSnowflakeLayout()
	pool := nodelease.ForSnowflake(layout)
	pool.Reserved = []int{0}
	ids, err := nodelease.NewGenerator(context.Background(), store, pool, nodelease.Options{},
		func(l idtype.Lease) (*idtype.SnowflakeGenerator, error) {
			return idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Layout: layout, Options: idtype.Options{Lease: l, MaxWait: -1}})
		})
	if err != nil {
		panic(err)
	}
	defer ids.Close()
	id, err := ids.Next()
	if err != nil {
		panic(err)
	}
	parts, err := layout.Parts(id)
	fmt.Println(parts.Datacenter, parts.Worker, err)
	// Output: 0 1 <nil>
}

// Eight processes share a partition. Each holds an eighth of its sequence.
func ExampleNewSnoGenerator() {
	partition := idtype.SnoPartitionFrom(7)
	ids, err := nodelease.NewSnoGenerator(context.Background(), &leasetest.Store{},
		idtype.SnoConfig{Meta: 'c', Partition: &partition, Ranges: 8}, nodelease.Options{})
	if err != nil {
		panic(err)
	}
	defer ids.Close()
	id, err := ids.Next()
	fmt.Printf("%c %d %t %v", id.Meta(), id.Partition().Uint16(), id.Sequence() < 1<<13, err)
	// Output: c 7 true <nil>
}

// The pool reserves the number of the column defaults, which is in the setting
// sortkey.node of the database.
func ExampleForSnowflake() {
	pool := nodelease.ForSnowflake(idtype.DefaultSnowflakeLayout())
	pool.Reserved = []int{1023}
	fmt.Println(pool.Name, pool.Size, pool.Validate())
	// Output: snowflake 1024 <nil>
}
