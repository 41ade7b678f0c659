package leasetest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/leasetest"
)

// A store in memory, in place of the one of production, lets a program's tests
// mint without a server.
func ExampleStore() {
	store := &leasetest.Store{}
	ids, err := nodelease.NewSpread64Generator(context.Background(), store, 3, nodelease.Options{})
	if err != nil {
		panic(err)
	}
	defer ids.Close()
	id, err := ids.Next()
	fmt.Println(ids.Keeper().Number(), !id.IsZero(), err)
	// Output: 0 true <nil>
}

// The test of a store, in a file of the package that has it.
func ExampleExercise() {
	_ = func(t *testing.T) { // func TestStore(t *testing.T) {
		shared := &leasetest.Store{} // what the stores of all processes lead to
		leasetest.Exercise(t, leasetest.Harness{
			Open: func(*testing.T) nodelease.Store { return shared }, // the store of one process
		})
	}
}
