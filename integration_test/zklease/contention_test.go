package zklease

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	crand "crypto/rand"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/integration_test/internal/zktest"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/zklease"
)

func TestMain(m *testing.M) { pgtest.MainParallel(m, 32) }

// testContention shows that transactions alone are enough for 50 stores that claim numbers
// at the same moment, without a lock: in a pool of 50 numbers, each gets one in a single call,
// whether the numbers are new or were used. In a pool that the Java program may share, a call
// can fail for two seconds, so they retry.
func testContention(t *testing.T, server *zktest.Server) {
	const stores = 50
	for name, p := range map[string]nodelease.Pool{
		"own pool":    {Name: "contended", Size: stores, Layout: "made up"},
		"shared pool": nodelease.ForSpread64(3),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, shared := p.Cluster()
			settings := zklease.Config{Roots: map[string]string{p.Name: "/contention/" + crand.Text()}}
			var all []*client
			for range stores {
				all = append(all, open(t, server, settings))
			}
			for _, round := range []string{"new numbers", "used numbers", "used numbers"} {
				claims, took := make([]nodelease.Claim, stores), make([]time.Duration, stores)
				each(all, func(i int, s *client) {
					begun, r := time.Now(), request()
					c, err := s.Claim(within(t, patience), p, r)
					for busy := (*nodelease.BusyError)(nil); shared && errors.As(err, &busy) && time.Since(begun) < patience; {
						time.Sleep(500 * time.Millisecond)
						c, err = s.Claim(within(t, patience), p, r)
					}
					if err != nil {
						t.Error(err)
					}
					claims[i], took[i] = c, time.Since(begun)
				})
				if t.Failed() {
					return
				}
				taken := map[int]bool{}
				for _, c := range claims {
					if taken[c.Number] || c.Number >= p.Size {
						t.Errorf("%s: number %d was granted twice, or is out of range", round, c.Number)
					}
					taken[c.Number] = true
				}
				slices.Sort(took)
				t.Logf("%s: %d claims, median %v, slowest %v", round, stores, took[stores/2].Round(time.Millisecond), took[stores-1].Round(time.Millisecond))
				// So that the next claims needn't wait for their clocks.
				each(all, func(i int, s *client) {
					if err := s.Release(within(t, patience), p, claims[i], claims[i].After); err != nil {
						t.Error(err)
					}
				})
			}
		})
	}
}

// each calls f with all stores at once.
func each(all []*client, f func(int, *client)) {
	var group sync.WaitGroup
	for i, s := range all {
		group.Go(func() { f(i, s) })
	}
	group.Wait()
}
