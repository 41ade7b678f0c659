package leasetest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/leasetest"
)

// With a store in memory, the tests of a program need no server.
func ExampleStore() {
	store := &leasetest.Store{}
	ids, err := nodelease.NewSpread64Generator(context.Background(), store, idtype.Spread64Config{Cluster: 3}, nodelease.Options{})
	if err != nil {
		panic(err)
	}
	defer ids.Close()
	id, err := ids.Next()
	fmt.Println(ids.Keeper().Number(), !id.IsZero(), err)
	// Output: 0 true <nil>
}

// The function is a test in the package of the store.
func ExampleTestStore() {
	_ = func(t *testing.T) { // func TestStore(t *testing.T) {
		shared := &leasetest.Store{} // the data that all clients share
		leasetest.TestStore(t, leasetest.Harness{
			Open: func(*testing.T, bool) nodelease.Store { return shared }, // a client of one process
		})
	}
}
