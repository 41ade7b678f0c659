package metrics

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/integration_test/internal/promtest"
	"github.com/sortkey/sortkey/metrics"
	"github.com/sortkey/sortkey/migrations"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/pglease"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// install runs the migrations, and creates the managed tables events and visits. Only
// events has partitions, and rows in its default partition.
func install(t testing.TB, db *pgtest.DB) {
	t.Helper()
	pool := db.SQL(t)
	pgtest.Must(t, migrations.Up(t.Context(), pool, migrations.Config{}))
	db.Exec(t, `
		CREATE TABLE events (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
		CREATE TABLE visits (id uuid PRIMARY KEY) PARTITION BY RANGE (id);
		SELECT sortkey.manage_partitions('events', '1 month', format => 'snowflake', premake => 3)`)
	_, err := migrations.MaintainPartitions(t.Context(), pool, migrations.Config{}, migrations.PartitionOptions{})
	pgtest.Must(t, err)
	db.Exec(t, `
		SELECT sortkey.manage_partitions('visits', '1 day', format => 'sno', default_partition => false);
		INSERT INTO events SELECT generate_series(1, 100);
		ANALYZE events;
		SELECT sortkey.reserve_node('snowflake', 1023, 'defaults')`)
}

// gather returns the values of a database's metrics by name and labels.
func gather(t *testing.T, db *sql.DB, o metrics.DatabaseOptions) map[string]float64 {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(metrics.NewCollector(metrics.Database("shop", db, o)))
	problems, err := testutil.GatherAndLint(r)
	pgtest.Must(t, err)
	if len(problems) > 0 {
		t.Errorf("lint: %v", problems)
	}
	return gathered(t, r)
}

func gathered(t *testing.T, r *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	pgtest.Must(t, err)
	found := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			found[f.GetName()+" "+strings.Join(labels, " ")] = m.GetGauge().GetValue()
		}
	}
	return found
}

func TestDatabase(t *testing.T) {
	t.Parallel()
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		install(t, db)
		ids, err := nodelease.NewSnowflakeGenerator(t.Context(), pglease.New(db.SQL(t), pglease.Config{}), idtype.SnowflakeConfig{}, nodelease.Options{})
		pgtest.Must(t, err)
		defer ids.Close()
		// A mark an hour ahead, as a holder with a wrong clock leaves it.
		db.Exec(t, `INSERT INTO sortkey.node_lease (pool, number, mark) VALUES ('snowflake', 5, extract(epoch FROM now()) * 1000 + 3600000);
			UPDATE sortkey.node_pool SET fenced_until = now() + interval '10 minutes'`)

		// The role has only the privileges that the documentation of Database lists.
		role := db.NewRole(t, "metrics", "")
		db.Exec(t, fmt.Sprintf(`GRANT USAGE ON SCHEMA sortkey TO %[1]s;
			GRANT SELECT ON sortkey.node_pool, sortkey.node_status, sortkey.partition_log TO %[1]s`, role))
		var log bytes.Buffer
		o := metrics.DatabaseOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))}
		reader := db.SQL(t)
		reader.SetMaxOpenConns(1)
		_, err = reader.ExecContext(t.Context(), "SET ROLE "+role)
		pgtest.Must(t, err)
		_, err = reader.ExecContext(t.Context(), "CREATE TEMP TABLE pg_class (oid oid); SET search_path = pg_temp, public, pg_catalog") // hides the catalog
		pgtest.Must(t, err)

		got := gather(t, reader, o)
		for metric, value := range map[string]float64{
			"sortkey_database_up shop":                                          1,
			"sortkey_pool_numbers shop snowflake held":                          1,
			"sortkey_pool_numbers shop snowflake reserved":                      1,
			"sortkey_pool_numbers shop snowflake ahead":                         1,
			"sortkey_pool_numbers shop snowflake free":                          1021,
			"sortkey_default_partition_rows shop public.events":                 100,
			"sortkey_partition_horizon_seconds shop public.visits":              0,
			"sortkey_partition_maintained_timestamp_seconds shop public.visits": 0,
			"sortkey_findings shop partition-horizon problem":                   1,
			"sortkey_findings shop pool-fenced warning":                         1,
			"sortkey_findings shop mark-ahead warning":                          1,
			"sortkey_findings shop partition-default unknown":                   1, // the role can't read the table
		} {
			if v, ok := got[metric]; !ok || v != value {
				t.Errorf("%s: got %v (found: %t), want %v", metric, v, ok, value)
			}
		}
		if v, ok := got["sortkey_findings shop partition-horizon warning"]; ok {
			t.Errorf("got %v warnings of partition-horizon, want no series for none", v)
		}
		month := 31 * 24 * time.Hour
		if v := got["sortkey_partition_horizon_seconds shop public.events"]; v < (2*month).Seconds() || v > (4*month).Seconds() {
			t.Errorf("the horizon of events: got %v s, want 2 to 4 months", v)
		}
		if v := got["sortkey_partition_maintained_timestamp_seconds shop public.events"]; math.Abs(v-float64(time.Now().Unix())) > 600 {
			t.Errorf("the last maintenance of events: got %v, want a few seconds ago", v)
		}
		if v := got["sortkey_pool_fence_left_seconds shop snowflake"]; v <= 0 || v > 600 {
			t.Errorf("the fence: got %v s, want up to 600", v)
		}
		if t.Failed() {
			t.Log(log.String())
		}

		// The role can't create IDs.
		for _, call := range []string{
			"sortkey.next_snowflake()", "sortkey.next_snowflake(7)", "sortkey_internal.snowflake_id(1, 1)",
			"sortkey_internal.partition_times('events', 'snowflake')", "sortkey.claim_node('snowflake', 1024, '', '{}', 'x', 1000, 1, 1)",
		} {
			var state interface{ SQLState() string }
			if _, err := reader.ExecContext(t.Context(), "SELECT "+call); !errors.As(err, &state) || state.SQLState() != "42501" {
				t.Errorf("%s: want SQLSTATE 42501, got %v", call, err)
			}
		}

		// Without a privilege, the other metrics are still there.
		db.Exec(t, "REVOKE SELECT ON sortkey.node_status FROM "+role)
		got = gather(t, reader, o)
		if up, ok := got["sortkey_database_up shop"]; !ok || up != 0 {
			t.Errorf("sortkey_database_up: got %v (found: %t), want 0", up, ok)
		}
		if _, ok := got["sortkey_partition_horizon_seconds shop public.events"]; !ok {
			t.Error("the horizon of events is missing")
		}
		if !strings.Contains(log.String(), "permission denied for view node_status") {
			t.Errorf("got the log %q, want the reason", log.String())
		}

		// As is a table whose bounds are no IDs.
		db.Exec(t, "GRANT SELECT ON sortkey.node_status TO "+role+"; CREATE TABLE odd PARTITION OF visits FOR VALUES FROM ('45454545-4545-4545-4545-000000000001') TO ('45454545-4545-4545-4545-000000000002')")
		got = gather(t, reader, o)
		if got["sortkey_database_up shop"] != 0 || got["sortkey_partition_horizon_seconds shop public.events"] == 0 {
			t.Errorf("with invalid bounds in another table: got %v", got)
		}
		if got := gather(t, reader, metrics.DatabaseOptions{Schema: "elsewhere", FindingsEvery: -1}); len(got) != 1 {
			t.Errorf("without an installation: got %v, want sortkey_database_up alone", got)
		}
		got = gather(t, reader, metrics.DatabaseOptions{Schema: "elsewhere"})
		if got["sortkey_findings shop not-installed problem"] != 1 || got["sortkey_database_up shop"] != 0 {
			t.Errorf("without an installation: got %v, want a finding", got)
		}
	})
}

// A canceler cancels the statements of one rule while on is set.
type canceler struct{ on atomic.Bool }

func (c *canceler) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if !c.on.Load() || !strings.Contains(data.SQL, "pg_subscription") {
		return ctx
	}
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

func (*canceler) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// While the search for findings fails, the database counts as not read. The log doesn't repeat
// the findings that were known before.
func TestFailedSearch(t *testing.T) {
	t.Parallel()
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		install(t, db)
		search := &canceler{}
		pool := db.SQL(t, pgtest.Config(func(c *pgx.ConnConfig) { c.Tracer = search }))
		var log bytes.Buffer
		r := prometheus.NewPedanticRegistry()
		r.MustRegister(metrics.NewCollector(metrics.Database("shop", pool, metrics.DatabaseOptions{FindingsEvery: time.Nanosecond, Logger: slog.New(slog.NewTextHandler(&log, nil))})))
		scrape := func(wantUp float64, wantFindings bool) {
			t.Helper()
			got := gathered(t, r)
			_, findings := got["sortkey_findings shop partition-horizon problem"]
			if up := got["sortkey_database_up shop"]; up != wantUp || findings != wantFindings {
				t.Errorf("sortkey_database_up: got %v, want %v; findings: %t, want %t", up, wantUp, findings, wantFindings)
			}
			if _, ok := got["sortkey_partition_horizon_seconds shop public.events"]; !ok {
				t.Error("the horizon of events is missing")
			}
		}
		scrape(1, true)
		search.on.Store(true)
		scrape(0, false)
		search.on.Store(false)
		scrape(1, true)
		if n := strings.Count(log.String(), "id=partition-horizon"); n != 1 || !strings.Contains(log.String(), "findings of the database not read") {
			t.Errorf("the log has the finding %d times, want once, and the failure:\n%s", n, &log)
		}
	})
}

// The rules and the dashboard work on a Prometheus server that scrapes a program with
// this package.
func TestPrometheus(t *testing.T) {
	pgtest.NeedsContainers(t)
	t.Parallel()
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		install(t, db)
		pool := db.SQL(t)
		store := pglease.New(pool, pglease.Config{})
		o := nodelease.Options{TTL: 6 * time.Second} // renewals within the few seconds of the test
		orders, err := nodelease.NewSnowflakeGenerator(t.Context(), store, idtype.SnowflakeConfig{}, o)
		pgtest.Must(t, err)
		defer orders.Close()
		customers, err := nodelease.NewSpread64Generator(t.Context(), store, idtype.Spread64Config{}, o)
		pgtest.Must(t, err)
		defer customers.Close()
		events, err := idtype.NewUID60Generator(idtype.UID60Config{})
		pgtest.Must(t, err)

		r := prometheus.NewPedanticRegistry()
		r.MustRegister(metrics.NewCollector(metrics.Leased("orders", orders), metrics.Leased("customers", customers),
			metrics.Generator("events", events), metrics.Database("shop", pool, metrics.DatabaseOptions{})))
		listener, err := net.Listen("tcp", ":0")
		pgtest.Must(t, err)
		mux := http.NewServeMux()
		mux.Handle("/metrics", promhttp.HandlerFor(r, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}))
		server := &http.Server{Handler: mux}
		go func() { _ = server.Serve(listener) }()
		defer server.Close()
		port := listener.Addr().(*net.TCPAddr).Port

		prom := promtest.Run(t, []int{port}, "../../metrics/alerts.yaml", "../../metrics/alerts_test.yaml", "../../metrics/alerts_days_test.yaml")
		prom.Promtool(t, "check rules alerts.yaml")
		prom.Promtool(t, "test rules alerts_test.yaml alerts_days_test.yaml")
		// Create IDs until each counter has two samples and each claim was renewed.
		pgtest.Eventually(t, "two renewals are scraped", func() error {
			for range 100 {
				_, err1 := orders.Next()
				_, err2 := customers.Next()
				_, err3 := events.Next()
				if err := errors.Join(err1, err2, err3); err != nil {
					return err // on a slow machine, a claim can be lost
				}
			}
			renewed, err := prom.Query(t, "rate(sortkey_lease_renewal_duration_seconds_count[15s]) > 0 and rate(sortkey_ids_minted_total[15s]) > 0")
			if err == nil && len(renewed) != 2 {
				err = fmt.Errorf("%d of 2 claims were renewed", len(renewed))
			}
			return err
		})
		prom.CheckRules(t)
		prom.CheckDashboard(t, "../../metrics/dashboard.json")
	})
}
