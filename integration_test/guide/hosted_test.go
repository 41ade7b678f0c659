package guide

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/docs"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/leasetest"
)

// A countingStore counts renewals.
type countingStore struct {
	leasetest.Store
	renewals atomic.Int64
}

func (s *countingStore) Renew(ctx context.Context, p nodelease.Pool, c nodelease.Claim, r nodelease.Request) (nodelease.Claim, error) {
	s.renewals.Add(1)
	return s.Store.Renew(ctx, p, c, r)
}

// The intervals of renewals in docs/hosted.md, during which a serverless database could sleep.
func TestRenewalInterval(t *testing.T) {
	page := docs.Page(t, "hosted")
	for _, c := range []struct {
		ttl, interval time.Duration
		text          string
	}{
		{0, 10 * time.Second, "renewed about every 10 s"},
		{time.Hour, 20 * time.Minute, "about every 20 minutes"},
	} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Until(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)))
			store := new(countingStore)
			ids, err := nodelease.NewSnowflakeGenerator(t.Context(), store, idtype.SnowflakeConfig{}, nodelease.Options{TTL: c.ttl, Logger: slog.New(slog.DiscardHandler)})
			must(t, err)
			defer func() { must(t, ids.Close()) }()
			time.Sleep(100 * c.interval)
			if n := store.renewals.Load(); n < 90 || n > 111 {
				t.Errorf("TTL %v: %d renewals in %v, want one per %v, give or take a tenth", c.ttl, n, 100*c.interval, c.interval)
			}
		})
		if !strings.Contains(page, c.text) {
			t.Errorf("docs/hosted.md: want %q", c.text)
		}
	}
}
