package metrics_test

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/metrics"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/leasetest"
)

// registered returns a registry with a collector of the sources. It fails the test if a
// metric violates the conventions of Prometheus.
func registered(t *testing.T, sources ...metrics.Source) *prometheus.Registry {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(metrics.NewCollector(sources...)); err != nil {
		t.Fatal(err)
	}
	problems, err := testutil.GatherAndLint(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	return r
}

// values returns the values of all metrics by name and labels, such as
// sortkey_lease_held{orders}. A summary has two values, with the suffixes _count and _sum.
func values(t *testing.T, r *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			key := "{" + strings.Join(labels, ",") + "}"
			if s := m.GetSummary(); s != nil {
				found[f.GetName()+"_count"+key], found[f.GetName()+"_sum"+key] = float64(s.GetSampleCount()), s.GetSampleSum()
				continue
			}
			found[f.GetName()+key] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return found
}

func want(t *testing.T, got map[string]float64, metric string, value float64) {
	t.Helper()
	if v, ok := got[metric]; !ok || v != value {
		t.Errorf("%s: got %v (found: %t), want %v", metric, v, ok, value)
	}
}

func TestGenerator(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	ids, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Options: idtype.Options{Clock: func() time.Time { return now }, MaxWait: -1}})
	if err != nil {
		t.Fatal(err)
	}
	r := registered(t, metrics.Generator("orders", ids))
	for range 4096 {
		if _, err := ids.Next(); err != nil {
			t.Fatal(err)
		}
	}
	got := values(t, r)
	want(t, got, "sortkey_ids_minted_total{orders}", 4096)
	want(t, got, "sortkey_sequence_overflow_seconds_total{orders}", 0)
	want(t, got, "sortkey_lifetime_remaining_seconds{orders}", idtype.DefaultSnowflakeLayout().Time(idtype.MaxSnowflake).Add(time.Millisecond).Sub(now).Seconds())
	want(t, got, "sortkey_ready{orders}", 1)

	if _, err := ids.Next(); !errors.Is(err, idtype.ErrSequenceExhausted) {
		t.Fatalf("got %v, want %v", err, idtype.ErrSequenceExhausted)
	}
	now = now.Add(-time.Hour)
	if _, err := ids.Next(); !errors.Is(err, idtype.ErrClockBackwards) {
		t.Fatalf("got %v, want %v", err, idtype.ErrClockBackwards)
	}
	got = values(t, r)
	want(t, got, "sortkey_sequence_overflow_seconds_total{orders}", 0.001)
	want(t, got, "sortkey_clock_regressions_total{orders}", 1)
	want(t, got, "sortkey_generator_waits_total{orders}", 0)
	want(t, got, "sortkey_tick_tocks_total{orders}", 0)
	want(t, got, "sortkey_ready{orders}", 0)
}

// A broken store can't renew claims while down is set.
type broken struct {
	leasetest.Store
	down atomic.Bool
}

func (b *broken) Renew(ctx context.Context, p nodelease.Pool, c nodelease.Claim, r nodelease.Request) (nodelease.Claim, error) {
	time.Sleep(time.Millisecond)
	if b.down.Load() {
		return nodelease.Claim{}, errors.New("store is down")
	}
	return b.Store.Renew(ctx, p, c, r)
}

// inBubble runs a test with a clock of its own, after the epochs of all formats.
func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)))
		f(t)
	})
}

func TestLeased(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := &broken{Store: leasetest.Store{Clock: func() time.Time { return time.Now().Add(-3 * time.Second) }}}
		ids, err := nodelease.NewSnowflakeGenerator(t.Context(), store, idtype.SnowflakeConfig{}, nodelease.Options{})
		if err != nil {
			t.Fatal(err)
		}
		keeper, err := nodelease.Acquire(t.Context(), store, nodelease.ForSno(), nodelease.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := registered(t, metrics.Leased("orders", ids), metrics.Keeper("events", keeper))
		if _, err := ids.Next(); err != nil {
			t.Fatal(err)
		}
		got := values(t, r)
		want(t, got, "sortkey_ids_minted_total{orders}", 1)
		for _, name := range []string{"orders", "events"} {
			want(t, got, "sortkey_ready{"+name+"}", 1)
			want(t, got, "sortkey_lease_held{"+name+"}", 1)
			want(t, got, "sortkey_lease_term{"+name+"}", 1)
			want(t, got, "sortkey_lease_losses_total{"+name+"}", 0)
			want(t, got, "sortkey_lease_renewal_duration_seconds_count{"+name+"}", 0)
			want(t, got, "sortkey_lease_renewal_failures_total{"+name+"}", 0)
			want(t, got, "sortkey_lease_renewal_duration_seconds_sum{"+name+"}", 0)
			if left := got["sortkey_lease_left_seconds{"+name+"}"]; left <= 20 || left > 27 {
				t.Errorf("%s: got %v s left, want at most 27", name, left)
			}
			want(t, got, "sortkey_lease_clock_skew_seconds{"+name+"}", 3)
		}
		want(t, got, "sortkey_lease_reacquisitions_total{orders}", 0)
		want(t, got, "sortkey_lease_node_info{orders,0,snowflake}", 1)
		want(t, got, "sortkey_lease_node_info{events,0,sno}", 1)
		if err := errors.Join(ids.Close(), keeper.Close()); err != nil {
			t.Fatal(err)
		}
		got = values(t, r)
		for _, name := range []string{"orders", "events"} {
			want(t, got, "sortkey_ready{"+name+"}", 0)
			want(t, got, "sortkey_lease_held{"+name+"}", 0)
			want(t, got, "sortkey_lease_left_seconds{"+name+"}", 0)
			want(t, got, "sortkey_lease_losses_total{"+name+"}", 0) // Close is no loss
		}
		for metric := range got {
			if strings.HasPrefix(metric, "sortkey_lease_node_info") {
				t.Errorf("got %s after Close, want no node number", metric)
			}
		}
	})
}

// The counters of renewals continue after a loss.
func TestLosses(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := &broken{}
		o := nodelease.Options{TTL: time.Second}
		ids, err := nodelease.NewSnowflakeGenerator(t.Context(), store, idtype.SnowflakeConfig{}, o)
		if err != nil {
			t.Fatal(err)
		}
		defer ids.Close()
		keeper, err := nodelease.Acquire(t.Context(), store, nodelease.ForSno(), nodelease.Options{TTL: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer keeper.Close()
		r := registered(t, metrics.Leased("orders", ids), metrics.Keeper("events", keeper))
		until := func(what string, done func(got map[string]float64) bool) {
			t.Helper()
			var got map[string]float64
			for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
				if got = values(t, r); done(got) {
					return
				}
			}
			t.Fatalf("%s: got %v", what, got)
		}
		until("a renewal", func(got map[string]float64) bool {
			return got["sortkey_lease_renewal_duration_seconds_count{orders}"] >= 1 && got["sortkey_lease_renewal_duration_seconds_sum{orders}"] > 0 &&
				got["sortkey_lease_renewal_duration_seconds_count{events}"] >= 1
		})
		before := ids.Stats().Renewals
		if err := ids.Keeper().Err(); err != nil {
			t.Fatal(err)
		}
		store.down.Store(true)
		until("a loss", func(got map[string]float64) bool {
			return got["sortkey_lease_losses_total{orders}"] == 1 && got["sortkey_lease_losses_total{events}"] == 1 &&
				got["sortkey_lease_renewal_failures_total{orders}"] >= 1
		})
		store.down.Store(false)
		until("another number", func(got map[string]float64) bool {
			return got["sortkey_lease_reacquisitions_total{orders}"] >= 1 && got["sortkey_lease_held{orders}"] == 1 &&
				got["sortkey_lease_renewal_duration_seconds_count{orders}"] > float64(before)
		})
	})
}

func TestDuplicates(t *testing.T) {
	ids, err := idtype.NewUID60Generator(idtype.UID60Config{})
	if err != nil {
		t.Fatal(err)
	}
	g := metrics.Generator("orders", ids)
	refuses(t, `the label generator="orders"`, func() { metrics.NewCollector(g, g) })
	refuses(t, "not valid UTF-8", func() { metrics.NewCollector(metrics.Generator("a\xff", ids)) })
	refuses(t, "the zero Source", func() { metrics.NewCollector(metrics.Source{}) })
	refuses(t, "the generator is a zero value", func() { metrics.Generator("orders", new(idtype.SnowflakeGenerator)) })
	refuses(t, "the Generator is a zero value", func() { metrics.Leased("orders", new(nodelease.Generator[idtype.Snowflake])) })
	refuses(t, "the Keeper is a zero value", func() { metrics.Keeper("orders", new(nodelease.Keeper)) })
	refuses(t, `got "a-b"`, func() { metrics.Database("orders", nil, metrics.DatabaseOptions{Schema: "a-b"}) })
	r := registered(t, g, metrics.Database("orders", sql.OpenDB(hanging{}), metrics.DatabaseOptions{Timeout: time.Millisecond})) // another label
	if err := r.Register(metrics.NewCollector(g)); err == nil {
		t.Error("a registry accepts two collectors; want an error")
	}
}

func refuses(t *testing.T, reason string, f func()) {
	t.Helper()
	defer func() {
		if r, _ := recover().(string); !strings.Contains(r, reason) {
			t.Errorf("got the panic %q, want one with %q", r, reason)
		}
	}()
	f()
}

// A hanging database doesn't answer, and ignores the end of a context.
type hanging struct{ released chan struct{} }

func (h hanging) Connect(context.Context) (driver.Conn, error) {
	<-h.released
	return nil, errors.New("released")
}

func (hanging) Driver() driver.Driver { return nil }

// Scrapes of databases that don't answer end after the timeout, at the same time, and
// contain the other metrics.
func TestDatabaseHangs(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		released := make(chan struct{})
		source := func(name string) metrics.Source {
			db := sql.OpenDB(hanging{released})
			t.Cleanup(func() { _ = db.Close() })
			return metrics.Database(name, db, metrics.DatabaseOptions{})
		}
		ids, err := idtype.NewUID60Generator(idtype.UID60Config{})
		if err != nil {
			t.Fatal(err)
		}
		r := prometheus.NewPedanticRegistry()
		r.MustRegister(metrics.NewCollector(source("shop"), source("archive"), metrics.Generator("orders", ids)))
		begun := time.Now()
		var scrapes sync.WaitGroup
		for range 3 {
			scrapes.Go(func() {
				got := values(t, r)
				want(t, got, "sortkey_database_up{shop}", 0)
				want(t, got, "sortkey_database_up{archive}", 0)
				want(t, got, "sortkey_ready{orders}", 1)
			})
		}
		scrapes.Wait()
		if took := time.Since(begun); took != 5*time.Second {
			t.Errorf("three scrapes of two databases took %v, want 5s", took)
		}
		close(released)
	})
}

// bare is a generator without methods for metrics.
type bare struct {
	idtype.Generator[idtype.Snowflake]
}

func TestLeasedWithoutStats(t *testing.T) {
	store := &leasetest.Store{}
	pool := nodelease.ForSnowflake(idtype.SnowflakeLayout{})
	ids, err := nodelease.NewGenerator(t.Context(), store, pool, nodelease.Options{}, func(l idtype.Lease) (bare, error) {
		g, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Options: idtype.Options{Lease: l}})
		return bare{g}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer ids.Close()
	got := values(t, registered(t, metrics.Leased("orders", ids)))
	want(t, got, "sortkey_lease_held{orders}", 1)
	for name := range got {
		if strings.Contains(name, "minted") || strings.Contains(name, "lifetime") {
			t.Errorf("got %s, want no metric that the generator doesn't have", name)
		}
	}
}

// A panicking generator has a fault in its methods, but not in the one that Generator calls.
type panicking struct{ idtype.Monitored }

func (panicking) Remaining() time.Duration { panic("a fault") }

// A source that panics makes the registry return an error. The process continues, and the other
// metrics are exported.
func TestSourcePanics(t *testing.T) {
	ids, err := idtype.NewUID60Generator(idtype.UID60Config{})
	if err != nil {
		t.Fatal(err)
	}
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(metrics.NewCollector(metrics.Generator("broken", panicking{ids}), metrics.Generator("orders", ids)))
	families, err := r.Gather()
	if err == nil || !strings.Contains(err.Error(), `generator "broken": panic: a fault`) {
		t.Errorf("got %v, want an error with the name of the source and the panic", err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "sortkey_ready" && m.GetLabel()[0].GetValue() == "orders" {
				return
			}
		}
	}
	t.Errorf("got %v, want sortkey_ready of the other source", families)
}

// A scripted database calls itself for each connection.
type scripted func() (driver.Conn, error)

func (s scripted) Connect(context.Context) (driver.Conn, error) { return s() }
func (scripted) Driver() driver.Driver                          { return nil }

// A panic of the driver makes the database unreadable. The log has it.
func TestDriverPanics(t *testing.T) {
	db := sql.OpenDB(scripted(func() (driver.Conn, error) { panic("a fault") }))
	defer db.Close()
	var log bytes.Buffer
	got := values(t, registered(t, metrics.Database("shop", db, metrics.DatabaseOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})))
	want(t, got, "sortkey_database_up{shop}", 0)
	for _, message := range []string{"metrics of the database not read", "findings of the database not read"} {
		if !regexp.MustCompile(`msg="` + message + `".*panic: a fault`).MatchString(log.String()) {
			t.Errorf("got the log %s, want %q with the panic", &log, message)
		}
	}
}

// Without a logger, the errors are in the default log.
func TestDefaultLogger(t *testing.T) {
	before := slog.Default()
	defer slog.SetDefault(before)
	var log bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	db := sql.OpenDB(scripted(func() (driver.Conn, error) { return nil, errors.New("no such server") }))
	defer db.Close()
	values(t, registered(t, metrics.Database("shop", db, metrics.DatabaseOptions{})))
	if !strings.Contains(log.String(), "no such server") {
		t.Errorf("got the log %q, want the error", &log)
	}
}

// A search that failed is not repeated before FindingsEvery has passed.
func TestFailedSearch(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var log bytes.Buffer
		db := sql.OpenDB(scripted(func() (driver.Conn, error) { return nil, errors.New("no such server") }))
		defer db.Close()
		r := registered(t, metrics.Database("shop", db, metrics.DatabaseOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})) // scrapes once
		searches := func() int { return strings.Count(log.String(), "findings of the database not read") }
		for range 4 {
			want(t, values(t, r), "sortkey_database_up{shop}", 0)
		}
		if n := searches(); n != 1 {
			t.Errorf("five scrapes made %d searches, want 1", n)
		}
		time.Sleep(5 * time.Minute)
		values(t, r)
		if n := searches(); n != 2 {
			t.Errorf("got %d searches after 5 minutes, want 2", n)
		}
	})
}
