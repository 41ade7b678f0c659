// Command service is an HTTP service with customers and orders in Postgres. Each
// instance claims its node numbers when it starts, so several instances can run at once.
//
//	service -migrate   # once per deployment, as the owner of the tables
//	service            # each instance
//	service -monitor   # one process per database, as a role for monitoring
//
// The variable DATABASE_URL has the database and the role, as in postgres://shop@db/shop.
// docs/security.md has the grants of sortkey for each role. An instance serves clients on port
// 8080, and metrics and probes on port 8081:
//
//	curl -i localhost:8080/customers -d '{"name": "Ada"}'
//	curl -i localhost:8080/orders -H 'Idempotency-Key: 1' -d '{"customer_id": "...", "item": "tea", "quantity": 2}'
//	curl localhost:8080/orders/ord_...
//	curl localhost:8081/readyz localhost:8081/metrics
package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"flag"
	"log/slog"
	"net"
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
	listen     string
	operations string
	database   string
	leases     string
	zookeeper  string
	ttl        time.Duration
	drain      time.Duration
	migrate    bool
	monitor    bool
}

func main() {
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once

	var c config
	err := c.parse(flag.CommandLine, os.Args[1:]) // exits if a flag is wrong
	switch {
	case err != nil:
	case c.migrate:
		err = migrate(ctx, c.database)
	case c.monitor:
		err = monitor(ctx, c, log)
	default:
		err = serve(ctx, c, log)
	}
	if err != nil {
		log.Error("service failed", "error", err)
		os.Exit(1)
	}
}

// parse reads the flags and the environment.
func (c *config) parse(flags *flag.FlagSet, args []string) error {
	flags.StringVar(&c.listen, "listen", cmp.Or(os.Getenv("LISTEN"), ":8080"), "address of the server for clients ($LISTEN)")
	flags.StringVar(&c.operations, "operations", cmp.Or(os.Getenv("OPERATIONS"), ":8081"), "address of the server for /metrics, /readyz and /healthz ($OPERATIONS)")
	// -h prints the defaults of flags, and these URLs can contain passwords.
	flags.StringVar(&c.database, "database", "", "URL of the database ($DATABASE_URL)")
	flags.StringVar(&c.leases, "leases", "", "URL for the claims of node numbers; default: -database ($LEASES_URL)")
	flags.StringVar(&c.zookeeper, "zookeeper", os.Getenv("ZOOKEEPER"), "servers, separated by commas, for claims in ZooKeeper instead ($ZOOKEEPER)")
	flags.DurationVar(&c.ttl, "ttl", 30*time.Second, "how long a claim lasts without a renewal")
	flags.DurationVar(&c.drain, "drain", 5*time.Second, "time from a failing /readyz to the end of the servers")
	flags.BoolVar(&c.migrate, "migrate", false, "create or change the tables, and exit")
	flags.BoolVar(&c.monitor, "monitor", false, "serve only the metrics of the database, at -operations")
	err := flags.Parse(args)
	c.database = cmp.Or(c.database, os.Getenv("DATABASE_URL"))
	c.leases = cmp.Or(c.leases, os.Getenv("LEASES_URL"))
	if err == nil && c.database == "" {
		err = errors.New("no database: set DATABASE_URL or -database to a URL such as postgres://user@host/name")
	}
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
	checks := []ready.Checker{orders, customers, ready.While(ctx)}
	return listenAndServe(ctx, c.drain, log,
		newServer(c.listen, (&shop{g, pool, log}).routes(), log),
		newServer(c.operations, operations(checks, metrics.Leased("orders", orders), metrics.Leased("customers", customers)), log))
}

// monitor serves the metrics of the database until ctx ends. They are the same for all
// instances, and their queries need the grants of a role for monitoring. So one process
// reads them, with its own role and connections.
func monitor(ctx context.Context, c config, log *slog.Logger) error {
	db, err := sql.Open("pgx", c.database)
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(2)
	source := metrics.Database("shop", db, metrics.DatabaseOptions{Logger: log})
	return listenAndServe(ctx, 0, log, newServer(c.operations, operations(nil, source), log))
}

// operations returns the handler for Prometheus and for probes. It has a port of its own,
// since its answers name servers and node numbers. Don't open the port to clients.
func operations(checks []ready.Checker, sources ...metrics.Source) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.NewCollector(sources...))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.Handle("GET /readyz", ready.Handler(checks...))                         // may this instance get requests?
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {}) // does the process answer?
	return mux
}

// newServer returns a server that doesn't wait for slow clients.
func newServer(listen string, handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Addr: listen, Handler: handler,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		ReadHeaderTimeout: requestTimeout,
		ReadTimeout:       requestTimeout,     // of the header and the body
		WriteTimeout:      3 * requestTimeout, // from the end of the header
		IdleTimeout:       2 * time.Minute,    // longer than that of the load balancer
		MaxHeaderBytes:    1 << 14,
	}
}

// listenAndServe runs servers until ctx ends, and longer by the drain. Then it lets the
// servers finish their requests, one server after the other. If a server fails, they finish
// at once.
func listenAndServe(ctx context.Context, drain time.Duration, log *slog.Logger, servers ...*http.Server) error {
	var listeners []net.Listener
	for _, s := range servers {
		l, err := net.Listen("tcp", s.Addr)
		if err != nil {
			return err
		}
		defer l.Close() // if the next one fails; otherwise its server has closed it
		listeners = append(listeners, l)
	}
	failed := make(chan error, len(servers))
	for i, s := range servers {
		go func() { failed <- s.Serve(listeners[i]) }()
		log.Info("serving", "address", listeners[i].Addr().String())
	}
	var failure error
	select {
	case failure = <-failed:
	case <-ctx.Done():
		// From now on /readyz fails. Serve until the load balancer has seen that.
		select {
		case failure = <-failed:
		case <-time.After(drain):
		}
	}
	ending, cancel := context.WithTimeout(context.Background(), 2*requestTimeout)
	defer cancel()
	for _, s := range servers {
		failure = errors.Join(failure, s.Shutdown(ending))
	}
	return failure
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
