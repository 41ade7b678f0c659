// Package leasetest has a [nodelease.Store] in memory, for tests of programs, and the
// tests that each implementation of a store must pass.
//
// The tests of an implementation call [TestStore] with a function that opens a store:
//
//	func TestStore(t *testing.T) {
//		leasetest.TestStore(t, leasetest.Harness{Open: func(t *testing.T, _ bool) nodelease.Store { return open(t) }})
//	}
package leasetest
