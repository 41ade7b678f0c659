package zklease_test

import (
	"context"
	"fmt"
	"log"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/zklease"
)

// A process has one store for its whole life, and closes it last.
func ExampleConnect() {
	store, err := zklease.Connect([]string{"zk1:2181", "zk2:2181", "zk3:2181"}, zklease.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	ids, err := nodelease.NewSpread64Generator(context.Background(), store, idtype.Spread64Config{Cluster: 3}, nodelease.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer ids.Close()
	fmt.Println("node number:", ids.Keeper().Number())
}
