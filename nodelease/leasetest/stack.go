package leasetest

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/nodelease"
)

// A patientStore releases a number even after its caller has stopped waiting.
type patientStore struct {
	nodelease.Store
	released chan error // the result of each release
}

func (p patientStore) Release(ctx context.Context, pool nodelease.Pool, c nodelease.Claim, highWaterMark int64) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	err := p.Store.Release(ctx, pool, c, highWaterMark)
	p.released <- err
	return err
}

// testStack uses the store as programs do, with Keepers and generators. Its clock is set
// forward, so that a renewal of the long claim is due at once.
func (s *suite) testStack() {
	p := s.pool(1)
	var ahead atomic.Int64
	clock := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	store := patientStore{s.open().store, make(chan error, 1)}
	acquire := func(wait time.Duration) (*nodelease.Keeper, error) {
		ctx, cancel := s.patiently()
		defer cancel()
		return nodelease.Acquire(ctx, store, p, nodelease.Options{TTL: long, Wait: wait, Clock: clock})
	}
	var last idtype.Snowflake
	var mark int64
	for i := range 3 {
		k, err := acquire(patience)
		if err != nil {
			s.Fatal(err)
		}
		if k.After() != mark {
			s.Errorf("holder %d: expected a claim after %d, got %d", i+1, mark, k.After())
		}
		ids, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Options: idtype.Options{Lease: k, Clock: clock}})
		if err != nil {
			s.Fatal(err)
		}
		mint := func() {
			s.Helper()
			for range 1000 {
				id, err := ids.Next()
				if err != nil {
					s.Fatalf("holder %d: %v", i+1, err)
				}
				if id <= last {
					s.Fatalf("holder %d: expected an ID after %v, got %v", i+1, last, id)
				}
				last = id
			}
		}
		mint()
		if i == 0 {
			ahead.Store(int64(long))
			s.eventually("the claim is renewed", func() error {
				if stats := k.Stats(); stats.Renewals == 0 {
					return errors.Join(errors.New("no renewal"), stats.LastFailure)
				}
				return nil
			})
			mint()
		}
		var busy *nodelease.BusyError
		if got, err := acquire(-1); !errors.As(err, &busy) || !strings.Contains(err.Error(), p.Name) {
			s.Errorf("expected pool %q to be busy, got %v, %v", p.Name, got, err)
		}
		// A slow store is not at fault if Close stops waiting.
		if err := k.Close(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			s.Errorf("holder %d: %v", i+1, err)
		}
		if err := <-store.released; err != nil {
			s.Errorf("holder %d: %v", i+1, err)
		}
		if _, err := ids.Next(); !errors.Is(err, idtype.ErrLeaseLost) {
			s.Errorf("holder %d: expected no ID after Close, got %v", i+1, err)
		}
		mark = idtype.SnowflakeLayout{}.Time(last).UnixMilli()
	}
}
