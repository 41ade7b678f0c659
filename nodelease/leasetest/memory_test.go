package leasetest_test

import (
	"flag"
	"testing"
	"time"

	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/leasetest"
)

// TestMain runs more tests in parallel than the machine has processors, since they
// mostly wait.
func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "32")
	m.Run()
}

func TestStore(t *testing.T) {
	store, ttl := new(leasetest.Store), time.Second
	if testing.Short() {
		ttl = 300 * time.Millisecond
	}
	leasetest.TestStore(t, leasetest.Harness{TTL: ttl, Open: func(*testing.T, bool) nodelease.Store { return store }})
}
