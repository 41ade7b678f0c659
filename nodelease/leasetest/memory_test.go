package leasetest_test

import (
	"flag"
	"testing"

	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/leasetest"
)

// TestMain has more tests run at a time than there are processors, since they
// wait most of the time.
func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "32")
	m.Run()
}

func TestStore(t *testing.T) {
	store := new(leasetest.Store)
	leasetest.Exercise(t, leasetest.Harness{Open: func(*testing.T) nodelease.Store { return store }})
}
