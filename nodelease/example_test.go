package nodelease_test

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/utils/tests"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/leasetest"
	"github.com/sortkey/sortkey/nodelease"
)

type Order struct {
	ID    idtype.Snowflake
	Total int64
}

// A process claims a node number, and GORM fills keys with it.
func Example() {
	db, err := gorm.Open(tests.DummyDialector{}, &gorm.Config{DryRun: true}) // postgres.Open(url)
	if err != nil {
		panic(err)
	}
	store := &leasetest.Store{} // pglease.New(sqlDB, pglease.Config{})
	ids, err := nodelease.NewGenerator(context.Background(), store, nodelease.ForSnowflake(idtype.SnowflakeLayout{}),
		nodelease.Options{Reacquire: true}, func(l idtype.Lease) (*idtype.SnowflakeGenerator, error) {
			return idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Options: idtype.Options{Lease: l}})
		})
	if err != nil {
		panic(err)
	}
	defer ids.Close() // gives the number to whoever wants it next
	if err := db.Use(gormplugin.New(gormplugin.For(ids))); err != nil {
		panic(err)
	}
	order := Order{Total: 5}
	db.Create(&order)
	fmt.Println(!order.ID.IsZero(), ids.Keeper().Stats().Left > 0)
	// Output: true true
}

// A claim that is held for a generator of the caller's, and lost.
func ExampleAcquire() {
	ctx := context.Background()
	pool := nodelease.ForSno()
	k, err := nodelease.Acquire(ctx, &leasetest.Store{}, pool, nodelease.Options{
		TTL:    10 * time.Second, // how soon the number of a process that was killed is free again
		OnLost: func(err error) { fmt.Println("stop taking orders:", err) },
	})
	if err != nil {
		panic(err)
	}
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
	// true nodelease: number 0 of pool "sno" given back: closed
}

// A generator that claims its number itself, and another one should it lose that.
func ExampleNewGenerator() {
	ctx := context.Background()
	store := &leasetest.Store{} // pglease.New(db, pglease.Config{})
	layout := idtype.DefaultSnowflakeLayout()
	ids, err := nodelease.NewGenerator(ctx, store, nodelease.ForSnowflake(layout), nodelease.Options{Reacquire: true},
		func(l idtype.Lease) (*idtype.SnowflakeGenerator, error) {
			return idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Layout: layout, Options: idtype.Options{Lease: l}})
		})
	if err != nil {
		panic(err)
	}
	id, err := ids.Next()
	if err != nil {
		panic(err)
	}
	parts, err := layout.Parts(id)
	fmt.Println(parts.Datacenter<<5|parts.Worker == ids.Keeper().Number(), err)
	fmt.Println(ids.Close())
	// Output:
	// true <nil>
	// <nil>
}

// A pool without the numbers that defaults of columns mint with.
func ExampleForSnowflake() {
	pool := nodelease.ForSnowflake(idtype.DefaultSnowflakeLayout())
	pool.Reserved = []int{31<<5 | 31} // sortkey.next_snowflake(31, 31)
	fmt.Println(pool.Name, pool.Size, pool.Validate())
	// Output: snowflake 1024 <nil>
}
