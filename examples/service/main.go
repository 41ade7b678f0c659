// Command service is an HTTP service with customers and orders in Postgres. Each
// instance claims its node numbers when it starts, so several instances can run at once.
//
//	export DATABASE_URL=postgres://...
//	service -migrate   # once per deployment
//	service            # each instance
//
//	curl -i localhost:8080/customers -d '{"name": "Ada"}'
//	curl -i localhost:8080/orders -H 'Idempotency-Key: 1' -d '{"customer_id": "...", "item": "tea", "quantity": 2}'
//	curl localhost:8080/orders/ord_...
package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"flag"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/metrics"
	"github.com/sortkey/sortkey/migrations"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/pglease"
	"github.com/sortkey/sortkey/nodelease/ready"
	"github.com/sortkey/sortkey/nodelease/zklease"
)

// A config has the settings: from flags, or else from the environment.
type config struct {
	listen    string
	database  string
	leases    string
	zookeeper string
	ttl       time.Duration
	drain     time.Duration
	migrate   bool
}

func main() {
	var c config
	_ = c.parse(flag.CommandLine, os.Args[1:]) // exits on errors

	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	run := serve
	if c.migrate {
		run = func(ctx context.Context, c config, _ *slog.Logger) error { return migrate(ctx, c.database) }
	}
	if err := run(ctx, c, log); err != nil {
		log.Error("service failed", "error", err)
		os.Exit(1)
	}
}

// parse reads the flags and the environment.
func (c *config) parse(flags *flag.FlagSet, args []string) error {
	flags.StringVar(&c.listen, "listen", cmp.Or(os.Getenv("LISTEN"), ":8080"), "address of the server ($LISTEN)")
	// -h prints the defaults of flags, and these URLs can contain passwords.
	flags.StringVar(&c.database, "database", "", "URL of the database ($DATABASE_URL)")
	flags.StringVar(&c.leases, "leases", "", "URL for the claims of node numbers; default: -database ($LEASES_URL)")
	flags.StringVar(&c.zookeeper, "zookeeper", os.Getenv("ZOOKEEPER"), "servers, separated by commas, for claims in ZooKeeper instead ($ZOOKEEPER)")
	flags.DurationVar(&c.ttl, "ttl", 30*time.Second, "how long a claim lasts without a renewal")
	flags.DurationVar(&c.drain, "drain", 5*time.Second, "time from a failing /readyz to the end of the server")
	flags.BoolVar(&c.migrate, "migrate", false, "create or change the tables, and exit")
	err := flags.Parse(args)
	c.database = cmp.Or(c.database, os.Getenv("DATABASE_URL"))
	c.leases = cmp.Or(c.leases, os.Getenv("LEASES_URL"))
	return err
}

// serve runs an instance until ctx ends. Its deferred calls run in reverse order: first
// the node numbers are released, then the connections are closed.
func serve(ctx context.Context, c config, log *slog.Logger) (err error) {
	closing := func(f func() error) { err = errors.Join(err, f()) }

	pool, err := openPool(ctx, c.database)
	if err != nil {
		return err
	}
	defer pool.Close()
	db := stdlib.OpenDBFromPool(pool)
	defer closing(db.Close)
	if err := migrations.Check(ctx, db, migrations.Config{}); err != nil {
		return err
	}
	if err := migrations.CheckDefaults(ctx, db, migrations.Config{}); err != nil {
		log.Warn("column defaults need a correction", "error", err)
	}

	store, closeStore, err := c.store()
	if err != nil {
		return err
	}
	defer closing(closeStore)
	options := nodelease.Options{TTL: c.ttl, Logger: log}
	orders, err := nodelease.NewSnowflakeGenerator(ctx, store, idtype.SnowflakeConfig{}, options)
	if err != nil {
		return err
	}
	defer closing(orders.Close)
	customers, err := nodelease.NewSnoGenerator(ctx, store, idtype.SnoConfig{}, options)
	if err != nil {
		return err
	}
	defer closing(customers.Close)

	g, err := openGORM(db, gormplugin.For(orders), gormplugin.For(customers))
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.NewCollector(
		metrics.Leased("orders", orders), metrics.Leased("customers", customers), metrics.Database("shop", db, metrics.DatabaseOptions{})))

	mux := http.NewServeMux()
	(&shop{g, pool, log}).routes(mux)
	// If clients outside of your network reach the service, serve these on another port.
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.Handle("GET /readyz", ready.Handler( // may this instance get requests?
		reason{"no IDs for orders", orders, log}, reason{"no IDs for customers", customers, log}, ready.While(ctx)))
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {}) // does the process answer?

	server := newServer(c.listen, mux)
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	log.Info("serving", "address", c.listen)
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	// From now on /readyz fails. Serve until the load balancer has seen that.
	time.Sleep(c.drain)
	ending, cancel := context.WithTimeout(context.Background(), 2*requestTimeout)
	defer cancel()
	return server.Shutdown(ending)
}

// newServer returns a server that doesn't wait for slow clients.
func newServer(listen string, handler http.Handler) *http.Server {
	return &http.Server{
		Addr: listen, Handler: handler,
		ReadHeaderTimeout: requestTimeout,
		ReadTimeout:       requestTimeout,     // of the header and the body
		WriteTimeout:      3 * requestTimeout, // from the end of the header
		IdleTimeout:       2 * time.Minute,    // longer than that of the load balancer
		MaxHeaderBytes:    1 << 14,
	}
}

// store returns the store of node numbers, and a function that closes it. A store in
// Postgres has two connections of its own, so that renewals never wait for requests.
func (c config) store() (nodelease.Store, func() error, error) {
	if c.zookeeper != "" {
		store, err := zklease.Connect(strings.Split(c.zookeeper, ","), zklease.Config{SessionTimeout: c.ttl})
		return store, func() error { store.Close(); return nil }, err
	}
	db, err := sql.Open("pgx", cmp.Or(c.leases, c.database))
	if err != nil {
		return nil, nil, err
	}
	db.SetMaxOpenConns(2)
	return pglease.New(db, pglease.Config{}), db.Close, nil
}

// A reason is a check for /readyz that fails with a fixed text. It logs the error, which can
// name users and servers.
type reason struct {
	text  string
	check ready.Checker
	log   *slog.Logger
}

func (r reason) Ready() error {
	err := r.check.Ready()
	if err == nil {
		return nil
	}
	r.log.Warn("not ready", "reason", r.text, "error", err)
	return errors.New(r.text + "; see the log")
}
