// Package leasetest has the tests that each [nodelease.Store] must pass, and a
// store in memory, for tests of programs.
//
// A store's own tests call [Exercise] with a way to open it:
//
//	func TestStore(t *testing.T) {
//		leasetest.Exercise(t, leasetest.Harness{Open: func(t *testing.T) nodelease.Store { return open(t) }})
//	}
package leasetest
