//go:build unix

package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/tsenart/vegeta/v12/lib"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/integration_test/internal/promtest"
	"github.com/sortkey/sortkey/integration_test/internal/zktest"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/pglease"
)

const (
	shortestTTL, longestTTL = 5 * time.Second, 20 * time.Second
	// drain is the service's time from a failing /readyz to its end.
	drain = 2 * time.Second
	// clientTimeout is longer than the service's limit for a request.
	clientTimeout = 7 * time.Second
	// slack is added to a TTL for a busy machine.
	slack = 5 * time.Second
	// busy is a p99 of the time without faults at which the machine has too little
	// processor time for the load. An idle machine has 5 ms.
	busy = 200 * time.Millisecond
)

// soaks reports whether the load lasts for SORTKEY_SOAK.
func soaks() bool { return os.Getenv("SORTKEY_SOAK") != "" }

// calm returns the time before and after each fault in which no request may fail.
func calm() time.Duration {
	if soaks() {
		return 2 * time.Second
	}
	return time.Second
}

// Three instances of the service get a steady load, while processes, the database and
// the store of node numbers fail.
func TestLoad(t *testing.T) {
	if !soaks() {
		t.Parallel()
	}
	t.Run("Postgres", func(t *testing.T) {
		pgtest.OneServer(t, func(t *testing.T, db *pgtest.DB) {
			u, err := url.Parse(db.URL)
			must(t, err)
			p := newProxy(t, u.Host)
			u.Host = p.address
			load(t, "Postgres", db, p, "-leases", u.String())
		})
	})
	t.Run("ZooKeeper", func(t *testing.T) {
		if !soaks() {
			t.Skip("runs with SORTKEY_SOAK; without it, TestService covers claims in ZooKeeper")
		}
		pgtest.OneServer(t, func(t *testing.T, db *pgtest.DB) {
			p := newProxy(t, zktest.Run(t).Address)
			load(t, "ZooKeeper", db, p, "-zookeeper", p.address)
		})
	})
}

// A fault is an event that the service has to survive.
type fault struct {
	name   string
	errors string // a pattern of the causes of failed requests; "" means that none may fail
	// inject makes something fail and repairs it.
	inject func(testing.TB)
}

// A happened is a fault that was injected.
type happened struct {
	fault
	begun, ended time.Time // ended is when the cause was repaired
	over         time.Time // when all instances were ready and no request failed for a second
}

// A run is one load test.
type run struct {
	store     string // of node numbers
	db        *pgtest.DB
	leases    *proxy // to the store
	ttl       time.Duration
	rate      int // requests per second
	instances []*instance
	balancer  *balancer
	metrics   *promtest.Server // scrapes the instances and the monitor
	traffic   *traffic
	counts    leaseCounts
	faults    []happened
	late      []string // failures that can also mean that the machine is too busy

	mu       sync.Mutex
	results  []*vegeta.Result // without headers and bodies
	problems []problem
}

// load runs the load test with flags that select the store of node numbers. If the
// machine is too busy, load repeats the test with a longer TTL and a lower rate. A lost
// row or a repeated ID is a failure in every run.
func load(t *testing.T, store string, db *pgtest.DB, leases *proxy, flags ...string) {
	t.Helper()
	program := pgtest.Build(t, servicePackage)
	migrate(t, program, db)
	// For the metrics of partitions.
	db.Exec(t, `create table events (id sortkey.snowflake primary key) partition by range (id);
		select sortkey.manage_partitions('events', every => '1 month')`)
	db.Exec(t, "call sortkey.maintain_partitions()") // alone, since it commits
	// A server with synchronous_commit=off may lose the last rows when it is killed.
	db.Exec(t, "alter database "+db.Name+" set synchronous_commit = on")
	rate := 100
	if soaks() {
		rate = 300
	}
	for ttl := shortestTTL; ; ttl, rate = 2*ttl, rate/2 {
		r := &run{store: store, db: db, leases: leases, ttl: ttl, rate: rate, traffic: newTraffic()}
		var p99 time.Duration
		db.Exec(t, "truncate orders, customers")
		t.Run("ttl="+ttl.String(), func(t *testing.T) {
			r.begin(t, program, flags)
			r.attack(t)
			p99 = r.verify(t)
		})
		if t.Failed() || len(r.late) == 0 || p99 < busy || ttl >= longestTTL {
			for _, text := range r.late {
				t.Error(text)
			}
			return
		}
		t.Logf("the machine was too busy, since the p99 without a fault was %v; ignored: %q", p99, r.late)
	}
}

// begin starts the instances.
func (r *run) begin(t *testing.T, program string, flags []string) {
	t.Helper()
	if r.store == "Postgres" {
		// The first claim of a pool inserts its rows, which may take longer than a short TTL
		// allows.
		keeper, err := nodelease.Acquire(t.Context(), pglease.New(r.db.SQL(t), pglease.Config{}), nodelease.ForSno(), nodelease.Options{TTL: time.Minute})
		must(t, err)
		must(t, keeper.Close())
	}
	var ports []int
	for n := range 3 {
		i := newInstance(t, fmt.Sprint(n+1), slices.Concat([]string{program, "-database", r.db.URL, "-ttl", r.ttl.String(), "-drain", drain.String()}, flags)...)
		i.start(t)
		r.instances, ports = append(r.instances, i), append(ports, i.port)
	}
	monitor := newInstance(t, "monitor", program, "-database", r.db.URL, "-monitor")
	monitor.start(t)
	r.metrics = promtest.Run(t, append(ports, monitor.port), "../../metrics/alerts.yaml") // takes as long as the instances to start
	for _, i := range r.instances {
		i.awaitReady(t)
	}
	r.balancer = balance(t, r.instances)
}

// plan returns the faults of one round.
func (r *run) plan() []fault {
	one, two, three := r.instances[0], r.instances[1], r.instances[2]
	const gone, noAnswer, noIDs, noDatabase = "^connection refused or broken", "^no answer", "^503 no new IDs", "^503 no result from the database"
	restart := func(signal string) func(testing.TB) {
		return func(t testing.TB) {
			pgtest.Stop(t, r.db.Container(), signal)
			pgtest.Start(t, r.db.Container())
			pgtest.Eventually(t, "Postgres answers", func() error { return answers(r.db) })
		}
	}
	return []fault{
		{"an instance is killed", gone + "|" + noAnswer, func(t testing.TB) {
			r.counts.add(t, one)
			one.signal(t, syscall.SIGKILL)
			_ = one.ends(t)
			time.Sleep(time.Second)
			one.start(t)
		}},
		{"an instance is paused for 1.5 TTLs", noAnswer, func(t testing.TB) {
			two.signal(t, syscall.SIGSTOP)
			time.Sleep(r.ttl * 3 / 2)
			two.signal(t, syscall.SIGCONT)
		}},
		{"an instance is replaced (SIGTERM)", "", func(t testing.TB) {
			r.counts.add(t, three)
			three.signal(t, syscall.SIGTERM)
			if err := three.ends(t); err != nil {
				t.Errorf("expected instance %s to end without an error, got %v", three.name, err)
			}
			three.start(t)
		}},
		{"Postgres is restarted", noDatabase + "|" + noIDs, restart("INT")},
		{"Postgres is killed", noDatabase + "|" + noIDs, restart("KILL")},
		{cut, noIDs, func(testing.TB) {
			r.leases.cut()
			time.Sleep(2 * r.ttl)
			r.leases.join()
		}},
	}
}

const cut = "the store of node numbers is cut off for 2 TTLs"

// attack sends requests at a steady rate while it injects faults.
func (r *run) attack(t *testing.T) {
	attacker := vegeta.NewAttacker(vegeta.Client(&http.Client{Transport: r.balancer, Timeout: clientTimeout}), vegeta.MaxWorkers(10000))
	var receiving sync.WaitGroup
	pace := vegeta.Rate{Freq: r.rate, Per: time.Second}
	receiving.Go(func() {
		for result := range attacker.Attack(r.traffic.target, pace, 0, "") {
			r.received(t, result)
		}
	})
	defer receiving.Wait() // for at most clientTimeout
	defer attacker.Stop()

	begun, lasts := time.Now(), pgtest.Soak(t, 0, 0)
	plan := r.plan()
	for n := 0; n < len(plan) || time.Since(begun) < lasts; n++ {
		time.Sleep(calm())
		h := happened{fault: plan[n%len(plan)], begun: time.Now()}
		h.inject(t)
		h.ended = time.Now()
		pgtest.Eventually(t, "all instances are ready and no request fails", r.isNormal)
		h.over = time.Now()
		r.faults = append(r.faults, h)
	}
	time.Sleep(calm() + r.ttl/2) // new claims are renewed, and Prometheus sees that
	r.metrics.CheckRules(lenient{t, r})
	if r.store == "Postgres" { // with ZooKeeper, the database has no pools of node numbers to show
		r.metrics.CheckDashboard(lenient{t, r}, "../../metrics/dashboard.json")
	}
}

// A lenient test records errors that can also mean that the machine is too busy, such as
// scrapes that time out.
type lenient struct {
	testing.TB
	r *run
}

func (l lenient) Error(args ...any)                 { l.r.tooLate("%s", fmt.Sprint(args...)) }
func (l lenient) Errorf(format string, args ...any) { l.r.tooLate(format, args...) }

// isNormal returns nil if all instances are ready and no request failed in the last
// second.
func (r *run) isNormal() error {
	for _, i := range r.instances {
		if !i.ready.Load() {
			return fmt.Errorf("instance %s isn't ready", i.name)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.problems); n > 0 && time.Since(r.problems[n-1].ended) < time.Second {
		return errors.New(r.problems[n-1].cause)
	}
	return nil
}

// received records the result of a request.
func (r *run) received(t *testing.T, result *vegeta.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if result.Error != "" {
		r.problems = append(r.problems, problem{
			begun: result.Timestamp, ended: result.End(), instance: result.Headers.Get("Instance"), cause: causeOf(result),
			mints: result.Method == http.MethodPost,
		})
	} else if err := r.traffic.received(result.Method, result.URL, result.Body); err != nil {
		t.Errorf("%s %s: %v", result.Method, result.URL, err)
	}
	result.Headers, result.Body = nil, nil
	r.results = append(r.results, result)
}

// during returns the index of the fault whose effects a request from begun to ended may
// show, or -1.
func (r *run) during(begun, ended time.Time) int {
	return slices.IndexFunc(r.faults, func(f happened) bool {
		return ended.After(f.begun) && begun.Before(f.over)
	})
}

// answers returns nil if the database accepts connections.
func answers(db *pgtest.DB) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, db.URL)
	if err == nil {
		_ = conn.Close(ctx)
	}
	return err
}
