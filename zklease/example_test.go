package zklease_test

import (
	"context"
	"fmt"
	"log"

	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/zklease"
)

// A process has one store for all its life, and closes it last.
func ExampleConnect() {
	store, err := zklease.Connect([]string{"zk1:2181", "zk2:2181", "zk3:2181"}, zklease.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	keeper, err := nodelease.Acquire(context.Background(), store, nodelease.ForSpread64(3), nodelease.Options{
		OnLost: func(err error) { log.Print("no IDs any more: ", err) },
	})
	if err != nil {
		log.Fatal(err)
	}
	defer keeper.Close()
	// It is the Lease of a generator: idtype.Options{Lease: keeper}.
	fmt.Println("minting with number", keeper.Number())
}
