// Package leasetest has a [nodelease.Store] in memory, for tests of programs, and the
// tests that each implementation of a store must pass.
//
// The tests of an implementation call [Exercise] with a function that opens a store:
//
//	func TestStore(t *testing.T) {
//		leasetest.Exercise(t, leasetest.Harness{Open: func(t *testing.T) nodelease.Store { return open(t) }})
//	}
package leasetest
