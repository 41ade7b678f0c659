//go:build unix

package service

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A balancer sends each request to the next instance that is ready, as a load balancer
// with readiness probes does. If none is ready, it sends the request to the next
// instance.
type balancer struct {
	instances []*instance
	transport http.RoundTripper
	turn      atomic.Uint64

	mu      sync.Mutex
	changes map[*instance][]change // in the order of time
}

// A change is a time at which an instance was found to be ready, or not ready any more.
type change struct {
	at    time.Time
	ready bool
}

const (
	probeEvery = 100 * time.Millisecond
	probeLimit = 500 * time.Millisecond
)

// balance probes instances that are ready until the test ends.
func balance(t *testing.T, instances []*instance) *balancer {
	t.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 1000
	b := &balancer{instances: instances, transport: transport, changes: map[*instance][]change{}}
	ctx, cancel := context.WithCancel(context.Background())
	var probes sync.WaitGroup
	for _, i := range instances {
		b.found(i, true)
		probes.Go(func() {
			for ctx.Err() == nil {
				_, err := i.get("/readyz", probeLimit)
				b.found(i, err == nil)
				select {
				case <-time.After(probeEvery):
				case <-ctx.Done():
				}
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		probes.Wait()
	})
	return b
}

// found records the result of a probe.
func (b *balancer) found(i *instance, ready bool) {
	if i.ready.Swap(ready) == ready {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changes[i] = append(b.changes[i], change{time.Now(), ready})
}

// changesOf returns the changes of an instance from a time on.
func (b *balancer) changesOf(i *instance, from time.Time) (later []change) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.changes[i] {
		if !c.at.Before(from) {
			later = append(later, c)
		}
	}
	return later
}

// RoundTrip sends a request. The header Instance of the response has the name of the
// instance.
func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	to := b.pick()
	r = r.Clone(r.Context())
	r.URL.Host = to.address
	answer, err := b.transport.RoundTrip(r)
	if err == nil {
		answer.Header.Set("Instance", to.name)
	}
	return answer, err
}

func (b *balancer) pick() *instance {
	turn, n := b.turn.Add(1), uint64(len(b.instances))
	for k := range n {
		if i := b.instances[(turn+k)%n]; i.ready.Load() {
			return i
		}
	}
	return b.instances[turn%n]
}
