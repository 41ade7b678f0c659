package guide

import (
	"database/sql"
	"log/slog"
	"net/http"

	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/metrics"
	"github.com/sortkey/sortkey/nodelease"
)

// ServeMetrics returns a handler for Prometheus. It responds with the metrics of the
// generator and of the database.
func ServeMetrics(ids *nodelease.Generator[idtype.Snowflake], db *sql.DB, log *slog.Logger) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.NewCollector(
		metrics.Leased("orders", ids),
		metrics.Database("shop", db, metrics.DatabaseOptions{Logger: log}),
	))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
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
