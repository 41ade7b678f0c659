package leasetest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/leasetest"
	"github.com/sortkey/sortkey/nodelease"
)

// A store in memory, in place of the one of production, lets a program's tests
// mint without a server.
func ExampleStore() {
	ctx := context.Background()
	store := &leasetest.Store{}
	one, err := nodelease.Acquire(ctx, store, nodelease.ForSno(), nodelease.Options{})
	if err != nil {
		panic(err)
	}
	defer one.Close()
	other, err := nodelease.Acquire(ctx, store, nodelease.ForSno(), nodelease.Options{})
	if err != nil {
		panic(err)
	}
	defer other.Close()
	fmt.Println(one.Number() != other.Number())

	gen, err := idtype.NewSnoGenerator(idtype.SnoConfig{Options: idtype.Options{Lease: one}})
	if err != nil {
		panic(err)
	}
	id, err := gen.Next()
	fmt.Println(int(id.Partition().Uint16()) == one.Number(), err)
	// Output:
	// true
	// true <nil>
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
