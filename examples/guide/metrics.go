package guide

import (
	"context"
	"database/sql"
	"log/slog"
	"net/http"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/metrics"
	"github.com/sortkey/sortkey/nodelease"
)

// ServeMetrics returns a handler for Prometheus. It responds with the metrics of the
// generator and of its claim. Each instance serves its own.
func ServeMetrics(ids *nodelease.Generator[idtype.Snowflake]) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.NewCollector(metrics.Leased("orders", ids)))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

// ServeDatabaseMetrics returns a handler for Prometheus. It responds with the metrics of the
// database. The role of the URL is monitoring. The connections close when ctx ends.
func ServeDatabaseMetrics(ctx context.Context, url string, log *slog.Logger) (http.Handler, error) {
	db, err := sql.Open("pgx", url)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = db.Close() })
	db.SetMaxOpenConns(2) // one for scrapes, one for searches
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.NewCollector(metrics.Database("shop", db, metrics.DatabaseOptions{Logger: log})))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), nil
}

// ExportMetrics sends the generator's metrics to OpenTelemetry. The exporter is for
// example one of otlpmetricgrpc. The caller shuts the provider down.
func ExportMetrics(ids *nodelease.Generator[idtype.Snowflake], exporter metric.Exporter) *metric.MeterProvider {
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.NewCollector(metrics.Leased("orders", ids)))
	producer := bridge.NewMetricProducer(bridge.WithGatherer(registry))
	reader := metric.NewPeriodicReader(exporter, metric.WithProducer(producer))
	return metric.NewMeterProvider(metric.WithReader(reader))
}
